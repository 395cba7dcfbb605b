// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Ballots of each bit: every lane counts two values, and no atomic is needed"
arguments = ["n", "data", "counts"]

[launch]
block = [32]
grid = ["1"]
*/
__global__ void ballots(int n, const int *data, int *counts)
{
    const unsigned lane = threadIdx.x;
    int low = 0, high = 0;
    for (int first = 0; first < n; first += 32) {
        const bool here = first + lane < n;
        const int v = here ? data[first + lane] : 0;
        unsigned mine = __ballot_sync(~0u, here);
#pragma unroll
        for (int bit = 0; bit < 5; ++bit) {
            const unsigned set = __ballot_sync(~0u, v >> bit & 1);
            mine &= lane >> bit & 1 ? set : ~set;
        }
        const unsigned upper = __ballot_sync(~0u, v >> 5 & 1);
        low += __popc(mine & ~upper), high += __popc(mine & upper);
    }
    counts[lane] = low;
    counts[lane + 32] = high;
}
