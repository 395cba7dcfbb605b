# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What could mislead a reader of a run on several devices: cards that were lost, are off, or differ."""

from collections.abc import Iterator

from gpuprof.analysis import numbers
from gpuprof.analysis.banner import Banner
from gpuprof.analysis.between_cards import NOTABLE, kinds_of_cards
from gpuprof.results import Run

#: What a place's environment tells of its card, and not of its machine.
_OF_THE_CARD = {"executed_ptx", "launch_gate"}


def card_banners(run: Run) -> Iterator[Banner]:
    """The cautions of a run's devices among each other; of a run on one only that it was lost."""
    yield from _lost(run)
    yield from _apart(run)
    yield from _unlike_software(run)


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
        + f" {right} {'case' if right == 1 else 'cases'} had finished by then; the others are marked.",
        "See gpuprof doctor there, and run what is missing again.",
    )


def _apart(run: Run) -> Iterator[Banner]:
    """How far cards of one kind are apart, and which of them is off."""
    kinds = kinds_of_cards(run)
    even = [kind.sentence for kind in kinds if not kind.outliers]
    if even:
        yield Banner("cards", "note", even[0].rstrip("."), " ".join((*even[1:], "None is an outlier.")))
    off = [(kind, card) for kind in kinds for card in kind.outliers]
    if not off:
        return
    told = [
        f"{card.sentence} Over {kind.cases} case{'' if kind.cases == 1 else 's'} it is from"
        f" {signed_percent(card.least)} to {signed_percent(card.most)}."
        for kind, card in off
    ]
    first = off[0][1]
    how = "slower" if first.slower > 0 else "faster"
    yield Banner(
        "card_outlier",
        "warning",
        f"{first.label} is {how} than the fleet median"
        if len(off) == 1
        else f"{len(off)} cards deviate from the fleet median",
        f"{' '.join(told)} A card is named from {100 * NOTABLE:.0f} % on, if statistically significant.",
        "See gpuprof doctor on its machine, and measure again.",
    )


def signed_percent(share: float) -> str:
    """For example `+0.4 %`."""
    return f"{'+' if share >= 0 else '−'}{numbers.percent(100 * abs(share))}"


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
