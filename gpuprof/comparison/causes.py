# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What else of a card differs from the others: clocks, heat, power, memory, versions."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from gpuprof.comparison.outliers import spread_of
from gpuprof.results import Measurement, Run

#: Robust standard deviations from which a reading is unlike those of the others.
_UNLIKE = 4.0


@dataclass(frozen=True, slots=True)
class Reading:
    """How a reading is told.

    Args:
        text: The reading, with a place for its value.
        least: Smallest distance that is worth telling, in its unit or as a share of the others' value.
        relative: Whether that is a share.
    """

    text: str
    least: float
    relative: bool = True


#: States of a condition that may have to do with a card's times.
_TELLING = ("disturbs", "broken")
#: Readings by their key in `Card.readings`, most telling first.
READINGS: dict[str, Reading] = {
    "sm_clock_mhz": Reading("SM clock {:,.0f} MHz", 0.005),
    "memory_clock_mhz": Reading("memory clock {:,.0f} MHz", 0.005),
    "copy_gbps": Reading("copies {:,.0f} GB/s", 0.01),
    "temperature_c": Reading("{:,.0f} °C", 8.0, relative=False),
    "power_w": Reading("{:,.0f} W", 0.08),
}


@dataclass(frozen=True, slots=True)
class Card:
    """One card, without its times.

    Args:
        title: What it is called in a fleet.
        model: As the driver names it.
        file: The results file that it was first met in.
        labels: Those of its run.
        versions: Of software, by its name.
        readings: Medians of what was read around its cases, by the key of `READINGS`.
        throttled: What held its clocks back in more than one case of four, in the driver's words.
        conditions: What its driver told before the first case that makes times untrue or needs mending.
    """

    title: str
    model: str
    file: str
    labels: Mapping[str, str]
    versions: Mapping[str, str]
    readings: Mapping[str, float]
    throttled: tuple[str, ...]
    conditions: tuple[str, ...] = ()

    def joined(self, other: "Card") -> "Card":
        """The same card of two files: what the first did not tell, the second may."""
        return replace(
            self,
            labels={**other.labels, **self.labels},
            readings={**other.readings, **self.readings},
            throttled=tuple(dict.fromkeys((*self.throttled, *other.throttled))),
            conditions=tuple(dict.fromkeys((*self.conditions, *other.conditions))),
        )


def facts_of(run: Run, number: int, cases: Sequence[Measurement], title: str, file: str) -> Card:
    """A card as its run found it.

    Args:
        run: The run.
        number: The card's among the run's devices.
        cases: Those that it measured.
        title: What it is called.
        file: Where the run is kept.
    """
    device, place = run.devices[number], run.place(number)
    states = [case.clocks.after for case in cases if case.clocks is not None and case.timing is not None]
    read: dict[str, list[float | None]] = {
        "sm_clock_mhz": [state.sm_mhz for state in states],
        "memory_clock_mhz": [state.memory_mhz for state in states],
        "temperature_c": [state.temperature_c for state in states],
        "power_w": [state.power_w for state in states],
        "copy_gbps": [device.measured_copy_bandwidth_gbps],
    }
    known = {key: [value for value in values if value is not None] for key, values in read.items()}
    reasons = Counter(reason for state in states for reason in state.throttle_reasons)
    return Card(
        title,
        device.name,
        file,
        dict(run.labels),
        {"gpuprof": run.tool.version, **run.environment, **place.environment},
        {key: float(median(values)) for key, values in known.items() if values},
        tuple(reason for reason, count in reasons.most_common() if 4 * count > len(states)),
        tuple(f"{told.title}: {told.text}" for told in place.conditions if told.state in _TELLING),
    )


def causes_of(card: Card, others: Collection[Card]) -> tuple[str, ...]:
    """What else of a card is unlike most cards of its kind, in words; nothing of it is proof.

    Args:
        card: The card.
        others: All cards of its kind; it may be among them.
    """
    return (
        *_held_back(card, others),
        *_conditions(card, others),
        *_readings(card, others),
        *_versions(card, others),
    )


def _held_back(card: Card, others: Collection[Card]) -> Iterator[str]:
    for reason in card.throttled:
        share = sum(reason in other.throttled for other in others) / len(others)
        if share < 0.5:
            yield f"held back: {reason}"


def _conditions(card: Card, others: Collection[Card]) -> Iterator[str]:
    for text in card.conditions:
        if 2 * sum(text in other.conditions for other in others) < len(others):
            yield text


def _readings(card: Card, others: Collection[Card]) -> Iterator[str]:
    for key, reading in READINGS.items():
        value = card.readings.get(key)
        values = [other.readings[key] for other in others if key in other.readings]
        if value is None or len(values) < 2:
            continue
        usual = median(values)
        distance = abs(value - usual)
        least = reading.least * usual if reading.relative else reading.least
        if distance >= max(least, _UNLIKE * spread_of(values) if len(values) > 2 else 0.0):
            yield f"{reading.text.format(value)} where others have {usual:,.0f}"


def _versions(card: Card, others: Collection[Card]) -> Iterator[str]:
    for name, version in card.versions.items():
        counts = Counter(other.versions[name] for other in others if name in other.versions)
        most, count = counts.most_common(1)[0]
        if version != most and counts[version] < count:
            yield f"{name} {version} where most have {most}"
