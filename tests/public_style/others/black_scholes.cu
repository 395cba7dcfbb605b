// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Option prices by Black and Scholes"
operation = "black_scholes"
dimensions = ["n"]
default_sizes = "500"
arguments = ["call_less_put", "price", "strike", "years", "n"]

[arrays.price]
shape = ["n"]

[arrays.strike]
shape = ["n"]

[arrays.years]
shape = ["n"]

[arrays.call_less_put]
shape = ["n"]
role = "out"

[inputs]
price = "uniform(5, 30)"
strike = "uniform(1, 100)"
years = "uniform(0.25, 10)"

[work]
flops = "60 * n"
bytes = "4 * n * real_bytes"

[check] # put-call parity, whatever the distribution
call_less_put = "price - strike * exp(-0.02 * years)"
relative = "64 * u"
magnitude = "price + strike"

[launch]
block = [128]
grid = ["cdiv(n, block_x)"]
*/
#define RISKFREE 0.02f
#define VOLATILITY 0.30f

__device__ inline float cndGPU(float d) { return 0.5f * erfcf(-d * 0.70710678f); }

__device__ inline void BlackScholesBodyGPU(float &CallResult, float &PutResult, float S, float X, float T)
{
    const float sqrtT = __fsqrt_rn(T);
    const float d1 = (logf(S / X) + (RISKFREE + 0.5f * VOLATILITY * VOLATILITY) * T) / (VOLATILITY * sqrtT);
    const float d2 = d1 - VOLATILITY * sqrtT;
    const float expRT = expf(-RISKFREE * T);
    CallResult = S * cndGPU(d1) - X * expRT * cndGPU(d2);
    PutResult = X * expRT * cndGPU(-d2) - S * cndGPU(-d1);
}

__launch_bounds__(128) __global__ void black_scholes(float *__restrict d_Difference, const float *__restrict d_Price,
    const float *__restrict d_Strike, const float *__restrict d_Years, int optN)
{
    const int opt = blockDim.x * blockIdx.x + threadIdx.x;
    if (opt < optN) {
        float call, put;
        BlackScholesBodyGPU(call, put, d_Price[opt], d_Strike[opt], d_Years[opt]);
        d_Difference[opt] = call - put;
    }
}
