# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Many cards side by side, of one results file or of many: which differ from the median, and why.

Runs are added one by one, and of each only a few numbers a case are kept: a fleet may be larger than the
memory that its files would take. What is found is a document; docs/fleet.schema.json is its schema.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Literal

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.figures import FIGURES, Subject
from gpuprof.analysis.status import name_of_case, on_host
from gpuprof.comparison.judging import times_of
from gpuprof.comparison.matching import of_launch
from gpuprof.comparison.outliers import CardSeries, FleetKind, Outlier, judge_cards, spread_of
from gpuprof.errors import InputError
from gpuprof.records import replace
from gpuprof.results import Measurement, Run, Tool
from gpuprof.schema import Count

#: The label by which several files are of one card: their rounds are then taken together.
CARD_LABEL = "card"
#: The label that names a card's machine.
HOST_LABEL = "host"
#: States of a condition that may have to do with a card's times.
_TELLING = ("disturbs", "broken")
#: What is read around cases: the text with a place for the median, the smallest distance from the others that
#: is worth telling, and whether that is a share; most telling first.
_READINGS = {
    "sm_clock_mhz": ("SM clock {:,.0f} MHz", 0.005, True),
    "memory_clock_mhz": ("memory clock {:,.0f} MHz", 0.005, True),
    "copy_gbps": ("copies {:,.0f} GB/s", 0.01, True),
    "temperature_c": ("{:,.0f} °C", 8.0, False),
    "power_w": ("{:,.0f} W", 0.08, True),
}
#: Robust standard deviations from which a reading differs from those of the others.
_UNLIKE = 4.0


class Card(Struct, frozen=True):
    """One card, without its times, as the results file says in which it was first met.

    `readings` are medians of what was read around its cases, by the key of `_READINGS`. `told` is what held
    its clocks back in more than one case of four, and what its driver said that makes times untrue.
    """

    model: str
    file: str
    labels: Mapping[str, str]
    versions: Mapping[str, str]
    readings: Mapping[str, float]
    told: tuple[str, ...]

    @classmethod
    def of(cls, run: Run, number: int, cases: Sequence[Measurement], file: str) -> "Card":
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
        return cls(
            device.name,
            file,
            dict(run.labels),
            {"gpuprof": run.tool.version, **run.environment, **place.environment},
            {key: float(median(values)) for key, values in known.items() if values},
            (
                *(f"held back: {why}" for why, count in reasons.most_common() if 4 * count > len(states)),
                *(f"{told.title}: {told.text}" for told in place.conditions if told.state in _TELLING),
            ),
        )

    def joined(self, other: "Card") -> "Card":
        """The same card of two files: what the first did not tell, the second may."""
        return replace(
            self,
            labels={**other.labels, **self.labels},
            readings={**other.readings, **self.readings},
            told=tuple(dict.fromkeys((*self.told, *other.told))),
        )

    def causes(self, kind: Iterable["Card"]) -> Iterator[str]:
        """What of it differs from most other cards of its kind; nothing of it is proof."""
        others = [card for card in kind if card is not self]
        for text in self.told:
            if 2 * sum(text in other.told for other in others) < len(others):
                yield text
        for key, (text, least, is_share) in _READINGS.items():
            values = [other.readings[key] for other in others if key in other.readings]
            if key not in self.readings or not values:
                continue
            usual = median(values)
            spread = _UNLIKE * spread_of(values) if len(values) > 2 else 0.0
            if abs(self.readings[key] - usual) >= max(least * usual if is_share else least, spread):
                yield f"{text.format(self.readings[key])} where others have {usual:,.0f}"
        for name, version in self.versions.items():
            counts = Counter(other.versions[name] for other in others if name in other.versions)
            for most, count in counts.most_common(1):
                if counts[version] < count:
                    yield f"{name} {version} where most have {most}"


class FailedCase(Struct, frozen=True):
    """A case without a time on a card where others have one."""

    card: str
    case: str
    reason: str


class FleetDocument(Struct, frozen=True):
    """What `gpuprof fleet --json` writes.

    Args:
        kinds: Models, that of most cards first.
        versions: Software of several versions, gpuprof itself included: how many cards have each.
        left_out: Files that say nothing of a fleet, with the reason.
    """

    schema_version: Literal[1]
    tool: Tool
    cards: Count
    kinds: tuple[FleetKind, ...]
    versions: Mapping[str, Mapping[str, Count]]
    failures: tuple[FailedCase, ...]
    left_out: Mapping[str, str]


class FleetRuns(Struct, frozen=True):
    """What a fleet's runs amount to, and its cards by their titles.

    `sources` are kernels of which the files hold several sources, which are judged apart.
    """

    found: FleetDocument
    cards: Mapping[str, Card]
    sources: tuple[str, ...]

    @property
    def confirmed(self) -> tuple[Outlier, ...]:
        return tuple(outlier for kind in self.found.kinds for outlier in kind.confirmed)

    @property
    def suspects(self) -> tuple[Outlier, ...]:
        """Cards with a slow case that one process may have caused: to be measured again."""
        return tuple(item for kind in self.found.kinds for item in kind.outliers if not item.confirmed)

    @property
    def headline(self) -> str:
        """For example `1,000 cards, 3 outliers`."""
        found, failed = len(self.confirmed), len(self.found.failures)
        words = [numbers.plural(self.found.cards, "card")]
        words.append(numbers.plural(found, "outlier") if found else "no outliers")
        if self.suspects:
            words.append(f"{len(self.suspects)} with a slow case that one process may have caused")
        if failed:
            words.append(f"{numbers.plural(failed, 'case')} failed")
        return ", ".join(words)


