// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "launch limits"

[stack_600_kb]
rule = "A stack of 600 KB for each thread is more than the 512 KB that CUDA allows."
count = 1
block = 1
verdict = "refused"
*/

extern "C" __global__ void stack_600_kb(unsigned *out) {
    volatile char stack[600 * 1024];
    for (unsigned i = 0; i < 4; ++i)
        stack[i * 1000 * (out[0] % 100)] = i;
    out[0] = stack[0];
}
