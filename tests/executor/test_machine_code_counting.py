# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Executed instructions against other counts of the same launches, and cubins disassembled together."""

import functools
import re
import subprocess
from collections import Counter
from math import inf
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_table, line_of
from each import each
from executor_harness import compile_both

from gpuprof.backends.sim import instructions
from gpuprof.backends.sim.executed import counters_of, left_out
from gpuprof.backends.sim.instructions import Links, NoLink
from gpuprof.backends.sim.unrolled import as_unrolled
from gpuprof.errors import BackendUnavailable
from gpuprof.executor import GlobalMemory, LaunchResult, Program, launch, load_program, loops_of
from gpuprof.executor.lanes.tally import Site
from gpuprof.machine_code import disassembler
from gpuprof.machine_code.disassembler import disassemble, disassemble_together
from gpuprof.machine_code.instruction_counts import Between, MachineCounts, count, pipe_of
from gpuprof.machine_code.linking import Anchors, Link, link
from gpuprof.machine_code.merged_cubins import kind_of, merged, parted
from gpuprof.machine_code.sass import Block, MachineCode, SassInstruction, read_machine_code
from gpuprof.machine_code.weighing import weigh
from gpuprof.records import replace
from gpuprof.sm_model.path import is_met_at
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options, target_of

pytestmark = pytest.mark.deep

ROWS = kernel_table(Path(__file__).parent / "counted.cu")
#: The source of each kernel, whose name is the first word.
KERNELS = {name: row.text for name, row in ROWS.items()}
read_alone = functools.cache(disassemble)


@functools.cache
def listings() -> dict[bytes, str]:
    """What nvdisasm, which takes longer to start than to read all of them, prints of kernels, by cubin."""
    cubins = [compile_both(source)[1] for source in dict.fromkeys(KERNELS.values())]
    return dict(zip(cubins, disassemble_together(cubins), strict=True))


def machine_code(name: str) -> MachineCode:
    """The machine code of a kernel."""
    return read_machine_code(listings()[compile_both(KERNELS[name])[1]], name.split()[0])


def linked(name: str) -> tuple[Link, Program]:
    """The link of a kernel, and its program."""
    ptx, _ = compile_both(KERNELS[name])
    program = load_program(ptx, name.split()[0])
    return link(machine_code(name), ptx, *program.listing), program


def executed(
    name: str, grid: int, block: int, *numbers: int, launches: int = 1, first: float = 1
) -> tuple[MachineCounts, dict]:
    """Run a kernel of two arrays from `first` to 2; return instructions of so many launches, and counters."""
    found, result = launched(name, grid, block, *numbers, first=first)
    weights = weigh(found, result)
    result, _ = as_unrolled(result, [(found, weights)], [result])
    return count([(found, weights)] * launches, 90), dict(result.counters)


def launched(name: str, grid: int, block: int, *numbers: int, first: float = 1) -> tuple[Link, LaunchResult]:
    """Run a kernel of two arrays from `first` to 2; return its link and what it counted."""
    found, program = linked(name)
    memory = GlobalMemory()
    arrays = [memory.allocate(np.linspace(first, 2, 1 << 14, dtype=np.float32), array) for array in "ab"]
    shape = (grid, 1, 1), (block, 1, 1)
    return found, launch(program, *shape, [*arrays, *numbers], memory)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 7, 8, 17, 30])
def test_each_copy_of_an_unrolled_loop_has_the_turns_that_it_makes(turns):
    counts, counters = executed("uneven", 3, 128, turns)
    assert counts.total.exact
    # ptxas copies the load and the sum, whose number must come out whatever the copies are.
    assert counts.opcodes["LDG"].low == counters["global_load_requests"]
    assert counts.opcodes["FADD"].low == counters["global_load_requests"]
    assert counts.opcodes["STG"].low == counters["global_store_requests"] == 12
    assert counts.pipes["fma"].low + counts.pipes["alu"].low < counts.total.low


