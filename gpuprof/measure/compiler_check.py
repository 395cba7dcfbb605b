# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Is it the kernel or the compiler? Its PTX on the executor, and what each compiler makes of it on the card.

The executor runs PTX as its rules say. Where it is right and a card is wrong with the same inputs, what made
the card's machine code of that PTX is to blame. An operation's own bound decides what is wrong: contraction
and other orders of a sum stay within it.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial

from msgspec import Struct

from gpuprof.backends.base import Backend, Functions
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.traced import TracedCase
from gpuprof.errors import CaseFailure, CaseSkipped, CompileError
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.kernels.smaller_sizes import expected_instructions, smaller_cases
from gpuprof.measure.case import Case, configured
from gpuprof.measure.execute import Compile
from gpuprof.problems.check import compare
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.problem import Problem
from gpuprof.problems.references import Array, sorted_rows
from gpuprof.records import replace
from gpuprof.text import listed
from gpuprof.toolchain.assembling import Assembler, assemble_with, found_ptxas, target_in

#: The largest size that is looked at, in instructions of single lanes: a few seconds on the executor.
_AFFORDABLE = 2e8
#: Extents that are tried, all dimensions at once, for a small size that shows a difference, and for how long.
_SMALL = (1, 2, 4, 8, 16, 32, 33, 64, 100, 128, 200, 256, 384, 512, 1000, 1024)
_SEARCH_S = 8.0


class _Difference(Struct, frozen=True):
    """What one compiler's machine code computes otherwise."""

    output: str
    elements: int
    first: int
    got: float
    right: float
    line: int


def compiler_remarks(
    case: Case, card: Backend, executor: SimBackend, compile_kernel: Compile
) -> tuple[tuple[str, ...], bool]:
    """What to say of the compilers of a case, and whether the card's context is lost since."""
    try:
        place = configured(case, card.device)
        if expected_instructions(place) > _AFFORDABLE:
            smaller = list(smaller_cases(place, card.device, _AFFORDABLE))
            if not smaller:
                told = "Compilers are not checked: executing it whole takes too long at every size it has"
                return (told,), False
            place = smaller[-1]
        check = _Check(card, executor, compile_kernel)
        return tuple(check.sentences(place)), check.lost
    except (CaseSkipped, CompileError, ExpressionError) as error:
        return (f"Compilers are not checked: {str(error).rstrip('.')}",), False


