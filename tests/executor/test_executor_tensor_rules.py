# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What kernels may do wrong with tensor cores, and what of their values is undefined."""

import numpy as np
from executor_harness import caught, cuda_program, line_of, run_cuda

from gpuprof.executor import FaultKind

#: A warp loads two tiles of A, one of B, multiplies, and stores what it gets.
GEMM = """
extern "C" __global__ void tile(float *out, const unsigned *in)
{{
    __shared__ __align__(16) unsigned s[192];
    const int lane = threadIdx.x;
    for (int i = lane; i < {filled}; i += 32)
        s[i] = in[i];
    {sync}
    unsigned a[2], b, at = (unsigned)__cvta_generic_to_shared(s) + lane % 16 * 16;
    float d[4] = {{}};
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%0, %1}}, [%2];" // both tiles of A
                 : "=r"(a[0]), "=r"(a[1]) : "r"(at) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%0}}, [%1];" // the tile of B
                 : "=r"(b) : "r"(at + 256) : "memory");
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%0,%1,%2,%3}}, {{%4,%5}}, {{%6}},"
                 " {{%0,%1,%2,%3}};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
    {use}
}}
"""
STORE = "for (int i = 0; i < 4; ++i) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];"


def tile(filled: int = 96, sync: str = "__syncthreads();", use: str = STORE) -> str:
    """The source, with the lines that differ."""
    return GEMM.format(filled=filled, sync=sync, use=use)


def operands() -> np.ndarray:
    """Whole numbers as halves: 16 rows of A, 8 columns of B."""
    return np.random.default_rng(3).integers(-4, 5, 192).astype(np.float16)


def test_only_products_with_undefined_factors_are_undefined():
    # Rows 8 to 15 of A are missing: the lower half of the result must not be stored, the upper half may.
    source = tile(use="(void)0;").replace("s[i] = in[i];", "if (i < 32 || i >= 64) s[i] = in[i];")
    upper = "for (int i = 0; i < 2; ++i) out[lane / 4 * 8 + lane % 4 * 2 + i] = d[i];"
    halves = operands()
    buffers, _ = run_cuda(
        source.replace("(void)0;", upper),
        np.zeros((16, 8), np.float32),
        halves.view(np.uint32),
        follow_undefined=True,
    )
    a, b = halves[:64].reshape(8, 8).astype(float), halves[128:].reshape(8, 8).astype(float)
    np.testing.assert_array_equal(buffers[0].array()[:8], a @ b.T)
    fault = caught(
        source.replace("(void)0;", STORE),
        np.zeros(128, np.float32),
        halves.view(np.uint32),
        follow_undefined=True,
    )
    assert fault.kind is FaultKind.UNINITIALISED_SHARED
    assert f"line {line_of(source, 'both tiles of A')} read" in fault.detail


def test_products_that_are_not_modelled_are_named():
    source = """
extern "C" __global__ void volta(float *out, const unsigned *in)
{
    float d[8] = {};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9},"
                 " {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
                   "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]));
    out[threadIdx.x] = d[0];
}
"""
    program = cuda_program(source)
    assert [name for name, _ in program.unmodelled] == ["mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"]
