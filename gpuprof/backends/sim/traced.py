# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One case on the executor once more, to see where it goes wrong: the fault, or the store of a wrong element.

Arrays lie far apart here, so that whatever an index is off by, the address tells which array it was meant
for; and a witness remembers who wrote each element.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gpuprof.backends.base import Functions
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.executed import stands_elsewhere
from gpuprof.backends.sim.launching import Launches, Samples, device_memory, initial_content, launches_of
from gpuprof.backends.sim.located import FOLLOWED, behind, explain_fault, following, line_of, told, who
from gpuprof.errors import CaseSkipped
from gpuprof.executor import (
    Buffer,
    Deed,
    GlobalMemory,
    KernelFault,
    UnwrittenRead,
    Witness,
)
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.problems.wrong_values import told_apart
from gpuprof.records import replace
from gpuprof.results import Cause, Explanation

#: Bytes between two arrays: an index of 32 bits does not reach from one to the next.
_APART = 1 << 36
#: More instructions than any batch takes: loops then end with the time that is given.
_ANY_BUDGET = 1 << 60
#: Runs of a case on the same device: the first, one that finds what it left, and one on clean arrays again.
REPETITIONS = 3


class TracedCase:
    """A case at one size, ready to be run for an explanation.

    Raises:
        CaseFailure: The case cannot be launched.
        CaseSkipped: It cannot be executed.
    """

    def __init__(self, backend: SimBackend, case: ConfiguredCase, compiled: Functions) -> None:
        self._backend, self._case, self._compiled = backend, case, compiled
        self._problem = case.problem
        self._elsewhere = stands_elsewhere(case)

    def explain(
        self, samples: Samples, *, repetitions: int = 1, budget: int = _ANY_BUDGET
    ) -> Explanation | None:
        """Run the case, and say what it does wrong.

        Returns None where the executor finds nothing wrong.

        Args:
            repetitions: How often to run it while it is right, up to `REPETITIONS`.
            budget: Instructions that a batch of blocks may take before its loop counts as endless.
        """
        return following(partial(self._attempt, samples, repetitions, budget))

    def written(self) -> tuple[Mapping[str, Buffer], Witness]:
        """Run it once, whole: what it leaves behind, and who wrote it."""
        return following(self._written)

    def _written(self, follow: bool) -> tuple[Mapping[str, Buffer], Witness]:
        launches = self._launches([None] * len(self._case.launches), follow)
        inputs = self._backend.references_of(self._problem).inputs
        memory, buffers = device_memory(self._case, inputs, None, GlobalMemory(_APART))
        witness = Witness([buffers[spec.name] for spec in self._problem.outputs])
        try:
            launches.run(memory, buffers, instruction_budget=_ANY_BUDGET, observers=[witness])
        except KernelFault as fault:
            if fault.kind in FOLLOWED and not follow:
                raise
            raise CaseSkipped(f"the executor finds another fault: {fault.what}") from fault
        return buffers, witness

    def _launches(self, samples: Samples, follow: bool) -> Launches:
        arguments = self._backend.decoded, self._case, self._compiled, samples
        return launches_of(*arguments, counts=False, follow_undefined=follow or None)

    def _attempt(self, samples: Samples, repetitions: int, budget: int, follow: bool) -> Explanation | None:
        launches = self._launches(samples, follow)
        inputs = self._backend.references_of(self._problem).inputs
        # A kernel that may read what its operation forbids is judged with numbers there.
        unread = None if self._case.kernel.poison_inout else 1.0
        every = (*self._problem.arrays, *self._case.workspace)
        specs = {spec.name: spec for spec in every if not spec.addresses}
        memory, buffers = device_memory(self._case, inputs, unread, GlobalMemory(_APART))
        builds_on = any(spec.is_read for spec in self._problem.outputs)
        for repetition in range(1, repetitions + 1):
            if repetition == REPETITIONS:
                for name, spec in specs.items():
                    own = spec in self._case.workspace
                    buffers[name].refill(initial_content(spec, inputs, unread, is_own=own))
            clean = repetition in (1, REPETITIONS)
            written = [buffers[name] for name, spec in specs.items() if spec.is_output]
            empty = [buffers[name] for name, spec in specs.items() if not spec.is_read]
            witness = Witness(written, empty if clean else ())
            try:
                launches.run(memory, buffers, instruction_budget=budget, observers=[witness])
            except KernelFault as fault:
                if fault.kind in FOLLOWED and not follow:
                    raise
                fault = told(fault, launches.programs, memory.buffers)
                explanation = explain_fault(
                    *(fault, self._problem.dimensions, memory.buffers, _APART // 2),
                    elsewhere=self._elsewhere,
                )
                return replace(explanation, repetition=repetition)
            if not clean and builds_on:  # what several runs leave behind has no reference then
                continue
            wrong = self._wrong(buffers, witness, whole=not launches.sampled)
            if wrong is not None:
                text, program = wrong.text, launches.programs[wrong.entry]
                if wrong.line and wrong.cause != "undefined value":
                    text += behind(program, wrong.line, of_value=wrong.cause == "wrong store")
                return replace(wrong, text=text, repetition=repetition)
        return None

    def _wrong(self, buffers: Mapping[str, Buffer], witness: Witness, *, whole: bool) -> Explanation | None:
        """What made the first wrong element what it is; None where none is wrong.

        Raises:
            CaseSkipped: Elements are wrong, but none of them by its place.
        """
        references = self._backend.references_of(self._problem)
        verification = references.verify(buffers, whole=whole)
        output, element = verification.array, verification.first_wrong
        if element is None and not verification.passed:
            raise CaseSkipped("it finds the results wrong, too, whose order does not tell who stored what")
        if element is None or (buffers[output].combined and not whole):
            return None
        buffer = buffers[output]
        deed = witness.writer(buffer, element)
        if deed is None:
            text, near = self._left_out(buffer, witness, element)
            explanation = self._explanation("never written", text, near)
            explanation = replace(explanation, thread=None)
        else:
            wanted = references.expected(output, element, whole=whole)
            explanation = self._stored(buffer, element, deed, wanted, witness.unwritten_read)
        return replace(explanation, array=output, offset=element * buffer.item_bytes)

    def _explanation(self, cause: Cause, text: str, deed: Deed | None) -> Explanation:
        return Explanation(
            cause=cause,
            text=text,
            sizes=self._problem.dimensions,
            line=line_of(deed.line, elsewhere=self._elsewhere) if deed else None,
            entry=self._case.launches[deed.launch if deed else -1].entry,
            block=deed.block if deed else None,
            thread=deed.thread if deed else None,
        )

    def _stored(
        self, buffer: Buffer, element: int, deed: Deed, wanted: Any, read: UnwrittenRead | None
    ) -> Explanation:
        """A store of a wrong value; or the read that the value comes from, where it can be told."""
        where, got = self._problem.describe_element(buffer.name, element), buffer.array()[element]
        is_poison = read is not None and bool(np.isnan(got.astype(np.float64)))
        same = read is not None and (read.deed.thread, read.deed.block) == (deed.thread, deed.block)
        subject = self._who(deed)
        if is_poison and same:
            subject = f"in line {deed.line} it" if deed.line else "it"
        shown, right = told_apart(got, wanted)
        text = f"{subject} stores {shown} to {where}, where {right} belongs"
        if deed.atomic:
            text = (
                f"{subject} changes {where} last, by an atomic operation, to {shown}; {right} belongs there"
            )
        if read is None:
            return self._explanation("wrong store", text, deed)
        if is_poison:
            unread = [spec.name for spec in self._problem.outputs if spec.unread]
            if (
                read.buffer is buffer
                and buffer.name not in unread
                and read.deed.line == deed.line
                and (deed.atomic or read.element == element)
            ):
                text += f"; nothing clears {buffer.name} beforehand: add a launch that does"
            return self._explanation("undefined value", f"{self._read_unwritten(read)}; {text}", read.deed)
        return self._explanation("wrong store", f"{text}; before that, {self._read_unwritten(read)}", deed)

    def _read_unwritten(self, read: UnwrittenRead) -> str:
        name = read.buffer.name
        if name in (spec.name for spec in self._problem.outputs):
            where = self._problem.describe_element(name, read.element)
        else:
            where = f"{name}[{read.element}]"
        return f"{self._who(read.deed)} reads {where}, which was never written"

    def _left_out(self, buffer: Buffer, witness: Witness, element: int) -> tuple[str, Deed | None]:
        """An element that nobody wrote, and who wrote its neighbours."""

        def named(index: int) -> str:
            return self._problem.describe_element(buffer.name, index)

        written = witness.written(buffer)
        if not written.any():
            return f"no thread wrote any element of {buffer.name}", None
        text = f"no thread wrote {named(element)}"
        near = [index for index in self._neighbours(buffer.name, element) if written[index]]
        deeds = [deed for index in near if (deed := witness.writer(buffer, index)) is not None]
        if len(deeds) > 1 and (deeds[0].block, deeds[0].line) == (deeds[1].block, deeds[1].line):
            line = f" in line {deeds[0].line}" if deeds[0].line else ""
            both = f"{named(near[0])} and {named(near[1])} beside it"
            return f"{text}; block {deeds[0].block} wrote {both}{line}", deeds[0]
        if not deeds:
            places = np.flatnonzero(written)
            near = [int(places[np.abs(places - element).argmin()])]
            deeds = [deed for index in near if (deed := witness.writer(buffer, index)) is not None]
        return f"{text}; {self._who(deeds[0])} wrote {named(near[0])}, the nearest", deeds[0]

    def _neighbours(self, output: str, element: int) -> list[int]:
        """The elements before and behind an element along each axis, from the fastest varying on."""
        shape = self._problem.array(output).shape
        position = np.unravel_index(element, shape)
        found = []
        for axis in reversed(range(len(shape))):
            for step in (-1, 1):
                index = [int(each) for each in position]
                index[axis] += step
                if 0 <= index[axis] < shape[axis]:
                    found.append(int(np.ravel_multi_index(index, shape)))
        return found

    def _who(self, deed: Deed) -> str:
        return who(deed.line, deed.thread, deed.block, elsewhere=self._elsewhere)