@pytest.mark.parametrize("most", [4, 21, 90])
def test_lanes_that_make_different_numbers_of_iterations_make_what_is_left_over_together(most):
    """ptxas makes four of those that load four times, then two, then one, if any lane has as many left."""
    counts, counters = executed("rows", 3, 128, most)
    turns = (np.arange(128).reshape(4, 32) * 37 + 11) % most
    fours = turns // 4
    expected = sum(
        16 * (warp // 4).max() + 8 * (warp % 4 // 2).max() + 4 * (warp % 2).max() for warp in fours
    ) + sum((warp % 4).max() for warp in turns)
    assert counts.opcodes["LDG"] == counts.opcodes["FADD"] == Between(*[3 * expected] * 2)
    assert counters["global_load_requests"] == 3 * expected
    found, result = launched("rows", 3, 128, most)
    unrolled, others = as_unrolled(result, [(found, weigh(found, result))], [result])
    assert unrolled.lines[line_of(KERNELS["rows"], "sum +=")]["global_load_requests"] == 3 * expected
    shown = counters_of(unrolled, others)
    apart = most > 4  # else the four iterations at once are never made
    assert shown["global_load_sectors"].is_least is shown["global_load_efficiency_pct"].is_estimate is apart
    assert not shown["global_load_requests"].is_least
    assert not shown["global_store_sectors"].is_least


def test_lanes_that_make_what_is_left_over_together_may_ask_for_fewer_sectors():
    """Four iterations of odd lanes at once; then the last two of all, of which each lane loads the same."""
    found, result = launched("ends", 1, 32)
    shown = counters_of(*as_unrolled(result, [(found, weigh(found, result))], [result]))
    assert shown["global_load_sectors"].value == 8 > 6
    assert shown["global_load_sectors"].is_estimate  # of which no bound is made


@pytest.mark.parametrize("rows", [64, 128, 256])
def test_a_loop_that_begins_with_some_of_its_iterations_makes_the_others_in_few_turns(rows):
    """Each sum is stored, so loads wait: of eight iterations at once ptxas makes two, then five in a turn."""
    counts, counters = executed(f"sums {rows}", 1, 64)
    assert counts.opcodes["LDG"] == Between(*[counters["global_load_requests"]] * 2)
    assert counts.opcodes["STG"] == Between(*[counters["global_store_requests"]] * 2)


@pytest.mark.parametrize("turns", [2, 3, 4, 5, 6, 8, 9])
def test_the_first_iteration_may_stand_before_its_loop(turns):
    """What is left of four iterations at a time, ptxas makes one by one, the first of them by itself."""
    counts, counters = executed("column", 1, 32, turns, 32)
    assert counts.total.exact
    assert counts.opcodes["LDG"].low == counters["global_load_requests"]
    assert counts.opcodes["STG"].low == counters["global_store_requests"]


@pytest.mark.parametrize("unrolled", [1, 4])
def test_words_of_a_vector_that_are_loaded_apart_are_of_one_iteration(unrolled):
    counts, counters = executed(f"products {unrolled}", 1, 32, 9)
    assert counters["global_load_requests"] == 2 * 9
    assert counts.opcodes["LDG"] == Between(18, 18)
    assert counts.opcodes["FFMA"] == Between(9, 9)
    assert counts.total.exact


def test_copies_and_barriers_of_a_loop_that_is_straight_code_are_those_of_its_iterations():
    """ptxas leaves no loop; before each group of copies is waited for it loads from shared memory, never."""
    counts, counters = executed("copies", 3, 128)
    assert counters["async_copy_requests"] == 3 * 4 * 16 * 4
    assert counts.opcodes["LDGSTS"] == Between(*[counters["async_copy_requests"]] * 2)
    assert counts.opcodes["BAR"] == Between(*[counters["barriers"]] * 2)
    assert counts.opcodes["STG"] == Between(12, 12)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.told])
def test_ptxas_drops_what_some_iterations_of_a_loop_that_is_straight_code_need_not(name):
    counts, _ = executed(name, 3, 32)
    expected = ROWS[name].told["executed"]
    assert {opcode: counts.opcodes[opcode] for opcode in expected} == {
        opcode: Between(3 * times, 3 * times) for opcode, times in expected.items()
    }


def test_stores_that_a_later_iteration_overwrites_do_not_tell_how_many_one_turn_makes():
    """Of 77 iterations at once ptxas leaves 53 stores to one place, between loads that may be of it."""
    counts, counters = executed("overwritten", 3, 64)
    assert counters["global_load_requests"] == 3 * 2 * 1001
    assert counts.opcodes["LDG"] == counts.opcodes["FADD"] == Between(3 * 2 * 1001, 3 * 2 * 1001)
    assert counts.opcodes["STS"].high < counters["shared_store_requests"]


