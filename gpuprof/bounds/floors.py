# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Floors: exact counts over the highest rates that the hardware has.

Each floor asks what one part of the device needs if everything else were free and nothing ever waited for it.
The largest names what binds. What really happens takes longer, never less: rates are the published peaks at
boost clock, work that caches may absorb is left out of `least_us`, and blocks are spread over SMs as evenly
as whole blocks can be.
"""

from collections.abc import Iterator, Mapping

from gpuprof.bounds.parts import (
    BULK_READS,
    BULK_WRITES,
    DRAM,
    DRAM_BYTES,
    L2,
    LAUNCH,
    PARTS,
    READS,
    SECTOR_BYTES,
    SM_PARTS,
    WRITES,
    Part,
)
from gpuprof.devices.device import Device
from gpuprof.devices.measured import reached
from gpuprof.devices.rates import SmRate, sm_rates
from gpuprof.records import replace
from gpuprof.results import Bound, Counter, Measurement

#: Share of a bound below which a time is no measurement of that work. What lies between is within what
#: clocks, caches that were not quite empty and the events' resolution may differ by; reports say so.
_IMPOSSIBLE = 0.9
_NO_SPEED = "an impossible time gives no speed"
NO_COUNTS = "exact counts are missing: the executor did not count it"


def with_bounds(case: Measurement, device: Device) -> Measurement:
    """A case with its bounds on a device, or with the reason why it has none."""
    if case.outcome != "ok":
        return replace(case, bounds={}, bound_by=None, bounds_reason="the case did not succeed")
    bounds = floors(case, device)
    if not any(bound.counters for bound in bounds.values()):
        why = case.counters_reason if case.is_reference else NO_COUNTS
        return replace(case, bounds=bounds, bound_by=None, bounds_reason=why or NO_COUNTS)
    most = max(bounds, key=lambda key: bounds[key].least_us)
    least_us, model = bounds[most].least_us, case.model
    if model is not None:  # no modelled time is one that no launch can take
        model = replace(
            model,
            median_us=max(model.median_us, least_us),
            low_us=max(model.low_us, least_us),
            high_us=model.high_us * max(1.0, least_us / model.median_us),
        )
    return replace(case, bounds=bounds, bound_by=most, bounds_reason=None, model=model)


def floors(case: Measurement, device: Device) -> dict[str, Bound]:
    """The floor of each part of the device whose work and rate are known, in the order of `PARTS`."""
    everything = {**_known(case.counters), **_known(case.executor_counters)}
    counters = {name: counter for name, counter in everything.items() if not counter.is_estimate}
    found: dict[str, Bound] = {}
    rates = sm_rates(device)
    if device.sm_clock_mhz:
        for part in SM_PARTS:
            if part.key in rates:
                found.update(
                    (part.key, bound) for bound in _sm_floor(part, rates[part.key], counters, device)
                )
        if "l2_bytes" in rates:
            found.update((L2.key, bound) for bound in _l2_floor(case, rates["l2_bytes"], counters, device))
    if device.peak_bandwidth_gbps:
        found.update((DRAM.key, bound) for bound in _dram_floor(case, counters, device))
    for key, share in reached(device).items():
        if key in found:
            found[key] = replace(found[key], reachable_us=found[key].least_us / share)
    if case.event_floor_us:
        launches = max(1, len(case.launches))
        found[LAUNCH.key] = Bound(
            least_us=case.event_floor_us,
            formula=f"an empty kernel takes {case.event_floor_us:.3g} µs"
            + (f"; {launches} launches take no less" if launches > 1 else ""),
            source="measured in this run, by the same clock",
        )
    return found


def _known(counters: Mapping[str, Counter]) -> dict[str, Counter]:
    return {name: counter for name, counter in counters.items() if counter.value is not None}


def _sm_floor(part: Part, rate: SmRate, counters: Mapping[str, Counter], device: Device) -> Iterator[Bound]:
    """The floor of a part of the SM; nothing where its work is 0 or unknown."""
    # Where the machine code's total is only bounded, as of blocks that wait for each other, up to
    # 0.2 % more were derived of a pipe than a card executed: what the executor saw itself is never more.
    instructions = counters.get("warp_instructions")
    derived = instructions is not None and instructions.is_least
    for work in part.work:
        if derived and work is not part.work[-1] and work.counters[0].startswith("pipe_"):
            continue
        counted = [counters.get(name) for name in work.counters]
        values = [counter.value for counter in counted if counter is not None and counter.value is not None]
        if len(values) < len(work.counters):
            continue
        total = sum(values) * work.each
        if not total:
            return
        even = total / device.sm_count
        busiest = even
        if len(counted) == 1 and counted[0] is not None and counted[0].busiest_sm is not None:
            busiest = max(even, counted[0].busiest_sm * work.each)
        per_us = rate.per_cycle * device.sm_clock_mhz
        spread = (
            f"{_number(total)} {part.unit} / {device.sm_count} SMs"
            if busiest <= even
            else f"{_number(busiest)} {part.unit} on the busiest SM ({_number(even)} if spread evenly)"
        )
        yield Bound(
            least_us=busiest / per_us,
            formula=f"{spread} / {_number(rate.per_cycle)} per cycle / {_clock(device)}",
            source=rate.source,
            even_us=even / per_us if busiest > even else None,
            counters=work.counters,
        )
        return


def _l2_floor(
    case: Measurement, rate: SmRate, counters: Mapping[str, Counter], device: Device
) -> Iterator[Bound]:
    """Bytes between the SMs and L2. L1 may absorb loads, never the first of a byte, and no stores."""
    problem = case.problem
    outputs = problem.min_bytes if problem.output_bytes is None else problem.output_bytes
    first_reads = max(0, problem.min_bytes - outputs)
    reads = SECTOR_BYTES * _sum(counters, READS) + _sum(counters, (BULK_READS,))
    writes = SECTOR_BYTES * _sum(counters, WRITES) + _sum(counters, (BULK_WRITES,))
    least = max(min(first_reads, reads) if reads else first_reads, _sum(counters, (BULK_READS,)), writes)
    if not least or not (reads or writes):
        return
    most = max(reads, writes, least)
    per_us = rate.per_cycle * device.sm_count * device.sm_clock_mhz
    yield Bound(
        least_us=least / per_us,
        most_us=most / per_us if most > least else None,
        formula=f"{_number(least)} bytes{_up_to(least, most, 'L1')} / {_number(rate.per_cycle)} bytes per"
        f" cycle and SM / {device.sm_count} SMs / {_clock(device)}",
        source=rate.source,
        counters=tuple(name for name in (*READS, *WRITES) if name in counters),
    )


def _dram_floor(case: Measurement, counters: Mapping[str, Counter], device: Device) -> Iterator[Bound]:
    """Bytes of device memory: those that the problem cannot do without; results may stay in L2."""
    assert device.peak_bandwidth_gbps
    problem = case.problem
    outputs = problem.min_bytes if problem.output_bytes is None else problem.output_bytes
    needed = problem.min_bytes - min(outputs, device.l2_bytes, problem.min_bytes)
    measured = _sum(counters, DRAM_BYTES)
    asked = SECTOR_BYTES * _sum(counters, (*READS, *WRITES)) + _sum(counters, (BULK_READS, BULK_WRITES))
    least = max(needed, measured)
    if not least:
        return
    most = 0.0 if measured else asked
    per_us = device.peak_bandwidth_gbps * 1e3
    yield Bound(
        least_us=least / per_us,
        most_us=most / per_us if most > least else None,
        formula=f"{_number(least)} bytes{_up_to(least, most, 'the caches')} /"
        f" {_number(device.peak_bandwidth_gbps)} GB/s",
        source="theoretical bandwidth: 2 x memory clock x bus width"
        + ("; bytes as Nsight Compute measured them" if measured > needed else ""),
        counters=tuple(name for name in (*DRAM_BYTES, *READS, *WRITES) if name in counters),
    )


def _sum(counters: Mapping[str, Counter], names: tuple[str, ...]) -> float:
    return sum(counters[name].value or 0 for name in names if name in counters)


def _up_to(least: float, most: float, cache: str) -> str:
    return f" (up to {_number(most)} without hits in {cache})" if most > least else ""


def _number(value: float) -> str:
    """A count for a formula: whole from a thousand on, else four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _clock(device: Device) -> str:
    return f"{device.sm_clock_mhz / 1e3:.4g} GHz"


