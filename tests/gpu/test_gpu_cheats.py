# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that only look right or fast, on a real GPU: none gets a speed that it did not earn."""

import ctypes

import pytest
from cheat_corpus import FOLDER, cheats, ladder

import gpuprof
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.problem import Problem
from gpuprof.records import replace

CHEATS = {cheat.kernel.id: cheat for cheat in cheats()}
#: Large enough that all blocks do not run at once, and more elements than are looked at around a launch.
SIZE = (700, 900)
#: Those whose own memory, or whose idea of a small problem, is made for fewer elements.
SMALL = {"kept_on_the_heap": (70, 90)}


def measure(backend, kernel, size=SIZE):
    case = Case.of(kernel, Problem.of(ladder().operation, size), kernel.block)
    measurement, _ = measure_case(case, backend, Compiler(backend.device.arch))
    return measurement


@pytest.fixture(scope="module")
def honest(backend):
    """The same operation, computed."""
    kernel = CHEATS["does_nothing"].kernel
    return replace(kernel, source=kernel.source.replace("if (inside && row < 0)", "if (inside)"))


#: What looks for memory that it was not given may end the context, and what holds something that its own time
#: would tell is held against itself.
APART = {"knows_the_seed", "reads_the_reference", "kept_beside", "kept_in_shared", "held_in_l2"}


@pytest.mark.parametrize("name", [name for name in CHEATS if name not in APART])
def test_cheat_gets_its_verdict(backend, honest, name):
    verdict = CHEATS[name].verdicts["gpu"]
    measurement = measure(backend, CHEATS[name].kernel, SMALL.get(name, SIZE))
    if verdict.outcome == "honest":
        assert measurement.outcome == "ok", measurement.reason
        assert measurement.timing.warm is None
        assert "Launched again without its memory being restored" in measurement.remarks[0]
        return
    assert measurement.outcome != "ok"
    assert measurement.timing is None
    if verdict.outcome != "refused":
        assert measurement.outcome == verdict.outcome, measurement.reason
        assert verdict.words in measurement.reason
    # And the next case is none the worse for it.
    assert measure(backend, honest).outcome == "ok"


def test_results_of_one_seed_are_wrong_with_another(backend):
    """The backend's seed is not 0, and so its inputs are not those that the kernel knows."""
    kernel = CHEATS["knows_the_seed"].kernel
    problem = Problem.of(ladder().operation, SIZE)
    assert measure(backend, kernel).outcome == "incorrect"
    first = float(problem.inputs(7)["x"][0])
    knowing = replace(kernel, source=kernel.source.replace("0.4485591650009155", repr(first)))
    assert knowing.source != kernel.source
    measurement = measure(backend, knowing)
    assert measurement.outcome == "incorrect"
    assert measurement.reason.startswith("Right in its first launch, wrong in a later one: with other inputs")


def test_the_reference_cannot_be_found_in_memory(backend, honest):
    """What a kernel would see of it: nowhere its value as a double, whatever the element."""
    problem = Problem.of(ladder().operation, SIZE)
    arrays = backend._arrays.of(problem)
    (expected,) = problem.reference(problem.inputs(7)).values()
    for buffer in arrays.expected.buffers:
        held = buffer.download("f8", count=problem.outputs[0].elements)
        assert not (held == expected.values).any()
        assert not (held == expected.magnitude).any()
    assert measure(backend, honest).outcome == "ok"


@pytest.mark.parametrize("name", ["reads_the_reference", "kept_beside"])
def test_a_kernel_that_goes_beyond_its_arrays_gets_no_speed(gpu_count, name):
    """In a process of its own: what lies beside its arrays may be nobody's, which ends the context."""
    case = gpuprof.profile(FOLDER, kernels=name, sizes=SIZE, device=0).case()
    print(case.outcome, case.reason)
    assert case.outcome != "ok"


@pytest.mark.parametrize("name", ["kept_in_shared", "held_in_l2"])
def test_what_shared_memory_and_the_l2_cache_hold_gains_nothing(backend, name):
    """Its cold times are those of the same kernel that keeps nothing; warm ones, if any, too."""
    kernel = CHEATS[name].kernel
    without = replace(kernel, source=kernel.source.replace("KEEPS 1", "KEEPS 0"))
    assert without.source != kernel.source
    size = (1500, 2000) if name == "held_in_l2" else SIZE
    keeps, plain = (measure(backend, one, size) for one in (kernel, without))
    for measurement in (keeps, plain):
        print(measurement.outcome, measurement.reason, measurement.remarks, measurement.timing)
        assert measurement.outcome == "ok", measurement.reason
    assert keeps.timing.cold.median_us > 0.8 * plain.timing.cold.median_us
    if name == "kept_in_shared" and keeps.timing.warm is not None:
        assert keeps.timing.warm.median_us > 0.5 * plain.timing.warm.median_us


def test_scribbling_reaches_the_shared_memory_of_every_sm(backend):
    """One block for each SM: what one leaves there is gone, wherever the next launch looks."""
    from compile_support import compile_source

    from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, LoadedModule
    from gpuprof.backends.gpu.launch_checks import KeptSharedMemory
    from gpuprof.toolchain.nvrtc import compiler_options

    source = """
    extern "C" __global__ void marks(unsigned *found, int words, int leaves)
    {
        extern __shared__ volatile unsigned whole[];
        const long long start = clock64();
        unsigned seen = 0;
        for (int i = threadIdx.x; i < words; i += blockDim.x) {
            seen += whole[i] == 0x600df00du + i;
            if (leaves)
                whole[i] = 0x600df00du + i;
        }
        atomicAdd(found, seen);
        while (clock64() - start < 100000)
            ;
    }"""
    device, stream = backend.device, backend._context.stream
    options = compiler_options(backend.device.arch, [])
    function = LoadedModule(compile_source(source, "x.cu", "marks", options).cubin, "marks").function("marks")
    nbytes = device.shared_bytes_per_block_optin
    function.reserve_shared(nbytes, 0, nbytes)
    found = DeviceBuffer(16)

    def seen(leaves):
        found.fill(0)
        arguments = Arguments(
            [ctypes.c_void_p(found.address), ctypes.c_int(nbytes // 4), ctypes.c_int(leaves)]
        )
        function.launch((device.sm_count, 1, 1), (1024, 1, 1), nbytes, stream, arguments)
        backend._context.synchronize()
        return int(found.download("u4", count=1)[0])

    seen(1)
    kept = seen(1)
    print("of shared memory's words outlast a launch:", kept / (device.sm_count * (nbytes // 4)))
    KeptSharedMemory(backend._arrays.code("f32"), device, stream).queue_scribble()
    assert seen(0) == 0


def test_a_kernel_with_memory_of_its_own_is_right_and_timed_warm(backend):
    """A counter that goes on, as some reductions have: nothing is gained by finding it as it was left."""
    kernel = CHEATS["works_once"].kernel
    counting = replace(
        kernel,
        source=kernel.source.replace(
            "if (launches_before() == 0 && inside)", "launches_before();\n    if (inside)"
        ),
    )
    measurement = measure(backend, counting)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.timing.warm is not None
    assert measurement.remarks == ()
