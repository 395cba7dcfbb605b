# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of GEMM's `by_size`, made from measured times: few, readable, each worth something.

    python benchmarks/by_size_rules.py PLACE …            what rules made from these would reach
    python benchmarks/by_size_rules.py PLACE … --write    puts them into gpuprof/kernels/gemm/by_size.cu
    python benchmarks/by_size_rules.py PLACE … --shipped  what the rules that are there reach
    python benchmarks/by_size_rules.py PLACE … --halves   those of bf16 and f16, from times of either

A PLACE is a results file of `gemm_table.py measure`, a folder of them, or the table that its `data` prints,
of one card. A rule names kernels, of which the first that can run is taken, and some conditions. Rules are
added one by one, each wherever in the order it gains most, and made anew in turn until none gets better.
Those for other types stay as they are. To say how well this does at other sizes, each fifth of
them is held out.
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gemm_table import Row, extents_of, read_all
from numpy.typing import NDArray

from gpuprof.devices.cards import load_card
from gpuprof.devices.device import Device
from gpuprof.kernels.catalog import load_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shipped import KERNEL_ROOT
from gpuprof.problems.formulas import evaluate, variables

BY_SIZE = KERNEL_ROOT / "gemm" / "by_size.cu"
#: What a rule may name, with the rows and columns of the first one's tiles. The last of three is for cards
#: without a copy engine.
TARGETS = {
    ("few_rows",): (1, 128),
    ("splitk_8x32",): (8, 32),
    ("splitk_16x32",): (16, 32),
    ("splitk",): (32, 64),
    ("splitk_44x64",): (44, 64),
    ("splitk_64x64",): (64, 64),
    ("streamk_64x256", "realigned"): (64, 256),
    ("streamk_128x128", "realigned", "splitk_64x64"): (128, 128),
    ("realigned",): (128, 128),
    ("packed",): (128, 256),
}
#: The same of halves, on tensor cores.
TARGETS_OF_HALVES = {
    ("wgmma_producer_64x64",): (64, 64),
    ("wgmma_producer_64x128",): (64, 128),
    ("wgmma_split",): (128, 128),
    ("wgmma_split_four",): (128, 128),
    ("wgmma_store_128x128",): (128, 128),
    ("wgmma_store_128x192",): (128, 192),
    ("wgmma_store_panels",): (128, 256),
    ("wgmma_streamk_128x192",): (128, 192),
    ("wgmma_streamk",): (128, 256),
    ("wgmma_packed_128x128",): (128, 128),
    ("mma_async",): (128, 128),
}
#: With long k the copy engine's kernels keep all SMs at work, unless their tiles are half empty.
_SHORT = ("(K <= 2048 or N <= 64)",)
#: What a rule for some asks in any case: where few sizes were timed, no rule shall reach far beyond them.
ALWAYS = {
    ("few_rows",): ("M <= 3", "N * K >= 262144"),
    ("splitk",): _SHORT,
    ("splitk_44x64",): _SHORT,
    ("splitk_64x64",): _SHORT,
}
#: What is taken where no rule holds.
LAST = ("streamk", "packed", "reg_8x16_pipelined", "reg_8x8", "reg_2x1")
LAST_OF_HALVES = ("wgmma_packed", "mma_async")
#: Tiles that a condition may compare with.
TILES = ((32, 64), (44, 64), (64, 64), (64, 256), (128, 128))
TILES_OF_HALVES = ((64, 64), (64, 128), (128, 128), (128, 192), (128, 256))
#: Elements of C to an SM at which rules may change.
LIMITS = (100, 166, 250, 400, 700, 1000, 1500, 2000, 2400, 3000, 3900, 5000, 6500, 8500, 12000, 16000, 24000)
#: Rules, that of `LAST` among them; what a rule and a condition must gain: logarithms of the speed, all sizes
#: added up.
MOST, LEAST_GAIN, LEAST_OF_CONDITION = 10, 0.10, 0.04
#: What the rules of halves ask in any case.
_HALVES = "real_bytes == 2"
#: In the place of a time that was not measured: no rule may be tempted by it.
UNMEASURED = math.log(3)

Mask = NDArray[np.bool_]
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """Kernels, of which the first that can run is taken, and the conditions under which."""

    kernels: tuple[str, ...]
    conditions: tuple[str, ...] = ()


