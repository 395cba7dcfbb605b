# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs cases on the SIMT executor: the whole grid when small, a sample of its blocks otherwise."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from threading import Lock, Thread

from gpuprof import timeline
from gpuprof.backends.base import Backend, ExplainedFailure, Findings, Functions
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.executed import (
    RUN_WHOLE,
    BlocksBuildOnEachOther,
    ExecutedCase,
    SampleFallsShort,
    check_coverage,
    check_verdict,
    executed_case,
    findings_of,
)
from gpuprof.backends.sim.instructions import DecodedKernels
from gpuprof.backends.sim.launching import Samples, check_room, device_memory, launches_of, unchecked
from gpuprof.backends.sim.located import FOLLOWED, failure_of, following, told
from gpuprof.backends.sim.reordered import (
    check_other_orders,
    outlasts_a_launch,
    verify_again,
    wrong_later,
)
from gpuprof.backends.sim.sampled import (
    DEAR,
    DEPENDS,
    FOLLOWS,
    WAIT,
    NotConclusive,
    are_dear,
    at_smaller_size,
    cards_like,
    cases_to_verify,
    never_written,
    of_two_kinds,
    sample_of,
    stands_for_grid,
    verification_of_missing,
)
from gpuprof.backends.sim.sim_references import References
from gpuprof.backends.sim.watching import watching
from gpuprof.backends.verification import Proof, prove
from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped
from gpuprof.executor import (
    FaultKind,
    Kept,
    KernelFault,
    Sample,
    SliceRun,
    TooMuchWork,
    ValuelessElements,
    ValueNeeded,
    combined,
)
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.smaller_sizes import expected_instructions
from gpuprof.machine import available_memory_bytes
from gpuprof.options import USUAL, RunOptions
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import BackendName, Verification

#: A grid whose sample leaves doubts is run whole up to so many instructions of single lanes: half a minute.
_AFFORDABLE_INSTRUCTIONS = 2e10
#: And one whose blocks depend on each other, or that only its counts are wanted of: seconds.
_QUICK_INSTRUCTIONS = 2e9
#: Steps of single lanes that a control slice may take: some thirty seconds.
_MOST_SLICE_STEPS = 2e10
#: And that those of a whole grid may take where a sample may stand for it: some ten seconds.
_QUICK_SLICE_STEPS = 1e9
#: What to say of blocks that seem to race, where those that did not run may have put them in order.
_ORDER = "Its blocks signal each other, and only the whole grid shows whether they do so in order."
#: Cases whose findings are kept: more than a ladder has kernels.
_KEPT_FINDINGS = 128
#: The part of the machine's available memory that problems may take.
_MEMORY_SHARE = 0.7


