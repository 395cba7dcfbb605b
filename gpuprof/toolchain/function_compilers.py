# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the user's own Triton, Numba or CuTe DSL what a function is, for a card that need not be here.

It is asked in a child of the user's process, which has the function already, wherever it was defined: a
script, a module or a notebook. A compiler that crashes or does not end takes nothing along.
"""

import inspect
import multiprocessing
import re
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from msgspec import Struct

from gpuprof.cubin_file import function_of
from gpuprof.errors import foreign
from gpuprof.ptx_directives import ptx_entries
from gpuprof.text import Extent
from gpuprof.toolchain.assembling import first_refusal
from gpuprof.toolchain.cuda_headers import find_cuda_headers
from gpuprof.toolchain.nvrtc import compile_entries, nvrtc_version
from gpuprof.toolchain.nvrtc_program import NvrtcProgram

_FORK = multiprocessing.get_context("fork")


class FunctionCode(Struct, frozen=True):
    """What a compiler made of a function, or why nothing.

    Args:
        taken: Of Triton's: the parameters that the machine code takes, in order; others have become part of
            the code.
        maps: Of Triton's tensor maps by name: the box, the last extent innermost; the swizzle's bytes.
        ctas: Blocks of a program, which are a cluster.
        scratch_bytes: Of a block, for each hidden pointer that Triton adds to them.
    """

    ptx: str = ""
    cubin: bytes = b""
    entry: str = ""
    threads: int = 0
    shared_bytes: int = 0
    taken: tuple[str, ...] = ()
    maps: Mapping[str, tuple[tuple[int, ...], int]] = {}
    ctas: int = 1
    scratch_bytes: tuple[int, ...] = ()
    error: str = ""


#: What compiles, and what is said of its error.
Question = tuple[Callable[[], FunctionCode], Callable[[BaseException], str]]


def ask(questions: Sequence[Question], who: str, timeout_s: float, at_once: int) -> list[FunctionCode]:
    """The answer to each question, some asked at once."""
    answers: list[FunctionCode] = []
    waiting = iter(questions)
    while group := list(islice(waiting, max(1, at_once))):
        children = [_started(*each) for each in group]
        end = time.monotonic() + timeout_s
        answers += [_answer(*child, end, who) for child in children]
    return answers


def version_of(*packages: str) -> str:
    """The version of the first of some packages that is installed."""
    for package in packages:
        with suppress(PackageNotFoundError):
            return version(package)
    return "of this process"


def _started(*question: Any) -> tuple[Any, Any]:
    """A child that answers, and where its answer comes from."""
    receiving, sending = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_compile, args=(sending, *question))
    with warnings.catch_warnings():
        # The child does nothing but compile and end, whatever threads the user's program has.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sending.close()
    return child, receiving


def _compile(
    answers: Any, compiled: Callable[[], FunctionCode], told: Callable[[BaseException], str]
) -> None:
    warnings.simplefilter("ignore")
    try:
        answer = compiled()
    except BaseException as error:  # whatever it is, the parent tells it
        answer = FunctionCode(error=told(error))
    answers.send(answer)


def _answer(child: Any, receiving: Any, end: float, who: str) -> FunctionCode:
    try:
        if receiving.poll(max(0.0, end - time.monotonic())):
            answer: FunctionCode = receiving.recv()
            return answer
        return FunctionCode(error=f"{who} took longer than the compile timeout.")
    except EOFError:
        child.join()
        return FunctionCode(error=f"{who}'s process ended with status {child.exitcode}.")
    finally:
        receiving.close()
        child.kill()
        child.join()


#: Allocations are aligned at least so; of a tensor CuTe wants to know it.
_ALIGNED = 16
#: From here on architectures have instructions that no later one has.
_WITH_SPECIFICS = 90


def compile_with(who: str, compiled: Callable[[], FunctionCode], timeout_s: float) -> FunctionCode:
    """Ask Numba or CuTe DSL, by name, for what it makes of a function; why nothing, where that is so."""
    (answer,) = ask(
        [(compiled, lambda error: f"{who} does not compile it: {foreign(error)}.")], who, timeout_s, 1
    )
    return answer


def _entry_of(ptx: str) -> str:
    """The first kernel, by its own name where no other has that."""
    entries = list(ptx_entries(ptx))
    if not entries:
        raise ValueError("its PTX has no kernel")
    plain = function_of(entries[0])
    return plain if sum(function_of(entry) == plain for entry in entries) == 1 else entries[0]


#: What CUDA's device runtime has for a grid's barrier, which Numba links: NVRTC keeps these names to itself.
_GRID_BARRIER = """
#include <cooperative_groups.h>
extern "C" __device__ unsigned long long gridCGGetIntrinsicHandle(int) { return 1; }
extern "C" __device__ int gridCGSynchronize(unsigned long long, int) {
    cooperative_groups::this_grid().sync();
    return 0;
}
"""


def numba_code(function: Any, values: Mapping[str, Any], arch: str) -> FunctionCode:
    """Code for values of these types, arrays among them."""
    from numba import typeof, void
    from numba.cuda import compiler, dispatcher

    if not hasattr(compiler, "compile_all"):  # Numba's own target, which it no longer keeps up
        raise ValueError("this Numba's own cuda is too old: pip install -U numba-cuda")
    target = divmod(int(arch.removeprefix("sm_")), 10)
    # What it calls is compiled for the current device, be it another or none; this process compiles no more.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=target)
    compiler.nvrtc = SimpleNamespace(compile=_device_functions)
    (ptx, *parts), _ = compiler.compile_all(
        function.py_func,
        void(*map(typeof, values.values())),
        device=False,
        abi="numba",
        cc=target,
        lineinfo=True,
        fastmath=bool(function.targetoptions.get("fastmath")),
        output="ptx",
    )
    if "cudaCGGetIntrinsicHandle" in ptx:
        ptx = ptx.replace("cudaCG", "gridCG")
        parts.append(_device_functions(_GRID_BARRIER, "grid.cu", target)[0])
    for part in parts:  # what else is linked, such as the operators of fp16
        if not isinstance(part, str):
            raise ValueError(f"it links {part.name}, which is no CUDA C++")
        for name in re.findall(r"^\.visible \.func.*?(\w+)\(", part, re.MULTILINE):
            ptx = re.sub(rf"\.extern (\.func[^;]*\b{name}\b)", r".visible \1", ptx)
        ptx += part
    # A kernel of Numba's calls the function, as if from its first line.
    first = function.py_func.__code__.co_firstlineno
    ptx = re.sub(rf",\s*function_name \S+, inlined_at \d+ {first} \d+$", "", ptx, flags=re.MULTILINE)
    return FunctionCode(ptx, entry=_entry_of(ptx))


def _device_functions(source: str | bytes, name: str, target: tuple[int, int], **_: Any) -> tuple[str, str]:
    """CUDA C++ as the PTX of its functions: in the place of Numba's own way, which asks for a driver."""
    text = source.decode() if isinstance(source, bytes) else source
    options = (f"--gpu-architecture=sm_{target[0]}{target[1]}", "--relocatable-device-code=true")
    headers = find_cuda_headers(nvrtc_version()[0])
    program = NvrtcProgram(f'{text}\nextern "C" __global__ void last() {{}}', {}, options, headers)
    (made,) = compile_entries(program, name, ("last",))
    functions = made.ptx.partition(".address_size 64")[2].partition(".visible .entry")[0]
    return re.sub(r"^\s*//.*\n", "", functions, flags=re.MULTILINE), made.log


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
    **{"bfloat16": "BFloat16", "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2"},
    **{f"{kind}{bits}": f"{kind.capitalize()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"Float{bits}" for bits in (16, 32, 64)},
}


