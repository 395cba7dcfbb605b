# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Branch paths, as CUDA calls them: lanes that run together, and the joins where they meet again.

Warps never wait for each other at a join. Lanes of a warp do, as on hardware, until nothing else can run.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from msgspec import Struct, field

from gpuprof.executor.lanes.masks import Bools, Mask
from gpuprof.executor.lanes.scalars import Lanes
from gpuprof.executor.program.flow import EXIT_BLOCK, BasicBlock
from gpuprof.executor.program.loops import Loop, WaitingLoop
from gpuprof.executor.steps.batch import Batch


class Join(Struct, eq=False):
    """Where the paths that split off at one branch meet: `block`, run by `lanes` once none is `pending`.

    `memory` and `waiting` are those of the path that split.
    """

    block: int
    lanes: Bools
    rejoin: int
    above: "Join | None"
    pending: int = 0
    memory: "Memory | None" = None
    waiting: WaitingLoop | Loop | None = None


class Registers(Struct):
    """What registers held when lanes stopped within a basic block.

    Others that run the block meanwhile spare only what is needed outside of it.
    """

    values: list[Lanes]
    shadow: Any

    @classmethod
    def of(cls, batch: Batch) -> Self:
        """Return what they hold now."""
        return cls(list(batch.registers), batch.shadow.saved() if batch.shadow is not None else None)

    def restore(self, batch: Batch, lanes: Bools) -> None:
        """Put back what some lanes had."""
        registers = batch.registers
        for slot, (mine, now) in enumerate(zip(self.values, registers, strict=True)):
            if mine is not now:
                registers[slot] = np.where(lanes, mine, now)
        if batch.shadow is not None:
            batch.shadow.restore(self.shadow, lanes)


class Memory(Struct, eq=False):
    """What a path held at the end of its last iteration in loops that may be there to wait.

    `watched` is what each loop read and wrote, by its header; `registers` all that it held when it last
    turned in vain, and `turns` how often it has in a row.
    """

    watched: dict[int, list[Lanes]] = field(default_factory=dict)
    registers: list[Lanes] = field(default_factory=list)
    turns: int = 0

    def copy(self) -> "Memory":
        """Return the same, for lanes that part from the path."""
        return Memory(dict(self.watched), self.registers, self.turns)


@dataclass(eq=False)
class BranchPath:
    """Lanes that run together from `block` until they reach `rejoin`, where `above` awaits them.

    `step` is the first of the block's steps that they have yet to run, and `registers` what they had when
    they stopped there. `memory` is None outside of loops that may be there to wait. `waiting` is such a loop
    of which it has not yet ended the iteration that another path began.
    """

    block: int
    mask: Mask
    rejoin: int = EXIT_BLOCK
    above: Join | None = None
    step: int = 0
    registers: Registers | None = None
    memory: Memory | None = None
    waiting: WaitingLoop | Loop | None = None

    @property
    def place(self) -> tuple[int, int, int, int]:
        """The same for paths that can go on as one."""
        return self.block, self.step, self.rejoin, id(self.above)


def joins_from(join: Join | None) -> list[Join]:
    """Return a join and those around it."""
    found = []
    while join is not None:
        found.append(join)
        join = join.above
    return found


def leave(path: BranchPath, chosen: Bools) -> tuple[BranchPath | None, BranchPath | None]:
    """Divide a path into its lanes that are true in `chosen`, which go on, and the others, which stay."""
    going = path.mask.lanes & chosen
    if not going.any():
        return None, path
    rest = path.mask.lanes & ~chosen
    if not rest.any():
        return path, None
    if path.above is not None:
        path.above.pending += 1
    stays = replace(path, mask=path.mask.of(rest))
    path.mask = path.mask.of(going)
    return path, stays


def lanes_of(paths: Iterable[BranchPath], batch: Batch) -> Bools:
    """Return the lanes of some paths, in the batch's full shape."""
    lanes = np.zeros(batch.shape, dtype=np.bool_)
    for path in paths:
        lanes |= path.mask.lanes
    return lanes


