# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An exact SIMT executor: runs a kernel's PTX on the CPU and counts what hardware counters would count.

A library of its own. With PTX of `compute_90` or lower in `ptx`, of a kernel that doubles n floats:

    >>> memory = GlobalMemory()
    >>> values = memory.allocate(np.arange(64, dtype=np.float32), "values")
    >>> result = launch(load_program(ptx, "twice"), (2, 1, 1), (32, 1, 1), [values, 64], memory)
    >>> values.array()[:4].tolist()
    [0.0, 2.0, 4.0, 6.0]
    >>> result.counters["global_load_requests"], result.counters["global_load_sectors"]
    (2, 8)

What CUDA leaves undefined, or hardware traps, is a `KernelFault` that names line, block and thread; what is
not modelled is an `UnsupportedInstruction`, raised when a thread reaches it. Of a large grid, `choose_blocks`
picks blocks to run; their counts are scaled to the grid, and `LaunchResult.exact_sample` says whether blocks
that should do the same work did. Launches on one memory build on each other; `combined` adds up what they
counted.

The way of a kernel through the rooms:

- `program` reads the text (`parsing`); `calls` and `flow` make it one body of basic blocks; `merge` widens
  shared-memory accesses as ptxas does; `slots` says where values live.
- `decode` turns each block into steps, once. A step runs one instruction on a whole batch of thread blocks,
  with NumPy, on arrays of shape (blocks, warps, 32) whose axes shrink to 1 where values are uniform.
  `arithmetic` is the table of what instructions compute; `steps` holds them, family by family. The
  float32 sums and products of a block are one step, which machine code runs (`float_runs`, `native`).
- `definedness` is an observer of steps, for who asks for it: it follows what was read of shared memory that
  nobody had written, and of registers, bit by bit, to where it would count.
- `divergence` keeps lanes that have parted: where they will join, who polls in vain, who waits at a warp
  operation for lanes of its warp that are elsewhere, and who at the barriers of blocks and clusters.
- `scheduler` runs the steps: where lanes diverge, where they meet again, and who waits at which barrier. The
  blocks of a cluster lie side by side in a batch, as if they were one (`ClusterLayout`).
- `memory` is what they touch: global and shared memory, the phases of mbarriers, what the copy engine has in
  flight. `coalescing` counts sectors there and `banks` wavefronts; `thread_order` knows what orders threads.
  The interpreter tells `events` what happens, without knowing who hears.
- `observers` are told. `races` judges who touched shared memory between barriers, and `phased_races` where
  mbarriers or barriers of some warps order accesses too; what repeats is judged once. `global_races` judges
  who touched global memory, of any block. A `witness` remembers who wrote an element, a `store_trace` how
  much was stored, and what without value. Whoever wants to know something else writes an `Observer`.
- `interleaving` runs the warps and blocks of a launch in other orders, for the races and the results that
  only these show (`other_orders`). `open_meetings` are why: accesses that are no race, and in nobody's order.
- `grid_launch` runs a grid, or the blocks that `sampling` chose, batch by batch; every batch begins as the
  `launch_template` says, unless CUDA would refuse the launch. `totals` adds everything up, also what the
  busiest multiprocessor has of it.
- A grid whose blocks build on each other may be too large to run. Its control slice, what decides where
  threads go and what they touch, counts it without the values (`slicing`).

Each room uses only those named before it: `faults`; `lanes` (masks, types and tallies of a batch's lanes);
`program`, `arithmetic` and `memory`, which do not know each other; `steps`; `definedness`; `decode`;
`sampling`; `divergence`; `scheduler` and `totals`; `observers`, which know only `memory` and `lanes`;
`interleaving`; `launch_template`; `grid_launch`. Of gpuprof they use its errors, its facts about the
copy engine and the units of textures, and what reads directives of PTX.
"""

from gpuprof.executor.decode import Program, array_uses, flow_of, load_program
from gpuprof.executor.definedness.following import Definedness
from gpuprof.executor.faults import (
    FaultKind,
    KernelFault,
    LaunchRefused,
    MemoryPlace,
    SharedByte,
    UnsupportedInstruction,
)
from gpuprof.executor.grid_launch import LaunchResult, combined, launch
from gpuprof.executor.interleaving import Openness, Order, other_orders
from gpuprof.executor.lanes.masks import WARP
from gpuprof.executor.lanes.tally import Iterations, left_over
from gpuprof.executor.launch_template import Argument
from gpuprof.executor.memory.accesses import Access, Listener
from gpuprof.executor.memory.global_accesses import Cache, MemoryOperation, Observer
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.executor.memory.remembered import Kept
from gpuprof.executor.memory.tensor_map_encoding import TensorDescriptor, encode_tensor_map
from gpuprof.executor.memory.texture_objects import bind_texels
from gpuprof.executor.memory.windows import RANK_SHIFT
from gpuprof.executor.observers.open_meetings import AccessPair
from gpuprof.executor.observers.store_trace import ValuelessElements, ValueNeeded
from gpuprof.executor.observers.witness import Deed, UnwrittenRead, Witness
from gpuprof.executor.program.flow import leads_to, reached
from gpuprof.executor.program.loops import Loop, loops_of, predecessors
from gpuprof.executor.program.origins import ArrayUses, Use, lines_behind
from gpuprof.executor.program.source_places import callers, source_name, trapped_in
from gpuprof.executor.sampling import Sample, choose_blocks
from gpuprof.executor.steps.launch_state import SliceRun, TooMuchWork
from gpuprof.executor.totals import CountedTotals, Stored
