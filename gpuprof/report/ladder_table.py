# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The steps of a ladder, and what each did: why a rung stands where it stands."""

from collections.abc import Iterator, Mapping

from gpuprof.analysis import numbers
from gpuprof.analysis.action_facts import Action
from gpuprof.analysis.figures import FIGURES, Figure, Subject
from gpuprof.analysis.ladder import Rung, SizeLadder
from gpuprof.analysis.limiter import Limiter, verdict
from gpuprof.analysis.limits import Limits
from gpuprof.analysis.models import disagreement, model_interval
from gpuprof.analysis.status import status_of
from gpuprof.report.document import Cell, Column, Row, Table, Tone
from gpuprof.results import Run


def steps_to(ladder: SizeLadder, winner: Rung) -> tuple[Rung, ...]:
    """The rungs from the first of its study to a winner, each compared with the one before it.

    A winner that chose another rung of the ladder is none itself: the steps lead to that one.
    """
    ran = (rung for rung in ladder.rungs if rung.kernel.id == winner.case.ran)
    found = [next(ran, winner)]
    while (before := found[-1].previous) and before not in [rung.kernel.id for rung in found]:
        found.append(ladder.rung(before))
    return tuple(reversed(found))


def steps_table(run: Run, ladder: SizeLadder, winner: Rung, anchors: Mapping[str, str]) -> Table | None:
    """What each step to the winner gained, and what moved; None where it is no step from any other."""
    steps = [rung for rung in steps_to(ladder, winner) if rung.previous]
    if not steps:
        return None
    timed = any(rung.gain is not None for rung in steps)
    befores = [ladder.rung(rung.previous or "") for rung in steps]
    modelled = all(rung.case.model for rung in (*befores, *steps))
    key = "gain" if timed else "model_us" if modelled else "bound_us"
    columns = (
        Column("Step", right=False),
        Column("From", right=False),
        Column({"gain": "Gain", "model_us": "Modelled", "bound_us": "Bound"}[key], term=key),
        Column("What moved", right=False, term="bound", folds=30),
    )
    rows = []
    for before, rung in zip(befores, steps, strict=True):
        moved_texts = rung.shifts or [change.text for change in rung.changes]
        rows.append(
            Row(
                (
                    Cell(rung.kernel.id, anchor=anchors[rung.kernel.id], code=True),
                    Cell(rung.previous, code=True),
                    _gain(rung) if timed else _from_to(FIGURES[key], run, before, rung),
                    Cell("; ".join(moved_texts) or "nothing recorded moved"),
                )
            )
        )
    return Table(columns, tuple(rows), f"Steps to {steps[-1].kernel.id} at {ladder.size.label}")


def _gain(rung: Rung) -> Cell:
    if rung.gain is None:
        return Cell("")
    tone: Tone = "muted" if not rung.gain_is_clear else "good" if rung.gain > 1 else "bad"
    sign = {"muted": "≈", "good": "▲", "bad": "▼"}[tone]
    return Cell(f"{sign} {numbers.ratio(rung.gain)}", tone=tone)


def _from_to(figure: Figure, run: Run, before: Rung, after: Rung) -> Cell:
    models = [rung.case.model for rung in (before, after) if rung.case.model and figure.key == "model_us"]
    if models:
        return Cell(" → ".join(map(model_interval, models)))
    read = [figure.read(Subject(run, rung.case, rung)) for rung in (before, after)]
    lacking = next((reading for reading in read if reading.value is None), None)
    if lacking is not None:
        return Cell(None, reason=lacking.reason or "exact counts are missing")
    return Cell(" → ".join(figure.write(float(reading.value or 0)) for reading in read))


def explanation(run: Run, rung: Rung) -> tuple[str, ...]:
    """Why a rung stands where it stands: its reason if it has no figures, else changes, then the limiter."""
    if not status_of(run, rung.case).usable:
        return (rung.case.reason or "No reason was recorded.",)
    return (*told_of(rung), *_moved(rung), *limit_lines(rung.limits, rung.limiter, rung.actions))


def told_of(rung: Rung) -> Iterator[str]:
    """What is said of it whatever its figures are, and that the model does not allow its time."""
    yield from rung.case.remarks
    if told := disagreement(rung.case):
        yield told


def _moved(rung: Rung) -> Iterator[str]:
    """What moved since the rung that it is compared with."""
    moved = rung.shifts if rung.limits else [change.text for change in rung.changes]
    if moved:
        yield f"vs {rung.previous}: {'; '.join(moved)}"
    elif rung.gain is not None and not rung.limits:
        what = "no recorded figure but the time moved" if rung.gain_is_clear else "nothing recorded moved"
        yield f"vs {rung.previous}: {what}"


def limit_lines(limits: Limits | None, limiter: Limiter | None, actions: tuple[Action, ...]) -> Iterator[str]:
    """What binds, where its work is done, and what less of it would allow."""
    if limits:
        yield verdict(limits, limiter)
    elif limiter:
        yield limiter.text
    if limits and limits.hot:
        yield f"line {limits.hot.line} causes {numbers.percent(limits.hot.share_pct)} of its work"
    if actions and (limits or actions[0].least_us is not None):  # that nothing was counted is said elsewhere
        yield f"next: {actions[0].text}"
