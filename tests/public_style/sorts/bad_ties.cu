// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Ranks that take equal elements for one: places are left out"
arguments = ["columns", "x", "y"]

[launch]
block = [128]
grid = ["rows"]
*/
// executor: any: a race or elements never written, whichever is met first
// gpu: incorrect
__global__ void bad_ties(int columns, const int *x, int *y)
{
    const int i = threadIdx.x, *row = x + blockIdx.x * columns;
    if (i >= columns)
        return;
    int place = 0;
    for (int k = 0; k < columns; ++k)
        place += row[k] < row[i];
    y[blockIdx.x * columns + place] = row[i];
}
