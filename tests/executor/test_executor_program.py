# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX text by the letter of its manual, who reads and writes what, and where diverged lanes meet again."""

import numpy as np
import pytest
from each import each
from executor_harness import PTX_HEAD, refused

from gpuprof.executor import UnsupportedInstruction, load_program
from gpuprof.executor.program.constants import content_of
from gpuprof.executor.program.flow import EXIT_BLOCK, End, basic_blocks, reads_and_writes
from gpuprof.executor.program.merge import SharedPlace, merge_shared_accesses
from gpuprof.executor.program.narrowing import narrow_vector_loads
from gpuprof.executor.program.parsing import parse
from gpuprof.executor.program.ptx import Instruction, Label
from gpuprof.executor.program.reconvergence import meet_sooner
from gpuprof.executor.program.source_places import call_line, callers

DECLARED = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<5>; .reg .pred %p<5>; .shared .b32 tile[4];\n"


def body(text: str) -> list[Instruction | Label]:
    """The instructions of a kernel."""
    return parse(f"{PTX_HEAD}.visible .entry k()\n{{\n{DECLARED}{text}\n}}\n").functions["k"].body


def one(text: str) -> Instruction:
    """The only instruction of a kernel."""
    (item,) = body(text)
    return item


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (".visible .entry k() { .reg .b32 %r<2>; ret;", "unbalanced braces"),
        (".visible .entry k() { .section x; }", ".section"),
        (".global .b128 t;", ".global .b128 variable"),
        (".global .u32 t[2] = {f*2};", "initialiser f*2"),
        (".visible .entry ?() { ret; }", "function header"),
    ],
)
def test_syntax_that_is_not_modelled_is_named(text, name):
    with pytest.raises(UnsupportedInstruction) as error:
        parse(PTX_HEAD + text)
    assert (error.value.name, error.value.line) == (name, 0)


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("mov.b64{%r1, %r2}, %rd1;", "mov.b64 {%r1, %r2}, %rd1;"),
        ("st.shared.b32[%r3+4], %r1;", "st.shared.b32 [%r3 + 0x4], %r1;"),
        ("mov.b32%r1, 5;", "mov.b32 %r1, 5;"),
        ("ld.shared.b32 %r1, [%r3+2*4];", "ld.shared.b32 %r1, [%r3+8];"),
        ("add.s32 %r1, %r2, (1 << 4) - 5|3;", "add.s32 %r1, %r2, 11;"),
        ("@ %p1 add.s32 %r1, %r2, 7;", "@%p1 add.s32 %r1, %r2, 7;"),
        ("@! %p1 add.s32 %r1, %r2, 7;", "@!%p1 add.s32 %r1, %r2, 7;"),
    ],
)
def test_blanks_are_where_people_write_them(text, usual):
    assert one(text) == one(usual)


def test_a_parameter_may_be_called_like_a_shared_variable():
    module = parse(".shared .b32 x;\n.func f(.param .b32 x)\n{\nld.param.b32 r, [x];\n}")
    assert module.functions["f"].body[0].opcode == ("ld", "param", "b32")


def test_an_address_that_is_computed_in_the_text_is_named():
    with pytest.raises(UnsupportedInstruction) as error:
        body("ld.shared.b32 %r1, [%r3+%r2];")
    assert error.value.name == "address [%r3+%r2]"


#: Constant expressions and what ptxas 13.0 makes of them, as elements of an array of that type.
CONSTANTS = {
    "s64": """(-1&-1)>>1: -1, ~0>>1: 2**63 - 1, -7 % 3: 0, (7 % -3): 7, (0-1) % 5 - 6 < 0: 0, 1<<65: 2,
        -1>>70: -1, (1<2)-2<0: 1, (2?1U:1)-2<0: 0, -5U/2: 2**63 - 3, 0xFFFFFFFFFFFFFFFF/2: 2**63 - 1,
        -7/2: -3, 1 - - 1: 2, -~3: 4, 010*2: 16, 0B11: 3, -1<1U: 0, -1 < 0?1U:2: 1, 5^3|8&12: 14, 1.5<2.0: 1,
        WARP_SZ*4: 128, (.u64)-1/2: 2**63 - 1, -1+0U>>1: 2**63 - 1, !5: 0, 3 ? 1 : 0 ? 5 : 6: 1, -8>>1: -4""",
    "f32": "1.5*2.0: 0x40400000, 1e39: 0x7f800000, -1e39: 0xff800000, 1.0/3.0: 0x3eaaaaab",
    "none": "7/0: None, 1.5>1: None, ~1.5: None, 1.5?2:3: None, 08: None, 2.5 % 2.0: None, (1: None",
}