QUOTIENTS = {
    "div.full.f32 q, x, y; add.f32 z, q, x;": 1,
    "div.full.ftz.f32 q, x, y; sub.ftz.f32 z, x, q;": 1,
    "div.approx.f32 q, x, y; sub.f32 z, q, y;": 1,
    "div.full.ftz.f32 q, x, y; add.f32 z, q, x;": 0,  # one flushes subnormals, the other does not
    "div.full.f32 q, x, y; add.f32 z, q, x; mul.f32 z, z, q;": 0,
    "div.full.f32 q, x, y; mul.f32 z, q, x; add.f32 z, z, q;": 1,
    "div.full.f32 q, x, y; div.full.f32 p, q, y; add.f32 z, q, x;": 1,  # nobody reads p
    "div.full.f32 q, x, y; neg.f32 p, q; add.f32 z, p, x;": 1,
    "div.rn.f32 q, x, y; add.f32 z, q, x;": 5,
}
_IN_SUMS = "".join(
    f"""
extern "C" __global__ void k{number}(const float *in, float *out)
{{
    in += threadIdx.x, out += threadIdx.x;
    asm volatile("{{.reg .f32 x, y, z, p, q; ld.global.f32 x, [%0]; ld.global.f32 y, [%0+4096]; "
                 "{body} st.global.f32 [%1], z; }}" :: "l"(in), "l"(out) : "memory");
}}"""
    for number, body in enumerate(QUOTIENTS)
)
KERNELS |= {f"k{number}": _IN_SUMS for number in range(len(QUOTIENTS))}


def test_coarse_quotients_go_into_sums_as_ptxas_puts_them_there():
    """They end with a product, by the divisor's reciprocal."""
    for number, (body, sums) in enumerate(QUOTIENTS.items()):
        counts, counters = executed(f"k{number}", 1, 32)
        assert counters.get("ffma_thread_instructions", 0) == 32 * sums, body
        assert counts.opcodes.get("FFMA", Between()).low == sums, body


@pytest.mark.parametrize("words", [1, 8, 32])
def test_words_that_lanes_want_of_constants_are_counted(words):
    _, counters = executed(f"looks_up {words}", 3, 128)
    assert counters["constant_load_requests"] == 3 * 4
    assert counters["constant_load_useful_bytes"] == 3 * 4 * 4 * words


def test_of_dependent_grids_the_adu_lets_them_begin_and_nothing_waits():
    """As Nsight Compute counts it on an H200."""
    without, wait, launch_dependents = (
        executed(f"first {what}", 1, 256)[0].pipes["adu"].low
        for what in ("nothing", "wait", "launch_dependents")
    )
    assert wait == without
    assert launch_dependents == without + 8


def test_code_that_lanes_run_apart_is_counted_for_each_part():
    counts, counters = executed("parted", 2, 128)
    assert counts.opcodes["BAR"] == Between(counters["barriers"], counters["barriers"])
    assert counts.opcodes["STG"] == Between(8, 8)
    # Warps 0 and 1 have lanes for both ways, warps 2 and 3 for the first alone.
    assert counters["shared_load_requests"] == 2 * (4 * 9 + 2)
    assert counts.opcodes["LDS"].low == counters["shared_load_requests"]
    assert counters["branch_divergent_warps"] > 0


def test_lanes_part_at_branches_of_the_machine_code_alone():
    """As Nsight Compute counts them on an H200: not where lanes end, nor under predicates."""
    found, result = launched("parts", 1, 128)
    assert result.counters["branch_divergent_warps"] > 4
    _, counters = executed("parts", 1, 128)
    assert counters["branch_divergent_warps"] == 4
    assert not as_unrolled(result, [(found, weigh(found, result))], [result])[1]
    unlinked, others = as_unrolled(result, NoLink("no ptxas"), [result])
    assert unlinked.counters == result.counters
    assert counters_of(unlinked, others)["branch_divergent_warps"].is_estimate


def test_a_slow_path_that_no_operand_comes_near_has_not_run():
    counts, _ = executed("divides", 4, 64)
    assert counts.total.exact
    assert counts.opcodes["MUFU"] == Between(8, 8)
    assert "CALL" not in counts.opcodes


def test_a_slow_path_may_have_run_and_may_not():
    counts, _ = executed("divides", 4, 64, first=0)
    assert counts.opcodes["MUFU"].low == 8
    assert 0 < counts.total.low < counts.total.high
    assert counts.opcodes["CALL"].low == 0
    assert counts.opcodes["CALL"].high == 8


