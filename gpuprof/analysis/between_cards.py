# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cards of one kind against each other: how far apart they are, which one is off, and what may be why.

Each card's times are held against the middle of its kind's, case by case; of two, which have no middle,
against the faster one's. What a card is said to be is the median over its cases, so that neither one noisy
kernel nor one long one decides.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from gpuprof.analysis import numbers
from gpuprof.analysis.speed import speed_of
from gpuprof.results import ClockState, Measurement, Run

#: A card so far off, as a share, is worth a word; steady cards of one kind differ by less.
NOTABLE = 0.02
#: How many times the spread that the others of its kind have among them, where they are enough to tell one.
_SPREADS = 4.0
_FEWEST_FOR_SPREAD = 5
#: Makes the median absolute deviation of a normal distribution its standard deviation.
_SIGMAS_PER_MAD = 1.4826
#: A reading so far from the other cards', as a share, may be why.
_NOTABLE_READING = 0.01
#: Times of fewer event floors than this are mostly floor, and say little of the card.
_FLOORS = 5.0


_CLOCKS: Mapping[str, Callable[[ClockState], int | None]] = {
    "SM clock": lambda state: state.sm_mhz,
    "memory clock": lambda state: state.memory_mhz,
}


@dataclass(frozen=True, slots=True)
class CardStanding:
    """One card among its kind.

    Args:
        device: Its number in the run.
        label: What tells it from the others.
        slower: How much more time it takes than the middle of its kind, as a share; negative where less.
        least: The same of the case in which it is fastest.
        most: The same of the case in which it is slowest.
        uncertainty: How much of it may be chance, as a share.
        is_outlier: Whether it is further off than chance and its kind's own spread allow.
        causes: What its readings say that the others' do not; empty where none explains it.
    """

    device: int
    label: str
    slower: float
    least: float
    most: float
    uncertainty: float
    is_outlier: bool
    causes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """For example `NVIDIA H200 (GPU 1) is 4.2 % slower than the fleet median: …`."""
        much = numbers.percent(100 * abs(self.slower))
        how = f"{self.label} is {much} {'slower' if self.slower > 0 else 'faster'} than the fleet median"
        return f"{how}: {'; '.join(self.causes) or 'no clock, power or throttling reading explains it'}."


@dataclass(frozen=True, slots=True)
class Kind:
    """Cards of one name in one run.

    Args:
        name: Their name.
        cases: How many cases all of them share.
        cards: Each of them, in the run's order.
    """

    name: str
    cases: int
    cards: tuple[CardStanding, ...]

    @property
    def spread(self) -> float:
        """From the fastest card to the slowest, as a share of the middle."""
        slower = [card.slower for card in self.cards]
        return max(slower) - min(slower)

    @property
    def outliers(self) -> tuple[CardStanding, ...]:
        """Those that are off."""
        return tuple(card for card in self.cards if card.is_outlier)

    @property
    def sentence(self) -> str:
        """For example `2 cards of NVIDIA H200 are within 0.4 % of each other over 12 cases.`."""
        cases = f"{self.cases} case{'' if self.cases == 1 else 's'}"
        much = numbers.percent(100 * self.spread)
        return f"{len(self.cards)} cards of {self.name} are within {much} of each other over {cases}."


def kinds_of_cards(run: Run) -> tuple[Kind, ...]:
    """Every kind of which the run timed more than one card."""
    by_name: dict[str, list[int]] = {}
    for number, device in enumerate(run.devices):
        by_name.setdefault(device.name, []).append(number)
    found = (_kind(run, name, numbers_) for name, numbers_ in by_name.items() if len(numbers_) > 1)
    return tuple(kind for kind in found if kind is not None)


def _kind(run: Run, name: str, devices: list[int]) -> Kind | None:
    times = {device: _times(run, device) for device in devices}
    held = [device for device in devices if times[device]]
    if len(held) < 2:
        return None
    shared = set.intersection(*(set(times[device]) for device in held))
    if not shared:
        return None
    ratios: dict[int, list[float]] = {device: [] for device in held}
    for key in shared:
        medians = [times[device][key][0] for device in held]
        middle = min(medians) if len(held) == 2 else median(medians)
        for device, one in zip(held, medians, strict=True):
            ratios[device].append(one / middle - 1.0)
    slower = {device: median(ratios[device]) for device in held}
    chance = {device: median([times[device][key][1] for key in shared]) for device in held}
    return Kind(
        name,
        len(shared),
        tuple(_standing(run, device, held, slower, ratios[device], chance[device]) for device in held),
    )


