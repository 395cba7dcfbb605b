# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Gates: conditions on figures under which a run counts as failed, and what becomes of them.

A figure of the compiler's or the executor's is exact: its gate holds or does not, today and tomorrow. A time
is known to within an interval: its gate fails where a change is proven, passes where the interval excludes
it, and is uncertain in between. Of a case that nobody timed it is the modelled time, and what is said of it
says so.
"""

import operator
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from gpuprof.analysis.figures import Figure, Subject
from gpuprof.analysis.models import modelled_text
from gpuprof.analysis.numbers import plural
from gpuprof.analysis.status import is_reference
from gpuprof.comparison.compared import CaseVerdict, ComparedRuns, case_name, percent
from gpuprof.comparison.gate_text import IDENTITY, WORDS, Clause, Condition, clauses_in, parse_gate
from gpuprof.comparison.judging import Times, interval, judge, judge_modelled, times_of
from gpuprof.results import Measurement, Model, Run

Answer = Literal["yes", "no", "unsure", "unknown"]
Outcome = Literal["failed", "passed", "uncertain", "not judged"]
#: Figures that follow from a time, with the power of the time that they go by: these are as noisy as it is.
TIMED = {
    **dict.fromkeys(("median_us", "warm_us", "model_us"), 1),
    **dict.fromkeys(("gflops", "gbps", "pct_of_peak_compute", "pct_of_peak_bandwidth", "pct_of_copy"), -1),
    **dict.fromkeys(("pct_of_limit", "pct_of_measured_limit", "pct_of_bound"), -1),
}
#: A gate as the user wrote it, and the condition that no case may meet.
GateCondition = tuple[str, Condition]


class Held(Struct, frozen=True):
    """What a gate says of one case: whether it meets the condition under which the run has failed.

    Args:
        answer: Whether it meets the gate's condition.
        evidence: Its figures, or why they are not known.
    """

    case: str
    answer: Answer
    evidence: str


class GateResult(Struct, frozen=True):
    """What became of a gate, as it was written, and every case that was held against it."""

    text: str
    held: tuple[Held, ...]

    def __repr__(self) -> str:
        """What a test that asserts it is told."""
        return f"{self.text}: {self.sentence}"

    @property
    def outcome(self) -> Outcome:
        """A gate that could be applied to no case at all is not judged, which guards nothing."""
        answers = {held.answer for held in self.held}
        if "yes" in answers:
            return "failed"
        if "unsure" in answers:
            return "uncertain"
        return "passed" if "no" in answers else "not judged"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def failing(self) -> tuple[str, ...]:
        """Names of the cases that meet its condition."""
        return tuple(held.case for held in self.of("yes"))

    def of(self, answer: Answer) -> tuple[Held, ...]:
        """The cases of which it says so."""
        return tuple(held for held in self.held if held.answer == answer)

    @property
    def sentence(self) -> str:
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
        return f"passed by {plural(judged, 'case')}{left_out}"


class _Candidate(Struct, frozen=True):
    """A case that gates look at: in a comparison with its base, where it has one."""

    name: str
    new: Subject | None
    base: Subject | None = None
    compared: CaseVerdict | None = None

    @property
    def subject(self) -> Subject:
        found = self.new or self.base
        assert found is not None
        return found


def read_gates(texts: Iterable[str], *, with_base: bool) -> tuple[GateCondition, ...]:
    """The gates that a user wrote.

    Raises:
        InputError: One cannot be read, or needs a base.
    """
    return tuple((text, parse_gate(text, with_base=with_base)) for text in texts)


def hold_run(gates: Sequence[GateCondition], run: Run) -> tuple[GateResult, ...]:
    """Hold every kernel's cases of one run against gates; references are nobody's code under test."""
    return _results(gates, [_Candidate(case_name(run, case), Subject(run, case)) for case in run.cases])


def hold_comparison(gates: Sequence[GateCondition], comparison: ComparedRuns) -> tuple[GateResult, ...]:
    """Hold every kernel's cases of a comparison against gates."""
    base, new = comparison.base, comparison.new
    matched = [_Candidate(case.name, case.new, case.base, case) for case in comparison.cases]
    added = [_Candidate(case_name(new, case), Subject(new, case)) for case in comparison.added]
    gone = [_Candidate(case_name(base, case), None, Subject(base, case)) for case in comparison.missing]
    return _results(gates, [*matched, *added, *gone])


def _results(gates: Sequence[GateCondition], candidates: Sequence[_Candidate]) -> tuple[GateResult, ...]:
    """Only a gate that names missing cases looks at them; one that names a kernel must find it to pass."""
    judged = [one for one in candidates if not is_reference(one.subject.run, one.subject.case)]
    found = []
    for text, condition in gates:
        clauses = clauses_in(condition)
        named_missing = any(clause.name == "missing" for clause in clauses)
        looked_at = [one for one in judged if one.new or named_missing]
        result = GateResult(text, tuple(Held(one.name, *_answer(condition, one)) for one in looked_at))
        absent = [clause for clause in clauses if _names_none(clause, looked_at)]
        if absent and result.passed:
            why = f"no case has {absent[0].name} {absent[0].texts[0]!r}"
            result = GateResult(text, (Held("", "unknown", why),))
        found.append(result)
    return tuple(found)


def _names_none(clause: Clause, cases: Sequence[_Candidate]) -> bool:
    """Whether a clause is for cases of a kernel, size or so that none is of."""
    if clause.name not in IDENTITY or clause.name == "outcome" or clause.holds is not operator.eq:
        return False
    return all(IDENTITY[clause.name](case.subject) not in clause.texts for case in cases)


