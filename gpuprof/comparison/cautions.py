# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Everything that could mislead a reader of a run, each with measured against threshold and the fix."""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping

from msgspec import Struct

from gpuprof.analysis import counts, numbers
from gpuprof.analysis.counts import has_any, sampled
from gpuprof.analysis.numbers import plural
from gpuprof.analysis.speed import NOISE_LIMIT, is_noisy, speed_of
from gpuprof.analysis.status import Banner, exceeded_limit, is_reference, name_of_case, on_host, status_of
from gpuprof.comparison.fleet import cards_of
from gpuprof.counters import COUNTERS, describe
from gpuprof.records import replace
from gpuprof.results import Clocks, ClockState, Counter, Measurement, Run
from gpuprof.text import ABSENT_HEADER, listed

#: Nsight Compute shows two digits of a percentage.
_ROUNDING_PCT = 0.006
#: The L1 cache's own count of sectors, taken in another pass than the rest, was off by up to 0.38 %.
_PASSES = 0.005
_L1_COUNT = "l1tex__t_sectors"
#: Accesses whose wavefronts and bank conflicts explain each other.
_SHARED = ("shared_load", "shared_store")
#: Operations of the largest product that `mma.sync` makes in one instruction: `wgmma`, whose operands lie in
#: shared memory, makes several times as many.
_MMA_OPERATIONS = 2 * 16 * 8 * 16
#: The executor counts branches of the PTX that machine code has too; lanes may part at ptxas' own.
_INCOMPARABLE = "branch_divergent_warps"
#: Of copies whose size is in a register, as `cp.async … 16, %size` says, Nsight Compute counts fewer in some
#: kernels, and others in a second run; the cause is not known.
_OF_PREDICATED = ("async_copy_sectors", "async_copy_shared_wavefronts")
_COPY = re.compile(r"\bcp\.async\.c[ag]\.")
_PREDICATED = re.compile(r"\bcp\.async\.c[ag]\.[\w.:]+\s*\[[^;\]]*\]\s*,\s*\[[^;\]]*\]\s*,\s*\d+\s*,\s*%")


class CounterDifference(Struct, frozen=True):
    """One counter of one case that executor and hardware count differently, without a known reason."""

    case: Measurement
    label: str
    executor: float
    hardware: float

    @property
    def pct(self) -> float | None:
        """Hardware over executor, in percent; None where the executor counted none."""
        return 100.0 * (self.hardware - self.executor) / self.executor if self.executor else None


def differences(run: Run) -> tuple[CounterDifference, ...]:
    """Every difference that is not explained, in the order measured."""
    sources = {kernel.id: kernel.source or "" for kernel in run.kernels}
    return tuple(
        CounterDifference(case, describe(name).label, *values)
        for case in run.cases
        for name, values in _unexplained(case, sources.get(case.ran, ""))
    )


def _unexplained(case: Measurement, source: str) -> Iterator[tuple[str, tuple[float, float]]]:
    """Counters that differ without a known reason, each with what the executor and the hardware counted."""
    ours, theirs = case.executor_counters, case.counters
    both = {
        name: (executor, hardware)
        for name in COUNTERS
        if name in ours
        and name in theirs
        and theirs[name].source == "ncu"
        and (executor := ours[name].value) is not None
        and (hardware := theirs[name].value) is not None
    }
    waits = "warp_instructions" in ours and ours["warp_instructions"].has_waits
    for name, (executor, hardware) in both.items():
        if name.startswith(_SHARED) or _is_explained(name, ours[name], theirs[name], waits=waits):
            continue
        # Of code in files that it includes nothing is recorded.
        fewer = name in _OF_PREDICATED and hardware < executor
        if not (fewer and (_PREDICATED.search(source) or not _COPY.search(source))):
            yield name, both[name]
    for space in _SHARED:
        names = (f"{space}_wavefronts", f"{space}_bank_conflicts")
        late = space == "shared_load" and _multiplies_from_shared(ours)
        if both.keys() >= {*names} and not _explain_each_other(*map(both.__getitem__, names), late=late):
            yield from ((name, both[name]) for name in names)


def _is_explained(name: str, ours: Counter, theirs: Counter, *, waits: bool) -> bool:
    """Whether two counts agree, or differ by what is known to tell them apart."""
    executor, hardware = ours.value or 0.0, theirs.value or 0.0
    difference = abs(hardware - executor)
    if name == _INCOMPARABLE or difference <= (_ROUNDING_PCT if name.endswith("_pct") else 0):
        return True
    if (theirs.metric or "").startswith(_L1_COUNT) and difference <= _PASSES * executor:
        return True
    # Neighbouring instructions lose cycles to each other, which count as conflicts; waiting threads poll
    # again and again, and machine code has slow paths that the PTX does not show.
    polls = ours.is_least or (waits and name.startswith("pipe_"))
    return hardware > executor and (polls or name == "async_copy_shared_bank_conflicts")


