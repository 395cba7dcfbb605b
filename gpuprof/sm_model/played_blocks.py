# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What came of the blocks that an SM played, and what follows for those that it did not play."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct


class Played(Struct):
    """What came of blocks that were played.

    Attributes:
        ends: When each block ended.
        drained: How long after its last warp: until L2 has acknowledged its stores.
        spent: By block of machine code and number of the path, the places where warps passed it, and for
            how long.
    """

    ends: list[float] = []
    drained: list[float] = []
    spent: dict[tuple[int, int], list[tuple[int, float]]] = {}

    def last_end(self, blocks: int, resident: int) -> float:
        """Return when the last of an SM's blocks ends, of which the first ones were played."""
        ends = sorted(self.ends)
        left = blocks - len(ends)
        if (steady := len(ends) - 2 * resident) >= resident:  # but the first and last wave
            return ends[-1] + left * (ends[-resident - 1] - ends[resident - 1]) / steady
        return ends[-1] * (1 + left / len(ends))

    def life(self, times: Sequence[float], warps: int) -> float:
        """Return how long the longest lived warps live, of those that go one path, and then their stores."""
        roles = {role for _, role in self.spent}
        goers: Counter[int] = Counter(number for number, _ in self.spent)
        return max(
            _life_of(
                {number: spent for (number, one), spent in self.spent.items() if one == role},
                [count * len(roles) / max(1, goers[number]) for number, count in enumerate(times)],
                warps / len(roles),
            )
            for role in roles
        ) + max(self.drained, default=0.0)


def _life_of(spent: Mapping[int, Sequence[tuple[int, float]]], times: Sequence[float], warps: float) -> float:
    """Return how long a warp lives: in each block the passes played, and more like the later ones."""
    life = 0.0
    for number, passed in spent.items():
        by_place: dict[int, list[float]] = defaultdict(list)
        for place, cycles in passed:
            by_place[place].append(cycles)
        means = [sum(by_place[place]) / len(by_place[place]) for place in sorted(by_place)]
        passes, later = len(passed) / warps, means[len(means) // 3 :]
        mean, steady = sum(means) / len(means), sum(later) / len(later)
        life += min(times[number], passes) * mean + max(0.0, times[number] - passes) * steady
    return life
