# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What executing one case left and counted, and whether a sample of its grid tells enough."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuprof.backends.base import Findings
from gpuprof.backends.sim.instructions import NoLink, whole
from gpuprof.backends.sim.launching import Launches
from gpuprof.backends.verification import Proof, sentence_of
from gpuprof.counters import OF_EXECUTOR
from gpuprof.cuda_source.functions import kernel_functions
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.executor import Buffer, GlobalMemory, LaunchResult, Program, Stored, source_name
from gpuprof.kernels.entries import function_name
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.machine_code.instruction_counts import MachineCounts
from gpuprof.machine_code.linking import Link
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.results import Counter, Model, SourceLine, Verification

#: Share of an output by which sums of weights may be off, which are ratios.
_COVERAGE_SLACK = 1e-9
RUN_WHOLE = "Choose a smaller --sizes, or --sim-blocks all, which takes longer."
ESTIMATES = (
    "extrapolated from {} sampled blocks of {}, which differ from the others; --sim-blocks all counts all"
)
NO_TIME = "the executor counts; it measures no time"
#: Of what a kernel prints: lines that are shown, and characters of each.
_SHOWN_LINES, _LONGEST_LINE = 8, 120
#: The architecture whose tensor cores were measured, and what to say on any other.
_MEASURED_TENSOR_CORES = (9, 0)
_SUMS_AS_MEASURED = (
    "Sums of tensor cores are ordered and rounded as sm_90 does it: last bits may differ from this card's"
)
#: Products of matrices whose rounding depends on the architecture.
_ROUNDED_IN_TENSOR_CORES = {
    f"{how}_{kind}" for how in ("tensor", "wgmma") for kind in ("f16", "bf16", "tf32", "e4m3")
}
_NO_ACCESS = "there was no such access"
_LEAST = (
    "a card counts accesses of printf and malloc, those that atomics on single halves repeat, and one by one"
    " those of lanes that part at a call through a pointer"
)
#: Of counters that grow with such accesses.
_UNITS_OF_ACCESSES = {"requests", "sectors", "wavefronts", "passes", "%"}
_ELSEWHERE = "the kernel stands in an included file, and lines are counted of the kernel file only"


@dataclass(frozen=True, slots=True)
class ExecutedCase:
    """What executing one case left and counted.

    Args:
        result: Of all launches, as one.
        caveat: Why the counts are estimates; None where they are not.
        lines: Counts by line of the kernel file; None where its functions stand in files that it includes.
        unread: What arrays held that it must not read, as for `device_memory`.
        model: Models its time, or tells why not.
    """

    launches: Launches
    result: LaunchResult
    memory: GlobalMemory
    buffers: Mapping[str, Buffer]
    counters: Mapping[str, Counter]
    caveat: str | None
    lines: tuple[SourceLine, ...] | None
    remarks: tuple[str, ...]
    unread: float | None
    model: Callable[[], tuple[Model | None, str | None]] = lambda: (None, "it was not counted")

    @property
    def lines_reason(self) -> str | None:
        return _ELSEWHERE if self.lines is None else None

    @property
    def expected_instructions(self) -> float:
        """What the whole grid would execute, summed over lanes, as far as a sample tells."""
        return self.result.lane_instructions * self.result.total_blocks / self.result.sampled_blocks


class SampleFallsShort(CaseSkipped):
    """What a sample's blocks stored is not what its part of the outputs has."""

    def __init__(self, sentence: str, expected_instructions: float) -> None:
        super().__init__(sentence, fix=RUN_WHOLE)
        self.expected_instructions = expected_instructions


