# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine instructions as an SM plays them: pipe, latency, and what the control word says."""

import re
from collections.abc import Mapping, Sequence

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
#: Cycles to a result that comes when it is ready: published for Volta to Hopper, and not measured here.
_LATE_CYCLES = {"MUFU": 23.0, "LDC": 30.0, "DMMA": 33.0, "DFMA": 8.0, "DADD": 8.0, "DMUL": 8.0}
_USUAL_LATE_CYCLES = 20.0
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
    latencies: Mapping[str, float],
) -> Step:
    """Return what an SM plays for an instruction.

    Args:
        one: The instruction.
        words: Control words of the kernel, in the order of addresses.
        traffic: Of memory instructions, by their addresses.
        latencies: Of the device, in cycles.
    """
    word = words[one.address // _WORD_BYTES]
    pipe = "imad" if one.name == "IMAD" else next(iter(pipe_of(one, _ARCHITECTURE)), "none")
    step = Step(
        kind=_kind(one, word),
        pipe=_PIPES.get(pipe, 0),
        cycles=_PIPE_CYCLES.get(pipe, 0),
        stall=max(1, word.stall),
        waits=tuple(number for number in range(_BARRIERS) if word.waits >> number & 1),
        sets=word.sets,
        frees=word.frees,
    )
    asked = traffic.get(one.address, Traffic(1.0 if one.name == "SHFL" else 0.0))
    step.passes, step.sectors, step.distant = asked.passes, asked.sectors, asked.distant
    if one.name in _THREE_OPERANDS:
        step.conflict = _conflict(one.operands)
    match step.kind:
        case StepKind.SHARED:
            wide = next((times for width, times in _WIDTHS.items() if width in one.opcode), 1)
            step.latency = latencies["shared_latency_cycles"] + 2 * (wide - 1)
        case StepKind.STORE:
            late = one.name in _ATOMIC
            step.latency = latencies["l2_latency_cycles"] if late else _USUAL_LATE_CYCLES
        case StepKind.LATE:
            step.latency = _LATE_CYCLES.get(one.name, _USUAL_LATE_CYCLES)
        case StepKind.GROUP:
            step.sets = 0
        case StepKind.UNTIL if found := _UNTIL.match(one.operands):
            step.sets, step.outstanding = int(found[1]), int(found[2], 16)
    return step


def _kind(one: SassInstruction, word: ControlWord) -> StepKind:
    if one.name in _KINDS:
        return _KINDS[one.name]
    if one.name == "BAR":
        return StepKind.PLAIN if "ARV" in one.opcode else StepKind.BARRIER
    if one.name == "EXIT":
        return StepKind.PLAIN if one.guard else StepKind.END
    return StepKind.LATE if word.sets is not None or one.name in _LATE_CYCLES else StepKind.PLAIN


def _conflict(operands: str) -> int:
    """Cycles more where more operands are read from one of the two register banks than it has ports."""
    banks: tuple[set[int], set[int]] = (set(), set())
    for number, reused in _REGISTER.findall(operands.partition(",")[2]):
        if not reused:
            banks[int(number) % 2].add(int(number))
    return max(0, max(map(len, banks)) - _BANK_PORTS)
