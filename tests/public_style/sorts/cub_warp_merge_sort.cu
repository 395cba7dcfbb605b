// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "cub::WarpMergeSort"
arguments = ["x", "y"]

[launch]
block = [32]
grid = ["rows"]

[[require]]
condition = "columns == 128"
because = "a warp sorts a whole row"
*/
#include <cub/warp/warp_merge_sort.cuh>

__global__ void cub_warp_merge_sort(const int *x, int *y)
{
    using Sort = cub::WarpMergeSort<int, 4, 32>;
    __shared__ typename Sort::TempStorage temp;
    const int4 in = reinterpret_cast<const int4 *>(x)[blockIdx.x * 32 + threadIdx.x];
    int v[4] = {in.x, in.y, in.z, in.w};
    Sort(temp).Sort(v, [](const int &a, const int &b) { return a < b; });
    reinterpret_cast<int4 *>(y)[blockIdx.x * 32 + threadIdx.x] = make_int4(v[0], v[1], v[2], v[3]);
}
