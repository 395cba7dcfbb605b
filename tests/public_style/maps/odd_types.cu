// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Unions, bit fields, goto, a switch, packed structs and int128"
arguments = ["n", "x", "y"]

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
union Word {
    float f;
    unsigned u;
    struct {
        unsigned mantissa : 23, exponent : 8, sign : 1;
    } parts;
};

struct __attribute__((packed)) Mixed {
    char tag;
    float value;
};

__global__ void odd_types(int n, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Word w;
    w.f = x[i];
    const bool zero = w.parts.exponent == 0 && w.parts.mantissa == 0;
    Mixed m[2] = {{'a', w.f}, {'b', zero ? 0.f : w.f * w.f}};
    __int128 sum = 1;
    int k = 0;
next:
    switch (k++) {
    case 0: sum += (__int128)(2 * m[0].value); goto next;
    case 1: sum += (__int128)(3 * m[1].value); goto next;
    case 2: sum += (__int128)4 * (long long)m[1].value * (long long)m[0].value; goto next;
    default: break;
    }
    y[i] = (float)(long long)sum;
}
