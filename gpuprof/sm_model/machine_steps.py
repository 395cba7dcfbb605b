# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine instructions as an SM plays them: pipe, latency, and what the control word says."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from gpuprof.devices.card_constants import DRAM_RUNS, CardConstants
from gpuprof.machine_code.instruction_counts import pipe_of
from gpuprof.machine_code.sass import SassInstruction
from gpuprof.records import replace
from gpuprof.sm_model.control_words import ControlWord
from gpuprof.sm_model.step import PRODUCTS, Step, StepKind
from gpuprof.sm_model.traffic import MOST_L2_BYTES, SECTOR_BYTES, Traffic

_WORD_BYTES = 16
#: Of the stores whose interval was measured.
_STORE_SECTORS = 16
#: By the bits of a control word, the barriers that are waited for.
_WAITS = [tuple(number for number in range(6) if bits >> number & 1) for bits in range(1 << 6)]
#: Who share the pipe of constants: of its interval all of them were measured.
_SCHEDULERS = 4
#: Lines per sector where requests take whole ones.
_WHOLE_LINE = 0.25
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
_ADDED = ("REDG", "RED", *_ATOMIC)
#: Words of a sector.
_SECTOR_WORDS = SECTOR_BYTES // 4
#: Of matrix products that were measured.
_MEASURED_COLUMNS = (64, 128, 256)
_KINDS = {
    **dict.fromkeys(("LDS", "LDSM", "STS", "SHFL", "ATOMS"), StepKind.SHARED),
    **dict.fromkeys(("LDG", "LD", "LDL"), StepKind.LOAD),
    **dict.fromkeys(("STG", "ST", "STL", *_ADDED), StepKind.STORE),
    "LDGSTS": StepKind.COPY,
    **dict.fromkeys(("HGMMA", "IGMMA", "QGMMA"), StepKind.PRODUCT),
    "UTMALDG": StepKind.BULK,
    **dict.fromkeys(("UTMASTG", "UTMAREDG"), StepKind.BULK_STORE),
    "LDGDEPBAR": StepKind.GROUP,
    "DEPBAR": StepKind.UNTIL,
}
_OPERANDS = {"QGMMA": "e4m3", "BF16": "bf16", "TF32": "tf32"}
_WIDTHS = {".64": 2, ".128": 4}
#: What four registers are loaded with keeps either bank a cycle: 64 FFMA and four such loads take 80.9 cycles
#: on an H200, 80.3 so and 76.6 otherwise. Of two registers or one that was not seen.
_WIDEST = ".128"
_UNTIL = re.compile(r"(?:SB(\d)|gsb\d), (0x[0-9a-f]+)")
_MEETING = re.compile(r"(?:(0x[0-9a-f]+)|R\d+)(?:, (0x[0-9a-f]+))?$")
_PRODUCT = re.compile(r"\.64x(\d+)x")
_LANES = 32
#: Of memory, by an instruction without traffic.
_NOTHING, _SHUFFLED = Traffic(), Traffic(1.0)
#: Cycles until shared memory of a cluster's blocks answers, and bytes of a pass over those of a cycle:
#: W. Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", 2024, of an H800.
_REMOTE_CYCLES, _REMOTE_PASSES = 180.0, 128 / 16
#: Of a word of every lane.
_LANE_SECTORS = 4
_REGISTER = re.compile(r"[-|~!]*R(\d+)(\.reuse)?")
_PREDICATE = re.compile(r"!?U?P[T\d]")
#: Pipes whose instructions read 32-bit operands in the cycles after they issue.
_READING = ("fma", "imad", "alu")


