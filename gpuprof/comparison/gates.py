# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Gates: conditions on figures under which a run counts as failed, and what becomes of them.

A figure of the compiler's or the executor's is exact: its gate holds or does not, today and tomorrow. A time
is known to within an interval: its gate fails where a change is proven, passes where the interval excludes
it, and is uncertain in between.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.kinds import is_reference
from gpuprof.comparison.compared import ComparedCase, Comparison, case_name, percent
from gpuprof.comparison.gate_names import IDENTITY, TIMED, Term, resolve
from gpuprof.comparison.gate_text import Clause, Condition, Join, Not, Relation, Word, parse_gate, words_in
from gpuprof.comparison.judging import Judgement, Times, interval, judge, times_of
from gpuprof.results import Measurement, Run

Answer = Literal["yes", "no", "unsure", "unknown"]
Outcome = Literal["failed", "passed", "uncertain", "not judged"]
_RELATIONS: dict[Relation, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that no case may meet.

    Args:
        text: As the user wrote it.
        condition: What it states.
        terms: What each of its comparisons is about.
    """

    text: str
    condition: Condition
    terms: dict[Clause, Term]


@dataclass(frozen=True, slots=True)
class Held:
    """What a gate says of one case.

    Args:
        name: The case.
        answer: Whether it meets the gate's condition.
        evidence: Its figures, or why they are not known.
    """

    name: str
    answer: Answer
    evidence: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of a gate.

    Args:
        gate: The gate.
        held: Every case that was held against it.
    """

    gate: Gate
    held: tuple[Held, ...]

    @property
    def outcome(self) -> Outcome:
        """A gate that could be applied to no case at all is not judged, which guards nothing."""
        answers = {held.answer for held in self.held}
        if "yes" in answers:
            return "failed"
        if "unsure" in answers:
            return "uncertain"
        return "passed" if "no" in answers else "not judged"

    def of(self, answer: Answer) -> tuple[Held, ...]:
        """The cases of one answer."""
        return tuple(held for held in self.held if held.answer == answer)

    @property
    def sentence(self) -> str:
        """What became of it, with the cases that decided it."""
        match self.outcome:
            case "failed":
                return f"failed by {_cases(self.of('yes'))}"
            case "uncertain":
                return f"uncertain for {_cases(self.of('unsure'))}"
            case "not judged":
                why = self.held[0].evidence if self.held else "there is no case"
                return f"applied to no case: {why}"
        unknown = len(self.of("unknown"))
        judged = len(self.held) - unknown
        left_out = f"; {unknown} without the figure" if unknown else ""
        return f"passed by {judged} {'case' if judged == 1 else 'cases'}{left_out}"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A case that gates look at: in a comparison with its base, where it has one."""

    name: str
    new: Subject | None
    base: Subject | None = None
    compared: ComparedCase | None = None

    @property
    def subject(self) -> Subject:
        found = self.new or self.base
        assert found is not None
        return found


def read_gates(texts: Iterable[str], *, with_base: bool) -> tuple[Gate, ...]:
    """The gates that a user wrote.

    Args:
        texts: One each.
        with_base: Whether there will be a base to compare with.

    Raises:
        InputError: One cannot be read, or needs a base.
    """
    gates = []
    for text in texts:
        condition = parse_gate(text)
        gates.append(Gate(text, condition, resolve(text, condition, with_base=with_base)))
    return tuple(gates)


def hold_run(gates: Sequence[Gate], run: Run) -> tuple[GateResult, ...]:
    """Hold every kernel's cases of one run against gates; references are nobody's code under test."""
    candidates = [
        _Candidate(case_name(run, case), Subject(run, case))
        for case in run.cases
        if not is_reference(run, case)
    ]
    return tuple(_result(gate, candidates) for gate in gates)


def hold_comparison(gates: Sequence[Gate], comparison: Comparison) -> tuple[GateResult, ...]:
    """Hold every kernel's cases of a comparison against gates."""
    base, new = comparison.base, comparison.new
    candidates = [
        _Candidate(case.name, case.new, case.base, case) for case in comparison.cases if not case.is_reference
    ]
    candidates += [
        _Candidate(case_name(new, case), Subject(new, case))
        for case in comparison.added
        if not is_reference(new, case)
    ]
    gone = [
        _Candidate(case_name(base, case), None, Subject(base, case))
        for case in comparison.missing
        if not is_reference(base, case)
    ]
    return tuple(
        _result(gate, [*candidates, *(gone if "missing" in words_in(gate.condition) else [])])
        for gate in gates
    )


def _result(gate: Gate, candidates: Sequence[_Candidate]) -> GateResult:
    held = []
    for candidate in candidates:
        answer, evidence = _answer(gate.condition, gate.terms, candidate)
        held.append(Held(candidate.name, answer, evidence))
    return GateResult(gate, tuple(held))


def _answer(condition: Condition, terms: dict[Clause, Term], case: _Candidate) -> tuple[Answer, str]:
    match condition:
        case Word(word):
            return _word(word, case)
        case Clause():
            return _clause(terms[condition], case)
        case Not(inner):
            answer, evidence = _answer(inner, terms, case)
            opposite: dict[Answer, Answer] = {"yes": "no", "no": "yes"}
            return opposite.get(answer, answer), evidence
        case Join(every, parts):
            found = [_answer(part, terms, case) for part in parts]
            order: tuple[Answer, ...] = (
                ("no", "unknown", "unsure", "yes") if every else ("yes", "unsure", "unknown", "no")
            )
            decisive = next(answer for answer in order if any(answer == item[0] for item in found))
            return decisive, ", ".join(dict.fromkeys(text for answer, text in found if answer == decisive))
    raise TypeError(f"no condition: {condition!r}")


def _word(word: str, case: _Candidate) -> tuple[Answer, str]:
    state = "missing" if case.new is None else "new" if case.base is None else "matched"
    if word in ("missing", "new"):
        return ("yes" if state == word else "no"), state
    if case.compared is None:
        return "unknown", f"it is {state}"
    return ("yes" if case.compared.verdict == word else "no"), case.compared.sentence


def _clause(term: Term, case: _Candidate) -> tuple[Answer, str]:
    name, relation = term.clause.name, term.clause.relation
    if term.figure is None:
        value = (
            (case.compared.verdict if case.compared else "")
            if name == "verdict"
            else IDENTITY[name](case.subject)
        )
        met = (value == term.value) == (relation == "==")
        return ("yes" if met else "no"), f"{name} {value}"
    if case.new is None:
        return "unknown", "it is missing"
    if term.relative:
        return _change(term, term.figure, case)
    reading = term.figure.read(case.new)
    if reading.value is None:
        return "unknown", f"{term.figure.phrase}: {reading.reason}"
    if isinstance(reading.value, str):
        met = bool({reading.value.lower(), *reading.value.lower().split(" and ")} & set(term.texts))
        return ("yes" if met == (relation == "==") else "no"), f"{term.figure.phrase} {reading.value}"
    evidence = f"{term.figure.phrase} {term.figure.write(reading.value)}"
    if term.figure.key not in TIMED:
        return ("yes" if _RELATIONS[relation](reading.value, float(term.value)) else "no"), evidence
    return _timed(term, term.figure, reading.value, case.new.case), evidence


def _timed(term: Term, figure: Figure, value: float, case: Measurement) -> Answer:
    """Whether a figure that follows from a time meets a condition, as far as its rounds can tell."""
    times = _times(case, figure)
    holds = _RELATIONS[term.clause.relation]
    ends = [end ** TIMED[figure.key] for end in interval(times)] if times.medians_us else [1.0]
    answers = {holds(value * end, float(term.value)) for end in ends}
    return "unsure" if len(answers) > 1 else "yes" if answers == {True} else "no"


def _change(term: Term, figure: Figure, case: _Candidate) -> tuple[Answer, str]:
    if case.base is None or case.new is None:
        return "unknown", "it has no base"
    if figure.key in TIMED:
        return _timed_change(term, figure, case)
    before, after = figure.read(case.base), figure.read(case.new)
    for reading in (before, after):
        if not isinstance(reading.value, int | float):
            return "unknown", f"{figure.phrase}: {reading.reason}"
    old, now = float(before.value or 0), float(after.value or 0)
    evidence = f"{figure.phrase} {figure.write(old)} → {figure.write(now)}"
    change = (now / old - 1) if old else (0.0 if now == old else float("inf") if now > 0 else -float("inf"))
    return ("yes" if _RELATIONS[term.clause.relation](change, float(term.value)) else "no"), evidence


def _timed_change(term: Term, figure: Figure, case: _Candidate) -> tuple[Answer, str]:
    assert case.base is not None
    assert case.new is not None
    times = [_times(subject.case, figure) for subject in (case.base, case.new)]
    if not all(each.medians_us for each in times):
        side = case.base if not times[0].medians_us else case.new
        return "unknown", f"{figure.phrase}: {figure.read(side).reason or 'not timed'}"
    found = judge(*times)
    low, change, high = sorted(
        _powered(value, TIMED[figure.key]) for value in (found.low, found.change, found.high)
    )
    evidence = f"{figure.phrase} {percent(change)} ({percent(low)} to {percent(high)})"
    return _proven(found, term, low, change, high), evidence


def _proven(found: Judgement, term: Term, low: float, change: float, high: float) -> Answer:
    """Whether a change meets a condition: only one that is proven ever does."""
    holds = _RELATIONS[term.clause.relation]
    value = float(term.value)
    if found.verdict in ("regressed", "improved"):
        return "yes" if holds(change, value) else "no"
    return "unsure" if holds(low, value) or holds(high, value) else "no"


def _powered(change: float, power: int) -> float:
    return float((1 + change) ** power - 1)


def _times(case: Measurement, figure: Figure) -> Times:
    """The rounds that a figure follows from."""
    return times_of(case, warm=figure.key == "warm_us")


def _cases(held: tuple[Held, ...], most: int = 4) -> str:
    shown = "; ".join(f"{item.name} ({item.evidence})" for item in held[:most])
    return shown if len(held) <= most else f"{shown}; and {len(held) - most} more"
