// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// y = 2 x of an array of three dimensions: a box at a time in and out, cut off at the edges by the engine.
/*gpuprof
title = "Twice, box by box"
arguments = ["from", "to"]
entry = "twice"
dtypes = ["f32", "f64"]
operation = "twice"
dimensions = ["planes", "rows", "columns"]
default_sizes = "3x21x40"
[arrays.x]
shape = ["planes", "rows", "columns"]
[arrays.y]
shape = ["planes", "rows", "columns"]
role = "out"
[work]
bytes = "2 * planes * rows * columns * real_bytes"
[check]
y = { value = "2 * x", equal = true }

[tensor_maps.from]
array = "x"
box = ["16", "8", "2"]

[tensor_maps.to]
array = "y"
box = ["16", "8", "2"]

[launch]
block = [64]
grid = ["cdiv(columns, 16)", "cdiv(rows, 8)", "cdiv(planes, 2)"]
*/

#include "hopper.cuh"

extern "C" __global__ void twice(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to)
{
    __shared__ __align__(128) real tile[2 * 8 * 16];
    __shared__ unsigned long long barrier;
    const int t = threadIdx.x;
    const int x = blockIdx.x * 16, y = blockIdx.y * 8, z = blockIdx.z * 2;
    if (t == 0) {
        set_up(at(&barrier), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(at(&barrier), sizeof tile);
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(at(tile)), "l"(&from), "r"(x), "r"(y), "r"(z),
                     "r"(at(&barrier)) : "memory");
    }
    __syncthreads();
    wait(at(&barrier), 0);
    for (int i = t; i < 2 * 8 * 16; i += BLOCK_X)
        tile[i] = tile[i] + tile[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // visible
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];"
                     ::"l"(&to), "r"(x), "r"(y), "r"(z), "r"(at(tile)) : "memory"); // sent
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
