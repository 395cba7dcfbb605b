# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From the best at each size to rules that name it for any size: a small decision tree over sizes.

A split is a dimension, or a product of some, held against a number halfway between two sizes that were
measured, by ratio; or a condition that some of the kernels have, such as rows of a multiple of four. Rules
are tried in order, the first that holds counts, so that what stands behind a split need not say that the
split does not hold.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Generic, TypeVar

from gpuprof.problems.formulas import evaluate

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Sample(Generic[Target]):
    """What is best at one size, and what cannot be told apart from it."""

    sizes: Mapping[str, int]
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Rule(Generic[Target]):
    """What to take where all conditions hold, and the measured sizes that it stands for."""

    conditions: tuple[str, ...]
    target: Target
    samples: tuple[Mapping[str, int], ...]


def rules_of(samples: Sequence[Sample[Target]], conditions: Sequence[str] = ()) -> list[Rule[Target]]:
    """Rules that name one of the tied best at every size that was measured, with as few targets as will do.

    Args:
        samples: At least one; no two of one size.
        conditions: Formulas of the dimensions that sizes may be told apart by too, such as what some of the
            targets require.
    """
    chosen = _fewest_targets(samples)
    return _split([(sample.sizes, chosen[number]) for number, sample in enumerate(samples)], (), conditions)


def _fewest_targets(samples: Sequence[Sample[Target]]) -> dict[int, Target]:
    """One of its targets for each sample; those first that serve the most samples."""
    left = dict(enumerate(samples))
    found: dict[int, Target] = {}
    while left:
        votes = Counter(target for sample in left.values() for target in sample.targets)
        # Of those that serve as many, the one that is best itself most often.
        firsts = Counter(sample.targets[0] for sample in left.values())
        best = max(votes, key=lambda target: (votes[target], firsts[target]))
        for number in [number for number, sample in left.items() if best in sample.targets]:
            found[number] = best
            del left[number]
    return found


def _split(
    samples: Sequence[tuple[Mapping[str, int], Target]], path: tuple[str, ...], conditions: Sequence[str]
) -> list[Rule[Target]]:
    targets = {target for _, target in samples}
    best: tuple[float, int, str, int] | None = None
    if len(targets) > 1:
        for order, (text, values) in enumerate(_measures([sizes for sizes, _ in samples], conditions)):
            marks = sorted(set(values))
            for low, high in pairwise(marks):
                limit = max(low, min(high - 1, math.isqrt(low * high)))
                below = [target for value, (_, target) in zip(values, samples, strict=True) if value <= limit]
                above = [target for value, (_, target) in zip(values, samples, strict=True) if value > limit]
                found = (_mixed(below) + _mixed(above), order, text, limit)
                best = found if best is None or found < best else best
    if best is None:
        (_, target), *_ = samples
        return [Rule(path, target, tuple(sizes for sizes, _ in samples))]
    _, _, text, limit = best
    values = dict(_measures([sizes for sizes, _ in samples], conditions))[text]
    below_ = [sample for value, sample in zip(values, samples, strict=True) if value <= limit]
    above_ = [sample for value, sample in zip(values, samples, strict=True) if value > limit]
    if text in conditions:  # 1 where it holds
        return _split(above_, (*path, text), conditions) + _split(below_, path, conditions)
    # A limit that was set before is a wider one.
    wider = tuple(one for one in path if not one.startswith(f"{text} <= "))
    return _split(below_, (*wider, f"{text} <= {limit}"), conditions) + _split(above_, path, conditions)


def _mixed(targets: Sequence[Target]) -> float:
    """How mixed some targets are, weighted by how many there are: Gini's impurity."""
    counts = Counter(targets).values()
    return len(targets) - sum(count * count for count in counts) / len(targets)


def _measures(sizes: Sequence[Mapping[str, int]], conditions: Sequence[str]) -> list[tuple[str, list[int]]]:
    """What sizes are told apart by: conditions, the product of all dimensions, single ones, then of some."""
    names = list(sizes[0])
    groups = [tuple(names), *((name,) for name in names)]
    groups += [pair for length in range(2, len(names)) for pair in combinations(names, length)]
    held = [(text, [int(evaluate(text, each) != 0) for each in sizes]) for text in conditions]
    return held + [
        (" * ".join(group), [math.prod(each[name] for name in group) for each in sizes])
        for group in dict.fromkeys(groups)
    ]
