# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine: compile, launch, watch over processes, and count under Nsight Compute.

Needs NumPy and cuda-bindings with NVRTC, and of gpuprof only what the standard library carries. A script that
asks starts itself again with `--work FOLDER NAME …` for a process that answers one case after the other on
standard output, so that a fault, which spoils a context, costs no other case.
"""

import ctypes
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import numpy as np

sys.path[:0] = [
    str(Path(__file__).parents[1]),
    str(Path(__file__).parents[1] / "tests" / "executor" / "differential"),
]

from launch_case import LaunchCase  # noqa: E402

from gpuprof.ncu.read import ProfiledLaunch, parse_raw_csv  # noqa: E402
from gpuprof.ncu.tool import (  # noqa: E402
    NcuReadError,
    find_ncu,
    run_to_end,
)

#: Longest that a launch may take.
_PATIENCE_S = 3.0
#: Longest that a process may take to start and answer one case more.
_SILENCE_S = 30.0
#: Poisoned bytes around each array.
_GUARD = 4096
_POISON = 0xA5
_DYNAMIC_SHARED_BYTES = 48 << 10


class Refused(Exception):
    """A call of the driver or the compiler that did not succeed.

    Args:
        error: Its name.
        where: `open`, `load`, `allocate`, `launch` or `run`.
    """

    def __init__(self, error: str, where: str) -> None:
        super().__init__(f"{error} ({where})")
        self.error = error
        self.where = where


def call(where, result):
    """Return the values of a driver call.

    Raises:
        Refused: It did not succeed.
    """
    status, *values = result
    if status.value:
        raise Refused(status.name, where)
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(frozen=True)
class Compiled:
    """What NVRTC made of a file; nothing where it refused it."""

    name: str
    cubin: bytes
    ptx: str
    log: str


def compile_file(name: str, source: str, arch: str, options: Sequence[str] = ()) -> Compiled:
    """Compile one file for an architecture, with line numbers."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    flags = [f"--gpu-architecture={arch}", "--std=c++17", "-lineinfo", *options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
    nvrtc.nvrtcGetProgramLog(program, log)
    cubin = ptx = b""
    if not status.value:
        cubin = bytes(nvrtc.nvrtcGetCUBINSize(program)[1])
        nvrtc.nvrtcGetCUBIN(program, cubin)
        ptx = bytes(nvrtc.nvrtcGetPTXSize(program)[1])
        nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(program)
    return Compiled(
        name, cubin, ptx.rstrip(b"\0").decode(), log.rstrip(b"\0").decode(errors="replace").strip()
    )