def conditions_for(tile: tuple[int, int], others: Sequence[tuple[int, int]], unit: int) -> Iterator[str]:
    """What a rule may ask of a size and a card; `unit` elements are what the copy engine moves at once."""
    for limit in LIMITS:
        yield f"M * N <= {limit} * sm_count"
        yield f"M * N > {limit} * sm_count"
    for limit in (64, 128, 256, 512, 1024, 2048):
        yield f"K <= {limit}"
        yield f"K > {limit}"
    for limit in (500_000, 1_000_000, 2_000_000):
        yield f"M * N * K >= {limit} * sm_count"
    yield from ("M <= 4", "M <= 8")
    yield from (f"N % {unit} == 0 and K % {unit} == 0", f"(N % {unit} != 0 or K % {unit} != 0)")
    rows, columns = tile
    tiles, area = f"cdiv(M, {rows}) * cdiv(N, {columns})", rows * columns
    for waves in ("", "2 * ", "3 * "):
        yield f"{tiles} <= {waves}sm_count"
    for part in (2, 5):
        yield f"{tiles} * {part} <= sm_count"
    for share in (11, 12, 13, 15, 20):  # so much of the waves lies in C
        yield f"cdiv({tiles}, sm_count) * sm_count * {area} * 10 <= M * N * {share}"
    for share in (11, 12, 15):  # so much of the tiles lies in C
        yield f"{tiles} * {area} * 10 <= M * N * {share}"
    for other in others:
        if other != tile:
            theirs = f"cdiv(M, {other[0]}) * cdiv(N, {other[1]})"
            yield f"{theirs} > sm_count"
            yield f"cdiv({tiles}, sm_count) * {area} < cdiv({theirs}, sm_count) * {other[0] * other[1]}"
            yield f"{tiles} * {area} < {theirs} * {other[0] * other[1]}"


def conditions_of(kernel: Kernel) -> Iterator[str]:
    """What a kernel requires of the size or the card, its own values put in."""
    x, y, z = kernel.launch.block
    values = {**kernel.constants, **kernel.parameters}
    values |= {"block_x": x, "block_y": y, "block_z": z, "threads": x * y * z}
    for requirement in kernel.requirements:
        if variables(requirement.condition) & {*"MNK", "arch", "sm_count", "real_bytes"}:
            yield re.sub(
                r"[A-Za-z_]\w*",
                lambda name: f"({values[name[0]]})" if name[0] in values else name[0],
                requirement.condition,
            )


def requirements_of_all() -> dict[str, list[str]]:
    """What each kernel of the ladder requires."""
    kernels = load_ladder(KERNEL_ROOT / "gemm").kernels
    return {one.id: list(dict.fromkeys(conditions_of(one))) for one in kernels if not one.choices}


