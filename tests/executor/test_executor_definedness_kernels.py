# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels, and random instructions, that read what nobody wrote: what is right, and what must not count."""

import random

import numpy as np
import pytest
from bulk_sources import STORED, cuda
from executor_harness import KERNELS_BY_HAND, caught, line_of, run_cuda, run_ptx

from gpuprof.executor import FaultKind, KernelFault

pytestmark = pytest.mark.deep

FLOATS = np.arange(64, dtype=np.float32)


def follow(source: str, *arrays: np.ndarray, **keywords):
    return run_cuda(source, *arrays, follow_undefined=True, **keywords)


BULK = KERNELS_BY_HAND["a bulk copy in and one out"].text


def test_bulk_copies_bring_defined_bytes_and_take_no_others():
    (_, out), result = follow(cuda(BULK.replace("STORED", "v + 1")), FLOATS, np.zeros(32, np.float32))
    assert out.array().tolist() == [t + 1 for t in range(32)]
    assert len(result.remarks) == 1
    source = cuda(BULK.replace("STORED", "w"))
    fault = caught(source, FLOATS, np.zeros(32, np.float32), follow_undefined=True)
    assert fault.kind is FaultKind.UNINITIALISED_SHARED
    assert fault.source_line == line_of(source, STORED)
    assert fault.detail.startswith(
        "copies to global memory a value that depends on byte 128 of shared memory"
    )
    read = line_of(source, "w = s[32 + threadIdx.x]")
    assert f"which line {read} read" in fault.detail


def test_a_tile_that_nobody_filled_is_not_stored_by_the_copy_engine():
    source = cuda(BULK.replace("s[64 + threadIdx.x] = STORED;", ""))
    fault = caught(source, FLOATS, np.zeros(32, np.float32), follow_undefined=True)
    assert (fault.kind, fault.address) == (FaultKind.UNINITIALISED_SHARED, 256)


@pytest.mark.parametrize("begin", ["", "for (int i = 0; i < 8; ++i) seen[i] = 0;"])
def test_an_array_of_a_thread_starts_undefined(begin):
    source = f"""extern "C" __global__ void k(int *out, const int *x) {{
    int seen[8];
    {begin}
    for (int i = 0; i < 8; ++i)
        ++seen[x[8 * threadIdx.x + i]]; // read
    out[threadIdx.x] = seen[x[threadIdx.x]]; // counts
}}"""
    x = np.random.default_rng(0).integers(0, 8, 256).astype(np.int32)
    arrays = np.zeros(32, np.int32), x
    if begin:
        (out, _), _ = run_cuda(source, *arrays)
        assert out.array().tolist() == [(row == x[i]).sum() for i, row in enumerate(x.reshape(32, 8))]
        return
    for follows, line in ((False, "// read"), (True, "// counts")):
        fault = caught(source, *arrays, follow_undefined=follows)
        assert (fault.kind, fault.source_line) == (FaultKind.UNINITIALISED_LOCAL, line_of(source, line))


