# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared memory that nobody wrote may be read, and what comes of it must not count."""

import numpy as np
import pytest

from gpuprof.executor import Definedness, FaultKind, GlobalMemory, KernelFault, launch, load_program

#: One warp. `u` is undefined, of `w` the upper half is, and `v` is in odd lanes. `t` is the thread; `even`
#: tells the even ones. Every thread stores `r`.
KERNEL = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_out)
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
READ = f"of shared memory, which was never written ({FIRST}); no result depends on it"


def run(snippet: str):
    """Run the kernel; return what it stored and the launch's result."""
    text = KERNEL.replace("SNIPPET", snippet.replace("BAR", "bar.sync 0"))
    memory = GlobalMemory()
    out = memory.allocate(np.zeros(32, np.uint32), "out")
    program = load_program(text, "k", observer=Definedness())
    result = launch(program, (1, 1, 1), (32, 1, 1), [out], memory)
    return out.array(), result


def fault_of(snippet: str, kind: FaultKind = FaultKind.UNINITIALISED_SHARED) -> KernelFault:
    with pytest.raises(KernelFault) as error:
        run(snippet)
    assert error.value.kind is kind
    return error.value


#: Results that an undefined operand leaves defined, and the same with the undefined part in the result.
VALUES = {
    "and with zeros": ("and.b32 r, u, 0;", "and.b32 r, u, 4;"),
    "and with a mask": ("and.b32 r, w, 0xffff;", "and.b32 r, w, 0x1ffff;"),
    "or with ones": ("or.b32 r, u, -1;", "or.b32 r, u, 1;"),
    "or of halves": ("or.b32 r, w, 0xffff0000;", "or.b32 r, w, 0xfffe0000;"),
    "xor with itself": ("xor.b32 r, u, u;", "xor.b32 r, u, t;"),
    "not": ("not.b32 x, w; and.b32 r, x, 0xffff;", "not.b32 r, w;"),
    "lop3": ("lop3.b32 r, w, 0xffff, t, 0xc0;", "lop3.b32 r, w, 0xffff, t, 0x96;"),
    "a target that is an operand": (
        "mov.b32 r, 3; shl.b32 r, w, r; and.b32 r, r, 0x7ffff;",
        "mov.b32 r, 0xfffff; and.b32 r, w, r;",
    ),
    "shl": ("shl.b32 r, w, 16;", "shl.b32 r, w, 15;"),
    "shr": ("shl.b32 x, w, 16; shr.u32 r, x, 3;", "shr.u32 r, w, 3;"),
    "shr of the sign": ("shl.b32 x, w, 16; shr.s32 r, x, 3;", "and.b32 x, w, 0x80000000; shr.s32 r, x, 31;"),
    "shift amount": ("shl.b32 r, t, 3;", "shl.b32 r, t, u;"),
    "funnel shift": ("shf.l.wrap.b32 r, t, w, 16;", "shf.l.wrap.b32 r, w, t, 16;"),
    "bfe": ("bfe.u32 r, w, 3, 13;", "bfe.u32 r, w, 3, 14;"),
    "bfe of the sign": ("bfe.s32 r, w, 3, 13;", "bfe.s32 r, w, 3, 14;"),
    "bfe's place": ("bfe.u32 r, t, 1, 2;", "bfe.u32 r, t, w, 2;"),
    "bfi": ("bfi.b32 r, t, w, 16, 16;", "bfi.b32 r, t, w, 15, 16;"),
    "prmt": ("prmt.b32 r, w, t, 0x4410;", "prmt.b32 r, w, t, 0x4210;"),
    "prmt's selector": ("prmt.b32 r, t, t, 0x3210;", "prmt.b32 r, t, t, u;"),
    "brev": ("brev.b32 x, w; shr.u32 r, x, 16;", "brev.b32 x, w; and.b32 r, x, 0xffff;"),
    "cvt cuts off": ("cvt.u16.u32 h, w; cvt.u32.u16 r, h;", "cvt.u64.u32 d, w; cvt.u32.u64 r, d;"),
    "cvt extends": ("cvt.s32.s8 r, w;", "cvt.s64.s32 d, w; shr.u64 d, d, 40; cvt.u32.u64 r, d;"),
    "cvt to float": ("cvt.rn.f32.u16 f, h; mov.b32 r, f;", "cvt.rn.f32.u32 f, w; mov.b32 r, f;"),
    "mov unpacks": ("mov.b32 {h, g}, w; mov.b32 r, {h, h};", "mov.b32 {h, g}, w; mov.b32 r, {h, g};"),
    "mov packs": ("mov.b64 d, {t, u}; mov.b64 {r, x}, d;", "mov.b64 d, {t, u}; mov.b64 {x, r}, d;"),
    "selp": ("setp.lt.u32 p, t, 99; selp.b32 r, t, u, p;", "setp.lt.u32 p, t, 9; selp.b32 r, t, u, p;"),
    "selp of a constant": (
        "setp.lt.u32 p, t, 99; selp.b32 r, -1, u, p;",
        "setp.lt.u32 p, t, 9; selp.b32 r, -1, u, p;",
    ),
    "selp's predicate": ("selp.b32 r, 1, 2, even;", "setp.eq.u32 p, u, 0; selp.b32 r, 1, 2, p;"),
    "slct": ("slct.b32.s32 r, t, u, 0;", "slct.b32.s32 r, u, t, 0;"),
    "slct's sign": ("slct.b32.s32 r, t, t, 1;", "slct.b32.s32 r, t, 9, u;"),
    "a sum's lower bits": (
        "add.u32 x, w, t; sub.u32 x, x, 3; and.b32 r, x, 0xffff;",
        "shr.u32 x, w, 1; add.u32 x, x, t; and.b32 r, x, 0xffff;",
    ),
    "a product's lower bits": (
        "mad.lo.u32 x, w, 5, w; mul.wide.u32 d, x, 3; cvt.u32.u64 x, d; and.b32 r, x, 0xffff;",
        "mul.hi.u32 r, w, 5;",
    ),
    "an extreme": ("min.u32 r, t, 3;", "min.u32 x, w, t; and.b32 r, x, 0xffff;"),
    "division": ("div.u32 r, t, 3;", "div.u32 r, t, w;"),
    "float arithmetic": (
        "mov.b32 f, t; fma.rn.f32 e, f, f, f; mov.b32 r, e;",
        "mov.b32 f, u; mul.rn.f32 e, f, 0f00000000; mov.b32 r, e;",
    ),
    "double": ("cvt.f64.f32 d, 0f3f800000; mov.b64 {x, r}, d;", "cvt.f64.f32 d, u; mov.b64 {x, r}, d;"),
    "narrowing": ("mov.b64 d, {t, t}; popc.b64 r, d;", "mov.b64 d, {t, u}; popc.b64 r, d;"),
    "packed halves": ("add.f16x2 x, w, w; and.b32 r, x, 0xffff;", "add.f16x2 x, w, w; shr.u32 r, x, 16;"),
    "packed bfloats": (
        "fma.rn.bf16x2 x, w, w, t; and.b32 r, x, 0xffff;",
        "fma.rn.bf16x2 x, w, w, t; and.b32 r, x, 0x10000;",
    ),
    "packing halves": (
        "mov.b32 f, u; mov.b32 e, t; cvt.rn.f16x2.f32 x, f, e; and.b32 r, x, 0xffff;",
        "mov.b32 f, u; mov.b32 e, t; cvt.rn.f16x2.f32 x, e, f; and.b32 r, x, 0xffff;",
    ),
    "packing with a literal": (
        "mov.b32 f, u; cvt.rn.f16x2.f32 x, 0f3f800000, f; shr.u32 r, x, 16;",
        "mov.b32 f, u; cvt.rn.f16x2.f32 x, f, 0f3f800000; shr.u32 r, x, 16;",
    ),
    "packing bytes": (
        "mov.b32 f, u; mov.b32 e, t; cvt.rn.satfinite.e4m3x2.f32 h, f, e; cvt.u32.u8 r, h;",
        "mov.b32 f, u; mov.b32 e, t; cvt.rn.satfinite.e4m3x2.f32 h, e, f; cvt.u32.u8 r, h;",
    ),
    "bytes to halves and back": (
        "mov.b32 f, u; cvt.rn.satfinite.e5m2x2.f32 h, f, 0f3f800000; cvt.rn.f16x2.e5m2x2 x, h;"
        " cvt.rn.satfinite.e4m3x2.f16x2 h, x; cvt.u32.u8 r, h;",
        "mov.b32 f, u; cvt.rn.satfinite.e5m2x2.f32 h, f, 0f3f800000; cvt.rn.f16x2.e5m2x2 x, h;"
        " shr.u32 r, x, 16;",
    ),
    "a half": (
        "mov.b32 {h, g}, w; add.f16 h, h, h; cvt.u32.u16 r, h;",
        "mov.b32 {h, g}, w; add.f16 h, h, g; cvt.u32.u16 r, h;",
    ),
    "carry": ("add.cc.u32 x, t, 1; addc.u32 r, 0, 0;", "add.cc.u32 x, u, 1; addc.u32 r, 0, 0;"),
    "carry after a defined sum": (
        "add.cc.u32 x, u, 1; add.cc.u32 x, t, 1; addc.u32 r, 0, 0;",
        "add.cc.u32 x, t, 1; addc.cc.u32 x, u, 1; addc.u32 r, 0, 0;",
    ),
    "and of predicates": (
        "setp.eq.u32 p, u, 0; setp.gt.u32 q, t, 99; and.pred p, p, q; selp.b32 r, 1, 2, p;",
        "setp.eq.u32 p, u, 0; setp.gt.u32 q, t, 30; and.pred p, p, q; selp.b32 r, 1, 2, p;",
    ),
    "setp with and": (
        "setp.gt.u32 q, t, 99; setp.eq.and.u32 p, u, 0, q; selp.b32 r, 1, 2, p;",
        "setp.gt.u32 q, t, 99; setp.eq.and.u32 p, u, 0, !q; selp.b32 r, 1, 2, p;",
    ),
    "setp with or": (
        "setp.gt.u32 q, t, 99; setp.eq.or.u32 p, u, 0, !q; selp.b32 r, 1, 2, p;",
        "setp.gt.u32 q, t, 99; setp.eq.or.u32 p, u, 0, q; selp.b32 r, 1, 2, p;",
    ),
    "setp with an undefined predicate": (
        "setp.eq.u32 p, t, 0; setp.eq.and.u32 p, t, 0, p; selp.b32 r, 1, 2, p;",
        "setp.eq.u32 p, u, 0; setp.lt.and.u32 p, t, 99, p; selp.b32 r, 1, 2, p;",
    ),
    "setp's second predicate": (
        "setp.eq.u32 p|q, t, 0; selp.b32 r, 1, 2, q;",
        "setp.eq.u32 p|q, u, 0; selp.b32 r, 1, 2, q;",
    ),
    "vectors": ("ld.shared.v2.b32 {x, r}, [buf+8];", "ld.shared.v2.b32 {r, x}, [buf+8];"),
    "longer vectors": ("ld.shared.v4.b32 {w, x, y, r}, [buf];", "ld.shared.v4.b32 {w, x, r, y}, [buf];"),
    "an element that no register gets": (
        "ld.shared.v4.b32 {_, _, _, r}, [buf];",
        "ld.shared.v4.b32 {_, r, _, _}, [buf];",
    ),
    "part of a word": (
        "ld.shared.u8 x, [buf+1]; ld.shared.u16 r, [buf]; add.u32 r, r, x;",
        "ld.shared.u16 r, [buf+2];",
    ),
    "the sign of a byte": (
        "ld.shared.u8 x, [buf+64]; shr.u32 r, x, 8;",
        "ld.shared.s8 x, [buf+64]; shr.u32 r, x, 8;",
    ),
    "shfl": ("shfl.sync.idx.b32 r, v, 4, 31, -1;", "shfl.sync.idx.b32 r, v, 5, 31, -1;"),
    "shfl of every lane": ("shfl.sync.bfly.b32 r, t, 1, 31, -1;", "shfl.sync.bfly.b32 r, v, 1, 31, -1;"),
    "shfl's predicate": (
        "shfl.sync.down.b32 _|p, u, 1, 31, -1; selp.b32 r, 1, 2, p;",
        "shfl.sync.down.b32 x|p, t, u, 31, -1; selp.b32 r, 1, 2, p;",
    ),
    "shfl's lane": ("shfl.sync.idx.b32 r, t, t, 31, -1;", "shfl.sync.idx.b32 r, t, v, 31, -1;"),
    "shfl of the lane itself": (
        "@even shfl.sync.idx.b32 x, v, v, 31, 0x55555555; mov.b32 r, t;",
        "@even shfl.sync.idx.b32 r, t, t, 31, 0x55555555; shfl.sync.idx.b32 r, v, v, 31, -1;",
    ),
    "ballot": (
        "setp.gt.u32 p, v, 6; vote.sync.ballot.b32 x, p, -1; and.b32 r, x, 0x55555555;",
        "setp.gt.u32 p, v, 6; vote.sync.ballot.b32 x, p, -1; and.b32 r, x, 0x55555557;",
    ),
    "vote.any": (
        "setp.gt.u32 p, v, 6; vote.sync.any.pred q, p, -1; selp.b32 r, 1, 2, q;",
        "setp.gt.u32 p, v, 99; vote.sync.any.pred q, p, -1; selp.b32 r, 1, 2, q;",
    ),
    "vote.all": (
        "setp.gt.u32 p, v, 6; vote.sync.all.pred q, p, -1; selp.b32 r, 1, 2, q;",
        "setp.lt.u32 p, v, 99; vote.sync.all.pred q, p, -1; selp.b32 r, 1, 2, q;",
    ),
    "vote.uni": (
        "setp.gt.u32 p, t, 6; vote.sync.uni.pred q, p, -1; selp.b32 r, 1, 2, q;",
        "setp.gt.u32 p, v, 6; vote.sync.uni.pred q, p, -1; selp.b32 r, 1, 2, q;",
    ),
    "match.any": ("match.any.sync.b32 r, t, -1;", "match.any.sync.b32 r, v, -1;"),
    "match.all": (
        "match.all.sync.b32 r|p, t, -1; selp.b32 r, r, 5, p;",
        "match.all.sync.b32 x|p, v, -1; selp.b32 r, 1, 2, p;",
    ),
    "redux": ("redux.sync.add.u32 r, t, -1;", "redux.sync.add.u32 r, v, -1;"),
    "redux of some lanes": (
        "@even redux.sync.add.u32 r, v, 0x55555555;",
        "@!even redux.sync.add.u32 r, v, 0xaaaaaaaa;",
    ),
    "activemask": ("activemask.b32 r;", "activemask.b32 r; xor.b32 r, r, u;"),
    "guarded move": ("mov.b32 r, t; @even mov.b32 r, v;", "mov.b32 r, t; @!even mov.b32 r, v;"),
    "overwritten": ("mov.b32 r, u; mov.b32 r, t;", "mov.b32 r, t; mov.b32 r, u;"),
    "overwritten in some lanes": ("mov.b32 r, v; @!even mov.b32 r, t;", "mov.b32 r, u; @!even mov.b32 r, t;"),
    "shared memory": (
        "st.shared.b32 [buf+128], u; BAR; st.shared.b32 [buf+128], 5; BAR; ld.shared.b32 r, [buf+128];",
        "st.shared.b32 [buf+128], 5; BAR; st.shared.b32 [buf+128], u; BAR; ld.shared.b32 r, [buf+128];",
    ),
    "shared memory by halves": (
        "st.shared.b32 [buf+128], w; BAR; ld.shared.u16 r, [buf+128];",
        "st.shared.b32 [buf+128], w; BAR; ld.shared.u16 r, [buf+130];",
    ),
    "shared memory by vectors": (
        "st.shared.v2.b32 [buf+128], {5, u}; BAR; ld.shared.b32 r, [buf+128];",
        "st.shared.v2.b32 [buf+128], {5, u}; BAR; ld.shared.b32 r, [buf+132];",
    ),
    "local memory": (
        "st.local.b32 [own+8], u; st.local.b32 [own+4], t; ld.local.b32 r, [own+4];",
        "st.local.b32 [own+8], u; ld.local.b32 r, [own+8];",
    ),
    "local memory of some lanes": (
        "st.local.b32 [own], u; @!even st.local.b32 [own], t; @!even ld.local.b32 r, [own];",
        "st.local.v2.b32 [own], {t, v}; ld.local.b32 r, [own+4];",
    ),
    "generic addresses": (
        "mov.u64 d, buf; cvta.shared.u64 d, d; ld.u16 r, [d];",
        "mov.u64 d, buf; cvta.shared.u64 d, d; ld.u16 r, [d+2];",
    ),
    "generic stores": (
        "mov.u64 d, own; cvta.local.u64 d, d; st.b32 [d], u; st.b32 [d], t; ld.b32 r, [d];",
        "mov.u64 d, own; cvta.local.u64 d, d; st.b32 [d], t; st.b32 [d], u; ld.b32 r, [d];",
    ),
    "shared atomics": (
        "atom.shared.exch.b32 x, [buf+64], 5; BAR; ld.shared.b32 r, [buf+64];",
        "atom.shared.add.u32 x, [buf+64], 5; BAR; ld.shared.b32 r, [buf+64];",
    ),
    "what atomics return": ("red.shared.add.u32 [buf+64], 5;", "atom.shared.exch.b32 r, [buf+64], 5;"),
}


