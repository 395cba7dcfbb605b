# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run a launch on the executor and hold it against what a card answered: bits, and counters.

Which counters can be equal at all is a matter of what is executed: the executor runs PTX, and hardware the
machine code that ptxas makes of it. Counts of threads (fused multiply-adds) and of what a warp's addresses
come to (requests, sectors, wavefronts) carry over; counts of branches and of all instructions do not.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from launch_case import LaunchCase

from gpuprof.counters import OF_EXECUTOR, OF_NCU, OPCODES
from gpuprof.executor import (
    Definedness,
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchResult,
    launch,
    load_program,
)

#: What follows from reading memory or lanes that hold nothing; where that ends is then followed.
_FOLLOWED = (FaultKind.UNINITIALISED_SHARED, FaultKind.ABSENT_LANE)
#: What ptxas decides: branches on which lanes part become predicates, and a thread's own arrays registers.
_NOT_COMPARED = ("branch_divergent_warps", "local_load_requests", "local_store_requests")
#: Requests that Nsight Compute's metrics do not tell apart are read off the opcodes executed.
_BY_OPCODE = {
    "barriers": ("BAR",),
    "shared_atomic_requests": ("ATOMS",),
    "global_atomic_requests": ("RED", "REDG", "ATOMG", "ATOM"),
}
_ATOMIC_SECTORS = tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("red", "atom"))
#: Nsight Compute shows two digits of a percentage.
_PERCENT_TOLERANCE = 0.006


@dataclass(frozen=True)
class Executed:
    """What the executor made of a case.

    Counters that the executor does not tell are absent.
    """

    arrays: tuple[np.ndarray, ...]
    counters: Mapping[str, float | int | None]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """One counter of one case."""

    name: str
    ours: float
    theirs: float

    @property
    def equal(self) -> bool:
        """Whether both are the same."""
        return abs(self.ours - self.theirs) <= (_PERCENT_TOLERANCE if self.name.endswith("_pct") else 0)


def execute(case: LaunchCase, ptx: str) -> Executed:
    """Run a case on the executor."""
    try:
        return _execute(case, ptx, follow_undefined=False)
    except KernelFault as fault:
        if fault.kind not in _FOLLOWED:
            raise
    return _execute(case, ptx, follow_undefined=True)


def _execute(case: LaunchCase, ptx: str, *, follow_undefined: bool) -> Executed:
    memory = GlobalMemory()
    arguments = [
        memory.allocate(value, f"array {i}") if isinstance(value, np.ndarray) else value
        for i, value in enumerate(case.arguments)
    ]
    program = load_program(ptx, case.name, observer=Definedness() if follow_undefined else None)
    result = launch(
        program,
        case.grid,
        case.block,
        arguments,
        memory,
        case.shared,
        merged_atomics=lambda: _merged_atomics().get(case.name, ()),
    )
    pairs = zip(arguments, case.arguments, strict=True)
    arrays = tuple(buffer.array() for buffer, value in pairs if isinstance(value, np.ndarray))
    return Executed(arrays, _told(result), result.remarks)


def _told(result: LaunchResult) -> dict[str, float | int | None]:
    told = {name for name, row in OF_EXECUTOR.items() if not row.over} | result.counters.keys()
    return {name: result.counters[name] for name in told if name not in result.hidden}


def wrong_bits(case: LaunchCase, ours: Executed, answer: Mapping[str, Any]) -> str:
    """Describe where the executor's arrays are not the card's; empty where they are."""
    for number, (array, found, bits) in enumerate(
        zip(case.arrays, ours.arrays, answer["arrays"], strict=True)
    ):
        theirs = array if bits is None else np.frombuffer(bytes.fromhex(bits), array.dtype)
        size = f"u{array.dtype.itemsize}"
        mine, right = (np.ascontiguousarray(a).reshape(-1).view(size) for a in (found, theirs))
        differing = np.flatnonzero(mine != right)
        if len(differing):
            first = differing[0]
            return (
                f"array {number}: {len(differing)} of {array.size} elements differ, the first [{first}]:"
                f" {mine[first]:#x}, not {right[first]:#x}"
            )
    return ""


