// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "launch limits"

[static_shared_too_much]
rule = "Static shared memory of more than 48 KB is refused by the assembler."
count = 1
verdict = "refused"
*/

extern "C" __global__ void static_shared_too_much(unsigned *out) {
    __shared__ volatile unsigned words[15000];
    words[threadIdx.x] = 1;
    if (threadIdx.x == 0)
        out[0] = words[0];
}