def test_lines_of_the_source_share_the_instructions():
    counts, _ = executed("uneven", 1, 32, 12)
    inside = line_of(KERNELS["uneven"], "sum += in[i * 64")
    assert counts.lines[inside].low >= 2 * 12
    assert max(counts.lines, key=lambda line: counts.lines[line].low) in (inside, inside - 1)
    assert sum(times.low for times in counts.lines.values()) <= counts.total.low


@pytest.mark.parametrize("name", ["halves", "halves of clusters"])
def test_what_some_warps_of_every_block_leave_out_is_known(name):
    found, program = linked(name)
    memory = GlobalMemory()
    arrays = [memory.allocate(np.ones(9 * 512, dtype=np.float32), name) for name in "ab"]
    left = left_out(found, launch(program, (4, 1, 1), (128, 1, 1), arrays, memory), 4)
    assert left[0] == left[1] != left[2] == left[3]
    meetings = [{n for n, block in enumerate(found.code.blocks) if is_met_at(block)} - one for one in left]
    assert all(meetings)
    assert not meetings[0] & meetings[2]


def test_launches_add_up():
    one, _ = executed("uneven", 1, 32, 12)
    two, _ = executed("uneven", 1, 32, 12, launches=2)
    assert two.total == Between(2 * one.total.low, 2 * one.total.high)
    assert two.pipes["lsu"].low == 2 * one.pipes["lsu"].low
    assert two.opcodes["EXIT"] == Between(2, 2)
    assert set(two.lines) == set(one.lines)


def test_a_loop_that_is_left_in_its_middle_goes_on_as_often_as_it_begins_again():
    """Nothing speaks for the block that leads back to the header; warps end before it."""
    move = SassInstruction(0, "", "MOV", "R0, R1", 0)
    ways = [((1,), False), ((2,), False), ((3,), True), ((1,), False)]
    blocks = tuple(Block([move], after, leaves=leaves) for after, leaves in ways)
    anchors = (*(Anchors(fixed=[line]) for line in range(3)), Anchors())
    code, homes = MachineCode(blocks, complete=True), {line: (line,) for line in range(3)}
    result = LaunchResult(
        *({}, {}, {}, {}, 1, 1, True, 0),
        block_warps=np.array([8.0, 16.0, 16.0]),
        block_threads=np.array([256.0, 512.0, 512.0]),
        block_parted=np.zeros(3),
        loop_iterations={1: {(2,): 8.0}},
    )
    weights = weigh(Link(code, homes, {}, anchors, (), loops_of(blocks), {1: 1}), result)
    assert weights[:3] == [(8, 8), (16, 16), (16, 16)]
    assert weights[3][0] == 8


def test_a_loop_of_several_blocks_is_left_as_often_as_it_is_entered():
    """Nothing speaks for the block behind it, a lone end."""
    move = SassInstruction(0, "", "MOV", "R0, R1", 0)
    ways = [((1,), False), ((2, 3), False), ((3,), False), ((1, 4), False), ((), True)]
    blocks = tuple(Block([move], after, leaves=leaves) for after, leaves in ways)
    anchors = (*(Anchors(fixed=[line], branches=(line,)) for line in range(4)), Anchors())
    result = LaunchResult(
        *({}, {}, {}, {}, 1, 1, True, 0),
        block_warps=np.array([8.0, 40.0, 16.0, 40.0]),
        block_threads=np.array([256.0, 1280.0, 512.0, 1280.0]),
        block_parted=np.zeros(4),
        loop_iterations={1: {(5,): 8.0}},
    )
    code, homes = MachineCode(blocks, complete=True), {line: (line,) for line in range(4)}
    weights = weigh(Link(code, homes, {}, anchors, (), loops_of(blocks), {1: 1}), result)
    assert weights == [(8, 8), (40, 40), (16, 16), (40, 40), (8, 8)]