def test_constant_expressions_are_what_ptxas_makes_of_them():
    for kind, table in CONSTANTS.items():
        for case in table.split(","):
            text, expected = (part.strip() for part in case.rsplit(":", 1))
            size = 4 if kind == "f32" else 8
            wanted = None if kind == "none" else eval(expected) & ((1 << 8 * size) - 1)
            assert content_of(text, size) == wanted, text


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("add.s32 %r1, %r2, %r3;", "r2 r3", "r1"),
        ("@%p1 add.s32 %r1, %r2, 7;", "p1 r2", "r1"),
        ("ld.shared.v2.b32 {%r1, %r2}, [%r3+4];", "r3", "r1 r2"),
        ("st.shared.v2.b32 [%r3+4], {%r1, %r2};", "r3 r1 r2", ""),
        ("st.shared.b32 [tile], %r1;", "r1", ""),
        ("red.shared.add.u32 [%r1], %r2;", "r1 r2", ""),
        ("atom.shared.cas.b32 %r1, [%r2], %r3, %r4;", "r2 r3 r4", "r1"),
        ("setp.lt.s32 %p1, %r1, %r2;", "r1 r2", "p1"),
        ("setp.lt.s32 %p1|%p2, %r1, %r2;", "r1 r2", "p1 p2"),
        ("setp.lt.and.s32 %p1, %r1, %r2, %p3;", "r1 r2 p3", "p1"),
        ("setp.lt.xor.s32 %p1|%p2, %r1, %r2, !%p3;", "r1 r2 p3", "p1 p2"),
        ("shfl.sync.down.b32 %r1, %r2, 1, 31, -1;", "r2", "r1"),
        ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", "r2", "r1 p1"),
        ("shfl.down.b32 %r1, %r2, 1, 31;", "r2", "r1"),
        ("shfl.down.b32 %r1|%p1, %r2, 1, 31;", "r2", "r1 p1"),
        ("elect.sync %r1|%p1, %r2;", "r2", "r1 p1"),
        ("match.all.sync.b32 %r1, %r2, %r3;", "r2 r3", "r1"),
        ("match.all.sync.b32 %r1|%p1, %r2, %r3;", "r2 r3", "r1 p1"),
        ("match.any.sync.b32 %r1, %r2, %r3;", "r2 r3", "r1"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 4;", "r1 rd1", ""),
        ("mov.b64 %rd1, {%r1, %r2};", "r1 r2", "rd1"),
        ("mov.b64 {%r1, %r2}, %rd1;", "rd1", "r1 r2"),
        ("mov.u32 %r1, tile;", "", "r1"),
        ("bar.sync %r1, %r2;", "r1 r2", ""),
        ("barrier.sync %r1;", "r1", ""),
    ],
)
def test_what_instructions_read_and_write(text, reads, writes):
    found = reads_and_writes(one(text))
    assert [" ".join(name.removeprefix("%") for name in names) for names in found] == [reads, writes]


def widths(text: str, alignment: int = 256) -> list[int]:
    """Bytes of each shared-memory access of a kernel after merging; `tile` is aligned as given."""
    blocks = basic_blocks(body(text))
    merge_shared_accesses(blocks, {"tile": SharedPlace(alignment)})
    accesses = [item for block in blocks for item in block.body if item.opcode[0] in ("ld", "st")]
    kinds = {"v2": 2, "v4": 4}
    return [
        int(item.opcode[-1][1:]) // 8 * next((kinds[part] for part in item.opcode if part in kinds), 1)
        for item in accesses
    ]


SYNC = "bar.warp.sync -1;"
LOAD, STORE = "ld.shared.b32 %r{0}, [tile+{1}];", "st.shared.b32 [tile+{1}], %r{0};"