def counts_of_card(answer: Mapping[str, Any]) -> dict[str, float]:
    """Return what Nsight Compute counted of a launch, by gpuprof's names."""
    counted: dict[str, float] = {}
    for row in OF_NCU:
        metric = next((name for name in row.metrics if name in answer["counters"]), None)
        if row.executor and metric and metric != OPCODES:
            counted[row.name] = answer["counters"][metric]
    for name, opcodes in _BY_OPCODE.items():
        counted[name] = sum(answer["opcodes"].get(opcode, 0) for opcode in opcodes)
    if all(name in answer["counters"] for name in _ATOMIC_SECTORS):
        counted["global_atomic_sectors"] = sum(answer["counters"][name] for name in _ATOMIC_SECTORS)
        requests = (name.replace("_sectors_", "_requests_") for name in _ATOMIC_SECTORS)
        # Opcodes count those under a predicate that holds for no lane, too.
        counted["global_atomic_requests"] = sum(answer["counters"][name] for name in requests)
    return counted


def compared(ours: Mapping[str, float | int | None], theirs: Mapping[str, float]) -> list[Compared]:
    """Return every counter that both tell and that can be equal; shared wavefronts less bank conflicts.

    Hardware counts a wavefront lost to another instruction on the same pipe as a conflict.
    """
    found = []
    for name, value in theirs.items():
        mine = ours.get(name)
        if name in _NOT_COMPARED or mine is None or name.endswith("_bank_conflicts"):
            continue
        if name == "global_load_requests" and ours.get("async_copy_requests"):
            continue  # hardware counts those of cp.async in
        if name == "hmma_instructions" and not mine:
            continue  # ptxas makes constants by HFMA2.MMA, which hardware counts in
        conflicts = name.replace("_wavefronts", "_bank_conflicts")
        if name.startswith("shared_") and conflicts != name and conflicts in theirs:
            mine, value = mine - (ours.get(conflicts) or 0), value - theirs[conflicts]
        found.append(Compared(name, mine, value))
    return found


@cache
def _merged_atomics() -> dict[str, list[int]]:
    """Return the lines of recorded PTX whose atomics machine code merges; `benchmarks/merged_atomics.py`."""
    path = Path(__file__).parents[1] / "hardware" / "merged-atomics.json"
    return json.loads(path.read_text())


@cache
def _reasons() -> list[dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("known_differences.toml").read_text()).get("reasons", [])


@cache
def _machine_codes() -> dict[str, dict[str, dict[str, int]]]:
    return json.loads(Path(__file__).with_name("random-machine-code.json").read_text())


def _seen_in_machine_code(kernel: str, wanted: list[str]) -> bool:
    """Tell whether machine code has any of some features: an opcode, `@` one under a predicate, `!=` another
    number of them than the PTX has."""
    codes = _machine_codes().get(kernel)
    if codes is None:
        return False
    ptx, code = codes["ptx"], codes["sass"]

    def has(feature: str) -> bool:
        opcode = feature.removesuffix("!=")
        return code.get(opcode, 0) != ptx.get(opcode, 0) if feature != opcode else opcode in code

    return any(has(feature) for feature in wanted)


def reason_of(kernel: str, counter: str, size: str = "") -> str | None:
    """Return why a counter of a kernel is known to differ from cards' counts; None where nothing is known."""
    for reason in _reasons():
        of_kernel = any(fnmatch(kernel, name) for name in reason["kernels"])
        if not of_kernel or reason.get("size", size) != size:
            continue
        if "code" in reason and not _seen_in_machine_code(kernel, reason["code"]):
            continue
        if any(fnmatch(counter, name) for name in reason["counters"]):
            return reason["why"]
    return None
