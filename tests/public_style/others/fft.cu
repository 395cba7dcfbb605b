// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A Fourier transform of 64 points in shared memory, radix 2, by cuda::std::complex"
operation = "fft"
dimensions = ["rows"]
default_sizes = "3"
arguments = ["re", "im", "out_re", "out_im"]

[arrays.re]
shape = ["rows", "64"]

[arrays.im]
shape = ["rows", "64"]

[arrays.out_re]
shape = ["rows", "64"]
role = "out"

[arrays.out_im]
shape = ["rows", "64"]
role = "out"

[work]
flops = "1920 * rows"
bytes = "1024 * rows"

[check.out_re]
value = "re @ cos(outer(arange(64), arange(64)) * 0.09817477042468103) + im @ sin(outer(arange(64), arange(64)) * 0.09817477042468103)"
relative = "64 * u"
magnitude = "64"

[check.out_im]
value = "im @ cos(outer(arange(64), arange(64)) * 0.09817477042468103) - re @ sin(outer(arange(64), arange(64)) * 0.09817477042468103)"
relative = "64 * u"
magnitude = "64"

[launch]
block = [32]
grid = ["rows"]
*/
#include <cuda/std/complex>
using complex = cuda::std::complex<float>;

__global__ void fft(const float *re, const float *im, float *out_re, float *out_im)
{
    __shared__ float raw[2][64];
    complex *s = reinterpret_cast<complex *>(raw);
    const int t = threadIdx.x, row = blockIdx.x * 64;
    for (int i = t; i < 64; i += 32)
        s[__brev(i) >> 26] = complex(re[row + i], im[row + i]);
    for (int half = 1; half < 64; half *= 2) {
        __syncthreads();
        const int k = t % half, i = t / half * 2 * half + k;
        float sine, cosine;
        sincospif(-(float)k / half, &sine, &cosine);
        const complex a = s[i], b = s[i + half] * complex(cosine, sine);
        s[i] = a + b;
        s[i + half] = a - b;
    }
    __syncthreads();
    for (int i = t; i < 64; i += 32)
        out_re[row + i] = s[i].real(), out_im[row + i] = s[i].imag();
}
