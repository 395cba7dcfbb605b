# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Give the launches of a report that was made by hand to the cases of an existing run."""

from collections.abc import Sequence
from pathlib import Path

from gpuprof.errors import InputError
from gpuprof.kernels.entries import function_name
from gpuprof.kernels.header import entry_in_header
from gpuprof.ncu.metrics import copies_in
from gpuprof.ncu.outcome import CaseProfile, NcuOutcome, combined, profile_of
from gpuprof.ncu.read import ProfiledLaunch
from gpuprof.records import grouped
from gpuprof.results import Measurement, Run
from gpuprof.text import Extent, format_extent

Key = tuple[str, Extent, Extent, int | None]
#: A case by its index in the run, and the number of one of its launches.
Place = tuple[int, int]


_FEWEST_REGISTERS = 16


def _device_of(run: Run, launches: Sequence[ProfiledLaunch], report: Path) -> int:
    """The first of a run's devices that a report can be of: cards of one kind count alike."""
    found = {launch.compute_capability for launch in launches} - {None}
    for number, device in enumerate(run.devices):
        if found <= {device.compute_capability}:
            return number
    held = ", ".join(dict.fromkeys(f"{device.name} ({device.compute_capability})" for device in run.devices))
    other = next(capability for capability in found if capability)
    raise InputError(
        f"{report.name} is of a GPU with compute capability {other}; the results are of {held}.",
        fix="Profile on the same kind of GPU.",
    )


def match_launches(
    run: Run, launches: Sequence[ProfiledLaunch], report: Path
) -> tuple[NcuOutcome, tuple[str, ...]]:
    """Find the case of each launch; of those that have none, what they are.

    A launch belongs to a case that ended well with the same kernel function, block, grid and registers. Where
    several cases look alike, such as sizes that differ in K only, the report must hold one launch for each
    case of the run in the run's order, or the launch is left out. A kernel that was chosen for a case, and is
    a case of its own too, needs one launch only.

    Raises:
        InputError: The report is of another kind of GPU, or no launch belongs to a case.
    """
    profiled = _device_of(run, launches, report)
    entries = {
        record.id: function_name(entry_in_header(record.source, record.id) or Path(record.file_name).stem)
        for record in run.kernels
    }
    keys = {
        (index, number): key
        for index, case in enumerate(run.cases)
        if case.outcome == "ok" and case.grid is not None and case.ran in entries and case.device == profiled
        for number, key in enumerate(_keys(case, entries[case.ran]))
    }
    found = _in_order(keys, launches) or _by_code(run, keys, launches)
    profiles: dict[int, CaseProfile] = {}
    for index in dict.fromkeys(index for index, _ in found):
        case = run.cases[index]
        held = [found.get((index, number)) for number in range(max(1, len(case.launches)))]
        own = [launch for launch in held if launch is not None]
        if len(own) == len(held):
            copies = copies_in(run.kernel(case.ran).source)
            largest = next(i for i, one in enumerate(own) if (one.block, one.grid) == (case.block, case.grid))
            profiles[index] = combined([profile_of(launch, copies) for launch in own], largest)
    if not profiles:
        raise InputError(
            f"No launch in {report.name} belongs to a case of the results for certain.",
            fix="A launch is found by its kernel function, block, grid and registers.",
        )
    taken = {id(launch) for launch in found.values()}
    left = tuple(_describe(launch) for launch in launches if id(launch) not in taken)
    return NcuOutcome(profiles, (report,)), left


def _keys(case: Measurement, entry: str) -> list[Key]:
    if case.launches:
        return [
            (function_name(one.entry), one.block, one.grid, one.resources.registers_per_thread)
            for one in case.launches
        ]
    assert case.grid is not None
    registers = case.resources.registers_per_thread if case.resources else None
    return [(entry, case.block, case.grid, registers)]


def _matches(key: Key, launch: ProfiledLaunch) -> bool:
    entry, block, grid, registers = key
    cell = launch.cells.get("launch__registers_per_thread")
    held = cell.value if cell else None
    # A launch is given at least 16 registers a thread, whatever the compiler used.
    same_code = registers is None or held is None or max(registers, _FEWEST_REGISTERS) == held
    return (function_name(launch.kernel), launch.block, launch.grid) == (entry, block, grid) and same_code


def _in_order(keys: dict[Place, Key], launches: Sequence[ProfiledLaunch]) -> dict[Place, ProfiledLaunch]:
    """One launch for each of the cases' in the run's order, or nothing."""
    if len(launches) != len(keys):
        return {}
    pairs = list(zip(keys.items(), launches, strict=True))
    if not all(_matches(key, launch) for (_, key), launch in pairs):
        return {}
    return {place: launch for (place, _), launch in pairs}


def _by_code(
    run: Run, keys: dict[Place, Key], launches: Sequence[ProfiledLaunch]
) -> dict[Place, ProfiledLaunch]:
    """Launches by what fits them alone, counting as one the cases that ran one kernel on one problem."""

    def same(place: Place) -> tuple[object, ...]:
        case = run.cases[place[0]]
        return case.ran, case.problem.key, tuple(case.params.items()), place[1], keys[place]

    alike = grouped(keys, same).values()
    found = _by_key({places[0]: keys[places[0]] for places in alike}, launches)
    return {place: found[places[0]] for places in alike if places[0] in found for place in places}


def _by_key(keys: dict[Place, Key], launches: Sequence[ProfiledLaunch]) -> dict[Place, ProfiledLaunch]:
    """Launches and cases that fit each other and nothing else."""
    found = {}
    for place, key in keys.items():
        own = [launch for launch in launches if _matches(key, launch)]
        rivals = [other for other in keys.values() if own and _matches(other, own[0])]
        if len(own) == 1 and len(rivals) == 1:
            found[place] = own[0]
    return found


def _describe(launch: ProfiledLaunch) -> str:
    return (
        f"{launch.kernel} with {format_extent(launch.block)} threads in {format_extent(launch.grid)} blocks"
        " fits no case, or several"
    )
