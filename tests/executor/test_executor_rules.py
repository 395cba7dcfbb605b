# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of the PTX ISA, one small kernel each: the executor says what the ISA states and cards answered.

The kernels stand in `rules/`, the cards' answers in `rules/answers-CARD.json`, which
`benchmarks/card_answers.py` writes on a machine with a GPU. What is known to differ, and why, stands in
`rules/known_differences.toml`, and nowhere else.
"""

import functools
import json
import math
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from each import each
from executor_harness import compile_cuda

from gpuprof.backends.sim.launching import check_launch
from gpuprof.counters import COUNTERS
from gpuprof.devices.cards import load_card
from gpuprof.errors import CaseFailure, CompileError
from gpuprof.executor import (
    Definedness,
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchResult,
    UnsupportedInstruction,
    launch,
    load_program,
)
from gpuprof.kernels.shape import OneLaunch
from gpuprof.records import replace
from gpuprof.toolchain.nvrtc import CompiledKernel, compile_entries, compiler_options, nvrtc_version
from gpuprof.toolchain.nvrtc_program import make_program

RULES = Path(__file__).parent / "rules"
sys.path.insert(0, str(RULES))

from rules_corpus import POISON, Case, cases, sources  # noqa: E402

pytestmark = pytest.mark.deep

#: The card whose limits apply.
CARD = load_card("h200")
#: Instructions of a batch; the longest case that ends well takes a tenth.
BUDGET = 4_000
#: What the executor may call what a card answers with an error; any other error is any fault.
SAME = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": {FaultKind.OUT_OF_BOUNDS},
    "CUDA_ERROR_MISALIGNED_ADDRESS": {FaultKind.MISALIGNED},
    "hang": {FaultKind.ENDLESS, FaultKind.BARRIER, FaultKind.MBARRIER},
}


@dataclass(frozen=True)
class Found:
    """What the executor made of a case.

    The outcome is "ok", "fault", "refused", "skipped", or "broken" where the executor itself fails.
    """

    outcome: str
    kind: str = ""
    text: str = ""
    out: np.ndarray | None = None
    result: LaunchResult | None = None


@functools.cache
def resources(file: str) -> dict[str, CompiledKernel]:
    """Return the kernels of a file with what they use, by name."""
    kernels = sorted({case.kernel for case in cases().values() if case.file == file})
    program = make_program(sources()[file], {}, compiler_options("sm_90"), nvrtc_version()[0])
    return dict(zip(kernels, compile_entries(program, file, kernels), strict=True))


@functools.cache
def modules(file: str) -> tuple[str, dict[str, str]]:
    """Return what all kernels of a file share, and the text of each: PTX is read once for each kernel."""
    ptx = compile_cuda(sources()[file], (), "sm_90")
    starts = r"\t?\.(?:global|const)|\.visible|\.entry|\.weak|\.func|\.extern|\t?// \.globl"
    shared, *entries = re.split(rf"(?=^(?:{starts}).*$)", ptx, flags=re.M)
    texts, common = {}, [shared]
    for text in entries:
        if name := re.match(r"\.visible \.entry (\w+)\(", text):
            texts[name[1]] = text
        else:
            common.append(text)
    return "".join(common), texts


@functools.cache
def found(name: str) -> Found:
    """Run one case on the executor, as cases of users are: see `SimBackend`."""
    case = cases()[name]
    try:
        modules(case.file)
    except RuntimeError as error:
        return Found("refused", text=str(error))
    try:
        refuse(case)
        try:
            return executed(case, follow_undefined=False)
        except KernelFault as fault:
            if fault.kind not in (FaultKind.UNINITIALISED_SHARED, FaultKind.ABSENT_LANE):
                raise
            return executed(case, follow_undefined=True)
    except KernelFault as fault:
        return Found("fault", fault.kind, str(fault))
    except UnsupportedInstruction as why:
        return Found("skipped", text=str(why))
    except (CaseFailure, CompileError) as why:
        return Found("refused", text=str(why))
    except (ValueError, KeyError) as error:
        return Found("broken", text=f"the executor itself fails: {error!r}")


def refuse(case: Case) -> None:
    """Refuse what the card cannot hold, where that is what is asked."""
    shape = (case.block, case.grid, case.shared, case.cooperative)
    if case.chapter == "launch limits" and math.prod(case.block):  # the executor refuses blocks of none
        check_launch(CARD, OneLaunch(case.kernel, (), *shape), resources(case.file)[case.kernel])


def executed(case: Case, *, follow_undefined: bool) -> Found:
    """Return what a case leaves and counts."""
    shared, texts = modules(case.file)
    memory = GlobalMemory()
    out = memory.allocate(np.full(case.count * case.dtype.itemsize, POISON, np.uint8), "out")
    inputs = [
        memory.allocate(np.frombuffer(content, np.uint8).copy(), f"input {number}")
        for number, content in enumerate(case.inputs)
    ]
    result = launch(
        load_program(
            shared + texts[case.kernel], case.kernel, observer=Definedness() if follow_undefined else None
        ),
        case.grid,
        case.block,
        [out, *inputs],
        memory,
        dynamic_shared_bytes=case.shared,
        instruction_budget=BUDGET,
        cooperative=case.cooperative,
    )
    return Found("ok", out=out.array().view(case.dtype), result=result)


def distance(case: Case, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return how many units in the last place lie between values; infinite between different classes."""
    if case.ulps is not None and case.result.endswith("x2"):
        half = replace(case, result=case.result[:-2])
        parts = [distance(half, *(bits.view(np.uint16)[i::2] for bits in (ours, theirs))) for i in range(2)]
        return np.maximum(*parts)
    if case.ulps is None or (case.result.startswith(("u", "s", "b")) and case.result != "bf16"):
        return np.where(ours == theirs, 0.0, np.inf)
    size = case.dtype.itemsize * 8
    fraction = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[case.result]
    infinity = (1 << size - 1) - (1 << fraction)
    sizes = [bits.astype(object) & (1 << size - 1) - 1 for bits in (ours, theirs)]
    signs = [bits.astype(object) >> size - 1 for bits in (ours, theirs)]
    apart = np.where(signs[0] == signs[1], abs(sizes[0] - sizes[1]), sizes[0] + sizes[1]).astype(float)
    nans = [magnitude > infinity for magnitude in sizes]
    exact = [(magnitude == 0) | (magnitude == infinity) for magnitude in sizes]
    same = ours == theirs
    apart[(nans[0] != nans[1]) | ((exact[0] | exact[1]) & ~same)] = np.inf
    apart[nans[0] & nans[1] | same] = 0
    return apart


