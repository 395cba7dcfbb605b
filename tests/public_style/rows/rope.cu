// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rotary embedding: pairs of a row turned by an angle of place and dimension"
operation = "rope"
dimensions = ["places", "pairs"]
default_sizes = "9x32"
arguments = ["pairs", "re", "im", "out_re", "out_im"]

[arrays.re]
shape = ["places", "pairs"]

[arrays.im]
shape = ["places", "pairs"]

[arrays.out_re]
shape = ["places", "pairs"]
role = "out"

[arrays.out_im]
shape = ["places", "pairs"]
role = "out"

[work]
flops = "6 * places * pairs"
bytes = "4 * places * pairs * real_bytes"

[check.out_re]
value = "re * cos(outer(arange(places), power(10000, -arange(pairs) / pairs))) - im * sin(outer(arange(places), power(10000, -arange(pairs) / pairs)))"
relative = "128 * u"
magnitude = "abs(re) + abs(im)"

[check.out_im]
value = "re * sin(outer(arange(places), power(10000, -arange(pairs) / pairs))) + im * cos(outer(arange(places), power(10000, -arange(pairs) / pairs)))"
relative = "128 * u"
magnitude = "abs(re) + abs(im)"

[launch]
block = [32]
grid = ["places"]
*/
__global__ void rope(int pairs, const float *re, const float *im, float *out_re, float *out_im)
{
    for (int d = threadIdx.x; d < pairs; d += blockDim.x) {
        const int i = blockIdx.x * pairs + d;
        const float angle = blockIdx.x * powf(10000.f, -(float)d / pairs);
        float s, c;
        sincosf(angle, &s, &c);
        out_re[i] = re[i] * c - im[i] * s;
        out_im[i] = re[i] * s + im[i] * c;
    }
}
