# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Machine code as nvdisasm prints it, cut into blocks."""

import pytest

from gpuprof.errors import BackendUnavailable
from gpuprof.machine_code import disassembler
from gpuprof.machine_code.disassembler import disassemble
from gpuprof.machine_code.sass import read_machine_code

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


def test_instructions_know_their_guard_and_the_line_of_the_ptx(code):
    ones = [one for block in code.blocks for one in block.instructions]
    assert [one.address for one in ones] == [16 * i for i in range(11)]
    assert [one.line for one in ones] == [20, 22, 22, 25, 25, 25, 30, 30, 30, 30, 30]
    store = ones[6]
    assert (store.guard, store.opcode, store.name) == ("", "STG.E.128", "STG")
    assert store.operands == "desc[UR4][R2.64+-0x10], R4"
    assert ones[2].guard == "!P0"


def test_blocks_follow_each_other(code):
    assert code.complete
    ways = [block.successors for block in code.blocks]
    #   0 entry  1 call  2 loop  3 BSYNC  4 store, EXIT  5 BRX  6 EXIT  7 subroutine
    assert ways == [(2, 1), (2,), (2, 3), (4,), (5,), (2, 6), (), ()]
    assert [block.leaves for block in code.blocks] == [False] * 4 + [True, False, True, True]
    assert code.blocks[1].callee == 7
    assert [block.subroutine for block in code.blocks] == [False] * 7 + [True]


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
        raise disassembler.PackageNotFoundError(name)

    monkeypatch.setattr(disassembler, "distribution", absent)
    monkeypatch.setattr(disassembler.shutil, "which", lambda name, path: None)
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
