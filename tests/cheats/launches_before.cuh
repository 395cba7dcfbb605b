// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0

// How many launches there were before, told by the blocks that have arrived since the module was loaded.
__device__ unsigned arrivals;

static __device__ unsigned launches_before()
{
    __shared__ unsigned launch;
    if (threadIdx.x == 0 && threadIdx.y == 0)
        launch = atomicAdd(&arrivals, 1u) / (gridDim.x * gridDim.y);
    __syncthreads();
    return launch;
}
