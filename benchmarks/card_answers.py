# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine every rule of tests/executor/rules, and write down what it answers.

Usage: python benchmarks/card_answers.py [--only TEXT …] [--ncu [PATH]] [-o FILE]

Needs Python 3.11, NumPy and cuda-bindings with NVRTC; nothing of gpuprof. Files are compiled side by side
for the card's architecture. Cases that should end well share one process; after a fault a new one goes on
with the rest, because a fault spoils a context. Risky cases have a process each. What has not ended after a
few seconds is a hang. The answers of cases that are not asked again are kept.

--only asks the cases whose name or chapter contains a text. --ncu profiles the cases whose accesses are worth
counting, once each, and puts their counters beside the answers.
"""

import argparse
import csv
import ctypes
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

RULES = Path(__file__).parents[1] / "tests" / "executor" / "rules"
sys.path.insert(0, str(RULES))

from rules_corpus import POISON, Case, cases, sources  # noqa: E402

#: Longest that a launch may take.
_PATIENCE_S = 3.0
#: Longest that a process may take to start and answer one case more.
_SILENCE_S = 30.0
#: Launches of a case; elements that differ between them are no answer.
_LAUNCHES = 3
#: Poisoned bytes around each array.
_GUARD = 4096
_AT_ONCE = 4
_METRICS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__inst_executed_op_ldgsts.sum",
)


class Refused(Exception):
    """A call of the driver or the compiler that did not succeed.

    Args:
        error: Its name.
        where: `compile`, `load`, `launch` or `run`.
    """

    def __init__(self, error: str, where: str, text: str = "") -> None:
        super().__init__(f"{error} ({where}) {text}")
        self.error = error
        self.where = where
        self.text = text


def call(where, result):
    """Return the values of a driver call."""
    status, *values = result
    if status.value:
        raise Refused(status.name, where)
    return values[0] if len(values) == 1 else tuple(values)


def compile_file(name: str, source: str, arch: str, *include: str) -> tuple[str, bytes, str]:
    """Return (name, cubin, log) of one file; no cubin where it was refused."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"-lineinfo"]
    options += [f"-I{folder}".encode() for folder in include]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
    nvrtc.nvrtcGetProgramLog(program, log)
    cubin = b""
    if not status.value:
        cubin = bytes(nvrtc.nvrtcGetCUBINSize(program)[1])
        nvrtc.nvrtcGetCUBIN(program, cubin)
    return name, cubin, log.rstrip(b"\0").decode(errors="replace").strip()


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
        self.modules: dict[str, object] = {}

    def describe(self) -> dict:
        """Return name, architecture and versions."""
        from cuda.bindings import nvrtc

        name = call("open", self.api.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode()
        keys = self.api.CUdevice_attribute
        major = call(
            "open",
            self.api.cuDeviceGetAttribute(keys.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, self.device),
        )
        minor = call(
            "open",
            self.api.cuDeviceGetAttribute(keys.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, self.device),
        )
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

    def function(self, case: Case, folder: Path):
        """Return a case's kernel, ready to be launched with its dynamic shared memory."""
        if case.file not in self.modules:
            cubin = (folder / f"{case.file}.cubin").read_bytes()
            self.modules[case.file] = call("load", self.api.cuModuleLoadData(cubin))
        function = call("load", self.api.cuModuleGetFunction(self.modules[case.file], case.kernel.encode()))
        if case.shared > 48 << 10:
            key = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("launch", self.api.cuFuncSetAttribute(function, key, case.shared))
        return function

    def array(self, content: bytes) -> int:
        """Return the address of a new array between two guards."""
        size = len(content)
        address = int(call("allocate", self.api.cuMemAlloc(size + 2 * _GUARD)))
        call("allocate", self.api.cuMemsetD8(address, POISON, size + 2 * _GUARD))
        call("allocate", self.api.cuMemcpyHtoD(address + _GUARD, content, size))
        call("allocate", self.api.cuCtxSynchronize())
        return address + _GUARD

    def ask(self, case: Case, folder: Path, launches: int) -> dict:
        """Run a case; see the file's docstring for what comes of it."""
        function = self.function(case, folder)
        poison = bytes([POISON]) * (case.count * case.dtype.itemsize)
        addresses = [self.array(poison), *(self.array(content) for content in case.inputs)]
        values = [ctypes.c_void_p(address) for address in addresses]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        seen = []
        for _ in range(launches):
            call("launch", self.api.cuMemcpyHtoD(addresses[0], poison, len(poison)))
            shape = (function, *case.grid, *case.block, case.shared, self.stream, ctypes.addressof(pointers))
            if case.cooperative:
                call("launch", self.api.cuLaunchCooperativeKernel(*shape))
            else:
                call("launch", self.api.cuLaunchKernel(*shape, 0))
            self._wait()
            out = np.empty(case.count, case.dtype)
            call("run", self.api.cuMemcpyDtoH(out.ctypes.data, addresses[0], len(poison)))
            seen.append(out)
        answer = {"outcome": "ok", "out": seen[0].tobytes().hex()}
        if varies := np.flatnonzero([np.any(column != column[0]) for column in np.array(seen).T]).tolist():
            answer["varies"] = varies
        for address in addresses:
            call("run", self.api.cuMemFree(address - _GUARD))
        return answer

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while (status := self.api.cuStreamQuery(self.stream)[0]).name == "CUDA_ERROR_NOT_READY":
            if time.monotonic() > end:
                raise TimeoutError
        call("run", (status,))


def work(folder: Path, names: list[str], launches: int) -> None:
    """Answer cases one after the other, a line of JSON each, until one spoils the context."""
    card = Card()
    for name in names:
        try:
            answer = card.ask(cases()[name], folder, launches)
        except TimeoutError:
            answer = {"outcome": "hang"}
        except Refused as why:
            answer = {
                "outcome": "fault" if why.where == "run" else "refused",
                "error": why.error,
                "at": why.where,
            }
        print(json.dumps([name, answer]), flush=True)
        if answer["outcome"] in ("hang", "fault"):
            # A kernel that hangs ends with its process only.
            os._exit(0)


def asked_elsewhere(folder: Path, names: list[str]) -> dict[str, dict]:
    """Answer cases in processes, another one after each that is spoilt."""
    answers: dict[str, dict] = {}
    left = list(names)
    while left:
        command = [sys.executable, __file__, "--work", str(folder), *left]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
        told = _lines(process)
        answers |= told
        if not any(name in told for name in left):
            answers[left[0]] = {
                "outcome": "hang" if process.returncode == -9 else "fault",
                "error": "process ended",
            }
        left = [name for name in left if name not in answers]
    return answers


def _lines(process: subprocess.Popen) -> dict[str, dict]:
    """Read a process's answers, and end it when it falls silent."""
    from threading import Timer

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


def counters(folder: Path, ncu: str, names: list[str]) -> dict[str, dict[str, float]]:
    """Return what Nsight Compute counts of one launch of each case."""
    asking = [sys.executable, __file__, "--once", "--work", str(folder), *names]
    by_kernel = profiled(ncu, _METRICS, asking)
    return {name: by_kernel[cases()[name].kernel] for name in names if cases()[name].kernel in by_kernel}


def profiled(ncu: str, metrics: tuple[str, ...], asking: list[str]) -> dict[str, dict[str, float]]:
    """Return what Nsight Compute counts of each kernel that a command launches once."""
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(metrics)]
    command += ["--clock-control", "none", *asking]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        print(f"ncu gave no counters:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}", file=sys.stderr)
        return {}
    by_kernel: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        kernel = row["Kernel Name"].split("(")[0]
        found = {metric: row.get(metric, "").replace(",", "") for metric in metrics}
        if any(found.values()):
            by_kernel[kernel] = {metric: float(text) for metric, text in found.items() if _is_number(text)}
    return by_kernel


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def main() -> None:
    """Compile, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", default=[""], help="ask cases whose name or chapter contains a text"
    )
    parser.add_argument(
        "--ncu", nargs="?", const="ncu", help="profile the cases whose accesses are worth counting"
    )
    parser.add_argument("-o", "--output", type=Path, help="instead of tests/executor/rules/answers-CARD.json")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(Path(options.work[0]), options.work[1:], 1 if options.once else _LAUNCHES)
        return
    began = time.monotonic()
    about = Card().describe()
    wanted = [
        c for c in cases().values() if any(text in c.name or text in c.chapter for text in options.only)
    ]
    output = (
        options.output
        or RULES / f"answers-{about['card'].removeprefix('NVIDIA ').replace(' ', '-').lower()}.json"
    )
    answers = json.loads(output.read_text())["answers"] if output.exists() else {}
    told: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(scratch)
        files = {case.file for case in wanted}
        jobs = [pool.submit(compile_file, name, sources()[name], about["arch"]) for name in sorted(files)]
        logs = {}
        for name, cubin, log in (job.result() for job in jobs):
            (folder / f"{name}.cubin").write_bytes(cubin)
            if not cubin:
                logs[name] = log
                print(f"{name} was refused:\n{log}", file=sys.stderr)
        print(f"{len(files)} files compiled after {time.monotonic() - began:.0f} s", flush=True)
        for case in wanted:
            if case.file in logs:
                told[case.name] = {"outcome": "refused", "error": logs[case.file], "at": "compile"}
        runnable = [case for case in wanted if case.file not in logs]
        plain = [case.name for case in runnable if not case.risky]
        told |= asked_elsewhere(folder, plain)
        print(f"{len(plain)} plain cases asked after {time.monotonic() - began:.0f} s", flush=True)
        risky = [case.name for case in runnable if case.risky]
        with ThreadPoolExecutor(_AT_ONCE) as processes:
            for found in processes.map(lambda name: asked_elsewhere(folder, [name]), risky):
                told |= found
        print(f"{len(risky)} risky cases asked after {time.monotonic() - began:.0f} s", flush=True)
        if options.ncu:
            counted = [case.name for case in runnable if case.counted and told[case.name]["outcome"] == "ok"]
            for name, found in counters(folder, options.ncu, counted).items():
                told[name]["counters"] = found
    for name, answer in told.items():
        answers[name] = {"key": cases()[name].key, **answer}
    kept = {name: answers[name] for name in sorted(answers) if name in cases()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in kept.items())
    output.write_text(f'{{"about": {json.dumps(about)},\n"answers": {{\n{lines}\n}}}}\n')
    outcomes = [answer["outcome"] for answer in told.values()]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in sorted(set(outcomes)))
    print(f"Wrote {output}: {counts}; {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
