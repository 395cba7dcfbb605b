# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared memory that nobody wrote may be read, and what comes of it must not count."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from executor_harness import PTX_HEAD, run_ptx

from gpuprof.executor import FaultKind, KernelFault, load_program

#: One warp. `u` is undefined, of `w` the upper half is, and `v` is in odd lanes. `t` is the thread; `even`
#: tells the even ones. Every thread stores `r`.
KERNEL = """.visible .entry k(.param .u64 k_out)
{
    .reg .pred p, q, even;
    .reg .b16 h, g;
    .reg .b32 t, u, v, w, x, y, r;
    .reg .f32 f, e;
    .reg .b64 o, a, d;
    .shared .align 16 .b8 buf[512];
    .local .align 16 .b8 own[64];
    mov.u32 t, %tid.x;
    ld.param.u64 o, [k_out];
    mad.wide.u32 a, t, 4, o;
    mov.u16 h, 0x1234;
    st.shared.b16 [buf], h;
    st.shared.b32 [buf+12], 9;
    bar.sync 0;
    ld.shared.b32 w, [buf];
    ld.shared.b32 u, [buf+64];
    bar.sync 0;
    and.b32 x, t, 1;
    setp.eq.u32 even, x, 0;
    selp.b32 v, t, u, even;
    mov.u32 r, 7;
    SNIPPET
    st.global.b32 [a], r;
    ret;
}
"""
FIRST = "thread (0, 0, 0) of block (0, 0, 0)"


def line_of(part: str) -> int:
    """The number of the kernel's line with a part."""
    return (PTX_HEAD + KERNEL).partition(part)[0].count("\n") + 1


READ = f"of shared memory, which was never written ({FIRST}); no result depends on it"


def run(snippet: str):
    """Run the kernel; return what it stored and the launch's result."""
    text = KERNEL.replace("SNIPPET", snippet.replace("BAR", "bar.sync 0"))
    (out,), result = run_ptx(text, np.zeros(32, np.uint32), follow_undefined=True)
    return out, result


def fault_of(snippet: str, kind: FaultKind = FaultKind.UNINITIALISED_SHARED) -> KernelFault:
    with pytest.raises(KernelFault) as error:
        run(snippet)
    assert error.value.kind is kind
    return error.value


#: What takes the place of SNIPPET.
TABLE = tomllib.loads((Path(__file__).parent / "definedness.toml").read_text())
VALUES, REGISTERS = TABLE["values"], TABLE["registers"]
USES = {name: (snippet, words) for words, rows in TABLE["uses"].items() for name, snippet in rows.items()}


@pytest.mark.parametrize(("defined", "undefined"), VALUES.values(), ids=VALUES)
def test_what_depends_on_an_undefined_operand(garbage, defined, undefined):
    stored, result = run(defined)
    assert result.remarks == (f"Line {line_of('ld.shared.b32 w')} reads byte 2 {READ}",)
    for seed in range(3):
        garbage(seed)
        assert run(defined)[0].tolist() == stored.tolist()
    fault = fault_of(undefined)
    assert fault.detail.startswith("stores to array 0 a value that depends on byte ")


@pytest.mark.parametrize(("snippet", "words"), USES.values(), ids=USES)
def test_where_an_undefined_value_may_not_arrive(snippet, words):
    fault = fault_of(snippet)
    read = f"which line {line_of('ld.shared.b32 u')} read"
    assert fault.detail.startswith(f"{words} that depends on byte 64 of shared memory, {read}")


@pytest.mark.parametrize(("defined", "undefined"), REGISTERS.values(), ids=REGISTERS)
def test_registers_that_nothing_was_written_to(defined, undefined):
    assert run(defined)[1].remarks
    fault = fault_of(undefined, FaultKind.UNINITIALISED_REGISTER)
    words = "stores to array 0 a value that depends on a register to which nothing had been written"
    assert fault.detail == words
    assert fault.thread == (0, 0, 0)


def test_a_program_knows_the_registers_that_may_be_read_before_they_are_written():
    text = KERNEL.replace("SNIPPET", "@even bra L; mov.b32 y, t; L: @even mov.b32 x, y; add.u32 r, x, 1;")
    program = load_program(PTX_HEAD + text, "k")
    assert program.unwritten == {program.slots.register("y", 0)}
    assert load_program(PTX_HEAD + KERNEL.replace("SNIPPET", ""), "k").unwritten == set()