def test_what_few_lanes_do_beside_a_barrier_parts_no_warp():
    """As `cuda::pipeline` begins: code of one lane comes there, and a loop stands beside for parted warps."""
    ptx = "barrier.sync 0;\n@%p1 bra $L;\nld.u32 %r1, [%rd1];\n$L: st.u32 [%rd2], %r1;\nret;"
    places = [[(1, 1), (2, 1)], [(3, 1)], [(4, 1), (5, 1)]]

    def block(*code: tuple[str, str, int], after: tuple[int, ...], **more: object) -> Block:
        return Block([SassInstruction(0, guard, name, "", line) for guard, name, line in code], after, **more)

    blocks = (
        block(("", "BRA.DIV", 3), after=(2, 1), apart=2),
        block(("@!P0 ", "LD", 3), ("", "BAR.SYNC", 1), after=(4,)),
        block(("", "UMOV", 3), after=(3,)),
        block(("", "WARPSYNC.ALL", 4), ("", "BRA.U.ANY", 4), after=(3, 4)),
        block(("", "ST", 4), ("", "EXIT", 5), after=(), leaves=True),
    )
    result = LaunchResult(
        *({}, {}, {}, {}, 1, 1, True, 0),
        block_warps=np.array([8.0, 2.0, 8.0]),
        block_threads=np.array([256.0, 2.0, 256.0]),
        block_parted=np.zeros(3),
        loop_iterations={},
    )
    found = link(MachineCode(blocks, complete=True), ptx, places, {}, set())
    assert weigh(found, result) == [(8, 8), (8, 8), (0, 0), (0, 0), (8, 8)]


#: Iterations by guards of their stores; what a block's branch is under, its line of the PTX, and its goals.
REST = [
    ((), "", 0, (2, 1)),
    (("",) * 4, "!P0", 0, (1, 2)),
    (("P2",) * 2, "P1", 0, (4, 3)),
    (("",), "", 0, (4,)),
]
WRAP = [((), "P1", 0, (2, 1)), (("",), "", 0, (2,)), ((), "P1", 0, (3, 4)), (("",) * 4, "P1", 0, (3, 4))]
WRAP += [((), "P1", 3, (5, 6)), (("",), "P1", 0, (5, 6))]


@pytest.mark.parametrize(
    ("stores", "turns", "weights"),
    [
        # Four iterations at once, two under a predicate, and one behind a branch.
        (REST, 4, (1, 1, 1, 0, 1)),
        (REST, 6, (1, 1, 1, 0, 1)),
        (REST, 7, (1, 1, 1, 1, 1)),
        (REST, 9, (1, 2, 1, 1, 1)),
        # One for a counter that begins below one, four at once, then, behind the PTX's branch, the rest.
        (WRAP, 3, (1, 0, 1, 0, 1, 3, 1)),
        (WRAP, 4, (1, 0, 1, 1, 1, 0, 1)),
        (WRAP, 9, (1, 0, 1, 2, 1, 1, 1)),
    ],
)
def test_a_loop_is_made_in_pieces_of_which_some_may_be_left_out(stores, turns, weights):
    ptx = "mov.u32 %r1, 0;\n$L: st.u32 [%rd2], %r1;\n@%p1 bra $L;\nret;"
    places = [[(1, 1)], [(2, 1), (3, 1)], [(4, 1)]]
    blocks = tuple(
        Block(
            [
                *(SassInstruction(0, under, "STS", "", 2) for under in guards),
                SassInstruction(0, leaves_if, "BRA", "", line),
            ],
            after,
        )
        for guards, leaves_if, line, after in stores
    )
    blocks += (Block([SassInstruction(0, "", "EXIT", "", 4)], (), leaves=True),)
    loops = loops_of([Block([], after) for after in ((1,), (1, 2), ())])
    result = LaunchResult(
        *({}, {}, {}, {}, 1, 1, True, 0),
        block_warps=np.array([8.0, 8.0 * turns, 8.0]),
        block_threads=np.array([256.0, 256.0 * turns, 256.0]),
        block_parted=np.zeros(3),
        loop_iterations={1: {(turns,): 8.0}},
    )
    found = weigh(link(MachineCode(blocks, complete=True), ptx, places, loops, set()), result)
    assert found == [(8 * times, 8 * times) for times in weights]


