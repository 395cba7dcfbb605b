# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of GEMM's `by_size`, made from measured times: few, readable, each worth something.

    python benchmarks/by_size_rules.py PLACE …            what rules made from these would reach
    python benchmarks/by_size_rules.py PLACE … --write    puts them into gpuprof/kernels/gemm/by_size.cu
    python benchmarks/by_size_rules.py PLACE … --shipped  what the rules that are there reach
    python benchmarks/by_size_rules.py PLACE … --dtype f64    those of f64

A PLACE is a results file of `gemm_table.py measure`, a folder of them, or the table that its `data` prints,
of one card or of several: rules are for all of them. What was timed on some cards only counts on the others
with the same share of cuBLAS's speed. A rule names kernels, of which the first that can run is taken, and
some conditions. Rules are added one by one, each wherever in the order it gains most, and made anew in turn,
in the end two at once, until none gets better.
Those for other types stay as they are. To say how well this does at other sizes, each fifth of them is held
out.
"""

import argparse
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, groupby
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

GEMM = KERNEL_ROOT / "gemm"
#: What a rule may name, with the rows and columns of the first one's tiles. The last of three is for cards
#: without a copy engine.
TARGETS = {
    ("few_rows",): (1, 128),
    ("short_k", "splitk_tall"): (128, 128),
    ("splitk_8x32",): (8, 32),
    ("splitk_16x32",): (16, 32),
    ("splitk",): (32, 64),
    ("splitk_fit",): (44, 64),
    ("splitk_tall",): (128, 64),
    ("streamk_fit", "realigned", "splitk_fit"): (128, 128),
    ("bulk_8x16",): (128, 256),
    ("realigned",): (128, 128),
    ("packed",): (128, 256),
}
#: The same of f64, on tensor cores.
TARGETS_OF_F64 = {
    ("dmma",): (128, 128),
    ("dmma_split",): (64, 64),
    ("dmma_split_32x64",): (32, 64),
    ("dmma_split_32x32",): (32, 32),
    ("dmma_split_16x16",): (16, 16),
}
#: With long k the copy engine's kernels keep all SMs at work, unless their tiles are half empty.
_SHORT = ("(K <= 2048 or N <= 64)",)
#: What a rule for some asks in any case: where few sizes were timed, no rule shall reach far beyond them.
ALWAYS = {
    ("few_rows",): ("M <= 3", "N * K >= 262144"),
    ("splitk_8x32",): ("K <= 2048",),
    ("splitk_tall",): ("M * N <= 60000 * sm_count", "K <= 256"),
    ("streamk_fit", "realigned", "splitk_fit"): ("N > 32",),
    ("splitk",): _SHORT,
    ("realigned",): ("M * N * K >= 4000000 * sm_count",),
    ("short_k", "splitk_tall"): ("(K <= 104 or M * N * K <= 4000000 * sm_count)",),
}
#: What is taken where no rule holds.
LAST = ("streamk", "packed", "reg_8x16_pipelined", "reg_8x8", "reg_2x1")
#: Tiles that a condition may compare with.
TILES = ((32, 64), (44, 64), (64, 64), (64, 256), (128, 128))
#: Elements of C to an SM at which rules may change.
LIMITS = (100, 166, 250, 400, 700, 1000, 1500, 2000, 2400, 3000, 3900, 5000, 6500, 8500, 12000, 16000, 24000)
#: Rules, that of `LAST` among them; what a rule and a condition must gain: logarithms of the speed, on
#: average over all sizes.
MOST, LEAST_GAIN, LEAST_OF_CONDITION = 10, 0.00075, 0.0003
#: Sets of conditions that are tried with one more each.
_BEAM = 40
#: In the place of a time that was not measured: no rule may be tempted by it.
UNMEASURED = math.log(3)


@dataclass(frozen=True)
class Family:
    """Types that share rules: what those may name, what is taken last, and what all of them ask.

    `unit` elements are what the copy engine moves at once.
    """

    targets: Mapping[tuple[str, ...], tuple[int, int]]
    last: tuple[str, ...]
    tiles: Sequence[tuple[int, int]]
    unit: int
    real_bytes: int
    always: str = ""


FAMILIES = {
    "f32": Family(TARGETS, LAST, TILES, 4, 4),
    "f64": Family(
        TARGETS_OF_F64, ("dmma_split",), ((32, 32), (32, 64), (64, 64), (128, 128)), 2, 8, "real_bytes == 8"
    ),
}

Mask = NDArray[np.bool_]
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """Kernels, of which the first that can run is taken, and the conditions under which."""

    kernels: tuple[str, ...]
    conditions: tuple[str, ...] = ()


def merged(rules: Sequence[Rule]) -> list[Rule]:
    """Neighbours that ask the same as one."""
    asking = groupby(rules, key=lambda rule: rule.conditions)
    return [
        Rule(tuple(name for rule in those for name in rule.kernels), conditions)
        for conditions, those in asking
    ]


def conditions_for(tile: tuple[int, int], others: Sequence[tuple[int, int]], unit: int) -> Iterator[str]:
    """What a rule may ask of a size and a card; `unit` elements are what the copy engine moves at once.

    Of those that gain the same at the sizes timed the first counts: whole waves, then what reaches least.
    """
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
    yield from (f"M * N <= {limit} * sm_count" for limit in LIMITS)
    yield from (f"M * N > {limit} * sm_count" for limit in reversed(LIMITS))
    limits = 32, 48, 64, 128, 256, 512, 1024, 2048, 4096
    yield from (f"K <= {limit}" for limit in limits)
    yield from (f"K > {limit}" for limit in reversed(limits))
    for limit in (500_000, 1_000_000, 2_000_000, 4_000_000):
        yield f"M * N * K >= {limit} * sm_count"
    yield from ("M <= 4", "M <= 8", "M <= N", "M > N")
    yield from (f"N % {unit} == 0 and K % {unit} == 0", f"(N % {unit} != 0 or K % {unit} != 0)")


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


def complete(cards: Mapping[str, Sequence[Row]]) -> None:
    """Add to each row what another card's of its size has besides, as fast beside cuBLAS as there."""
    for card, rows in cards.items():
        others = [row for other in cards if other != card for row in cards[other]]
        for row in rows:
            for other in others:
                if other.size == row.size:
                    there = {name: row.vendor_us / other.over_vendor(name) for name in other.rungs}
                    row.rungs = there | row.rungs


