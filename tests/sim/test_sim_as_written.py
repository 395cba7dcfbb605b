# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as people write them, host code and all: compiled, executed, and right."""

import pytest
from problem_support import measured

from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.shape import configure
from gpuprof.problems.problem import Problem

pytestmark = pytest.mark.deep

SGEMM = """/*gpuprof
operation = "gemm"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
entry = "sgemm_tiled<BM, BN, BK, TM, TN>"

[parameters]
BM = 32
BN = 64
BK = 8
TM = 4
TN = 8

[launch]
block = [64]
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]

[[variants]]
id = "tiled"

[[variants]]
id = "tiled_small"
parameters = { BM = 16, BN = 32, TM = 2, TN = 4 }

[[variants]]
id = "plain"
entry = "simple::sgemm_plain"
launch = { block = [16, 16], any_block = true, grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"] }

[[variants]]
id = "typed"
entry = "sgemm_typed<real>"
dtypes = ["f32", "f64"]
launch = { block = [32, 8], grid = ["cdiv(N, 32)", "cdiv(M, 8)"] }
*/
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <vector>
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
#define CUDA_CHECK(call) do { cudaError_t error = (call); if (error != cudaSuccess) { \\
    fprintf(stderr, "%s\\n", cudaGetErrorString(error)); exit(EXIT_FAILURE); } } while (0)

struct GpuTimer {
    cudaEvent_t start, stop;
    GpuTimer() { cudaEventCreate(&start); cudaEventCreate(&stop); }
};

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__(BM / TM * (BN / TN))
    sgemm_tiled(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    constexpr int threads = BM / TM * (BN / TN);
    assert(blockDim.x == threads);
    __shared__ float As[BM][BK], Bs[BK][BN];
    const uint row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const uint row = threadIdx.x / (BN / TN) * TM, col = threadIdx.x % (BN / TN) * TN;
    float acc[TM][TN] = {};
    for (uint k0 = 0; k0 < K; k0 += BK) {
        for (uint i = threadIdx.x; i < BM * BK; i += threads)
            As[i / BK][i % BK] =
                row0 + i / BK < M && k0 + i % BK < K ? A[(row0 + i / BK) * K + k0 + i % BK] : 0;
        for (uint i = threadIdx.x; i < BK * BN; i += threads)
            Bs[i / BN][i % BN] =
                k0 + i / BN < K && col0 + i % BN < N ? B[(k0 + i / BN) * N + col0 + i % BN] : 0;
        __syncthreads();
        for (uint k = 0; k < BK; ++k)
            for (uint i = 0; i < TM; ++i)
                for (uint j = 0; j < TN; ++j)
                    acc[i][j] += As[row + i][k] * Bs[k][col + j];
        __syncthreads();
    }
    for (uint i = 0; i < std::min(TM, int(M - row0 - row)) && row0 + row < M; ++i)
        for (uint j = 0; j < TN && col0 + col + j < N; ++j) {
            float *c = C + (row0 + row + i) * N + col0 + col + j;
            *c = alpha * acc[i][j] + (beta == 0 ? 0 : beta * *c);
        }
}

namespace simple {
__global__ void sgemm_plain(
    int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= N || y >= M) return;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[y * K + k] * B[k * N + x];
    C[y * N + x] = alpha * sum + (beta == 0 ? 0 : beta * C[y * N + x]);
}
}

template <typename T>
__global__ void sgemm_typed(int M, int N, int K, T alpha, const T *A, const T *B, T beta, T *C)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= N || y >= M) return;
    T sum = 0;
    for (int k = 0; k < K; ++k) sum += A[y * K + k] * B[k * N + x];
    C[y * N + x] = alpha * sum + (beta == 0 ? 0 : beta * C[y * N + x]);
}

void run_sgemm(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    GpuTimer timer;
    dim3 grid(CEIL_DIV(N, 64), CEIL_DIV(M, 32)), block(64);
    sgemm_tiled<32, 64, 8, 4, 8><<<grid, block>>>(M, N, K, alpha, A, B, beta, C);
    CUDA_CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
    std::vector<float> host(64 * 64);
    std::fill(host.begin(), host.end(), 1.0f);
    float *a, *b, *c;
    CUDA_CHECK(cudaMalloc(&a, host.size() * sizeof(float)));
    run_sgemm(64, 64, 64, 1, a, b, 0, c);
    printf("done\\n");
    return 0;
}
"""

SUM = """/*gpuprof
operation = "block_sums"
dimensions = ["n"]
arguments = ["x", "sums", "n"]

[arrays]
x = {{ shape = ["n"] }}
sums = {{ shape = ["cdiv(n, 256)"], role = "out" }}

[work]
bytes = "n * real_bytes"
flops = "n"

[check.sums]
value = "sum(reshape(x, (n // 256, 256)), axis=1)"
magnitude = "sum(abs(reshape(x, (n // 256, 256))), axis=1)"
relative = "32 * u"

[launch]
block = [256]
grid = ["cdiv(n, 256)"]
*/
{body}
"""

