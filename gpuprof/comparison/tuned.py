# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Points of a kernel at a size, of a search or of a run with several: their figures, and who is best."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.groups import Group, kernel_record
from gpuprof.analysis.models import modelled_text, too_near
from gpuprof.analysis.status import is_reference
from gpuprof.comparison.judging import judge, times_of
from gpuprof.results import OTHER_REASONS, By, Measurement, Run, Tuned, TunedPoint, Tuning
from gpuprof.text import format_extent, listed

#: How a point's block is called among its values.
BLOCK = "block"
#: Reasons that a sentence names.
_MOST_REASONS = 3
#: Points that a sentence names.
_MOST_NAMED = 3
#: Words that sentences of gpuprof begin with: within another sentence they are small.
_OPENING = frozenset({"A", "Its", "It", "No", "The"})


class TunedRow(Struct, frozen=True):
    """One point that was timed or counted: values of what was searched as typed, and what decides of it.

    A tied one is the best, or cannot be told apart from it; the default is the header's.
    """

    case: Measurement
    values: dict[str, str]
    value_us: float | None
    is_tied: bool
    is_default: bool


class TunedSize(Struct, frozen=True):
    """Points of one size with a figure, the best first, and those without; `tuned` is what a search recorded.

    `several` says that points are of several kernels.
    """

    label: str
    by: By
    rows: tuple[TunedRow, ...]
    wrong: tuple[TunedRow, ...]
    several: bool = False
    device_label: str = ""
    tuned: Tuned | None = None

    @property
    def title(self) -> str:
        return f"{self.label} on {self.device_label}" if self.device_label else self.label

    @property
    def by_time(self) -> bool:
        """Whether times decided; else nothing was timed."""
        return self.by == "time"

    @property
    def ties(self) -> tuple[TunedRow, ...]:
        """The best point and those that cannot be told apart from it."""
        return tuple(row for row in self.rows if row.is_tied)

    @property
    def default(self) -> TunedRow | None:
        """The header's own point; None where it has no figure, or there are several kernels."""
        found = [row for row in self.rows if row.is_default]
        return found[0] if len(found) == 1 and not self.several else None

    @property
    def allowed(self) -> int:
        held = self.tuned
        return held.combinations - sum(held.ruled_out.values()) if held else len(self.rows) + len(self.wrong)


def value_of(case: Measurement, by: By) -> float | None:
    """What decides of a case, in microseconds; None where it has none, or is wrong."""
    if case.outcome != "ok":
        return None
    if by == "time":
        return case.timing.cold.median_us if case.timing and case.timing.cold else None
    if by == "model":
        return case.model.median_us if case.model else None
    return case.bounds[case.bound_by].least_us if case.bound_by else None


def basis_of(cases: Iterable[Measurement]) -> By:
    """What decides of cases that nobody timed."""
    return "model" if any(value_of(case, "model") is not None for case in cases) else "bound"


def tuned_sizes(run: Run) -> tuple[TunedSize, ...]:
    """Every size of a search; none of a run that is not a search."""
    tuning = run.tuning
    if tuning is None:
        return ()
    return tuple(_size(run, tuning, tuned) for tuned in tuning.sizes)


def _size(run: Run, tuning: Tuning, tuned: Tuned) -> TunedSize:
    blocks = {*tuning.blocks}
    ties = {_identity(point, blocks) for point in tuned.ties}
    rows = []
    for case in run.cases:
        if case.is_reference or (case.device, case.problem.sizes) != (tuned.device, tuned.problem.sizes):
            continue
        default = dict(run.kernel(case.kernel).parameters)
        own = tuning.blocks.get(case.kernel, (case.block,))[0]
        rows.append(
            TunedRow(
                case,
                values_of(case, tuning.values.get(case.kernel, {}), with_block=case.kernel in blocks),
                value_of(case, tuned.by),
                _identity(case, blocks) in ties,
                dict(case.params) == default and case.block == own,
            )
        )
    label = run.device_label(tuned.device) if len(run.devices) > 1 else ""
    return ranked(tuned.problem.label, tuned.by, rows, len(tuning.values) > 1, label, tuned)


