# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Prove that what lanes do in some turns of a loop, they do again, with registers that have moved on.

It is a proof by induction over periods of turns. What it supposes is that each register that a period reads
from before holds in period n what it held in the first, plus n times a distance. While the first period runs,
the distances of all that it computes are followed. Every branch, guard and address must stay what it is, or
move where that makes no difference; each says up to which period it does. What is found at the end must be
what was supposed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes, reinterpret
from gpuprof.executor.steps.batch import MOST_PERIODS, Batch
from gpuprof.executor.steps.motions import Motion

#: Distances, of the type of registers: shape (blocks or 1, warps or 1, 32 or 1).
_Distance = NDArray[np.int64]
#: Periods for which arithmetic is computed that no rule is known for.
_COMPUTED = 64
#: Numbers of 64 bits beyond this are not followed.
_LARGE = 1 << 61
#: What moves a bulk copy by whole chunks, whether it is counted in bytes or in elements.
_STEP = 16
_ZERO: _Distance = np.zeros((1, 1, 1), dtype=np.int64)
#: Comparisons that turn where the first operand comes to the second, and where it passes it.
_BELOW = frozenset({"lt", "lo", "ge", "hs"})
_UP_TO = frozenset({"le", "ls", "gt", "hi"})


class Moves:
    """How far registers move from one period to the next.

    Args:
        batch: Whose registers, at the beginning of the period that is followed.
        mask: The lanes that run it.
        before: What registers held a period before.

    Attributes:
        limit: For each block the last period, counted from this one as 0, that is sure to do the same.
    """

    def __init__(self, batch: Batch, mask: Mask, before: list[Lanes]) -> None:
        self._batch = batch
        self._lanes = mask.lanes
        self._before = before
        self._start = list(batch.registers)
        self._now: dict[int, _Distance | None] = {}
        #: What was supposed of the registers that were read before they were written.
        self._supposed: dict[int, _Distance] = {}
        self.limit: NDArray[np.int64] = np.zeros(batch.blocks, dtype=np.int64)
        self.limit[:] = np.where(mask.lanes.any(axis=(1, 2)), MOST_PERIODS, 0)

    def follow(self, motion: Motion) -> None:
        """The lanes in the batch's mask are about to run a step."""
        lanes = self._batch.mask.lanes
        if not motion.known:
            self._stop(lanes)
            return
        guarded = motion.guard is not None
        if motion.guard is not None:
            self.stay(motion.guard, lanes)
            holds = self._batch.registers[motion.guard]
            lanes = lanes & (~holds if motion.negated else holds)
        for slot in motion.fixed:
            self.stay(slot, lanes)
        for slot in motion.stepped:
            self._require(self._of(slot, lanes) % _STEP == 0, lanes)
        if not motion.targets:
            return
        made = self._made(motion, lanes) if motion.operation else _ZERO
        for slot, spares in motion.targets:
            if made is not _ZERO and self._batch.registers[slot].dtype.itemsize != motion.result.itemsize:
                self._stop(lanes)
            self._write(slot, made, lanes, spares=guarded or (spares and not self._batch.alone))

    def stay(self, slot: int, lanes: Bools) -> None:
        """What a register holds in some lanes must be the same in every period."""
        distance = self._of(slot, lanes)
        if distance is not _ZERO:
            self._require(distance == 0, lanes)

    def confirmed(self) -> dict[int, _Distance]:
        """At the end of the period, return the distances that were supposed; where wrongly, `limit` is 0."""
        for slot, supposed in self._supposed.items():
            found = self._now[slot]
            if found is None:
                self._stop(self._lanes)
                continue
            self._require(found == supposed, self._lanes)
            self._require(
                self._apart(self._start[slot], self._batch.registers[slot]) == supposed, self._lanes
            )
        return {slot: distance for slot, distance in self._supposed.items() if distance is not _ZERO}

    def _of(self, slot: int, lanes: Bools) -> _Distance:
        """The distance of a register; where it is not known, blocks with any of the lanes are given up."""
        if slot not in self._now:
            self._suppose(slot)
        distance = self._now[slot]
        if distance is None:
            self._stop(lanes)
            return _ZERO
        return distance

    def _suppose(self, slot: int) -> None:
        supposed = _ZERO
        if self._before[slot] is not self._start[slot]:
            found = np.where(self._lanes, self._apart(self._before[slot], self._start[slot]), 0)
            supposed = found if found.any() else _ZERO
            if supposed is not _ZERO and self._start[slot].dtype.kind not in "iu":
                self._require(supposed == 0, self._lanes)
                supposed = _ZERO
        self._supposed[slot] = self._now[slot] = supposed

    @staticmethod
    def _apart(before: Lanes, after: Lanes) -> _Distance:
        """The distance between two values of a register; of what is not an integer, whether they differ."""
        if after.dtype.kind in "iu":
            return np.asarray((after - before).astype(np.int64))
        if after.dtype.kind == "f":
            kind = f"u{after.dtype.itemsize}"
            return np.asarray(before.view(kind) != after.view(kind)).astype(np.int64)
        return np.asarray(before != after).astype(np.int64)

    def _write(self, slot: int, distance: _Distance, lanes: Bools, *, spares: bool) -> None:
        if spares:
            if slot not in self._now:
                self._suppose(slot)
            old = self._now[slot]
            if old is None:
                return
            if old is not distance:
                mixed = np.where(lanes, distance, old)
                distance = mixed if mixed.any() else _ZERO
        self._now[slot] = distance

    def _made(self, motion: Motion, lanes: Bools) -> _Distance:
        distances = [self._of(slot, lanes) for slot, _ in motion.sources]
        if all(distance is _ZERO for distance in distances):
            return _ZERO
        values = []
        for number, (slot, kind) in enumerate(motion.sources):
            held = self._batch.registers[slot]
            if distances[number] is not _ZERO and kind.itemsize > held.dtype.itemsize:
                self._inside(held, distances[number], lanes)
            values.append(reinterpret(held, kind))
        rule = _RULES.get(motion.operation)
        found = rule(self, motion, values, distances, lanes) if rule is not None else None
        if found is None:
            found = self._computed(motion, values, distances, lanes)
        found = _wrapped(found, motion.result)
        return found if found.any() else _ZERO

    def _computed(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance:
        """Compute a result for the periods to come, and see as far as which it moves evenly."""
        assert motion.compute is not None
        last = int(min(_COMPUTED, self.limit.max()))

        def result(period: int) -> Lanes:
            moved = [
                value if distance is _ZERO else value + (period * distance).astype(value.dtype)
                for value, distance in zip(values, distances, strict=True)
            ]
            found: Lanes = motion.compute(*moved) if motion.compute is not None else moved[0]
            return found

        first = result(0)
        distance = self._apart(first, result(1)) if last else _ZERO
        if first.dtype.kind not in "iu":
            distance = _ZERO
        even = np.zeros(np.broadcast_shapes(first.shape, lanes.shape), dtype=np.int64)
        going = np.ones(even.shape, dtype=np.bool_)
        for period in range(1, last + 1):
            expected = first + (period * distance).astype(first.dtype) if distance is not _ZERO else first
            going = going & ((result(period) == expected) | ~lanes)
            if not going.any():
                break
            even += going
        self._at_most(even, lanes)
        return distance

    def _inside(self, value: Lanes, distance: _Distance, lanes: Bools) -> None:
        """Moving values must not wrap around."""
        wide, edges = self._narrow(value, lanes), np.iinfo(value.dtype)
        least, most = max(int(edges.min), -_LARGE), min(int(edges.max), _LARGE)
        steps = np.where(distance == 0, 1, abs(distance))
        room = np.where(distance > 0, most - wide, wide - least)
        self._at_most(np.where(distance == 0, MOST_PERIODS, room // steps), lanes)

    def _narrow(self, value: Lanes, lanes: Bools) -> NDArray[np.int64]:
        """Return values as numbers that can be subtracted; blocks with larger ones are given up."""
        if value.dtype.itemsize < 8:
            return value.astype(np.int64)
        small = value < _LARGE
        if value.dtype.kind == "i":
            small &= value > -_LARGE
        self._require(small, lanes)
        return np.asarray(np.where(small, value, 0).astype(np.int64))

    def _require(self, holds: Any, lanes: Bools) -> None:
        wrong = np.asarray(~np.asarray(holds) & lanes)
        if wrong.any():
            self.limit[np.broadcast_to(wrong.any(axis=(1, 2)), self.limit.shape)] = 0

    def _stop(self, lanes: Bools) -> None:
        self._require(np.zeros((1, 1, 1), dtype=np.bool_), lanes)

    def _at_most(self, periods: NDArray[np.int64], lanes: Bools) -> None:
        of_block = np.where(lanes, periods, MOST_PERIODS).min(axis=(1, 2))
        np.minimum(self.limit, of_block, out=self.limit)

    # Rules: the distance of a result, or None where it is to be computed.

    def _sum(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if motion.flags:
            return None
        return distances[0] + distances[1] if motion.operation == "add" else distances[0] - distances[1]

    def _moved(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        return distances[0]

    def _product(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if motion.flags not in (("lo",), ("wide",)):
            return None
        for value, distance in zip(values[:2], distances[:2], strict=True):
            if motion.flags == ("wide",) and distance is not _ZERO:
                self._inside(value, distance, lanes)
        one, other = distances[:2]
        self._require((one == 0) | (other == 0), lanes)
        found = one * values[1].astype(np.int64) + other * values[0].astype(np.int64)
        return found + distances[2] if len(distances) > 2 else found

    def _shifted_left(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if distances[1] is not _ZERO:
            return None
        count = values[1].astype(np.int64)
        return np.asarray(np.where(count < 64, distances[0] << np.minimum(count, 63), 0))

    def _shifted_right(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        """Whole multiples of what is shifted out leave the rest as it is."""
        count = np.minimum(values[1].astype(np.int64), 62)
        signs = values[0].dtype.kind == "i" and int(count.min()) >= 8 * values[0].dtype.itemsize - 1
        if signs and distances[1] is _ZERO:
            self._inside(values[0], distances[0], lanes)
            self._at_most(_until_sign(self._narrow(values[0], lanes), distances[0]), lanes)
            return _ZERO
        if distances[1] is not _ZERO or (distances[0] & ((1 << count) - 1)).any():
            return None
        self._inside(values[0], distances[0], lanes)
        return np.asarray(distances[0] >> count)

    def _converted(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if motion.flags or values[0].dtype.kind not in "iu" or motion.result.kind not in "iu":
            return None
        if motion.result.itemsize > values[0].dtype.itemsize:
            self._inside(values[0], distances[0], lanes)
        return distances[0]

    def _masked(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        """Of a value that moves by whole multiples of some bits, these stay, and the others move alone."""
        for masks, distance, other in (
            (values[1], distances[0], distances[1]),
            (values[0], *distances[::-1]),
        ):
            if other is not _ZERO:
                continue
            kept = masks.view(f"i{masks.dtype.itemsize}").astype(np.int64)
            below = np.where(kept < 0, ~kept, kept)
            if (kept < 0).all() and not (below & (below + 1)).any() and not (distance & below).any():
                return distance
            if (kept >= 0).all() and not (distance & ((1 << int(below.max()).bit_length()) - 1)).any():
                return _ZERO
        return None

    def _chosen(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if distances[2] is not _ZERO:
            return None
        return np.asarray(np.where(values[2], distances[0], distances[1]))

    def _compared(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if len(motion.flags) != 1 or len(values) != 2 or values[0].dtype.kind not in "iu":
            return None
        (how,) = motion.flags
        ahead = self._difference(values, distances, lanes)
        distance = distances[0] - distances[1]
        if how in ("eq", "ne"):
            self._at_most(_until_zero(ahead, distance), lanes)
        elif how in _BELOW or how in _UP_TO:
            self._at_most(_until_sign(ahead - (how in _UP_TO), distance), lanes)
        else:
            return None
        return _ZERO

    def _extreme(
        self, motion: Motion, values: list[Lanes], distances: list[_Distance], lanes: Bools
    ) -> _Distance | None:
        if motion.flags or values[0].dtype.kind not in "iu":
            return None
        ahead = self._difference(values, distances, lanes)
        # Where both are equal, which one it is may change at once.
        self._at_most(_until_sign(ahead, distances[0] - distances[1]), lanes)
        first = ahead < 0 if motion.operation == "min" else ahead >= 0
        return np.asarray(np.where(first, distances[0], distances[1]))

    def _difference(self, values: list[Lanes], distances: list[_Distance], lanes: Bools) -> NDArray[np.int64]:
        for value, distance in zip(values, distances, strict=True):
            if distance is not _ZERO:
                self._inside(value, distance, lanes)
        return self._narrow(values[0], lanes) - self._narrow(values[1], lanes)


def _until_sign(ahead: NDArray[np.int64], distance: _Distance) -> NDArray[np.int64]:
    """Return for how many periods `ahead + n * distance` stays below 0, or not below."""
    steps = np.where(distance == 0, 1, abs(distance))
    below = ahead < 0
    room = np.where(below, -ahead - 1, ahead) // steps
    changes = np.where(below, distance > 0, distance < 0)
    return np.asarray(np.where(changes, room, MOST_PERIODS))


def _until_zero(ahead: NDArray[np.int64], distance: _Distance) -> NDArray[np.int64]:
    """Return for how many periods `ahead + n * distance` stays 0, or stays something else."""
    steps = np.where(distance == 0, 1, abs(distance))
    meets = (np.sign(ahead) == -np.sign(distance)) & (ahead % steps == 0) & (distance != 0)
    later = np.where(meets, abs(ahead) // steps - 1, MOST_PERIODS)
    return np.asarray(np.where(ahead == 0, np.where(distance == 0, MOST_PERIODS, 0), later))


def _wrapped(distance: _Distance, kind: np.dtype[Any]) -> _Distance:
    """Return a distance as the type of a register has it."""
    if distance is _ZERO or kind.kind not in "iu" or kind.itemsize == 8:
        return distance
    return np.asarray(distance.astype(f"i{kind.itemsize}").astype(np.int64))


_Rule = Callable[[Moves, Motion, list[Lanes], list[_Distance], Bools], _Distance | None]
_RULES: dict[str, _Rule] = {
    "add": Moves._sum,
    "sub": Moves._sum,
    "mov": Moves._moved,
    "mul": Moves._product,
    "mad": Moves._product,
    "shl": Moves._shifted_left,
    "shr": Moves._shifted_right,
    "cvt": Moves._converted,
    "and": Moves._masked,
    "selp": Moves._chosen,
    "setp": Moves._compared,
    "min": Moves._extreme,
    "max": Moves._extreme,
}