@pytest.mark.parametrize(("defined", "undefined"), VALUES.values(), ids=VALUES)
def test_what_depends_on_an_undefined_operand(garbage, defined, undefined):
    stored, result = run(defined)
    assert result.remarks == (f"Line 0 reads byte 2 {READ}",)
    for seed in range(3):
        garbage(seed)
        assert run(defined)[0].tolist() == stored.tolist()
    fault = fault_of(undefined)
    assert fault.detail.startswith("stores to out a value that depends on byte ")


#: Where no undefined value may arrive, and what the fault calls it.
USES = {
    "address of a global load": (
        "cvt.u64.u32 d, u; add.u64 d, d, o; ld.global.b32 x, [d];",
        "accesses memory at a value",
    ),
    "address of a shared load": ("ld.shared.b32 x, [u];", "accesses memory at a value"),
    "address of a global store": (
        "cvt.u64.u32 d, v; add.u64 d, d, o; st.global.b32 [d], t;",
        "accesses memory at a value",
    ),
    "address of a shared store": ("st.shared.b32 [u], t;", "accesses memory at a value"),
    "address of an atomic operation": (
        "cvt.u64.u32 d, u; add.u64 d, d, o; red.global.add.u32 [d], t;",
        "accesses memory at a value",
    ),
    "generic address": ("cvt.u64.u32 d, u; add.u64 d, d, o; ld.b32 x, [d];", "accesses memory at a value"),
    "local address": ("cvt.u64.u32 d, u; ld.local.b32 x, [d];", "accesses memory at a value"),
    "generic store to global memory": ("st.b32 [a], u;", "stores to out a value"),
    "half of a stored vector": (
        "setp.eq.u32 q, t, 0; @q st.global.v2.b32 [o], {t, u};",
        "stores to out a value",
    ),
    "guard": ("setp.eq.u32 p, u, 0; @p mov.b32 r, t;", "predicates an instruction on a value"),
    "branch": ("setp.eq.u32 p, u, 0; @p bra L; mov.b32 r, t; L:", "branches on a value"),
    "branch of one lane": (
        "setp.lt.u32 p, v, 3; @!even bra L; @p bra L; mov.b32 r, 2; L: @p bra M; mov.b32 r, t; M:",
        "branches on a value",
    ),
    "number of a barrier": ("and.b32 x, u, 1; bar.sync x;", "gives a barrier a value"),
    "threads of a barrier": ("bar.sync 1, u;", "gives a barrier a value"),
    "argument of an atomic operation": (
        "atom.global.add.u32 x, [o], u;",
        "gives an atomic operation a value",
    ),
    "argument of a reduction": ("red.global.add.u32 [o], v;", "gives an atomic operation a value"),
    "argument of a shared atomic": (
        "atom.shared.cas.b32 x, [buf], t, u;",
        "gives an atomic operation a value",
    ),
    "mask of a warp operation": (
        "or.b32 x, u, 1; vote.sync.any.pred p, even, x;",
        "takes as the mask of a warp operation a value",
    ),
    "mask of syncwarp": ("bar.warp.sync u;", "gives a barrier a value"),
    "address of an asynchronous copy": (
        "cvt.u64.u32 d, u; add.u64 d, d, o; cp.async.ca.shared.global [buf+128], [d], 4;",
        "gives an asynchronous copy a value",
    ),
    "size of an asynchronous copy": (
        "cp.async.ca.shared.global [buf+128], [o], 4, u;",
        "gives an asynchronous copy a value",
    ),
    "count of an mbarrier": (
        "mbarrier.init.shared.b64 [buf+128], u;",
        "gives an operation on an mbarrier a value",
    ),
}


