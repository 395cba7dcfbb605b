# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What differs between two runs besides the kernels, and whether that makes their comparison mislead."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from gpuprof.results import Run

#: Deviation of the SM clock from which times of one kernel are not comparable, and from which it is named.
_OTHER_CLOCK = 0.10
_NOTABLE_CLOCK = 0.02
#: What decides what a time includes, by the environment's key.
_DECISIVE = {"launch_gate": "the two decide whether launch gaps lie inside a time"}
#: Difference of what events take from which it is named, in microseconds.
_NOTABLE_EVENTS = 0.2
_LIBRARIES = {
    "nvrtc": "compiler (NVRTC)",
    "driver": "driver",
    "cuda_driver_api": "driver's CUDA version",
    "python": "Python",
    "numpy": "NumPy",
    "launch_gate": "how launches are queued",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """What two runs do not have in common; `misleads` says why that forbids comparing them, or is empty."""

    what: str
    base: str
    new: str
    misleads: str = ""

    @property
    def text(self) -> str:
        """For example `driver: 570.86 → 580.159`."""
        return f"{self.what}: {self.base} → {self.new}"


def differences(base: Run, new: Run) -> tuple[Difference, ...]:
    """Every difference between the surroundings of two runs, those that mislead first."""
    found = [*_devices(base, new), *_how(base, new), *_clocks(base, new), *_software(base, new)]
    return tuple(sorted(found, key=lambda item: not item.misleads))


def _devices(base: Run, new: Run) -> Iterator[Difference]:
    other = "another device has other times and other limits"
    names = [", ".join(dict.fromkeys(device.name for device in run.devices)) for run in (base, new)]
    if names[0] != names[1]:
        yield Difference("device", names[0], names[1], other)
        return
    for old, now in zip(base.devices, new.devices, strict=False):
        built = [f"{card.sm_count} SMs of {card.arch}" for card in (old, now)]
        if built[0] != built[1]:
            yield Difference("device", built[0], built[1], other)
        for what, was, is_now, why in (
            ("boost clock", old.sm_clock_mhz, now.sm_clock_mhz, "the device runs at another clock"),
            ("memory clock", old.memory_clock_mhz, now.memory_clock_mhz, "its memory runs at another clock"),
        ):
            if _apart(was, is_now, 0.005):
                yield Difference(what, f"{was:,.0f} MHz", f"{is_now:,.0f} MHz", why)


def _how(base: Run, new: Run) -> Iterator[Difference]:
    if base.backend != new.backend:
        words = {"gpu": "measured on a GPU", "sim": "executed on the CPU", "none": "compiled only"}
        why = (
            "one has times, the other does not"
            if "gpu" in (base.backend, new.backend)
            else "one counts nothing"
        )
        yield Difference("how", words[base.backend], words[new.backend], why)
    was, is_now = (_events_taken_off(run) for run in (base, new))
    if was and is_now and abs(is_now - was) > _NOTABLE_EVENTS:
        yield Difference("event overhead taken off each time", f"{was:.2f} µs", f"{is_now:.2f} µs")
    elif None not in (was, is_now) and bool(was) != bool(is_now):
        clocks = ["without event overhead" if taken else "with event overhead" for taken in (was, is_now)]
        yield Difference(
            "times", clocks[0], clocks[1], "times of the older version include 2 to 3 us of event overhead"
        )
    if base.seed != new.seed:
        yield Difference("seed", str(base.seed), str(new.seed))
    if base.complete != new.complete:
        ended = ["complete" if run.complete else "stopped early" for run in (base, new)]
        yield Difference("run", *ended)


def _events_taken_off(run: Run) -> float | None:
    """What is event overhead taken off each time themselves; 0 for nothing, None where none was timed."""
    timed = (case for case in run.cases if case.timing and case.event_floor_us)
    return next((case.event_pair_us or 0.0 for case in timed), None)


def _clocks(base: Run, new: Run) -> Iterator[Difference]:
    old, now = _sm_clock(base), _sm_clock(new)
    if old is not None and now is not None and _apart(old, now, _NOTABLE_CLOCK):
        why = "the SMs ran at another clock" if _apart(old, now, _OTHER_CLOCK) else ""
        yield Difference("SM clock while timing, median", f"{old:,.0f} MHz", f"{now:,.0f} MHz", why)
    throttled = [
        sum(bool(case.timing and case.timing.cold and case.timing.cold.throttled) for case in run.cases)
        for run in (base, new)
    ]
    if any(throttled):
        yield Difference("cases timed while throttled", *map(str, throttled))


def _sm_clock(run: Run) -> float | None:
    """The median of what the SM clock was after each timed case."""
    read = [case.clocks.after.sm_mhz for case in run.cases if case.clocks and case.timing]
    known = [clock for clock in read if clock]
    return median(known) if known else None


def _software(base: Run, new: Run) -> Iterator[Difference]:
    if base.tool.version != new.tool.version:
        yield Difference("gpuprof", base.tool.version, new.tool.version)
    for key, old in base.environment.items():
        now = new.environment.get(key, old)  # what one of them lacks was not used there
        if old != now:
            yield Difference(_LIBRARIES.get(key, key), old, now, _DECISIVE.get(key, ""))


def _apart(old: float | None, new: float | None, most: float) -> bool:
    return bool(old and new) and abs(float(new or 0) / float(old or 1) - 1) > most