def steps_of(
    instructions: Sequence[SassInstruction],
    words: Sequence[ControlWord],
    traffic: Mapping[int, Traffic],
    constants: CardConstants,
    sources: Mapping[int, int],
    cluster: int = 1,
) -> list[Step]:
    """Return what an SM plays for a block of instructions.

    Args:
        instructions: Of the block.
        words: Control words of the kernel, in the order of addresses.
        traffic: Of memory instructions, by their addresses.
        constants: Of the card.
        sources: The source line of each line of the PTX text.
        cluster: Blocks that reach each other's shared memory, by generic addresses.
    """
    kept: dict[tuple[int, int], str] = {}
    steps = []
    for one in instructions:
        step, pipe = _step_of(one, words[one.address // _WORD_BYTES], traffic, constants)
        if cluster > 1 and one.name in ("LD", "ST") and step.asked.missing and not step.asked.sectors:
            step.kind, step.latency = StepKind.SHARED, _REMOTE_CYCLES
            step.asked = replace(step.asked, passes=step.asked.passes * _REMOTE_PASSES)
        if one.name == "LDS" and _WIDEST in one.opcode:
            step.even = step.odd = 1
        if pipe in _READING:
            step.even, step.odd = _reads(one.operands, kept)
        step.line = sources.get(one.line, 0)
        steps.append(step)
    return steps


def _reads(operands: str, kept: dict[tuple[int, int], str]) -> tuple[int, int]:
    """Operands read from either register bank, but those that an instruction before `kept`, by place."""
    read: tuple[set[str], set[str]] = (set(), set())
    for bank, place, register, reused in _registers(operands):
        if kept.get((bank, place)) != register:
            read[bank].add(register)
        kept[bank, place] = register if reused else ""
    return len(read[0]), len(read[1])


@lru_cache(maxsize=1 << 14)
def _registers(operands: str) -> list[tuple[int, int, str, bool]]:
    """Of each register that is read: its bank, place among operands and number, and whether it is kept."""
    places = [each for each in operands.split(", ")[1:] if not _PREDICATE.match(each)]
    found = ((place, _REGISTER.match(operand)) for place, operand in enumerate(places))
    return [(int(one[1]) % 2, place, one[1], bool(one[2])) for place, one in found if one]


def _step_of(
    one: SassInstruction, word: ControlWord, traffic: Mapping[int, Traffic], constants: CardConstants
) -> tuple[Step, str]:
    """An instruction's step, but for operands and line, and the name of its pipe."""
    values = constants.values
    pipe = "imad" if one.name == "IMAD" else next(iter(pipe_of(one, _ARCHITECTURE)), "none")
    asked = traffic.get(one.address)
    step = Step(
        kind=_kind(one, word),
        pipe=_PIPES.get(pipe, 0),
        cycles=_interval(one, values) or _PIPE_CYCLES.get(pipe, 0),
        stall=max(1, word.stall),
        waits=_WAITS[word.waits],
        sets=word.sets,
        frees=word.frees,
        asked=asked or (_SHUFFLED if one.name == "SHFL" else _NOTHING),
    )
    if asked is None:
        asked = step.asked
    else:
        missed = asked.sectors * asked.sharers / (asked.missing or 1.0)
        step.lines = max(1.0, missed * asked.spread)
        # The first of so many last answers comes so much before their mean.
        step.led = math.log(1 + math.log2(max(1.0, asked.readers)))
        stores = step.kind in (StepKind.STORE, StepKind.BULK_STORE)
        step.scattered = _scattered(asked.run, "writes" if stores else "reads", values)
        step.effort = _effort(asked, "l2_store" if stores else "l2_l2_load", values)
    if one.name == "UCGABAR_WAIT":
        # It was measured behind a fence, which machine code has as an instruction of its own.
        step.stall = values["cluster_barrier_cycles"] - values["membar_latency_cycles"]
    if step.kind == StepKind.BULK:
        alone, eight = (values[f"bulk_loads_by_{blocks}_gbps"] for blocks in (1, 8))
        step.effort = 1 + (alone / eight - 1) * min(1.0, asked.readers - 1)
        # The SM's copy engine asks line by line, for parts of one as for all of it.
        step.sent = SECTOR_BYTES / MOST_L2_BYTES * asked.spread / _WHOLE_LINE
    wide = next((times for width, times in _WIDTHS.items() if width in one.opcode), 1)
    match step.kind:
        case StepKind.SHARED:
            step.latency = constants.rates["shared_latency_cycles"] + wide - 1
            if one.name == "SHFL":
                step.latency = values["shfl_latency_cycles"]
        case StepKind.STORE:
            if one.name == "STL":  # L1 hands on what is stored
                step.asked = replace(asked, sectors=_LANE_SECTORS * wide)
            if asked.partial:  # the SM sends a sector at a time, once lines are looked up
                step.sent = values["store_128_apart_16_interval_cycles"] / _STORE_SECTORS
            step.crowded = _crowded(one, asked, values)
            if one.name in _ADDED:
                stored = _STORE_SECTORS * values["l2_store_128_apart_16_requests_per_ns"]
                step.effort = max(step.effort, stored * _SECTOR_WORDS / constants.rates["atomics_apart_gops"])
            late = one.name in _ATOMIC
            step.latency = values["fetch_add_32_apart_4_latency_cycles" if late else _USUAL_LATE]
        case StepKind.LATE | StepKind.FENCE:
            step.latency = values.get(f"{_measured(one.opcode)}_latency_cycles", values[_USUAL_LATE])
            if one.name == "LDC":  # lanes of other words take turns
                turns = max(1.0, asked.passes / wide)
                step.latency += (turns - 1) * step.cycles / _SCHEDULERS
                step.cycles, step.asked = step.cycles * turns, _NOTHING
        case StepKind.ARRIVAL:
            step.latency = values[_USUAL_LATE]
            step.outstanding = int(one.name == "ARRIVES")
        case StepKind.GROUP:
            step.sets = 0
        case StepKind.UNTIL if found := _UNTIL.match(one.operands):
            step.sets, step.outstanding = int(found[1] or PRODUCTS), int(found[2], 16)
        case StepKind.PRODUCT:
            step.cycles, step.latency = _product(one, constants)
            step.sets = PRODUCTS if "gsb" in one.operands else None
        case StepKind.BARRIER if found := _MEETING.match(one.operands):
            step.sets, step.outstanding = int(found[1] or "0", 16), int(found[2] or "0", 16) // _LANES
    return step, pipe


@cache
def _measured(opcode: str) -> str:
    of = opcode.partition(".")[0]
    return next((key for name, word, key in _MEASURED if name == of and word in opcode), "")


def _interval(one: SassInstruction, values: Mapping[str, float]) -> float:
    """Cycles that an instruction keeps its pipe where that was measured, without the loop around it."""
    if not (of := _measured(one.opcode)):
        return 0.0
    cycles = values.get(f"{of}_interval_cycles", 0.0)
    return round(cycles * _REPEATED_CYCLES / values[_REPEATED], 1)


def _product(product: SassInstruction, constants: CardConstants) -> tuple[float, float]:
    """Cycles that a product of a warp group keeps the tensor cores, and until its result may be used.

    More of the usual ones where all SMs multiply, as the clock falls then. Columns take as long in narrow
    products as in wide ones, which the measuring loop does not slow down: 32.4 cycles for 64 where two groups
    multiply (H200).
    """
    found, values = _PRODUCT.search(product.opcode), constants.values
    columns = int(found[1]) if found else _MEASURED_COLUMNS[-1]
    near = min(_MEASURED_COLUMNS, key=lambda each: (each < columns, abs(each - columns)))
    widest = _MEASURED_COLUMNS[-1]
    one, eight = (values[f"wgmma_f16_{widest}_groups_1_times_{count}_cycles"] for count in (1, 8))
    column, alone = (eight - one) / 7 / widest, values[f"wgmma_f16_{near}_groups_1_times_1_cycles"]
    kind = next((kind for word, kind in _OPERANDS.items() if word in product.opcode), "f16")
    reached = constants.reached.get(f"tensor_{kind}", 1.0)
    return column * columns / reached, alone - column * near


def _scattered(run: float, kind: str, values: Mapping[str, float]) -> float:
    """What a sector takes of DRAM beside one of a long run, which opens fewer of its rows."""
    rates = [values[f"dram_{kind}_{each}_gbps"] for each in (*(f"of_{run}" for run in DRAM_RUNS), "in_order")]
    # What is twice as long as the longest that was measured is in order.
    efforts = zip(
        (*DRAM_RUNS, 2 * DRAM_RUNS[-1]), (max(1.0, rates[-1] / rate) for rate in rates), strict=True
    )
    for (low, before), (high, after) in pairwise(efforts):
        if run < high:
            return before + (after - before) * max(0.0, run - low) / (high - low)
    return 1.0


def _effort(asked: Traffic, pattern: str, values: Mapping[str, float]) -> float:
    """What a sector takes of L2 beside one of a whole line: more of lines that are touched for less of them.

    And of sectors that are written in part.
    """
    parts, alone = (1 / values[f"{pattern}_32_apart_{apart}_requests_per_ns"] for apart in (32, 128))
    whole = 2 / values[f"{pattern}_128_apart_16_requests_per_ns"] if asked.partial else parts
    return (parts + (alone - parts) * (asked.spread - _WHOLE_LINE) / (1 - _WHOLE_LINE)) / whole


def _crowded(one: SassInstruction, asked: Traffic, values: Mapping[str, float]) -> float:
    """Nanoseconds that the part of L2 which is busiest with an atomic operation takes of each of all.

    Sums of floating-point numbers come to a sector one after the other.
    """
    sector, part = asked.busiest
    turn, late = (1 / values[f"l2_{name}_1_apart_0_requests_per_ns"] for name in ("red", "red_f32"))
    return asked.sectors * max(part * turn, sector * (late if ".F" in one.opcode else turn))


def _kind(one: SassInstruction, word: ControlWord) -> StepKind:
    if one.name == "BAR":
        return StepKind.PLAIN if "ARV" in one.opcode else StepKind.BARRIER
    if one.name in ("UBLKCP", "UBLKRED"):
        return StepKind.BULK if ".S.G" in one.opcode else StepKind.BULK_STORE
    if one.name == "WARPGROUP" and "DEPBAR" in one.opcode:
        return StepKind.UNTIL
    if one.name == "SYNCS" and "PHASECHK" in one.opcode:
        return StepKind.PHASE
    if one.name == "ARRIVES" or (one.name == "SYNCS" and "ARRIVE" in one.opcode):
        return StepKind.ARRIVAL
    if one.name == "MEMBAR":
        return StepKind.PLAIN if "CTA" in one.opcode else StepKind.FENCE
    if one.name == "EXIT":
        return StepKind.PLAIN if one.guard else StepKind.END
    usual = StepKind.LATE if word.sets is not None or one.name in _LATE else StepKind.PLAIN
    return _KINDS.get(one.name, usual)
