# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Finding a kernel by what a user types."""

import pytest
from unit_support import MINIMAL, write_transpose_kernel

from gpuprof.errors import HeaderError, InputError
from gpuprof.kernels.catalog import find_kernel, ladder


@pytest.mark.parametrize("name", ["naive_col", "NAIVE_COL", "transposeNaiveCol", "TRANSPOSENAIVECOL"])
def test_id_and_published_name_in_any_case(name):
    assert find_kernel("transpose", name).id == "naive_col"


def test_same_id_means_the_kernel_of_the_problem_asked_for():
    assert find_kernel("gemm", "naive").op == "gemm"
    with pytest.raises(InputError, match="There is no gemm kernel 'copy_row'"):
        find_kernel("gemm", "copy_row")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("nave", "naive"),
        ("smem_tield", "smem_tiled"),
        ("reg2x1", "reg_2x1"),
        ("gemmOnGPU2DSharMem", "gemmongpu2dsharemem"),
    ],
)
def test_unknown_name_suggests_the_nearest(typed, meant):
    with pytest.raises(InputError) as caught:
        find_kernel("gemm", typed)
    assert caught.value.what == f"There is no gemm kernel {typed!r}."
    assert caught.value.fix.startswith("Did you mean ")
    assert meant in caught.value.fix


def test_name_like_nothing_points_to_the_list():
    with pytest.raises(InputError) as caught:
        find_kernel("gemm", "zzzzzzzzz")
    assert caught.value.fix == "See `gpuprof list gemm`."


def test_file_of_ones_own(tmp_path):
    path = write_transpose_kernel(tmp_path, "mine")
    kernel = find_kernel("transpose", str(path))
    assert (kernel.id, kernel.path) == ("mine", path)
    assert kernel not in ladder("transpose")


def test_file_for_another_problem_is_refused(tmp_path):
    path = write_transpose_kernel(tmp_path, "mine")
    with pytest.raises(HeaderError) as caught:
        find_kernel("gemm", str(path))
    assert caught.value.what == f"{path} is a transpose kernel, not a gemm kernel."


def test_file_with_the_id_of_a_shipped_kernel_is_refused(tmp_path):
    path = write_transpose_kernel(tmp_path, "naive_row")
    with pytest.raises(HeaderError) as caught:
        find_kernel("transpose", str(path))
    assert caught.value.what == f"{path} has the id of a shipped kernel, 'naive_row'."
    assert caught.value.fix == "Rename the file."


def test_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(
        HeaderError, match=r"Cannot read the kernel file .*nothing\.cu: No such file or directory\."
    ):
        find_kernel("gemm", str(tmp_path / "nothing.cu"))


def test_file_whose_name_is_no_identifier_needs_an_entry(tmp_path):
    path = tmp_path / "my-kernel.cu"
    path.write_text(MINIMAL["gemm"])
    with pytest.raises(HeaderError, match="entry must be a C identifier, not 'my-kernel'"):
        find_kernel("gemm", str(path))
    path.write_text(MINIMAL["gemm"].replace('title = "Mine"', 'title = "Mine"\nentry = "mine"'))
    assert find_kernel("gemm", str(path)).entry == "mine"
