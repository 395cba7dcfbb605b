# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels whose blocks build on each other: by tickets, flags, locks, queues and barriers of the grid."""

from bulk_sources import cuda

#: Four blocks share a row of sums; each leaves its part, and who comes last adds them up.
LAST_BLOCK = """
extern "C" __global__ void k(const float *in, float *parts, unsigned *tickets, float *out) {
    __shared__ bool last;
    const int t = threadIdx.x, row = blockIdx.x, part = blockIdx.y;
    float sum = 0;
    for (int i = 0; i < 24; ++i)
        sum += in[((row * 4 + part) * 24 + i) * 64 + t];
    parts[(row * 4 + part) * 64 + t] = sum;
    __threadfence();
    __syncthreads();
    if (t == 0)
        last = atomicAdd(tickets + row, 1) == 3;
    __syncthreads();
    if (last) {
        __threadfence();
        float all = 0;
        for (int p = 0; p < 4; ++p)
            all += ((volatile float *)parts)[(row * 4 + p) * 64 + t];
        out[row * 64 + t] = all;
    }
}
"""

#: Running sums: a block takes up what the block before it has, and hands it on.
LOOK_BACK = """
extern "C" __global__ void k(const float *in, volatile float *carries, volatile int *flags, float *out) {
    __shared__ float before;
    const int t = threadIdx.x, b = blockIdx.x;
    float sum = 0;
    for (int i = 0; i <= t; ++i)
        sum += in[b * 64 + i];
    if (t == 63) {
        float carry = 0;
        if (b > 0) {
            while (flags[b - 1] == 0)
                ;
            __threadfence();
            carry = carries[b - 1];
        }
        before = carry;
        carries[b] = carry + sum;
        __threadfence();
        flags[b] = 1;
    }
    __syncthreads();
    out[b * 64 + t] = before + sum;
}
"""

#: Blocks take pieces of work until there is none; which block does what is nobody's to say.
QUEUE = """
extern "C" __global__ void k(const float *in, unsigned *next, float *out, int pieces) {
    __shared__ unsigned piece;
    const int t = threadIdx.x;
    for (;;) {
        if (t == 0)
            piece = atomicAdd(next, 1);
        __syncthreads();
        const unsigned mine = piece;
        __syncthreads();
        if (mine >= pieces)
            return;
        float x = in[mine * 64 + t];
        for (unsigned i = 0; i <= mine % 5; ++i)
            x = x * 1.5f + 1;
        out[mine * 64 + t] = x;
    }
}
"""

#: All blocks meet before each reads what another one wrote.
GRID_BARRIER = """
extern "C" __global__ void k(const float *in, float *between, volatile unsigned *come, float *out) {
    const int t = threadIdx.x, b = blockIdx.x, n = gridDim.x;
    between[b * 64 + t] = 2 * in[b * 64 + t];
    __threadfence();
    __syncthreads();
    if (t == 0) {
        atomicAdd((unsigned *)come, 1);
        while (*come < n)
            ;
        __threadfence();
    }
    __syncthreads();
    out[b * 64 + t] = between[(b + 1) % n * 64 + t] + 1;
}
"""

#: One block after the other adds to the same sums, behind a lock.
LOCK = """
extern "C" __global__ void k(const float *in, int *lock, volatile float *out) {
    const int t = threadIdx.x;
    if (t == 0) {
        while (atomicCAS(lock, 0, 1) != 0)
            ;
        __threadfence();
    }
    __syncthreads();
    out[t] = out[t] + in[blockIdx.x * 64 + t];
    __threadfence();
    __syncthreads();
    if (t == 0)
        atomicExch(lock, 0);
}
"""

#: Tiles of 64 sums over 32 numbers each, dealt out evenly. A tile that two blocks share is begun by one,
#: which says so by a flag, and ended by the next, which adds; a block does last what it may have to wait for.
_STREAM = """
extern "C" __global__ void k(const float *in, unsigned *written, float *out, int tiles) {
    __shared__ float row[64];
    const int t = threadIdx.x, total = tiles * 32;
    const int first = total * blockIdx.x / gridDim.x, last = total * (blockIdx.x + 1) / gridDim.x;
    for (int end = last, begin; end > first; end = begin) {
        begin = max(first, (end - 1) / 32 * 32);
        float sum = 0;
        for (int i = begin; i < end; ++i) {
            row[t] = in[i * 64 + t];
            __syncthreads();
            sum += row[63 - t];
            __syncthreads();
        }
        const bool head = begin % 32 == 0, tail = end % 32 == 0;
        const int tile = begin / 32;
        if (!head) {
            if (t == 0) {
                while (*(volatile unsigned *)&written[blockIdx.x - 1] == 0)
                    ;
                __threadfence();
            }
            __syncthreads();
        }
        ENDS
    }
}
"""
_STORE = """
        if (!head)
            atomicAdd(&out[tile * 64 + t], sum);
        else if (STORED)
            out[tile * 64 + t] = sum;
"""
_SIGNAL = """
        if (!tail) {
            FENCE
            __syncthreads();
            if (TOLD)
                *(volatile unsigned *)&written[blockIdx.x] = 1;
        }
"""


def stream(
    *, stored: str = "true", fence: str = "__threadfence();", told: str = "t == 0", early: bool = False
) -> str:
    """Return the kernel, perhaps with something wrong.

    It says when a tile is begun with a store, what fences it, when the flag is set, and whether too early.
    """
    parts = [_STORE.replace("STORED", stored), _SIGNAL.replace("FENCE", fence).replace("TOLD", told)]
    return _STREAM.replace("ENDS", "".join(reversed(parts) if early else parts))


#: The copy engine brings each block its row, and adds it to one that all share, in the order of the blocks.
COPIED = cuda("""
extern "C" __global__ void k(const float *in, volatile int *flags, float *out) {
    __shared__ alignas(128) float row[64];
    __shared__ u64 arrived;
    const int t = threadIdx.x, b = blockIdx.x;
    if (t == 0) {
        init(&arrived, 1);
        fence();
    }
    __syncthreads();
    if (t == 0) {
        expect(&arrived, 256);
        load(row, in + b * 64, 256, &arrived);
        wait(&arrived, 0);
        while (b > 0 && flags[b - 1] == 0)
            ;
        __threadfence();
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;"
                     :: "l"(out), "r"(at(row)) : "memory");
        commit();
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __threadfence();
        flags[b] = 1;
    }
}
""")


#: All blocks pack rows; when all are done, the copy engine brings the first three as many as each wants.
PACKED = cuda("""
extern "C" __global__ void k(const float *in, float *packed, unsigned *come, float *out, int rows) {
    __shared__ alignas(128) float row[64];
    __shared__ u64 arrived;
    const int t = threadIdx.x, b = blockIdx.x, n = gridDim.x;
    for (int i = b; i < rows; i += n)
        packed[i * 64 + t] = in[i * 65 + t];
    if (t == 0) {
        init(&arrived, 1);
        fence();
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        __threadfence();
        atomicAdd(come, 1);
        while (*(volatile unsigned *)come < n)
            ;
        __threadfence();
    }
    __syncthreads();
    asm volatile("fence.proxy.async;" ::: "memory");
    if (b > 2)
        return;
    float sum = 0;
    for (int i = 0; i < rows * (b + 1) / 3; ++i) {
        if (t == 0) {
            expect(&arrived, 256);
            load(row, packed + i * 64, 256, &arrived);
        }
        wait(&arrived, i % 2);
        sum = 2 * sum + row[t];
        __syncthreads();
    }
    out[b * 64 + t] = sum;
}
""")