def without_impossible_time(case: Measurement) -> Measurement:
    """A case as it is, or refused where it took less than a part of the device needs for its work.

    Bounds count here that follow from the problem's own bytes, or from counts of the whole grid: those of a
    sample may be estimates. The launch does not: a time as short as an empty kernel's is no more than short.
    """
    median_us = case.timing.cold.median_us if case.timing and case.timing.cold else None
    bounds = {key: bound for key, bound in case.bounds.items() if _is_certain(case, key, bound)}
    if median_us is None or not bounds or case.outcome != "ok" or case.is_reference:
        return case
    key = max(bounds, key=lambda each: bounds[each].least_us)
    least = bounds[key].least_us
    if median_us >= _IMPOSSIBLE * least:
        return case
    reason = (
        f"Faster than possible: {median_us:.4g} µs, where its work takes {least:.4g} µs of"
        f" {PARTS[key].label} ({bounds[key].formula}). It skips work when it is timed, or its operation"
        " declares more bytes than it must move."
    )
    return replace(
        case,
        outcome="incorrect",
        reason=reason,
        timing=None,
        timing_reason=_NO_SPEED,
        throughput=None,
        throughput_reason=_NO_SPEED,
        bounds={},
        bound_by=None,
        bounds_reason="the case did not succeed",
    )


def _is_certain(case: Measurement, key: str, bound: Bound) -> bool:
    if key in (LAUNCH.key, DRAM.key):
        return key == DRAM.key
    counters = {**case.counters, **case.executor_counters}
    used = [counters[name] for name in bound.counters if name in counters]
    return bool(used) and all(one.sampled_blocks == one.total_blocks for one in used)
