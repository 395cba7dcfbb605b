# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Calls that are no plain ones: of functions that call themselves, through pointers, and jumps by tables."""

import numpy as np
import pytest
from executor_harness import compile_cuda, cuda_program, run_cuda, run_ptx

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, launch, load_program

THREADS = np.zeros(32, np.int32)


def result_of(source: str, *arrays: np.ndarray, **keywords) -> list[int]:
    (out, *_), _ = run_cuda(source, THREADS, *arrays, **keywords)
    return out.array().tolist()


POINTERS = """typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int less(int a, int b) { return a - b; }
__device__ long long wide(int a, int b) { return 7; }
__device__ Operation table[4] = {plus, times, less, 0};
typedef long long (*Other)(int, int);
__device__ Other other = wide;
"""


def test_a_pointer_to_no_function_is_told_and_not_what_is_no_candidate():
    kernel = """extern "C" __global__ void k(int *out, int *index) {
    Operation chosen = index[0] < 4 ? table[index[0]] : (Operation)other;
    out[threadIdx.x] = chosen(threadIdx.x, 3);
}"""
    assert result_of(POINTERS + kernel, np.array([1], np.int32))[5] == 15
    for index in (3, 4):
        with pytest.raises(KernelFault) as caught:
            run_cuda(POINTERS + kernel, THREADS, np.array([index], np.int32))
        assert caught.value.kind is FaultKind.BAD_TARGET


def test_a_kernel_keeps_pointers_that_another_made():
    source = (
        POINTERS
        + """__device__ Operation chosen;
extern "C" __global__ void choose(int *out) { chosen = table[1]; }
extern "C" __global__ void use(int *out) { out[threadIdx.x] = chosen(threadIdx.x, 5); }"""
    )
    ptx = compile_cuda(source)
    memory = GlobalMemory()
    out = memory.allocate(THREADS, "out")
    for name, threads in (("choose", 1), ("use", 32)):
        launch(load_program(ptx, name), (1, 1, 1), (threads, 1, 1), [out], memory)
    assert out.array().tolist() == [5 * t for t in range(32)]


JUMP = """.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [k_param_0];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 3;
    add.s32 %r2, %r2, SHIFT;
    mov.u32 %r3, 0;
    $L_table: .branchtargets $L_one, $L_two, $L_one, $L_three;
    brx.idx %r2, $L_table;
$L_one:
    mov.u32 %r3, 10;
    bra.uni $L_end;
$L_two:
    mov.u32 %r3, 20;
    bra.uni $L_end;
$L_three:
    mov.u32 %r3, 30;
$L_end:
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}
"""


def test_an_index_behind_the_table_is_told():
    with pytest.raises(KernelFault) as caught:
        run_ptx(JUMP.replace("SHIFT", "1"), THREADS)
    assert caught.value.kind is FaultKind.BAD_TARGET
    assert caught.value.thread == (3, 0, 0)


def test_an_argument_written_in_words_may_be_read_in_bytes():
    ptx = """.func (.param .b32 r) f(.param .align 4 .b8 p[4])
{
    .reg .b16 %rs<3>;
    .reg .b32 %r<4>;
    ld.param.u8 %rs1, [p+1];
    ld.param.u8 %rs2, [p+3];
    cvt.u32.u16 %r1, %rs1;
    cvt.u32.u16 %r2, %rs2;
    mad.lo.s32 %r3, %r2, 1000, %r1;
    st.param.b32 [r], %r3;
    ret;
}
.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [k_param_0];
    mov.u32 %r1, 0x04030201;
    {
    .param .align 4 .b8 given[4];
    st.param.b32 [given], %r1;
    .param .b32 back;
    call.uni (back), f, (given);
    ld.param.b32 %r2, [back];
    }
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
    (out,), _ = run_ptx(ptx, np.zeros(1, np.int32), block=(1, 1, 1))
    assert out.tolist() == [4002]


BY_REGISTER = """.func (.reg .b32 sum) add(.reg.b32 x,.reg .b32 y)
{
    .const .b32 hundred[2] = { 100, 200 };
    .reg .b64 a;
    .reg .b32 c;
    mov.u64 a, hundred;
    ld.const.b32 c, [a+4];
    add.u32 sum, x, c;
    add.u32 sum, sum, y;
    ret;
}
.visible .entry k(.param.u64 out)
{
    .reg .b64 a;
    .reg .b32 n, tid;
    .reg .v2.b32 pair;
    .reg .pred p;
    ld.param.u64 a, [out];
    mov.u32 tid, %tid.x;
    mov.u32 n, 7;
    ld.global.v2.b32 pair, [a];
    setp.ne.u32 p, tid, 0;
    @p call (n), add, (tid, pair.y);
    mad.wide.u32 a, tid, 4, a;
    st.global.u32 [a+8], n;
    ret;
}
"""
#: As compilers of old write: declared functions end in nothing, and textures are variables.
WITH_PREDICATES = """.global .texref pixels;
.visible .func (.param .b32 r) elsewhere (.param .b32 x)
    .shared .align 4 .b8 held[16];
.visible .func (.reg .pred r) differ (.reg .pred a, .reg .pred b)
{
    xor.pred r, a, b;
    ret;
}
.extern .func nothing (.param .b32 x)
.entry k (.param .u64 out)
{
    .reg .u64 a;
    .reg .u32 n, tid, at;
    .reg .pred p, q, r;
    ld.param.u64 a, [out];
    mov.u32 tid, %tid.x;
    setp.gt.u32 p, tid, 1;
    setp.ne.u32 q, tid, 3;
    setp.eq.u32 r, tid, tid;
    @p call (r), differ, (p, q);
    selp.u32 n, 5, 6, r;
    mov.u32 at, held;
    mad.lo.u32 at, tid, 4, at;
    st.shared.u32 [at], n;
    ld.shared.u32 n, [at];
    mad.wide.u32 a, tid, 4, a;
    st.global.u32 [a], n;
    ret;
}
"""


@pytest.mark.parametrize(
    ("ptx", "expected"),
    [(BY_REGISTER, [10, 11, 7, 212, 213, 214]), (WITH_PREDICATES, [5, 5, 6, 5, 14, 15])],
    ids=["registers", "predicates"],
)
def test_registers_are_passed_and_vectors_and_variables_declared_as_people_write_them(ptx, expected):
    (out,), _ = run_ptx(ptx, np.arange(10, 16, dtype=np.int32), block=(4, 1, 1))
    assert out.tolist() == expected


def test_an_initialiser_in_constant_memory_names_either_of_two_addresses():
    ptx = """.const .align 4 .u32 first = 11;
.const .align 4 .u32 second = 22;
.global .align 8 .u64 where[2] = {generic(second), second};
.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [k_param_0];
    ld.global.u64 %rd2, [where];
    ld.u32 %r1, [%rd2];
    ld.global.u64 %rd3, [where+8];
    ld.const.u32 %r2, [%rd3];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""
    (out,), _ = run_ptx(ptx, np.zeros(1, np.int32), block=(1, 1, 1))
    assert out.tolist() == [44]


def test_no_pointer_fits_is_named():
    program = cuda_program("""extern "C" __global__ void k(int *out, int (*f)(int)) {
    if (out[0]) out[0] = f(1);
}""")
    assert program.unmodelled == (("call of a function pointer that no function fits", 2),)
