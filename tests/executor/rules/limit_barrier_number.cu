// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "launch limits"

[barrier_20_as_constant]
rule = "Barriers are numbered 0 to 15: 20 as a constant is refused by the assembler."
verdict = "refused"
*/

extern "C" __global__ void barrier_20_as_constant(unsigned *out) {
    asm volatile("bar.sync 20;" ::: "memory");
    out[threadIdx.x] = threadIdx.x;
}
