# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What headers say that a step moves, held against what it did."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpuprof.analysis import counts
from gpuprof.analysis.changes import FigureChange
from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES, counter_figure
from gpuprof.results import Direction, Measurement, Run

#: A figure that moves by no more than this share of what it was stays.
STAYS = 0.02
#: Counts in which the executor goes first, because hardware adds the conflicts between instructions.
_CONFLICTS_OF = {"shared_load_bank_conflicts": "load", "shared_store_bank_conflicts": "store"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure that a header says moves, or stays.

    `step` is what it did in this run, None where that was not measured, for a reason; `moved` the same in a
    word, None too where hardware's own noise may explain it.
    """

    label: str
    says: Direction
    step: FigureChange | None = None
    moved: Direction | None = None
    reason: str = ""

    @property
    def contradicted(self) -> bool:
        """Whether the figure did something else in this run."""
        return self.moved is not None and self.moved != self.says


def claims(
    run: Run, moves: Mapping[str, Direction], before: Measurement | None, after: Measurement, absent: str
) -> tuple[Claim, ...]:
    """Hold what a header says against two cases of the same problem; `absent` is why there is no first."""
    start = Subject(run, before) if before else None
    return tuple(_claim(name, says, start, Subject(run, after), absent) for name, says in moves.items())


def direction(old: float, new: float) -> Direction:
    """What a figure does that goes from one value to another."""
    if abs(new - old) <= STAYS * abs(old):
        return "stays"
    return "rises" if new > old else "falls"


def _claim(name: str, says: Direction, before: Subject | None, after: Subject, absent: str) -> Claim:
    figure = FIGURES.get(name) or counter_figure(name)
    label = figure.label if figure.group == "Counters" else figure.phrase[:1].upper() + figure.phrase[1:]
    if before is None:
        return Claim(label, says, reason=absent)
    old, new = (_value(figure, subject) for subject in (before, after))
    if old is None or new is None:
        missing = before if old is None else after
        reason = figure.read(missing).reason or f"{missing.case.kernel} has no such figure"
        return Claim(label, says, reason=reason)
    cases = (before.case, after.case)
    moved = None if _is_arbitration(name, cases, old, new) else direction(old, new)
    return Claim(label, says, FigureChange(figure, old, new), moved)


def _value(figure: Figure, subject: Subject) -> float | None:
    kind = _CONFLICTS_OF.get(figure.key)
    return counts.address_conflicts(subject.case, kind) if kind else figure.value(subject)


def _is_arbitration(name: str, cases: tuple[Measurement, ...], old: float, new: float) -> bool:
    """True where what hardware adds when instructions contend for the pipe may be all that moved."""
    counted = [counter for case in cases if (counter := counts.held(case).get(name))]
    return (
        name in counts.SHARED_WAVEFRONTS
        and any(counter.source == "ncu" for counter in counted)
        and abs(new - old) <= counts.ARBITRATION * max(old, new)
    )
