# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every shipped kernel on a real GPU, and kernels that read what they must not."""

import itertools

import pytest
from problem_support import Gemm, Transpose, find_kernel, ladder, problem_for, shipped_kernels

from gpuprof.backends.gpu.context import LoadedModule
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.devices.occupancy import theoretical_occupancy
from gpuprof.errors import InputError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import check_block, configure
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.measure.request import Selection, make_request
from gpuprof.records import replace

#: By operation; for one that is not here, some that fit no tile.
SIZES = {
    "gemm": [
        *((1, 1, 1), (1, 1, 37), (1, 129, 5), (131, 1, 7), (2, 3, 4), (31, 33, 17), (32, 32, 32)),
        *((64, 96, 80), (127, 65, 129), (128, 128, 128), (130, 258, 67), (257, 129, 300)),
        # Ragged, but with rows of whole 16-byte words, as bulk copies need them; blocks share the last.
        *((1, 4, 4), (193, 260, 20), (97, 516, 300)),
        # For kernels of a tall C, and of one of some 2000 elements an SM.
        *((300, 4, 20), (389, 60, 260), (520, 530, 70), (531, 520, 36)),
        # Of a wide one of few rows.
        *((64, 1664, 128), (130, 1608, 272)),
    ],
    "transpose": [(1, 1), (1, 97), (97, 1), (3, 5), (31, 33), (64, 64), (100, 36), (127, 1023), (512, 260)],
    "reduce": [(1,), (2,), (31,), (33,), (256,), (1023,), (1 << 16,), (100_003,), (5_000_001,), (1 << 24,)],
    "attention": [(1, 1, 1, 64), (2, 3, 70, 64), (1, 2, 333, 128), (3, 1, 128, 128), (1, 2, 1100, 64)],
    "softmax": [
        *((1, 1), (1, 5), (200, 1), (3, 33), (7, 256), (65, 1000), (128, 1024), (3, 1026)),
        *((5, 4100), (1000, 8192), (3, 8193), (2, 30_001), (1, 58_113)),
    ],
}
RAGGED = [1, 3, 33, 130]
#: Scalars other than the defaults, for kernels that take them.
SCALARS = {"gemm": {"alpha": -1.5, "beta": 0.75}, "attention": {"causal": 1.0}}
#: For kernels of matrices, and for those that take blocks of one row only.
BLOCKS = [None, (8, 32, 1), (32, 8, 1), (16, 16, 1), (7, 5, 1), (1, 1, 1), (64, 2, 1), (32, 32, 1)]
ROW_BLOCKS = [None, (32, 1, 1), (100, 1, 1), (1024, 1, 1)]


def problems_of(kernel):
    dimensions = shipped_operation(kernel.operation).dimensions
    sizes = SIZES.get(kernel.operation) or [(size,) * len(dimensions) for size in RAGGED]
    scalings = [{}]
    scalars = SCALARS.get(kernel.operation)
    if scalars and (kernel.choices or scalars.keys() <= {*kernel.arguments}):
        scalings.append(scalars)
    dtypes = kernel.dtypes or [make_request(shipped_ladder(kernel.operation), [Selection(kernel)]).dtype]
    for size, dtype, scalars in itertools.product(sizes, dtypes, scalings):
        yield problem_for(kernel, *size, dtype=dtype, **scalars)


def blocks_of(kernel):
    if kernel.choices:
        yield kernel.block
        return
    for block in BLOCKS if kernel.operation in ("gemm", "transpose") else ROW_BLOCKS:
        chosen = block or kernel.block
        try:
            check_block(kernel, chosen)
        except InputError:
            continue
        yield chosen


def kernel_id(kernel):
    """Kernels of two ladders may have one id."""
    return f"{kernel.operation}-{kernel.id}"


@pytest.fixture(scope="module")
def compiler(backend):
    return Compiler(backend.device.arch)


