# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The modelled time: kernels whose cycles can be reckoned by hand, and what must hold of any."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compile_support import compile_source

from gpuprof.backends.sim.executed import _crowd
from gpuprof.backends.sim.watching import CacheWatch, _lines, _usual
from gpuprof.devices.card_constants import constants_of
from gpuprof.devices.cards import load_card
from gpuprof.executor import Cache, loops_of
from gpuprof.executor.lanes.masks import Mask
from gpuprof.executor.memory.shared_memory import SharedPattern
from gpuprof.machine_code.sass import Block, MachineCode, SassInstruction
from gpuprof.records import replace
from gpuprof.sm_model import NotModelled, PlayedLaunch, Traffic, TrafficSites, modelled, traffic_of
from gpuprof.sm_model.control_words import ControlWord, control_words
from gpuprof.sm_model.machine_steps import steps_of
from gpuprof.sm_model.path import usual_path, ways_to
from gpuprof.sm_model.played_blocks import Played
from gpuprof.sm_model.sm import StreamingMultiprocessor
from gpuprof.sm_model.sm_surroundings import SmSurroundings, surroundings_of
from gpuprof.sm_model.step import REASONS, Step, StepKind
from gpuprof.sm_model.tiles import BroughtTiles
from gpuprof.sm_model.traffic import _of_whole_waves
from gpuprof.sm_model.warp_paths import _gone_through
from gpuprof.toolchain.nvrtc import compiler_options
from gpuprof.toolchain.signature import block_limits_of

RATES = SmSurroundings(40.0, 300.0, 700.0, 1.0, 2.0, 2.0)
ASKED = set(Traffic.__struct_fields__)


def changed(one: Step, **how: object) -> Step:
    """An instruction that is otherwise, or asks for something else of memory."""
    asked = {name: how.pop(name) for name in ASKED & how.keys()}
    return replace(one, asked=replace(one.asked, **asked), **how)  # type: ignore[arg-type]


def step_of(kind: StepKind, **how: object) -> Step:
    return changed(Step(kind), **how)


END = Step(StepKind.END)
WORD = ControlWord(1, sets=None, frees=None, waits=0)
H200 = replace(
    load_card("h200"),
    measured_rates={
        **{"l2_gbps": 9300.0, "dram_read_gbps": 4400.0, "barriers_gips": 125.0},
        "launch_floor_us": 1.6,
        **{"l1_latency_cycles": 45.0, "l2_latency_cycles": 292.0, "dram_latency_cycles": 665.0},
        **{"shared_latency_cycles": 23.0, "fma_latency_cycles": 4.1},
    },
)


def play(
    steps: Sequence[Step], warps: int = 1, blocks: int = 1, resident: int = 1, rates: SmSurroundings = RATES
) -> Played:
    return StreamingMultiprocessor([[*steps, END]], [[0]], warps, resident, rates).play(blocks)


def spent(steps: Sequence[Step], reason: str) -> float:
    return sum(step.spent[REASONS.index(reason)] for step in steps)


PLAIN, USE = step_of(StepKind.PLAIN), step_of(StepKind.PLAIN, waits=(0,))
TEN = [step_of(StepKind.PLAIN, pipe=1, cycles=1)] * 10
LOAD = step_of(StepKind.LOAD, sets=0, passes=1, sectors=4)
FAR = changed(LOAD, distant=1.0, late=1.0)
SHARED = step_of(StepKind.SHARED, passes=1, latency=23)
STORE, FENCE = step_of(StepKind.STORE, passes=1, sectors=16), step_of(StepKind.FENCE, latency=20)
LINES = changed(STORE, lines=8, own=0.5)

#: What warps play, how many do, and when the first of them ends: a cycle, and how near to it.
RECKONED = {
    "a lone warp takes its stall cycles": ([replace(PLAIN, stall=5), replace(PLAIN, stall=2)], 1, 7, 0),
    "a scheduler each": (TEN, 4, 10, 0),
    # The last instruction of each warp is its end: 2 x 11 slots, the last of which is the second warp's end.
    "warps of one scheduler share its issue slots": (TEN, 8, 21, 0),
    "a pipe of half the lanes takes twice as long": ([replace(TEN[0], cycles=2)] * 10, 8, 40, 2),
    # Four sectors at two cycles each, and the latency; 200 sectors; and at a tenth of that, as L2 takes them.
    "a load from DRAM": ([FAR, USE], 1, 709, 0),
    "many loads from DRAM": ([FAR] * 50 + [USE], 1, 1101, 0),
    "what lies apart takes more of DRAM": ([changed(FAR, scattered=1.5)] * 50 + [USE], 1, 1301, 0),
    "what others read too comes as late": ([changed(FAR, distant=0.1)] * 50 + [USE], 1, 751, 12),
    "reads of L2": ([LOAD, USE], 1, 305, 0),
    "reads of L2 wait for writes before them": ([step_of(StepKind.STORE, sectors=500), LOAD, USE], 1, 805, 0),
    # Of 16 loads two are answered by L2, each of 4 sectors, 14 by L1.
    "misses of L1": ([changed(LOAD, sectors=0.5, missing=0.125), USE] * 16, 1, 14 * 41 + 2 * 305, 40),
    "beside the load before": ([changed(FAR, brought=0.75), USE] * 16, 1, 4 * 700 + 12 * 300, 320),
    # Of every other that L1 lacks, every other came with the one before.
    "misses beside the miss before": (
        [changed(FAR, sectors=2, missing=0.5, brought=0.5), USE] * 16,
        *(1, 4 * 709 + 4 * 305 + 8 * 41 + 8 * 4, 30),
    ),
    # 400 sectors pass into L1 once they have come, two in a cycle, and shared memory waits for its data path.
    "answers keep the data path": (
        [changed(LOAD, sectors=400), USE, replace(SHARED, sets=1), step_of(StepKind.PLAIN, waits=(1,))],
        *(1, 400 + 300 + 200 + 23, 3),
    ),
    # One asks for the four sectors of all; each waits as long.
    "warps that share data": ([changed(LOAD, sectors=1, sharers=4), USE], 4, 300 + 4 + 1, 1),
    "a fence waits for stores": ([STORE, FENCE], 1, 16 + 300, 0),
    # The next one waits until the copy is taken and its operands are read.
    "lanes that begin copies take turns": (
        [replace(PLAIN, stall=13, waits=(0,)), step_of(StepKind.BULK, stall=7, frees=0)] * 3
        + [replace(PLAIN, waits=(0,))],
        *(1, 13 + 3 * 11.25 + 2 * 13, 1),
    ),
    "a fence alone": ([FENCE], 1, 20, 0),
    "stores to the same lines are combined": ([LINES, changed(LINES, again=True)], 1, 16 + 8 + 300, 1),
    "stores to other lines are not": ([LINES, changed(LINES)], 1, 16 + 16 + 300, 1),
}


@pytest.mark.parametrize("name", RECKONED)
def test_cycles_are_those_reckoned_by_hand(name: str) -> None:
    steps, warps, cycle, near = RECKONED[name]
    # Each remembers what it did; one that is played again is the same one.
    assert play(deepcopy(steps), warps).ends[0] == pytest.approx(cycle, abs=near)


def test_who_needs_a_load_from_dram_waits_for_latency_and_bandwidth() -> None:
    steps = [changed(FAR), USE]
    play(steps)
    assert (spent(steps, "latency"), spent(steps, "bandwidth")) == (pytest.approx(699), pytest.approx(8))


def test_an_answer_that_came_early_takes_no_bandwidth_back() -> None:
    rates = replace(RATES, loaded=((0.0, 0.0, 300.0), (1.0, 0.0, 300.0)))
    for blocks in range(1, 9):
        steps = [changed(FAR), deepcopy(USE)]
        StreamingMultiprocessor([[*steps, END]], [[0]], 1, 1, rates).play(blocks)
        assert spent(steps, "bandwidth") >= 0


def test_who_waits_in_shared_memory_s_queue_waits_for_no_bandwidth() -> None:
    steps = [step_of(StepKind.SHARED, sets=0, passes=32, latency=23), step_of(StepKind.PLAIN, waits=(0,))]
    play(steps, warps=8)
    assert spent(steps, "bandwidth") == 0 < 7 * 32 < spent(steps, "dependency")


def test_warps_that_only_copy_bring_as_much_as_there_is_room_for() -> None:
    waiting = step_of(StepKind.PHASE)
    working = [waiting, step_of(StepKind.PLAIN, stall=100)]
    copying = [waiting, step_of(StepKind.ARRIVAL), step_of(StepKind.BULK, sectors=4)]
    rates = replace(RATES, bulk_latency=400.0)

    def end(ahead: int, before: float = 1) -> float:
        steps, paths = (
            [working, copying, [END], [replace(PLAIN, stall=before)]],
            [[0] * 10 + [2], [3] + [1] * 10 + [2]],
        )
        tiles = BroughtTiles((False, True), ahead, 1.0)
        return StreamingMultiprocessor(deepcopy(steps), paths, 2, 1, rates, tiles).play(1).ends[0]

    # Alone each copy takes its latency and is then worked on; with room enough only the first one does. The
    # branch to the next one is taken.
    assert end(1) == pytest.approx(10 * (400 + 4 + 105), rel=0.02)
    assert end(8) == pytest.approx(400 + 4 + 10 * 105, rel=0.02)
    # A warp that comes to its first copy late is late with that alone.
    assert end(8, before=501) == pytest.approx(500 + end(8), abs=1)