@pytest.mark.parametrize(("snippet", "words"), USES.values(), ids=USES)
def test_where_an_undefined_value_may_not_arrive(snippet, words):
    fault = fault_of(snippet)
    assert fault.detail.startswith(f"{words} that depends on byte 64 of shared memory, which line 0 read")


LOOP = "mov.b32 x, 0; L: mov.b32 r, y; mov.b32 y, t; add.u32 x, x, 1; setp.gt.u32 p, x, TIMES; @!p bra L;"
#: Of registers that nothing was written to before: uses that leave the result defined, and others.
REGISTERS = {
    "operand": ("and.b32 r, y, 0;", "add.u32 r, t, y;"),
    "half": ("mov.b32 y, {h, g}; and.b32 r, y, 0xffff;", "mov.b32 r, {h, g};"),
    "written under a guard": (
        "@even mov.b32 y, t; @even mov.b32 r, y;",
        "@!even mov.b32 y, t; mov.b32 r, y;",
    ),
    "written on one way": (
        "@even bra L; mov.b32 y, t; L: selp.b32 r, t, y, even;",
        "@even bra L; mov.b32 y, t; L: mov.b32 r, y;",
    ),
    "written by an earlier pass": (LOOP.replace("TIMES", "1"), LOOP.replace("TIMES", "0")),
}


@pytest.mark.parametrize(("defined", "undefined"), REGISTERS.values(), ids=REGISTERS)
def test_registers_that_nothing_was_written_to(defined, undefined):
    assert run(defined)[1].remarks
    fault = fault_of(undefined, FaultKind.UNINITIALISED_REGISTER)
    words = "stores to out a value that depends on a register to which nothing had been written"
    assert fault.detail == words
    assert fault.thread == (0, 0, 0)


def test_a_program_knows_the_registers_that_may_be_read_before_they_are_written():
    text = KERNEL.replace("SNIPPET", "@even bra L; mov.b32 y, t; L: @even mov.b32 x, y; add.u32 r, x, 1;")
    program = load_program(text, "k")
    assert program.unwritten == {program.slots.register("y", 0)}
    assert load_program(KERNEL.replace("SNIPPET", ""), "k").unwritten == set()
