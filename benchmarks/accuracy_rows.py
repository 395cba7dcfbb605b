# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Run one case of docs/executor-accuracy.md on the executor, beside what a card counted of it."""

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from accuracy_cases import ROOT, Shipped

sys.path[:0] = [str(ROOT / "tests" / "executor" / name) for name in ("differential", "public_style")]

from against_card import Compared, compared, counts_of_card, execute, reason_of  # noqa: E402
from answers_file import load_answers  # noqa: E402
from public_kernels import FOLDER, public_kernels  # noqa: E402

from gpuprof.backends.sim.backend import SimBackend  # noqa: E402
from gpuprof.devices.cards import load_card  # noqa: E402
from gpuprof.errors import CaseFailure  # noqa: E402
from gpuprof.measure.execute import Compiler, measure_case  # noqa: E402
from gpuprof.options import RunOptions  # noqa: E402

PUBLIC = ROOT / "tests" / "executor" / "public_style" / "answers-h200.json.xz"
__all__ = ["Compared", "Row", "executed_public", "executed_shipped", "reason_of"]
#: How far floating-point results may be apart that approximations, or fused products and sums, leave open.
_CLOSE = 2e-4
#: Longest that one shipped case may run, in seconds of the CPU: whoever else uses the machine.
_LIMIT_S = 60


@dataclass(frozen=True)
class Row:
    """One case, executed.

    Attributes:
        family: The ladder, the sample, or the file of kernels.
        name: The kernel.
        size: The problem's size; empty for a kernel of one size.
        shape: Threads of a block, and of how many blocks how many ran.
        results: Whether the results are right, or the card's; why not where they are not.
        counters: Those that both tell.
        lost: Shared wavefronts that hardware counts as lost to the pipe, as a share of all, in percent.
    """

    family: str
    name: str
    size: str
    shape: str
    results: str
    counters: tuple[Compared, ...]
    lost: float | None


def executed_shipped(one: Shipped, counted: Mapping[str, Any]) -> Row:
    """Run a shipped kernel: whole where it takes several launches, as `gpuprof` would otherwise.

    One that takes too long is a row without counters, which says so.
    """

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, _LIMIT_S)
    try:
        measurement = _measured(one, whole=bool(one.case.kernel and one.case.kernel.takes_several))
    except TimeoutError:
        left_out = f"left out: the executor takes more than {_LIMIT_S} s of the CPU"
        return Row(one.ladder, one.case.name, one.case.problem.label, "", left_out, (), None)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    ours = {name: counter.value for name, counter in measurement.counters.items()}
    theirs = counted["counters"]
    counter = next(iter(measurement.counters.values()), None)
    ran = f"{counter.sampled_blocks} of {counter.total_blocks}" if counter else ""
    results = "right" if measurement.outcome == "ok" else f"{measurement.outcome}: {measurement.reason}"
    block = "x".join(map(str, measurement.block))
    return Row(
        one.ladder,
        one.case.name,
        one.case.problem.label,
        f"{block}, {ran}",
        results,
        tuple(compared(ours, theirs)),
        _lost(ours, theirs),
    )


def _measured(one: Shipped, *, whole: bool):
    backend = SimBackend(load_card("h200"), RunOptions(sim_blocks=0 if whole else None))
    measurement, _ = measure_case(one.case, backend, Compiler(backend.device.arch))
    return measurement


@cache
def public_answers() -> Mapping[str, Any]:
    """Return what the card made of the public kernels."""
    return load_answers(PUBLIC)


def _family_of(name: str) -> str:
    """The words for the file that a public kernel stands in."""
    found = next(path for path in FOLDER.glob("*.cu") if f"[{name}]" in path.read_text())
    return found.stem.replace("_", " ")


def executed_public(name: str) -> Row | None:
    """Run a public kernel; None where the card has not counted it as it stands."""
    case, answer = public_kernels()[name], public_answers()["answers"].get(name, {})
    if answer.get("key") != case.key or "counters" not in answer:
        return None
    shape = f"{'x'.join(map(str, case.block))}, {'x'.join(map(str, case.grid))} blocks"
    try:
        ours = execute(case, answer["ptx"])
    except CaseFailure as why:
        return Row(_family_of(name), name, "", shape, f"failed: {why}", (), None)
    theirs = counts_of_card(answer)
    counters, lost = tuple(compared(ours.counters, theirs)), _lost(ours.counters, theirs)
    results = _likeness(case.arrays, ours.arrays, answer["arrays"])
    return Row(_family_of(name), name, "", shape, results, counters, lost)


def _likeness(before, ours, bits) -> str:
    """Say how near all arrays are to the card's."""
    exact = True
    for array, mine, told in zip(before, ours, bits, strict=True):
        theirs = array if told is None else np.frombuffer(bytes.fromhex(told), array.dtype)
        if mine.tobytes() == theirs.tobytes():
            continue
        exact = False
        if array.dtype.kind != "f" or not np.allclose(mine, theirs, rtol=_CLOSE, atol=_CLOSE, equal_nan=True):
            return f"{np.count_nonzero(mine != theirs)} elements are not the card's"
    return "the card's bits" if exact else "close to the card's"


def _lost(ours: Mapping[str, Any], theirs: Mapping[str, float]) -> float | None:
    names = [f"shared_{kind}_bank_conflicts" for kind in ("load", "store")]
    total = sum(theirs.get(f"shared_{kind}_wavefronts", 0) for kind in ("load", "store"))
    if not total:
        return None
    return 100 * sum(theirs.get(name, 0) - (ours.get(name) or 0) for name in names) / total