def ranked(
    label: str,
    by: By,
    rows: Sequence[TunedRow],
    several: bool = False,
    device_label: str = "",
    tuned: Tuned | None = None,
) -> TunedSize:
    """Points of one size, the best first, before others those that cannot be told apart from it."""
    good = sorted((row for row in rows if row.value_us is not None), key=lambda row: row.value_us or 0.0)
    return TunedSize(
        label,
        by,
        tuple(sorted(good, key=lambda row: not row.is_tied)),
        tuple(row for row in rows if row.value_us is None),
        several,
        device_label,
        tuned,
    )


def values_of(case: Measurement, names: Iterable[str], *, with_block: bool) -> dict[str, str]:
    """Those of some parameters that a case has, as typed, and its block."""
    values = {name: str(case.params[name]) for name in names if name in case.params}
    return {**values, BLOCK: format_extent(case.block)} if with_block else values


def _identity(point: Measurement | TunedPoint, blocks: set[str]) -> tuple[object, ...]:
    """What tells one point from another: a block that was not searched may follow from parameters."""
    block = point.block if point.kernel in blocks else None
    return point.kernel, tuple(sorted(point.params.items())), block


def typed(row: TunedRow, *, several: bool) -> str:
    """A point as users type it: `BM=64 BN=128 block 32x8`."""
    words = [f"{name}={value}" for name, value in row.values.items() if name != BLOCK]
    words += [f"block {row.values[BLOCK]}"] if BLOCK in row.values else []
    if several or not words:
        words.insert(0, row.case.kernel)
    return " ".join(words)


def answer_sentence(size: TunedSize) -> str:
    """Who is best, and by how much, as a clause; else why nobody is."""
    done = "timed" if size.by_time else "executed"
    if not size.rows:
        if size.wrong:
            return f"{len(size.wrong):,} of {len(size.wrong):,} points that were {done} failed"
        if size.tuned and size.tuned.uncompiled:
            return f"nothing was compiled in time, and nothing {done}: give --budget more seconds"
        return f"nothing was {done}" if size.allowed else f"no combination can run, and nothing was {done}"
    best, default = size.rows[0], size.default
    assert best.value_us is not None
    told = f"best is {typed(best, several=size.several)}, {_figure(size, best)}"
    if default is None or default.value_us is None:
        return told
    if default is best:
        return f"{told}: the default values"
    if default.is_tied:
        modelled = size.by == "model"
        near = f", {_figure(size, default)}, are too near to tell" if modelled else " are as good"
        return f"{told}; the default values{near}"
    own = numbers.time_us(default.value_us) if size.by == "bound" else _figure(size, default)
    factor, how = numbers.ratio(default.value_us / best.value_us), _AS[size.by]
    return f"{told}; the default values: {own}, {factor} as {how}"


def _figure(size: TunedSize, row: TunedRow) -> str:
    if size.by == "model" and row.case.model:
        return modelled_text(row.case.model)
    return f"{'' if size.by_time else 'with a bound of '}{numbers.time_us(row.value_us or 0.0)}"


#: What a factor between two points is of, and how ties are told.
_AS: dict[By, str] = {"time": "long", "model": "long", "bound": "high a bound"}
_TIED: dict[By, str] = {
    "time": "cannot be told apart from it",
    "model": "too near to tell which is faster",
    "bound": "with the same bound",
}


def tie_sentence(size: TunedSize) -> str:
    """Who cannot be told apart from the best besides the default values, of which the answer tells."""
    others = [typed(row, several=size.several) for row in size.ties[1:] if row is not size.default]
    if not others:
        return ""
    return f"{len(others):,} more {_TIED[size.by]}: {listed(others, _MOST_NAMED)}"


