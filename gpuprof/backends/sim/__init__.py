# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An exact SIMT executor: runs a kernel's PTX on the CPU and counts what hardware counters would count.

The way of a kernel through this package:

- `ptx` reads the text; `calls` and `flow` make it one body of basic blocks; `merge` widens shared-memory
  accesses as ptxas does.
- `decode` turns each block into steps, once. A step runs one instruction on a whole batch of thread blocks,
  with NumPy, on arrays of shape (blocks, warps, 32) whose axes shrink to 1 where values are uniform.
  `arithmetic` is the table of what instructions compute; `memory_steps`, `warp_steps`, `mbarrier_steps` and
  `bulk_steps` do the others.
- `scheduler` runs the steps: where lanes diverge, where they meet again, and who waits at which barrier.
- `mbarriers` keeps the phases of mbarriers, `bulk_copies` what the copy engine has in flight; `tensor_maps`
  says what the 128 bytes of a tensor map mean here.
- `coalescing` counts sectors and `banks` wavefronts; `races` judges who touched shared memory between
  barriers, and `phased_races` where mbarriers order accesses too; `counters` adds everything up, weighted by
  `sampling` when only some blocks ran.
"""

from gpuprof.backends.sim.counters import LineCounters
from gpuprof.backends.sim.decode import Program, load_program
from gpuprof.backends.sim.faults import FaultKind, KernelFault, UnsupportedInstruction
from gpuprof.backends.sim.global_memory import Buffer, GlobalMemory
from gpuprof.backends.sim.launch import LaunchResult, launch
from gpuprof.backends.sim.sampling import Sample, choose_blocks

__all__ = [
    "Buffer",
    "FaultKind",
    "GlobalMemory",
    "KernelFault",
    "LaunchResult",
    "LineCounters",
    "Program",
    "Sample",
    "UnsupportedInstruction",
    "choose_blocks",
    "launch",
    "load_program",
]
