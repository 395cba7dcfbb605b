# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""All that could mislead a reader of a run: its own cautions, and devices that were lost, off or unlike."""

from collections.abc import Iterator

from gpuprof.analysis.banners import banners
from gpuprof.analysis.numbers import plural
from gpuprof.analysis.status import Banner
from gpuprof.comparison.fleet import cards_of
from gpuprof.results import Run

#: What a place's environment tells of its card, and not of its machine.
_OF_THE_CARD = {"executed_ptx", "launch_gate"}


def cautions(run: Run) -> tuple[Banner, ...]:
    """Everything that could mislead a reader of a run, gravest first."""
    return banners(run, (*_lost(run), *_apart(run), *_unlike_software(run)))


def _lost(run: Run) -> Iterator[Banner]:
    lost = [number for number in range(len(run.devices)) if run.place(number).lost is not None]
    if not lost:
        return
    labels = [run.device_label(number) for number in lost]
    right = sum(case.device in lost and case.outcome == "ok" for case in run.cases)
    yield Banner(
        "lost_device",
        "bad",
        f"{labels[0] if len(lost) == 1 else f'{len(lost)} devices'} lost during the run",
        " ".join(f"{label}: {run.place(number).lost}." for label, number in zip(labels, lost, strict=True))
        + f" {plural(right, 'case')} had finished by then; the others are marked.",
        "See gpuprof doctor there, and run what is missing again.",
    )


def _apart(run: Run) -> Iterator[Banner]:
    """Which of a run's own cards differ from those of their model."""
    fleet = cards_of(run)
    for kind in fleet.found.kinds if fleet else ():
        if kind.outliers:
            first, *others = kind.outliers
            how = f"{'is' if first.confirmed else 'was once'} {'slower' if first.change > 0 else 'faster'}"
            yield Banner(
                "card_outlier",
                "warning",
                f"{len(kind.outliers)} cards deviate from the fleet median"
                if others
                else f"{first.card} {how} than the fleet median",
                f"{'. '.join(f'{found.card} is {found.sentence}' for found in kind.outliers)}. {kind.facts}.",
                "See gpuprof doctor on its machine, and measure again.",
            )
        elif kind.cards > 1:
            yield Banner(
                "cards", "note", f"No card of {kind.name} differs from the others", f"{kind.facts}.", ""
            )


def _unlike_software(run: Run) -> Iterator[Banner]:
    """What decides times and is not the same on all machines of a run."""
    found = [
        (number, name, text)
        for number in range(len(run.devices))
        for name, text in run.place(number).environment.items()
        if name not in _OF_THE_CARD
    ]
    if not found:
        return
    names = dict.fromkeys(name for _, name, _ in found)
    here = ", ".join(f"{name} {run.environment.get(name, 'unknown')}" for name in names)
    there = "; ".join(f"{run.device_label(number)}: {name} {text}" for number, name, text in found)
    yield Banner(
        "unlike_software",
        "warning",
        "The machines of this run have different software",
        f"{there}; elsewhere {here}. Times and counts may differ because of that.",
        "Install the same versions, or compare within a machine.",
    )