def _of_card(device: Device, family: Family) -> dict[str, int]:
    major, minor = device.capability
    return {"sm_count": device.sm_count, "arch": 10 * major + minor, "real_bytes": family.real_bytes}


class Fit:
    """Times of some cards, and what conditions hold at their sizes."""

    def __init__(self, cards: Mapping[str, Sequence[Row]], family: Family) -> None:
        rows = [row for found in cards.values() for row in found]
        self._cards = " and an ".join(cards)
        self._targets, self._last = family.targets, family.last
        self._least_gain, self._least_of_condition = LEAST_GAIN * len(rows), LEAST_OF_CONDITION * len(rows)
        self.rows = rows
        self._values = [
            dict(zip("MNK", extents_of(row.size), strict=True)) | _of_card(load_card(card), family)
            for card, found in cards.items()
            for row in found
        ]
        self._masks: dict[str, Mask] = {}
        self.outcome = cache(self._outcome)
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
            target: self._conditions([*conditions_for(tile, family.tiles, family.unit)])
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

    def _outcome(self, rule: Rule) -> tuple[Mask, Table]:
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

    def _felt(self, cost: Table) -> Table:
        """What is behind cuBLAS, too, counts four times."""
        return cost + 3 * np.maximum(0.0, cost - self.ideal)

    def one_more(self, rules: Sequence[Rule], of: Mask) -> tuple[float, list[Rule]]:
        """Rules with the one added that gains most at some sizes, and what it gains."""
        found, better = 0.0, list(rules)
        for place in range(len(rules)):
            before = [self.outcome(rule)[0] for rule in rules[:place]]
            free = of & ~np.logical_or.reduce([np.zeros_like(of), *before])
            rest = self._felt(self.cost(rules[place:]))
            for target in self._targets:
                always = ALWAYS.get(target, ())
                covered, behind = self.outcome(Rule(target, always))
                gains = np.where(free & covered, rest - self._felt(behind), 0.0)
                if gains.clip(0).sum() <= found:
                    continue
                gain, conditions = self._best(target, gains)
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
            left = [gains * masks[list(held)].all(axis=0) for held in beam]
            scores = masks @ np.array(left).T
            # The same conditions come in each order, and where one comes twice.
            order = np.argsort(-scores, axis=None, kind="stable")[: 2 * length * _BEAM]
            scored: dict[tuple[int, ...], float] = {}
            for number, which in zip(*np.unravel_index(order, scores.shape), strict=True):
                if number not in beam[which]:
                    scored[tuple(sorted((*beam[which], int(number))))] = float(scores[number, which])
            beam = list(scored)[:_BEAM]
            if beam and scored[beam[0]] - self._least_of_condition * length > found:
                found = scored[beam[0]] - self._least_of_condition * length
                names = tuple(texts[number] for number in beam[0])
        return found, names

    def rules(self, of: Mask) -> list[Rule]:
        """The rules that are made for some of the sizes."""
        rules = [Rule(self._last)]
        while len(merged(rules)) < MOST:
            gain, better = self.one_more(rules, of)
            if gain < self._least_gain:
                break
            rules = self._made_anew(better, of, 1)
        rules = self._made_anew(rules, of, 2)
        for rule in rules[:-1]:  # the others, made after it, may have left less for it to reach
            _, better = self.one_more([one for one in rules if one is not rule], of)
            rules = min(better, rules, key=lambda some: self._lost(some, of))
        return merged(rules)

    def _lost(self, rules: Sequence[Rule], of: Mask) -> float:
        conditions = sum(len(rule.conditions) for rule in rules)
        return float(self._felt(self.cost(rules))[of].sum()) + self._least_of_condition * conditions

    def _made_anew(self, rules: list[Rule], of: Mask, most: int) -> list[Rule]:
        """Up to `most` rules but the last taken out, and the best ones added, as long as that gains."""
        again = True
        while again:
            again = False
            numbers = range(len(rules) - 1)
            for out in (some for count in range(1, most + 1) for some in combinations(numbers, count)):
                better = [rule for number, rule in enumerate(rules) if number not in out]
                for _ in out:
                    _, better = self.one_more(better, of)
                if self._lost(better, of) < self._lost(rules, of) - 1e-3:
                    rules, again = better, True
                    break
        return rules

    def over_vendor(self, cost: Table) -> float:
        """Geometric mean of the speed over that of cuBLAS."""
        return math.exp(float((self.ideal - cost).mean()))

    def because(self, rules: Sequence[Rule], number: int) -> str:
        """What a rule is worth, in a sentence."""
        taken = self.outcome(rules[number])[0]
        for rule in rules[:number]:
            taken &= ~self.outcome(rule)[0]
        where = f"Taken at {int(taken.sum())} of {len(self.rows)} sizes timed on an {self._cards}"
        if number == len(rules) - 1:
            return f"{where}."
        without = self.cost([*rules[:number], *rules[number + 1 :]])
        timed = taken & (without < UNMEASURED)
        if not timed.any():
            return f"{where}."
        lost = math.expm1((without - self.cost(rules))[timed].mean())
        return f"{where}; without this rule they would take {100 * lost:.0f} % longer."


