# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case's measurement from what a backend finds, and what executed blocks wrote, against references."""

import numpy as np
import pytest
from problem_support import Gemm, find_kernel
from unit_support import DEVICE

from gpuprof.backends.base import Findings
from gpuprof.backends.sim.sim_references import References
from gpuprof.errors import CaseFailure, CaseSkipped, CompileError
from gpuprof.executor import GlobalMemory
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.problems.formulas import ExpressionError
from gpuprof.records import replace
from gpuprof.results import Timing, TimingPair
from gpuprof.statistics import summarise
from gpuprof.toolchain.nvrtc import CompiledKernel

COMPILED = CompiledKernel("k", "sm_80", b"", "", 40, 1024, 8, "the log", ("-O3",))
PROBLEM = Gemm(64, 64, 64)
CASE = Case.of(find_kernel("gemm", "naive"), PROBLEM)
REFERENCE = Case("cublas", PROBLEM, (1, 1, 1))


class Found:
    """A backend that finds what it is told to, or fails so."""

    device = DEVICE

    def __init__(self, outcome):
        self.outcome = outcome

    def run(self, *_):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    run_reference = run


def compiled(case):
    return dict.fromkeys(case.entries, COMPILED)


def timing(median_us: float) -> Timing:
    return summarise([median_us] * 7)


def test_findings_become_the_measurement_with_its_resources_and_rates():
    found = Findings("ok", timing=TimingPair(timing(10.0), None), remarks=("one",))
    measurement, lost = measure_case(CASE, Found(found), compiled)
    assert not lost
    assert (measurement.outcome, measurement.remarks) == ("ok", ("one",))
    assert (measurement.block, measurement.grid) == ((32, 32, 1), (2, 2, 1))
    resources = measurement.resources
    assert (resources.registers_per_thread, resources.static_shared_bytes) == (40, 1024)
    assert (resources.dynamic_shared_bytes, resources.spill_bytes) == (0, 8)
    assert measurement.occupancy is not None
    assert (measurement.compile_options, measurement.log) == (("-O3",), "the log")
    assert measurement.launches == ()
    assert measurement.throughput.gflops == pytest.approx(2 * 64**3 / 10e-6 / 1e9)
    assert measurement.throughput_reason is None


def test_case_without_a_time_has_no_rate():
    for found in (Findings("ok"), Findings("ok", timing=TimingPair(None, timing(9.0)))):
        measurement, _ = measure_case(CASE, Found(found), compiled)
        assert measurement.throughput is None
        assert measurement.throughput_reason == "no time was measured"


@pytest.mark.parametrize(
    ("error", "outcome", "lost", "over_limit"),
    [
        (CaseFailure("it broke"), "failed", False, False),
        (CaseFailure("it broke", fatal=True), "failed", True, False),
        (CaseFailure("it broke", over_limit=True), "failed", False, True),
        (CaseSkipped("it broke"), "skipped", False, False),
        (ExpressionError("it broke"), "failed", False, False),
    ],
)
def test_what_goes_wrong_is_a_row_with_its_resources(error, outcome, lost, over_limit):
    measurement, is_lost = measure_case(CASE, Found(error), compiled)
    assert (measurement.outcome, is_lost, measurement.over_limit) == (outcome, lost, over_limit)
    assert "it broke" in measurement.reason
    assert measurement.resources.registers_per_thread == 40


def test_source_that_does_not_compile_is_a_row_with_the_compilers_words():
    def fail(case):
        raise CompileError("no", log="line 3: why")

    measurement, lost = measure_case(CASE, Found(Findings("ok")), fail)
    assert (measurement.outcome, lost) == ("failed", False)
    assert (measurement.log, measurement.resources) == ("line 3: why", None)
    assert measurement.grid == (2, 2, 1)


@pytest.mark.parametrize(
    ("error", "outcome", "lost"),
    [
        (CaseSkipped("no"), "skipped", False),
        (CaseFailure("no"), "failed", False),
        (CaseFailure("no", fatal=True), "failed", True),
    ],
)
def test_reference_that_fails_is_a_row(error, outcome, lost):
    measurement, is_lost = measure_case(REFERENCE, Found(error), compiled)
    assert (measurement.outcome, measurement.reason, is_lost) == (outcome, "no", lost)
    assert measurement.is_reference