def _multiplies_from_shared(counters: Mapping[str, Counter]) -> bool:
    """Whether a kernel's products read shared memory themselves, as those of `wgmma` do."""
    held = {name: counter.value or 0 for name, counter in counters.items()}
    operations = sum(held.get(f"tensor_{kind}_operations", 0) for kind in ("f16", "bf16", "tf32", "e4m3"))
    return operations > _MMA_OPERATIONS * held.get("hmma_instructions", 0)


def _explain_each_other(
    wavefronts: tuple[float, float], conflicts: tuple[float, float], *, late: bool
) -> bool:
    """Whether wavefronts and bank conflicts differ only by what the hardware adds.

    What is left of the one without the other is decided by a kernel's addresses alone. The hardware adds
    cycles that neighbouring instructions lose to each other, and counts them among the bank conflicts. Those
    that loads are `late` by, as tensor cores read shared memory, it counts as wavefronts alone: an H200
    counted 5,523 for 4,096 loads without a conflict beside 1,024 `wgmma`, and 4,096 without them.
    """
    (executor, hardware), (ours, theirs) = wavefronts, conflicts
    surplus = theirs - ours
    if late and hardware - theirs >= executor - ours and surplus >= 0:
        return True
    return executor - ours == hardware - theirs and 0 <= surplus <= counts.ARBITRATION * hardware


#: What a place's environment tells of its card, and not of its machine.
_OF_THE_CARD = {"executed_ptx", "launch_gate"}
#: Share of the boost clock, which the theoretical compute peak assumes, below which a banner says so.
CLOCK_LIMIT = 0.95
#: Share of a problem's bytes below which sectors cannot be rounding.
_LEAST_OF_WORK = 0.99
#: How a log names a header that was found nowhere.
_ABSENT = re.compile(rf'"([^"\n]+) {ABSENT_HEADER}"')
#: Clock limits that make a time worthless, as against a power cap, which is normal at full load.
_DISTURBING = ("slowdown", "brake")


def cautions(run: Run) -> tuple[Banner, ...]:
    """All that a reader must know before believing a run, gravest first."""
    parts = (
        *(_incomplete, _lost, _apart, _unlike_software, _mode, _outcomes, _unverified, _throttled),
        *(_beyond_peak, _too_much_work, _noise, _clocks, _counters, _disagreement, _absent_headers),
    )
    found = [banner for part in parts for banner in part(run)]
    return tuple(sorted(found, key=lambda banner: ("bad", "warning", "note").index(banner.level)))


def _absent_headers(run: Run) -> Iterator[Banner]:
    """What kernels include, found nowhere, that they compile without."""
    found = dict.fromkeys(name for case in run.cases for name in _ABSENT.findall(case.log or ""))
    if found:
        title = f"{listed([*found], 4)} not found, and taken as empty"
        fix = "If kernels need it, name its folder: -I DIR."
        yield Banner("absent_header", "warning", title, "What it defines is missing.", fix)


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


def _some(cases: list[Measurement]) -> str:
    return listed([*map(name_of_case, cases)], 3)


def _incomplete(run: Run) -> Iterator[Banner]:
    if not run.complete:
        yield Banner(
            "incomplete",
            "warning",
            "The run did not finish",
            f"{plural(len(run.cases), 'case')} recorded before it stopped; the others are missing here.",
            "Give the same command once more with --resume and this folder."
            if run.asked
            else "Run it again.",
        )
    elif not run.cases:
        yield Banner(
            "empty", "warning", "Nothing was measured", "The run holds no cases.", "Name at least one kernel."
        )


def _mode(run: Run) -> Iterator[Banner]:
    why = (run.backend_reason or "").rstrip(".")
    why = f"{why[:1].upper()}{why[1:]}. " if why else ""
    cards = " and ".join(dict.fromkeys(device.name for device in run.devices))
    if run.backend == "sim":
        yield Banner(
            "sim",
            "warning",
            "Executed without a GPU: not timed",
            f"{why}Results are exact and counts follow the rules of {cards}. Kernels are compared by modelled"
            " times, and where there is none by their bounds: the least time that those counts allow.",
            "For times, run it where there is an NVIDIA GPU, without --device sim or --arch.",
        )
    elif run.backend == "none":
        yield Banner(
            "compiled",
            "warning",
            "Compiled only: no kernel ran",
            f"{why}Registers, shared memory, spills and theoretical occupancy come from the compiler. Neither"
            " correctness nor speed was checked.",
            "Use --device sim to execute without a GPU, or a machine with one for times.",
        )