def test_who_comes_first_to_a_barrier_waits() -> None:
    steps = [step_of(StepKind.PLAIN, stall=9), step_of(StepKind.BARRIER), step_of(StepKind.PLAIN)]
    assert play(steps, warps=2).ends[0] > 9
    assert spent(steps, "barrier") > 0


def test_a_barrier_of_some_warps_lets_the_last_ones_go_when_nobody_else_can_come() -> None:
    assert play([step_of(StepKind.BARRIER, sets=number, outstanding=4) for number in (1, 2)], warps=6).ends


def test_a_barrier_whose_number_a_register_has_is_one_of_so_many_warps() -> None:
    found = [step.outstanding for step in made_of("BAR.SYNC R2, 0x100", "BAR.SYNC 0x1, 0x40", "BAR.SYNC R2")]
    assert found == [8, 2, 0]


def test_a_register_bank_gives_an_operand_a_cycle() -> None:
    # As patched machine code took on an H200: cycles of an instruction that reads so many of either bank.
    for reads, cycles in (
        ([(1, 1)], 1),
        ([(2, 0)], 2),
        ([(3, 0)], 3),
        ([(2, 0), (0, 2)], 1),
        ([(2, 1), (1, 2)], 1.5),
        ([(2, 0), (2, 0), (0, 2), (0, 2)], 1.5),
        ([(2, 1), *[(1, 1)] * 7], 1.125),
    ):
        steps = [step_of(StepKind.PLAIN, pipe=1, cycles=1, even=even, odd=odd) for even, odd in reads]
        assert play(steps * 100).ends[0] / (100 * len(steps)) == pytest.approx(cycles, abs=0.03), reads


def test_an_operand_that_is_kept_is_not_read_again() -> None:
    made = made_of("FFMA R1, R2, R4.reuse, R1", "FFMA R3, R6, R4, R3", "FFMA R5, R6, R4, R5")
    assert [(step.even, step.odd, step.line) for step in made] == [(2, 1, 7), (1, 1, 7), (2, 1, 7)]


def test_dram_answers_later_the_more_it_has_to_do() -> None:
    rates = replace(RATES, loaded=((0.0, 0.0, 60.0), (0.5, 100.0, 80.0), (0.8, 700.0, 110.0)))
    later, varies = zip(*(rates.later(used) for used in (0.0, 0.25, 0.65, 0.9)), strict=True)
    assert (later, varies) == ((0, 50, pytest.approx(400), 700), (60, 70, pytest.approx(95), 110))


def test_a_request_of_many_lines_waits_for_the_last_of_them() -> None:
    def mean(lines: float, led: float = 0.0) -> float:
        load = changed(FAR, sectors=1, lines=lines, led=led)
        rates = replace(RATES, loaded=((0.0, 0.0, 100.0), (1.0, 0.0, 100.0)))
        return play([load, USE] * 1000, rates=rates).ends[0] / 1000

    assert mean(1) == pytest.approx(702, abs=10)
    assert mean(16) - mean(1) == pytest.approx(100 * sum(1 / n for n in range(2, 17)), rel=0.1)
    # Of those that share them another one may have asked.
    assert mean(16) - mean(16, led=1.5) == pytest.approx(150)


def test_the_first_of_those_that_read_the_same_asks_before_the_mean() -> None:
    """As the first of so many last answers to 32 requests comes before the mean, drawn at random."""
    draw = np.random.default_rng(0)
    for readers in (1, 2, 8, 32):
        last = draw.exponential(size=(2000, readers, 32)).max(axis=2)
        (step,) = made_of("LDG.E R2, [R4]", asked=[Traffic(1, 4, readers=readers)])
        assert step.led == pytest.approx(last.mean() - last.min(axis=1).mean(), abs=0.15), readers


def test_a_warp_that_begins_while_another_one_waits_for_its_pipe_takes_nobodys_place() -> None:
    for seed in range(200):
        draw = Random(seed)
        ways = [
            [
                step_of(StepKind.PLAIN, stall=draw.choice((1, 3, 9)), pipe=1, cycles=draw.choice((0, 4, 30)))
                for _ in range(draw.randint(1, 4))
            ]
            for _ in range(2)
        ]
        sm = StreamingMultiprocessor([*ways, [END]], [[0, 2], [1, 2]], draw.choice((2, 3, 5)), 2, RATES)
        assert len(sm.play(6).ends) == 6


def test_a_warp_that_ends_early_does_nothing_more() -> None:
    code = code_of((["@P0 EXIT"], (1,)), (["REDG.E.ADD [R2], R0", "EXIT"], ()))
    some = dict.fromkeys(ways_to(code.blocks, [1, 1 / 16], {1}), 0.01)
    assert list(some) == [(0, 1)]
    assert usual_path(code.blocks, [1, 1 / 16], {}) == (0,)
    assert usual_path(code.blocks, [1, 1 / 16], {}, some) == (0, 1)
    assert usual_path(code.blocks, [1, 15 / 16], {}) == (0, 1)


@pytest.mark.parametrize(
    ("change", "blocks", "taken"),
    [
        # A sector a cycle: four warps' sixteen each, or a quarter of them.
        ({}, 1, 64),
        ({"lines": 16, "writers": 4, "own": 0.25}, 1, 16),
        ({"lines": 17, "writers": 4, "own": 0.25}, 1, 64),
        ({"lines": 16, "writers": 4, "own": 0.25, "stall": 50}, 1, 16),
        # A block's first may come behind those of another one, until that ends.
        ({"lines": 16, "writers": 4, "own": 0.25}, 2, 10 + 3 * 4 + 16),
        ({"lines": 8, "writers": 4, "own": 0.25}, 2, 2 * 16),
    ],
)
def test_stores_of_warps_that_go_on_together_are_combined_in_few_lines(
    change: dict[str, float], blocks: int, taken: float
) -> None:
    store = step_of(StepKind.STORE, passes=1, sectors=16, **change)
    rates = replace(RATES, release_cycles=0.0, barrier_cycles=0.0)
    played = play([step_of(StepKind.BARRIER), store], 4, blocks, blocks, rates)
    assert played.ends[-1] == pytest.approx(1 + taken + rates.l2_latency, abs=2)


def test_atomics_to_one_place_come_one_after_the_other() -> None:
    add = step_of(StepKind.STORE, passes=1, sectors=1, sets=0, latency=30, crowded=0.5)
    rates = replace(RATES, crowd_cycles=100.0)
    assert play([add, USE], 8, rates=rates).ends[0] == pytest.approx(8 * 50 + rates.l2_latency, abs=10)


def test_the_busiest_part_of_l2_is_that_of_all_atomics() -> None:
    found = {(line, "global_atomic"): {"sectors": 100.0} for line in (1, 2, 3)}
    turns = [[([0, 1], [4, 4])], [([1, 64], [4, 2]), ([1], [2])], [([16], [1])]]
    _crowd(dict(zip(found, turns, strict=True)), found)
    of = [(each["seen_busiest_sector"], each["seen_busiest_part"]) for each in found.values()]
    assert of == [(0.5, 1.0), (0.75, 0.75), (0.0, 0.0)]
    sums = "REDG.E.ADD.STRONG.GPU [R2], R0", "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU [R2], R0"
    whole, real = made_of(*sums, asked=[Traffic(1, 32, busiest=(0.75, 0.75))] * 2)
    values = constants_of(H200).values
    for step, name in ((whole, "red"), (real, "red_f32")):
        assert step.crowded == pytest.approx(24 / values[f"l2_{name}_1_apart_0_requests_per_ns"])


ARRAY: Any = SimpleNamespace(address=4096)


def watching(room: int) -> CacheWatch:
    """The watch of a launch that begins, with room for so many sectors."""
    watch = CacheWatch(room)
    watch.begin(lambda thread: (0, (0, 0, 0)))
    return watch


def of_words(place: np.ndarray, *, strong: bool = False) -> Any:
    """A warp's access of the words at these places."""
    one = SimpleNamespace(mask=Mask(np.ones((1, 1, 32), bool), 1, 1), index=place[None, None], place=place)
    one.order, one.who = SimpleNamespace(first=0, block_threads=32), np.arange(32)
    one.site, one.by, one.strong, one.size, one.cache = 0, None, strong, 4, Cache.COHERENT
    return one


def touch(watch: CacheWatch, place: np.ndarray, *, reads: bool) -> None:
    one = of_words(place)
    watch.read(ARRAY, one) if reads else watch.write(ARRAY, one, None)  # type: ignore[arg-type]


def test_sectors_pass_as_often_as_a_word_has_lanes() -> None:
    watch = watching(1000)
    watch.update(ARRAY, of_words(np.repeat([0, 1, 9, 16], [20, 8, 3, 1]), strong=True))
    ((sectors, times),) = watch.turns[0, 0, False]
    assert dict(zip(sectors.tolist(), times.tolist(), strict=True)) == {128: 20, 129: 3, 130: 1}


def test_lines_are_those_of_blocks_that_begin_elsewhere() -> None:
    two = np.array([0, 1])  # two neighbours are in one line at three of four places
    assert [_lines(two, moves) for moves in (None, (128,), (64, 0))] == [[1] * 4] * 3
    assert _lines(two, (32,)) == [1, 1, 1, 2]