COOPERATIVE = """#include <cooperative_groups.h>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
__global__ void block_sum(const float *x, float *sums, int n)
{
    __shared__ float parts[8];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    float sum = x[blockIdx.x * 256 + block.thread_rank()];
    for (int i = warp.size() / 2; i > 0; i /= 2)
        sum += warp.shfl_down(sum, i);
    if (warp.thread_rank() == 0)
        parts[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        sum = 0;
        for (float part : parts)
            sum += part;
        sums[blockIdx.x] = sum;
    }
}
"""

CLUSTERED = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) block_sum(const float *x, float *sums, int n)
{
    __shared__ float parts[256];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned other = cluster.block_rank() ^ 1;
    // Each block fetches what its neighbour sums.
    cluster.map_shared_rank(parts, other)[threadIdx.x] = x[(blockIdx.x ^ 1) * 256 + threadIdx.x];
    cluster.sync();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (float part : parts)
            sum += part;
        sums[blockIdx.x] = cluster.num_blocks() == 2 && cluster.thread_rank() % 256 == 0 ? sum : 0;
    }
}
"""

INCLUDED = """#include "lib/reduce.cuh"
__global__ void block_sum(const float *x, float *sums, int n)
{
    float sum = lib::block_sum<256>(x[blockIdx.x * 256 + threadIdx.x]);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}
"""
REDUCE = """#pragma once
#include <iostream>
#include "detail.cuh"
namespace lib {
inline void report(float x) { std::cout << x << std::endl; }
template <int N> __device__ float block_sum(float x)
{
    __shared__ float parts[N];
    parts[threadIdx.x] = x;
    for (int i = N / 2; i > 0; i /= 2) {
        __syncthreads();
        if (threadIdx.x < i)
            detail::add(parts[threadIdx.x], parts[threadIdx.x + i]);
    }
    return parts[0];
}
}
"""
DETAIL = "namespace lib { namespace detail { __device__ void add(float &a, float b) { a += b; } } }\n"


def measure(kernel, problem, params=None):
    return measured(kernel, problem, None, params)


@pytest.fixture(scope="module")
def sgemm(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "sgemm.cu"
    path.write_text(SGEMM)
    return load_kernels(path)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("which", range(4))
def test_kernels_of_one_file_with_its_host_code(sgemm, which, beta):
    kernel = sgemm.kernels[which]
    for dtype in kernel.dtypes:
        problem = Problem.of(sgemm.operation, (70, 45, 33), dtype, {"alpha": 1.5, "beta": beta})
        measurement = measure(kernel, problem)
        assert measurement.outcome == "ok", measurement.reason
        assert measurement.verification.checked_elements == 70 * 45


def test_parameters_choose_the_instance(sgemm):
    problem = Problem.of(sgemm.operation, (64, 64, 16))
    shared = [
        measure(sgemm.kernels[0], problem, params).resources.static_shared_bytes
        for params in ({}, {"BK": 16}, {"BM": 64, "TM": 8})
    ]
    assert shared == [4 * (32 * 8 + 8 * 64), 4 * (32 * 16 + 16 * 64), 4 * (64 * 8 + 8 * 64)]


def test_assertion_that_fails_is_a_fault_of_its_line_and_of_the_entry(sgemm):
    measurement = measure(sgemm.kernels[0], Problem.of(sgemm.operation, (64, 64, 16)), {"TM": 2})
    line = SGEMM[: SGEMM.index("assert(")].count("\n") + 1
    assert measurement.outcome == "failed"
    assert measurement.reason.startswith(f"sgemm_tiled<32, 64, 8, 2, 8>, line {line}: thread (0, 0, 0)")
    assert "fails the assertion" in measurement.reason


def block_sums(folder, body):
    path = folder / "block_sum.cu"
    path.write_text(SUM.format(body=body))
    return load_kernels(path)


@pytest.mark.parametrize("body", [COOPERATIVE, CLUSTERED], ids=["block", "cluster"])
def test_cooperative_groups(tmp_path, body):
    file = block_sums(tmp_path, body)
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason


def test_counts_of_an_included_function_stand_at_the_line_that_calls_it(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "reduce.cuh").write_text(REDUCE)
    (tmp_path / "lib" / "detail.cuh").write_text(DETAIL)
    file = block_sums(tmp_path, INCLUDED)
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason
    source = file.kernels[0].source
    call = source[: source.index("lib::block_sum")].count("\n") + 1
    shared = {line.line for line in measurement.lines if "shared_load_wavefronts" in line.counters}
    assert shared == {call}


def test_kernel_in_an_included_file_has_no_lines_of_the_file_that_names_it(tmp_path):
    (tmp_path / "kernel.cuh").write_text("\n" * 90 + INCLUDED)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "reduce.cuh").write_text(REDUCE)
    (tmp_path / "lib" / "detail.cuh").write_text(DETAIL)
    file = block_sums(tmp_path, '#include "kernel.cuh"')
    measurement = measure(file.kernels[0], Problem.of(file.operation, (1024,)))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.lines is None
    assert measurement.lines_reason.startswith("the kernel stands in an included file")
    kernel, backend = file.kernels[0], SimBackend(load_card("h200"), 0)
    case = configure(kernel, Problem.of(file.operation, (1024,)), kernel.launch.block, {}, backend.device)
    model, reason = backend.count(case, compile_kernel(case, backend.compile_arch)).model()
    assert model, reason
    assert model.lines == ()
    assert model.reasons["latency"] > 0