def pieces(form: str, *offsets: int, between: str = "") -> str:
    return between.join(form.format(i + 1, offset) for i, offset in enumerate(offsets))


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        (pieces(LOAD, 0, 4), [8]),
        (pieces(LOAD, 4, 8), [4, 4]),
        (pieces(LOAD, 0, 4, 12), [16]),  # one word in vain
        (pieces(LOAD, 0, 12), [4, 4]),
        (pieces(LOAD, 0, 4, 0), [8]),  # what a register holds is not loaded again
        (pieces(LOAD, 12, 0, 8, 4), [16]),
        (pieces(LOAD, 0, 4, 8, 12, 16, 20), [16, 8]),
        (pieces(LOAD, -16, -12, -8, -4), [16]),
        (pieces(STORE, 0, 4, 8, 12), [16]),
        (pieces(STORE, 0, 4, 12), [8, 4]),
        (pieces(STORE, 4, 0), [8]),
        (pieces(LOAD, 0, 4, between="bar.warp.sync -1;"), [4, 4]),
        (pieces(LOAD, 0, 4, between="st.global.b32 [%rd1], %r8;"), [8, 4]),
        (pieces(LOAD, 0, 4, between="st.shared.b32 [%r8], %r8;"), [4, 4, 4]),
        (pieces(LOAD, 0, 4, between="ld.shared.b32 %r8, [%r7];"), [8, 4]),
        (pieces(STORE, 0, 4, between="ld.shared.b32 %r8, [%r7];"), [4, 4, 4]),
        (pieces(STORE, 0, 4, between="st.shared.b32 [%r7], %r8;"), [4, 4, 4]),
        (pieces(STORE, 0, 4, between=f"{SYNC} st.shared.b32 [%r7], %r8; {SYNC}"), [4, 4, 4]),
        (pieces(LOAD, 0, 4, between=f"{SYNC} ld.shared.b32 %r8, [%r7];"), [4, 4, 4]),
        (pieces(STORE, 0, 4, between="mov.u32 %r1, 5;"), [4, 4]),  # what is stored changes
        (pieces(STORE, 0, 4, between="mov.u32 %r2, 5;"), [8]),
        (pieces(LOAD, 0, 4, between="mov.u32 %r3, %r2;"), [4, 4]),  # reads what would be loaded earlier
        (pieces(LOAD, 0, 4, between="mov.u32 %r2, 1;"), [4, 4]),
        (pieces(LOAD, 0, 4, between="mov.u32 %r3, %r1;"), [8]),
        (pieces(LOAD, 0, 4).replace("%r2", "%r1"), [4, 4]),  # both into one register
        (pieces(LOAD, 0, 4, between="L: "), [4, 4]),
        ("@%p1 " + pieces(LOAD, 0, 4, between="@%p1 "), [4, 4]),
        ("ld.shared.v2.b32 {%r1, %r2}, [tile]; ld.shared.v2.b32 {%r3, %r4}, [tile+8];", [16]),
        ("ld.shared.v2.b32 {%r1, %r2}, [tile]; ld.shared.b32 %r3, [tile+8];", [16]),
        ("ld.shared.b64 %rd1, [tile]; ld.shared.f64 %rd2, [tile+8];", [16]),
        ("ld.shared.b64 %rd1, [tile]; ld.shared.b32 %r2, [tile+8]; ld.shared.b32 %r3, [tile+12];", [8, 8]),
        ("ld.shared.u8 %r1, [tile]; ld.shared.u8 %r2, [tile+1];", [1, 1]),
        ("ld.global.b32 %r1, [%rd1]; ld.global.b32 %r2, [%rd1+4];", [4, 4]),
        ("ld.shared.b32 %r1, [%r1]; ld.shared.b32 %r2, [%r1+4];", [4, 4]),  # the address itself changes
        ("shl.b32 %r1, %r3, 4; ld.shared.b64 %rd2, [%r1]; ld.shared.b64 %rd4, [%r1+8];", [16]),
        (
            "shl.b32 %r1, %r3, 4; ld.shared.b64 %rd2, [%r1];"
            " add.s32 %r1, %r1, 16; ld.shared.b64 %rd4, [%r1+8];",
            [8, 8],
        ),
    ],
)
def test_accesses_merge_where_nothing_between_them_could_tell(text, merged):
    assert sorted(widths(text)) == sorted(merged)