@pytest.mark.parametrize("kernel", shipped_kernels(), ids=kernel_id)
def test_correct_at_every_size_and_block(backend, compiler, kernel):
    ran = 0
    for problem in problems_of(kernel):
        for block in dict.fromkeys(blocks_of(kernel)):
            case = Case.of(kernel, problem, block, alternatives=ladder(kernel.operation))
            measurement, lost = measure_case(case, backend, compiler)
            assert not lost
            if measurement.outcome == "skipped":
                chosen = ladder(kernel.operation) if kernel.choices else [kernel]
                declared = [
                    requirement.because.replace("{id}", one.id)
                    for one in chosen
                    for requirement in one.requirements
                ]
                assert any(measurement.reason.startswith(because) for because in declared), measurement.reason
                continue
            assert measurement.outcome == "ok", (problem, block, measurement.reason)
            assert measurement.verification.checked_elements == problem.outputs[0].elements
            assert measurement.timing.cold.median_us > 0
            ran += 1
    assert ran >= 3


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in shipped_kernels() if not kernel.choices], ids=kernel_id
)
def test_occupancy_equals_the_drivers(backend, compiler, kernel):
    problem = problem_for(kernel, *(128 for _ in shipped_operation(kernel.operation).dimensions))
    for block in dict.fromkeys(blocks_of(kernel)):
        shape = configure_or_none(kernel, problem, block, backend.device)
        if shape is None:
            continue
        functions = compiler(shape)
        for one in shape.launches:
            compiled = functions[one.entry]
            module = LoadedModule(compiled.cubin, kernel.id)
            function = module.function(compiled.entry)
            threads = one.block[0] * one.block[1] * one.block[2]
            function.reserve_shared(one.dynamic_shared_bytes, compiled.static_shared_bytes, 0)
            shared = one.dynamic_shared_bytes
            asked = driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(function._handle, threads, shared)
            expected = call("asking for the occupancy", asked)
            module.unload()
            occupancy = theoretical_occupancy(
                backend.device,
                threads_per_block=threads,
                registers_per_thread=compiled.registers_per_thread,
                shared_bytes_per_block=compiled.static_shared_bytes + one.dynamic_shared_bytes,
            )
            assert occupancy.blocks_per_sm == expected, (one.entry, one.block)


def configure_or_none(kernel, problem, block, device):
    from gpuprof.errors import CaseSkipped

    try:
        return configure(kernel, problem, block, {}, device)
    except CaseSkipped:
        return None


def test_large_case_is_not_compared_before_its_reference_is_ready(backend, compiler):
    # Its arrays take milliseconds to fill: work that is not ordered behind the fills would show.
    kernel = next(kernel for kernel in ladder("transpose") if kernel.id == "copy_row")
    case = Case.of(kernel, Transpose(16384, 16384, result="copy"), (32, 8, 1))
    for _ in range(3):
        measurement, _ = measure_case(case, backend, compiler)
        assert measurement.outcome == "ok", measurement.reason
        backend._arrays.forget()


@pytest.fixture(scope="module")
def naive():
    """The ladder's first kernel, whose one store is replaced."""
    return find_kernel("gemm", "naive")


def measure(backend, kernel, store, *, poison_inout=True, beta=0.0, size=(70, 44, 33)):
    source = kernel.source.replace("*c = beta == 0 ? alpha * sum : alpha * sum + beta * *c;", store)
    assert source != kernel.source
    changed = replace(kernel, source=source, poison_inout=poison_inout)
    case = Case.of(changed, Gemm(*size, alpha=1.5, beta=beta), (16, 16, 1))
    measurement, lost = measure_case(case, backend, Compiler(backend.device.arch))
    assert not lost
    return measurement


STORE = "*c"


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (
            f"if (col != 5) {STORE} = alpha * sum;",
            "70 of 3080 elements (2.27 %) are wrong: column 5; they were never",
        ),
        (f"{STORE} = 0;", "All 3080 elements are wrong: they are 0; first: C[0, 0] is 0"),
        (f"{STORE} = alpha * sum + 1;", "All 3080 elements are wrong: they are 1 too large"),
    ],
)
def test_a_wrong_kernels_row_says_what_is_wrong(backend, naive, store, words):
    measurement = measure(backend, naive, store)
    assert measurement.outcome == "incorrect"
    assert words in measurement.reason


READS = f"{STORE} = alpha * sum + beta * {STORE};"


def test_reading_c_where_beta_is_0_is_told(backend, naive):
    measurement = measure(backend, naive, READS)
    assert measurement.reason.startswith("Reads C though beta is 0, which BLAS forbids: ")
    assert measurement.timing is None
    assert measure(backend, naive, READS, beta=0.5).outcome == "ok"


def test_a_kernel_that_reads_c_is_timed_with_a_remark(backend, naive):
    measurement = measure(backend, naive, READS, poison_inout=False)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.remarks == ("Reads C though beta is 0, which BLAS forbids; measured with ones there",)
    assert measurement.timing.cold.median_us > 0
    right = measure(backend, naive, f"{STORE} = alpha * sum;", poison_inout=False)
    assert (right.outcome, right.remarks) == ("ok", ())


@pytest.mark.parametrize("poison_inout", [True, False])
def test_adding_to_c_is_wrong_whatever_it_holds(backend, naive, poison_inout):
    measurement = measure(backend, naive, f"{STORE} += alpha * sum;", poison_inout=poison_inout)
    assert measurement.reason == "Adds to what was in C though beta is 0, which BLAS forbids."