def test_parts_of_sectors_keep_the_data_path_until_they_are_sent() -> None:
    store = step_of(StepKind.STORE, passes=32, sectors=32, lines=32)
    after = [step_of(StepKind.SHARED, passes=1, sets=0), USE]
    whole, parts = (play([replace(store, sent=sent), *after]).spent[0, 0][0][1] for sent in (0.0, 1.0))
    assert parts == pytest.approx(whole + 32)


def test_a_wait_for_copies_waits_for_those_that_others_begin() -> None:
    copying = [step_of(StepKind.PLAIN, stall=500), step_of(StepKind.BULK, sectors=4)]
    steps, path = [[*copying, END], [step_of(StepKind.PHASE), step_of(StepKind.PLAIN), END]], [[0], [1]]
    sm = StreamingMultiprocessor(
        steps, path, 2, 1, replace(RATES, bulk_latency=400.0), BroughtTiles((None, False), copies=1.0)
    )
    # The copy begins at 500, and takes its four sectors' time and its latency.
    assert sm.play(1).ends == [pytest.approx(500 + 4 + 400 + 1)]


def test_products_of_warp_groups_are_waited_for_by_number() -> None:
    multiply = "HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, gsb0"
    product, until = made_of(multiply, "WARPGROUP.DEPBAR.LE gsb0, 0x0")
    # Of the clock that a card has whose tensor cores do not all multiply.
    assert product.cycles == pytest.approx(64 / constants_of(H200).reached["tensor_f16"], rel=0.01)
    assert play([product, until]).ends[0] > play([product]).ends[0] + 64


def test_a_barrier_of_a_cluster_takes_what_was_measured_but_for_its_fence() -> None:
    values = constants_of(H200).values
    taken = values["cluster_barrier_cycles"] - values["membar_latency_cycles"]
    assert play(made_of("UCGABAR_ARV", "UCGABAR_WAIT")).ends == [pytest.approx(1 + taken)]


def test_bulk_copies_of_what_others_copy_take_less_of_l2_and_of_parts_of_lines_more_of_the_sm() -> None:
    values, asked = constants_of(H200).values, [Traffic(0, 64, readers=readers) for readers in (1, 2, 8)]
    one, two, many, apart = (
        made_of("UTMALDG.2D [UR4], [UR6]", asked=[each]) for each in (*asked, Traffic(0, 64, spread=0.75))
    )
    assert one[0].effort == apart[0].effort == 1
    waited = [[[*copy, step_of(StepKind.PHASE), END]] for copy in (one, apart)]
    alone = [[0]], 1, 1, RATES, BroughtTiles((False,), copies=1.0)
    whole, parts = (StreamingMultiprocessor(each, *alone).play(1).ends[0] for each in waited)
    assert parts - whole == pytest.approx(64 * (1.5 - 1))
    assert two[0].effort == many[0].effort
    assert two[0].effort == values["bulk_loads_by_1_gbps"] / values["bulk_loads_by_8_gbps"]


def test_tiles_that_warps_bring_are_waited_for_and_room_for_them() -> None:
    waiting, arriving = step_of(StepKind.PHASE), step_of(StepKind.ARRIVAL)
    steps = [
        [waiting, replace(PLAIN, stall=100), arriving],
        [waiting, replace(PLAIN, stall=9), arriving],
        [END],
    ]

    def last(*, ahead: int, brings: int = 100, takes: int = 9) -> float:
        steps[0][1], steps[1][1] = (replace(PLAIN, stall=each) for each in (brings, takes))
        paths = [[0] * 8 + [2], [1] * 8 + [2]]
        one = StreamingMultiprocessor(deepcopy(steps), paths, 4, 1, RATES, BroughtTiles((True, False), ahead))
        return one.play(1).ends[0]

    # Eight tiles, one after the other; where there is room for two, one is brought while another is used.
    assert last(ahead=2) == pytest.approx(8 * 100, abs=100)
    assert last(ahead=1) == pytest.approx(8 * (100 + 9), abs=100)
    assert last(ahead=2, takes=150) == pytest.approx(100 + 8 * 150, abs=100)
    assert last(ahead=2, brings=9, takes=9) < 8 * 30


def test_lanes_take_turns_at_constants_of_other_words() -> None:
    def cycles(words: float, opcode: str = "LDC") -> float:
        steps = made_of(*[f"{opcode} R2, c[0x3][R4]"] * 8, asked=[Traffic(words)] * 8)
        return play(deepcopy(steps), 16).ends[-1]

    # Of an H200's SM each word takes two cycles, whichever warps want it.
    assert cycles(32) == pytest.approx(16 * 8 * 32 * 2, rel=0.15)
    assert cycles(0) == cycles(1) < 16 * 8 * 2 * 1.5
    assert cycles(2, "LDC.64") == cycles(1)


def test_a_cp_async_group_is_waited_for_by_number() -> None:
    copy = step_of(StepKind.COPY, passes=1, sectors=4, distant=1.0, late=1.0)
    group = [copy, step_of(StepKind.GROUP, sets=0)]
    one_missing = play([*group, *group, step_of(StepKind.UNTIL, sets=0, outstanding=1)]).ends[0]
    none_missing = play([*group, *group, step_of(StepKind.UNTIL, sets=0)]).ends[0]
    assert 700 < one_missing < none_missing


def test_blocks_follow_when_there_is_room() -> None:
    steps = [step_of(StepKind.PLAIN, stall=50)]
    assert play(steps, blocks=4, resident=2).ends == [50, 50, 100, 100]


def code_of(*blocks: tuple[Sequence[str], tuple[int, ...]]) -> MachineCode:
    made, address = [], 0
    for names, successors in blocks:
        instructions = []
        for name in names:
            opcode, _, operands = name.removeprefix("@P0 ").partition(" ")
            guard = "P0" if name.startswith("@P0") else ""
            instructions.append(SassInstruction(address, guard, opcode, operands, 1))
            address += 16
        made.append(Block(instructions, successors, leaves="EXIT" in names))
    return MachineCode(tuple(made), complete=True)


def made_of(*names: str, asked: Sequence[Traffic] = ()) -> list[Step]:
    """What an H200's SM plays for instructions, of which the first ask so much of memory."""
    (block,) = code_of((names, ())).blocks
    traffic = {16 * number: each for number, each in enumerate(asked)}
    return steps_of(block.instructions, [WORD] * len(names), traffic, constants_of(H200), {1: 7})