@pytest.mark.parametrize(
    ("vector", "used", "loads"),
    [
        ("v4.b32", "0", "b32+0"),
        ("v4.b32", "23", "v2.b32+8"),
        ("v4.b32", "12", "b32+4 b32+8"),  # in no aligned half
        ("v4.b32", "03", "b32+0 b32+12"),
        ("v4.b32", "123", "v4.b32+0 | b32+4 v2.b32+8"),
        ("v4.b32", "013", "v4.b32+0 | v2.b32+0 b32+12"),
        ("v4.b32", "", "v4.b32+0"),
        ("v4.b16", "23", "v2.b16+4"),
        ("v4.b16", "12", "v4.b16+0"),
        ("v2.b64", "1", "b64+8"),
        ("v4.b8", "0", "v4.b8+0"),
        ("volatile.v4.b32", "0", "volatile.v4.b32+0"),
        ("acquire.gpu.v4.b32", "3", "acquire.gpu.b32+12"),
    ],
)
@pytest.mark.parametrize("space", ["global", "shared", "local", "const", "weak"])
def test_of_a_vector_what_is_used_is_loaded(space, vector, used, loads):
    """Three words of local, constant and generic memory are loaded as two and one."""
    *kept, form, kind = vector.split(".")
    name = {"b64": "%rd"}.get(kind, "%r")
    values = ", ".join(f"{name}{i}" for i in range(int(form[1])))
    text = f"ld.{'.'.join([*kept, space, form, kind])} {{{values}}}, [%rd8+32];"
    reads = "".join(f"st.global.{kind} [%rd7], {name}{i};" for i in used)
    blocks = basic_blocks(body(text + reads))
    narrow_vector_loads(blocks)
    found = [item for item in blocks[0].body if item.opcode[0] == "ld"]
    shown = [
        f"{'.'.join(part for part in item.opcode[1:] if part != space)}+{item.operands[1].offset - 32}"
        for item in found
    ]
    near, *far = loads.split(" | ")
    assert shown == (far[0] if far and space not in ("global", "shared") else near).split()


def meeting_points(successors: list[tuple[int, ...]]) -> list[int]:
    """Immediate post-dominators by definition: on every way from here to the end, and the first such."""
    count = len(successors)

    def reaches_end_without(start: int, without: int) -> bool:
        seen, todo = set(), [start]
        while todo:
            here = todo.pop()
            if here == without or here in seen:
                continue
            if here == EXIT_BLOCK:
                return True
            seen.add(here)
            todo += successors[here]
        return False

    dominators = [
        {p for p in (*range(count), EXIT_BLOCK) if p != b and not reaches_end_without(b, p)}
        for b in range(count)
    ]
    return [
        next(
            (p for p in found if all(q == p or p == EXIT_BLOCK or q in dominators[p] for q in found)),
            EXIT_BLOCK,
        )
        for found in (sorted(some, key=lambda p: p == EXIT_BLOCK) for some in dominators)
    ]


@each(seed=range(60))
def test_lanes_meet_where_every_way_that_does_not_end_early_passes(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 9))
    lines = []
    for number in range(count):
        lines.append(f"L{number}: mov.u32 %r1, {number};")
        # Forwards mostly, so that the end can be reached from everywhere.
        later = int(rng.integers(number + 1, count + 1))
        any_block = int(rng.integers(count)) if rng.random() < 0.3 else later
        kind = rng.choice(["branch", "jump", "fall", "leave"], p=[0.5, 0.2, 0.2, 0.1])
        if kind == "branch":
            lines.append(f"@%p1 bra L{any_block};")
        elif kind == "jump":
            lines.append(f"bra L{later};")
        elif kind == "leave":
            lines.append("@!%p2 ret;")
    lines.append(f"L{count}: mov.u32 %r1, 99; ret;")
    blocks = basic_blocks(body("\n".join(lines)))
    ways = [tuple(s for s in b.successors if s != EXIT_BLOCK) or b.successors for b in blocks]
    reachable_end = meeting_points(ways)
    for block, expected in zip(blocks, reachable_end, strict=True):
        if block.end is End.BRANCH:
            assert block.rejoin == expected, (seed, [b.successors for b in blocks])


@each(
    case=[
        ("mov.u64 %rd1, nowhere; ret;", "symbol nowhere"),
        ("L: brx.idx %r1, table;", "brx.idx"),  # its table is nowhere
        ("mov.b64 {%r1, %r2}, {%r3, %r4}; ret;", "mov.b64"),
    ]
)
def test_what_is_not_modelled_is_named(case):
    text, name = case
    program = load_program(f"{PTX_HEAD}.visible .entry k()\n{{\n{DECLARED}{text}\n}}\n", "k")
    assert refused(program).name == name


