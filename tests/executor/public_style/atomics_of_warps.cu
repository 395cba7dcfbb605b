// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[count_all]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_some]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_threes]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[sum_some]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[sum_signed]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[subtract_some]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[smallest]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[largest]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[all_bits]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_and_wrap]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[places_of_some]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[places_of_values]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_of_block]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_of_block_row]
grid = [3]
block = [32, 4]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_of_warp]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_at_loaded_place]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_at_own_place]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[sums_in_a_loop]
grid = [2]
block = [100]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[two_sums]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_in_block_scope]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_in_system_scope]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[sum_of_wide]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[count_of_wide]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[sum_of_floats]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[relaxed_sum]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[released_sum]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[shared_count]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[shared_count_of_twos]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[shared_sum]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[shared_largest]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[shared_count_of_warps]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]

[shared_places]
grid = [7]
block = [128]
arguments = ["i32 700", "u32[700] below 1000", "u32[64] zeros"]
*/

extern "C" __global__ void count_all(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, 1u);
}

extern "C" __global__ void count_some(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 3 == 0) atomicAdd(out, 1u);
}

extern "C" __global__ void count_threes(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 3 == 0) atomicAdd(out, 3u);
}

extern "C" __global__ void sum_some(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 5 != 1) atomicAdd(out, x[i]);
}

extern "C" __global__ void sum_signed(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd((int *)out, (int)x[i] - 500);
}

extern "C" __global__ void subtract_some(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 100) atomicSub(out, x[i]);
}

extern "C" __global__ void smallest(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMin(out + 1, x[i] + 5), atomicMin((int *)out + 2, 5 - (int)x[i]);
}

extern "C" __global__ void largest(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(out + 1, x[i]), atomicMax((int *)out + 2, (int)x[i] - 300);
}

extern "C" __global__ void all_bits(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicOr(out, 1u << x[i] % 32), atomicXor(out + 8, x[i]), atomicAnd(out + 16, x[i] | 7);
}

extern "C" __global__ void count_and_wrap(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicInc(out, 1000u);
}

extern "C" __global__ void places_of_some(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 4 == 0) { const unsigned p = atomicAdd(out, 1u);
    if (p > 500) out[40] = 1;
    }
}

extern "C" __global__ void places_of_values(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { const unsigned p = atomicAdd(out, x[i]);
    if (p > 50000000) out[40] = 1;
    }
}

extern "C" __global__ void count_of_block(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out + blockIdx.x, 1u);
}

extern "C" __global__ void count_of_block_row(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out + threadIdx.y, 2u);
}

extern "C" __global__ void count_of_warp(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out + threadIdx.x / 32, 1u);
}

extern "C" __global__ void count_at_loaded_place(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out + x[blockIdx.x] % 32, 1u);
}

extern "C" __global__ void count_at_own_place(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out + x[i] % 32, 1u);
}

extern "C" __global__ void sums_in_a_loop(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = i;
    j < n;
    j += 200) if (x[j] & 1) atomicAdd(out + 3, x[j]);
}

extern "C" __global__ void two_sums(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { if (x[i] & 1) atomicAdd(out, x[i]);
    else atomicAdd(out + 32, x[i]);
    }
}

extern "C" __global__ void count_in_block_scope(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd_block(out + blockIdx.x, 1u);
}

extern "C" __global__ void count_in_system_scope(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd_system(out, 1u);
}

extern "C" __global__ void sum_of_wide(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd((unsigned long long *)out, (unsigned long long)x[i]);
}

extern "C" __global__ void count_of_wide(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd((unsigned long long *)out, 1ull);
}

extern "C" __global__ void sum_of_floats(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd((float *)out, (float)(x[i] % 8));
}

extern "C" __global__ void relaxed_sum(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(out), "r"(x[i]) : "memory");
}

extern "C" __global__ void released_sum(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(out), "r"(x[i]) : "memory");
}

extern "C" __global__ void shared_count(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned sum[4];
    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    __syncthreads();
    if (i < n && x[i] % 3) atomicAdd(sum, 1u);
    __syncthreads();
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}

extern "C" __global__ void shared_count_of_twos(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned sum[4];
    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    __syncthreads();
    if (i < n && x[i] % 3) atomicAdd(sum, 2u);
    __syncthreads();
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}

extern "C" __global__ void shared_sum(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned sum[4];
    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(sum, x[i]);
    __syncthreads();
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}

extern "C" __global__ void shared_largest(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned sum[4];
    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicMax(sum, x[i]), atomicMin((int *)sum + 1, -(int)x[i]), atomicOr(sum + 2, x[i]);
    __syncthreads();
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}

extern "C" __global__ void shared_count_of_warps(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned sum[4];
    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(sum + threadIdx.x / 32, 1u);
    __syncthreads();
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}

extern "C" __global__ void shared_places(int n, const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned sum[4];
    if (threadIdx.x < 4) sum[threadIdx.x] = 0;
    __syncthreads();
    if (i < n && x[i] % 4 == 0) { const unsigned p = atomicAdd(sum, 1u);
    if (p > 500) sum[3] = 1;
    } __syncthreads();
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}
