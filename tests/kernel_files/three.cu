// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Neighbours in one dimension, edges repeated; rows of three come in any order.
/*gpuprof
operation = "three"
dimensions = ["n"]
default_sizes = "200"
arguments = ["x", "y", "n"]
[arrays]
x = { shape = ["n"] }
y = { shape = ["n", "3"], role = "out" }
[inputs]
x = "sorted(0, 1)"
[work]
bytes = "16 * n"
[check.parts]
wide = "pad(x, 1, edge=True)"
three = "concatenate((reshape(wide[:-2], (n, 1)), reshape(x, (n, 1)), reshape(wide[2:], (n, 1))), axis=1)"
[check.y]
value = "three"
unordered = true
relative = "u"
[launch]
block = [64]
grid = ["cdiv(n, 64)"]
*/
__global__ void three(const float *x, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    y[3 * i + i % 3] = x[i];
    y[3 * i + (i + 1) % 3] = x[max(i - 1, 0)];
    y[3 * i + (i + 2) % 3] = x[min(i + 1, n - 1)];
}