class _Check:
    def __init__(self, card: Backend, executor: SimBackend, compile_kernel: Compile) -> None:
        self._card = card
        self._executor = executor
        self._compile = compile_kernel
        #: Whether the context of the card is lost.
        self.lost = False

    def sentences(self, case: ConfiguredCase) -> Iterator[str]:
        label, compiled = case.problem.label, self._compile(case)
        if not all(function.ptx for function in compiled.values()):
            yield "Compilers are not checked: it is machine code, whose PTX is not known"
            return
        judged = _Judged(self._executor, case, compiled)
        if judged.wrong:
            yield (
                f"The compiler is not to blame: at {label} the executor, which runs its PTX,"
                f" finds {judged.wrong} wrong too"
            )
            return
        right, unknown = [], []
        for name, functions in self._codes(judged):
            if isinstance(functions, str):
                unknown.append(f"{name} ({functions})")
                continue
            try:
                found = judged.difference(self._card.outputs(case, functions))
            except CaseFailure as error:
                what = error.what.rstrip(".")
                yield f"{name} makes machine code of its PTX that fails at {label}: {what}"
                if error.fatal:
                    self.lost = True
                    return
                continue
            if found is None:
                right.append(name)
            else:
                yield self._told(name, judged, found)
        told = f": {listed(right)}" if right else ""
        more = f"; not checked: {listed(unknown)}" if unknown else ""
        yield f"Right machine code of its PTX, checked at {label}, by {len(right)}{told}{more}"

    def _codes(self, place: "_Judged", only: str = "") -> Iterator[tuple[str, Functions | str]]:
        """Each compiler, or the one of a name, with the functions that it made, or why it made none."""
        first = next(iter(place.compiled.values()))
        built = place.case.kernel.built
        own = first.options[0] if built is not None and first.options else ""
        by = built.by if built is not None and built.by else own or "NVRTC"
        if first.cubin and only in ("", by):
            yield by, place.compiled
        target = target_in(first.ptx, first.arch)
        makers: list[tuple[str, Assembler]] = [
            ("ptxas {}.{}".format(*release), partial(assemble_with, path, target=target))
            for path, release in found_ptxas()
        ]
        if self._card.assemble is not None:
            makers.append(("the driver", self._card.assemble))
        for name, make in makers:
            if name == own or only not in ("", name):
                continue
            try:
                cubin, _ = make(first.ptx, place.case.kernel.id)
            except CompileError as error:
                yield name, error.what.rstrip(".")
            else:
                yield name, {entry: replace(each, cubin=cubin) for entry, each in place.compiled.items()}

    def _told(self, name: str, place: "_Judged", found: _Difference) -> str:
        smaller, least = self._smallest(name, place, found)
        problem, spec = smaller.case.problem, smaller.case.problem.array(least.output)
        line = f", which line {least.line} stores" if least.line else ""
        line += ", in ascending order" * _is_unordered(problem, least.output)
        return (
            f"{name} makes wrong machine code of its PTX: at size {problem.label}, {least.elements:,} of"
            f" {spec.elements:,} elements of {least.output} are not what the executor rightly computes;"
            f" first: {problem.describe_element(least.output, least.first)} is {least.got:.9g} instead of"
            f" {least.right:.9g}{line}"
        )

    def _smallest(self, name: str, place: "_Judged", found: _Difference) -> tuple["_Judged", _Difference]:
        """The smallest size of some that shows it; the one that was looked at where none does."""
        end = time.monotonic() + _SEARCH_S
        problem = place.case.problem
        extents = () if problem.operation.coded == GIVEN else _SMALL
        for sizes in dict.fromkeys(tuple(min(each, size) for size in problem.sizes) for each in extents):
            if time.monotonic() > end:
                break
            if sizes == problem.sizes:
                continue
            try:
                case = place.case.at(replace(problem, sizes=sizes), self._card.device)
                smaller = _Judged(self._executor, case, self._compile(case))
            except (CaseSkipped, CompileError, ExpressionError):  # as a formula that only fits whole tiles
                continue
            functions = dict(self._codes(smaller, only=name)).get(name)
            if smaller.wrong or functions is None or isinstance(functions, str):
                continue
            difference = smaller.difference(self._card.outputs(case, functions))
            if difference is not None:
                return smaller, difference
        return place, found


class _Judged:
    """What the executor makes of a size of the case: right or wrong, and who stores what."""

    def __init__(self, executor: SimBackend, case: ConfiguredCase, compiled: Functions) -> None:
        self.case, self.compiled = case, compiled
        self._problem = problem = case.problem
        traced = TracedCase(executor, case, compiled)
        self._buffers, self._witness = traced.written()
        self._expected = problem.reference(executor.references_of(problem).inputs)
        #: Outputs with an element that is wrong here already.
        self.wrong = listed([name for name in self._expected if self._wrong_in(name, self._own).any()])

    @property
    def _own(self) -> dict[str, Array]:
        return {name: self._buffers[name].array() for name in self._expected}

    def _comparable(self, output: str, got: Mapping[str, Array]) -> Array:
        """An output in the order of its reference: elements that may stand in any order ascend."""
        if not _is_unordered(self._problem, output):
            return got[output]
        count, together = len(self._expected[output].values), self._problem.checks[output].together
        keys = [got[name][:count] for name in together]
        return sorted_rows(got[output][:count], self._problem.array(output).shape, keys)

    def _wrong_in(self, output: str, got: Mapping[str, Array]) -> Array:
        expected, bound = self._expected[output], self._problem.bound(output)
        return compare(self._comparable(output, got), expected.values, expected.magnitude, bound).wrong

    def difference(self, outputs: Mapping[str, Array]) -> _Difference | None:
        """The first output that a card computes otherwise."""
        for name in outputs:
            wrong = self._wrong_in(name, outputs)
            if wrong.any():
                first = int(wrong.argmax())
                deed = self._witness.writer(self._buffers[name], first)
                if _is_unordered(self._problem, name):
                    deed = None
                value, right = (float(self._comparable(name, each)[first]) for each in (outputs, self._own))
                return _Difference(name, int(wrong.sum()), first, value, right, deed.line if deed else 0)
        return None


def _is_unordered(problem: Problem, output: str) -> bool:
    """Whether an output's elements may stand in any order."""
    check = problem.checks.get(output)
    return check is not None and check.unordered
