# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An exact SIMT executor: runs a kernel's PTX on the CPU and counts what hardware counters would count.

The way of a kernel through this package: `ptx` reads the text, `calls` and `flow` make it basic blocks,
`decode` turns each into steps that run on a whole batch of thread blocks at once, `scheduler` runs them
where lanes diverge and meet, and `counters` adds up what the steps counted.
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
