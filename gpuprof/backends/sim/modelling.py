# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the launches of a case counted together, and the time that is modelled of it."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpuprof.backends.base import Functions
from gpuprof.backends.compiling import occupancy_of
from gpuprof.backends.sim.executed import (
    ESTIMATES,
    ExecutedCase,
    atomics_remark,
    counters_of,
    lines_of,
    mistaken_shares,
    printed_remark,
    remarks_of,
    stands_elsewhere,
)
from gpuprof.backends.sim.instructions import (
    NoLink,
    Weighed,
    instruction_counters,
    weighed,
)
from gpuprof.backends.sim.launching import Launches
from gpuprof.backends.sim.watching import CacheWatch
from gpuprof.devices.card_constants import constants_of
from gpuprof.devices.device import Device
from gpuprof.executor import WARP, Buffer, GlobalMemory, LaunchResult, combined
from gpuprof.kernels.shape import ConfiguredCase
from gpuprof.machine_code.instruction_counts import count
from gpuprof.results import Model, ModelLine
from gpuprof.sm_model import Modelled, NotModelled, Place, PlayedLaunch, TrafficSites, modelled, traffic_of
from gpuprof.sm_model.control_words import control_words
from gpuprof.sm_model.traffic import SECTOR_BYTES

#: Shares of a modelled time that are worth keeping, by reason and of a line.
_LEAST_SHARE, _LEAST_LINE = 0.001, 0.005
#: Neighbouring bytes that one part of L2 holds.
_L2_PART = 512


def executed_case(
    launches: Launches,
    results: Sequence[LaunchResult],
    memory: GlobalMemory,
    buffers: Mapping[str, Buffer],
    watch: CacheWatch | None,
    unread: float | None = None,
) -> ExecutedCase:
    """What launches counted; their time is modelled where something watched the device's L1."""
    result, device, case = combined(results), launches.device, launches.case
    major, minor = device.capability
    links = [link() for link in launches.links]
    weights = weighed(links, results)
    instructions = weights if isinstance(weights, NoLink) else count(weights, 10 * major + minor)
    mistaken = launches.sampled and any(mistaken_shares(case.problem, buffers, result.stored))
    exact = result.exact_sample and not mistaken
    executed = ExecutedCase(
        *(launches, result, memory, buffers),
        {**counters_of(result, exact=exact), **instruction_counters(instructions, result, exact=exact)},
        None if exact else ESTIMATES.format(result.sampled_blocks, result.total_blocks),
        None if stands_elsewhere(case) else lines_of(result, instructions),
        (
            *remarks_of([launches.programs[one.entry] for one in case.launches], device),
            *result.remarks,
            *atomics_remark(links, result),
            *printed_remark(result),
        ),
        unread,
    )
    if watch is None:
        return executed
    play = partial(played, device, case, launches.compiled, weights, results, watch)
    return replace(executed, model=partial(model_of, play))


def model_of(play: Callable[[], Modelled]) -> tuple[Model | None, str | None]:
    """Return what is played as a modelled time, or the reason why there is none: no verdict depends on it."""
    try:
        found = play()
    except NotModelled as why:
        return None, str(why)
    except (ArithmeticError, LookupError, ValueError) as error:
        return None, f"the model could not play it: {type(error).__name__}: {error}"
    reasons = defaultdict(float, tail=found.tail, launch=found.launch)
    lines: dict[int, dict[str, float]] = defaultdict(dict)
    for (line, name), share in found.lines.items():
        reasons[name] += share
        if share >= _LEAST_SHARE:
            lines[line][name] = round(share, 4)
    return Model(
        found.us,
        found.low_us,
        found.high_us,
        {name: round(share, 4) for name, share in reasons.items() if share >= _LEAST_SHARE},
        tuple(
            ModelLine(line, round(share, 4), parts)
            for line, parts in sorted(lines.items())
            if line and (share := sum(parts.values())) >= _LEAST_LINE
        ),
    ), None


