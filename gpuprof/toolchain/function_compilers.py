# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the user's own Numba or CuTe DSL what one of its functions is, for a card that need not be here."""

import inspect
import re
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from gpuprof.cubin_file import function_of
from gpuprof.errors import foreign
from gpuprof.ptx_directives import ptx_entries
from gpuprof.text import Extent
from gpuprof.toolchain.asking import FunctionCode, Question, ask

#: Allocations are aligned at least so; of a tensor CuTe wants to know it.
_ALIGNED = 16
#: From here on architectures have instructions that no later one has.
_WITH_SPECIFICS = 90


def compile_with(who: str, question: Question, timeout_s: float) -> FunctionCode:
    """Ask Numba or CuTe DSL, by name, for what it makes of a function; why nothing, where that is so."""
    firsts = [lambda error: f"{who} does not compile it: {foreign(error)}."]
    (answer,) = ask([question], firsts, who, timeout_s, 1)
    return answer


def _entry_of(ptx: str) -> str:
    """The first kernel, by its own name where no other has that."""
    entries = list(ptx_entries(ptx))
    if not entries:
        raise ValueError("its PTX has no kernel")
    plain = function_of(entries[0])
    return plain if sum(function_of(entry) == plain for entry in entries) == 1 else entries[0]


def numba_code(function: Any, values: Mapping[str, Any], arch: str) -> FunctionCode:
    """Code for values of these types, arrays among them."""
    from numba import cuda, typeof, void
    from numba.cuda import dispatcher

    target = divmod(int(arch.removeprefix("sm_")), 10)
    # What it calls is compiled for the current device, be it another or none; this process compiles no more.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=target)
    ptx, _ = cuda.compile(
        function.py_func,
        void(*map(typeof, values.values())),
        device=False,
        abi="numba",
        cc=target,
        lineinfo=True,
        fastmath=bool(function.targetoptions.get("fastmath")),
    )
    # A kernel of Numba's calls the function, as if from its first line.
    first = function.py_func.__code__.co_firstlineno
    ptx = re.sub(rf",\s*function_name \S+, inlined_at \d+ {first} \d+$", "", ptx, flags=re.MULTILINE)
    return FunctionCode(ptx, entry=_entry_of(ptx))


def cute_code(function: Any, values: Mapping[str, Any], block: Extent, arch: str) -> FunctionCode:
    """Code for numbers, and arrays as they lie in memory; of a kernel alone for a block."""
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_stream

    parameters = inspect.signature(function).parameters
    given = []
    for name, parameter in parameters.items():
        value, kind = values.get(name, parameter.default), str(parameter.annotation)
        if name not in values and "tream" in kind:
            value = make_fake_stream()
        given.append(value if "Constexpr" in kind else _cute_value(value))
    if function._decorator_kind == "kernel":

        def launch(*arguments: Any) -> None:
            function(*arguments).launch(grid=(1, 1, 1), block=block)

        launch.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        whole = cute.jit(preprocess=False)(launch)
    else:
        whole = function
    target = f"{arch}a" if int(arch.removeprefix("sm_")) >= _WITH_SPECIFICS else arch
    with TemporaryDirectory() as folder:  # what CuTe is to keep it writes to a file too
        options = f"--keep-ptx --keep-cubin --dump-dir {folder} --generate-line-info --gpu-arch {target}"
        made = cute.compile(whole, *given, options=options)
        shared = _shared_bytes(str(made.ir_module))
        return FunctionCode(made.__ptx__, made.__cubin__, _entry_of(made.__ptx__), shared_bytes=shared)


def _shared_bytes(host: str) -> int:
    """The dynamic shared memory of a launch in CuTe's code for the host; 0 where that computes it.

    The attributes of a launch are a struct: grid, block, shared memory and others.
    """
    found = re.search(
        r"(%\w+) = llvm\.getelementptr %\w+\[0, 2\] .*\n\s*llvm\.store (%\w+), \1 : i64\b", host
    )
    value = found and re.search(rf"{found[2]} = llvm\.mlir\.constant\((\d+) : i64\)", host)
    return int(value[1]) if value else 0


def _cute_value(value: Any) -> Any:
    """A number as CuTe takes it, or an array of the type and shape of one of NumPy's."""
    import cutlass
    from cutlass.cute.runtime import make_fake_compact_tensor

    name = value.dtype.name if hasattr(value, "dtype") else type(value).__name__
    kind = _CUTE_TYPES.get(name)
    if kind is None:
        return value
    element = getattr(cutlass, kind)
    if not getattr(value, "shape", ()):
        return element(value.item() if hasattr(value, "item") else value)
    axes = tuple(reversed(range(value.ndim)))
    return make_fake_compact_tensor(element, value.shape, stride_order=axes, assumed_align=_ALIGNED)


#: What CuTe calls types of NumPy's; numbers of Python's it takes as they are.
_CUTE_TYPES = {
    **{"bfloat16": "BFloat16", "float8_e4m3fn": "Float8E4M3FN"},
    **{f"{kind}{bits}": f"{kind.capitalize()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"Float{bits}" for bits in (16, 32, 64)},
}