def close(case: Case, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return which values differ by no more than the case's absolute error; never zeros of other signs."""
    if case.absolute is None:
        return np.zeros(case.count, bool)
    if case.result == "bf16":
        values = [(bits.astype(np.uint32) << 16).view(np.float32) for bits in (ours, theirs)]
    else:
        values = [bits.view(f"f{bits.itemsize}") for bits in (ours, theirs)]
    with np.errstate(invalid="ignore"):
        near = abs(values[0].astype(np.float64) - values[1].astype(np.float64)) <= case.absolute
    return near & (np.signbit(values[0]) == np.signbit(values[1]))


def differences(case: Case, ours: np.ndarray, theirs: np.ndarray, mask: np.ndarray) -> str:
    """Describe the elements that differ where they are defined; empty where none does."""
    far = distance(case, ours, theirs) > (case.ulps or 0)
    wrong = np.flatnonzero(far & ~close(case, ours, theirs) & mask)
    if not len(wrong):
        return ""
    width = 2 * case.dtype.itemsize
    shown = []
    for i in wrong[:4]:
        steps = [(content, len(content) // case.count) for content in case.inputs]
        given = [content[i * step : (i + 1) * step][::-1].hex() for content, step in steps if step]
        of = f" of {', '.join(given)}" if given else ""
        shown.append(f"[{i}]{of}: {ours[i]:0{width}x}, not {theirs[i]:0{width}x}")
    return f"{len(wrong)} of {case.count} elements differ: " + "; ".join(shown)


def against_isa(case: Case, ours: Found) -> str:
    """Say how the executor contradicts what the ISA states of a case; empty where it does not."""
    if ours.outcome in ("skipped", "broken"):
        return ours.text
    if case.verdict in ("fault", "undefined"):
        if ours.outcome == "fault" and (not case.faults or ours.kind in case.faults):
            return ""
        return f"{ours.outcome} {ours.text} where a fault was due ({case.verdict}: {', '.join(case.faults)})"
    if case.verdict == "refused":
        return "" if ours.outcome == "refused" else f"{ours.outcome} {ours.text} where the launch is refused"
    if ours.outcome != "ok":
        # Where the ISA leaves the launch open, only a card can tell; but a plain value has no way to fault.
        return f"{ours.outcome}: {ours.text}" if case.verdict == "ok" or not case.risky else ""
    if case.expected is None:
        return ""
    stated = np.array(case.expected, case.dtype)
    return differences(case, ours.out, stated, np.array(case.defined))


def against_card(case: Case, ours: Found, answer: dict) -> str:
    """Say how the executor differs from a card's answer; empty where it does not."""
    if ours.outcome in ("skipped", "broken"):
        return ours.text
    if case.verdict == "undefined":
        return against_isa(case, ours)
    theirs = answer["outcome"]
    if theirs in ("fault", "hang"):
        error = answer.get("error", "hang")
        if ours.outcome == "fault" and ours.kind in SAME.get(error, {ours.kind}):
            return ""
        return f"{ours.outcome} {ours.text}; the card: {error}"
    if theirs != ours.outcome:
        return f"{ours.outcome} {ours.text}; the card: {theirs} {answer.get('error', '')}"
    if theirs != "ok":
        return ""
    bits = np.frombuffer(bytes.fromhex(answer["out"]), case.dtype)
    return differences(case, ours.out, bits, np.array(case.defined) & ~varying(case, answer))


def varying(case: Case, answer: dict) -> np.ndarray:
    """Return which elements came out differently when the card was asked again."""
    mask = np.zeros(case.count, bool)
    mask[answer.get("varies", [])] = True
    return mask


@functools.cache
def known() -> dict[str, dict[str, str]]:
    return tomllib.loads((RULES / "known_differences.toml").read_text())


ANSWERS = {
    path.stem.removeprefix("answers-"): json.loads(path.read_text())
    for path in sorted(RULES.glob("answers-*.json"))
}


def unexpected(judge: str, differences: dict[str, str]) -> dict[str, str]:
    """Return what differs and is not known to, and what is known to differ and does not."""
    reasons = known().get(judge, {})
    wrong = {name: text for name, text in differences.items() if text and name not in reasons}
    mended = (name for name, text in differences.items() if not text and name in reasons)
    return wrong | dict.fromkeys(mended, "differs no longer: known_differences.toml still has it")


@pytest.mark.parametrize("file", sources())
def test_the_executor_says_what_the_isa_states_and_cards_answered(file):
    of_file = {name: case for name, case in cases().items() if case.file == file}
    assert not unexpected("isa", {name: against_isa(case, found(name)) for name, case in of_file.items()})
    unasked = []
    for card, told in ANSWERS.items():
        answers = {name: told["answers"].get(name) for name in of_file}
        fit = {name: it for name, it in answers.items() if it and it["key"] == of_file[name].key}
        differences = {name: against_card(of_file[name], found(name), it) for name, it in fit.items()}
        assert not unexpected("card", differences), card
        unasked += [f"{card}: {name}" for name in of_file.keys() - fit.keys()]
    if unasked:
        pytest.skip(f"asked anew must be {', '.join(sorted(unasked))}: see benchmarks/card_answers.py")


#: The executor's counters, by the metrics that they stand for.
COUNTED = {
    metric: row.name
    for row in COUNTERS.values()
    if row.executor
    for metric in row.metrics
    if metric.endswith(".sum")
}
#: Of kernels that also copy asynchronously, these metrics count the copies too.
PLAIN_ONLY = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
}
#: What the L1 cache does not count by addresses, as the other metric of the same counter is: it serves each
#: lane of such a load a sector of its own.
NOT_BY_ADDRESS = {("load_mmio_relaxed_sys_global", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")}


def counted_by_cards() -> list[tuple[str, dict]]:
    """Every counted case that a card answered as it stands, with its counts."""
    return [
        (name, answer["counters"])
        for told in ANSWERS.values()
        for name, case in cases().items()
        if (answer := told["answers"].get(name)) and answer["key"] == case.key and "counters" in answer
    ]


@each(case=counted_by_cards())
def test_accesses_cost_what_cards_counted(case):
    name, told = case
    result = found(name).result
    shown = set(COUNTED.values()) - result.hidden.keys()
    copies = bool(result.counters["async_copy_shared_wavefronts"])
    compared = {
        metric: (result.counters[COUNTED[metric]], value)
        for metric, value in told.items()
        if COUNTED.get(metric) in shown and not (copies and metric in PLAIN_ONLY)
        if (name, metric) not in NOT_BY_ADDRESS
    }
    assert len(compared) >= 4
    assert not {metric: pair for metric, pair in compared.items() if pair[0] != pair[1]}


def test_every_kernel_has_a_case_and_every_case_a_kernel():
    for file, source in sources().items():
        asked = {case.kernel for case in cases().values() if case.file == file}
        if not file.startswith("limit_"):
            _, texts = modules(file)
            assert set(texts) == asked, file
        assert all(re.search(rf"\b{kernel}\b", source) for kernel in asked), file


def test_what_is_known_to_differ_names_cases():
    for reasons in known().values():
        assert set(reasons) <= set(cases())


def test_a_known_difference_that_is_gone_is_told():
    name = next(iter(known()["isa"]))
    assert unexpected("isa", {name: "differs", "add_rn_f32": ""}) == {}
    assert set(unexpected("isa", {name: "", "add_rn_f32": "differs"})) == {name, "add_rn_f32"}


def test_a_difference_is_noticed():
    case = cases()["add_rn_f32"]
    ours = found("add_rn_f32")
    changed = ours.out.copy()
    changed[5] ^= 1
    told = {"outcome": "ok", "out": changed.tobytes().hex()}
    assert "1 of 1024 elements differ: [5]" in against_card(case, ours, told)
    assert not against_card(case, ours, told | {"varies": [5]})
    assert not against_card(case, ours, told | {"out": ours.out.tobytes().hex()})
    assert against_card(case, ours, {"outcome": "fault", "error": "CUDA_ERROR_ILLEGAL_ADDRESS"})


def test_approximations_are_compared_by_class_and_distance():
    case = cases()["rcp_approx_f32"]
    one, near, far, zero, minus_zero, infinity, nan, other_nan, tiny = (
        np.array([bits], np.uint32)
        for bits in (0x3F800000, 0x3F800002, 0x3F800003, 0, 0x80000000, 0x7F800000, 0x7FC00000, 0x7FFFFFFF, 1)
    )
    assert distance(case, one, near) == 2
    assert distance(case, one, far) == 3
    assert distance(case, nan, other_nan) == 0
    for a, b in ((zero, minus_zero), (zero, tiny), (infinity, nan), (one, infinity)):
        assert np.isinf(distance(case, a, b))