#: A kernel of file 2, that calls what stands in its file and in a header, which calls another header.
INLINED = """.visible .entry other() {
.loc 1 5 0
}
.visible .entry k() {
.loc 2 10 0
.loc 2 4 3, function_name $L, inlined_at 2 12 5
bar.sync 0;
.loc 7 4 3, function_name $L, inlined_at 2 13 5
.loc 9 8 1, function_name $L, inlined_at 7 4 3
bar.sync 0;
.loc 2 14 1
ret;
}
"""


def test_only_lines_of_the_kernels_own_file_call():
    at = {text: number for number, text in enumerate(INLINED.splitlines(), 1)}
    lines = INLINED.splitlines()
    first, second = (number for number, text in enumerate(lines, 1) if text == "bar.sync 0;")
    assert [call_line(INLINED, "k", number) for number in (first, second, at["ret;"])] == [12, 0, 0]
    assert [callers(INLINED, "k", line) for line in (4, 8, 14)] == [[12], [], []]


#: A loop that `leave` leads out of, in a branch; alone, in a loop, and in one that it may also leave.
_LOOP = """{0}: @%p1 bra {0}_on;
  ld.shared.b32 %r1, [tile]; {1}
  st.shared.b32 [tile], %r1;
{0}_on: add.u32 %r1, %r1, 1; @%p2 bra {0};
"""
_ONCE = _LOOP.format("a", "@%p3 bra out;")
#: A loop that its first test leaves too, and two ways to b, past which others lead to c.
_LEFT = "a: @%p1 bra c; @%p2 bra a; {} bra.uni out; c: {}"
_PAST = "@%p1 bra d; @%p2 bra b; @%p3 bra c; st.shared.b32 [tile], %r1; b: {} bra.uni out; d: {} c: {}"
_LOAD, _ADD = "ld.shared.b32 %r1, [tile];", "add.u32 %r1, %r1, 1;"


@pytest.mark.parametrize(
    ("text", "sooner"),
    [
        (_ONCE, {0: 3, 1: 2}),
        (f"o: mov.u32 %r1, 1; {_ONCE} st.shared.b32 [tile], %r2; @%p4 bra o;", {1: 4, 2: 3, 4: 5}),
        ("o: mov.u32 %r1, 1;" + _LOOP.format("a", "@%p3 bra end;") + "end: @%p4 bra o;", {1: 4, 2: 3}),
        # ptxas gives lanes that stay in the inner loop no place of their own where others leave the outer.
        (
            "o: mov.u32 %r1, 1;" + _LOOP.format("a", "@%p3 bra out; @%p4 bra end;") + "end: @%p4 bra o;",
            {1: 6, 2: 3, 3: 6, 5: 6},
        ),
        (_LOOP.format("a", "@%p3 ret;"), {}),
        (
            _ONCE.replace("ld.shared", "ld.volatile.shared").replace("@%p1", "setp.eq.u32 %p2, %r1, 0; @%p1"),
            {},
        ),
        # Behind a loop if there is as much to do as where it is left otherwise.
        (_LEFT.format(_LOAD, _LOAD), {0: 1, 1: 2}),
        (_LEFT.format(_LOAD, _LOAD + _ADD), {0: 1}),
        (_LEFT.format(11 * _ADD, _ADD), {0: 1, 1: 2}),
        (_LEFT.format(10 * _ADD, _ADD), {0: 1}),
        ("@%p4 bra e; " + _LEFT.format("e: " + _LOAD, _LOAD), {1: 2}),  # not around it
        # Where two ways lead, at the place with most to do, if that is enough.
        (_PAST.format(_LOAD, "", ""), {1: 4, 2: 3}),
        (_PAST.format(_LOAD, "@%p4 bra out;", _LOAD), {1: 4, 2: 3}),
        (_PAST.format(_LOAD, "@%p4 bra out;", _LOAD + _ADD), {0: 6, 1: 2, 2: 6, 5: 6}),
        (_PAST.format(_ADD, "@%p4 bra out;", _ADD), {}),
    ],
)
def test_lanes_meet_before_those_that_left(text, sooner):
    blocks = basic_blocks(body(f"{text}\nout: st.shared.b32 [tile], %r3; ret;"))
    meet_sooner(blocks)
    assert {n: block.sooner for n, block in enumerate(blocks) if block.sooner is not None} == sooner
    left = {block.rejoin for block in blocks if block.sooner is not None}
    assert {n for n, block in enumerate(blocks) if block.left_to} == left
