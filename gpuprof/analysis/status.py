# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a case is within its run: rung or reference, how it ended, how it fills the device; and a caution."""

from math import prod
from typing import Literal

from msgspec import Struct

from gpuprof.records import replace
from gpuprof.results import Measurement, Run
from gpuprof.text import format_extent


def is_reference(run: Run, case: Measurement) -> bool:
    """True for a case that is no rung but what rungs are compared with."""
    return case.is_reference or any(record.is_reference for record in run.kernels if record.id == case.kernel)


def on_host(run: Run, case: Measurement) -> bool:
    """True for a reference that ran on the CPU, whose times say nothing of the GPU's peaks."""
    if not is_reference(run, case):
        return False
    return any(record.on_host for record in run.kernels if record.id == case.kernel)


def is_ceiling(run: Run, case: Measurement) -> bool:
    """True for a case that does less than the operation, and so bounds what it can reach."""
    options = run.operations[case.problem.operation].options
    chosen = case.problem.options
    return any(option.ceiling and chosen.get(name) == option.ceiling for name, option in options.items())


def blocks_of(case: Measurement) -> int | None:
    """Blocks of the grid, None where the launch was never worked out."""
    return prod(case.grid) if case.grid else None


def waves(run: Run, case: Measurement) -> float | None:
    """How often the grid fills the device; below 1, some SMs never get a block."""
    blocks = blocks_of(case)
    if blocks is None or case.occupancy is None or case.occupancy.blocks_per_sm < 1:
        return None
    return blocks / (run.devices[case.device].sm_count * case.occupancy.blocks_per_sm)


def name_of_case(case: Measurement) -> str:
    """Kernel, size, block and parameters of a case on one line."""
    parts = [case.kernel, case.problem.label]
    if case.problem.dtype != "f32":
        parts.append(case.problem.dtype)
    if case.has_launch and not case.chosen:
        parts.append(format_extent(case.block))
        parts += [f"{name}={value}" for name, value in case.params.items()]
    return " ".join(parts)


Tone = Literal["good", "bad", "muted"]


class Status(Struct, frozen=True):
    """How a case ended: word, sign and colour family; where it is usable, its figures may be compared.

    The sign is one character, so that no reader depends on colour.
    """

    word: str
    mark: str
    tone: Tone
    usable: bool = False


_STATUS = {
    "ok": Status("ok", "✓", "good", usable=True),
    "incorrect": Status("incorrect", "≠", "bad"),
    "failed": Status("failed", "✗", "bad"),
    "timeout": Status("timeout", "◷", "bad"),
    "skipped": Status("skipped", "○", "muted"),
}
_COMPILED = Status("compiled", "◇", "muted", usable=True)
_OVER_LIMIT = replace(_STATUS["skipped"], word="over limit")


#: What a launch may ask too much of, as reasons call it, and the limit that it then exceeds.
_LIMITS = ("shared memory", "registers", "threads", "cooperative grid")


def exceeded_limit(case: Measurement) -> str:
    """Which of the device's limits a case exceeds, for example `shared-memory limit`."""
    name = next((name for name in _LIMITS if name in (case.reason or "")), "")
    return f"{name.removesuffix('s').replace(' ', '-')} limit" if name else "device limit"


def status_of(run: Run, case: Measurement) -> Status:
    """The status of a case of a run."""
    return status_on(run.backend, case)


def status_on(backend: str, case: Measurement) -> Status:
    """The status of a case; without a backend that executes, one that compiled counts as done."""
    if backend == "none" and case.outcome == "skipped" and case.resources is not None:
        return _COMPILED
    over = case.over_limit and case.outcome == "failed"  # a foreign file may say so of any
    return _OVER_LIMIT if over else _STATUS[case.outcome]


Level = Literal["bad", "warning", "note"]


class Banner(Struct, frozen=True):
    """One caution: `bad` when a figure must not be used, `warning` when it may be off, `note` for context.

    The detail says what was measured, against which threshold, and of which cases.
    """

    code: str
    level: Level
    title: str
    detail: str
    fix: str = ""
