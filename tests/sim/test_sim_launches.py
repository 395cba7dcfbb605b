# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel files as people write them: with host code, of several launches, with textures."""

import re
import shutil

import numpy as np
import pytest
import texture_sources
from cuda_sources import FOLDER, write_kernel_file
from page_reader import expanded
from problem_support import measured, measured_file

import gpuprof
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.header import WHOLE_HEADER
from gpuprof.kernels.shape import configure
from gpuprof.problems.problem import Problem

pytestmark = pytest.mark.deep


def profile(path, **options):
    return gpuprof.profile(path, device="sim:h200", **options)


def value(case, counter):
    return case.counters[counter].value


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000, 65536])
def test_launches_build_on_each_other(tmp_path, n):
    case = measured_file(write_kernel_file(tmp_path, "two_pass_sum"), str(n))
    assert case.outcome == "ok", case.reason
    assert case.verification.checked_elements == 1


def test_counts_are_those_of_all_launches(tmp_path):
    # 65536 elements are 256 blocks of 256; their 256 sums are one block more of the same code.
    case = measured_file(write_kernel_file(tmp_path, "two_pass_sum"), "65536")
    assert value(case, "global_store_requests") == 256 + 1
    assert value(case, "global_load_requests") == (256 + 1) * 8
    assert value(case, "global_load_sectors") == (256 + 1) * 32
    assert value(case, "global_load_efficiency_pct") == 100
    # Of each sector stored, one sum of 4 bytes.
    assert value(case, "global_store_efficiency_pct") == 100 * 4 / 32
    counters = case.counters
    assert (counters["barriers"].sampled_blocks, counters["barriers"].total_blocks) == (257, 257)
    loads = sum(line.counters.get("global_load_requests", 0) for line in case.lines)
    assert loads == value(case, "global_load_requests")


def test_the_largest_launch_stands_for_the_case_and_each_is_recorded(tmp_path):
    record = measured_file(write_kernel_file(tmp_path, "two_pass_sum"), "65536", assembled=True)
    assert (record.block, record.grid) == ((128, 1, 1), (256, 1, 1))
    assert [(one.entry, one.block, one.grid) for one in record.launches] == [
        ("block_sums", (128, 1, 1), (256, 1, 1)),
        ("block_sums", (128, 1, 1), (1, 1, 1)),
    ]
    assert record.resources == record.launches[0].resources
    assert record.resources.dynamic_shared_bytes == 512
    assert record.occupancy == record.launches[0].occupancy


def test_parameters_shape_blocks_and_workspace(tmp_path):
    run = profile(
        write_kernel_file(tmp_path, "two_pass_sum"),
        kernels={str(tmp_path / "two_pass_sum.cu"): {"THREADS": [64, 256]}},
        sizes=5000,
    )
    assert [(case.ok, case.block, case.grid) for case in run.cases] == [
        (True, (64, 1, 1), (40, 1, 1)),
        (True, (256, 1, 1), (10, 1, 1)),
    ]


def test_functions_of_one_file_share_its_variables(tmp_path):
    case = measured_file(write_kernel_file(tmp_path, "through_a_variable"), assembled=True)
    assert case.outcome == "ok", case.reason
    assert [one.entry for one in case.launches] == ["take_first", "scale"]
    assert case.block == (64, 1, 1)


def test_workspace_starts_poisoned(tmp_path):
    # The second launch adds up partial sums that nobody wrote.
    reads_too_much = write_kernel_file(
        tmp_path, "two_pass_sum", old='shape = ["cdiv', new='shape = ["1 + cdiv'
    )
    reads_too_much.write_text(
        reads_too_much.read_text().replace(
            '"cdiv(n, 2 * THREADS)", "partial"', '"1 + cdiv(n, 2 * THREADS)", "partial"'
        )
    )
    case = measured_file(reads_too_much)
    assert case.outcome == "incorrect"
    assert "nan" in case.reason


def test_a_fault_names_the_function_of_its_launch(tmp_path):
    too_small = write_kernel_file(
        tmp_path, "two_pass_sum", old='shape = ["cdiv(n, 2 * THREADS)"]', new='shape = ["1"]'
    )
    case = measured_file(too_small)
    assert case.outcome == "failed"
    assert "block_sums" in case.reason
    assert "partial" in case.reason


def test_launches_too_large_to_run_whole_are_counted_here_and_verified_smaller(tmp_path):
    file = write_kernel_file(tmp_path, "two_pass_sum")
    case, whole = measured_file(file, "65536", blocks=4), measured_file(file, "65536", blocks=0)
    assert case.outcome == "ok", case.reason
    assert any("verified at" in remark and "launches depend" in remark for remark in case.remarks)
    assert value(case, "global_load_sectors") == value(whole, "global_load_sectors")
    wrong = measured_file(
        write_kernel_file(tmp_path, "two_pass_sum", old="sum += in", new="sum -= in"), "65536", blocks=4
    )
    assert wrong.outcome == "incorrect"
    assert wrong.reason.startswith("At size ")


