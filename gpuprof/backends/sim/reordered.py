# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A case once more: with other inputs, and in other orders of its warps and blocks.

The first order runs the warps of many blocks together, which is only one that a card may take. What is
right in every order is right by its reference in each: sums of atomic operations within their error bounds,
and what tickets decide about who does what. Cases all of whose accesses are ordered leave the same behind in
any order, and are not run again.
"""

from collections.abc import Mapping, Sequence

from gpuprof.backends.base import Findings
from gpuprof.backends.sim.executed import NO_TIME, ExecutedCase
from gpuprof.backends.sim.launching import device_memory, initial_content, renew
from gpuprof.backends.sim.located import failure_of, told
from gpuprof.backends.sim.sim_references import References
from gpuprof.backends.verification import incorrect
from gpuprof.errors import CaseSkipped
from gpuprof.executor import (
    AccessPair,
    Buffer,
    Deed,
    FaultKind,
    KernelFault,
    Order,
    Witness,
    other_orders,
)
from gpuprof.problems.references import Array
from gpuprof.problems.wrong_values import told_apart
from gpuprof.records import replace
from gpuprof.results import Verification

_NOT_COUNTED = "a kernel that is wrong in a later launch is not counted"


def outlasts_a_launch(executed: ExecutedCase) -> bool:
    """Whether a launch may find out that there was one before.

    It may by its module's variables, where it changes one, and by outputs, where it looks at one; of a grid
    that is sampled these hold no results.
    """
    if any(buffer.changed for buffer in executed.memory.variables.values()):
        return True
    outputs = [spec for spec in executed.launches.case.problem.outputs if not spec.is_read]
    return not executed.launches.sampled and any(executed.buffers[spec.name].loaded for spec in outputs)


def verify_again(executed: ExecutedCase, seed: int) -> Verification:
    """Launch a case once more, with other inputs, and compare what it makes of them.

    Its outputs hold the result already, which nobody has written: a kernel that leaves out what it finds done
    has left it out. Those of a sample are as at first: few elements have a reference.

    Raises:
        CaseFailure: Only its first launch keeps to the rules of CUDA.
    """
    launches, memory, buffers = executed.launches, executed.memory, executed.buffers
    problem, whole = launches.case.problem, not launches.sampled
    inputs = problem.inputs(seed)
    references = References(problem, inputs)
    outputs = [spec for spec in problem.outputs if not spec.is_read]
    content = {
        spec.name: references.result(spec) if whole else initial_content(spec, inputs, None)
        for spec in outputs
    }
    before = [buffers[spec.name].array().copy() for spec in outputs]
    renew(problem, {**content, **inputs}, buffers)
    launches.renew_symbols(memory, buffers)
    try:
        launches.run(memory, buffers)
    except KernelFault as fault:
        fault = told(fault, launches.programs, memory.buffers)
        text = f"{fault.detail}, in a second launch, which finds what the first left in memory"
        raise failure_of(fault.told(text), launches.case, memory) from fault
    verification = references.verify(buffers, whole=whole)
    if verification.passed:
        return verification
    # Its place is no place of the first launch, which is the one that can be explained.
    detail = f"with other inputs (--seed {seed}) {verification.detail}"
    kept = [_wrote_again(buffers[spec.name], old) for spec, old in zip(outputs, before, strict=True)]
    if kept and all(kept):
        detail += (
            "; all that it wrote is its result of the launch before, which it keeps in its module's memory"
        )
    return replace(verification, detail=detail, array="", first_wrong=None)


def _wrote_again(buffer: Buffer, before: Array) -> bool:
    """Whether a launch wrote something to an output, and only what was there before."""
    written = buffer.written_mask()
    return bool(written.any()) and buffer.array()[written].tobytes() == before[written].tobytes()


def wrong_later(verification: Verification) -> Findings:
    """What is said of a case that is right in its first launch only."""
    wrong = incorrect(verification, NO_TIME, later=True)
    return replace(wrong, clocks_reason=NO_TIME, counters_reason=_NOT_COUNTED, lines_reason=_NOT_COUNTED)


#: What counts in another order. Who waits there in vain, or turns for ever, tells nothing: a card may let
#: others go on that help.
_COUNTING = {
    *(FaultKind.GLOBAL_RACE, FaultKind.SHARED_RACE, FaultKind.OUT_OF_BOUNDS, FaultKind.MISALIGNED),
    *(FaultKind.READ_ONLY, FaultKind.TRAP),
}


def _run(
    executed: ExecutedCase, references: References, order: Order, watched: Sequence[str] = ()
) -> tuple[Witness, Mapping[str, Buffer]]:
    """Launch it in fresh memory in an order; return who wrote the arrays named, and all arrays."""
    memory, buffers = device_memory(executed.launches.case, references.inputs, executed.unread)
    witness = Witness([buffers[name] for name in watched])
    executed.launches.run(memory, buffers, order=order, observers=[witness])
    return witness, buffers


def check_other_orders(executed: ExecutedCase, references: References) -> None:
    """Run a case in other orders, as far as the first one took few instructions.

    Raises:
        CaseFailure: It breaks a rule in another order, or its outputs are wrong there: both lines are named,
            and an element.
    """
    case, memory = executed.launches.case, executed.memory
    for order in other_orders(executed.result.openness, executed.result.steps):
        try:
            _, buffers = _run(executed, references, order)
        except KernelFault as fault:
            if fault.kind in _COUNTING:
                raise failure_of(_in_another_order(fault), case, memory) from fault
            continue
        except CaseSkipped:  # only another order reaches what is not modelled
            continue
        if order.ended and not references.verify(buffers, whole=True).passed:
            raise failure_of(_outcome(executed, order.again(), references), case, memory)


def _in_another_order(fault: KernelFault) -> KernelFault:
    if fault.is_race:
        return fault
    return fault.told(f"{fault.detail}, in another order of warps and blocks than the first")


def _outcome(executed: ExecutedCase, order: Order, references: References) -> KernelFault:
    """Run a case once more in an order that makes it wrong, and tell who met whom."""
    entries = [one.entry for one in executed.launches.case.launches]
    watched, buffers = _run(executed, references, order, [spec.name for spec in references.problem.outputs])
    verification = references.verify(buffers, whole=True)
    name, element = verification.array, verification.first_wrong
    if element is None:  # its elements have no places
        text = f"leaves other results in another order of warps and blocks: {verification.detail}"
        return KernelFault(
            FaultKind.GLOBAL_RACE,
            text,
            kernel=entries[-1],
            source_line=0,
            block=(0, 0, 0),
            thread=(0, 0, 0),
        )
    buffer = buffers[name]
    shown, right = told_apart(buffer.array()[element], references.expected(name, element, whole=True))
    outcome = f"{references.problem.describe_element(name, element)} is {shown} then, where {right} belongs"
    deed = watched.writer(buffer, element)
    meeting = min(order.meetings.kept, key=lambda one: _distance(one, deed), default=None)
    if meeting is not None:
        launch, line, (thread, block), text = meeting.launch, meeting.line, meeting.thread, meeting.detail
    elif deed is not None:
        launch, line, thread, block = deed.launch, deed.line, deed.thread, deed.block
        text = "stores what depends on the order of warps and blocks"
    else:
        launch, line, thread, block = -1, 0, (0, 0, 0), (0, 0, 0)
        text = "belongs to a launch whose outputs depend on the order of warps and blocks"
    return KernelFault(
        FaultKind.GLOBAL_RACE,
        f"{text}: {outcome}",
        kernel=entries[launch],
        source_line=line,
        block=block,
        thread=thread,
        address=buffer.address + element * buffer.item_bytes,
    )


def _distance(meeting: AccessPair, deed: Deed | None) -> tuple[bool, int, bool]:
    """Tell how unlikely a meeting is to decide what a thread stored; one at a flag decides nothing."""
    near = 3
    if deed is not None and deed.launch == meeting.launch:
        blocks = [meeting.thread[1], meeting.earlier[1]]
        near = 0 if (deed.thread, deed.block) in (meeting.thread, meeting.earlier) else 1
        near = near if deed.block in blocks else 2
    return meeting.waits, near, not meeting.reads
