# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What lines of PTX say of the machine code made of them."""

from gpuprof.machine_code.linking import PtxText

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