#: `D` is a destination, `A`, `B` and `C` are sources, `K` is a literal, `P` and `Q` are predicates, `S` is an
#: offset in shared memory.
INSTRUCTIONS = [
    *(f"{name}.b32 D, A, B;" for name in ("and", "or", "xor")),
    *(f"{name}.b32 D, A, K;" for name in ("and", "or")),
    *("not.b32 D, A;", "cnot.b32 D, A;", "brev.b32 D, A;", "popc.b32 D, A;", "clz.b32 D, A;"),
    *("lop3.b32 D, A, B, C, 0xe8;", "lop3.b32 D, A, B, C, 0x1b;", "bfind.u32 D, A;"),
    *("shl.b32 D, A, 12;", "shr.u32 D, A, 9;", "shr.s32 D, A, 20;", "shl.b32 D, A, B;"),
    *("shf.l.wrap.b32 D, A, B, 7;", "shf.r.clamp.b32 D, A, B, C;"),
    *("bfe.u32 D, A, 3, 11;", "bfe.s32 D, A, 9, 12;", "bfi.b32 D, A, B, 5, 14;", "bfe.u32 D, A, B, 5;"),
    *("prmt.b32 D, A, B, 0x5140;", "prmt.b32 D, A, B, 0x9810;", "prmt.b32 D, A, B, C;"),
    *("add.s32 D, A, B;", "sub.s32 D, A, B;", "mul.lo.s32 D, A, B;", "mad.lo.u32 D, A, B, C;"),
    *("mul.hi.u32 D, A, B;", "neg.s32 D, A;", "abs.s32 D, A;", "min.u32 D, A, B;", "max.s32 D, A, B;"),
    *("add.cc.u32 D, A, B; addc.u32 D, A, 0;", "sub.cc.u32 D, A, B; subc.u32 D, D, D;"),
    *("add.f16x2 D, A, B;", "fma.rn.f16x2 D, A, B, C;", "mul.bf16x2 D, A, B;", "neg.f16x2 D, A;"),
    *("dp4a.u32.u32 D, A, B, C;", "sad.u32 D, A, B, C;", "add.sat.s32 D, A, B;", "mul24.lo.u32 D, A, B;"),
    *("add.f32 D, A, B;", "fma.rn.f32 D, A, B, C;", "min.f32 D, A, B;", "neg.f32 D, A;"),
    *("cvt.u32.u16 D, H;", "cvt.u16.u32 H, A;", "cvt.s32.s8 D, A;", "cvt.rn.f32.s32 D, A;"),
    *("mov.b32 {H, G}, A;", "mov.b32 D, {H, G};", "mov.b32 D, A;", "cvt.rn.f16x2.f32 D, A, B;"),
    *("mul.wide.u32 L, A, B; mov.b64 {D, X}, L;", "mov.b64 L, {A, B}; shr.u64 L, L, 20; cvt.u32.u64 D, L;"),
    *(
        "setp.lt.s32 P, A, B;",
        "setp.eq.u32 P|Q, A, K;",
        "setp.gt.and.u32 P, A, B, Q;",
        "setp.ne.or.s32 P, A, B, !Q;",
    ),
    *("and.pred P, P, Q;", "or.pred P, P, Q;", "xor.pred P, P, Q;", "not.pred P, Q;", "mov.pred Q, even;"),
    *("selp.b32 D, A, B, P;", "selp.b32 D, A, 5, Q;", "slct.b32.s32 D, A, B, C;"),
    *("setp.lt.u32 P, t, K;", "@even mov.b32 D, A;", "@even add.u32 D, A, B;", "@!even xor.b32 D, A, B;"),
    *("shfl.sync.bfly.b32 D, A, 3, 31, -1;", "shfl.sync.idx.b32 D|P, A, B, 31, -1;"),
    *("shfl.sync.up.b32 D, A, 2, 0, -1;", "vote.sync.ballot.b32 D, P, -1;", "vote.sync.any.pred P, !Q, -1;"),
    *("vote.sync.all.pred P, Q, -1;", "vote.sync.uni.pred P, Q, -1;", "redux.sync.or.b32 D, A, -1;"),
    *("match.any.sync.b32 D, A, -1;", "@even redux.sync.min.s32 D, A, 0x55555555;"),
    *("bar.sync 0; st.shared.b32 [m+S], A; bar.sync 0; ld.shared.b32 D, [m+S];",),
    *("bar.sync 0; st.shared.b16 [m+S], H; bar.sync 0; ld.shared.b32 D, [m+S];",),
    *("bar.sync 0; @even st.shared.b32 [m+S], A; bar.sync 0; ld.shared.v2.b32 {D, X}, [m];",),
    *(
        "st.local.v2.b32 [own], {A, B}; ld.local.b32 D, [own+4];",
        "st.local.u8 [own+1], A; ld.local.b32 D, [own];",
    ),
]
KERNEL = """.visible .entry k(.param .u64 k_out)
{
    .reg .pred P, Q, even;
    .reg .b16 H, G;
    .reg .b32 t, m, X, x0, x1, x2, x3, x4, x5;
    .reg .b64 L, o;
    .shared .align 16 .b8 buf[512];
    .local .align 16 .b8 own[16];
    mov.u32 t, %tid.x;
    ld.param.u64 o, [k_out];
    mad.wide.u32 o, t, 4, o;
    and.b32 X, t, 1;
    setp.eq.u32 even, X, 0;
    setp.lt.u32 P, t, 20;
    setp.lt.u32 Q, t, 9;
    shl.b32 m, t, 4;
    mov.u32 X, buf;
    add.u32 m, m, X;
    mad.lo.u32 x0, t, 0x9e3779b1, 77;
    mov.b32 {H, G}, x0;
    st.shared.b32 [m], x0;
    st.shared.u8 [m+5], t;
    @even st.shared.b32 [m+8], x0;
    bar.sync 0;
    ld.shared.v4.b32 {x1, x2, x3, x4}, [m];
    xor.b32 x5, x0, 0x1234567;
BODY
    and.b32 X, x0, MASK;
    st.global.b32 [o], X;
    ret;
}
"""


