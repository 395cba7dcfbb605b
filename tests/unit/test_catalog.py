# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Finding a kernel by what a user types."""

import pytest
from problem_support import find_kernel, ladder
from unit_support import load_kernel, named_kernel, write_transpose_kernel

from gpuprof.errors import HeaderError
from gpuprof.kernels.catalog import check_ladder, shipped_ladder
from gpuprof.kernels.header import entry_in_header
from gpuprof.kernels.shipped import shipped_names


@pytest.mark.parametrize("name", ["naive_col", "NAIVE_COL", "transposeNaiveCol", "TRANSPOSENAIVECOL"])
def test_id_and_published_name_in_any_case(name):
    assert find_kernel("transpose", name).id == "naive_col"


def test_file_of_ones_own(tmp_path):
    path = write_transpose_kernel(tmp_path, "mine")
    kernel = named_kernel("transpose", path)
    assert (kernel.id, kernel.file_name, kernel.source) == ("mine", "mine.cu", path.read_text())
    assert kernel not in ladder("transpose")


def test_file_for_another_problem_is_refused(tmp_path):
    path = write_transpose_kernel(tmp_path, "mine")
    with pytest.raises(HeaderError) as caught:
        named_kernel("gemm", path)
    assert caught.value.what == f"{path} is a transpose kernel, not a gemm kernel."


def test_file_with_the_id_of_a_shipped_kernel_is_refused(tmp_path):
    path = write_transpose_kernel(tmp_path, "naive_row")
    with pytest.raises(HeaderError) as caught:
        named_kernel("transpose", path)
    assert caught.value.what == f"{path} has the id of a shipped kernel, 'naive_row'."
    assert caught.value.fix == "Rename the file."


def test_an_entry_is_read_from_a_header_whatever_else_it_says():
    header = '/*gpuprof\nentry = "k<1>"\n[[variants]]\nid = "a"\nentry = "b"\n[[variants]]\nid = "c"\n*/'
    assert [entry_in_header(header, name) for name in ("a", "c", "d")] == ["b", "k<1>", "k<1>"]
    for text in ("", "/*gpuprof\n*/", "/*gpuprof\nentry = 3\nvariants = 4\n*/", "/*gpuprof\nentry = \n*/"):
        assert entry_in_header(text, "a") == ""


def test_a_kernel_that_is_named_is_found_without_reading_the_others():
    for operation in shipped_names():
        whole = shipped_ladder(operation)
        for kernel in whole.kernels:
            for name in (kernel.id, *kernel.aliases):
                part = shipped_ladder(operation, (name,))
                chosen = [whole.find(choice.kernel) for choice in kernel.choices]
                assert [part.find(other.id) for other in (kernel, *chosen)] == [kernel, *chosen]
                assert part.find(name) == kernel
        assert shipped_ladder(operation, (whole.kernels[0].id, "nonsense")) == whole
    assert [kernel.id for kernel in shipped_ladder("gemm", ("naive",)).kernels] == ["naive"]


def test_a_rung_starts_from_a_rung_so_that_a_whole_run_has_both():
    for name in shipped_names():
        shipped = shipped_ladder(name)
        rungs = {kernel.id for kernel in shipped.rungs}
        assert {kernel.after for kernel in shipped.rungs} <= {"", *rungs}
        assert {kernel.shape_of for kernel in shipped.kernels} <= {"", *rungs}


def test_a_shape_of_no_rung_is_refused(tmp_path):
    write_transpose_kernel(tmp_path, "rung")
    shape = write_transpose_kernel(tmp_path, "shape")
    shape.write_text(shape.read_text().replace('title = "shape"', 'title = "shape"\nshape_of = "rung"'))
    other = write_transpose_kernel(tmp_path, "other")
    other.write_text(other.read_text().replace('title = "other"', 'title = "other"\nshape_of = "shape"'))
    kernels = [load_kernel(tmp_path / f"{name}.cu") for name in ("rung", "shape", "other")]
    check_ladder(kernels[:2], "here")
    with pytest.raises(HeaderError, match="here: shape_of of other is 'shape', not one of rung"):
        check_ladder(kernels, "here")