def _times(run: Run, device: int) -> dict[tuple[object, ...], tuple[float, float]]:
    """Each timed case's median in microseconds and its uncertainty, by what is the same on every card."""
    found: dict[tuple[object, ...], tuple[float, float]] = {}
    for case in run.cases:
        if case.device != device:
            continue
        speed = speed_of(run, case)
        if speed is None or speed.median_us < _FLOORS * (case.event_floor_us or 0.0):
            continue
        key = (case.kernel, case.problem.key, case.block, tuple(sorted(case.params.items())))
        found[key] = (speed.median_us, speed.timing.ci95_rel or 0.0)
    return found


def _standing(
    run: Run,
    device: int,
    devices: list[int],
    slower: Mapping[int, float],
    ratios: list[float],
    chance: float,
) -> CardStanding:
    others = [slower[other] for other in devices if other != device]
    middle = min(slower.values()) if len(devices) == 2 else median(slower.values())
    usual = 0.0
    if len(devices) >= _FEWEST_FOR_SPREAD:
        usual = _SPREADS * _SIGMAS_PER_MAD * median(abs(one - median(others)) for one in others)
    is_outlier = abs(slower[device] - middle) > max(NOTABLE, 2 * chance, usual)
    return CardStanding(
        device=device,
        label=run.device_label(device),
        slower=slower[device],
        least=min(ratios),
        most=max(ratios),
        uncertainty=chance,
        is_outlier=is_outlier,
        causes=tuple(_causes(run, device, [one for one in devices if one != device])) if is_outlier else (),
    )


def _causes(run: Run, device: int, others: list[int]) -> Iterator[str]:
    """What is different about a card: what its driver says is wrong, then heat, clocks and bandwidth."""
    elsewhere = {(one.title, one.state) for other in others for one in run.place(other).conditions}
    for condition in run.place(device).conditions:
        wrong = condition.state in ("disturbs", "broken")
        if wrong and (condition.title, condition.state) not in elsewhere:
            yield f"{condition.title}: {condition.text}"
    held = _throttling(run, device)
    common = set.intersection(*(_throttling(run, other) for other in others))
    if held - common:
        yield f"throttled while timing by {' and '.join(sorted(held - common))}"
    for what, read in _CLOCKS.items():
        own = _reading(run, device, read)
        theirs = [value for other in others if (value := _reading(run, other, read)) is not None]
        if own is not None and theirs and abs(own - median(theirs)) > _NOTABLE_READING * median(theirs):
            yield f"{what} while timing {own:,.0f} MHz, the others' {median(theirs):,.0f} MHz"
    copy = run.devices[device].measured_copy_bandwidth_gbps
    copies = [one for other in others if (one := run.devices[other].measured_copy_bandwidth_gbps)]
    if copy and copies and copy < (1 - NOTABLE) * median(copies):
        yield f"its memory copies {copy:,.0f} GB/s, the others' {median(copies):,.0f} GB/s"
    own_software = run.place(device).environment
    for name in ("driver", "cuda_driver_api", "nvrtc"):
        if name in own_software and all(name not in run.place(other).environment for other in others):
            yield f"{name} {own_software[name]}, the others' {run.environment.get(name, 'unknown')}"


def _timed(run: Run, device: int) -> list[Measurement]:
    return [case for case in run.cases if case.device == device and case.timing and case.clocks]


def _reading(run: Run, device: int, read: Callable[[ClockState], int | None]) -> float | None:
    """The median of a reading after each of a card's timed cases."""
    states = [case.clocks.after for case in _timed(run, device) if case.clocks]
    found = [value for state in states if (value := read(state)) is not None]
    return median(found) if found else None


def _throttling(run: Run, device: int) -> set[str]:
    """What held a card's clocks back in more than half of its timed cases."""
    timed = _timed(run, device)
    tally: dict[str, int] = {}
    for case in timed:
        assert case.clocks is not None
        for reason in {*case.clocks.before.throttle_reasons, *case.clocks.after.throttle_reasons}:
            tally[reason] = tally.get(reason, 0) + 1
    return {reason for reason, count in tally.items() if 2 * count > len(timed)}