@pytest.mark.parametrize(
    ("families", "stored"),
    [
        ((), (0, 8)),
        (("global_store",), (5, 5)),
        (("global_store", "shared_store"), (0, 8)),  # of how many warps lanes went to both is not known
        (("async_copy", "async_copy_shared"), (5, 5)),
    ],
)
def test_warps_that_skip_a_last_store_may_end_before_it(families, stored):
    """As Triton stores a sum: `@%p1 st` is the last that some warps do, and the others have ended."""
    ptx = "ld.u32 %r1, [%rd1];\n@%p1 st.u32 [%rd2], %r1;\nret;"
    first = [SassInstruction(0, "", "LDG.E", "", 1), SassInstruction(0, "P0", "EXIT", "", 2)]
    last = [SassInstruction(0, "", "STG.E", "", 2), SassInstruction(0, "", "EXIT", "", 3)]
    blocks = Block(first, (1,), leaves=True), Block(last, (), leaves=True)
    result = LaunchResult(
        *({}, {}, {}, {}, 1, 1, True, 0),
        block_warps=np.array([8.0]),
        block_threads=np.array([256.0]),
        block_parted=np.zeros(1),
        loop_iterations={},
        sites=tuple((Site(family, 0, 2), {"requests": 5.0}) for family in families),
    )
    found = link(MachineCode(blocks, complete=True), ptx, [[(1, 1), (2, 1), (3, 1)]], {}, set())
    assert weigh(found, result) == [(8, 8), stored]


def test_loops_that_only_wait_are_tried_at_least_once():
    counts, _ = executed("waits", 1, 64)
    # Two of the warp that stores, one try of the warp that waits, and one of each warp behind the barrier.
    assert counts.opcodes["LDG"] == Between(5, inf)
    assert counts.total.high == inf
    assert counts.opcodes["STG"].exact
    assert counts.opcodes["FADD"] == Between(2, 2)


SOURCES = {
    "loop": """
        extern "C" __global__ void same(float *x, int n) { for (int i = 0; i < n; i += 32) x[i] += 1; }
    """,
    "same name": """
        extern "C" __global__ void same(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = x[0] * 3; }
    """,
    "jump table": """
        extern "C" __global__ void jumps(int *x, int n) {
            switch (n) {
            case 0: x[0] = __popc(x[3]); break;
            case 1: x[1] = x[2] * 5; break;
            case 2: x[2] = x[1] / 7; break;
            case 3: x[3] = __clz(x[0]); break;
            case 4: x[4] = x[5] ^ 9; break;
            case 5: atomicAdd(x + 5, 3); break;
            case 6: x[6] = max(x[1], x[2]); break;
            case 7: __syncthreads(); break;
            }
        }
    """,
    "calls": """
        #include <cstdio>
        __device__ int told[4];
        __device__ __noinline__ int helper(int n) { return n < 2 ? n : told[n & 3] + n; }
        extern "C" __global__ void calls(int *x, int n) {
            x[0] = helper(n) + helper(n + 1);
            told[n & 3] = x[0];
            if (n == 77) printf("%d\\n", n);
        }
        extern "C" __global__ void other(double *x) { x[threadIdx.x] = sqrt(x[threadIdx.x]); }
    """,
}
#: Without what is printed a second time, for the goals of its jumps.
PLAIN = [name for name in SOURCES if name != "jump table"]
ENTRIES = {"loop": ("same",), "same name": ("same",), "jump table": ("jumps",), "calls": ("calls", "other")}


def compiled(arch):
    """The functions of all sources, by source."""
    return {
        name: compile_entries_cached(
            source, "some.cu", ENTRIES[name], compiler_options(target_of(arch, (source,)), (), ())
        )
        for name, source in SOURCES.items()
    }


@pytest.fixture(scope="module")
def functions():
    return compiled("sm_90")


#: How many pipes run each, as Nsight Compute counted ten of each on an H200.
FENCES = {
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;": (2, 2, 1),
    "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;": (1, 1, 0),
    "barrier.cluster.arrive; barrier.cluster.wait;": (2, 2, 1),
    "fence.acq_rel.gpu;": (2, 1, 1),
    "fence.acq_rel.cluster;": (2, 1, 1),
    "fence.acq_rel.cta;": (1, 0, 0),
    "fence.sc.sys;": (2, 1, 1),
}
_FENCED = "".join(
    f'extern "C" __global__ void __cluster_dims__(2) fenced{number}_{times}(int *x) {{ *x = 1; '
    + f'asm volatile("{statement}" ::: "memory");' * times
    + " *x = 2; }\n"
    for number, statement in enumerate(FENCES)
    for times in (1, 11)
)
KERNELS |= {f"fenced{number}_{times}": _FENCED for number in range(len(FENCES)) for times in (1, 11)}