def played(
    device: Device,
    case: ConfiguredCase,
    compiled: Functions,
    weights: Weighed | NoLink,
    results: Sequence[LaunchResult],
    watch: CacheWatch,
) -> Modelled:
    """Play a case on a device.

    Raises:
        NotModelled: Something of it is not modelled, or not known for certain.
    """
    if isinstance(weights, NoLink):
        raise NotModelled(weights.reason)
    sites = [
        TrafficSites(
            link.code,
            [low for low, _ in times],
            link.sources,
            *_requests_of(result, watch, number),
            one.grid,
            device.sm_count * occupancy_of(device, one, compiled[one.entry]).blocks_per_sm,
        )
        for number, (one, (link, times), result) in enumerate(
            zip(case.launches, weights, results, strict=True)
        )
    ]
    written = sum(spec.nbytes for spec in case.problem.outputs)
    unwritten = constants_of(device).unwritten_bytes
    traffic = traffic_of(sites, case.problem.min_bytes - written, written, device.l2_bytes, unwritten)
    elsewhere, launches = stands_elsewhere(case), []
    for number, (one, (link, times), asked) in enumerate(zip(case.launches, weights, traffic, strict=True)):
        function, warps_each = compiled[one.entry], -(-math.prod(one.block) // WARP)
        words = control_words(function.cubin, function.entry)
        resident = occupancy_of(device, one, function).blocks_per_sm
        blocks = math.prod(one.grid)
        launches.append(
            PlayedLaunch(
                *(link.code, words, times, asked, blocks, warps_each, resident),
                sources={} if elsewhere else link.sources,
                handed_on=watch.handed_on[number],
                shared_bytes=function.static_shared_bytes + one.dynamic_shared_bytes,
                cluster=math.prod(function.block_limits.cluster),
            )
        )
    return modelled(launches, device)


def _requests_of(
    result: LaunchResult, watch: CacheWatch, launch: int
) -> tuple[Mapping[Place, Mapping[str, float]], Mapping[Place, tuple[int, ...] | None]]:
    """What was counted and seen of a launch's requests, and how blocks move, by place."""
    found: dict[Place, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    moving: dict[Place, tuple[int, ...] | None] = {}
    crowds: dict[Place, Sequence[Any]] = {}
    for site, counted in result.sites:
        for name, times in counted.items():
            found[site.ptx_line, site.family][name] += times
    for (number, where, reads), seen in watch.seen.items():
        if number == launch:
            place = where, "bulk_load" if reads else "bulk_store"
            if not seen["copies"]:
                site = result.sites[where][0]
                place = site.ptx_line, site.family
            for name, times in seen.items():
                found[place][f"seen_{name}"] += times
            moving[place] = watch.moving.get((number, where, reads))
            if turns := watch.turns.get((number, where, reads)):
                crowds[place] = turns
    _crowd(crowds, found)
    return found, moving


def _crowd(turns: Mapping[Place, Sequence[Any]], found: Mapping[Place, dict[str, float]]) -> None:
    """Note of atomic operations which share of their turns is that of the busiest sector, and part of L2."""
    if not turns:
        return
    each = [[np.concatenate(column) for column in zip(*noted, strict=True)] for noted in turns.values()]
    sectors, passes = (np.concatenate(column) for column in zip(*each, strict=True))
    of = np.repeat(np.arange(len(each)), [len(those) for those, _ in each])
    whole = np.bincount(of, passes)
    asked = np.array([found[place]["sectors"] for place in turns])
    for name, nbytes in (("sector", SECTOR_BYTES), ("part", _L2_PART)):
        which = np.unique(sectors * SECTOR_BYTES // nbytes, return_inverse=True)[1]
        busiest = which == np.bincount(which, passes * (asked / whole)[of]).argmax()
        shares = np.bincount(of[busiest], passes[busiest], len(each)) / whole
        for place, share in zip(turns, shares.tolist(), strict=True):
            found[place][f"seen_busiest_{name}"] = share
