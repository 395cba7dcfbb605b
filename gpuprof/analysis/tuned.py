# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search found, size by size: its points with their figures, who is tied, what was ruled out."""

from dataclasses import dataclass

from gpuprof.analysis import numbers
from gpuprof.analysis.speed import speed_of
from gpuprof.results import Measurement, Run, Tuned, TunedPoint, Tuning
from gpuprof.text import format_extent

#: How a point's block is called among its values.
BLOCK = "block"
#: Reasons that a sentence names.
_MOST_REASONS = 3
#: Points that a sentence names.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class TunedRow:
    """One point that was timed or counted.

    Args:
        case: What came of it.
        values: Of what was searched, as typed: `{"BM": "64", "block": "32x8"}`.
        value_us: Its time, or its bound; None where it has none.
        is_tied: Whether it is the best, or cannot be told apart from it.
        is_default: Whether it is the header's.
    """

    case: Measurement
    values: dict[str, str]
    value_us: float | None
    is_tied: bool
    is_default: bool


@dataclass(frozen=True, slots=True)
class TunedSize:
    """One size of a search.

    Args:
        tuned: What the results file says of it.
        names: What was searched, in order: parameters of any of the kernels, and `block`.
        several: Whether several kernels were searched.
        rows: Points with a figure, the best first.
        wrong: Points without one: wrong results, failures, time-outs.
    """

    tuned: Tuned
    names: tuple[str, ...]
    several: bool
    rows: tuple[TunedRow, ...]
    wrong: tuple[TunedRow, ...]

    @property
    def label(self) -> str:
        """The size as a user types it."""
        return self.tuned.problem.label

    @property
    def by_time(self) -> bool:
        """Whether times decided; else bounds did, and nothing was timed."""
        return self.tuned.by == "time"

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
        """Points that were not ruled out."""
        return self.tuned.combinations - sum(self.tuned.ruled_out.values())


def tuned_sizes(run: Run) -> tuple[TunedSize, ...]:
    """Every size of a search; none of a run that is no search."""
    tuning = run.tuning
    if tuning is None:
        return ()
    return tuple(_size(run, tuning, tuned) for tuned in tuning.sizes)


def _size(run: Run, tuning: Tuning, tuned: Tuned) -> TunedSize:
    blocks = {*tuning.blocks}
    names = tuple(dict.fromkeys(name for held in tuning.values.values() for name in held))
    ties = {_identity(point, blocks) for point in tuned.ties}
    rows = []
    for case in run.cases:
        if case.is_reference or case.problem.sizes != tuned.problem.sizes:
            continue
        default = dict(run.kernel(case.kernel).parameters)
        own = tuning.blocks.get(case.kernel, (case.block,))[0]
        rows.append(
            TunedRow(
                case,
                _values(case, tuning, searched_block=case.kernel in blocks),
                _value(run, case, tuned),
                _identity(case, blocks) in ties,
                dict(case.params) == default and case.block == own,
            )
        )
    good = sorted((row for row in rows if row.value_us is not None), key=lambda row: row.value_us or 0.0)
    return TunedSize(
        tuned,
        (*names, *((BLOCK,) if blocks else ())),
        len(tuning.values) > 1,
        tuple(sorted(good, key=lambda row: not row.is_tied)),
        tuple(row for row in rows if row.value_us is None),
    )


def _value(run: Run, case: Measurement, tuned: Tuned) -> float | None:
    if case.outcome != "ok":
        return None
    if tuned.by == "bound":
        return case.bounds[case.bound_by].least_us if case.bound_by else None
    speed = speed_of(run, case)
    return speed.median_us if speed else None


def _values(case: Measurement | TunedPoint, tuning: Tuning, *, searched_block: bool) -> dict[str, str]:
    values = {
        name: str(case.params[name]) for name in tuning.values.get(case.kernel, {}) if name in case.params
    }
    return {**values, BLOCK: format_extent(case.block)} if searched_block else values


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
    """Who is best, by how much, and who is tied."""
    if not size.rows:
        return "no point gave a figure" + (f"; {len(size.wrong)} went wrong" if size.wrong else "")
    best = size.rows[0]
    assert best.value_us is not None
    value = numbers.time_us(best.value_us)
    told = f"{typed(best, several=size.several)}, {value if size.by_time else f'a bound of {value}'}"
    default = size.default
    if default is not None and default.value_us is not None:
        if default.is_tied:
            told += "; the header's values are " + ("that" if default is best else "as good")
        elif size.by_time:
            told += f"; {numbers.ratio(default.value_us / best.value_us)} as fast as the header's values"
        else:
            told += f"; that of the header's values is {numbers.time_us(default.value_us)}"
    return f"best is {told}"


def tie_sentence(size: TunedSize) -> str:
    """Who cannot be told apart from the best; empty where it stands alone."""
    others = size.ties[1:]
    if not others:
        return ""
    named = ", ".join(typed(row, several=size.several) for row in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    how = "cannot be told apart from it" if size.by_time else "share its bound"
    count = "1 point" if len(others) == 1 else f"{len(others)} points"
    return f"{count} {how if len(others) > 1 or size.by_time else 'shares its bound'}: {named}{more}"


def space_sentence(size: TunedSize) -> str:
    """How large the space is, what was ruled out and why, and how much of the rest was looked at."""
    tuned = size.tuned
    out = sum(tuned.ruled_out.values())
    told = f"{tuned.combinations:,} combinations; {size.allowed:,} can run"
    what = "timed" if size.by_time else "counted"
    told += f", of which {tuned.evaluated:,} {'was' if tuned.evaluated == 1 else 'were'} {what}"
    if tuned.uncompiled:
        told += f" and {tuned.uncompiled:,} not compiled for want of time: the same command goes on"
    if out:
        reasons = sorted(tuned.ruled_out.items(), key=lambda item: -item[1])
        named = "; ".join(f"{count:,}: {reason.rstrip('.')}" for reason, count in reasons[:_MOST_REASONS])
        told += f". Ruled out without a launch were {out:,}: {named}"
        told += f"; {len(reasons) - _MOST_REASONS} more reasons" if len(reasons) > _MOST_REASONS else ""
    return told


def searched_values(size: TunedSize) -> list[tuple[str, list[str]]]:
    """What differs between the points that have a figure: each name with its values in order."""
    found = []
    for name in size.names:
        values = {row.values[name] for row in size.rows if name in row.values}
        if len(values) > 1:
            found.append((name, sorted(values, key=_order)))
    return found


def _order(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x"))