def test_reference_is_rated_like_a_kernel():
    measurement, lost = measure_case(
        REFERENCE, Found(Findings("ok", timing=TimingPair(timing(5.0), None))), compiled
    )
    assert not lost
    assert measurement.throughput.gflops == pytest.approx(2 * 64**3 / 5e-6 / 1e9)
    assert (measurement.resources, measurement.grid) == (None, None)


def test_block_that_fits_on_no_sm_has_no_occupancy_and_says_why():
    large = replace(COMPILED, registers_per_thread=255)
    measurement, _ = measure_case(
        CASE, Found(Findings("ok")), lambda case: dict.fromkeys(case.entries, large)
    )
    assert measurement.occupancy is None
    assert "registers" in measurement.occupancy_reason


SMALL = Gemm(6, 7, 5)
INPUTS = SMALL.inputs(seed=1)
RIGHT = SMALL.reference(INPUTS)["C"].values.astype(np.float32)


@pytest.fixture
def asked(monkeypatch):
    """The names of the references that a problem was asked for, in order."""
    names = []

    def recorded(name):
        original = getattr(type(SMALL), name)

        def call(self, *arguments):
            names.append(name)
            return original(self, *arguments)

        return call

    for name in ("reference", "reference_at"):
        monkeypatch.setattr(type(SMALL), name, recorded(name))
    return names


def left(values, written=slice(None), start=None):
    """Device memory after a launch that wrote these elements."""
    buffer = GlobalMemory().allocate(np.zeros(42, np.float32) if start is None else start, "C")
    indices = np.arange(42)[written]
    buffer.store(indices, values[indices].view(np.uint32), 4)
    return {"C": buffer}


def test_references_of_all_elements_are_computed_once_and_serve_samples_too(asked):
    references = References(SMALL, INPUTS)
    assert asked == []
    for _ in range(2):
        found = references.verify(left(RIGHT), whole=True)
        assert (found.checked_elements, found.wrong_elements) == (42, 0)
    found = references.verify(left(RIGHT, slice(3, 9)), whole=False)
    assert (found.checked_elements, found.wrong_elements) == (6, 0)
    assert asked == ["reference"]


def test_references_of_a_sample_are_those_of_its_elements(asked):
    references = References(SMALL, INPUTS)
    found = references.verify(left(RIGHT, slice(3, 9)), whole=False)
    assert (found.checked_elements, found.wrong_elements, found.detail) == (6, 0, "")
    wrong = RIGHT.copy()
    wrong[4] += 1
    found = references.verify(left(wrong, slice(3, 9)), whole=False)
    assert (found.checked_elements, found.wrong_elements) == (6, 1)
    assert found.detail
    assert asked == ["reference_at"]
    references.verify(left(RIGHT, slice(4, 9)), whole=False)
    assert asked == ["reference_at"] * 2


def test_what_nobody_wrote_is_told_and_wrong_though_it_is_right_by_chance():
    found = References(SMALL, INPUTS).verify(left(RIGHT, slice(0, 0)), whole=False)
    assert (found.checked_elements, found.max_rel_error) == (0, None)
    assert found.detail == "the sampled blocks wrote nothing to C"
    found = References(SMALL, INPUTS).verify(left(RIGHT, slice(0, 40), start=RIGHT), whole=True)
    assert (found.checked_elements, found.wrong_elements) == (42, 2)
    assert "never written" in found.detail


def test_output_that_a_kernel_adds_to_may_stay_as_it_was():
    problem = Gemm(6, 7, 5, beta=1.0)
    inputs = problem.inputs(seed=1)
    right = problem.reference(inputs)["C"].values.astype(np.float32)
    found = References(problem, inputs).verify(left(right, slice(0, 40), start=right), whole=True)
    assert (found.checked_elements, found.wrong_elements) == (42, 0)