class SimBackend(Backend):
    """The executor, standing for one card."""

    name: BackendName = "sim"

    def __init__(
        self,
        device: Device,
        options: RunOptions = USUAL,
        *,
        models: bool = True,
        decoded: DecodedKernels | None = None,
    ) -> None:
        self.device = device
        self._options, self._models = options, models
        self._references: References | None = None
        self._making = Lock()
        self.decoded = decoded or DecodedKernels(device)
        self._found: Kept[Findings] = Kept(_KEPT_FINDINGS)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"executed_ptx": self.decoded.arch}

    @property
    def memory_budget_bytes(self) -> int:
        """A part of the memory that this process may still take, for all problems that are run at once."""
        return int(available_memory_bytes() * _MEMORY_SHARE)

    def problem_bytes(self, problem: Problem) -> int:
        """The arrays once as inputs and once as device memory, the write marks, and room to execute."""
        outputs = sum(spec.elements for spec in problem.outputs)
        return 2 * problem.array_bytes + outputs + (256 << 20)

    def expect(self, compiled: Functions) -> None:
        """Let the machine code be disassembled together with what is needed first."""
        for function in compiled.values():
            self.decoded.links.expect(function.cubin)

    def run_reference(self, name: str, problem: Problem) -> Findings:
        raise CaseSkipped(f"The executor counts kernels; a library has none to count: {name} needs a GPU.")

    def run(self, case: ConfiguredCase, compiled: Functions) -> Findings:
        """Execute one case, verify what it wrote, and report its counts.

        What was executed before is not executed again: it would find the same.

        Raises:
            CaseFailure: The kernel broke a rule of CUDA; the message names line, block and thread.
            CaseSkipped: It uses an instruction that the executor does not know, or would have to run whole
                and is too large for that.
        """
        # With the case, its machine code decides all that executing it finds.
        key = case, tuple(function.cubin for function in compiled.values())
        with unchecked(case.kernel, compiled):
            return self._found.of(key, partial(self._execute_first, case, compiled))

    def _execute_first(self, case: ConfiguredCase, compiled: Functions) -> Findings:
        dear = False
        self.begin_inputs(case.problem)
        try:
            samples = self.samples(case)
            sampled = any(samples)
            if sampled and len(case.launches) > 1:
                try:
                    return self._run_in_slices(case, compiled, samples, FOLLOWS)
                except NotConclusive:
                    why = "Its launches depend on each other: the executor would have to run whole grids."
                    raise CaseSkipped(why, fix=RUN_WHOLE) from None
            dear = sampled and self._sums_are_dear(case, compiled, samples)
            for blocks in (samples, [None]) if dear else ():
                with suppress(NotConclusive):
                    return self._run_in_slices(case, compiled, blocks, DEAR)
            return self._run(case, compiled, samples)
        except SampleFallsShort as short:
            if short.expected_instructions <= _AFFORDABLE_INSTRUCTIONS:
                if not dear and self._sums_are_dear(case, compiled, [None]):
                    with suppress(NotConclusive):
                        return self._run_in_slices(case, compiled, [None], DEAR)
                return self._run(case, compiled, [None])
            skipped: CaseSkipped = short
        except BlocksBuildOnEachOther as blocked:
            if expected_instructions(case) <= _QUICK_INSTRUCTIONS:
                return self._run(case, compiled, [None] * len(case.launches))
            skipped = blocked
        try:
            return self._run_in_slices(case, compiled, [None] * len(case.launches), DEPENDS)
        except NotConclusive as why:
            if why.instructions is None or why.instructions > _AFFORDABLE_INSTRUCTIONS:
                raise skipped from None
            return self._run(case, compiled, [None])

    def _sums_are_dear(
        self, case: ConfiguredCase, compiled: Functions, samples: Samples, *, verified: bool = False
    ) -> bool:
        """Whether the sums of a case, or of samples of it, are dear, as `are_dear` says."""
        if not any("mma" in function.ptx for function in compiled.values()):
            return False
        share = max(sample.count / sample.total if sample else 1.0 for sample in samples)

        def sums() -> Iterator[frozenset[str]]:
            for program in self.decoded.begun(case, compiled).values():
                yield program.sums

        return are_dear(case.problem.flops * share, sums(), verified=verified)

    def _run_in_slices(
        self, case: ConfiguredCase, compiled: Functions, samples: Samples, why: str
    ) -> Findings:
        """Count a case, or samples of it, without its values; verify those at a smaller size of its kind.

        Raises:
            NotConclusive: Values must be computed, of the whole grid where there is no sample.
        """
        if why != DEPENDS and not any(cases_to_verify(case, self.device)):
            raise NotConclusive
        counted = self._count_slices(case, compiled, samples)
        for spec, missing in () if any(samples) else never_written(case.problem, counted.buffers):
            return findings_of(Proof(verification_of_missing(case.problem, spec, missing)), counted)
        verified = self._verify_smaller(case, compiled, why)
        if verified is None or verified.verification is None:
            raise NotConclusive(counted.expected_instructions)
        remarks = tuple(dict.fromkeys((*verified.remarks, *counted.remarks)))
        found = findings_of(Proof(verified.verification), counted)
        return replace(found, reason=verified.reason, remarks=remarks)

    def _verify_smaller(self, case: ConfiguredCase, compiled: Functions, why: str) -> Findings | None:
        """What a smaller size is found to be, whose grid is run whole; None where no size is affordable."""
        found: Findings | None = None
        for card, smaller in cases_to_verify(case, self.device):
            same = (smaller.entries, smaller.defines) == (case.entries, case.defines)
            code = compiled if same else compile_kernel(smaller, self.decoded.arch)
            try:
                # One card is enough to see whether a second launch is as right as the first.
                whole, once = [None] * len(smaller.launches), found is not None
                found = self._whole_grids[card]._run(smaller, code, whole, once=once)
                found = at_smaller_size(found, smaller.problem, why)
            except ExplainedFailure as failure:
                raise ExplainedFailure(
                    f"At size {smaller.problem.label}: {failure.what}", failure.explanation
                ) from failure
            if found.outcome != "ok":
                return found
        return found

    @cached_property
    def _whole_grids(self) -> list["SimBackend"]:
        """What runs smaller sizes whole; it shares what is decoded."""
        whole = replace(self._options, sim_blocks=0)
        return [
            SimBackend(card, whole, models=False, decoded=replace(self.decoded, device=card))
            for card in cards_like(self.device)
        ]

    def _count_slices(
        self, case: ConfiguredCase, compiled: Functions, samples: Samples, *, verified: bool = False
    ) -> ExecutedCase:
        """Run the control slices of a case's launches, or of samples of them, and tell what they store to.

        Raises:
            NotConclusive: One does what no slice has, depends on values that they compute, or takes too long;
                or the samples do not stand for the grids.
        """
        launches = launches_of(self.decoded, case, compiled, samples, follow_undefined=False)
        if any(program.deciding is None for program in launches.programs.values()):
            raise NotConclusive
        check_room(case, launches.programs.values())
        memory, buffers = device_memory(case, self.references_of(case.problem).inputs, None)
        watch, observers = watching(self.device, case, compiled)
        sliced = SliceRun(_MOST_SLICE_STEPS, ValuelessElements())
        try:
            with timeline.span("execute", case.kernel.id):
                results = launches.run(memory, buffers, sliced=sliced, observers=observers)
        except (ValueNeeded, TooMuchWork):
            raise NotConclusive from None
        except KernelFault as fault:
            raise failure_of(fault, case, memory) from fault
        if any(samples) and not stands_for_grid(case.problem, buffers, result := combined(results)):
            share = result.sampled_blocks / result.total_blocks
            dear = _MOST_SLICE_STEPS - sliced.left > _QUICK_SLICE_STEPS * share
            kinds = of_two_kinds(case.problem, buffers, result)
            # What is verified elsewhere leaves nothing out: that blocks agree is enough.
            if kinds is None or not (dear or (verified and kinds[1].exact_sample)):
                raise NotConclusive
            finer, result = kinds
            if not verified:
                if finer in samples:
                    raise NotConclusive
                return self._count_slices(case, compiled, [finer])
            results = [result]
        return executed_case(launches, results, memory, buffers, watch)

    def _run(
        self, case: ConfiguredCase, compiled: Functions, samples: Samples, *, once: bool = False
    ) -> Findings:
        sampled = any(samples)
        problem = case.problem
        executed: dict[float | None, ExecutedCase] = {}

        def attempt(unread: float | None) -> Verification:
            programs = (each for one in executed.values() for each in one.launches.programs.values())
            follow = any(program.observer is not None for program in programs)
            executed[unread] = self._execute(case, compiled, samples, unread, follow=follow)
            return self.references_of(problem).verify(executed[unread].buffers, whole=not sampled)

        proof = prove(problem, case.kernel.poison_inout, attempt)
        found = executed[proof.unread]
        if sampled and (names := [name for name, check in problem.checks.items() if check.unordered]):
            sentence = f"The results in {names[0]} have no order, so that only the whole grid shows them."
            raise SampleFallsShort(sentence, found.expected_instructions)
        passed = proof.verification.passed
        if sampled and not passed:
            check_verdict(proof.verification, found)
        elif sampled:
            if finer := _finer(problem, found, samples):
                return self._run(case, compiled, finer, once=once)
            check_coverage(problem, found)
        elif passed:
            check_other_orders(found, self.references_of(problem))
        if passed and not once and outlasts_a_launch(found):
            later = verify_again(found, self._options.seed + 1)
            if not later.passed:
                if sampled:
                    check_verdict(later, found)
                return wrong_later(later)
        return findings_of(proof, found)

    def count(self, case: ConfiguredCase, compiled: Functions) -> ExecutedCase:
        """Execute one case that was verified elsewhere, for its counts.

        Fails and skips as `run`.
        """
        whole: Samples = [None] * len(case.launches)
        try:
            samples = self.samples(case)
            sums = any(samples) and self._sums_are_dear(case, compiled, samples, verified=True)
            dear = sums and self._sums_are_dear(case, compiled, samples)
            for blocks in (samples,) * sums + (whole,) * dear:
                with suppress(NotConclusive):
                    return self._count_slices(case, compiled, blocks, verified=True)
            found = self._execute(case, compiled, samples)
            if finer := _finer(case.problem, found, samples):
                found = self._execute(case, compiled, finer)
            quick = self._options.sim_blocks is None and found.expected_instructions <= _QUICK_INSTRUCTIONS
            if not (found.caveat and quick):
                return found
            if self._sums_are_dear(case, compiled, whole):
                with suppress(NotConclusive):
                    return self._count_slices(case, compiled, whole)
            return self._execute(case, compiled, whole)
        except BlocksBuildOnEachOther as blocked:
            try:
                return self._count_slices(case, compiled, whole)
            except NotConclusive:
                raise blocked from None

    def _execute(
        self,
        case: ConfiguredCase,
        compiled: Functions,
        samples: Samples,
        unread: float | None = None,
        *,
        follow: bool = False,
    ) -> ExecutedCase:
        """Run each launch, or a sample of its blocks; `unread` as in `device_memory`.

        A case that reads shared memory which nobody has written, or a lane that takes no part in a shuffle,
        is run once more, to `follow` where that ends.
        """
        once = partial(self._execute_once, case, compiled, samples, unread)
        return once(True) if follow else following(once)

    def _execute_once(
        self, case: ConfiguredCase, compiled: Functions, samples: Samples, unread: float | None, follow: bool
    ) -> ExecutedCase:
        launches = launches_of(self.decoded, case, compiled, samples, follow_undefined=follow or None)
        programs = launches.programs
        check_room(case, programs.values())
        memory, buffers = device_memory(case, self.references_of(case.problem).inputs, unread)
        watch, observers = watching(self.device, case, compiled)
        try:
            with timeline.span("execute", case.kernel.id):
                results = launches.run(memory, buffers, observers=observers if self._models else [])
        except KernelFault as fault:
            if fault.kind in FOLLOWED and not follow:
                raise
            loops = any(block.back_edges for program in programs.values() for block in program.blocks)
            if launches.sampled and fault.kind is FaultKind.ENDLESS and loops:
                raise BlocksBuildOnEachOther(WAIT) from None
            meets = fault.other_block not in (None, fault.block)
            if launches.sampled and meets and any(program.means.fences for program in programs.values()):
                raise BlocksBuildOnEachOther(_ORDER) from None
            raise failure_of(told(fault, programs, memory.buffers), case, memory) from fault
        return executed_case(launches, results, memory, buffers, watch if self._models else None, unread)

    def references_of(self, problem: Problem) -> References:
        """Inputs and references of the present problem, kept for the next kernel."""
        with self._making:
            if self._references is None or self._references.problem != problem:
                before, self._references = self._references, None
                known = before.inputs if before and before.problem.drawn == problem.drawn else None
                del before  # which may be large
                with timeline.span("inputs", problem.label):
                    self._references = References(problem, known or problem.inputs(self._options.seed))
            return self._references

    def begin_inputs(self, problem: Problem) -> None:
        """Make inputs while code is compiled and decoded; what goes wrong is told where they are needed."""

        def make() -> None:
            with suppress(Exception):
                self.references_of(problem)

        Thread(target=make, daemon=True).start()

    def samples(self, case: ConfiguredCase) -> list[Sample | None]:
        """The blocks to run of each launch, or None for all; raises as `sample_of` does."""
        return [sample_of(case.problem, one, self._options.sim_blocks) for one in case.launches]


def _finer(problem: Problem, found: ExecutedCase, samples: Samples) -> Samples:
    """What stands for the grid where blocks are of two kinds that `samples` mistake; empty otherwise."""
    kinds = of_two_kinds(problem, found.buffers, found.result)
    return [kinds[0]] if kinds and kinds[0] not in samples else []