def _outcomes(run: Run) -> Iterator[Banner]:
    wrong = [case for case in run.cases if case.outcome == "incorrect"]
    if wrong:
        yield Banner(
            "incorrect",
            "bad",
            f"{plural(len(wrong), 'case')} computed a wrong result",
            f"{_some(wrong)}{_worst_error(wrong)}. A wrong kernel gets no speed.",
            "The kernel's section names the first wrong element.",
        )
    ended = [case for case in run.cases if case.outcome in ("failed", "timeout")]
    stopped = [case for case in ended if not case.over_limit]
    if stopped:
        tally = Tally(status_of(run, case).word for case in stopped)
        counts = ", ".join(f"{count} {word}" for word, count in sorted(tally.items()))
        yield Banner(
            "failed",
            "bad",
            f"{plural(len(stopped), 'case')} of {len(run.cases)} did not run to the end ({counts})",
            f"{_some(stopped)}. All other cases are unaffected.",
            "Each row states its reason.",
        )
    over = [case for case in ended if case.over_limit]
    if over:
        limits = " or the ".join(dict.fromkeys(map(exceeded_limit, over)))
        yield Banner(
            "over_limit",
            "note",
            f"{plural(len(over), 'case')} {'exceeds' if len(over) == 1 else 'exceed'} the {limits}",
            f"{_some(over)}. All other cases are unaffected.",
            "Choose a smaller size or block for it.",
        )


def _worst_error(wrong: list[Measurement]) -> str:
    """The largest known error against its bound; a NaN has none."""
    known = [
        (found.max_rel_error, found.bound)
        for case in wrong
        if (found := case.verification) and found.max_rel_error is not None
    ]
    if not known:
        return ""
    error, bound = max(known)
    return f": largest relative error {error:.1e} (bound {bound:.1e})"


def _unverified(run: Run) -> Iterator[Banner]:
    blind = [case for case in run.cases if case.outcome == "ok" and case.verification is None]
    if blind:
        reason = next((case.verification_reason for case in blind if case.verification_reason), None)
        yield Banner(
            "unverified",
            "warning",
            f"{plural(len(blind), 'case')} not verified",
            f"{_some(blind)}: {reason or 'no reason was recorded'}.",
        )


def _states(clocks: Clocks | None) -> tuple[ClockState, ...]:
    return (clocks.before, clocks.after) if clocks else ()


def _reasons(case: Measurement) -> set[str]:
    return {reason for state in _states(case.clocks) for reason in state.throttle_reasons}


def _throttled(run: Run) -> Iterator[Banner]:
    colds = [(case, case.timing.cold) for case in run.cases if case.timing and case.timing.cold]
    dropped = sum(cold.dropped for _, cold in colds)
    kept = [case for case, cold in colds if cold.throttled]
    held = [
        case for case in run.cases if any(word in reason for reason in _reasons(case) for word in _DISTURBING)
    ]
    parts = []
    if held:
        reasons = ", ".join(sorted({reason for case in held for reason in _reasons(case)}))
        parts.append(f"{reasons} during {plural(len(held), 'case')} (allowed: none): {_some(held)}")
    if dropped:
        parts.append(f"{numbers.count(dropped)} cold samples excluded (allowed: 0)")
    if kept:
        parts.append(f"no sample of {plural(len(kept), 'case')} was taken without throttling: {_some(kept)}")
    if parts:
        yield Banner(
            "throttled",
            "bad" if kept else "warning",
            "The GPU was throttled",
            f"{'; '.join(parts)}.",
            "Let it cool, check its power supply, and measure again.",
        )


def _beyond_peak(run: Run) -> Iterator[Banner]:
    beyond = [
        (share, case)
        for case in run.cases
        if (speed := speed_of(run, case)) and (share := speed.pct_of_limit or 0.0) > 100
    ]
    if beyond:
        share, case = max(beyond, key=lambda item: item[0])
        uncounted = "" if case.executor_counters else ", or uncounted tensor cores did it"
        yield Banner(
            "beyond_peak",
            "bad",
            "A rate exceeds the theoretical peak",
            f"{name_of_case(case)}: {numbers.percent(share)} (possible: 100 %). Data came from a cache,"
            f" counted work was not done{uncounted}.",
            "Check the kernel, or measure a size that exceeds the L2 cache.",
        )


def _too_much_work(run: Run) -> Iterator[Banner]:
    """A header that claims more bytes than its kernel asks memory for."""
    less = [
        (ratio, case)
        for case in run.cases
        if case.outcome == "ok"
        and not is_reference(run, case)
        and {"global_load_sectors", "global_store_sectors"} <= counts.held(case).keys()
        and not sampled(case)
        and (ratio := counts.sector_ratio(case) or 1.0) < _LEAST_OF_WORK
    ]
    if less:
        ratio, case = min(less, key=lambda item: item[0])
        yield Banner(
            "too_much_work",
            "warning",
            "The problem's bytes are more than a kernel moves",
            f"{name_of_case(case)}: loads and stores ask for {numbers.significant(ratio)}× of the bytes that"
            " [work] says. Rates and bounds are too high, unless the rest is read as textures or constants.",
            "Correct bytes under [work].",
        )


