# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How often `gpuprof compare` is wrong on identical code, and how often it finds a slowdown.

Usage: python benchmarks/verdicts.py [--runs FOLDER …] [--comparisons N] [--rounds N] [--write FILE]

Without `--runs` the times come from a model of the noise (verdict_noise.py), and the page says so. Each
folder holds results files of identical code of one card: one of `gpuprof gemm --rounds 32 --sizes 128,1024`,
or many of a round each. Their rounds are dealt out to a base and a new version, in
random order, as if both had been measured in turns, and in the order taken, as if one after the other.
Slowdowns are injected by multiplying the times of the new version.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from verdict_noise import FLUKE_MEAN, KINDS, Kind

from gpuprof.comparison.compared import round_medians
from gpuprof.comparison.judging import ENOUGH_ROUNDS, FEWEST_ROUNDS, judge
from gpuprof.comparison.noise import FLUKES, SESSIONS
from gpuprof.errors import GpuprofError
from gpuprof.reading import read_run

#: Rounds a side whose power the tables show.
POWER_ROUNDS = (8, 12, 16, 24)
POWER_TRIALS = 1000
#: What must be found: more of small problems, and of whatever takes less time than this.
SMALL_US, SMALL_EDGE, SMALL_SLOWDOWN, LARGE_SLOWDOWN = 25.0, 1024, 0.10, 0.02

Cases = dict[tuple, list[float]]

_HEAD = """# How often verdicts are right

Made by `python benchmarks/verdicts.py`; what a verdict is stands in [compare.md](compare.md).

## Simulated
"""
_TOO_FEW = (
    f"Below {FEWEST_ROUNDS} rounds a side ranks decide nothing, and only large changes are told;"
    f" {ENOUGH_ROUNDS} are enough for all kinds above."
)
_MEASURED = """## Measured

Rounds of identical code on the cards named, dealt out to a base and a new version. Slowdowns were injected by
multiplying the new version's times."""


def _simulated_text(rounds: int) -> str:
    """What the simulated table shows, and how."""
    return (
        "**These figures are simulated, not measured.** The times come from a model of the noise"
        " (`benchmarks/verdict_noise.py`) whose spreads are those that identical code showed on an H200:"
        f" an offset a round, {100 * FLUKES:.0f} % of rounds slower by {100 * FLUKE_MEAN:.0f} % on"
        f" average, an offset of {100 * SESSIONS:.2f} % between the sessions of base and new, a clock of"
        " 32 ns. “Wrong” are verdicts other than same or uncertain on identical code, at"
        f" {rounds} rounds a side; the last columns say how often a slowdown was found in {POWER_TRIALS:,}"
        " trials."
    )


@dataclass(frozen=True)
class Tally:
    """Verdicts on comparisons of one sort."""

    counts: Counter

    @classmethod
    def of(cls, pairs: Iterator[tuple[list[float], list[float]]]) -> "Tally":
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
    return Tally.of((kind.rounds(rounds, rng), kind.rounds(rounds, rng, factor)) for _ in range(trials))


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


def rounds_of(folder: Path) -> Cases:
    """Round medians of every case in a folder's results files, by case and source, in the order taken."""
    runs = []
    for path in sorted(folder.rglob("*.json")):
        try:
            runs.append(read_run(path))
        except GpuprofError:
            continue
    found: Cases = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.created_utc):
        if run.backend != "gpu":
            continue
        for case in run.cases:
            if not case.is_reference and case.source_hash:
                identity = case.kernel, case.block, tuple(sorted(case.params.items())), case.source_hash
                device = run.devices[case.device].name
                found[device, case.problem.edge, case.problem.key, identity] += round_medians(case)
    return found


def dealt(
    times: Sequence[float], rounds: int, rng: random.Random, *, in_order: bool
) -> tuple[list[float], list[float]]:
    """Two versions of so many rounds each from rounds of one code."""
    if in_order:
        start = rng.randrange(len(times) - 2 * rounds + 1)
        part = list(times[start : start + 2 * rounds])
    else:
        part = rng.sample(list(times), 2 * rounds)
    return part[:rounds], part[rounds:]


def measured_table(arguments: argparse.Namespace) -> Iterator[str]:
    """Two rows for each card, one for each way to deal, over all of its cases."""
    heads = "Wrong | Same | 10 % found, small or short | 2 % found, from 1024"
    yield f"| Runs of identical code | Cases | Rounds a side | Dealt | {heads} |"
    yield "|:--|--:|--:|:--|--:|--:|--:|--:|"
    for folder in arguments.runs:
        every = rounds_of(folder)
        # Cases of a few rounds, whose verdict is uncertain anyway, count only where there are no others.
        cases = {key: times for key, times in every.items() if len(times) >= 2 * FEWEST_ROUNDS}
        cases = cases or {key: times for key, times in every.items() if len(times) >= 2}
        if not cases:
            yield f"| {folder.name}: no case of a GPU with two rounds | | | | | | | |"
            continue
        for in_order in (False, True):
            yield _measured_row(folder.name, cases, arguments, in_order=in_order)


def _measured_row(name: str, cases: Cases, arguments: argparse.Namespace, *, in_order: bool) -> str:
    rng = random.Random(arguments.seed)
    keys = list(cases)
    picked = [rng.choice(keys) for _ in range(arguments.comparisons)]
    sides = {key: min(arguments.rounds, len(times) // 2) for key, times in cases.items()}
    pairs = [(key, *dealt(cases[key], sides[key], rng, in_order=in_order)) for key in picked]
    identical = Tally.of((base, new) for _, base, new in pairs)
    power = []
    for small, factor in ((True, 1 + SMALL_SLOWDOWN), (False, 1 + LARGE_SLOWDOWN)):
        chosen = [
            (base, [time * factor for time in new])
            for key, base, new in pairs
            if (key[1] < SMALL_EDGE or max(base) < SMALL_US) == small
        ]
        tally = Tally.of(iter(chosen))
        power.append(f"{tally.share('regressed'):.1f} % of {tally.total:,}")
    fewest, most = min(sides.values()), max(sides.values())
    side = str(most) if fewest == most else f"{fewest} to {most}"
    how = "in the order taken" if in_order else "shuffled"
    return (
        f"| {name}: {keys[0][0]} | {len(cases)} | {side} | {how} | {identical.false} of {identical.total:,} |"
        f" {identical.share('same'):.1f} % | {' | '.join(power)} |"
    )


def page(arguments: argparse.Namespace) -> str:
    """The whole page."""
    lines = [_HEAD, _simulated_text(arguments.rounds), "", *simulation_table(arguments)]
    lines += ["", _TOO_FEW]
    if arguments.runs:
        lines += ["", _MEASURED, "", *measured_table(arguments)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", nargs="*", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--comparisons", type=int, default=10_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=ENOUGH_ROUNDS, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    text = page(arguments)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