def random_body(rng: random.Random) -> str:
    lines = []
    for _ in range(rng.randint(2, 9)):
        text = rng.choice(INSTRUCTIONS)
        for name in "DABC":
            register = f"x{rng.choice([0, 0, 1, 2, 3, 4, 5])}"
            text = text.replace(f" {name},", f" {register},").replace(f" {name};", f" {register};")
            text = text.replace(f"{{{name},", f"{{{register},").replace(f" {name}}}", f" {register}}}")
            text = text.replace(f" {name}|", f" {register}|")
        lines.append(
            text.replace("K", rng.choice(["5", "0xffff", "0x80000001"])).replace(
                "S]", rng.choice("048") + "]"
            )
        )
    return "\n".join(lines)


def outcome_of(text: str) -> bytes | None:
    """What the kernel stores; None when it stores something undefined."""
    try:
        (out,), _ = run_ptx(text, np.zeros(32, np.uint32), follow_undefined=True)
    except KernelFault as fault:
        if fault.kind not in (FaultKind.UNINITIALISED_SHARED, FaultKind.UNINITIALISED_LOCAL):
            raise
        return None
    return out.tobytes()


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_what_is_stored_does_not_depend_on_what_was_there(garbage, first):
    kept = 0
    for seed in range(first, first + 50):
        rng = random.Random(seed)
        mask = rng.choice(["0xffffffff", "0xffff", "0xff00", "0x3", "0x80000000"])
        text = KERNEL.replace("BODY", random_body(rng)).replace("MASK", mask)
        stored = set()
        for fill in range(2):
            garbage(fill)
            stored.add(outcome_of(text))
        assert len(stored) == 1, text
        kept += None not in stored
    assert 10 < kept < 48


#: Each thread sends its number, and what nobody wrote, to its neighbour in the other block.
SENT = """.visible .entry k(.param .u64 k_out) .reqnctapercluster 2,1,1 .reqntid 32,1,1
{
    .reg .pred p, q;
    .reg .b32 t, u, v, w, r, m, d, e;
    .reg .b64 o, a;
    .shared .align 16 .b8 buf[1024];
    .shared .align 8 .b64 bar;
    mov.u32 t, %tid.x;
    ld.param.u64 o, [k_out];
    mov.u32 m, bar;
    setp.eq.u32 p, t, 0;
    @p mbarrier.init.shared.b64 [bar], 1;
    @p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 v, %cluster_ctarank;
    xor.b32 v, v, 1;
    mapa.shared::cluster.u32 e, m, v;
    mov.u32 d, buf;
    mad.lo.u32 r, t, 8, d;
    mapa.shared::cluster.u32 d, r, v;
    ld.shared.b32 u, [buf+512];
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [d], {t, u}, [e];
L:  mbarrier.try_wait.parity.shared.b64 q, [bar], 0;
    @!q bra L;
    ld.shared.v2.b32 {r, w}, [r];
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mad.wide.u32 a, t, 4, o;
    st.global.b32 [a], USED;
    ret;
}
"""


def test_what_threads_send_to_other_blocks_is_as_undefined_there():
    def run(used: str):
        text = SENT.replace("USED", used)
        return run_ptx(text, np.zeros(32, np.uint32), grid=(2, 1, 1), follow_undefined=True)

    (out,), result = run("r")
    assert out.tolist() == list(range(32))
    assert result.remarks
    with pytest.raises(KernelFault, match="stores to array 0 a value that depends on byte 2560") as error:
        run("w")
    assert error.value.kind is FaultKind.UNINITIALISED_SHARED
