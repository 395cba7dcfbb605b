# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that read shared memory nobody wrote: right with a remark, unless something depends on it."""

import numpy as np
import pytest
from counting_support import counted
from cuda_sources import kernel_file
from page_reader import expanded
from problem_support import executor, measured_file, problem_for, shipped_kernels

import gpuprof
from gpuprof.backends.sim.instructions import DecodedKernels
from gpuprof.devices.cards import load_card
from gpuprof.executor import Definedness, load_program
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case, unmeasured
from gpuprof.records import replace

pytestmark = pytest.mark.deep

#: Fetches the first column of the tile after the last one, which is nowhere.
GEMM = kernel_file("reads_ahead")
READ, COUNTS = (
    next(number for number, line in enumerate(GEMM.splitlines(), 1) if mark in line)
    for mark in ("// read", "// counts")
)
REMARK = (
    f"Line {READ} reads byte 1088 of shared memory, which was never written (thread (0, 0, 0) of block"
    " (0, 0, 0)); no result depends on it"
)


def write(tmp_path, stored="alpha * sum", poison="true"):
    path = tmp_path / "mine.cu"
    path.write_text(GEMM.replace("STORED", stored).replace("POISON", poison))
    return path


def measured(path, sizes="40x30x12", **options):
    return measured_file(path, sizes, **options)


def test_what_is_read_in_vain_is_a_remark_of_the_row(tmp_path, capsys):
    run = gpuprof.profile(write(tmp_path), sizes=(40, 30, 12), device="sim:h200")
    case = run.case()
    assert (case.outcome, case.remarks) == ("ok", (REMARK,))
    assert case.record.verification.checked_elements == 40 * 30
    assert run.to_json()["cases"][0]["remarks"] == [REMARK]
    assert REMARK in run.to_markdown()
    assert REMARK in expanded(run.to_html())
    run.show(browser=False)
    assert REMARK in " ".join(capsys.readouterr().out.split())


def test_with_several_tiles_the_last_one_is_stale_and_written(tmp_path):
    case = measured(write(tmp_path), "40x30x40")
    assert (case.outcome, case.remarks) == ("ok", ())


def test_what_is_stored_is_refused_with_both_lines(tmp_path):
    case = measured(write(tmp_path, "alpha * sum + (K > 16 ? 0 : next_a)"))
    assert case.outcome == "failed"
    assert f"line {READ}: thread (0, 0, 0) of block (0, 0, 0) reads byte 1088 of shared memory" in case.reason
    assert f"; line {COUNTS} stores to C a value that depends on it" in case.reason


def test_of_a_sample_of_blocks_too(tmp_path):
    case = measured(write(tmp_path), blocks=3)
    (remark,) = case.remarks
    assert case.outcome == "ok"
    assert remark.split(" (")[0] == REMARK.split(" (")[0]


def test_counters_are_those_of_a_kernel_that_does_not_read_in_vain(tmp_path):
    case, other = (measured(write(tmp_path), f"40x30x{k}").counters for k in (12, 16))
    assert {name: counter.value for name, counter in case.items() if "shared" in name} == {
        name: counter.value for name, counter in other.items() if "shared" in name
    }


def test_a_kernel_that_also_reads_c_has_both_remarks(tmp_path):
    path = write(tmp_path, "alpha * sum + beta * C[row * N + col]", "false")
    case = measured(path)
    assert case.outcome == "ok", case.reason
    assert case.remarks == ("Reads C though beta is 0, which BLAS forbids; measured with ones there", REMARK)


def test_a_register_that_nothing_was_written_to_is_refused_where_it_counts(tmp_path):
    path = write(tmp_path)
    text = path.read_text().replace("    int stage = 0;", "    int stage = 0;\n    real noise; NOISE")
    asm = 'asm("{ .reg .f32 none; mov.f32 %0, none; }" : "=f"(noise));'
    path.write_text(text.replace("NOISE", asm))
    assert measured(path).outcome == "ok"
    path.write_text(text.replace("NOISE", asm).replace("= alpha * sum", "= alpha * sum + 0 * noise"))
    case = measured(path)
    assert case.outcome == "failed"
    assert "stores to C a value that depends on a register to which nothing had been written" in case.reason