class BlocksBuildOnEachOther(CaseSkipped):
    """Single blocks of a grid tell nothing: what they do depends on others that do not run."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, fix=RUN_WHOLE)


def findings_of(proof: Proof | None, executed: ExecutedCase) -> Findings:
    """What a case is told to be, right or wrong, with what it counted; no proof where others verify it."""
    wrong = proof is not None and not proof.verification.passed
    model, why = (None, "its result is wrong") if wrong else executed.model()
    return Findings(
        "incorrect" if wrong else "ok",
        reason=sentence_of(proof.verification, later=False) if proof and wrong else None,
        remarks=(*(proof.remarks if proof else ()), *executed.remarks),
        verification=proof.verification if proof else None,
        timing_reason=NO_TIME,
        event_floor_reason=NO_TIME,
        clocks_reason=NO_TIME,
        counters=executed.counters,
        counters_reason=executed.caveat,
        lines=executed.lines,
        lines_reason=executed.lines_reason,
        model=model,
        model_reason=why,
    )


def check_verdict(verification: Verification, executed: ExecutedCase) -> None:
    """Withhold the verdict of a sample where blocks that did not run may have had a part in the result."""
    atomics = executed.counters["global_atomic_requests"].value
    if verification.checked_elements and not atomics:
        return
    how = "depend on each other through atomic operations" if atomics else "that ran wrote no result"
    raise BlocksBuildOnEachOther(
        f"Its blocks {how}, so that the executor would have to run the whole grid to verify it."
    )


def mistaken_shares(
    problem: Problem, buffers: Mapping[str, Buffer], stored: Mapping[str, Stored]
) -> Iterator[tuple[ArraySpec, float]]:
    """The outputs of which the grid would write another share than all, as its sample tells, in bytes.

    Then blocks that ran stand for others that do something else, as where tiles are numbered in another order
    than the grid's. A kernel may store an element several times: each block is taken to do so equally often.
    """
    for spec in problem.outputs:
        buffer, seen = buffers[spec.name], stored.get(spec.name, Stored())
        if buffer.combined or not seen.by_sample:
            continue
        covered = seen.by_grid * buffer.written_bytes / seen.by_sample
        if abs(covered - spec.nbytes) > _COVERAGE_SLACK * spec.nbytes:
            yield spec, covered


def check_coverage(problem: Problem, executed: ExecutedCase) -> None:
    """Hold what the grid would write, as its sample tells, against the outputs: nothing may be left out."""
    for spec, covered in mistaken_shares(problem, executed.buffers, executed.result.stored):
        if spec.is_read:
            continue
        item = spec.nbytes // spec.elements
        raise SampleFallsShort(
            f"The sampled blocks stand for {covered / item:,.0f} of the {spec.elements:,} elements of"
            f" {spec.name}: whether the others are written, only the whole grid shows.",
            executed.expected_instructions,
        )


def _unmet_alignments(programs: Iterable[Program]) -> tuple[str, ...]:
    """What to say of shared variables whose alignment the card does not give."""
    remarks = {
        f"Shared memory of a block starts at {program.own.start:#x} on the card, whatever alignment is"
        f" asked for: {source_name(name)} lies at {address:#x}, which is not a multiple of {alignment:,}"
        for program in programs
        for name, (alignment, address) in program.own.unmet_alignments.items()
    }
    return tuple(sorted(remarks))


def atomics_remark(links: Sequence[Link | NoLink], result: LaunchResult) -> tuple[str, ...]:
    """Say that nobody knows which atomics one lane does for its warp; nothing where that is known."""
    unknown = next((one.reason for one in links if isinstance(one, NoLink)), None)
    if unknown is None or not result.counters["global_atomic_sectors"]:
        return ()
    return (
        f"global_atomic_sectors: counted lane by lane, though ptxas may merge those of a warp. {unknown}",
    )


def printed_remark(result: LaunchResult) -> tuple[str, ...]:
    """What to say of a kernel that prints: its first lines."""
    if not result.print_calls:
        return ()
    lines = result.printed.splitlines()
    shown = " | ".join(line[:_LONGEST_LINE] for line in lines[:_SHOWN_LINES])
    more = " | …" if len(lines) > _SHOWN_LINES else ""
    calls = "one call" if result.print_calls == 1 else f"{result.print_calls:,} calls"
    return (f"It prints, by {calls} of printf: {shown}{more}",)


def counters_of(result: LaunchResult, *, exact: bool = True) -> dict[str, Counter]:
    """A launch's counts as the contract keeps them; those of tensor cores where it used any."""
    accesses = [name for name, row in OF_EXECUTOR.items() if result.least and row.unit in _UNITS_OF_ACCESSES]
    hidden = dict.fromkeys((name for name in accesses if OF_EXECUTOR[name].over), _LEAST) | result.hidden
    return {
        name: Counter(
            value=None if name in hidden else result.counters.get(name, None if row.over else 0),
            unit=row.unit,
            source="sim",
            reason=hidden.get(name, _NO_ACCESS if row.over and name not in result.counters else None),
            sampled_blocks=result.sampled_blocks,
            total_blocks=result.total_blocks,
            busiest_sm=result.busiest.get(name),
            is_least=name in accesses and name not in hidden,
            is_estimate=not exact,
        )
        for name, row in OF_EXECUTOR.items()
        if result.counters[name] or row.only_with != "tensor"
    }


def stands_elsewhere(case: ConfiguredCase) -> bool:
    """Whether a function of the case stands in an included file, whose lines are not the kernel file's."""
    wanted = set(map(function_name, case.entries))

    def found_in(text: str) -> set[str]:
        return wanted & {function_name(function.name) for function in kernel_functions(text)}

    return bool(set().union(*map(found_in, case.kernel.headers.values())) - found_in(case.kernel.source))


def lines_of(
    result: LaunchResult, instructions: MachineCounts | NoLink | None = None
) -> tuple[SourceLine, ...]:
    """Counts by source line; a line keeps only the events it has."""
    executed = instructions.lines if isinstance(instructions, MachineCounts) else {}
    found: dict[int, dict[str, float | int]] = {
        line: {name: counters[name] for name in OF_EXECUTOR if counters[name]}
        for line, counters in result.lines.items()
        if line
    }
    for line, times in executed.items():
        if times.low:
            found.setdefault(line, {})["warp_instructions"] = whole(times.low)
    return tuple(SourceLine(line, counters) for line, counters in sorted(found.items()))


def remarks_of(launched: Sequence[Program], device: Device) -> tuple[str, ...]:
    """What to say of programs, whatever they do."""
    remarks = _unmet_alignments(launched)
    families = {site.family for program in launched for site in program.sites}
    if device.capability != _MEASURED_TENSOR_CORES and families & _ROUNDED_IN_TENSOR_CORES:
        return (*remarks, _SUMS_AS_MEASURED)
    return remarks
