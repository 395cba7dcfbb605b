# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How often `gpuprof compare` is wrong on identical code, and how often it finds a slowdown.

    python benchmarks/verdicts.py [--recorded FILE …] [--comparisons N] [--rounds N] [--write FILE]
    python benchmarks/verdicts.py --prior         # the deviations of comparison/judging.py, fitted anew

Recorded are rounds of identical code (recorded.py), every one of a case against every other. Slowdowns are
injected by multiplying the times of the new version. Times of many rounds come from a model of the noise
(verdict_noise.py), and the page says so.
"""

import argparse
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from recorded import FILES, PARTS, Cases, Round, read
from verdict_noise import FLUKE_MEAN, FLUKES, KINDS, Kind

from gpuprof.comparison.judging import CLASSES, ENOUGH_ROUNDS, PRIOR_DEGREES, SESSIONS, Times, class_of, judge
from gpuprof.records import replace

#: Rounds a side whose power the tables show.
POWER_ROUNDS = (4, 8, 16, 24)
POWER_TRIALS = 1000
#: Slowdowns that one round each is to find, by the class of the time.
SLOWDOWNS = (0.05, 0.08, 0.20)
#: Standard error of one round from which its samples are said to drift.
DRIFTS = 0.01

_HEAD = """# How often verdicts are right

Made by `python benchmarks/verdicts.py`; what a verdict is stands in [compare.md](compare.md).