def test_launches_whose_numbers_decide_are_run_whole_or_not_at_all(tmp_path):
    deciding = write_kernel_file(
        tmp_path, "two_pass_sum", old="if (threadIdx.x == 0)", new="if (threadIdx.x == 0 && !(in[0] > 1e30))"
    )
    case = measured_file(deciding, "65536", blocks=4)
    assert case.outcome == "skipped"
    assert "launches depend on each other" in case.reason


def test_the_arguments_of_each_launch_are_checked(tmp_path):
    short = write_kernel_file(tmp_path, "two_pass_sum", old='["n", "x", "partial"]', new='["x", "partial"]')
    case = measured_file(short)
    assert case.outcome == "failed"
    assert case.reason.startswith("two_pass_sum is given 2 arguments (x, partial); block_sums takes 3: ")


def test_the_report_shows_every_launch(tmp_path):
    page = expanded(profile(write_kernel_file(tmp_path, "two_pass_sum"), sizes=65536).to_html())
    assert "block_sums: 256x1 blocks of 128x1" in page
    assert "block_sums: 1x1 blocks of 128x1" in page


WRITTEN = FOLDER / "as_written"


def measure(kernel, problem, params=None):
    return measured(kernel, problem, None, params, assembled=params is not None)


@pytest.fixture(scope="module")
def sgemm():
    return load_kernels(WRITTEN / "sgemm.cu")


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("which", range(4))
def test_kernels_of_one_file_with_its_host_code(sgemm, which, beta):
    kernel = sgemm.kernels[which]
    for dtype in kernel.dtypes:
        problem = Problem.of(sgemm.operation, (70, 45, 33), dtype, {"alpha": 1.5, "beta": beta})
        measurement = measure(kernel, problem)
        assert measurement.outcome == "ok", measurement.reason
        assert measurement.verification.checked_elements == 70 * 45


def test_parameters_choose_the_instance(sgemm):
    problem = Problem.of(sgemm.operation, (64, 64, 16))
    shared = [
        measure(sgemm.kernels[0], problem, params).resources.static_shared_bytes
        for params in ({}, {"BK": 16}, {"BM": 64, "TM": 8})
    ]
    assert shared == [4 * (32 * 8 + 8 * 64), 4 * (32 * 16 + 16 * 64), 4 * (64 * 8 + 8 * 64)]


def test_assertion_that_fails_is_a_fault_of_its_line_and_of_the_entry(sgemm):
    measurement = measure(sgemm.kernels[0], Problem.of(sgemm.operation, (64, 64, 16)), {"TM": 2})
    source = sgemm.kernels[0].source
    line = source[: source.index("assert(")].count("\n") + 1
    assert measurement.outcome == "failed"
    assert measurement.reason.startswith(f"sgemm_tiled<32, 64, 8, 2, 8>, line {line}: thread (0, 0, 0)")
    assert "fails the assertion" in measurement.reason


