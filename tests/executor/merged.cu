// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Kernels whose accesses to shared memory ptxas merges, or does not.

//:: BEHIND
extern "C" __global__ void k(const float *A, float *O, int n) { int t = threadIdx.x;
    __shared__ float z[COUNT];
    __shared__ float s[32][4];
    z[t % COUNT] = 1;
    for (int i = 0; i < 4; i++) s[t][i] = A[t + i * n];
    __syncthreads();
    float q = z[t % 2];
    for (int i = 0; i < 4; i++) q += s[31 - t][i];
    O[t] = q;
}

//:: PADDED
extern "C" __global__ void k(const float *A, float *O, int n) { int t = threadIdx.x;
    __shared__ float s[32][WIDTH];
    for (int i = 0; i < 32; i++) s[i][t] = A[t + i * n];
    __syncthreads();
    float q = 0;
    for (int i = 0; i < 32; i++) q += s[t][i];
    O[t] = q;
}

//:: an array that starts at an odd word
//: frame = "BEHIND"
//: COUNT = "3"

//:: an array that starts at an odd pair
//: frame = "BEHIND"
//: COUNT = "6"

//:: rows padded to 33
//: frame = "PADDED"
//: WIDTH = "33"

//:: rows padded to 36
//: frame = "PADDED"
//: WIDTH = "36"

//:: doubles
extern "C" __global__ void k(const double *A, double *O, int n) {
    int t = threadIdx.x;
    __shared__ double s[32][4];
    for (int i = 0; i < 4; i++) s[t][i] = A[t + i * n];
    __syncthreads();
    O[t] = s[31 - t][0] + s[31 - t][1] + s[31 - t][2] + s[31 - t][3];
}

//:: pairs of float2
extern "C" __global__ void k(const float2 *A, float *O, int n) {
    int t = threadIdx.x;
    __shared__ float2 s[32][2];
    for (int i = 0; i < 2; i++) s[t][i] = A[t + i * n];
    __syncthreads();
    float2 p = s[31 - t][0], q = s[31 - t][1];
    O[t] = p.x * p.y + q.x * q.y;
}

//:: an array behind a flag, by its name
extern "C" __global__ void k(const float *A, float *O, int n) { int t = threadIdx.x;
    __shared__ bool flag;
    __shared__ float s[8];
    if (t < 8) s[t] = A[t];
    if (t == n) flag = A[n] > 0;
    __syncthreads();
    float q = flag;
    if (t == 0) for (int i = 0; i < 8; i++) q += s[i];
    O[t] = q;
}