def _noise(run: Run) -> Iterator[Banner]:
    noisy = [
        (case.timing.cold.ci95_rel or 0.0, case)
        for case in run.cases
        if speed_of(run, case) and is_noisy(case) and case.timing and case.timing.cold
        # Locking the GPU's clocks does not quieten the CPU.
        if not on_host(run, case)
    ]
    if not noisy:
        return
    interval, worst = max(noisy, key=lambda item: item[0])
    yield Banner(
        "noise",
        "warning",
        f"{plural(len(noisy), 'case')} noisy",
        f"95 % confidence interval of the median, worst case {name_of_case(worst)}:"
        f" ±{numbers.percent(100 * interval, 2)} (threshold ±{numbers.percent(100 * NOISE_LIMIT, 1)})."
        " Such rows carry a ~.",
        "Stop other work on the GPU and lock its clocks (nvidia-smi --lock-gpu-clocks), then measure again.",
    )


def _clocks(run: Run) -> Iterator[Banner]:
    timed = [case for case in run.cases if speed_of(run, case) and not on_host(run, case)]
    slow = []
    for case in timed:
        fastest = max((state.sm_mhz or 0 for state in _states(case.clocks)), default=0)
        if 0 < fastest < CLOCK_LIMIT * run.devices[case.device].sm_clock_mhz:
            slow.append((fastest, case))
    if slow:
        clock, case = min(slow, key=lambda item: item[0])
        boost = run.devices[case.device].sm_clock_mhz
        share = numbers.percent(100 * clock / boost)
        yield Banner(
            "low_clock",
            "warning",
            f"The SM clock was low in {plural(len(slow), 'case')}",
            f"Lowest {clock:,} MHz of {boost:,.0f} MHz boost, {share}"
            f" (threshold {100 * CLOCK_LIMIT:.0f} %): {name_of_case(case)}. Shares of the compute peak assume"
            " the boost clock.",
            "Raise the power limit or the application clocks, or read shares of the peak as lower bounds.",
        )
    blind = [case for case in timed if case.clocks is None]
    if blind:
        reason = next((case.clocks_reason for case in blind if case.clocks_reason), None)
        yield Banner(
            "unknown_clock",
            "note",
            f"Clocks unknown for {plural(len(blind), 'case')}",
            f"{reason or 'No reason was recorded'}. Throttling would go undetected.",
        )


def _counters(run: Run) -> Iterator[Banner]:
    without = [
        case
        for case in run.cases
        if case.outcome == "ok"
        and not is_reference(run, case)
        and not any(item.value is not None for item in case.counters.values())
    ]
    if run.backend == "gpu" and without:
        reasons = dict.fromkeys(case.counters_reason for case in without if case.counters_reason)
        executed = all(has_any(case) for case in without)
        stand_in = "the SIMT executor's counts" if executed else "resources and occupancy"
        yield Banner(
            "no_counters",
            "note",
            f"No hardware counters for {plural(len(without), 'case')} of {len(run.cases)}",
            f"{'; '.join(reasons) or 'They were not asked for'}. Explanations rest on {stand_in}.",
            "Add --ncu where Nsight Compute is installed.",
        )
    partial = [(case, blocks) for case in run.cases if (blocks := sampled(case))]
    if partial:
        case, blocks = min(partial, key=lambda item: item[1][0] / item[1][1])
        yield Banner(
            "sampled",
            "note",
            f"Counts of {plural(len(partial), 'case')} extrapolated from sampled blocks",
            f"Fewest: {numbers.count(blocks[0])} of {numbers.count(blocks[1])} blocks, {name_of_case(case)}.",
        )


def _disagreement(run: Run) -> Iterator[Banner]:
    apart = differences(run)
    if not apart:
        return
    first = apart[0]
    size = "" if first.pct is None else f" ({first.pct:+.2g} %)"
    ran = next((blocks for item in apart if (blocks := sampled(replace(item.case, counters={})))), None)
    advice = "run all blocks with --sim-blocks all" if ran else "please report the difference"
    scaled = f" The executor ran {ran[0]:,} of {ran[1]:,} blocks." if ran else ""
    cases = len({id(item.case) for item in apart})
    yield Banner(
        "disagreement",
        "warning",
        f"Executor and hardware differ without a known reason in {plural(cases, 'case')}",
        f"First: {first.label} of {name_of_case(first.case)}: executor {numbers.exact(first.executor)},"
        f" hardware {numbers.exact(first.hardware)}{size}.{scaled}",
        f"Trust the hardware's counts, and {advice}.",
    )
