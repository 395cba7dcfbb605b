# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as people write them that read shared memory nobody wrote: which are right, and which are not."""

from dataclasses import fields

import numpy as np
import pytest
from bulk_sources import STORED, cuda
from divergent_functions import Generator
from executor_harness import caught, line_of, run_cuda
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuprof.executor import FaultKind, combined

pytestmark = pytest.mark.deep

FLOATS = np.arange(64, dtype=np.float32)


def follow(source: str, *arrays: np.ndarray, **keywords):
    return run_cuda(source, *arrays, follow_undefined=True, **keywords)


def refused(source: str, *arrays: np.ndarray, use: str = "// counts", read: str = "// read", **keywords):
    """Return the fault of a kernel whose marked lines are where it reads, and where that counts."""
    fault = caught(source, *arrays, follow_undefined=True, **keywords)
    assert fault.kind is FaultKind.UNINITIALISED_SHARED
    assert fault.source_line == line_of(source, use)
    assert (
        f"shared memory, which line {line_of(source, read)} read and which was never written" in fault.detail
    )
    return fault


#: Two stages; before the last step of each tile the first column of the next one is fetched, also where there
#: is none.
DOUBLE_BUFFERED = """#define BK 8
extern "C" __global__ void sgemm(const float *A, const float *B, float *C, int M, int N, int K) {
    __shared__ float a[2][BK][16], b[2][BK][16];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 16, col = blockIdx.x * 16;
    int stage = 0;
    if (ty < BK) {
        a[0][ty][tx] = row + tx < M && ty < K ? A[(row + tx) * K + ty] : 0.0f;
        b[0][ty][tx] = col + tx < N && ty < K ? B[ty * N + col + tx] : 0.0f;
    }
    __syncthreads();
    float x[2], y[2], sum = 0;
    x[0] = a[0][0][ty];
    y[0] = b[0][0][tx];
    for (int k0 = 0; k0 < K; k0 += BK) {
        const int next = k0 + BK;
        if (next < K && ty < BK) {
            a[stage ^ 1][ty][tx] = row + tx < M && next + ty < K ? A[(row + tx) * K + next + ty] : 0.0f;
            b[stage ^ 1][ty][tx] = col + tx < N && next + ty < K ? B[(next + ty) * N + col + tx] : 0.0f;
        }
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1)
                __syncthreads();
            const float *of_a = k < BK - 1 ? a[stage][k + 1] : a[stage ^ 1][0];
            const float *of_b = k < BK - 1 ? b[stage][k + 1] : b[stage ^ 1][0];
            x[(k + 1) % 2] = of_a[ty];
            y[(k + 1) % 2] = of_b[tx]; // read
            sum = fmaf(x[k % 2], y[k % 2], sum);
        }
        __syncthreads();
        stage ^= 1;
    }
    if (row + ty < M && col + tx < N)
        C[(row + ty) * N + col + tx] = sum RESULT; // counts
}"""


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 8), (20, 35, 5), (33, 17, 8)])
def test_a_tile_that_does_not_exist_is_fetched_in_vain(m, n, k):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    source = DOUBLE_BUFFERED.replace("RESULT", "")
    shape = {"grid": (-(-n // 16), -(-m // 16), 1), "block": (256, 1, 1), "scalars": (m, n, k)}
    (*_, c), result = follow(source, a, b, np.zeros((m, n), np.float32), **shape)
    assert (c.array() == a @ b).all()
    (remark,) = result.remarks
    assert remark.startswith(f"Line {line_of(source, '// read') - 1} reads byte ")
    assert caught(source, a, b, np.zeros((m, n), np.float32), **shape).kind is FaultKind.UNINITIALISED_SHARED
    wrong = source.replace("sum RESULT", "sum + y[0]").replace("sum ;", "sum + y[0];")
    fault = refused(wrong, a, b, np.zeros((m, n), np.float32), **shape)
    assert "stores to array 2" in fault.detail


EDGE = """extern "C" __global__ void k(const float *in, float *out, int n) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    if (t < n)
        s[t] = in[t];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 4; ++i)
        sum += s[t + i]; // read
    if (LIMIT)
        out[t] = sum; // counts
}"""


@pytest.mark.parametrize("n", [20, 40, 64])
def test_sums_past_the_edge_that_nobody_stores(n):
    source = EDGE.replace("LIMIT", "t + 3 < n")
    (_, out), result = follow(
        source.replace("float sum", "volatile float sum"),
        FLOATS,
        np.zeros(64, np.float32),
        block=(64, 1, 1),
        scalars=(n,),
    )
    expected = [4 * t + 6 if t + 3 < n else 0 for t in range(64)]
    assert out.array().tolist() == expected
    assert len(result.remarks) == 1


def test_one_sum_too_many():
    fault = refused(
        EDGE.replace("LIMIT", "t + 2 < n"), FLOATS, np.zeros(64, np.float32), block=(64, 1, 1), scalars=(20,)
    )
    assert fault.thread == (17, 0, 0)
    assert fault.detail.startswith("stores to array 1 a value that depends on byte 80 of shared memory")
    assert fault.address == 80


def test_the_block_is_named_too():
    source = """extern "C" __global__ void k(float *out) {
    __shared__ float s[32];
    if (blockIdx.x != 5)
        s[threadIdx.x] = 1;
    __syncthreads();
    float v = s[threadIdx.x]; // read
    if (blockIdx.x != SKIPPED)
        out[blockIdx.x * 32 + threadIdx.x] = v; // counts
}"""
    arrays = np.zeros(8 * 32, np.float32)
    fault = refused(source.replace("SKIPPED", "4"), arrays, grid=(8, 1, 1))
    assert (fault.block, fault.thread) == ((5, 0, 0), (0, 0, 0))


def test_the_remark_names_block_thread_and_byte():
    source = """extern "C" __global__ void k(volatile float *out) {
    __shared__ volatile float s[40];
    s[threadIdx.x] = 1;
    __syncthreads();
    float v = s[threadIdx.x + (blockIdx.x == 2 ? 4 : 0)]; // read
    if (threadIdx.x < 3)
        out[threadIdx.x] = v;
}"""
    _, result = follow(source, np.zeros(3, np.float32), grid=(4, 1, 1))
    where = "thread (28, 0, 0) of block (2, 0, 0)"
    expected = f"Line 5 reads byte 128 of shared memory, which was never written ({where})"
    assert result.remarks == (f"{expected}; no result depends on it",)
    assert combined([result, result]).remarks == result.remarks


def test_through_a_shuffle_and_shared_memory_the_read_is_named():
    source = """extern "C" __global__ void k(float *out) {
    __shared__ float s[64], r[32];
    if (threadIdx.x < 16)
        s[threadIdx.x] = 1;
    __syncthreads();
    float v = s[threadIdx.x]; // read
    v = __shfl_xor_sync(~0u, v, 16) * 2 + 1;
    r[threadIdx.x] = v;
    __syncwarp();
    out[threadIdx.x] = r[31 - threadIdx.x]; // counts
}"""
    fault = refused(source, FLOATS)
    # Lanes 0 to 15 of v hold what 16 to 31 read; thread 16 takes it from r[15].
    assert fault.thread == (16, 0, 0)
    assert fault.address == 4 * 31


def test_divergence_keeps_what_the_other_side_has():
    source = """extern "C" __global__ void k(const int *in, int *out) {
    __shared__ volatile int s[64];
    s[threadIdx.x] = 3;
    __syncthreads();
    int v = 0;
    if (in[threadIdx.x] & 1)
        v = s[threadIdx.x + 32]; // read
    else
        v = threadIdx.x * 5;
    for (int i = 0; i < in[threadIdx.x]; ++i)
        v = v * 3 + i;
    if (!(in[threadIdx.x] & WHICH))
        out[threadIdx.x] = v; // counts
}"""
    numbers = np.arange(32, dtype=np.int32)
    (_, out), result = follow(source.replace("WHICH", "1"), numbers, np.zeros(32, np.int32))
    assert len(result.remarks) == 1
    whole = source.replace("WHICH", "1").replace("+ 32", "")
    (_, plain), _ = run_cuda(whole, numbers, np.zeros(32, np.int32))
    assert (out.array() == plain.array()).all()
    assert refused(source.replace("WHICH", "2"), numbers, np.zeros(32, np.int32)).thread == (1, 0, 0)


ASYNC = """extern "C" __global__ void k(const float *in, float *out, int n) {
    __shared__ __align__(16) float s[2][32];
    const int t = threadIdx.x;
    for (int stage = 0; stage < 2; ++stage) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(&s[stage][t]);
        const int size = 32 * stage + t < n ? 4 : 0;
        if (GUARD)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(in + t), "r"(size));
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group WAIT;" ::: "memory");
    __syncthreads();
    const float v = *(volatile float *)&s[1][t ^ 1]; // read
    out[t] = *(volatile float *)&s[0][t ^ 1];
    if (STORED)
        out[t] = v; // counts
}"""


def async_source(guard="true", wait="0", stored="true"):
    return ASYNC.replace("GUARD", guard).replace("WAIT", wait).replace("STORED", stored)


def test_what_an_asynchronous_copy_brings_is_defined_zeros_too():
    (_, out), result = follow(async_source(), FLOATS, np.zeros(32, np.float32), scalars=(40,))
    assert out.array().tolist() == [float(t ^ 1) if t < 8 else 0.0 for t in range(32)]
    assert result.remarks == ()


def test_what_no_copy_brought_is_not():
    guarded = "32 * stage + t < n"
    (_, out), result = follow(
        async_source(guarded, stored="32 + t < n"), FLOATS, np.zeros(32, np.float32), scalars=(40,)
    )
    assert out.array().tolist() == [float(t ^ 1) for t in range(32)]
    assert len(result.remarks) == 1
    fault = refused(async_source(guarded), FLOATS, np.zeros(32, np.float32), scalars=(40,))
    assert (fault.thread, fault.address) == ((8, 0, 0), 128 + 36)


@pytest.mark.parametrize("stored", ["true", "false"])
def test_a_copy_in_flight_stays_the_fault_that_it_is(stored):
    fault = caught(
        async_source(wait="1", stored=stored),
        FLOATS,
        np.zeros(32, np.float32),
        scalars=(64,),
        follow_undefined=True,
    )
    assert fault.kind is FaultKind.ASYNC_COPY


def test_a_race_comes_before_what_is_read_by_it():
    source = """extern "C" __global__ void k(float *out) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    const float v = *(volatile float *)&s[threadIdx.x ^ 1]; // race
    out[threadIdx.x] = v + s[threadIdx.x + 32];
}"""
    fault = caught(source, FLOATS, follow_undefined=True)
    assert (fault.kind, fault.source_line) == (FaultKind.SHARED_RACE, line_of(source, "// race"))


BULK = """extern "C" __global__ void k(const float *in, float *out) {
    __shared__ __align__(128) float s[128];
    __shared__ u64 b;
    if (threadIdx.x == 0) { init(&b, 1); fence(); }
    __syncthreads();
    if (threadIdx.x == 0) { expect(&b, 128); load(s, in, 128, &b); }
    wait(&b, 0);
    volatile float v = s[threadIdx.x];
    volatile float w = s[32 + threadIdx.x];
    __syncthreads();
    s[64 + threadIdx.x] = STORED;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        store(out, s + 64, 128);
        commit();
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}"""


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


@pytest.mark.parametrize(("writes", "told"), [("t >= 16", 0), ("t < 16", 16), ("true", None)])
def test_lanes_that_wait_keep_what_they_read_while_others_read_by_the_same_line(writes, told):
    source = """extern "C" __global__ void k(int *out) {
    __shared__ int tile[32];
    const int t = threadIdx.x;
    if (WRITES)
        tile[t] = t;
    #pragma unroll 1
    for (int i = t < 16; i < 2; ++i) // lanes from 16 on come a turn later
        if (i) {
            int v;
            asm volatile("ld.shared.u32 %0, [%1];"
                         : "=r"(v) : "r"((int)__cvta_generic_to_shared(tile + t)));
            out[t] = v + __shfl_xor_sync(~0u, t, 1);
        }
}""".replace("WRITES", writes)
    out = np.zeros(32, np.int32)
    if told is None:
        run_cuda(source, out, follow_undefined=True)
    else:
        fault = caught(source, out, follow_undefined=True)
        assert (fault.kind, fault.thread) == (FaultKind.UNINITIALISED_SHARED, (told, 0, 0))


def test_an_atomic_operation_on_what_nobody_wrote():
    source = """extern "C" __global__ void k(unsigned *out) {
    __shared__ unsigned bins[4];
    atomicAdd(&bins[threadIdx.x % 4], 1u); // read
    __syncthreads();
    if (threadIdx.x < COUNT)
        out[threadIdx.x] = bins[threadIdx.x]; // counts
}"""
    nothing = np.zeros(4, np.uint32)
    plain = caught(source.replace("COUNT", "4"), nothing)
    assert (plain.kind, plain.source_line) == (FaultKind.UNINITIALISED_SHARED, line_of(source, "// read"))
    refused(source.replace("COUNT", "4"), nothing, read="// counts")
    _, result = follow(source.replace("COUNT", "0"), nothing)
    assert len(result.remarks) == 1
    cleared = source.replace("COUNT", "4").replace(
        "    atomicAdd",
        "    if (threadIdx.x < 4) bins[threadIdx.x] = 0;\n    __syncthreads();\n    atomicAdd",
    )
    (out,), result = follow(cleared, nothing)
    assert out.array().tolist() == [8] * 4
    assert result.remarks == ()


SHARED_WORDS = """extern "C" __global__ void k(const unsigned *x, unsigned *out) {
    __shared__ unsigned s[64];
    __shared__ unsigned r[70];
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, a = x[t & 63], b = x[(t * 7) & 63], c = t;
    for (unsigned i = threadIdx.x; i < WRITTEN; i += blockDim.x)
        s[i] = x[i];
    r[threadIdx.x] = c;
    __syncthreads();
    c += __shfl_xor_sync(__activemask(), b, 1) + r[(threadIdx.x * 11) % 70];
    BODY
    out[t] = OUT;
}"""


def random_kernel(seed: int, written: int, result: str) -> str:
    """A random kernel that reads shared memory where those of its generator read global memory."""
    text, _ = Generator(seed).block(3)
    text = text.replace("x[", "s[")
    return SHARED_WORDS.replace("BODY", text).replace("WRITTEN", str(written)).replace("OUT", result)


def numbers_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, 64, dtype=np.uint32)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_to_follow_changes_nothing(seed):
    source = random_kernel(seed, 64, "a ^ b ^ c")
    runs = [
        run_cuda(
            source,
            numbers_of(seed),
            np.zeros(210, np.uint32),
            grid=(3, 1, 1),
            block=(70, 1, 1),
            follow_undefined=following,
        )
        for following in (False, True)
    ]
    ((_, out), plain), ((_, same), followed) = runs
    assert (out.array() == same.array()).all()
    for field in fields(plain):
        np.testing.assert_equal(getattr(followed, field.name), getattr(plain, field.name), field.name)
    assert followed.remarks == ()
