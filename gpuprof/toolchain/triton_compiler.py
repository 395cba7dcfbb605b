# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the user's own Triton for PTX and machine code: its JIT function, for a card that need not be here.

What a launch would be specialised for is Triton's own affair: it is asked to warm up, for a device of which
only the architecture is known.
"""

import inspect
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuprof.toolchain.asking import FunctionCode, ask

_WARP = 32
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(r"^[ \t]*\.loc\b[^\n]*", re.MULTILINE)
#: Where a complaint of Triton's says where: line and column of the function.
_PLACE = re.compile(r"^at (\d+):\d+:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JitCall:
    """One launch to compile for.

    Args:
        values: Of all parameters by name; an array is an `ArrayOf` its element type, by NumPy's name.
    """

    function: Any
    values: Mapping[str, Any]
    options: Mapping[str, Any]


class ArrayOf:
    """What Triton looks at of an array: its element type, and that it is aligned as allocations are."""

    shape = (1,)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    @staticmethod
    def data_ptr() -> int:
        return 0

    @staticmethod
    def ptr_range() -> int:
        return 1 << 62

    def stride(self) -> tuple[int, ...]:
        return (1,)


def compile_calls(calls: Sequence[JitCall], arch: str, timeout_s: float, at_once: int) -> list[FunctionCode]:
    """Compile each call for an architecture, some at once; what goes wrong is told of the call."""
    questions = [partial(_compiled, call, arch) for call in calls]
    firsts = [partial(_told, function=call.function) for call in calls]
    return ask(questions, firsts, "Triton", timeout_s, at_once)


def _told(error: BaseException, function: Any) -> str:
    """What went wrong, and on which line of the file."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^\t")]
    what = lines[-1] if lines else traceback.format_exception_only(error)[-1].strip()
    place = _PLACE.search(str(error))
    where = f", line {_first_line(function) - 1 + int(place[1])}" if place else ""
    return f"Triton does not compile it{where}: {what.rstrip('.')}."


def _first_line(function: Any) -> int:
    """The line of a function's `def`, from which Triton counts: decorators stand above it."""
    lines, first = inspect.getsourcelines(function.fn)
    above = next((place for place, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
    return first + above


class _Absent:
    """In the place of Triton's driver: one device, of which the architecture is known."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def _of_one_line(inline: "re.Match[str]") -> str:
    """Inline assembly, all of it on the line that it begins with: LLVM counts its lines as the source's."""
    first, found, rest = inline[0].partition(".loc")
    own, end, rest = rest.partition("\n")
    return first + found + own + end + _LOC.sub("", rest)


def _compiled(call: JitCall, arch: str) -> FunctionCode:
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    function = call.function
    driver.set_active(_Absent(GPUTarget("cuda", int(arch.removeprefix("sm_")), _WARP)))
    function.device_caches.clear()
    kernel = function.warmup(**call.values, **call.options, grid=(1, 1, 1))
    held = kernel.metadata
    types = kernel.src.signature
    taken = tuple(name for name, kind in types.items() if kind != "constexpr")
    scratch = [getattr(held, f"{name}_scratch_size", None) for name in ("global", "profile")]
    return FunctionCode(
        ptx=_INLINE.sub(_of_one_line, kernel.asm["ptx"]),
        cubin=kernel.asm["cubin"],
        entry=held.name,
        threads=_WARP * held.num_warps,
        shared_bytes=held.shared,
        taken=taken,
        ctas=getattr(held, "num_ctas", 1),
        scratch_bytes=tuple(size for size in scratch if size is not None),
    )