class Waits(Protocol):
    """A path that waits, and what is noted of it."""

    path: BranchPath


W = TypeVar("W", bound=Waits)


def let_go(waiting: list[W], group: list[W], chosen: Bools) -> list[BranchPath]:
    """Take the lanes that are true in `chosen` from those that wait; return them."""
    going = []
    for one in group:
        leaving, staying = leave(one.path, chosen)
        if staying is None:
            waiting.remove(one)
        else:
            one.path = staying
        if leaving is not None:
            going.append(leaving)
    return going


def as_one(paths: list[BranchPath]) -> list[BranchPath]:
    """Put paths together that go on from one place."""
    going: dict[tuple[int, ...], BranchPath] = {}
    for path in paths:
        if (known := going.setdefault(path.place, path)) is not path:
            known.mask = known.mask.of(known.mask.lanes | path.mask.lanes)
            if known.above is not None:
                known.above.pending -= 1
    return list(going.values())


class Joins:
    """The joins of one batch, which lanes leave before others that cannot get there without them.

    `loose` are warps of which lanes have gone on without others: shape (blocks or 1, warps or 1, 1).
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.loose: Bools = np.zeros((1, 1, 1), dtype=np.bool_)

    def warps(self, stuck: list[BranchPath]) -> list[BranchPath]:
        """Let warps go on that have reached a join whole; return the path that they are, if any."""
        for join in _inner_first(stuck):
            busy = self._still_to_come(join, stuck).any(axis=2, keepdims=True)
            if (going := join.lanes & self.batch.live.lanes & ~busy).any():
                return [self._leave(join, going)]
        return []

    def lanes(
        self, stuck: list[BranchPath], wanted: Bools | None = None, within: list[BranchPath] | None = None
    ) -> list[BranchPath]:
        """Let lanes go on without others of their warp; return the path that they are, if any.

        Only `wanted` lanes go on, by leaving joins of the paths `within`; by default all.
        """
        for join in _inner_first(stuck if within is None else within):
            going = join.lanes & self.batch.live.lanes & ~self._still_to_come(join, stuck)
            going = going if wanted is None else going & wanted
            if going.any():
                self.loose = self.loose | going.any(axis=2, keepdims=True)
                return [self._leave(join, going)]
        return []

    @staticmethod
    def ahead(block: BasicBlock, path: BranchPath) -> list[int]:
        """Return where the sides of a branch will meet and none awaits them yet, the outermost first."""
        if block.sooner is None:
            return [block.rejoin] if block.rejoin != path.rejoin else []
        awaited = {path.rejoin, *(join.rejoin for join in joins_from(path.above))}
        places = [block.sooner] if block.rejoin in awaited else [block.rejoin, block.sooner]
        return places if block.sooner not in awaited else []

    def left(self, path: BranchPath) -> bool:
        """Take lanes from the joins that they left where they are; False if they left none."""
        joins = joins_from(path.above)
        left = next((n for n, join in enumerate(joins, 1) if join.rejoin == path.block), 0)
        for join in joins[:left]:
            join.lanes = join.lanes & ~path.mask.lanes
        return bool(left)

    def _still_to_come(self, join: Join, paths: list[BranchPath]) -> Bools:
        return lanes_of((path for path in paths if join in joins_from(path.above)), self.batch)

    def _leave(self, join: Join, going: Bools) -> BranchPath:
        join.lanes = join.lanes & ~going
        if join.above is not None:
            join.above.pending += 1
        memory = join.memory and join.memory.copy()
        return BranchPath(join.block, self.batch.live.of(going), join.rejoin, join.above, memory=memory)


def _inner_first(paths: list[BranchPath]) -> list[Join]:
    """Return the joins that paths will reach: who is free at one has not reached those around it."""
    joins = {id(join): join for path in paths for join in joins_from(path.above)}
    return sorted(joins.values(), key=lambda join: len(joins_from(join)), reverse=True)
