# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Clusters of several blocks: what is computed through each other's shared memory, against NumPy."""

import numpy as np
import pytest
from cluster_sources import clustered
from executor_harness import cuda_program, run_cuda

from gpuprof.executor import (
    GlobalMemory,
    Sample,
    TensorDescriptor,
    choose_blocks,
    encode_tensor_map,
    launch,
)
from gpuprof.executor.sampling import Stratum

RNG = np.random.default_rng(12)


def whole_numbers(*shape: int) -> np.ndarray:
    """Return floats whose sums and products are exact."""
    return RNG.integers(-8, 9, shape).astype(np.float32)


REDUCTION = """extern "C" __global__ void __cluster_dims__(SIZE, 1, 1) k(const float *in, float *out, int n) {
    __shared__ float parts[32], total;
    const int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (t % 32 == 0)
        parts[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        total = 0;
        for (int i = 0; i < blockDim.x / 32; ++i)
            total += parts[i];
    }
    meet();
    if (rank() == 0 && t == 0) {
        float all = 0;
        for (int other = 0; other < SIZE; ++other)
            all += *pointer(&total, other);
        out[blockIdx.x / SIZE] = all;
    }
    meet();
}
"""


@pytest.mark.parametrize(
    ("size", "block", "n"), [(2, 96, 5000), (4, 64, 777), (8, 128, 10000), (8, 512, 9001)]
)
def test_reduction_through_other_blocks_memory(size, block, n):
    values = whole_numbers(n)
    grid = 3 * size
    (_, out), result = run_cuda(
        clustered(REDUCTION.replace("SIZE", str(size))),
        *(values, np.zeros(3, np.float32)),
        scalars=(n,),
        grid=(grid, 1, 1),
        block=(block, 1, 1),
    )
    padded = np.zeros(-(-n // (grid * block)) * grid * block, np.float32)
    padded[:n] = values
    np.testing.assert_array_equal(out.array(), padded.reshape(-1, 3, size * block).sum(axis=(0, 2)))
    assert (result.sampled_blocks, result.total_blocks) == (grid, grid)


#: Blocks of a ring hand their row on, round by round, behind two mbarriers: full, and free again.
RING = """extern "C" __global__ void __cluster_dims__(SIZE, 1, 1) k(const float *in, float *out, int rounds) {
    __shared__ __align__(16) float row[2][128];
    __shared__ u64 full, free_;
    const int t = threadIdx.x, next = (rank() + 1) % SIZE, before = (rank() + SIZE - 1) % SIZE;
    if (t == 0) {
        init(&full, 1);
        init(&free_, 128);
        fence();
    }
    row[0][t] = in[blockIdx.x * 128 + t];
    meet();
    float sum = row[0][t];
    for (int i = 0; i < rounds; ++i) {
        const int now = i % 2;
        if (t == 0)
            expect(&full, 512);
        if (i > 0)
            wait(&free_, (i - 1) % 2);
        send(&row[1 - now][t], row[now][t], &full, next);
        wait(&full, now);
        sum += row[1 - now][t];
        arrive_remote(&free_, before);
    }
    out[blockIdx.x * 128 + t] = sum;
    meet();
}
"""


@pytest.mark.parametrize(("size", "rounds"), [(2, 1), (4, 3), (8, 7)])
def test_ring_of_asynchronous_stores(size, rounds):
    values = whole_numbers(2 * size, 128)
    (_, out), _ = run_cuda(
        clustered(RING.replace("SIZE", str(size))),
        *(values, np.zeros_like(values)),
        scalars=(rounds,),
        grid=(2 * size, 1, 1),
        block=(128, 1, 1),
    )
    rings = values.reshape(2, size, 128)
    expected = sum(np.roll(rings, step, axis=1) for step in range(rounds + 1))
    np.testing.assert_array_equal(out.array().reshape(rings.shape), expected)


#: A tile of A goes to the blocks of a row of a 2 x 2 cluster, a tile of B to those of a column.
GEMM = """extern "C" __global__ void __cluster_dims__(2, 2, 1) k(const float *a, const float *b, float *c,
                                                                  int n, int depth) {
    __shared__ __align__(128) float left[16][16], right[16][16];
    __shared__ u64 full;
    const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x % 2, row = blockIdx.y % 2;
    const bool first = x == 0 && y == 0;
    if (first) {
        init(&full, 1);
        fence();
    }
    meet();
    float sum = 0;
    for (int k = 0, phase = 0; k < depth; k += 16, phase ^= 1) {
        if (first) {
            expect(&full, 2048);
            if (column == 0) // tiles of A, packed one after the other, go to both blocks of this row
                multicast(left, a + (blockIdx.y * depth + k) * 16, 1024, &full, 3 << 2 * row);
            if (row == 0)
                multicast(right, b + (k * n / 16 + blockIdx.x * 16) * 16, 1024, &full, 5 << column);
        }
        wait(&full, phase);
        for (int i = 0; i < 16; ++i)
            sum += left[y][i] * right[i][x];
        meet();
    }
    c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = sum;
}
"""


def tiles(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix as its tiles of 16 x 16, row after row of them."""
    rows, columns = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows // 16, 16, columns // 16, 16).swapaxes(1, 2))


def test_tiles_by_multicast():
    a, b = whole_numbers(64, 80), whole_numbers(80, 32)
    (*_, c), _ = run_cuda(
        clustered(GEMM),
        *(tiles(a), tiles(b), np.zeros((64, 32), np.float32)),
        scalars=(32, 80),
        grid=(2, 4, 1),
        block=(16, 16, 1),
    )
    np.testing.assert_array_equal(c.array(), a @ b)


TENSOR = """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const __grid_constant__ Map map,
                                                               float *out) {
    __shared__ __align__(128) float box[8][16];
    __shared__ u64 full;
    const int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
        fence();
        expect(&full, 512);
    }
    meet();
    if (t == 0 && rank() == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(at(box)), "l"(&map), "r"(16), "r"(8), "r"(at(&full)), "h"((short)3) : "memory");
    wait(&full, 0);
    for (int i = 0; i < 4; ++i)
        out[blockIdx.x * 128 + i * 32 + t] = (&box[0][0])[i * 32 + t];
    meet();
}
"""


def test_a_box_of_an_array_goes_to_several_blocks():
    values = whole_numbers(24, 40)
    memory = GlobalMemory()
    source = memory.allocate(values, "values")
    out = memory.allocate(np.zeros((2, 8, 16), np.float32), "out")
    encoded = encode_tensor_map(TensorDescriptor(source.address, "f32", (40, 24), (160,), (16, 8)))
    program = cuda_program(clustered(TENSOR))
    launch(program, (2, 1, 1), (32, 1, 1), [encoded, out], memory)
    for block in out.array():
        np.testing.assert_array_equal(block, values[8:16, 16:32])


VECTORS = """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(TYPE *out) {
    __shared__ __align__(16) TYPE got[32 * WIDTH];
    __shared__ u64 full;
    const int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
        fence();
        expect(&full, (int)sizeof(got));
    }
    meet();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.FORM [%0], VALUES, [%1];"
                 ::"r"(mapped(got + t * WIDTH, rank() ^ 1)), "r"(mapped(&full, rank() ^ 1)), GIVEN
                 : "memory");
    wait(&full, 0);
    for (int i = 0; i < WIDTH; ++i)
        out[(blockIdx.x * 32 + t) * WIDTH + i] = got[t * WIDTH + i];
    meet();
}
"""


@pytest.mark.parametrize(("size", "width"), [(32, 1), (32, 2), (32, 4), (64, 1), (64, 2)])
def test_vectors_are_stored_asynchronously(size, width):
    kind, letter = {32: ("unsigned", "r"), 64: ("unsigned long long", "l")}[size]
    names = ", ".join(f"%{i + 2}" for i in range(width))
    values = {
        "TYPE": kind,
        "WIDTH": str(width),
        "FORM": f"v{width}.b{size}" if width > 1 else f"b{size}",
        "VALUES": f"{{{names}}}" if width > 1 else names,
        "GIVEN": ", ".join(f'"{letter}"(({kind})(1000 * rank() + 10 * t + {i}))' for i in range(width)),
    }
    source = VECTORS
    for word, value in values.items():
        source = source.replace(word, value)
    out = np.zeros((2, 32, width), f"u{size // 8}")
    (found,), _ = run_cuda(clustered(source), out, grid=(2, 1, 1))
    sender, lane, element = np.meshgrid([1, 0], np.arange(32), np.arange(width), indexing="ij")
    np.testing.assert_array_equal(found.array(), 1000 * sender + 10 * lane + element)


#: Each block waits for a flag in its own memory, which the block before it sets behind a fence.
FLAGS = """extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int *out) {
    __shared__ int value, flag;
    const int r = rank();
    if (threadIdx.x == 0) {
        flag = 0;
        value = r == 0;
    }
    meet();
    if (threadIdx.x == 0) {
        if (r > 0)
            while (atomicAdd(&flag, 0) == 0)
                ;
        if (r < 3) {
            *pointer(&value, r + 1) = 2 * value + 1;
            __threadfence();
            atomicExch(pointer(&flag, r + 1), 1);
        }
        out[blockIdx.x] = value;
    }
    meet();
}
"""


def test_flags_in_other_blocks_memory():
    (out,), _ = run_cuda(clustered(FLAGS), np.zeros(8, np.int32), grid=(8, 1, 1))
    assert out.array().tolist() == [1, 3, 7, 15] * 2


BLOCKS = """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *out) {
    __shared__ int row[96];
    const int t = threadIdx.x;
    int sum = 0;
    for (int i = 0; i < 3 + rank(); ++i) { // blocks of a cluster meet at barriers of their own
        row[t] = t + i;
        __syncthreads();
        sum += row[95 - t];
        __syncthreads();
    }
    const int votes = __syncthreads_count(t < 40 + 10 * rank());
    meet();
    out[blockIdx.x * 96 + t] = sum * 1000 + votes + pointer(row, rank() ^ 1)[t];
    meet();
}
"""


def test_barriers_of_the_blocks_of_a_cluster_are_apart():
    (out,), result = run_cuda(
        clustered(BLOCKS), np.zeros((4, 96), np.int32), grid=(4, 1, 1), block=(96, 1, 1)
    )
    t = np.arange(96)
    for block, row in enumerate(out.array()):
        rounds = 3 + block % 2
        sums = sum(95 - t + i for i in range(rounds))
        last = t + 2 + (block % 2 ^ 1)
        np.testing.assert_array_equal(row, sums * 1000 + 40 + 10 * (block % 2) + last)
    assert result.counters["barriers"] == 3 * 2 * (2 * 3 + 2 * 4 + 2)


def test_whole_clusters_are_sampled():
    source = clustered(REDUCTION.replace("SIZE", "4"))
    program = cuda_program(source)
    values = whole_numbers(64 * 400)
    memory = GlobalMemory()
    arrays = [memory.allocate(values, "in"), memory.allocate(np.zeros(100, np.float32), "out")]
    shape = (400, 1, 1), (64, 1, 1), [*arrays, values.size], memory
    sampled = launch(program, *shape, blocks=choose_blocks((400, 1, 1), 24))
    whole = launch(program, *shape)
    assert (sampled.sampled_blocks, sampled.total_blocks, sampled.exact_sample) == (24, 400, True)
    assert sampled.counters == whole.counters
    # The blocks of a cluster run on several multiprocessors, and share its work in a way that nobody knows.
    assert whole.busiest["l1_passes"] == pytest.approx(whole.counters["l1_passes"] / 132)
    assert np.count_nonzero(arrays[1].array()) >= 90


def test_named_blocks_bring_their_clusters():
    one = choose_blocks((400, 1, 1), 400)
    assert one.in_clusters((400, 1, 1), (4, 1, 1)).count == 100
    named = Sample(tuple(Stratum((range(x, x + 1), range(1), range(1)), 1) for x in (5, 6, 399)))
    clusters = named.in_clusters((400, 1, 1), (4, 1, 1))
    assert clusters.blocks(0, clusters.count).indices[:, 0].tolist() == [4, 396]


def test_counts_through_other_blocks_memory_are_marked():
    _, result = run_cuda(clustered(FLAGS), np.zeros(4, np.int32), grid=(4, 1, 1))
    assert {"shared_store_requests", "shared_atomic_requests"} <= result.hidden.keys()
    assert "shared_load_requests" not in result.hidden
