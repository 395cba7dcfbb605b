# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel's header says that its step moves, beside what this run measured of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpuprof.analysis import counters, numbers
from gpuprof.analysis.changes import RESOURCE_FIGURES, Change, Figure, change
from gpuprof.analysis.verdict import blocks_of
from gpuprof.kernels.header import Direction
from gpuprof.results import Measurement

#: A figure that moves by no more than this share of what it was stays.
STAYS = 0.02

#: Counts in which the executor goes first, because hardware adds the conflicts between instructions.
_CONFLICTS_OF = {"shared_load_bank_conflicts": "load", "shared_store_bank_conflicts": "store"}
#: A counter's name ends with its unit.
_WRITE_BY_UNIT: dict[str, Callable[[float], str]] = {
    "pct": numbers.percent,
    "gbps": numbers.gbps,
    "bytes": numbers.size,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure that a header says moves, or stays.

    Args:
        label: The figure.
        says: What the header says that it does.
        step: From what to what it went in this run, None where that was not measured.
        moved: What it did in this run; None where `step` is, and where hardware's own noise may explain it.
        reason: Why `step` is None.
    """

    label: str
    says: Direction
    step: Change | None = None
    moved: Direction | None = None
    reason: str = ""

    @property
    def contradicted(self) -> bool:
        """Whether the figure did something else in this run."""
        return self.moved is not None and self.moved != self.says


def claims(
    moves: Mapping[str, Direction], before: Measurement | None, after: Measurement, absent: str
) -> tuple[Claim, ...]:
    """Hold what a header says against two cases of the same problem.

    Args:
        moves: The header's words by figure.
        before: The case that the step starts from, None without one.
        after: The case of the kernel whose header it is.
        absent: Why there is no case to start from.
    """
    return tuple(_claim(name, says, before, after, absent) for name, says in moves.items())


def direction(old: float, new: float) -> Direction:
    """What a figure does that goes from one value to another."""
    if abs(new - old) <= STAYS * abs(old):
        return "stays"
    return "rises" if new > old else "falls"


def _claim(name: str, says: Direction, before: Measurement | None, after: Measurement, absent: str) -> Claim:
    figure = _figure(name)
    label = figure.label[:1].upper() + figure.label[1:]
    if before is None:
        return Claim(label, says, reason=absent)
    old, new = figure.read(before), figure.read(after)
    if old is None or new is None:
        return Claim(label, says, reason=_why_absent(name, before if old is None else after))
    moved = None if _is_arbitration(name, (before, after), old, new) else direction(old, new)
    return Claim(label, says, change(figure, old, new), moved)


def _figure(name: str) -> Figure:
    if name in RESOURCE_FIGURES:
        return RESOURCE_FIGURES[name]
    if name == "grid_blocks":
        return Figure("blocks in the grid", blocks_of, numbers.count)
    kind = _CONFLICTS_OF.get(name)
    write = _WRITE_BY_UNIT.get(name.rsplit("_", 1)[-1], numbers.count)
    return Figure(
        counters.info(name).label,
        lambda case: counters.address_conflicts(case, kind) if kind else counters.value(case, name),
        write,
    )


def _why_absent(name: str, case: Measurement) -> str:
    counter = counters.held(case).get(name)
    reasons = (
        (case.occupancy_reason, case.resources_reason)
        if name in RESOURCE_FIGURES
        else (counter.reason if counter else None, case.counters_reason)
    )
    return next((reason for reason in reasons if reason), f"{case.kernel} has no such figure")


def _is_arbitration(name: str, cases: tuple[Measurement, ...], old: float, new: float) -> bool:
    """True where what hardware adds when instructions contend for the pipe may be all that moved."""
    counted = [counter for case in cases if (counter := counters.held(case).get(name))]
    return (
        name in counters.SHARED_WAVEFRONTS
        and any(counter.source == "ncu" for counter in counted)
        and abs(new - old) <= counters.ARBITRATION * max(old, new)
    )
