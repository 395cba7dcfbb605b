# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine code as nvdisasm prints it: its blocks, the PTX it was made of, and atomics of whole warps."""

from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from executor_harness import compile_both

from gpuprof.backends.sim.executed import atomics_remark
from gpuprof.backends.sim.instructions import NoLink
from gpuprof.errors import BackendUnavailable
from gpuprof.executor import GlobalMemory, launch, load_program
from gpuprof.machine_code import disassembler
from gpuprof.machine_code.disassembler import disassemble
from gpuprof.machine_code.linking import PtxText, link
from gpuprof.machine_code.sass import read_machine_code
from gpuprof.toolchain import assembling

LISTING = """
//--------------------- .text.other               --------------------------
.text.other:
        /*0000*/                   EXIT ;
//--------------------- .text.twice               --------------------------
        .size           twice,(.L_x_9 - twice)
twice:
.text.twice:
	//## File ".nv_debug_ptx_txt", line 20
        /*0000*/                   S2R R0, SR_TID.X ;
	//## File ".nv_debug_ptx_txt", line 22
        /*0010*/                   BSSY B0, `(.L_x_4) ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
	//## File ".nv_debug_ptx_txt", line 25
        /*0030*/                   CALL.REL.NOINC `($__internal_0_$slow) ;
.L_x_2:
        /*0040*/                   BRA.U UP0, `(.L_x_2) ;
.L_x_1:
        /*0050*/                   BSYNC B0 ;
.L_x_4:
	//## File ".nv_debug_ptx_txt", line 30
        /*0060*/              @PT  STG.E.128 desc[UR4][R2.64+-0x10], R4 ;
        /*0070*/              @P1  EXIT ;
        /*0080*/                   BRX R2 -0x80 (*"BRANCH_TARGETS .L_x_2,.L_x_3"*) ;
.L_x_3:
        /*0090*/                   EXIT ;
        .type           $__internal_0_$slow,@function
        .size           $__internal_0_$slow,(.L_x_9 - $__internal_0_$slow)
$__internal_0_$slow:
        /*00a0*/                   RET.REL.NODEC R2 `(twice) ;
.L_x_9:
"""


@pytest.fixture
def code():
    return read_machine_code(LISTING, "twice")


def test_blocks_follow_each_other(code):
    assert code.complete
    ways = [block.successors for block in code.blocks]
    #   0 entry  1 call  2 loop  3 BSYNC  4 store, EXIT  5 BRX  6 EXIT  7 subroutine
    assert ways == [(2, 1), (2,), (2, 3), (4,), (5,), (2, 6), (), ()]
    assert [block.leaves for block in code.blocks] == [False] * 4 + [True, False, True, True]
    assert code.blocks[1].callee == 7
    assert [block.subroutine for block in code.blocks] == [False] * 7 + [True]


def test_a_call_of_a_place_in_the_kernel_is_a_jump():
    code = read_machine_code(
        LISTING.replace("    CALL.REL.NOINC `($__internal_0_$slow)", "@P2 CALL.REL.NOINC `(.L_x_3)"), "twice"
    )
    assert (code.blocks[1].successors, code.blocks[1].callee) == ((6, 2), None)


def test_lanes_go_on_together_behind_the_point_that_was_set_before_they_parted(code):
    assert [block.together for block in code.blocks] == [None] * 4 + [0] + [None] * 3


def test_a_jump_to_where_a_register_says_is_noticed():
    listing = LISTING.replace(' (*"BRANCH_TARGETS .L_x_2,.L_x_3"*)', "")
    assert not read_machine_code(listing, "twice").complete


def test_a_kernel_that_is_not_there_is_told():
    with pytest.raises(ValueError, match="no kernel thrice"):
        read_machine_code(LISTING, "thrice")


def test_a_missing_disassembler_is_named_with_the_package_that_brings_it(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", absent)
    monkeypatch.setattr(assembling.shutil, "which", lambda name, path: None)
    disassembler.find_nvdisasm.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match="nvdisasm is missing") as caught:
            disassemble(b"")
    finally:
        disassembler.find_nvdisasm.cache_clear()
    assert "pip install nvidia-cuda-nvdisasm" in str(caught.value.fix)


def test_what_is_no_machine_code_is_refused_in_one_sentence():
    with pytest.raises(BackendUnavailable, match="cannot read the machine code"):
        disassemble(b"no cubin")


def test_labels_that_nothing_leads_to_begin_no_block():
    line = "        /*0060*/              @PT  STG"
    assert line in LISTING
    more = LISTING.replace(line, f".L_x_7:\n{line}")
    assert read_machine_code(more, "twice") == read_machine_code(LISTING, "twice")