def _answer(condition: Condition, case: _Candidate) -> tuple[Answer, str]:
    if isinstance(condition, Clause):
        return _word(condition.name, case) if condition.name in WORDS else _clause(condition, case)
    found = [_answer(part, case) for part in condition.parts]
    if condition.word == "not":
        ((answer, evidence),) = found
        opposite: dict[Answer, Answer] = {"yes": "no", "no": "yes"}
        return opposite.get(answer, answer), evidence
    order: tuple[Answer, ...] = ("no", "unknown", "unsure", "yes")
    order = order if condition.word == "and" else ("yes", "unsure", "unknown", "no")
    decisive = next(answer for answer in order if any(answer == item[0] for item in found))
    return decisive, ", ".join(dict.fromkeys(text for answer, text in found if answer == decisive))


def _word(word: str, case: _Candidate) -> tuple[Answer, str]:
    state = "missing" if case.new is None else "new" if case.base is None else "matched"
    if word in ("missing", "new"):
        return ("yes" if state == word else "no"), state
    if case.compared is None:
        return "unknown", f"it is {state}"
    return ("yes" if case.compared.verdict == word else "no"), case.compared.sentence


def _clause(clause: Clause, case: _Candidate) -> tuple[Answer, str]:
    figure = clause.figure
    if figure is None:
        verdict = case.compared.verdict if case.compared else ""
        value = verdict if clause.name == "verdict" else IDENTITY[clause.name](case.subject)
        return _yes(clause.holds(value in clause.texts, True)), f"{clause.name} {value}"
    if case.new is None:
        return "unknown", "it is missing"
    if clause.relative:
        return _change(clause, figure, case)
    reading = figure.read(case.new)
    model = _model(case.new.case, figure)
    if model is not None:
        return _over(clause, (model.low_us, model.median_us, model.high_us)), modelled_text(model)
    if reading.value is None:
        return "unknown", f"{figure.phrase}: {reading.reason}"
    if isinstance(reading.value, str):
        met = bool({reading.value.lower(), *reading.value.lower().split(" and ")} & set(clause.texts))
        return _yes(clause.holds(met, True)), f"{figure.phrase} {reading.value}"
    values = [reading.value * factor for factor in _factors(case.new.case, figure)]
    return _over(clause, values), f"{figure.phrase} {figure.write(reading.value)}"


def _yes(met: bool) -> Answer:
    return "yes" if met else "no"


def _over(clause: Clause, values: Iterable[float]) -> Answer:
    """Whether all values between which a figure lies meet a condition, or none does."""
    answers = {clause.holds(value, clause.value) for value in values}
    return "unsure" if len(answers) > 1 else _yes(answers == {True})


def _factors(case: Measurement, figure: Figure) -> Sequence[float]:
    """Between what factors of its value a figure lies, as far as its rounds can tell."""
    times = _times(case, figure)
    if figure.key not in TIMED or not times.medians_us:
        return (1.0,)
    return [float(end ** TIMED[figure.key]) for end in interval(times)]


def _change(clause: Clause, figure: Figure, case: _Candidate) -> tuple[Answer, str]:
    if case.base is None or case.new is None:
        return "unknown", "it has no base"
    if figure.key in TIMED:
        return _timed_change(clause, figure, case.base, case.new)
    before, after = figure.read(case.base), figure.read(case.new)
    for reading in (before, after):
        if not isinstance(reading.value, int | float):
            return "unknown", f"{figure.phrase}: {reading.reason}"
    old, now = float(before.value or 0), float(after.value or 0)
    evidence = f"{figure.phrase} {figure.write(old)} → {figure.write(now)}"
    change = (now / old - 1) if old else (0.0 if now == old else float("inf") if now > 0 else -float("inf"))
    return _yes(clause.holds(change, clause.value)), evidence


def _timed_change(clause: Clause, figure: Figure, base: Subject, new: Subject) -> tuple[Answer, str]:
    """Whether the change of what follows from a time meets a condition: only one that is proven ever does."""
    times = [_times(subject.case, figure) for subject in (base, new)]
    models = [_model(subject.case, figure) for subject in (base, new)]
    how = ""
    if models[0] and models[1]:
        found, how = judge_modelled(models[0], models[1]), "modelled "
    elif all(each.medians_us for each in times):
        found = judge(*times)
    else:
        side = base if not times[0].medians_us else new
        return "unknown", f"{figure.phrase}: {figure.read(side).reason or 'not timed'}"
    power = TIMED[figure.key]
    low, change, high = sorted(float((1 + at) ** power - 1) for at in (found.low, found.change, found.high))
    evidence = f"{how}{figure.phrase} {percent(change)} ({percent(low)} to {percent(high)})"
    if found.verdict in ("regressed", "improved"):
        return _yes(clause.holds(change, clause.value)), evidence
    may = clause.holds(low, clause.value) or clause.holds(high, clause.value)
    return "unsure" if may else "no", evidence


def _times(case: Measurement, figure: Figure) -> Times:
    return times_of(case, warm=figure.key == "warm_us")


def _model(case: Measurement, figure: Figure) -> Model | None:
    """The modelled time that stands for a figure: for the time of a case that nobody timed."""
    stands = figure.key == "model_us" or (figure.key == "median_us" and case.timing is None)
    return case.model if stands and case.outcome == "ok" else None


def _cases(held: tuple[Held, ...], most: int = 4) -> str:
    shown = "; ".join(f"{item.case} ({item.evidence})" for item in held[:most])
    return shown if len(held) <= most else f"{shown}; and {len(held) - most} more"
