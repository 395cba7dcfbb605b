# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An exact SIMT executor: runs a kernel's PTX on the CPU and counts what hardware counters would count.

The way of a kernel through this package:

- `ptx` reads the text; `calls` and `flow` make it one body of basic blocks; `merge` widens shared-memory
  accesses as ptxas does.
- `decode` turns each block into steps, once. A step runs one instruction on a whole batch of thread blocks,
  with NumPy, on arrays of shape (blocks, warps, 32) whose axes shrink to 1 where values are uniform.
  `arithmetic` is the table of what instructions compute; `memory_steps` and `warp_steps` do the others.
- `scheduler` runs the steps: where lanes diverge, where they meet again, and who waits at which barrier.
- `coalescing` counts sectors and `banks` wavefronts; `races` judges who touched shared memory between
  barriers; `counters` adds everything up, weighted by `sampling` when only some blocks ran.
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