_WARP = 32
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(r"^[ \t]*\.loc\b[^\n]*", re.MULTILINE)
#: Where a complaint of Triton's says where: line and column of the function.
_PLACE = re.compile(r"^at (\d+):\d+:", re.MULTILINE)


class JitCall(Struct, frozen=True):
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
    """Compile each call for an architecture, some at once; what goes wrong is told of the call.

    What a launch would be specialised for is Triton's own affair: it is asked to warm up, for a device of
    which only the architecture is known.
    """
    questions = [(partial(_compiled, call, arch), partial(_told, function=call.function)) for call in calls]
    return ask(questions, "Triton", timeout_s, at_once)


def _told(error: BaseException, function: Any) -> str:
    """What went wrong, and on which line of the file."""
    reason = error
    while reason.__cause__ and str(reason).endswith("^"):  # of what it calls: why, is told there
        reason = reason.__cause__
    if refused := first_refusal(str(reason)):  # the line is of PTX that is gone
        return f"Triton does not compile it: its ptxas refuses the PTX: {refused[1]}."
    lines = [line.strip() for line in str(reason).splitlines() if line.strip(" ^\t")]
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
    # An option may be a parameter too, as num_stages is in Triton's own tutorial.
    kernel = function.warmup(**{**call.values, **call.options}, grid=(1, 1, 1))
    held = kernel.metadata
    types = kernel.src.signature
    described = [name for name, kind in types.items() if kind.startswith("tensordesc")]
    maps = dict(zip(described, getattr(held, "tensordesc_meta", None) or (), strict=False))
    taken = tuple(
        text
        for name, kind in types.items()
        if kind != "constexpr"
        for text in (_of_descriptor(name, call.values[name], name in maps) if name in described else (name,))
    )
    scratch = [getattr(held, f"{name}_scratch_size", None) for name in ("global", "profile")]
    return FunctionCode(
        ptx=_INLINE.sub(_of_one_line, kernel.asm["ptx"]),
        cubin=kernel.asm["cubin"],
        entry=held.name,
        threads=_WARP * held.num_warps,
        shared_bytes=held.shared,
        taken=taken,
        maps={name: _box_of(one) for name, one in maps.items()},
        ctas=getattr(held, "num_ctas", 1),
        scratch_bytes=tuple(size for size in scratch if size is not None),
    )


def _of_descriptor(name: str, described: Any, mapped: bool) -> list[str]:
    """What a descriptor comes to: a tensor map, or parts where there is no copy engine; and its extents."""
    extents = [str(value) for value in (*described.shape, *described.strides)]
    told = (described.padding == "nan", getattr(described, "round_f32_to_tf32", False))
    parts = [] if mapped else [*extents, *(str(int(one)) for one in told)]
    return [name, *parts, *extents]


def _box_of(held: Mapping[str, Any]) -> tuple[tuple[int, ...], int]:
    """The box and the bytes of the swizzle, as Triton chose them."""
    if held["fp4_padded"] or held.get("is_im2col"):
        raise ValueError("its tensor map is of FP4 or im2col, which gpuprof does not make")
    return tuple(held["block_size"]), (0, 32, 64, 128)[held["swizzle"]]
