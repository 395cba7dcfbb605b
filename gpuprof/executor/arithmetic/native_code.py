# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine code of this CPU from LLVM's assembly, where llvmlite is installed."""

import functools
from typing import Any


@functools.cache
def multiplies_and_adds() -> bool:
    """Whether llvmlite is installed, and the CPU has a fused multiply-add, which rounds as a GPU does."""
    try:
        from llvmlite import binding as llvm
    except ImportError:
        return False
    return bool(llvm.get_host_cpu_features().get("fma", False))


def compiled(source: str, *, optimised: bool = False) -> Any:
    """Return the engine that holds the machine code of a module; the code lives as long as it is kept.

    Args:
        source: The module, in LLVM's assembly.
        optimised: Whether LLVM's passes run over it first, as loops need that are to become vectors.
    """
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(source)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    if optimised:
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        tuning.loop_vectorization = True
        llvm.create_pass_builder(machine, tuning).getModulePassManager().run(
            module, llvm.create_pass_builder(machine, tuning)
        )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
