# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine instructions as an SM plays them: pipe, latency, and what the control word says."""

import re
from collections.abc import Mapping, Sequence

from gpuprof.devices.card_constants import CardConstants
from gpuprof.machine_code.pipes import pipe_of
from gpuprof.machine_code.sass import SassInstruction
from gpuprof.sm_model.control_words import ControlWord
from gpuprof.sm_model.sm import Step, StepKind
from gpuprof.sm_model.traffic import Traffic

_WORD_BYTES = 16
_BARRIERS = 6
_ARCHITECTURE = 90
#: Cycles that an instruction keeps its pipe of one of the four schedulers: 32 lanes over those of the pipe.
_PIPE_CYCLES = {"alu": 2, "fma": 1, "imad": 2, "fp64": 2, "xu": 8, "lsu": 2, "adu": 2, "tensor": 16, "tex": 2}
_PIPES = {name: number for number, name in enumerate(("none", *_PIPE_CYCLES))}
#: Names of constants by a mnemonic and a word of its opcode: an interval or latency stands for it.
_MEASURED = (
    ("HMMA", "16816", "hmma_16816"),
    ("HMMA", "1688.F32.TF32", "tf32_1688"),
    ("HMMA", "1684", "tf32_1684"),
    ("HMMA", "1688", "hmma_1688"),
    ("DMMA", "", "dmma"),
    ("MUFU", "", "mufu"),
    ("LDC", "", "ldc"),
    *((name, "", "dfma") for name in ("DFMA", "DADD", "DMUL")),
    *((name, "", "f2i_i2f") for name in ("F2I", "I2F", "F2F")),
    ("POPC", "", "popc"),
    ("SHFL", "", "shfl"),
    ("REDUX", "", "redux"),
    ("MEMBAR", "", "membar"),
    ("IMAD", "HI", "imad_hi"),
    ("IMAD", "WIDE", "imad_hi"),
)
#: What repeats an instruction to measure its interval takes slots too: as much as it does beside this one,
#: which takes two cycles.
_REPEATED, _REPEATED_CYCLES = "lop3_interval_cycles", 2.0
_USUAL_LATE = "popc_latency_cycles"
_LATE = ("MUFU", "LDC", "DMMA", "DFMA", "DADD", "DMUL")
_ATOMIC = ("ATOMG", "ATOM")
_KINDS = {
    **dict.fromkeys(("LDS", "LDSM", "STS", "SHFL"), StepKind.SHARED),
    **dict.fromkeys(("LDG", "LD"), StepKind.LOAD),
    **dict.fromkeys(("STG", "ST", "REDG", "RED", *_ATOMIC), StepKind.STORE),
    "LDGSTS": StepKind.COPY,
    "LDGDEPBAR": StepKind.GROUP,
    "DEPBAR": StepKind.UNTIL,
}
_WIDTHS = {".64": 2, ".128": 4}
_UNTIL = re.compile(r"SB(\d), (0x[0-9a-f]+)")
_REGISTER = re.compile(r"(?<![A-Z])R(\d+)(\.reuse)?")
_THREE_OPERANDS = ("FFMA", "FADD", "FMUL", "DFMA")
_BANK_PORTS = 2


def step_of(
    one: SassInstruction,
    words: Sequence[ControlWord],
    traffic: Mapping[int, Traffic],
    constants: CardConstants,
) -> Step:
    """Return what an SM plays for an instruction.

    Args:
        one: The instruction.
        words: Control words of the kernel, in the order of addresses.
        traffic: Of memory instructions, by their addresses.
        constants: Of the card.
    """
    values = constants.values
    word = words[one.address // _WORD_BYTES]
    pipe = "imad" if one.name == "IMAD" else next(iter(pipe_of(one, _ARCHITECTURE)), "none")
    step = Step(
        kind=_kind(one, word),
        pipe=_PIPES.get(pipe, 0),
        cycles=_interval(one, values) or _PIPE_CYCLES.get(pipe, 0),
        stall=max(1, word.stall),
        waits=tuple(number for number in range(_BARRIERS) if word.waits >> number & 1),
        sets=word.sets,
        frees=word.frees,
    )
    asked = traffic.get(one.address, Traffic(1.0 if one.name == "SHFL" else 0.0))
    step.passes, step.sectors, step.distant = asked.passes, asked.sectors, asked.distant
    stores = step.kind == StepKind.STORE
    step.effort = _effort(asked, "l2_store" if stores else "l2_l2_load", constants) if asked.sectors else 1.0
    if one.name in _THREE_OPERANDS:
        step.conflict = _conflict(one.operands)
    match step.kind:
        case StepKind.SHARED:
            wide = next((times for width, times in _WIDTHS.items() if width in one.opcode), 1)
            step.latency = constants.rates["shared_latency_cycles"] + wide - 1
            if one.name == "SHFL":
                step.latency = values["shfl_latency_cycles"]
        case StepKind.STORE:
            late = one.name in _ATOMIC
            step.latency = constants.rates["l2_latency_cycles"] if late else values[_USUAL_LATE]
        case StepKind.LATE:
            step.latency = values.get(f"{_measured(one)}_latency_cycles", values[_USUAL_LATE])
        case StepKind.GROUP:
            step.sets = 0
        case StepKind.UNTIL if found := _UNTIL.match(one.operands):
            step.sets, step.outstanding = int(found[1]), int(found[2], 16)
    return step


def _measured(one: SassInstruction) -> str:
    return next((key for name, word, key in _MEASURED if name == one.name and word in one.opcode), "")


def _interval(one: SassInstruction, values: Mapping[str, float]) -> float:
    """Cycles that an instruction keeps its pipe where that was measured, without the loop around it."""
    cycles = values.get(f"{_measured(one)}_interval_cycles", 0.0)
    return round(cycles * _REPEATED_CYCLES / values[_REPEATED], 1)


def _effort(asked: Traffic, pattern: str, constants: CardConstants) -> float:
    """What a sector takes of L2 beside one that is read or written whole."""

    def sectors(name: str, each: int) -> float:
        return constants.values[f"{pattern}_{name}_requests_per_ns"] * each

    if asked.filled == 1:
        return 1.0
    return max(1.0, sectors("128_apart_16", 16) / sectors("32_apart_32", 32))


def _kind(one: SassInstruction, word: ControlWord) -> StepKind:
    if one.name in _KINDS:
        return _KINDS[one.name]
    if one.name == "BAR":
        return StepKind.PLAIN if "ARV" in one.opcode else StepKind.BARRIER
    if one.name == "EXIT":
        return StepKind.PLAIN if one.guard else StepKind.END
    return StepKind.LATE if word.sets is not None or one.name in _LATE else StepKind.PLAIN


def _conflict(operands: str) -> int:
    """Cycles more where more operands are read from one of the two register banks than it has ports."""
    banks: tuple[set[int], set[int]] = (set(), set())
    for number, reused in _REGISTER.findall(operands.partition(",")[2]):
        if not reused:
            banks[int(number) % 2].add(int(number))
    return max(0, max(map(len, banks)) - _BANK_PORTS)