class Card:
    """The first device, opened."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self.api = driver
        call("open", driver.cuInit(0))
        self.device = call("open", driver.cuDeviceGet(0))
        self.context = call("open", driver.cuDevicePrimaryCtxRetain(self.device))
        call("open", driver.cuCtxSetCurrent(self.context))
        self.stream = call("open", driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.modules: dict[Path, object] = {}

    def describe(self) -> dict[str, str]:
        """Return name, architecture and versions."""
        from cuda.bindings import nvrtc

        keys, attribute = self.api.CUdevice_attribute, self.api.cuDeviceGetAttribute
        name = call("open", self.api.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode()
        major = call("open", attribute(keys.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self.device))
        minor = call("open", attribute(keys.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self.device))
        version = call("open", self.api.cuDriverGetVersion())
        _, *compiler = nvrtc.nvrtcVersion()
        try:
            release = Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
        except OSError:
            release = ""
        return {
            "card": name,
            "arch": f"sm_{major}{minor}",
            "driver_api": f"{version // 1000}.{version % 1000 // 10}",
            "driver": release,
            "nvrtc": ".".join(map(str, compiler)),
        }

    def function(self, cubin: Path, kernel: str, shared: int = 0):
        """Return a kernel, ready to be launched with its dynamic shared memory."""
        if cubin not in self.modules:
            self.modules[cubin] = call("load", self.api.cuModuleLoadData(cubin.read_bytes()))
        function = call("load", self.api.cuModuleGetFunction(self.modules[cubin], kernel.encode()))
        if shared > _DYNAMIC_SHARED_BYTES:
            key = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("launch", self.api.cuFuncSetAttribute(function, key, shared))
        return function

    def array(self, content: bytes) -> int:
        """Return the address of a new array between two guards."""
        size = len(content)
        address = int(call("allocate", self.api.cuMemAlloc(size + 2 * _GUARD)))
        call("allocate", self.api.cuMemsetD8(address, _POISON, size + 2 * _GUARD))
        call("allocate", self.api.cuMemcpyHtoD(address + _GUARD, content, size))
        call("allocate", self.api.cuCtxSynchronize())
        return address + _GUARD

    def fill(self, address: int, content: bytes) -> None:
        """Write to an array."""
        call("launch", self.api.cuMemcpyHtoD(address, content, len(content)))

    def content(self, address: int, like: np.ndarray) -> np.ndarray:
        """Return what an array holds."""
        found = np.empty_like(like)
        call("run", self.api.cuMemcpyDtoH(found.ctypes.data, address, found.nbytes))
        return found

    def free(self, address: int) -> None:
        """Give an array back."""
        call("run", self.api.cuMemFree(address - _GUARD))

    def launch(self, function, grid, block, shared: int, values: Sequence, *, cooperative=False) -> None:
        """Launch a kernel with C values as arguments, and wait for its end.

        Raises:
            TimeoutError: It does not end.
            Refused: The launch, or what the kernel did.
        """
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        shape = (function, *grid, *block, shared, self.stream, ctypes.addressof(pointers))
        if cooperative:
            call("launch", self.api.cuLaunchCooperativeKernel(*shape))
        else:
            call("launch", self.api.cuLaunchKernel(*shape, 0))
        end = time.monotonic() + _PATIENCE_S
        while (status := self.api.cuStreamQuery(self.stream)[0]).name == "CUDA_ERROR_NOT_READY":
            if time.monotonic() > end:
                raise TimeoutError
        call("run", (status,))

    def ask(self, case: LaunchCase, cubin: Path, launches: int) -> dict:
        """Run a case some times, always on the same content.

        Returns:
            `arrays`, bits of each array in hexadecimal after the first launch, null where it has not changed;
            `varies`, the numbers of arrays that came out otherwise in another launch, if some did.
        """
        function = self.function(cubin, case.name, case.shared)
        addresses = [self.array(array.tobytes()) for array in case.arrays]
        waiting = iter(addresses)
        values = [
            ctypes.c_void_p(next(waiting))
            if isinstance(value, np.ndarray)
            else (ctypes.c_ubyte * value.nbytes).from_buffer_copy(value.tobytes())
            for value in case.arguments
        ]
        seen = []
        for _ in range(launches):
            for address, array in zip(addresses, case.arrays, strict=True):
                self.fill(address, array.tobytes())
            self.launch(function, case.grid, case.block, case.shared, values)
            seen.append([self.content(*pair).tobytes() for pair in zip(addresses, case.arrays, strict=True)])
        for address in addresses:
            self.free(address)
        bits = [
            None if first == array.tobytes() else first.hex()
            for first, array in zip(seen[0], case.arrays, strict=True)
        ]
        answer = {"outcome": "ok", "arrays": bits}
        varies = [i for i, first in enumerate(seen[0]) if any(later[i] != first for later in seen[1:])]
        return answer | ({"varies": varies} if varies else {})


def answer_here(names: Iterable[str], ask: Callable[[str], dict]) -> None:
    """Answer cases one after the other, a line of JSON each, until one spoils the context."""
    # What kernels print goes to standard output too: the answers keep it for themselves.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in names:
        try:
            answer = ask(name)
        except TimeoutError:
            answer = {"outcome": "hang"}
        except Refused as why:
            outcome = "fault" if why.where == "run" else "refused"
            answer = {"outcome": outcome, "error": why.error, "at": why.where}
        print(json.dumps([name, answer]), file=answers, flush=True)
        if answer["outcome"] in ("hang", "fault"):
            # A kernel that hangs ends with its process only.
            os._exit(0)


def asked_elsewhere(command: Sequence[str], names: Iterable[str]) -> dict[str, dict]:
    """Let processes answer cases, another one after each that is spoilt.

    Args:
        command: Starts a process that answers the cases named after it.
        names: The cases.
    """
    answers: dict[str, dict] = {}
    left = list(names)
    while left:
        process = subprocess.Popen([*command, *left], stdout=subprocess.PIPE, text=True, bufsize=1)
        told = _lines(process)
        answers |= told
        if not any(name in told for name in left):
            outcome = "hang" if process.returncode == -9 else "fault"
            answers[left[0]] = {"outcome": outcome, "error": "process ended"}
        left = [name for name in left if name not in answers]
    return answers


def _lines(process: subprocess.Popen) -> dict[str, dict]:
    """Read a process's answers, and end it when it falls silent."""
    told: dict[str, dict] = {}
    timer = Timer(_SILENCE_S, process.kill)
    timer.start()
    for line in process.stdout:
        timer.cancel()
        name, answer = json.loads(line)
        told[name] = answer
        timer = Timer(_SILENCE_S, process.kill)
        timer.start()
    process.wait()
    timer.cancel()
    return told


def profiled(
    command: Sequence[str], metrics: Iterable[str], ncu: str | None, timeout_s: float
) -> list[ProfiledLaunch]:
    """Return what Nsight Compute counts of the launches of a process, in their order.

    Args:
        command: The process.
        metrics: Their names; one that the card lacks is left out.
        ncu: Where Nsight Compute is, or None to look for it.
        timeout_s: Longest that it may take.
    """
    path, names = find_ncu(ncu).path, ",".join(dict.fromkeys(metrics))
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "asked.ncu-rep")
        options = ["--cache-control", "none", "--clock-control", "none", "--metrics", names]
        began = time.monotonic()
        try:
            done = run_to_end([path, *options, "--export", str(report), *command], timeout_s)
        except subprocess.TimeoutExpired:
            print(f"ncu did not end after {timeout_s:.0f} s", file=sys.stderr)
            return []
        if not report.exists():
            print(f"ncu wrote no report:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}", file=sys.stderr)
            return []
        table = ["--page", "raw", "--csv", "--print-units", "base", "--print-kernel-base", "function"]
        table += ["--print-metric-instances", "details", "--metrics", names]
        left = max(30.0, timeout_s - (time.monotonic() - began))
        try:
            return parse_raw_csv(run_to_end([path, "--import", str(report), *table], left).stdout)
        except (NcuReadError, subprocess.TimeoutExpired) as error:
            print(f"ncu's report cannot be read: {error}", file=sys.stderr)
            return []


def counted(launch: ProfiledLaunch, metrics: Iterable[str]) -> dict[str, float | int]:
    """Return the metrics of a launch that are numbers."""
    values = {name: launch.cells[name].value for name in metrics if name in launch.cells}
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
