// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Quantised, with the sum of what was kept"
operation = "quantize"
dimensions = ["n"]
default_sizes = "700"
arguments = ["n", "x", "wide", "offset", "q", "bits", "kept"]
[arrays]
x = { shape = ["n"] }
wide = { shape = ["n"], dtype = "bf16" }
offset = { shape = ["n"], dtype = "u16" }
q = { shape = ["n"], dtype = "i8", role = "out" }
bits = { shape = ["n"], dtype = "u8", role = "out" }
kept = { shape = ["n"], dtype = "i64", role = "out" }
[inputs]
x = "normal(0, 50)"
offset = "integers(0, 65536)"
[work]
bytes = "4 * n"
[check]
q = "clip(rint(x), -128, 127)"
bits = "offset % 256 ^ 255"
kept = { value = "offset * 2 ** 40 + (wide > 0)" }
[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
#include <cuda_bf16.h>

extern "C" __global__ void quantize(int n, const float *x, const __nv_bfloat16 *wide,
                                    const unsigned short *offset, signed char *q, unsigned char *bits,
                                    long long *kept)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    q[i] = max(-128, min(127, __float2int_rn(x[i])));
    bits[i] = offset[i] ^ 255;
    kept[i] = ((long long)offset[i] << 40) + (__bfloat162float(wide[i]) > 0);
}
