// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels whose blocks build on each other: by tickets, flags, locks, queues and barriers of the grid.

//:: last block
//: # Four blocks share a row of sums; each leaves its part, and who comes last adds them up.
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

//:: look back
//: # Running sums: a block takes up what the block before it has, and hands it on.
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

//:: queue
//: # Blocks take pieces of work until there is none; which block does what is nobody's to say.
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

//:: grid barrier
//: # All blocks meet before each reads what another one wrote.
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

//:: lock
//: # One block after the other adds to the same sums, behind a lock.
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

//:: STREAM
//: # Tiles of 64 sums over 32 numbers each, dealt out evenly. A tile that two blocks share is begun by one,
//: # which says so by a flag, and ended by the next, which adds; a block does last what it may have to wait for.
//: FIRST = "STORES"
//: SECOND = "SIGNAL"
//: WRITTEN = "true"
//: FENCE = "__threadfence();"
//: TOLD = "t == 0"
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
FIRST
SECOND
    }
}

//:: STORES
        if (!head)
            atomicAdd(&out[tile * 64 + t], sum);
        else if (WRITTEN)
            out[tile * 64 + t] = sum;

//:: SIGNAL
        if (!tail) {
            FENCE
            __syncthreads();
            if (TOLD)
                *(volatile unsigned *)&written[blockIdx.x] = 1;
        }

//:: stream
//: frame = "STREAM"

//:: stream with a block that tells nobody
//: frame = "STREAM"
//: TOLD = "t == 0 && blockIdx.x != 4"

//:: stream with a flag before the data
//: frame = "STREAM"
//: FIRST = "SIGNAL"
//: SECOND = "STORES"

//:: stream without a fence
//: frame = "STREAM"
//: FENCE = ""

//:: stream without a tile
//: frame = "STREAM"
//: WRITTEN = "tile != 30"

//:: copy engine
//: # The copy engine brings each block its row, and adds it to one of all, in the order of the blocks.
//: bulk = true
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

//:: packed
//: # All blocks pack rows; when all are done, the copy engine brings the first three as many as each wants.
//: bulk = true
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

//:: cluster
//: # Blocks of a cluster leave their sums in each other's shared memory, and the first of them adds them up.
extern "C" __global__ void __cluster_dims__(3, 1, 1) k(const float *in, float *out) {
    __shared__ float sums[3][64];
    __shared__ int rows[3];
    const int t = threadIdx.x, b = blockIdx.x;
    unsigned rank, theirs, told;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const int mine = 3 + b % 4;
    float sum = 0;
    for (int i = 0; i < mine; ++i)
        sum += in[(b * 8 + i) * 64 + t];
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(theirs) : "r"((unsigned)__cvta_generic_to_shared(&sums[rank][t])));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(told) : "r"((unsigned)__cvta_generic_to_shared(&rows[rank])));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(theirs), "f"(sum) : "memory");
    if (t == 0)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(told), "r"(mine) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (rank == 0)
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < rows[i]; ++j)
                out[(b / 3 * 3 + i) * 64 + t] = sums[i][t] + j;
}

//:: sent
//: # Blocks of a cluster send each other numbers; how often one sends again, the other's sums tell.
//: bulk = true
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const float *in, float *out) {
    __shared__ u64 full, told;
    __shared__ float row[4][64];
    __shared__ int rounds;
    const int t = threadIdx.x, b = blockIdx.x, other = rank() ^ 1;
    if (t == 0) {
        rounds = 1;
        init(&full, 1);
        init(&told, 1);
        fence();
        expect(&told, 8);
        expect(&full, 256);
    }
    meet();
    if (t < 2)
        add(&rounds, b % 3 * t, &told, other);
    wait(&told, 0);
    const int theirs = 1 + (b ^ 1) % 3, mine = 1 + b % 3;
    float sum = 0;
    for (int i = 0; i < max(rounds, mine); ++i) {
        if (i < mine)
            send(&row[i][t], in[b * 64 + t] * i, &full, other);
        if (i < rounds) {
            wait(&full, i % 2);
            sum += row[i][t];
            if (t == 0 && i + 1 < theirs)
                expect(&full, 256);
        }
        meet();
    }
    for (int i = max(rounds, mine); i < 3; ++i)
        meet();
    out[b * 64 + t] = sum;
}

//:: whole numbers
//: # Blocks wait for each other by one array, and leave whole numbers in another: their values decide nothing.
extern "C" __global__ void k(const float *in, unsigned *come, unsigned *out) {
    __shared__ unsigned row[64];
    const int t = threadIdx.x, b = blockIdx.x, n = gridDim.x;
    row[t] = __float_as_uint(in[b * 64 + t] * 2);
    __syncthreads();
    out[b * 64 + t] = row[63 - t] >> 3;
    if (t == 0) {
        atomicAdd(come, 1);
        while (*(volatile unsigned *)come < n)
            ;
    }
}
