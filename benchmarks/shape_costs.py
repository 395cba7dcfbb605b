# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What GEMM's shapes cost, by which `by_size` chooses, made from measured times.

    python benchmarks/shape_costs.py PLACE … --dtype f32            what costs made from these would reach
    python benchmarks/shape_costs.py PLACE … --dtype f32 --write    puts them into the header
    python benchmarks/shape_costs.py PLACE … --dtype f32 --shipped  what the costs that are there reach

A PLACE is a results file of `gemm_table.py measure`, a folder of them, or the table that its `data` prints,
of one card or of several; what was timed on some cards only counts on the others with the same share of
cuBLAS's speed. `least` of a `[[choose]]` is a sum of constants of its kernels, each so many times:
picoseconds. The numbers are found here, for all tables of a type at once. They start where each table's sum
is nearest to its times; then one after the other is made larger or smaller while that gains. What counts is
how far a size's choice would be behind the fastest if each cost were uncertain by some percent, and how far
costs are from times. Where all kernels share one sum, it is how far a size's costs beside each other are from
its times, of fast kernels most, which does better at sizes that are held out. To say how well all this does
elsewhere, every other size, every fifth and each card are held out.
"""

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from gemm_table import Row, extents_of, read_all
from numpy.typing import NDArray

from gpuprof.devices.cards import load_card
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import configure, values_of
from gpuprof.kernels.shipped import KERNEL_ROOT, shipped_operation
from gpuprof.problems.formulas import evaluate
from gpuprof.problems.problem import Problem

Table = NDArray[np.float64]
#: Share by which costs are uncertain, the factors by which numbers change, and the rounds for each.
UNCERTAIN, FACTORS, ROUNDS = 0.03, (2.0, 1.5, 1.2, 1.1, 1.05), 12
#: What a change must gain, a logarithm of the speed on average over all sizes.
LEAST_GAIN = 1e-6
#: What the squares of costs' own errors count beside that: where nothing was timed costs are still times.
OF_ERRORS = 0.01
#: How steeply what is behind the fastest counts less where costs are held against each other.
NEAR = 3.0
#: In the place of a time that was not measured, over the fastest: no cost may be tempted by it.
UNMEASURED = math.log(1.1)


def terms_of(least: str) -> dict[str, int]:
    """The constants of a sum, `1` for none, and how often each counts."""
    parts = [term.partition(" * ") for term in least.split(" + ")]
    return {name or "1": int(many) for many, _, name in parts}


def least_of(terms: Mapping[str, float]) -> str:
    """A sum as a header has it."""
    parts = [f"{many:.0f} * {name}".removesuffix(" * 1") for name, many in terms.items() if many]
    return " + ".join(parts)


def rounded(number: float) -> float:
    """A whole number of three digits."""
    return float(round(float(f"{number:.3g}")))


def nearest(values: Table, times: Table) -> Table:
    """No negative numbers, times which the values add up nearest to the times, relative to these."""
    scaled = values / times[:, None]
    numbers, square, wanted = np.zeros(values.shape[1]), scaled.T @ scaled, scaled.sum(axis=0)
    for _ in range(2000):
        for place in np.flatnonzero(square.diagonal()):
            left = wanted[place] - square[place] @ numbers
            numbers[place] = max(0.0, numbers[place] + left / square[place, place])
    return numbers


def completed(cards: Mapping[str, Sequence[Row]]) -> Mapping[str, Sequence[Row]]:
    """Rows with what another card's of their size have besides, as fast beside cuBLAS as there."""
    for card, rows in cards.items():
        others = [row for other in cards if other != card for row in cards[other]]
        for row in rows:
            for other in (other for other in others if other.size == row.size):
                row.rungs = {
                    name: row.vendor_us / other.over_vendor(name) for name in other.rungs
                } | row.rungs
    return cards