class Fit:
    """Times of one card, and what conditions hold at its sizes."""

    def __init__(self, rows: Sequence[Row], device: Device, *, halves: bool = False) -> None:
        major, minor = device.capability
        card = {"sm_count": device.sm_count, "arch": 10 * major + minor, "real_bytes": 2 if halves else 4}
        self._targets = TARGETS_OF_HALVES if halves else TARGETS
        self._last = LAST_OF_HALVES if halves else LAST
        others, unit = (TILES_OF_HALVES, 8) if halves else (TILES, 4)
        self.rows = rows
        self._values = [dict(zip("MNK", extents_of(row.size), strict=True)) | card for row in rows]
        self._masks: dict[str, Mask] = {}
        self._requirements = requirements_of_all()
        names = {name for target in (*self._targets, self._last) for name in target}
        best = [min(time for name, time in row.rungs.items() if name in names) for row in rows]
        #: Logarithms, by size: the best kernel's speed over cuBLAS, and how far each kernel is behind it.
        self.ideal = np.array(
            [math.log(row.vendor_us / least) for row, least in zip(rows, best, strict=True)]
        )
        self._behind = {
            name: np.array(
                [
                    math.log(row.rungs[name] / least) if name in row.rungs else UNMEASURED
                    for row, least in zip(rows, best, strict=True)
                ]
            )
            for name in names
        }
        self._candidates = {
            target: self._conditions([*conditions_for(tile, others, unit)])
            for target, tile in self._targets.items()
        }

    def mask(self, text: str) -> Mask:
        """Where a condition holds."""
        if text not in self._masks:
            self._masks[text] = np.array([evaluate(text, values) != 0 for values in self._values])
        return self._masks[text]

    def _conditions(self, asked: Sequence[str]) -> tuple[list[str], Mask]:
        texts = [text for text in asked if 0 < self.mask(text).sum() < len(self.rows)]
        return texts, np.array([self.mask(text) for text in texts])

    def _all(self, texts: Sequence[str]) -> Mask:
        return np.logical_and.reduce([np.ones(len(self.rows), bool), *map(self.mask, texts)])

    def outcome(self, rule: Rule) -> tuple[Mask, Table]:
        """Where a rule holds and one of its kernels can run, and how far that one is behind the best."""
        left, behind = self._all(rule.conditions), np.full(len(self.rows), UNMEASURED)
        covered = np.zeros(len(self.rows), bool)
        for name in rule.kernels:
            here = left & ~covered & self._all(self._requirements[name])
            behind[here] = self._behind[name][here]
            covered |= here
        return covered, behind

    def cost(self, rules: Sequence[Rule]) -> Table:
        """How far what rules take is behind the best, by size; the first rule that holds counts."""
        found = np.full(len(self.rows), UNMEASURED)
        for rule in reversed(rules):
            covered, behind = self.outcome(rule)
            found = np.where(covered, behind, found)
        return found

    def one_more(self, rules: Sequence[Rule], of: Mask) -> tuple[float, list[Rule]]:
        """Rules with the one added that gains most at some sizes, and what it gains."""
        found, better = 0.0, list(rules)
        for place in range(len(rules)):
            before = [self.outcome(rule)[0] for rule in rules[:place]]
            free = of & ~np.logical_or.reduce([np.zeros_like(of), *before])
            rest = self.cost(rules[place:])
            for target in self._targets:
                always = ALWAYS.get(target, ())
                covered, behind = self.outcome(Rule(target, always))
                gain, conditions = self._best(target, np.where(free & covered, rest - behind, 0.0))
                if gain > found:
                    rule = Rule(target, (*always, *conditions))
                    found, better = gain, [*rules[:place], rule, *rules[place:]]
        return found, better

    def _best(self, target: tuple[str, ...], gains: Table) -> tuple[float, tuple[str, ...]]:
        """Up to three conditions under which a target gains most, together; each must be worth it."""
        texts, masks = self._candidates[target]
        found, names = float(gains.sum()), ()
        beam: list[tuple[int, ...]] = [()]
        for length in (1, 2, 3):
            scored: dict[tuple[int, ...], float] = {}
            for held in beam:
                left = gains * np.logical_and.reduce(masks[list(held)]) if held else gains
                for number, gain in enumerate(masks @ left):
                    if number not in held:
                        scored[tuple(sorted((*held, number)))] = float(gain)
            beam = sorted(scored, key=scored.__getitem__, reverse=True)[:40]
            if beam and scored[beam[0]] - LEAST_OF_CONDITION * length > found:
                found = scored[beam[0]] - LEAST_OF_CONDITION * length
                names = tuple(texts[number] for number in beam[0])
        return found, names

    def rules(self, of: Mask) -> list[Rule]:
        """The rules that are made for some of the sizes."""
        rules = [Rule(self._last)]
        while len(rules) < MOST:
            gain, better = self.one_more(rules, of)
            if gain < LEAST_GAIN:
                break
            rules = self._made_anew(better, of)
        return rules

    def _made_anew(self, rules: list[Rule], of: Mask) -> list[Rule]:
        """Each rule but the last in turn taken out, and the best one added, as long as that gains."""

        def worth(some: Sequence[Rule]) -> float:
            conditions = sum(len(rule.conditions) for rule in some)
            return float(self.cost(some)[of].sum()) + LEAST_OF_CONDITION * conditions

        again = True
        while again:
            again = False
            for number in range(len(rules) - 1):
                _, better = self.one_more(rules[:number] + rules[number + 1 :], of)
                if worth(better) < worth(rules) - 1e-3:
                    rules, again = better, True
        return rules

    def over_vendor(self, cost: Table) -> float:
        """Geometric mean of the speed over that of cuBLAS."""
        return math.exp(float((self.ideal - cost).mean()))

    def because(self, rules: Sequence[Rule], number: int, card: str) -> str:
        """What a rule is worth, in a sentence."""
        taken = self.outcome(rules[number])[0]
        for rule in rules[:number]:
            taken &= ~self.outcome(rule)[0]
        where = f"Taken at {int(taken.sum())} of {len(self.rows)} sizes timed on an {card}"
        if number == len(rules) - 1:
            return f"{where}."
        without = self.cost([*rules[:number], *rules[number + 1 :]])
        timed = taken & (without < UNMEASURED)
        if not timed.any():
            return f"{where}."
        lost = math.expm1((without - self.cost(rules))[timed].mean())
        return f"{where}; without this rule they would take {100 * lost:.0f} % longer."