class FleetBuilder:
    """Takes in runs one by one; `tool` is what judges them."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._cards: dict[str, Card] = {}
        self._cases: dict[str, dict[tuple[Any, ...], CardSeries]] = defaultdict(dict)
        self._left_out: dict[str, str] = {}

    def leave_out(self, file: str, why: str) -> None:
        self._left_out[file] = why

    def add(self, run: Run, file: str, title: Callable[[int], str] | None = None) -> None:
        """Take in one run; nothing of it is kept but what a fleet is judged by.

        A card is called by its labels, else by its file; or by `title` of its number, where that is given.

        Raises:
            InputError: It names a card as another run does, which is of another model.
        """
        if run.backend != "gpu":
            self.leave_out(file, "nothing in it was measured on a GPU")
            return
        host_side = {record.id for record in run.kernels if record.on_host}
        for number in range(len(run.devices)):
            cases = [
                case
                for case in run.cases
                if case.device == number and not (case.kernel in host_side and on_host(run, case))
            ]
            if not cases:
                continue
            name = title(number) if title else self._title(run, number, file)
            card = Card.of(run, number, cases, file)
            known = self._cards.get(name)
            if known is not None and known.model != card.model:
                raise InputError(
                    f"{file} names its card {name}, as {known.file} does, but they are of two models:"
                    f" {known.model} and {card.model}.",
                    fix=f"Give every card a --label {CARD_LABEL} of its own.",
                )
            self._cards[name] = card if known is None else known.joined(card)
            for case in cases:
                self._add_case(run, card.model, name, case)

    def _title(self, run: Run, number: int, file: str) -> str:
        """What a card is called: by its label, its host's, or its file; unlike cards never share one."""
        label = run.labels.get(CARD_LABEL)
        gpu = f" GPU {number}" if len(run.devices) > 1 else ""
        if label:
            return f"{label}{gpu}"
        host = run.labels.get(HOST_LABEL) or run.place(number).host
        title = f"{host or file}{gpu}"
        return f"{host} ({file})" if host and title in self._cards else title

    def _add_case(self, run: Run, model: str, card: str, case: Measurement) -> None:
        key = (case.problem.key, case.kernel, *of_launch(case), case.source_hash)
        held = self._cases[model].get(key)
        if held is None:
            held = self._cases[model][key] = CardSeries(name_of_case(case))
        # What binds a case is no matter of the card, and takes long to work out.
        held.part = held.part or str(FIGURES["bound_by"].read(Subject(run, case)).value or "")
        times = times_of(case).medians_us
        if times:
            held.rounds_us.setdefault(card, []).extend(times)
        elif case.outcome not in ("ok", "skipped"):
            held.failures[card] = case.reason or f"it ended as {case.outcome}"

    def fleet(self) -> FleetRuns:
        """What the runs amount to; none is added afterwards.

        Raises:
            InputError: There is no card at all.
        """
        if not self._cards:
            why = "".join(f" {file}: {why}." for file, why in list(self._left_out.items())[:1])
            raise InputError(
                f"No run on a GPU is among them.{why}", fix="Name results files of runs on a GPU."
            )
        models = Counter(card.model for card in self._cards.values()).most_common()
        for model, _ in models:
            self._name_sources(model)
        failures = (
            FailedCase(card, case.name, why)
            for model, _ in models
            for case in self._cases[model].values()
            for card, why in case.failures.items()
            if any(other != card for other in case.rounds_us)
        )
        found = FleetDocument(
            1,
            self._tool,
            len(self._cards),
            tuple(self._kind(model) for model, _ in models),
            dict(self._versions()),
            tuple(failures),
            self._left_out,
        )
        sources = Counter((model, key[:-1]) for model, cases in self._cases.items() for key in cases)
        # The kernel is the second of what a case is told by, its source the last.
        several = dict.fromkeys(key[1] for (_, key), count in sources.items() if count > 1)
        return FleetRuns(found, self._cards, tuple(several))

    def _name_sources(self, model: str) -> None:
        """Give cases names of their own: of one kernel's several sources each says which."""
        counts = Counter(case.name for case in self._cases[model].values())
        for (*_, source), case in self._cases[model].items():
            case.name += f" ({source[:8]})" if counts[case.name] > 1 and source else ""

    def _kind(self, model: str) -> FleetKind:
        series = [case for case in self._cases[model].values() if case.rounds_us]
        cards = {title: card for title, card in self._cards.items() if card.model == model}
        judged = judge_cards(model, len(cards), series)
        outliers = []
        for outlier in judged.outliers:
            card = cards[outlier.card]
            causes = tuple(card.causes(cards.values()))
            outliers.append(replace(outlier, file=card.file, labels=card.labels, causes=causes))
        return replace(judged, outliers=tuple(outliers))

    def _versions(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Software of which the cards have several versions, the most frequent first."""
        cards = self._cards.values()
        for name in dict.fromkeys(name for card in cards for name in card.versions):
            counts = Counter(card.versions[name] for card in cards if name in card.versions)
            if len(counts) > 1:
                yield name, dict(counts.most_common())


def cards_of(run: Run) -> FleetRuns | None:
    """A run's own cards as a fleet; None where it timed no two of one model."""
    cards = Counter(run.devices[number].name for number in {case.device for case in run.cases if case.timing})
    if run.backend != "gpu" or max(cards.values(), default=0) < 2:
        return None
    builder = FleetBuilder(run.tool)
    builder.add(run, "", run.device_label)
    return builder.fleet()