def test_only_warps_whose_lanes_are_not_all_there_part_from_the_others():
    listing = LISTING.replace("BRA.U UP0, `(.L_x_2)", "BRA.DIV UR4, `(.L_x_3)")
    code = read_machine_code(listing, "twice")
    (apart,) = (block for block in code.blocks if block.apart is not None)
    assert apart.instructions[-1].opcode == "BRA.DIV"
    assert code.blocks[apart.apart].instructions[0].address == 0x90
    # Instructions for all lanes follow for the others.
    assert [code.blocks[one].instructions[0].address for one in apart.successors] == [0x90, 0x50]


BRANCHES = """
 @%p1 bra $L_END;

 .loc 1 2 3
 setp.ge.s32 %p2, %r1, %r2;
 @%p2 bra $L_END;
 add.s32 %r1, %r1, 1;
 @%p3 bra $L_BODY;
 @!%p4 bra $L_END;
 // the body
 .loc 1 4 5
$L_BODY:
 @%p5 bra $L_OTHER;
 st.global.u32 [%rd1], %r1;
$L_OTHER:
 @%p6 bra $L_END;
 bra.uni $L_END;
 @%p7 bra $L_END;
$L_END:
 ret;
"""


def lines_of(text: str) -> PtxText:
    return PtxText(text.splitlines())


def number(part: str) -> int:
    return next(i for i, line in enumerate(BRANCHES.splitlines(), 1) if part in line)


def test_branches_to_one_place_lead_to_each_other():
    text = lines_of(BRANCHES)
    assert text.led_by == {
        number("%p2 bra"): number("%p1 bra"),  # a || b: both leave
        number("%p4 bra"): number("%p3 bra"),  # the first goes where the other does not
    }


def test_branches_and_ends_are_told():
    text = lines_of(BRANCHES)
    assert text.ends == {number("ret;")}
    assert number("bra.uni") in text.control - text.conditional
    assert number("%p7") in text.conditional


def test_accesses_that_may_be_of_local_memory_are_told():
    kinds = (" ld.local.u32 %r1, [%rd1];", "@%p1 st.f32 [%rd1], %f1;", " ld.global.f32 %f1, [%rd2];")
    text = lines_of("\n".join((*kinds, " add.s32 %r1, %r1, 1;", " ld.v4.f32 {%f1}, [%rd1];")))
    assert [text.is_access(line) for line in range(1, 6)] == [True, True, False, False, True]


#: What each thread does, and how many sectors four warps of 32 and one of 8 take.
BODIES = {
    "count at one place": ("atomicAdd(out, 1u);", 5),
    "sum at one place": ("atomicAdd(out, x[threadIdx.x]);", 5),
    "largest, its place known to the block": ("atomicMax(out + blockIdx.x, x[threadIdx.x]);", 5),
    "64 bits of a constant": ("atomicAdd((unsigned long long *)out, 3ull);", 5),
    "64 bits that differ": ("atomicAdd((unsigned long long *)out, x[threadIdx.x] + 1ull);", 136),
    "floats": ("atomicAdd((float *)out, 1.0f);", 136),
    "wrapping": ("atomicInc(out, 7u);", 136),
    "a place of the warp": ("atomicAdd(out + threadIdx.x / 32, 1u);", 136),
    "a place that was read": ("atomicAdd(out + x[threadIdx.x] % 2, 1u);", 136),
}


def launched(body: str, *, linked: bool):
    source = f"""extern "C" __global__ void k(const unsigned *x, unsigned *out) {{
    {body}
}}"""
    ptx, cubin = compile_both(source)
    program, memory = load_program(ptx, "k"), GlobalMemory()
    arrays = [memory.allocate(np.zeros(256, np.uint32), name) for name in ("x", "out")]
    code = read_machine_code(disassemble(cubin), "k")
    merged = link(code, ptx, *program.listing).merged_atomics if linked else ()
    return launch(program, (1, 1, 1), (136, 1, 1), arrays, memory, merged_atomics=lambda: merged)


@pytest.mark.parametrize("name", BODIES)
def test_sectors_are_those_of_the_machine_code(name):
    body, sectors = BODIES[name]
    result = launched(body, linked=True)
    assert result.counters["global_atomic_sectors"] == sectors
    assert result.counters["global_atomic_requests"] == 5
    assert result.lines[2]["global_atomic_sectors"] == sectors


def test_without_machine_code_lanes_count_one_by_one_and_a_remark_says_so():
    result = launched("atomicAdd(out, 1u);", linked=False)
    assert result.counters["global_atomic_sectors"] == 136
    (remark,) = atomics_remark([NoLink("nvdisasm is missing.")], result)
    assert "counted lane by lane" in remark
    assert remark.endswith("nvdisasm is missing.")


def test_no_remark_without_such_atomics():
    result = launched("out[threadIdx.x] = x[threadIdx.x];", linked=False)
    assert atomics_remark([NoLink("nvdisasm is missing.")], result) == ()
