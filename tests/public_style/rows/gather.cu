// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows of an embedding table, gathered as float4"
operation = "embedding"
dimensions = ["words", "tokens", "width"]
default_sizes = "50x33x64"
arguments = ["tokens", "width", "table", "ids", "y"]

[arrays.table]
shape = ["words", "width"]

[arrays.ids]
shape = ["tokens"]
dtype = "i64"

[arrays.y]
shape = ["tokens", "width"]
role = "out"

[inputs]
ids = "integers(0, 50)"

[work]
bytes = "2 * tokens * width * real_bytes"

[check]
y = { value = "take(table, ids, axis=0)", equal = true }

[launch]
block = [16, 4]
grid = ["cdiv(tokens, 4)"]
*/
__global__ void gather(int tokens, int width, const float4 *table, const long long *ids, float4 *y)
{
    const int token = blockIdx.x * blockDim.y + threadIdx.y;
    if (token < tokens)
        for (int i = threadIdx.x; i < width / 4; i += blockDim.x)
            y[token * (width / 4) + i] = table[ids[token] * (width / 4) + i];
}