class Fit:
    """Times of some cards, and what the terms of each kernel's cost are at their sizes."""

    def __init__(self, cards: Mapping[str, Sequence[Row]], dtype: str) -> None:
        ladder = shipped_ladder("gemm")
        kernels = {one.id: one for one in ladder.kernels}
        self.chooser = ladder.of_type(kernels["by_size"], dtype)
        asked = [one for one in self.chooser.choices if one.least and dtype == kernels[one.kernel].dtypes[0]]
        #: Sums, each with the kernels that share it.
        self.tables = {
            least: [kernels[one.kernel] for one in those]
            for least, those in groupby(asked, lambda one: one.least)
        }
        terms = [terms_of(least) for least in self.tables]
        self.names = [(number, name) for number, held in enumerate(terms) for name in held]
        self.shipped = np.array([float(many) for held in terms for many in held.values()])
        columns = [one for those in self.tables.values() for one in those]
        self.rows, self.cards, values, times = [], [], [], []
        for card, row in ((card, row) for card, found in completed(cards).items() for row in found):
            device, problem = (
                load_card(card),
                Problem.of(
                    shipped_operation("gemm"), extents_of(row.size), dtype, None, self.chooser.options
                ),
            )
            here, timed = np.full((len(columns), len(self.names)), np.nan), np.full(len(columns), np.nan)
            for place, kernel in enumerate(columns):
                try:
                    configure(kernel, problem, kernel.block, {}, device)
                except CaseSkipped:
                    continue
                known = values_of(kernel, problem, {}, device)
                number = next(at for at, those in enumerate(self.tables.values()) if kernel in those)
                here[place] = [evaluate(name, known) if of == number else 0 for of, name in self.names]
                timed[place] = row.rungs.get(kernel.id, np.nan)
            if np.isfinite(timed).any():
                self.rows.append(row)
                self.cards.append(card)
                values.append(here)
                times.append(timed)
        self._values, self._times = np.array(values), np.array(times) * 1e6
        least = np.nanmin(self._times, axis=1)
        #: Logarithms, by size: the best kernel's speed over cuBLAS, and how far each kernel is behind it.
        self.ideal = np.log([row.vendor_us for row in self.rows] / least * 1e6)
        self._behind = np.log(self._times / least[:, None])

    def lost(self, numbers: Table) -> Table:
        """How far what is chosen is behind the best, by size; not a number where that was not timed."""
        costs = np.nan_to_num(self._values @ numbers, nan=np.inf)
        return self._behind[np.arange(len(costs)), costs.argmin(axis=1)]

    def numbers(self, of: NDArray[np.bool_]) -> Table:
        """Those that are made for some of the sizes."""
        values, times = self._values[of], self._times[of]
        owners = np.array([number for number, _ in self.names])
        numbers = np.zeros(len(owners))
        for number in range(len(self.tables)):
            mine = owners == number
            theirs = np.isfinite(times) & (values[:, :, mine] > 0).any(axis=2)
            if theirs.any():
                numbers[mine] = nearest(values[theirs][:, mine], times[theirs])
        numbers = np.array([rounded(number) for number in numbers])
        behind = np.nan_to_num(self._behind[of], nan=UNMEASURED)
        # What is behind cuBLAS, too, counts four times.
        felt = behind + 3 * np.maximum(0.0, behind - self.ideal[of][:, None])
        costs = np.nan_to_num(values @ numbers, nan=np.inf)
        values, timed = np.nan_to_num(values), np.isfinite(times)
        measured = np.log(times[timed])
        near = np.where(timed, np.exp(-NEAR * behind), 0.0)
        near /= near.sum(axis=1, keepdims=True)

        def loss(costs: Table) -> float:
            logs = np.log(np.maximum(costs, 1.0))
            if len(self.tables) == 1:
                errors = np.where(timed, logs - behind, 0.0)
                errors -= (near * errors).sum(axis=1, keepdims=True)
                return float((near * errors**2).sum(axis=1).mean())
            likely = np.exp((logs.min(axis=1, keepdims=True) - logs) / UNCERTAIN)
            expected = (likely * felt).sum(axis=1) / likely.sum(axis=1)
            return float(expected.mean() + OF_ERRORS * ((logs[timed] - measured) ** 2).mean())

        lost = loss(costs)
        for factor in (factor for factor in FACTORS for _ in range(ROUNDS)):
            for place in np.flatnonzero(numbers):
                for other in (numbers[place] * factor, numbers[place] / factor):
                    changed = rounded(other)
                    tried = costs + values[:, :, place] * (changed - numbers[place])
                    if changed and (now := loss(tried)) < lost - LEAST_GAIN:
                        lost, costs, numbers[place] = now, tried, changed
        return numbers

    def sums(self, numbers: Table) -> list[str]:
        """The tables' sums with these numbers."""
        found: list[dict[str, float]] = [{} for _ in self.tables]
        for (number, name), many in zip(self.names, numbers, strict=True):
            found[number][name] = many
        return [least_of(terms) for terms in found]

    def told(self, what: str, lost: Table) -> str:
        """One line on what choices reach."""
        timed = np.isfinite(lost)
        shares = np.exp((self.ideal - lost)[timed])
        return (
            f"{what}: {math.exp(np.log(shares).mean()):.4f}x cuBLAS at {len(shares)} sizes, least"
            f" {shares.min():.3f}; not timed {int(np.isnan(lost).sum())}"
        )


def main() -> None:
    """Find costs, say what they reach, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACE")
    parser.add_argument("--write", action="store_true", help="into the header")
    parser.add_argument(
        "--shipped", action="store_true", help="find none: what do those of the header reach?"
    )
    parser.add_argument("--dtype", default="f32", help="of which type")
    options = parser.parse_args()
    fit = Fit(read_all(options.places), options.dtype)
    everywhere = np.ones(len(fit.rows), bool)
    numbers = fit.shipped if options.shipped else fit.numbers(everywhere)
    for least, those in zip(fit.sums(numbers), fit.tables.values(), strict=True):
        print(f"{', '.join(one.id for one in those)}: {least}")
    print(fit.told("the best kernel of each size", np.zeros_like(fit.ideal)))
    lost = fit.lost(numbers)
    print(fit.told("these costs", lost))
    for place in np.argsort(-np.nan_to_num(lost))[:8]:
        print(f"  {fit.rows[place].size}: {100 * math.expm1(lost[place]):.1f} % behind the best kernel")
    if options.write:
        path = KERNEL_ROOT / "gemm" / fit.chooser.file_name
        tables = re.split(r"(?=^\[\[choose\]\]$)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for (old, those), new in zip(fit.tables.items(), fit.sums(numbers), strict=True):
            for place, table in enumerate(tables):
                if f'"{those[0].id}"' in table:  # other types may have the same sum
                    tables[place] = table.replace(f'least = "{old}"', f'least = "{new}"')
        path.write_text("".join(tables), encoding="utf-8")
    elif not options.shipped:
        sizes = list(dict.fromkeys(row.size for row in fit.rows))
        order = np.array([sizes.index(row.size) for row in fit.rows])
        cards = np.array(fit.cards)
        held = {"every other size": order % 2, "each fifth": order % 5, "each card": cards}
        for what, part in held.items():
            if len(parts := set(part)) > 1:  # cards may be one
                unseen = np.zeros_like(lost)
                for one in parts:
                    unseen[part == one] = fit.lost(fit.numbers(part != one))[part == one]
                print(fit.told(f"made without {what}, at those", unseen))


if __name__ == "__main__":
    main()