def text_of(rules: Sequence[Rule], reasons: Sequence[str], always: str) -> str:
    """Rules as a header has them, each with what all of them ask."""
    tables = []
    for rule, reason in zip(rules, reasons, strict=True):
        names = [f'"{name}"' for name in rule.kernels]
        kernel = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        when = " and ".join((*([always] if always else []), *rule.conditions)) or "1"
        tables.append(f'[[choose]]\nkernel = {kernel}\nwhen = "{when}"\nbecause = "{reason}"\n')
    return "\n".join(tables)


def types_of(name: str) -> str:
    """The family whose rules name a kernel."""
    taken = load_ladder(GEMM).find(name).dtypes
    return next(dtype for dtype in ("tf32", "bf16", "f32", "f64") if dtype in taken)


def shipped_rules(dtype: str) -> list[Rule]:
    """Those that there are for a type, without what all of them ask."""
    family = FAMILIES[dtype]
    choices = load_ladder(GEMM).find("by_size").choices
    return [
        Rule(
            tuple(one.kernel for one in those),
            tuple(text for text in when.split(" and ") if text not in (family.always, "1")),
        )
        for when, those in groupby(
            (one for one in choices if types_of(one.kernel) == dtype), key=lambda one: one.when
        )
    ]


def write(text: str, dtype: str) -> None:
    """Put rules in the place of those of their type."""
    path = GEMM / "by_size.cu"
    source = path.read_text(encoding="utf-8").removesuffix("*/\n")
    head, *tables = re.split(r"(?=^\[\[choose\]\]$)", source, flags=re.MULTILINE)
    kinds = [types_of(re.findall(r'"(\w+)"', one)[0]) for one in tables]
    others = [one.rstrip() for one, kind in zip(tables, kinds, strict=True) if kind != dtype]
    others.insert(kinds.index(dtype), text.rstrip())
    path.write_text(head + "\n\n".join(others) + "\n*/\n", encoding="utf-8")


def main() -> None:
    """Make rules, say what they reach, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACE")
    parser.add_argument("--write", action="store_true", help="into by_size.cu")
    parser.add_argument(
        "--shipped", action="store_true", help="make none: what do those of by_size.cu reach?"
    )
    parser.add_argument("--dtype", choices=FAMILIES, default="f32", help="of which type")
    options = parser.parse_args()
    family = FAMILIES[options.dtype]
    cards = read_all(options.places)
    complete(cards)
    fit = Fit(cards, family)
    rows, everywhere = fit.rows, np.ones(len(fit.rows), bool)
    rules = shipped_rules(options.dtype) if options.shipped else fit.rules(everywhere)
    reasons = [fit.because(rules, number) for number in range(len(rules))]
    text = text_of(rules, reasons, family.always)
    print(text)
    cost = fit.cost(rules)
    print(f"the best kernel of each size: {fit.over_vendor(np.zeros_like(cost)):.4f}x cuBLAS")
    print(f"these {len(rules)} rules: {fit.over_vendor(cost):.4f}x cuBLAS")
    for number in np.argsort(-cost)[:8]:
        print(f"  {rows[number].size}: {100 * math.expm1(cost[number]):.1f} % behind the best kernel")
    if options.write:
        write(text, options.dtype)
    elif not options.shipped:
        unseen = np.zeros_like(cost)
        sizes = list(dict.fromkeys(row.size for row in rows))
        for fifth in range(5):
            out = np.array([sizes.index(row.size) % 5 == fifth for row in rows])
            unseen[out] = fit.cost(fit.rules(~out))[out]
        print(
            f"rules made without a fifth of the sizes, at that fifth: {fit.over_vendor(unseen):.4f}x cuBLAS"
        )


if __name__ == "__main__":
    main()