def text_of(rules: Sequence[Rule], reasons: Sequence[str], always: Sequence[str] = ()) -> str:
    """Rules as a header has them, each with what all of them ask."""
    tables = []
    for rule, reason in zip(rules, reasons, strict=True):
        names = [f'"{name}"' for name in rule.kernels]
        kernel = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        when = " and ".join((*always, *rule.conditions)) or "1"
        tables.append(f'[[choose]]\nkernel = {kernel}\nwhen = "{when}"\nbecause = "{reason}"\n')
    return "\n".join(tables)


def is_for(when: str, *, halves: bool) -> bool:
    """Whether a rule is one of halves, or one of f32, which asks for no type."""
    return _HALVES in when if halves else "real_bytes ==" not in when


def shipped_rules(*, halves: bool) -> list[Rule]:
    """Those that by_size has for a type."""
    choices = load_ladder(KERNEL_ROOT / "gemm").find("by_size").choices
    return [Rule((one.kernel,), (one.when,)) for one in choices if is_for(one.when, halves=halves)]


def write(text: str, *, halves: bool) -> None:
    """Put rules in the place of those of their type; those of f32 are the last."""
    source = BY_SIZE.read_text(encoding="utf-8")
    tables = re.split(r"(?=^\[\[choose\]\]$)", source.removesuffix("*/\n"), flags=re.MULTILINE)
    kept = [tables[0], *(f"{one.rstrip()}\n\n" for one in tables[1:] if not is_for(one, halves=halves))]
    first = next((i for i, one in enumerate(kept[1:], 1) if is_for(one, halves=False)), len(kept))
    kept.insert(first, f"{text}\n")
    BY_SIZE.write_text(f"{''.join(kept).rstrip()}\n*/\n", encoding="utf-8")


def main() -> None:
    """Make rules, say what they reach, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACE")
    parser.add_argument("--write", action="store_true", help="into by_size.cu")
    parser.add_argument(
        "--shipped", action="store_true", help="make none: what do those of by_size.cu reach?"
    )
    parser.add_argument("--halves", action="store_true", help="the rules of bf16 and f16")
    options = parser.parse_args()
    halves: bool = options.halves
    ((card, rows),) = read_all(options.places).items()
    fit, everywhere = Fit(rows, load_card(card), halves=halves), np.ones(len(rows), bool)
    rules = shipped_rules(halves=halves) if options.shipped else fit.rules(everywhere)
    reasons = [fit.because(rules, number, card) for number in range(len(rules))]
    text = text_of(rules, reasons, (_HALVES,) if halves else ())
    print(text)
    cost = fit.cost(rules)
    print(f"the best kernel of each size: {fit.over_vendor(np.zeros_like(cost)):.4f}x cuBLAS")
    print(f"these {len(rules)} rules: {fit.over_vendor(cost):.4f}x cuBLAS")
    for number in np.argsort(-cost)[:8]:
        print(f"  {rows[number].size}: {100 * math.expm1(cost[number]):.1f} % behind the best kernel")
    if options.write:
        write(text, halves=halves)
    elif not options.shipped:
        unseen = np.zeros_like(cost)
        for fifth in range(5):
            out = np.arange(len(rows)) % 5 == fifth
            unseen[out] = fit.cost(fit.rules(~out))[out]
        print(
            f"rules made without a fifth of the sizes, at that fifth: {fit.over_vendor(unseen):.4f}x cuBLAS"
        )


if __name__ == "__main__":
    main()