def space_sentence(size: TunedSize) -> str:
    """How large the space is, how much of it was looked at, what was ruled out and why."""
    tuned, done = size.tuned, "timed" if size.by_time else "executed"
    assert tuned is not None
    several = "" if tuned.combinations == 1 else "s"
    told = (
        f"{tuned.combinations:,} combination{several}: {size.allowed:,} can run, {tuned.evaluated:,} {done}"
    )
    if tuned.uncompiled:
        told += f", {tuned.uncompiled:,} not compiled in time; the same command continues there"
    if out := sum(tuned.ruled_out.values()):
        one, *others = _reasons(tuned)
        why = f": {'; '.join((one, *others))}" if others else one.removeprefix(f"{out:,}")
        told += f". {out:,} ruled out without a launch{why}"
    return told


def _reasons(tuned: Tuned) -> Iterator[str]:
    """Why points were ruled out, the most frequent reasons first."""
    known = sorted(
        ((count, reason) for reason, count in tuned.ruled_out.items() if reason != OTHER_REASONS),
        key=lambda item: -item[0],
    )
    for count, reason in known[:_MOST_REASONS]:
        yield f"{count:,} because {_clause(reason)}"
    if rest := sum(tuned.ruled_out.values()) - sum(count for count, _ in known[:_MOST_REASONS]):
        yield f"{rest:,} for other reasons"


def _clause(reason: str) -> str:
    """A reason within a sentence: a text of a header, which begins as its author wants, or one of gpuprof."""
    word = reason.partition(" ")[0]
    text = reason[:1].lower() + reason[1:] if word in _OPENING else reason
    return text.rstrip(".")


Key = TypeVar("Key")

#: Bounds within this share are one: counts of a sample of blocks are no closer.
_ALIKE_BOUNDS = 1e-3


def tied(cases: Mapping[Key, Measurement], by: By) -> list[Key]:
    """The best of some cases, then those that cannot be told apart from it by what decides.

    By times those are it that are not slower for certain, by their rounds.
    """
    values = {key: value for key, case in cases.items() if (value := value_of(case, by)) is not None}
    order = sorted(values, key=lambda key: values[key])
    if not order:
        return []
    best = cases[order[0]]

    def is_near(key: Key) -> bool:
        if by == "time":
            times = times_of(best), times_of(cases[key])
            return all(each.medians_us for each in times) and judge(*times).verdict != "regressed"
        if by == "model" and best.model and (other := cases[key].model):
            return too_near(best.model, other)
        return values[key] <= values[order[0]] * (1 + _ALIKE_BOUNDS)

    return [order[0], *(key for key in order[1:] if is_near(key))]


def swept(run: Run, group: Group) -> tuple[tuple[str, TunedSize], ...]:
    """Every kernel of a group that ran at a size with several blocks or sets of parameters."""
    found = []
    for size in group.sizes if run.backend != "none" else ():
        for kernel in dict.fromkeys(case.kernel for case in size.cases):
            cases = [case for case in size.cases if case.kernel == kernel]
            if not is_reference(run, cases[0]) and not any(case.chosen for case in cases):
                found += [(kernel, points)] if (points := _points(run, size.heading, cases)) else []
    return tuple(found)


def _points(run: Run, label: str, cases: list[Measurement]) -> TunedSize | None:
    sets = {tuple(case.params.items()): case.block for case in cases}
    names = [name for name in cases[0].params if len({case.params.get(name) for case in cases}) > 1]
    # A block that follows from parameters tells nothing that they do not.
    with_block = any(sets[tuple(case.params.items())] != case.block for case in cases)
    if not names and not with_block:
        return None
    by: By = "time" if run.backend == "gpu" else basis_of(cases)
    ties, default = tied(dict(enumerate(cases)), by), dict(kernel_record(run, cases[0].kernel).parameters)
    return ranked(
        label,
        by,
        [
            TunedRow(
                case,
                values_of(case, names, with_block=with_block),
                value_of(case, by),
                number in ties,
                bool(default) and not with_block and dict(case.params) == default,
            )
            for number, case in enumerate(cases)
        ],
    )
