// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong, and words of what is told of each: {n} is the number of its line n, from 0.

//:: FRAME
//: SIZE = "n"
/*gpuprof
operation = "flipped"
dimensions = ["n"]
default_sizes = "1024"
arguments = ["x", "y", "SIZE"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[work]
bytes = "8 * n"
[check]
y = { value = "flip(x)", equal = true }
[launch]
block = [128]
grid = ["n // 128"]
*/
#include <cuda_pipeline.h>
__global__ void k(const float *x, float *y, int n)
{
    __shared__ float other[4], tile[132];
    const int t = threadIdx.x, at = blockIdx.x * 128 + t;
    other[t % 4] = 1;
BODY}

//:: a barrier between two lines
//: words = [
//:     "line {1}: ",
//:     ", which thread (32, 0, 0) of block (0, 0, 0) writes in line {0}, and nothing orders them: byte 128 of",
//:     " `tile`, a barrier is missing between lines {0} and {1}",
//: ]
tile[t] = x[n - 1 - at];
y[at] = tile[t ^ 32] * other[0];

//:: a barrier behind the reader's own read
//: words = ["line {2}: ", " writes in line {0}, and", "`tile`, a barrier is"]
tile[t] = x[n - 1 - at];
float v = tile[t];
y[at] = tile[t ^ 32] * v * other[0];

//:: a barrier behind a loop's last line
//: words = [
//:     "line {1}: ",
//:     " reads in line {3}, and nothing",
//:     "byte 0 of `tile`, a barrier is missing behind line {3}, before line {1} runs next",
//: ]
for (int i = 0; i < 2; ++i) {
tile[t] = x[n - 1 - (at ^ 32)];
__syncthreads();
y[at] = tile[t ^ 32] * other[0];
}

//:: a lane that arrives for its warp
//: words = [
//:     "`tile`, a __syncwarp before another lane's arrival at an mbarrier is missing between lines {4} and {9} (",
//: ]
const unsigned read = (unsigned)__cvta_generic_to_shared(tile + 130);
if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(read) : "memory");
tile[t] = x[n - 1 - at];
__syncthreads();
y[at] = tile[t] * other[0];
if (t == 32) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(read) : "memory");
if (t < 32) {
asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared.b64 over, [%0], 0;\n"
             "@!over bra again;\n}" ::"r"(read) : "memory");
tile[t + 32] = 1;
}

//:: one of the threads of several warps, all of which read before
//: words = ["line {3}: ", "which one of several threads reads in line {2}, and nothing orders them: element 0 of `tile`"]
if (t == 0) tile[0] = x[0];
__syncthreads();
y[at] = tile[0] * other[0];
if (t == 0) tile[0] = 1;

//:: another block's memory, as a launch with an attribute for clusters has it
//: words = ["line {2}: ", "another block's, of a cluster of one block: say __cluster_dims__ before the kernel"]
unsigned theirs, found;
asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(theirs) : "r"((unsigned)__cvta_generic_to_shared(tile)));
asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(found) : "r"(theirs));
y[at] = found;

//:: a barrier within an if
//: words = [" reads in line", "a barrier is missing between lines {3} and {5} ("]
__shared__ float kept;
if (t == 0) {
__threadfence_block();
kept = x[0];
}
y[at] = kept * other[0];

//:: a barrier within a loop's if
//: words = [" reads in line", "a barrier is missing between lines {4} and {6} ("]
__shared__ float kept;
for (int i = 0; i < 4; ++i) {
if (t == 0) {
__threadfence_block();
kept = x[i];
}
y[at] = kept * other[0];
__syncthreads();
}

//:: two threads write one element
//: words = ["line {0}: ", ": element 7 of `tile`, two threads write it in that line"]
tile[7] = t;
__syncthreads();
y[at] = tile[7] * other[0];

//:: a sum of a neighbour
//: words = [
//:     " reads in line {2}, and nothing",
//:     "`tile`, a barrier is missing between the two, or one atomic operation must do both",
//: ]
tile[t] = x[t];
__syncthreads();
tile[t] += tile[(t + 1) % 128];
__syncthreads();
y[at] = tile[t] * other[0];

//:: a step of a reduction
//: words = [
//:     " writes in line {3}, and nothing",
//:     "`tile`, a barrier is missing between the two (",
//: ]
tile[t] = x[t];
__syncthreads();
for (int step = 64; step > 0; step /= 2)
if (t < step) tile[t] += tile[t + step];
__syncthreads();
y[at] = tile[0] * other[0];

//:: a sum of a neighbour by another name
//: words = [
//:     " reads in line {3}, and nothing orders them: byte ",
//:     " of `tile`, a barrier is missing between the two, or one",
//: ]
volatile float *twice = tile;
twice[t] = x[t];
__syncthreads();
tile[t] += tile[(t + 1) % 128];
__syncthreads();
y[at] = tile[t] * other[0];

//:: an element that nobody wrote
//: words = [
//:     "line {2}: thread (64, 0, 0)",
//:     "of shared memory, which was never written: byte 256 of `tile`;",
//:     "; line {5} stores to y a value that depends on it",
//: ]
if (t < 64) tile[t] = x[t];
__syncthreads();
float v = tile[t] * other[0];
for (int i = 0; i < 4; ++i)
v = v * v + i;
y[at] = v;

//:: a vector that is not aligned
//: words = ["line {2}: thread (1, 0, 0)", "accesses 16 bytes at byte 4 of `tile`, which is not a"]
tile[t] = x[t];
__syncthreads();
const float4 four = *(float4 *)(tile + t);
y[at] = (four.x + four.y + four.z + four.w) * other[0];

//:: a function of the kernel's own
//: words = ["line {1}: ", "; line {1} is of a function called in line {3} or {4}"]
auto put = [&](int i) {
y[i] = x[n - 1 - at] + other[t % 4];
};
put(at + n);
put(at);

//:: a vector of an array that is not aligned
//: words = ["line {0}: ", "accesses 8 bytes at byte 4 of x, which is not a multiple of 8"]
*(float2 *)(y + 1 + t) = *(const float2 *)(x + 1 + t);

//:: a copy of two bytes
//: words = ["line {1}: ", "executes a trap, in line ", " of cuda_pipeline_primitives.h; -D _CUDA_PIPE"]
y[at] = 0;
__pipeline_memcpy_async(tile + t, x + at, 2);

//:: a sum in any order
//: words = ["line {1}: ", "nothing orders them: benign only if either value will do; then read it as vol"]
atomicAdd(y + n - 1 - at, 1);
if (y[at] < 2) other[1] = 2;
y[0] = other[1];

//:: a size that no int holds
//: SIZE = "n * n * 2048"
//: words = ["`int n`, a 4-byte integer, and 2147483648 is an overflow: the largest int is 2147483647"]
y[at] = x[n - 1 - at];

//:: a call of what no function is
//: words = ["line {1}: ", "to 0x0, where no function that fits and no label is (jump to nowhere)."]
float (*const chosen[])(float) = {fabsf, nullptr};
y[at] = chosen[n > 0](x[at]);