@each(number=range(len(FENCES)))
def test_barriers_of_clusters_and_fences_are_counted_by_the_pipes_that_run_them(number):
    def pipes(times):
        blocks = machine_code(f"fenced{number}_{times}").blocks
        return Counter(pipe for block in blocks for one in block.instructions for pipe in pipe_of(one, 90))

    more = pipes(11)
    more.subtract(pipes(1))
    statement, expected = [*FENCES.items()][number]
    assert tuple(more[pipe] for pipe in ("lsu", "adu", "tex")) == tuple(10 * one for one in expected), (
        statement
    )


def as_read(listing, entry):
    """A kernel's machine code, but for the names of labels."""

    def nameless(block: Block) -> Block:
        return replace(
            block,
            instructions=[
                replace(one, operands=re.sub(r"\.L_x_\d+", ".L", one.operands)) for one in block.instructions
            ],
        )

    code = read_machine_code(listing, entry)
    assert all(one.line for one in code.blocks[0].instructions)
    return replace(code, blocks=tuple(map(nameless, code.blocks)))


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_each_cubin_reads_as_it_does_alone(arch):
    functions = compiled(arch)
    several = [functions[name][0] for name in SOURCES]
    together = disassemble_together([one.cubin for one in several])
    for name, listing in zip(SOURCES, together, strict=True):
        for function in functions[name]:
            alone = as_read(read_alone(function.cubin), function.entry)
            assert as_read(listing, function.entry) == alone, (name, function.entry)
    jumps = read_machine_code(together[list(SOURCES).index("jump table")], "jumps")
    assert jumps.complete
    tables = any(one.name == "BRX" for block in jumps.blocks for one in block.instructions)
    assert tables or arch != "sm_90"


def test_they_are_read_in_one_run(functions, monkeypatch):
    runs, really = [], subprocess.run

    def run(command, **named):
        runs.append(command)
        return really(command, **named)

    monkeypatch.setattr(disassembler.subprocess, "run", run)
    alike = [functions[name][0].cubin for name in PLAIN]
    kinds = len(set(map(kind_of, alike)))
    disassemble_together(alike)
    assert len(runs) == kinds


def test_cubins_of_other_architectures_are_read_apart(functions):
    other = compiled("sm_80")["loop"][0]
    mine = functions["loop"][0]
    assert kind_of(other.cubin) != kind_of(mine.cubin)
    listings = disassemble_together([mine.cubin, other.cubin])
    assert [as_read(text, "same") for text in listings] == [
        as_read(read_alone(one.cubin), "same") for one in (mine, other)
    ]


def test_a_damaged_neighbour_is_told_and_spoils_nothing_else(functions, monkeypatch):
    good = functions["loop"][0].cubin
    damaged = good[:200]
    with pytest.raises(ValueError, match="damaged"):
        merged([good, damaged])
    with pytest.raises(BackendUnavailable, match="cannot read the machine code"):
        disassemble_together([good, damaged])
    links = Links()
    links.expect(damaged)
    assert links.listing(good) == read_alone(good)
    with pytest.raises(BackendUnavailable, match="cannot read the machine code"):
        links.listing(damaged)
    read = []
    monkeypatch.setattr(instructions, "listings_of", lambda codes: read.extend(codes) or dict.fromkeys(codes))
    links.listing(b"what follows")
    assert read == [b"what follows"]


def test_what_is_no_elf_file_is_not_merged():
    assert kind_of(b"") == ()
    with pytest.raises(ValueError, match="not an ELF file"):
        merged([b"no cubin" * 20])


def test_what_is_begun_or_expected_is_disassembled_once(functions, monkeypatch, tmp_path):
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    runs = []
    run = subprocess.run
    monkeypatch.setattr(
        disassembler.subprocess,
        "run",
        lambda *args, **options: runs.append(run(*args, **options)) or runs[-1],
    )
    one, *others = (functions[name][0] for name in PLAIN)
    links = Links()
    for other in others:
        links.expect(other.cubin)
    links.begin([one])
    # The second is another process's: it finds what the first has read.
    for reader in (links, Links()):
        for function in (one, *others):
            assert read_machine_code(reader.listing(function.cubin), function.entry).blocks
    links.begin([replace(one, cubin=b"damaged")])
    assert len([done for done in runs if not done.returncode]) == 1


def test_a_listing_is_parted_by_its_titles():
    listing = "//--- .text.cubin1.f ---\nf1 cubin1.f\n//--- .text.cubin0.g ---\n.text.cubin0.g:\n"
    assert parted(listing, 3) == ["\n.text.g:\n", "\nf1 f\n", ""]