## Recorded: one round each
"""
_SIMULATED = "## Simulated: many rounds"

Pair = tuple[Times, Times]


def _recorded_text(cases: Cases) -> str:
    """What the recorded table shows, and how."""
    runs = {one.run for rounds in cases.values() for one in rounds}
    return (
        f"{len(cases)} cases of identical code from {len(runs)} runs of one round each with default options:"
        " on several H200s, hours and days apart, by several versions of gpuprof, and one after the other on"
        " an H100 (`benchmarks/recorded.py`). Every run of a case is compared with every other; of"
        f" *stretches*, each of {PARTS} parts of a run's samples with each part of the other's, which are"
        " noisier. *Wrong* are verdicts other than same or uncertain. The last columns say how often a"
        " slowdown was found that the new run's times were multiplied by. *Drifting* cases, by more than"
        f" {100 * DRIFTS:.0f} % (their standard error), are a row of their own: their clocks were held back."
    )


def _simulated_text(rounds: int) -> str:
    """What the simulated table shows, and how."""
    return (
        "**Simulated, not measured.** The times come from a model of the noise"
        " (`benchmarks/verdict_noise.py`) with the spreads that identical code showed on an H200: an offset a"
        f" round, {100 * FLUKES:.0f} % of rounds slower by {100 * FLUKE_MEAN:.0f} % on average, an offset of"
        f" {100 * SESSIONS:.2f} % between the sessions of base and new, a clock of 32 ns. *Wrong* is of"
        f" identical code at {rounds} rounds a side; the last columns say how often a slowdown was found in"
        f" {POWER_TRIALS:,} trials."
    )


@dataclass(frozen=True)
class Tally:
    """Verdicts on comparisons of one sort."""

    counts: Counter

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> "Tally":
        return cls(Counter(judge(base, new).verdict for base, new in pairs))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def false(self) -> int:
        """Verdicts that are wrong where the code is identical."""
        return self.counts["regressed"] + self.counts["improved"]

    def share(self, verdict: str) -> float:
        return 100 * self.counts[verdict] / max(1, self.total)


def simulated(kind: Kind, rounds: int, trials: int, factor: float, seed: int) -> Tally:
    """Verdicts on so many pairs of simulated measurements."""
    rng = random.Random(f"{seed} {kind.name} {rounds} {factor}")
    return Tally.of(
        (Times(kind.rounds(rounds, rng)), Times(kind.rounds(rounds, rng, factor))) for _ in range(trials)
    )


def simulation_table(arguments: argparse.Namespace) -> Iterator[str]:
    """One row for each kind of noise, and all of them together."""
    trials, seed = arguments.comparisons, arguments.seed
    heads = " | ".join(f"at {n} rounds" for n in POWER_ROUNDS)
    yield f"| Simulated case | Time | Spread of rounds | Wrong of {trials:,} | Same | Slowdown | {heads} |"
    yield "|:--|--:|--:|--:|--:|--:|" + "--:|" * len(POWER_ROUNDS)
    wrong = 0
    for kind in KINDS:
        identical = simulated(kind, arguments.rounds, trials, 1.0, seed)
        wrong += identical.false
        slower = (simulated(kind, n, POWER_TRIALS, 1 + kind.slowdown, seed) for n in POWER_ROUNDS)
        found = " | ".join(f"{tally.share('regressed'):.1f} %" for tally in slower)
        spread = f"{100 * kind.spread:.1f} %{', two values' if kind.placements else ''}"
        yield (
            f"| {kind.name} | {kind.time_us:,.0f} µs | {spread} | {identical.false} |"
            f" {identical.share('same'):.1f} % | {100 * kind.slowdown:.0f} % | {found} |"
        )
    total = trials * len(KINDS)
    blank = " |" * len(POWER_ROUNDS)
    yield f"| **all** | | | **{wrong} of {total:,}** ({100 * wrong / total:.3f} %) | | |{blank}"


def pairs_of(cases: Cases, *, stretches: bool) -> Iterator[tuple[Pair, str]]:
    """Every two runs of one case, whole or in stretches, with the row of the table that they belong to."""
    for rounds in cases.values():
        for base, new in combinations(rounds, 2):
            row = row_of(base, new)
            if not stretches:
                yield (base.times(), new.times()), row
                continue
            for part in range(len(base.parts_us)):
                for other in range(len(new.parts_us)):
                    yield (base.times(part), new.times(other)), row


def row_of(base: Round, new: Round) -> str:
    """How long the case takes, and whether it drifted while it was measured."""
    if max(base.error, new.error) > DRIFTS:
        return "drifting"
    kind = class_of(base.median_us)
    if kind is CLASSES[-1]:
        return "longer"
    return f"{'below' if kind is CLASSES[0] else 'to'} {kind.below_us:.0f} µs"


def recorded_table(cases: Cases) -> Iterator[str]:
    """A row for each order of duration of whole runs, and one for all stretches of them."""
    found = " | ".join(f"{100 * slowdown:.0f} % found" for slowdown in SLOWDOWNS)
    yield f"| Time | Pairs | | Wrong | Same | {found} |"
    yield "|:--|:--|--:|--:|--:|" + "--:|" * len(SLOWDOWNS)
    for stretches in (False, True):
        every = list(pairs_of(cases, stretches=stretches))
        rows = list(dict.fromkeys(row for _, row in sorted(every, key=lambda item: item[0][0].medians_us)))
        for row in [*(rows if not stretches else ()), "**all**"]:
            pairs = [pair for pair, of in every if row in (of, "**all**")]
            identical = Tally.of(pairs)
            shares = [
                f"{Tally.of(slowed(pairs, slowdown)).share('regressed'):.1f} %" for slowdown in SLOWDOWNS
            ]
            shown = " | ".join(shares if row != "**all**" else [""] * len(shares))
            yield (
                f"| {row} | {'stretches' if stretches else 'whole runs'} | {identical.total:,} |"
                f" {identical.false} | {identical.share('same'):.1f} % | {shown} |"
            )


def slowed(pairs: Iterable[Pair], slowdown: float) -> Iterator[Pair]:
    """Pairs whose new version takes longer by so much."""
    for base, new in pairs:
        yield base, replace(new, medians_us=[time * (1 + slowdown) for time in new.medians_us])


def prior_table(cases: Cases) -> Iterator[str]:
    """The deviation of each order of duration that makes what was recorded most likely."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for (base, new), row in pairs_of(cases, stretches=False):
        times = base.medians_us[0], new.medians_us[0]
        offset = abs(base.event_us - new.event_us) / min(times)
        change = max(0.0, abs(math.log(times[1] / times[0])) - offset)
        groups.setdefault(row, []).append((change, (base.error**2 + new.error**2) / 2))
    for row, pairs in groups.items():
        grid = [0.001 * 1.01**step for step in range(350)]
        best = max(grid, key=lambda deviation: math.fsum(_likelihood(*pair, deviation) for pair in pairs))
        yield f"{row}: {best:.4f} from {len(pairs)} pairs"
    known = ", ".join(f"{kind.deviation}" for kind in CLASSES)
    yield f"in use: {known}"


def _likelihood(change: float, variance: float, deviation: float) -> float:
    """Of a difference by Student's t, without what does not depend on the deviation; a logarithm."""
    scale = math.sqrt(2 * (deviation**2 + variance))
    return -math.log(scale) - (PRIOR_DEGREES + 1) / 2 * math.log1p((change / scale) ** 2 / PRIOR_DEGREES)


def page(arguments: argparse.Namespace) -> str:
    """The whole page."""
    cases = read_all(arguments.recorded)
    lines = [_HEAD, _recorded_text(cases), "", *recorded_table(cases), "", _SIMULATED, ""]
    lines += [_simulated_text(arguments.rounds), "", *simulation_table(arguments)]
    return "\n".join(lines) + "\n"


def read_all(files: Sequence[Path]) -> Cases:
    """Rounds of several files; each knows its cases for itself."""
    return {f"{file.stem} {name}": rounds for file in files for name, rounds in read(file).items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recorded", nargs="+", type=Path, default=FILES, metavar="FILE")
    parser.add_argument("--comparisons", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=ENOUGH_ROUNDS, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prior", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.prior:
        print("\n".join(prior_table(read_all(arguments.recorded))))
        return
    text = page(arguments)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