def launch_of(
    code: MachineCode, times: Sequence[float], blocks: int, warps: int = 8, **more: float
) -> PlayedLaunch:
    count = sum(len(block.instructions) for block in code.blocks)
    words = [WORD] * count
    distant = more.get("distant", 1.0)
    asked = Traffic(1.0, more.get("sectors", 4.0), distant, late=distant)
    loads = [one for block in code.blocks for one in block.instructions if one.name == "LDG"]
    for one in loads:
        words[one.address // 16] = replace(words[0], sets=0)
        words[one.address // 16 + 1] = replace(words[0], waits=1)
    whole = [(each * blocks * warps,) * 2 for each in times]
    traffic = {one.address: asked for one in loads}
    return PlayedLaunch(code, words, whole, traffic, blocks, warps, 4, {1: 7})


LOOP = code_of(
    (["MOV R0, R1"], (1,)), (["LDG.E R2, [R4]", "FADD R0, R0, R2", "BRA 1"], (1, 2)), (["EXIT"], ())
)


def test_a_loop_is_played_a_few_times_and_then_multiplied() -> None:
    path = usual_path(LOOP.blocks, [1, 100_000, 1], loops_of(LOOP.blocks))
    assert (path[0], path[-1], {*path[1:-1]}) == (0, 2, {1})
    assert len(path) < 1000
    short, long = (modelled([launch_of(LOOP, [1, n, 1], 132)], H200).us for n in (10_000, 20_000))
    assert long - 1.2 == pytest.approx(2 * (short - 1.2), rel=0.02)


def test_the_end_is_come_to_whether_or_not_it_was_counted() -> None:
    counted = launch_of(LOOP, [1, 500, 1], 132)
    end = counted.times[2][1]
    only_bounded = replace(counted, times=[*counted.times[:2], (0.0, end)])
    assert modelled([only_bounded], H200).us == modelled([counted], H200).us


def test_the_rarer_way_is_gone_by_its_share() -> None:
    code = code_of((["MOV"], (1,)), (["BRA 3"], (2, 3)), (["MOV"], (3,)), (["BRA 1"], (1, 4)), (["EXIT"], ()))
    path = usual_path(code.blocks, [1, 40, 10, 40, 1], loops_of(code.blocks))
    assert path.count(1) == 40
    assert path.count(2) == pytest.approx(10, abs=1)


def test_each_warp_goes_where_it_is_known_to_come() -> None:
    load, meet = ["LDG.E R2, [R4]", "FADD R0, R0, R2"] * 4, "BAR.SYNC 0x0"
    code = code_of(
        *((["MOV R0, R1"], (1,)), (["BRA 3"], (2, 3))),
        *(([*load, meet, meet], (4,)), ([meet, *load, meet], (4,))),
        *((["BRA 1"], (1, 5)), (["EXIT"], ())),
    )
    launch = launch_of(code, [1, 16, 8, 8, 16, 1], 132, distant=0.0)
    halves = [frozenset({3})] * 4 + [frozenset({2})] * 4
    known = modelled([replace(launch, left_out=halves)], H200).us
    # Half of the warps load, then the others, 16 times: four loads of 296 cycles each, and the meetings.
    assert known - 1.8 == pytest.approx(16 * 2 * (4 * 300 + 30) / 1980, rel=0.1)
    # As if all went the one way, and the next time the other.
    assert modelled([launch], H200).us < 0.6 * known


def test_a_warp_goes_into_no_loop_that_it_does_not_leave() -> None:
    code = code_of((["BRA 2"], (1, 2)), (["BRA 1"], (1, 3)), (["EXIT"], ()), (["EXIT"], ()))
    assert _gone_through(code.blocks, frozenset({3})) == {0, 2}
    assert _gone_through(code.blocks, frozenset({2})) == {0, 1, 3}


def test_warps_that_bring_tiles_may_take_longer_than_others() -> None:
    wait, arrive = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0", "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R0"
    code = code_of(
        (["BRA 2"], (1, 2)),
        ([wait, *["LDG.E R2, [R4]", "FADD R0, R0, R2"] * 4, arrive, "BRA 1"], (1, 3)),
        ([wait, *["FADD R0, R0, R2"] * 40, arrive, "BRA 2"], (2, 3)),
        (["EXIT"], ()),
    )
    launch = launch_of(code, [1, 20, 20, 1], 132, distant=0.0)
    halves = [frozenset({2})] * 4 + [frozenset({1})] * 4
    brought = modelled([replace(launch, left_out=halves, shared_bytes=65536)], H200)
    # Each waits until the tile before is there, and there is room: 40 tiles, of four loads in turn.
    assert brought.us - 1.8 == pytest.approx(40 * 4 * 300 / 1980, rel=0.1)
    plain = modelled([launch_of(LOOP, [1, 500, 1], 132)], H200)
    assert brought.high_us / brought.us == pytest.approx(1.3 * plain.high_us / plain.us)


@pytest.mark.parametrize(("loads", "waits"), [(0, 1), (4, 2)])
def test_warps_that_wait_for_each_other_without_tiles_are_told_apart(loads: int, waits: int) -> None:
    wait, arrive = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0", "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R0"
    code = code_of(
        (["BRA 2"], (1, 2)),
        ([wait, *["LDG.E R2, [R4]", "FADD R0, R0, R2"] * loads, arrive, "BRA 1"], (1, 3)),
        ([*[wait] * waits, *["FADD R0, R0, R2"] * 40, arrive, "BRA 2"], (2, 3)),
        (["EXIT"], ()),
    )
    halves = [frozenset({2})] * 4 + [frozenset({1})] * 4
    launch = replace(launch_of(code, [1, 20, 20, 1], 132, distant=0.0), left_out=halves, shared_bytes=1)
    if loads:  # a tile for two that are waited for, and room for one
        with pytest.raises(NotModelled, match="work for others"):
            modelled([launch], H200)
    else:
        assert modelled([launch], H200).us > 1.8


def test_some_warps_of_a_block_do_more() -> None:
    code = code_of((["BRA 2"], (1, 2)), (["LDG.E R2, [R4]", "FADD R0, R0, R2"], (2,)), (["EXIT"], ()))
    half, whole = (modelled([launch_of(code, [1, n, 1], 1056, sectors=64.0)], H200).us for n in (0.5, 1))
    # Their sectors are what takes long.
    assert half - 2.4 < 0.7 * (whole - 2.4)


def test_of_blocks_that_are_all_there_the_one_that_does_most_ends_last() -> None:
    code = code_of(
        (["MOV R0, R1"], (1,)),
        (["LDG.E R2, [R4]", "FADD R0, R0, R2"] * 9 + ["BAR.SYNC 0x0"], (1, 2)),
        (["EXIT"], ()),
    )
    even, uneven, twice = (
        modelled([launch_of(code, [1, n, 1], 528, 1, distant=0.0)], H200).us for n in (1, 1.25, 2)
    )
    assert (uneven - even) / (twice - even) == pytest.approx(1.0, abs=0.25)


def test_the_block_that_does_most_makes_a_pass_more_of_a_loop_around_others() -> None:
    load = ["LDG.E R2, [R4]", "FADD R0, R0, R2"]
    code = code_of(
        (["MOV R0, R1"], (1,)),
        (["BAR.SYNC 0x0"], (2,)),
        ([*load, "BRA 2"], (2, 3)),
        (["BRA 1"], (1, 4)),
        (["EXIT"], ()),
    )

    def us(passes: float, more: float = 1.0) -> float:
        launch = launch_of(code, [1, passes, 9 * passes, passes, 1], 528, distant=0.0)
        return modelled([replace(launch, busiest=(more / 132, more / 132))], H200).us

    # As where blocks share out the passes, and as where one makes three of them and others two.
    assert us(2.25) == pytest.approx(us(2), rel=0.05)
    assert us(2.25, 3 / 2.25) == pytest.approx(us(3), rel=0.05)


def test_an_sm_whose_blocks_do_more_ends_later() -> None:
    def us(blocks: int, heavy: Callable[[int], bool]) -> float:
        work = [9.0 if heavy(one) else 1.0 for one in range(blocks)]
        launch = launch_of(LOOP, [1, 500, 1], blocks, distant=0.0)
        return modelled([replace(launch, work=work)], H200).us

    known = modelled([launch_of(LOOP, [1, 500, 1], 1056, distant=0.0)], H200).us
    assert us(1056, lambda one: False) == known
    # Of the blocks that begin first these four share an SM, or have one each; four of the last begin late.
    together, apart = us(1056, lambda one: one in (0, 132, 264, 396)), us(1056, lambda one: one < 4)
    late = us(1056, lambda one: one >= 1052)
    assert known < apart < min(together, late)
    # They all begin at once where there are no more.
    assert us(528, lambda one: one < 4) == us(528, lambda one: False)


def test_the_busiest_sm_has_blocks_whose_warps_all_go_on() -> None:
    rest = (["LDG.E R2, [R4]", "FADD R0, R0, R2", "BRA 1"], (1, 2)), (["EXIT"], ())
    code = code_of((["MOV R0, R1", "@P0 EXIT"], (1,)), *rest)

    def us(share: float, **of: object) -> float:
        """Of two blocks, so many of whose warps go on, and a hundred times."""
        return modelled([replace(launch_of(code, [1, 100 * share, share], 2), **of)], H200).us

    # All of the first block's warps do, and half of the second one's; or three of four in each of them.
    first, whole = us(0.75, busiest=(2 / 3, 2 / 3)), us(1.0)
    assert us(0.75, busiest=(0.5, 0.5)) == us(0.75) < 0.8 * first
    assert first == pytest.approx(whole, rel=0.02)
    # These have more lanes too.
    assert us(0.75, busiest=(2 / 3, 0.8)) > first
    # A block that waits for another does much in vain.
    assert us(0.75, busiest=(2 / 3, 2 / 3), handed_on=2) == us(0.75, handed_on=2)


def test_the_busiest_block_goes_round_its_loops_more_often() -> None:
    launch = launch_of(LOOP, [1, 500, 1], 132, distant=0.0)
    more, twice = (replace(launch, busiest=(share / 132,) * 2) for share in (1, 2))
    assert modelled([more], H200).us == modelled([launch], H200).us
    took = modelled([twice], H200).us - 1.8
    assert took == pytest.approx(2 * (modelled([more], H200).us - 1.8), rel=0.05)
    # Where most is done once, a loop does not tell why.
    once = code_of(
        *[(["MOV R0, R1"], (number + 1,)) for number in range(9)], *[(["BRA 9"], (9, 10)), (["EXIT"], ())]
    )
    alike = launch_of(once, [1] * 9 + [2, 1], 132)
    assert modelled([replace(alike, busiest=(2 / 132,) * 2)], H200).us == modelled([alike], H200).us


def test_the_warp_that_goes_round_loops_most_often_does_so_alone_in_the_end() -> None:
    launch = launch_of(LOOP, [1, 500, 1], 132, distant=0.0)
    alike, thrice = (modelled([replace(launch, longest=each)], H200).us - 1.8 for each in (1.0, 3.0))
    assert thrice == pytest.approx(3 * alike, rel=0.1)
    # Who waits for others in a loop goes round as often as they.
    waiting = code_of((["MOV R0, R1"], (1,)), (["BAR.SYNC 0x0", "BRA 1"], (1, 2)), (["EXIT"], ()))
    meet = launch_of(waiting, [1, 500, 1], 132)
    assert modelled([replace(meet, longest=3.0)], H200).us == modelled([meet], H200).us
    # Of warps that are known to go different ways each goes its own.
    known = [replace(launch, longest=each, left_out=[frozenset({9})] * 8) for each in (1.0, 3.0)]
    assert modelled([known[0]], H200).us == modelled([known[1]], H200).us


def test_a_way_that_all_go_leaves_nobody_for_the_other() -> None:
    # Who skips the loop comes to where those behind it come, who are all.
    code = code_of(
        (["BRA 3"], (3, 1)), (["BRA 2"], (2,)), (["BRA 2"], (2, 3)), (["BRA 3"], (3, 4)), (["EXIT"], ())
    )
    assert usual_path(code.blocks, [1, 1, 9, 0.6, 1], loops_of(code.blocks))[:3] == (0, 1, 2)


def test_lanes_that_part_go_one_way_after_the_other() -> None:
    code = code_of(
        *((["BSSY B0, `(.L_x_4)", "@P0 BRA 2"], (1, 2)), (["MOV R0, R1"], (3,)), (["MOV R0, R2"], (3,))),
        *((["BSYNC B0"], (4,)), (["EXIT"], ())),
    )
    code.blocks[4].together = 0

    def path(first: float, second: float) -> tuple[int, ...]:
        return usual_path(code.blocks, [1, first, second, first + second, 1], {})

    assert path(1, 1) == (0, 1, 3, 2, 3, 4)
    assert path(0.5, 0.5) == (0, 1, 3, 4)
    assert path(0.2, 0.8) == path(0.3, 0.9) == (0, 2, 3, 4)
    assert path(0.6, 0.9) == (0, 1, 3, 2, 3, 4)


def test_a_branch_that_is_taken_takes_longer() -> None:
    steps = [[step_of(StepKind.PLAIN)], [step_of(StepKind.PLAIN)], [END]]
    ahead, back = (
        StreamingMultiprocessor(steps, [path], 1, 1, RATES).play(1).ends[0] for path in ([0, 1, 2], [0, 0, 2])
    )
    # Once back, and once over a block.
    assert back == ahead + 2 * 5


def test_what_one_block_does_once_all_others_are_done_comes_after_them() -> None:
    def us(meets: str, last: float) -> float:
        rest = ["LDG.E R2, [R4]", "FADD R0, R0, R2"] * 9
        code = code_of((["MOV R0, R1", "@P0 EXIT"], (1,)), ([meets, *rest], (2,)), (["EXIT"], ()))
        return modelled([launch_of(code, [1, last, last], 528, distant=0.0)], H200).us

    # Nine loads from L2, one after the other; a warp of each block does it while others do their work.
    assert us("BAR.SYNC 0x0", 1 / 528) - us("MOV", 1 / 528) == pytest.approx(9 * 296 / 1980, rel=0.1)
    assert us("BAR.SYNC 0x0", 0.0) == pytest.approx(us("MOV", 1 / 528), rel=0.02)


def test_a_called_function_is_gone_through_where_it_is_called() -> None:
    code = code_of((["CALL"], (1,)), (["CALL"], (2,)), (["EXIT"], ()), (["BRA 4"], (4,)), (["RET"], ()))
    calling = [replace(block, callee=3) for block in code.blocks[:2]]
    blocks = [*calling, *code.blocks[2:]]
    assert usual_path(blocks, [1, 1, 1, 2, 2], {}) == (0, 3, 4, 1, 3, 4, 2)
    assert usual_path(blocks, [1, 1, 1, 0, 0], {}) == (0, 1, 2)


def test_what_few_warps_do_is_shared_out() -> None:
    code = code_of(
        (["MOV"], (1,)), (["BRA 3"], (2, 3)), (["UTMALDG.2D"], (3,)), (["BRA 1"], (1, 4)), (["EXIT"], ())
    )
    times = [1, 40, 5, 40, 1]
    ways = list(ways_to(code.blocks, times, {2}))
    assert (1, 2) in ways
    paths = [
        usual_path(code.blocks, times, loops_of(code.blocks), dict.fromkeys(ways, (role + 0.5) / 8))
        for role in range(8)
    ]
    assert sum(path.count(2) for path in paths) == 40
    assert len({path.index(2) for path in paths}) == 8


@pytest.mark.parametrize("change", [{"sectors": 8.0}, {"distant": 1.0}])
def test_more_traffic_never_takes_less(change: dict[str, float]) -> None:
    before = {"sectors": 4.0, "distant": 0.5}
    plain, more = (
        modelled([launch_of(LOOP, [1, 500, 1], 1320, **each)], H200).us for each in (before, before | change)
    )
    assert more > plain


def test_a_block_more_than_fits_takes_a_wave_more() -> None:
    whole, tail = (modelled([launch_of(LOOP, [1, 5000, 1], n)], H200) for n in (132 * 4, 132 * 4 + 1))
    assert whole.tail == 0
    assert tail.tail > 0.3
    assert tail.us > 1.3 * whole.us


def test_shares_of_a_time_are_whole_and_stand_at_lines() -> None:
    found = modelled([launch_of(LOOP, [1, 500, 1], 132)], H200)
    assert sum(found.lines.values()) + found.tail + found.launch == pytest.approx(1)
    assert {line for line, _ in found.lines} == {7}
    assert found.lines[7, "latency"] > 0.8


def test_stores_are_waited_for_once_their_warps_have_ended() -> None:
    code = code_of(
        (["MOV R0, R1"], (1,)), (["FADD R0, R0, R2", "BRA 1"], (1, 2)), (["STG.E [R4], R0", "EXIT"], ())
    )
    (store,) = [one for block in code.blocks for one in block.instructions if one.name == "STG"]
    none = launch_of(code, [1, 5000, 1], 132)
    some = replace(none, traffic={store.address: Traffic(1, 4000)})
    rates = surroundings_of(H200, constants_of(H200), some)
    more = (modelled([some], H200).us - modelled([none], H200).us) * H200.sm_clock_mhz
    assert more == pytest.approx(8 * 4000 * rates.l2_write_cycles + rates.l2_latency, rel=0.01)


def test_blocks_that_hand_on_wait_for_what_few_of_them_store() -> None:
    asking = ["LDG.E.STRONG.GPU R2, desc[UR4][R4.64]", "ISETP.NE P0, PT, R2, RZ, PT", "BRA 1"]
    storing = (["STG.E [R4], R0", "BRA 4"], (4,))
    code = code_of(
        (["MOV R0, R1"] * 40, (1,)),
        (asking, (1, 2)),
        (["@P0 BRA 4"], (3, 4)),
        storing,
        (["BAR.SYNC.DEFER_BLOCKING 0x0", "MEMBAR.SC.GPU", "EXIT"], ()),
    )
    (store,) = [one for block in code.blocks for one in block.instructions if one.name == "STG"]

    def each(sectors: float, share: float) -> float:
        launch = launch_of(code, [1, 1, 1, share, 1], 132, sectors=0.0)
        times = [*launch.times]
        times[1] = 1056.0, math.inf
        launch = replace(launch, times=times, traffic={store.address: Traffic(1, sectors)})
        one, two = (modelled([replace(launch, handed_on=n)], H200).us for n in (11, 21))
        return (two - one) / 10 * H200.sm_clock_mhz

    # Twelve SMs store at a time, each as fast as one alone can.
    alone = constants_of(H200).values["store_128_apart_16_interval_cycles"] / 16
    for share in (1.0, 0.75):
        more = each(2000, share) - each(1000, share)
        assert more == pytest.approx(8 * 1000 * share * alone, rel=0.02)


def test_blocks_that_hand_on_take_their_turns() -> None:
    asking = ["LDG.E.STRONG.GPU R2, desc[UR4][R4.64]", "ISETP.NE P0, PT, R2, RZ, PT", "BRA 1"]
    code = code_of((["MOV R0, R1"] * 40, (1,)), (asking, (1, 2)), (["MOV R0, R1"] * 30 + ["EXIT"], ()))
    launch = launch_of(code, [1, 1, 1], 132, sectors=0.0)
    waiting = replace(launch, times=[launch.times[0], (1056.0, float("inf")), launch.times[2]])
    alone, two, twenty = (modelled([replace(waiting, handed_on=n)], H200).us for n in (1, 2, 20))
    assert modelled([launch], H200).us == alone
    # Three ways to L2 and back, and what stands behind the wait.
    each = two - alone
    assert each * 1980 == pytest.approx(3 * 292 + 8 / 4 * 31, rel=0.1)
    assert twenty - alone == pytest.approx(19 * each)


def test_copies_for_others_begin_when_their_warp_comes_to_them() -> None:
    def us(before: int) -> float:
        copying = (["MOV R0, R1"] * before, (2,)), (["UTMALDG.2D [UR4], [UR6]", "EXIT"], ())
        working = ["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0"] + ["MOV R0, R1"] * 99
        code = code_of((["BRA 3"], (1, 3)), *copying, ([*working, "EXIT"], ()))
        return modelled([launch_of(code, [1, 0.125, 0.125, 0.875], 132)], H200).us

    assert (us(410) - us(10)) * 1980 == pytest.approx(400 * 2, rel=0.1)  # of half the lanes


def test_copies_for_others_come_from_where_most_of_them_do() -> None:
    waiting = ["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0", "MOV R0, R1", "BRA 3"]
    copying = (["UTMALDG.2D [UR4], [UR6]"], (2,)), (["UTMALDG.2D [UR4], [UR6]", "BRA 2"], (2, 4))
    code = code_of((["BRA 3"], (1, 3)), *copying, (waiting, (3, 4)), (["EXIT"], ()))
    instructions = [one for block in code.blocks for one in block.instructions]
    first, others = (one.address for one in instructions if one.name == "UTMALDG")
    launch = launch_of(code, [1, 0.125, 0.125 * 39, 0.875 * 40, 1], 132)

    def us(*distant: float) -> float:
        asked = (Traffic(1.0, 512.0, each, late=each) for each in distant)
        return modelled([replace(launch, traffic=dict(zip((first, others), asked, strict=True)))], H200).us

    assert us(1, 0) < 1.1 * us(0, 0) < 0.7 * us(1, 1)


def test_what_is_not_known_is_not_modelled() -> None:
    launch = launch_of(LOOP, [1, 500, 1], 132)
    unsure = replace(launch, times=[(low, 2 * low) for low, _ in launch.times])
    with pytest.raises(NotModelled, match="for certain"):
        modelled([unsure], H200)
    apart = code_of((["BRA 2"], (1, 2)), (["UTMALDG.2D", "EXIT"], ()), (["MOV R0, R1"] * 9 + ["EXIT"], ()))
    with pytest.raises(NotModelled, match="work for others"):
        modelled([launch_of(apart, [1, 0.125, 0.875], 132)], H200)
    sums = ["FADD R0, R0, R2"] * 9
    endless = code_of((["MOV R0, R1"], (1,)), ([*sums, "@P0 EXIT"], (2,)), (["BRA 1"], (1,)))
    with pytest.raises(NotModelled, match="as long as"):
        modelled([launch_of(endless, [1, 2, 2], 132)], H200)
    assert modelled([launch_of(endless, [1, 2, 1], 132)], H200).us < 5
    with pytest.raises(NotModelled, match="textures"):
        modelled([launch_of(code_of((["TEX.LL R0, R2", "EXIT"], ())), [1], 132)], H200)
    again = ["ATOMS.CAS R2, [R4], R0, R1", "ISETP.NE.AND P0, PT, R2, R0, PT", "@P0 BRA 1"]
    trying = code_of((["MOV R0, R1"], (1,)), (again, (1, 2)), (["EXIT"], ()))
    with pytest.raises(NotModelled, match="again"):
        modelled([launch_of(trying, [1, 20, 1], 132)], H200)
    assert modelled([launch_of(trying, [1, 1.5, 1], 132)], H200).us < 5
    deep = code_of((["CALL"], (1,)), (["EXIT"], ()), (["CALL"], (3,)), (["RET"], ()))
    first, after, inner, last = deep.blocks
    deep = replace(deep, blocks=(replace(first, callee=2), after, replace(inner, callee=2), last))
    with pytest.raises(NotModelled, match="calls itself"):
        modelled([launch_of(deep, [1, 1, 3, 4], 132)], H200)
    with pytest.raises(NotModelled, match="clock"):
        modelled([launch], replace(H200, sm_clock_mhz=0.0))


def test_a_card_that_nobody_measured_has_a_wider_interval() -> None:
    spans = []
    for name in ("h200", "h100-pcie", "rtx4090"):
        found = modelled([launch_of(LOOP, [1, 500, 1], 132)], load_card(name))
        assert found.low_us < found.us < found.high_us
        spans.append(found.high_us / found.low_us)
    assert spans[0] < spans[1] < spans[2]


def test_an_interval_is_wider_where_atomics_to_one_place_take_the_time() -> None:
    code = code_of((["RED.E.ADD.STRONG.GPU [R2], R0", "EXIT"], ()))
    found = []
    for busiest in (0.0, 1e-4, 1.0):
        asked = {0: Traffic(1.0, 4.0, busiest=(busiest, busiest))}
        one = modelled([PlayedLaunch(code, [WORD] * 2, [(8448, 8448)], asked, 1056, 8, 4, {})], H200)
        found.append((one.low_us / one.us, one.high_us / one.us))
    assert found[0][0] > found[1][0] > found[2][0] > found[0][0] / 2
    assert found[0][1] < found[1][1] < found[2][1] < found[0][1] * 2


def test_a_cluster_lies_in_one_group_of_sms() -> None:
    launch = launch_of(LOOP, [1, 1, 1], 132)
    most = {
        (blocks, cluster): replace(launch, blocks=blocks, cluster=cluster).most_blocks(H200)
        for blocks, cluster in ((132, 1), (132, 2), (124, 4), (128, 4), (120, 8), (128, 8))
    }
    assert most == {(132, 1): 1, (132, 2): 1, (124, 4): 1, (128, 4): 2, (120, 8): 1, (128, 8): 2}
    assert replace(launch, blocks=112, cluster=4).most_blocks(replace(H200, sm_count=114)) == 1
    ptx = ".entry k(.param .u64 a)\n.maxntid 256\n.reqnctapercluster 4, 1, 1\n{"
    assert block_limits_of(ptx, "k").cluster == (4, 1, 1)


def test_traffic_is_what_an_execution_asks_for() -> None:
    seen = {
        "seen_sectors": 40,
        "seen_placed_lines": 160,
        "seen_warps": 10,
        "seen_waiting": 6,
        "seen_missed": 20,
        "seen_fresh": 20,
        "seen_runs": 10,
    }
    requests = {(1, "global_load"): {"requests": 80.0, "sectors": 320.0, "seen_brought": 5, **seen}}
    sites = TrafficSites(LOOP, [8, 80, 8], {1: 7}, requests, {}, grid=(8, 1, 1), at_once=8)
    (found,) = traffic_of([sites], read_bytes=160 * 32 / 4, written_bytes=0, l2_bytes=1 << 20)
    # A line for each sector, half of the sectors in L1, for some of which more than half of the warps wait, a
    # quarter of the others for the first time, as four blocks read each; and all blocks at once, who wait for
    # these together.
    shares = {"distant": 0.25, "late": 1.0, "spread": 1.0, "missing": 0.6, "brought": 0.25}
    assert found[16] == Traffic(4.0, sectors=2.0, readers=4.0, run=64.0, **shares)
    shared = {**requests[1, "global_load"], "seen_missed": 5, "seen_fresh": 5, "seen_shared": 15}
    (found,) = traffic_of([replace(sites, requests={(1, "global_load"): shared})], 80 * 32, 0, 1 << 20)
    assert (found[16].sectors, found[16].missing, found[16].sharers) == (0.5, 0.6, 4)
    shared = {**shared, "seen_passes": 60}
    (found,) = traffic_of([replace(sites, requests={(1, "global_load"): shared})], 80 * 32, 0, 1 << 20)
    assert found[16].passes == 4 * 60 / 40


def watched(places: Sequence[np.ndarray], *, reads: bool, room: int = 1000, copied: int = 0) -> Counter[str]:
    """What is seen of a warp's accesses of words, one after the other, with room for so many sectors."""
    watch = watching(room)
    watch.seen[0, 0, reads]["sectors"] = copied
    for place in places:
        touch(watch, place, reads=reads)
    return watch.seen[0, 0, reads]


def test_requests_tell_how_often_a_loop_is_gone_through_that_may_be_left_out() -> None:
    def times(load: str, requests: float) -> list[float]:
        loads = [f"{load} R{register}, [R4]" for register in (2, 3)]
        code = code_of(
            (loads[:1], (1, 3)), (["MOV R0, R1"], (2,)), ([*loads, "BRA 2"], (2, 3)), (["EXIT"], ())
        )
        seen = {(1, "global_load"): {"requests": requests}}
        sites = TrafficSites(code, [4, 0, 0, 4], {}, seen, {}, (4, 1, 1), 132)
        return sites.told_by_requests([4, 4, math.inf, 4])

    # Four loads before the loop, and two in each of its passes, which each warp comes to.
    assert times("LDG.E", 24) == [4, 4, 10, 4]
    assert times("LDG.E", 4) == [4, 0, 0, 4]
    # How often one asks who waits is not known.
    assert times("LDG.E.STRONG.GPU", 24) == [4, 0, 0, 4]


def test_lanes_that_swap_one_word_go_through_their_loop_one_after_the_other() -> None:
    again = ["LDS R2, [R4]", "ATOMS.CAST.SPIN R3, [R4], R2, R3", "ISETP.EQ.U32.AND P0, PT, R3, 0x1, PT"]
    code = code_of((["MOV R0, R1"], (1,)), ([*again, "@!P0 BRA 1"], (1, 2)), (["EXIT"], ()))
    lanes = np.array([7, 7, 7, 9, *range(20, 48)])[None, None]
    pattern = SharedPattern(lanes, 0, Mask(np.ones((1, 1, 32), bool), 1, 1), 4, 4096, load=False)
    assert pattern.turns == 3
    seen = {(1, "shared_atomic"): {"requests": 4.0, "turns": 4.0 * pattern.turns[0]}}
    sites = TrafficSites(code, [4, 4, 4], {}, seen, {}, (4, 1, 1), 132)
    assert sites.told_by_requests([4, 4, 4]) == [4, 12, 4]


def test_what_comes_along_and_what_goes_together_is_seen() -> None:
    lanes = np.arange(32)
    # 32 rows of 128 bytes, a sector of each at a time: DRAM answers with two.
    seen = watched([32 * lanes + 8 * step for step in range(4)], reads=True)
    assert (seen["fresh"], seen["brought"]) == (128, 64)
    # What the copy engine moved in the same line is no access of threads.
    assert watched([lanes], reads=True, copied=20_000)["looks"] == 1
    # Each sector that comes back to a full cache drives out the one that is due next.
    again = [32 * lanes, 32 * lanes]
    assert [watched(again, reads=True, room=room)["missed"] for room in (32, 31)] == [32, 64]
    # Where rows begin elsewhere in their sectors, a warp waits at each step.
    rows = [33 * lanes + step for step in range(8)]
    assert [watched(rows[:many], reads=True)["waiting"] for many in (1, 8)] == [1, 8]
    assert watched([32 * lanes + step for step in range(8)], reads=True)["waiting"] == 1
    # Four neighbours, stored one by one, lie in the same sectors; halves of a line do not.
    seen = watched([4 * lanes + step for step in range(4)], reads=False)
    assert (seen["own_lines"], seen["again"], seen["own_sectors"]) == (16, 12, 16)
    seen = watched([32 * lanes + 16 * step for step in range(2)], reads=False)
    assert (seen["own_lines"], seen["again"], seen["own_sectors"]) == (64, 32, 64)


def test_what_four_registers_are_loaded_with_keeps_their_banks() -> None:
    steps = made_of("LDS R4, [R2]", "LDS.64 R4, [R2]", "LDS.128 R4, [R2]", "FFMA R4, R5, R6, R7")
    assert [(one.even, one.odd) for one in steps] == [(0, 0), (0, 0), (1, 1), (1, 2)]


def test_the_last_wave_finds_in_l2_what_the_first_one_reads() -> None:
    # 2.25 waves, of which an SM has three: all read the same, all something else, or half of them does.
    for new, share in ((1 / 2.25, 1 / 3), (1.0, 1.0), ((1 + 2.25) / 2 / 2.25, 2 / 3)):
        assert _of_whole_waves(new, 2.25) == pytest.approx(share)
    assert (_of_whole_waves(0.25, 4), _of_whole_waves(0.5, 0.7)) == (0.25, 0.5)


def test_a_block_is_followed_that_most_are_like() -> None:
    # Two whole blocks of two warps, and what hangs over two edges and a corner of an array.
    lanes = np.arange(64).reshape(1, 2, 32) < np.array([64, 8, 64, 32, 4])[:, None, None]
    for place in np.linspace(0, 0.99, 9):
        assert int(_usual(lanes, place) * 5) == (0 if place < 0.5 else 2)
    # Of many one that acts at all.
    assert [
        int(_usual(lanes[[1]] & (np.arange(9) == 7)[:, None, None], place) * 9) for place in (0.1, 0.9)
    ] == [7, 7]
    # Of two kinds the one that does more; all alike are followed in turn.
    assert int(_usual(lanes[:2], 0.9) * 2) == 0
    for alike in (lanes[[0] * 5], lanes[:1]):
        assert [int(_usual(alike, place) * 5) for place in (0.1, 0.5, 0.9)] == [0, 2, 4]


def test_l1_holds_what_a_launch_stores_in_place_of_what_it_loads() -> None:
    watch, lanes = watching(32), np.arange(32)

    def access(place: np.ndarray, *, reads: bool) -> float:
        touch(watch, place, reads=reads)
        return watch.seen[watch._launch, 0, True]["missed"]

    assert [access(32 * lanes, reads=True) for _ in range(2)] == [32, 32]
    access(32 * lanes + 4096, reads=False)
    assert access(32 * lanes, reads=True) == 64
    # The next launch finds nothing there.
    watch.begin(lambda thread: (0, (0, 0, 0)))
    assert access(32 * lanes, reads=True) == 32


def test_l1_passes_data_by_banks_and_by_where_it_finds_lines() -> None:
    """As an H200 took cycles for a warp's loads of words, so many bytes from each lane to the next."""
    cycles = {4: 1.15, 8: 2.1, 36: 3.04, 64: 15.5, 128: 32.1, 132: 8.73, 192: 16.1, 800: 12.9, 1332: 10.5}
    cycles |= {3600: 13.4, 12000: 14.9}
    for apart, taken in cycles.items():
        # There the array began at a multiple of two megabytes.
        places = [np.arange(32) * apart // 4 + step + (2 << 20) // 4 - 1024 for step in range(32)]
        assert watched(places, reads=True)["passes"] / 32 == pytest.approx(taken, rel=0.2), apart
    # Stores were not measured.
    assert not watched([np.arange(32)], reads=False)["passes"]


def test_runs_go_on_from_access_to_access() -> None:
    lanes = np.arange(32)
    places = {
        1: [lanes + 32 * step for step in range(4)],
        2: [lanes, lanes + 1024, lanes + 1056],
        # Sectors of 32 rows, then those beside them, and what ends where the second of these begins.
        32: [32 * lanes + 8, 32 * lanes, np.arange(48, 64).repeat(2)],
    }
    for runs, each in places.items():
        # Of what is read, with all that was asked for: the last of these lies between two.
        assert watched(each, reads=True)["runs"] == min(runs, 31)
        assert watched(each, reads=False)["runs"] == runs


@pytest.mark.parametrize(
    ("steps", "at_once", "run"),
    [
        ((64, 1 << 15, 0), 8, 64 * 4),
        ((64, 64 * 4, 0), 8, 64 * 8),
        ((1 << 15, 64, 0), 8, 64),
        ((64, 1 << 15, 0), 2, 64 * 2),
        (None, 8, 64),
    ],
    ids=["rows", "rows of a whole array", "columns", "few at once", "not known how"],
)
def test_blocks_that_begin_one_after_the_other_make_longer_runs(
    steps: tuple[int, ...] | None, at_once: int, run: float
) -> None:
    place = 1, "global_load"
    requests = {place: {"requests": 16.0, "sectors": 64.0, "seen_fresh": 8, "seen_missed": 8, "seen_runs": 4}}
    sites = TrafficSites(LOOP, [1, 16, 1], {}, requests, {place: steps}, (4, 4, 1), at_once)
    (found,) = traffic_of([sites], 64 * 32, 0, 1 << 20)
    assert found[16].run == run


def test_short_runs_take_more_of_dram() -> None:
    values = constants_of(H200).values
    for opcode, name in (("LDG.E R0, [R2]", "reads"), ("STG.E [R2], R0", "writes")):
        for run, key in ((32, "of_64"), (64, "of_64"), (256, "of_256"), (1 << 20, "in_order")):
            (step,) = made_of(opcode, asked=[Traffic(1, 4, run=run)])
            rates = (values[f"dram_{name}_{each}_gbps"] for each in ("in_order", key))
            assert step.scattered == pytest.approx(next(rates) / next(rates))


def test_stores_are_known_by_what_they_take_of_sectors_and_by_who_else_writes_there() -> None:
    code = code_of((["STG.E [R2], R0", "EXIT"], ()))
    seen = {
        "seen_sectors": 128,
        "seen_lines": 128,
        "seen_placed_lines": 512,
        "seen_own_lines": 16,
        "seen_own_sectors": 32,
        "seen_runs": 16,
    }
    counts = {"requests": 8.0, "sectors": 128.0, "useful_bytes": 1024.0, **seen}
    sites = TrafficSites(code, [8], {}, {(1, "global_store"): counts}, {}, (1, 1, 1), 1)
    (found,) = traffic_of([sites], 0.0, 1024.0, 1 << 20)
    assert found[0].distant == pytest.approx(1024 / (128 * 32), rel=0.01)
    shares = {"spread": 1.0, "partial": True, "writers": 8, "own": 0.25, "run": 64.0}
    assert found[0] == Traffic(16, 16, found[0].distant, **shares)
    whole = {(1, "global_store"): {**counts, "useful_bytes": 4096.0, "seen_again": 16}}
    # Half of what is written drives out what waits to be written.
    (found,) = traffic_of([replace(sites, requests=whole)], 0.0, 4096.0, 1 << 20, unwritten_bytes=4096.0)
    assert (found[0].partial, found[0].again) == (False, True)
    assert found[0].distant == pytest.approx(1 - (1 - math.exp(-1)))


def test_parts_of_sectors_take_more_of_l2_than_whole_ones() -> None:
    values = constants_of(H200).values

    def effort(**asked: float) -> float:
        return made_of("STG.E [R2], R0", asked=[Traffic(1, 32, **asked)])[0].effort  # type: ignore[arg-type]

    whole = 16 * values["l2_store_128_apart_16_requests_per_ns"]
    assert effort() < 1.01
    for spread, apart in ((0.25, 32), (1.0, 128)):
        rate = 32 * values[f"l2_store_32_apart_{apart}_requests_per_ns"]
        assert effort(spread=spread, partial=True) == pytest.approx(whole / rate)


def test_atomics_take_l2_as_long_as_measured() -> None:
    constants = constants_of(H200)
    store, add = "STG.E.128 [R2], R0", "REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU [R2], R0"
    stored, added = made_of(store, add, asked=[Traffic(4, 16), Traffic(8, 16)])
    a_sector = 16 * constants.values["l2_store_128_apart_16_requests_per_ns"]
    assert added.effort / stored.effort == pytest.approx(
        a_sector * 8 / constants.rates["atomics_apart_gops"], rel=0.01
    )


def test_a_block_that_may_repeat_itself_is_left_as_often_as_it_is_come_to() -> None:
    """Where one thread of a warp stores by a loop that is not counted, the warp goes on once it has."""
    code = code_of((["MOV R0, R1"], (1,)), (["UTMASTG.2D [UR4], [UR6]"], (1, 2)), (["EXIT"], ()))
    launch = PlayedLaunch(code, [WORD] * 3, [(4, 4), (4, 4), (0, 4)], {}, 4, 1, 1, {})
    assert modelled([launch], H200).us < 5


def test_who_may_wait_on_the_way_comes_to_where_the_way_leads() -> None:
    """A wait's loop that stands aside, and comes back to a block that nothing was counted of."""
    look, move = ["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2"], ["MOV R0, R1"]
    code = code_of(
        *((move, (1,)), (look, (2, 5)), (["BRA 3"], (3,)), (["FFMA R0, R1, R2, R0"] * 40, (1, 4))),
        *((["EXIT"], ()), (look, (5, 6)), (["BRA 2"], (2,))),
    )
    times = [(4, 4), (400, 400), (0, 400), (400, 400), (4, 4), (0, math.inf), (0, 400)]
    words = [WORD] * sum(len(block.instructions) for block in code.blocks)
    launch = PlayedLaunch(code, words, times, {}, 4, 1, 1, {})
    straight = [*times[:2], (400, 400), *times[3:5], (0, 0), (0, 0)]
    assert modelled([launch], H200).us == modelled([replace(launch, times=straight)], H200).us


def test_what_one_warp_does_is_done_by_one_of_those_that_come_there() -> None:
    store, load = ["UTMASTG.2D [UR4], [UR6]"], ["UTMALDG.2D [UR4], [UR6]"]
    move = ["MOV R0, R1"]
    code = code_of((move, (1, 2)), (store, (5,)), (move, (3, 4)), (load, (4,)), (move, (5,)), (["EXIT"], ()))
    times = [1, 0.5, 0.5, 0.125, 0.5, 1]
    ways = dict.fromkeys(ways_to(code.blocks, times, {1, 3}))
    paths = [usual_path(code.blocks, times, {}, dict.fromkeys(ways, (role + 0.5) / 8)) for role in range(8)]
    assert [sum(number in path for path in paths) for number in range(6)] == [8, 4, 4, 1, 4, 8]
    # As many of either kind, and the others come first in the machine code.
    code = code_of((move, (1, 2)), (move, (3,)), (load, (3,)), (["EXIT"], ()))
    (way,) = ways_to(code.blocks, [1, 0.5, 0.5, 1], {2})
    paths = [usual_path(code.blocks, [1, 0.5, 0.5, 1], {}, {way: (role + 0.5) / 8}) for role in range(8)]
    assert sum(2 in path for path in paths) == 4


def test_who_has_more_blocks_has_more_of_what_all_share() -> None:
    steps = {0: Traffic(1, 100_000.0, 1.0, 1.0)}
    code = code_of((["LDG.E R0, [R2]", "EXIT"], ()))
    words = [replace(WORD, sets=0, waits=waits) for waits in (0, 1)]

    def us(blocks: int) -> float:
        launch = PlayedLaunch(code, words, [(blocks, blocks)], steps, blocks, 1, 2, {})
        return modelled([launch], H200).us

    # One of 133 blocks' SM plays two of them, and all move hardly more than 132.
    assert us(133) < us(132) * 1.1 < us(264)


def test_blocks_that_are_all_there_at_once_share_out_the_work_before() -> None:
    copies = code_of((["LDG.E R0, [R2]", "STG.E [R4], R0", "EXIT"], ()))
    traffic = dict.fromkeys((0, 16), Traffic(1, 4.0, 1.0, 1.0))
    constants = constants_of(H200)
    at_once, in_waves = (
        surroundings_of(H200, constants, PlayedLaunch(copies, [], [(1, 1)], traffic, waves * 132, 1, 2, {}))
        for waves in (2, 4)
    )
    rates = constants.values["dram_copies_beside_7_gbps"], constants.rates["dram_copy_gbps"]
    assert at_once.dram_cycles / in_waves.dram_cycles == pytest.approx(rates[0] / rates[1])


def test_local_memory_is_that_of_l1_but_what_is_stored_goes_on_to_l2() -> None:
    code = code_of((["STL.64 [R1], R2", "LDL R0, [R1]", "EXIT"], ()))
    requests = {(1, f"local_{kind}"): {"requests": 8.0} for kind in ("load", "store")}
    (traffic,) = traffic_of([TrafficSites(code, [8], {}, requests, {}, (1, 1, 1), at_once=1)], 0, 0, 1 << 20)
    store, load, _ = steps_of(code.blocks[0].instructions, [WORD] * 3, traffic, constants_of(H200), {})
    assert (store.kind, store.asked.passes, store.asked.sectors) == (StepKind.STORE, 1.0, 8.0)
    assert (load.kind, load.asked.passes, load.asked.sectors) == (StepKind.LOAD, 1.0, 0.0)


def test_generic_accesses_are_those_of_the_memory_that_they_turn_out_to_access() -> None:
    generic = code_of((["LD.E R0, [R2]", "ST.E [R2], R0", "EXIT"], ()))
    requests = {
        (1, f"shared_{kind}"): {"wavefronts": 8.0 * each} for kind, each in (("load", 4), ("store", 2))
    }
    sites = TrafficSites(generic, [8], {}, requests, {}, (1, 1, 1), at_once=1)
    (traffic,) = traffic_of([sites], 0, 0, 1 << 20)
    assert traffic == {0: Traffic(4.0), 16: Traffic(2.0)}
    # That of a cluster's blocks answers later, 16 bytes a cycle; what L1 holds of global memory does not.
    given = generic.blocks[0].instructions, [WORD] * 3
    remote, held = (
        steps_of(*given, {0: asked}, constants_of(H200), {}, 2)[0]
        for asked in (traffic[0], Traffic(4.0, missing=0.0))
    )
    assert (remote.kind, remote.latency, remote.asked.passes) == (StepKind.SHARED, 180.0, 32.0)
    assert (held.kind, held.asked.passes) == (StepKind.LOAD, 4.0)


def test_l2_keeps_what_it_has_room_for() -> None:
    def shares(l2_bytes: float, blocks: int = 80, fresh: int = 20) -> tuple[float, float]:
        seen = {
            "seen_sectors": 40,
            "seen_missed": 40,
            "seen_fresh": fresh,
            "seen_warps": 10,
            "seen_waiting": 10,
        }
        requests = {(1, "global_load"): {"requests": 8000.0, "sectors": 32000.0, **seen}}
        sites = TrafficSites(LOOP, [80, 8000, 80], {1: 7}, requests, {}, (blocks, 1, 1), at_once=8)
        (found,) = traffic_of([sites], read_bytes=2000 * 32, written_bytes=0, l2_bytes=l2_bytes)
        return found[16].distant, found[16].late

    # Of 32,000 sectors 2,000 are read from DRAM at least; the first of ten waves waits for them.
    assert shares(1 << 20, fresh=40) == (pytest.approx(2000 / 32000), pytest.approx(0.1))
    # Nothing is kept from wave to wave, each of which reads all.
    assert shares(1, fresh=40) == (pytest.approx(20000 / 32000, rel=0.01), pytest.approx(1, rel=0.01))
    # What a block reads again, half of all, is dropped too before it does.
    assert shares(1)[0] > shares(1, fresh=40)[0]
    assert shares(1 << 20)[0] == pytest.approx(2000 / 32000)


@pytest.mark.parametrize(
    ("moves", "at_once", "l2_sectors", "distant", "late"),
    [
        # Four rows of four blocks, a row at once: all of it reads the same, and the next row something else.
        ((0, 64, 64), 4, 1 << 20, 1 / 4, 1),
        # Each of a row reads something else, and the next row the same again: from L2, if that has room.
        ((64, 0, 64), 4, 1 << 20, 1 / 4, 1 / 4),
        ((64, 0, 64), 4, 4000, 1 / 4 + 3 / 4 / 2, 1 / 4 + 3 / 4 / 2),
        # Half a row at once: the other half comes in between.
        ((64, 0, 64), 2, 4000, 1 / 4 + 3 / 4 / 2, 1 / 4 + 3 / 4 / 2),
        # Not known, or all at once: what they read at least comes from DRAM.
        (None, 4, 1 << 20, 1 / 4, 1 / 4),
        ((64, 0, 64), 16, 1 << 20, 1 / 4, 1),
    ],
)
def test_what_blocks_share_decides_what_comes_from_dram(
    moves: tuple[int, ...] | None, at_once: int, l2_sectors: int, distant: float, late: float
) -> None:
    requests = {(1, "global_load"): {"requests": 4000.0, "sectors": 16000.0}}
    sites = TrafficSites(LOOP, [16, 4000, 16], {}, requests, {(1, "global_load"): moves}, (4, 4, 1), at_once)
    (found,) = traffic_of([sites], read_bytes=4000 * 32, written_bytes=0, l2_bytes=l2_sectors * 32)
    assert (found[16].distant, found[16].late) == pytest.approx((distant, late))


def test_control_words_say_who_waits_for_a_load() -> None:
    source = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
    made = compile_source(source, "k.cu", "twice", compiler_options("sm_90"))
    words = control_words(made.cubin, made.entry)
    setting = [word.sets for word in words if word.sets is not None]
    assert setting
    assert any(word.waits >> number & 1 for word in words for number in setting)
    assert all(0 <= word.stall < 16 for word in words)
    with pytest.raises(ValueError, match="no section"):
        control_words(made.cubin, "thrice")