def test_what_counts_a_gpu_run_says_the_same(tmp_path):
    (kernel,) = load_kernels(write(tmp_path)).kernels
    problem, device = problem_for(kernel, 40, 30, 12), load_card("h200")
    case = Case.of(kernel, problem)
    found = counted(replace(unmeasured(case, kernel, "ok", None, "-"), remarks=("warm",)), case, device)
    assert found.remarks == ("warm", REMARK)


SIZES = {"gemm": (36, 68, 20), "transpose": (36, 68), "reduce": (1500,), "softmax": (2, 260)}
#: Of kernels that are for other shapes only.
OWN_SIZES = {"few_rows": (3, 132, 100), "realigned": (36, 67, 21), "e4m3": (36, 72, 32)}
#: Of halves, with rows of whole 16-byte words.
HALVES = {"gemm": (36, 136, 104), "attention": (1, 1, 160, 64)}


#: What tells kernels apart that follow values: how they move them.
WAYS = (
    "wgmma",
    "mma",
    "cp.async",
    "bulk",
    "tensor",
    "cluster",
    "atomic",
    "__shfl",
    "float4",
    "__half",
    "bf16",
)


def one_of_each_kind():
    """Of the kernels that move values in the same ways the last of each operation."""
    kernels = [kernel for kernel in shipped_kernels() if not kernel.choices and not kernel.shape_of]
    texts = ((kernel, kernel.source + "".join(kernel.headers.values())) for kernel in kernels)
    return {(kernel.operation, *(way in text for way in WAYS)): kernel for kernel, text in texts}.values()


@pytest.mark.parametrize("kernel", one_of_each_kind(), ids=lambda kernel: f"{kernel.operation}-{kernel.id}")
def test_a_shipped_kernel_does_and_counts_the_same_when_values_are_followed(monkeypatch, kernel):
    backend, compiler = executor(linked=kernel.operation == "softmax")
    sizes = HALVES if "bf16" in kernel.dtypes else SIZES
    size = OWN_SIZES.get(kernel.id) or sizes[kernel.operation]
    problem = problem_for(kernel, *size, dtype=kernel.dtypes[0])
    shape = configure(kernel, problem, kernel.block, {}, backend.device)
    compiled = compiler(shape)
    plain = backend.count(shape, compiled)

    def following(self, ptx, entry, **_):
        return load_program(ptx, entry, observer=Definedness())

    monkeypatch.setattr(DecodedKernels, "program", following)
    followed = backend.count(shape, compiled)
    assert followed.remarks == plain.remarks
    assert (followed.counters, followed.lines) == (plain.counters, plain.lines)
    for name, buffer in plain.buffers.items():
        assert followed.buffers[name].array().tobytes() == buffer.array().tobytes(), name


@pytest.mark.parametrize("threads", [48, 64])
@pytest.mark.parametrize("counts", [False, True])
def test_reading_lanes_that_do_not_exist_is_a_remark_unless_it_counts(threads, counts):
    source = f"""extern "C" __global__ void k(const int *x, int *y) {{
    int sum = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (threadIdx.x == 0 || {"threadIdx.x == 32" if counts else "false"})
        y[threadIdx.x / 32] = sum;
}}"""
    x = np.arange(threads, dtype=np.int32)
    case = gpuprof.profile(
        gpuprof.Source(source, "k"),
        args={"x": x, "y": np.zeros(2, np.int32)},
        expect={"y": np.array([x[:32].sum(), x[32:].sum() if counts else 0], np.int32)},
        grid=1,
        block=threads,
        device="sim:h200",
    ).case()
    if threads == 64:
        assert (case.outcome, case.remarks) == ("ok", ()), case.reason
    elif counts:
        assert case.outcome == "failed"
        assert "stores to y a value that depends on a lane that took no part when line 4 read" in case.reason
    else:
        assert case.outcome == "ok", case.reason
        assert case.remarks == (
            "Line 4 reads a lane that takes no part in the exchange (thread (32, 0, 0) of block (0, 0, 0));"
            " no result depends on it",
        )
