# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""GEMM by nvcuda::wmma: every type and shape of fragment, warps that share A, padded rows and columns."""

import numpy as np
import pytest
from executor_harness import run_cuda

from gpuprof.toolchain.cuda_headers import find_cuda_headers

pytestmark = pytest.mark.deep

#: Each warp computes a tile of D, of which C holds what is added; A and B are read where they lie, or from
#: shared memory.
GEMM = """#include <mma.h>
using namespace nvcuda;
constexpr int M = 128, N = 64, K = 128, PAD = {pad};
constexpr bool A_ROW = {a_row}, B_ROW = {b_row}, D_ROW = {d_row}, SHARED = {shared};
constexpr int LDA = (A_ROW ? K : M) + PAD, LDB = (B_ROW ? N : K) + PAD, LDD = (D_ROW ? N : M) + PAD;
template <bool ROW> struct Order {{ typedef wmma::row_major type; }};
template <> struct Order<false> {{ typedef wmma::col_major type; }};

extern "C" __global__ void k({sum} *d, const {held} *a, const {held} *b, const {sum} *c) {{
    constexpr wmma::layout_t LAYOUT = D_ROW ? wmma::mem_row_major : wmma::mem_col_major;
    constexpr int TM = {m}, TN = {n}, TK = {k};
    wmma::fragment<wmma::matrix_a, TM, TN, TK, {factor}, Order<A_ROW>::type> of_a;
    wmma::fragment<wmma::matrix_b, TM, TN, TK, {factor}, Order<B_ROW>::type> of_b;
    wmma::fragment<wmma::accumulator, TM, TN, TK, {sum}> of_c;
    __shared__ __align__(256) {held} sa[SHARED ? 4 * (TM + 16) * (TK + 16) : 1],
        sb[SHARED ? 4 * (TN + 16) * (TK + 16) : 1];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.y * TM, column = (blockIdx.x * (blockDim.x / 32) + warp) * TN;
    const int place = D_ROW ? row * LDD + column : column * LDD + row;
    wmma::load_matrix_sync(of_c, c + place, LDD, LAYOUT);
    for (int k = 0; k < K; k += TK) {{
        const {held} *pa = a + (A_ROW ? row * LDA + k : k * LDA + row);
        const {held} *pb = b + (B_ROW ? k * LDB + column : column * LDB + k);
        if (SHARED) {{
            constexpr int SA = (A_ROW ? TK : TM) + 16, SB = (B_ROW ? TN : TK) + 16;
            {held} *qa = sa + warp * (TM + 16) * (TK + 16), *qb = sb + warp * (TN + 16) * (TK + 16);
            for (int i = lane; i < TM * TK; i += 32)
                qa[A_ROW ? i / TK * SA + i % TK : i / TM * SA + i % TM] =
                    A_ROW ? pa[i / TK * LDA + i % TK] : pa[i / TM * LDA + i % TM];
            for (int i = lane; i < TK * TN; i += 32)
                qb[B_ROW ? i / TN * SB + i % TN : i / TK * SB + i % TK] =
                    B_ROW ? pb[i / TN * LDB + i % TN] : pb[i / TK * LDB + i % TK];
            __syncwarp();
            wmma::load_matrix_sync(of_a, qa, SA);
            wmma::load_matrix_sync(of_b, qb, SB);
            __syncwarp();
        }} else {{
            wmma::load_matrix_sync(of_a, pa, LDA);
            wmma::load_matrix_sync(of_b, pb, LDB);
        }}
        wmma::mma_sync(of_c, of_a, of_b, of_c);
    }}
    wmma::store_matrix_sync(d + place, of_c, LDD, LAYOUT);
}}"""
#: Type of the factors in wmma, as they are held, type of the sums, NumPy's of both.
TYPES = {
    "s8": ("signed char", "signed char", "int", np.int8, np.int32),
    "u8": ("unsigned char", "unsigned char", "int", np.uint8, np.int32),
    "f16": ("half", "half", "float", np.float16, np.float32),
    "f16_f16": ("half", "half", "half", np.float16, np.float16),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16", "float", np.uint16, np.float32),
    "tf32": ("wmma::precision::tf32", "float", "float", np.float32, np.float32),
    "f64": ("double", "double", "double", np.float64, np.float64),
}
SHAPES = {"tf32": [(16, 16, 8)], "f64": [(8, 8, 4)]}
CASES = [
    (kind, shape) for kind in TYPES for shape in SHAPES.get(kind, [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
]
M, N, K = 128, 64, 128


def laid_out(matrix: np.ndarray, *, by_rows: bool, pad: int) -> np.ndarray:
    """Return a matrix as it lies in memory, with places between its rows or columns."""
    lines = matrix if by_rows else matrix.T
    held = np.zeros((lines.shape[0], lines.shape[1] + pad), matrix.dtype)
    held[:, : lines.shape[1]] = lines
    return held


@pytest.mark.parametrize(
    ("rows", "shared"),
    [((True, True, True), False), ((False, False, False), True), ((True, False, False), True)],
)
@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_gemm_of_small_integers_is_exact(kind, shape, rows, shared):
    options = find_cuda_headers(13).options
    if not options:
        pytest.skip("needs CUDA's headers")
    factor, held, total, dtype, sum_dtype = TYPES[kind]
    names = dict(zip(("a_row", "b_row", "d_row"), (str(row).lower() for row in rows), strict=True))
    pad = 0 if rows[0] else 16
    source = GEMM.format(
        factor=factor, held=held, sum=total, pad=pad, shared=str(shared).lower(), **names,
        **dict(zip("mnk", shape, strict=True)),
    )  # fmt: skip
    generator = np.random.default_rng(26)
    low, high = (0, 4) if kind == "u8" else (-2, 3)
    a, b, c = (generator.integers(low, high, size) for size in ((M, K), (K, N), (M, N)))
    stated = (a @ b + c).astype(sum_dtype)

    def given(matrix: np.ndarray) -> np.ndarray:
        if kind == "bf16":
            return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return matrix.astype(dtype)

    arrays = [
        laid_out(np.zeros((M, N), sum_dtype), by_rows=rows[2], pad=pad),
        laid_out(given(a), by_rows=rows[0], pad=pad),
        laid_out(given(b), by_rows=rows[1], pad=pad),
        laid_out(c.astype(sum_dtype), by_rows=rows[2], pad=pad),
    ]
    warps = min(4, N // shape[1])
    grid = (N // shape[1] // warps, M // shape[0], 1)
    (out, *_), _ = run_cuda(source, *arrays, grid=grid, block=(32 * warps, 1, 1), options=options)
    assert (out.array() == laid_out(stated, by_rows=rows[2], pad=pad)).all()