@pytest.mark.parametrize("name", ["cooperative", "clustered"])
def test_cooperative_groups(name):
    file = load_kernels(WRITTEN / f"{name}.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason


def test_counts_of_an_included_function_stand_at_the_line_that_calls_it():
    file = load_kernels(WRITTEN / "included.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason
    source = file.kernels[0].source
    call = source[: source.index("lib::block_sum")].count("\n") + 1
    shared = {line.line for line in measurement.lines if "shared_load_wavefronts" in line.counters}
    assert shared == {call}


def test_kernel_in_an_included_file_has_no_lines_of_the_file_that_names_it(tmp_path):
    shutil.copytree(WRITTEN / "lib", tmp_path / "lib")
    header, end, body = (WRITTEN / "included.cu").read_text().partition("*/\n")
    (tmp_path / "kernel.cuh").write_text("\n" * 90 + body)
    (tmp_path / "block_sum.cu").write_text(f'{header}{end}#include "kernel.cuh"\n')
    file = load_kernels(tmp_path / "block_sum.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.lines is None
    assert measurement.lines_reason.startswith("the kernel stands in an included file")
    kernel, backend = file.kernels[0], SimBackend(load_card("h200"))
    case = configure(kernel, Problem.of(file.operation, (1024,)), kernel.block, {}, backend.device)
    model, reason = backend.count(case, compile_kernel(case, backend.device.arch)).model()
    assert model, reason
    assert model.lines == ()
    assert model.reasons["latency"] > 0


@pytest.mark.parametrize("n", [64, 33])
def test_kernel_in_an_included_file_has_parameters_and_names_its_line(tmp_path, n):
    (tmp_path / "filled.cuh").write_text(
        "\ntemplate <int STEP> __global__ void filled(int *x, int n)"
        " { int i = blockIdx.x * 32 + threadIdx.x; x[i] = STEP * i; }"
    )
    (tmp_path / "filled.cu").write_text("""/*gpuprof
operation = "filled"
dimensions = ["n"]
entry = "filled<STEP>"
arguments = ["x", "n"]
[parameters]
STEP = 2
[arrays]
x = { shape = ["n"], dtype = "i32", role = "out" }
[work]
bytes = "4 * n"
[check]
x = "2 * arange(n)"
[launch]
block = [32]
grid = ["cdiv(n, 32)"]
*/
#include "filled.cuh"
""")
    file = load_kernels(tmp_path / "filled.cu")
    measurement = measure(file.kernels[0], Problem.of(file.operation, (n,)))
    assert (measurement.outcome == "ok") is (n == 64), measurement.reason
    assert n == 64 or "filled<2>, line 2 of an included file: thread (1, 0, 0)" in measurement.reason


SIM = "sim:h200"
LEFT_OUT = "this counter leaves out what goes through the kernel's textures or surfaces"


@pytest.mark.parametrize(
    ("name", "place"), [("doubled", 0), ("in_place", 0), ("grey", 0), ("near", 0), ("blur", 1)]
)
def test_a_call_is_right(tmp_path, name, place):
    case = getattr(texture_sources, name)(SIM, *[tmp_path] * place)
    assert case.ok, case.reason


@pytest.mark.parametrize(("kind", "value"), [("bool", True), ("char", -3), ("short", 300), ("char", 300)])
def test_integers_of_any_width_take_numbers_that_they_hold(kind, value):
    text = f'extern "C" __global__ void k(int *out, {kind} by, int n) {{ *out = by + n; }}'
    run = gpuprof.profile(
        gpuprof.Source(text, "k"),
        args={"out": None, "by": value, "n": 1},
        expect={"out": np.array([value + 1], np.int32)},
        grid=1,
        block=1,
        device=SIM,
    )
    assert run.cases[0].sizes == {"n": 1}
    fits = (kind, value) != ("char", 300)
    assert run.cases[0].ok is fits
    assert fits or "`char by`, a 1-byte integer, and by is a number of type int" in run.cases[0].reason


def test_what_goes_through_textures_is_not_counted_as_loads():
    case = texture_sources.doubled(SIM)
    for name in ("global_load_requests", "global_store_sectors"):
        with pytest.raises(gpuprof.NotMeasured, match=LEFT_OUT):
            getattr(case.counters, name)
    stores = texture_sources.grey(SIM).counters
    assert stores.global_store_requests == 48 * 4


def test_texels_that_nobody_wrote_are_told():
    body = "if (x != 7) surf2Dwrite(2 * tex2D<float>(image, x + 0.5f, y + 0.5f), out, 4 * x, y);"
    case = texture_sources.doubled(SIM, body)
    assert case.outcome == "incorrect"
    assert "out[0, 7]" in case.reason
    assert "never written" in case.reason


@pytest.mark.parametrize(
    ("kind", "body", "said", "words"),
    [
        (
            "cudaSurfaceObject_t",
            "surf2Dwrite(1.0f, image, 4 * x, y); out[y * 104 + x] = 1;",
            {"surfaces": {"image": {}}},
            "writes image, which is read-only",
        ),
        (
            "cudaTextureObject_t",
            "out[y * 104 + x] = tex2D<float>(image, x, y);",
            {},
            "argument 1 of k is `cudaTextureObject_t image`.* in a table each: \\[textures.image\\]",
        ),
        (
            "const float *",
            "out[y * 104 + x] = image[y * 104 + x];",
            {"textures": {"image": {}}},
            "and image is a texture, cudaTextureObject_t",
        ),
    ],
)
def test_what_does_not_fit_how_an_image_is_read_is_told(kind, body, said, words):
    arguments, image = {"image": texture_sources.IMAGE, "out": None}, {"out": texture_sources.IMAGE}
    case = texture_sources.call(f"{kind} image, float *out", body, arguments, image, device=SIM, **said)
    assert case.outcome == "failed"
    assert re.search(words, case.reason, re.DOTALL), case.reason


def test_a_texture_that_is_passed_as_a_number_is_told():
    source = (
        WHOLE_HEADER.replace('"n", "x", "y"', '"y", "0"')
        + """
__global__ void k(float *y, cudaTextureObject_t image) { y[threadIdx.x] = tex1D<float>(image, 0); }"""
    )
    reason = gpuprof.profile(gpuprof.Source(source, "k"), sizes=32, device=SIM).case().reason
    assert "is `cudaTextureObject_t image`, an 8-byte integer, and 0 is a number" in reason
    assert "Say how they are read, in a table each: [textures.image]." in reason


def test_a_view_of_an_array_has_no_value():
    with pytest.raises(gpuprof.InputError, match="look is a view of image, and has a value too"):
        texture_sources.call(
            "cudaTextureObject_t look, float *out",
            "",
            {"look": 1, "image": texture_sources.IMAGE, "out": None},
            {"out": texture_sources.IMAGE},
            textures={"look": {"array": "image"}},
            device=SIM,
        )


def test_textures_do_not_go_with_a_header():
    with pytest.raises(gpuprof.InputError, match="textures does not go with a header"):
        gpuprof.profile("transpose", textures={"in": {}}, device=SIM)
