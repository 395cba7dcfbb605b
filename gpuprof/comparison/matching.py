# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which case of one run belongs to which of another, and what else differs between them and misleads."""

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from msgspec import Struct

from gpuprof.records import grouped
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent

#: Deviation of the SM clock from which times of one kernel are not comparable, and from which it is named.
_OTHER_CLOCK = 0.10
_NOTABLE_CLOCK = 0.02
#: What decides what a time includes, by the environment's key.
_DECISIVE = {
    "launch_gate": "the two decide whether launch gaps lie inside a time",
    "l2_flush": "dirty lines of a flush that writes are written back while the kernel runs",
}
#: What held where an older file does not tell.
_BEFORE = {"l2_flush": "read"}
#: Difference of what events take from which it is named, in microseconds.
_NOTABLE_EVENTS = 0.2
#: What the environment's keys are called.
SURROUNDINGS = {
    "python": "Python",
    "platform": "Operating system",
    "nvrtc": "Compiler (NVRTC)",
    "numpy": "NumPy",
    "driver": "Driver",
    "cuda_driver_api": "Driver's CUDA version",
    "cublas": "cuBLAS",
    "cublasLt": "cuBLASLt",
    "torch": "PyTorch",
    "ncu": "Nsight Compute",
    "executed_ptx": "PTX executed for",
    "launch_gate": "How launches are queued",
    "l2_flush": "How L2 is flushed",
}


class Difference(Struct, frozen=True):
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
            "times", clocks[0], clocks[1], "times of the older version include 2 to 3 µs of event overhead"
        )
    if base.seed != new.seed:
        yield Difference("seed", str(base.seed), str(new.seed))
    if base.complete != new.complete:
        ended = ["complete" if run.complete else "stopped early" for run in (base, new)]
        yield Difference("run", *ended)


def _events_taken_off(run: Run) -> float | None:
    """Microseconds of event overhead taken off each time; 0 for nothing, None where none was timed."""
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
    was, is_now = ({**_BEFORE, **run.environment} for run in (base, new))
    for key, old in was.items():
        now = is_now.get(key, old)  # what one of them lacks was not used there
        if old != now:
            yield Difference(SURROUNDINGS.get(key, key), old, now, _DECISIVE.get(key, ""))


def _apart(old: float | None, new: float | None, most: float) -> bool:
    return bool(old and new) and abs(float(new or 0) / float(old or 1) - 1) > most


Key = tuple[Any, ...]
KeyOf = Callable[[Run, Measurement], Key]


class Pair(Struct, frozen=True):
    """Two cases that are compared, or one alone; and in words what block or parameter differs."""

    base: Measurement | None
    new: Measurement | None
    moved: tuple[str, ...] = ()


def match(base: Run, new: Run) -> list[Pair]:
    """Pair the cases of two runs: those of the new run in its order, then those that only the base has.

    Cases belong together that agree in operation, sizes, element type, scalars, options, kernel, parameters,
    block and, in a run on several devices, the device: of several cards of one name the first belongs to the
    first. A kernel of which each run has just one case at a
    problem is paired too: then its block or its parameters were changed.
    """
    several = max(len(run.devices) for run in (base, new)) > 1

    def problem(run: Run, case: Measurement) -> Key:
        key = (case.problem.key, case.kernel)
        name = run.devices[case.device].name
        place = sum(other.name == name for other in run.devices[: case.device])
        return (*key, name, place) if several else key

    def whole(run: Run, case: Measurement) -> Key:
        return (*problem(run, case), *of_launch(case))

    olds = _indices(base, whole)
    # What occurs twice is paired first with first.
    of_new = {
        index: old
        for key, indices in _indices(new, whole).items()
        for old, index in zip(olds.get(key, ()), indices, strict=False)
    }
    moved: dict[int, tuple[str, ...]] = {}
    olds = _indices(base, problem)
    for key, indices in _indices(new, problem).items():
        candidates = olds.get(key, [])
        if len(indices) == len(candidates) == 1 and indices[0] not in of_new:
            of_new[indices[0]] = candidates[0]
            moved[indices[0]] = _moved(base.cases[candidates[0]], new.cases[indices[0]])
    pairs = [
        Pair(base.cases[of_new[index]] if index in of_new else None, case, moved.get(index, ()))
        for index, case in enumerate(new.cases)
    ]
    used = set(of_new.values())
    return [*pairs, *(Pair(case, None) for index, case in enumerate(base.cases) if index not in used)]


def of_launch(case: Measurement) -> Key:
    """Block and parameters, which tell cases of one kernel at one problem apart; nothing of a chosen one."""
    launch = case.block if case.has_launch and not case.chosen else None
    return launch, () if case.chosen else tuple(sorted(case.params.items()))


def _indices(run: Run, key: KeyOf) -> dict[Key, list[int]]:
    return grouped(range(len(run.cases)), lambda index: key(run, run.cases[index]))


def _moved(base: Measurement, new: Measurement) -> tuple[str, ...]:
    """What tells a case from another of the same kernel and problem."""
    moved = []
    if base.block != new.block:
        moved.append(f"block {format_extent(base.block)} → {format_extent(new.block)}")
    for name in dict.fromkeys((*base.params, *new.params)):
        old, now = base.params.get(name), new.params.get(name)
        if old != now:
            moved.append(f"{name} {'–' if old is None else old} → {'–' if now is None else now}")
    return tuple(moved)
