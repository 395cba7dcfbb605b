# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that only look right or fast, on a real GPU: none gets a speed that it did not earn."""

import dataclasses

import pytest
from cheat_corpus import FOLDER, cheats, ladder

import gpuprof
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.problem import Problem

CHEATS = {cheat.kernel.id: cheat for cheat in cheats()}
#: Large enough that all blocks do not run at once, and more elements than are looked at around a launch.
SIZE = (700, 900)
#: Those whose own memory, or whose idea of a small problem, is made for fewer elements.
SMALL = {"kept_on_the_heap": (70, 90)}


def measure(backend, kernel, size=SIZE):
    case = Case.of(kernel, Problem.of(ladder().operation, size), kernel.launch.block)
    measurement, _ = measure_case(case, backend, Compiler(backend.compile_arch))
    return measurement


@pytest.fixture(scope="module")
def honest(backend):
    """The same operation, computed."""
    kernel = CHEATS["does_nothing"].kernel
    return dataclasses.replace(kernel, source=kernel.source.replace("if (inside && row < 0)", "if (inside)"))


@pytest.mark.parametrize("name", [name for name in CHEATS if name != "knows_the_seed"])
def test_cheat_gets_its_verdict(backend, honest, name):
    verdict = CHEATS[name].verdicts["gpu"]
    measurement = measure(backend, CHEATS[name].kernel, SMALL.get(name, SIZE))
    if verdict.outcome == "honest":
        assert measurement.outcome == "ok", measurement.reason
        assert measurement.timing.warm is None
        assert "Launched again with its own memory as it left it" in measurement.remarks[0]
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
    knowing = dataclasses.replace(kernel, source=kernel.source.replace("0.4485591650009155", repr(first)))
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


def test_a_kernel_that_searches_for_the_reference_gets_no_speed(gpu_count):
    """In a process of its own: what lies beside its arrays may be nobody's, which ends the context."""
    case = gpuprof.profile(FOLDER, kernels="reads_the_reference", sizes=SIZE, device=0).case()
    assert case.outcome != "ok"


def test_a_kernel_with_memory_of_its_own_is_right_and_timed_warm(backend):
    """A counter that goes on, as some reductions have: nothing is gained by finding it as it was left."""
    kernel = CHEATS["works_once"].kernel
    counting = dataclasses.replace(
        kernel,
        source=kernel.source.replace(
            "if (launches_before() == 0 && inside)", "launches_before();\n    if (inside)"
        ),
    )
    measurement = measure(backend, counting)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.timing.warm is not None
    assert measurement.remarks == ()
