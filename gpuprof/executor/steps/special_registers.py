# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What special registers hold: of threads and blocks as on a card, of time and place what the executor has.

Blocks are dealt out to the card's multiprocessors in turn. What follows from that, or from times, is not the
card's, and a launch that asks for them says so.
"""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.lanes.cluster_layout import LONE_BLOCK, ClusterLayout
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.scalars import Lanes, uniform, uniform_blocks
from gpuprof.executor.memory.windows import reserved_shared_end, shared_start
from gpuprof.executor.program.slots import GRID_WORKSPACE, RESERVED_FOR_TILES
from gpuprof.executor.steps.batch import Geometry
from gpuprof.executor.steps.launch_state import CLOCKS

#: Registers whose values depend on where and when a card runs a block.
_PLACES = frozenset({"%smid", "%nsmid", "%warpid", "%gridid"})
#: Registers that count what a profiler sets them to count: the PTX ISA promises nothing of them.
_COUNTERS = tuple(f"%pm{i}{width}" for i in range(8) for width in ("", "_64"))

#: Warps that a multiprocessor of an architecture holds: `%nwarpid`. Others hold 64.
_WARPS_OF_MULTIPROCESSOR = {75: 32, 86: 48, 87: 48, 88: 48, 89: 48, 120: 48, 121: 48}
#: The unit in which shared memory is allotted, as `%total_smem_size` counts it, before sm_80 and since.
_OLD_SHARED_UNIT, _SHARED_UNIT = 256, 128
_FIRST_OF_NEW_UNIT = 80


def _by_axis(name: str, values: Iterable[Any]) -> dict[str, Any]:
    return {f"%{name}.{axis}": value for axis, value in zip("xyz", values, strict=True)}


class Surroundings(Struct, frozen=True):
    """What a launch is, as far as its threads can ask."""

    geometry: Geometry
    cluster: tuple[int, int, int] | None
    architecture: int
    static_and_dynamic_bytes: int
    dynamic_bytes: int
    multiprocessors: int

    def of_launch(self) -> dict[str, Any]:
        """Return the registers that hold the same in every block, by name: each broadcasts to a batch."""
        geometry, cluster = self.geometry, self.cluster or (1, 1, 1)
        x, y, _ = geometry.block
        blocks = cluster[0] * cluster[1] * cluster[2]
        warp = np.tile(np.arange(geometry.warps), blocks).reshape(1, -1, 1)
        thread = warp * WARP + np.arange(WARP)
        lane = np.arange(WARP).reshape(1, 1, WARP)
        bit = np.left_shift(np.uint64(1), lane.astype(np.uint64))
        clusters = [blocks // size for blocks, size in zip(geometry.grid, cluster, strict=True)]
        unit = _SHARED_UNIT if self.architecture >= _FIRST_OF_NEW_UNIT else _OLD_SHARED_UNIT
        total = -(-self.static_and_dynamic_bytes // unit) * unit
        reserved = shared_start(self.architecture)
        return {
            **_by_axis("tid", (thread % x, thread // x % y, thread // (x * y))),
            **_by_axis("ntid", geometry.block),
            **_by_axis("nctaid", geometry.grid),
            **_by_axis("cluster_nctaid", cluster),
            **_by_axis("nclusterid", clusters),
            "%cluster_nctarank": blocks,
            "%is_explicit_cluster": self.cluster is not None,
            "%laneid": lane,
            "%warpid": warp,
            "%nwarpid": _WARPS_OF_MULTIPROCESSOR.get(self.architecture, 64),
            "%nsmid": self.multiprocessors,
            "%gridid": 1,
            "%current_graph_exec": 0,
            **dict.fromkeys(_COUNTERS, 0),
            "%dynamic_smem_size": self.dynamic_bytes,
            "%total_smem_size": total,
            "%aggr_smem_size": self.static_and_dynamic_bytes + reserved,
            "%reserved_smem_offset_begin": 0,
            "%reserved_smem_offset_end": reserved_shared_end(self.architecture),
            "%reserved_smem_offset_cap": reserved,
            RESERVED_FOR_TILES: 0,
            "%lanemask_eq": bit,
            "%lanemask_lt": bit - 1,
            "%lanemask_le": 2 * bit - 1,
            "%lanemask_ge": 2**32 - bit,
            "%lanemask_gt": 2**32 - 2 * bit,
        }

    def of_blocks(self, indices: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Return the registers in which blocks differ, by name, for blocks of these indices (blocks, 3)."""
        cluster = np.array(self.cluster or (1, 1, 1))
        width, height, _ = self.geometry.grid
        inside = indices % cluster
        x, y, z = indices.T
        return {
            **_by_axis("ctaid", indices.T),
            **_by_axis("clusterid", (indices // cluster).T),
            **_by_axis("cluster_ctaid", inside.T),
            "%cluster_ctarank": (inside[:, 2] * cluster[1] + inside[:, 1]) * cluster[0] + inside[:, 0],
            "%smid": ((z * height + y) * width + x) % self.multiprocessors,
        }


_ANY = Surroundings(Geometry((1, 1, 1), (WARP, 1, 1)), None, _FIRST_OF_NEW_UNIT, 0, 0, 1)
#: What the executor can answer, but for registers that tell the time.
ANSWERED = GRID_WORKSPACE.union(_ANY.of_launch(), _ANY.of_blocks(np.zeros((1, 3), np.int64)))


def launch_register(value: Any) -> Lanes:
    """Return a value of `of_launch` as registers hold it: size 1 on every axis along which it is the same."""
    held: Lanes = np.asarray(value).astype(np.uint32).view(np.int32)
    held = held.reshape((1,) * (3 - held.ndim) + held.shape)
    for axis in (1, 2):
        first = np.take(held, [0], axis=axis)
        if (held == first).all():
            held = first
    return held


def block_register(values: NDArray[np.int64], layout: ClusterLayout = LONE_BLOCK) -> Lanes:
    """Return a value of `of_blocks` as registers hold it: the blocks are those of whole clusters, by rank."""
    if (values == values[0]).all():
        return uniform(int(values[0]), np.dtype(np.int32))
    held = uniform_blocks(layout.in_batch(values.astype(np.int32)))
    return held[:, :1] if (held == held[:, :1]).all() else held


def remark_on(names: Collection[str]) -> str:
    """Say which registers of a launch hold what no card would; empty where all hold what a card does."""
    clocks, places = sorted(set(names) & CLOCKS.keys()), sorted(set(names) & _PLACES)
    parts = []
    if counters := sorted(set(names).intersection(_COUNTERS)):
        parts.append(f"{', '.join(counters)}: 0, as no profiler has set what they count")
    if clocks:
        parts.append(f"{', '.join(clocks)}: instructions were counted, not time of the card")
    if places:
        parts.append(f"{', '.join(places)}: the executor's own; a card deals out blocks otherwise")
    return "; ".join(parts)
