// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*launches
[spmv_csr_scalar]
grid = [4]
block = [128]
arguments = ["i32 401", "i32[402] ramp 6", "i32[2406] below 401", "f32[2406]", "f32[401]", "f32[401]"]

[spmv_csr_vector]
grid = [101]
block = [128]
arguments = ["i32 401", "i32[402] ramp 37", "i32[14837] below 401", "f32[14837]", "f32[401]", "f32[401]"]

[spmv_ell]
grid = [4]
block = [128]
arguments = ["i32 401", "i32 7", "i32[2807] below 401", "f32[2807]", "f32[401]", "f32[401]"]

[spmv_coo]
grid = [6]
block = [128]
arguments = ["i32 700", "i32[700] below 90", "i32[700] below 90", "i32[700]", "i32[90]", "i32[90] zeros"]

[bfs_level]
grid = [4]
block = [96]
arguments = ["i32 350", "i32 1", "i32[351] ramp 4", "i32[1400] below 350", "i32[350] below 4"]

[relax_edges]
grid = [5]
block = [256]
arguments = ["i32 1200", "i32[1200] below 300", "i32[1200] below 300", "i32[1200]", "i32[300] below 900", "i32[300] below 1000"]

[count_degrees]
grid = [5]
block = [256]
arguments = ["i32 1200", "i32[1200] below 300", "i32[300] zeros"]

[count_triangles]
grid = [2]
block = [128]
arguments = ["i32 200", "i32[201] ramp 6", "i32[1200] sorted 6 200", "u32[1] zeros"]

[smallest_label]
grid = [3]
block = [128]
arguments = ["i32 300", "i32[301] ramp 3", "i32[900] below 300", "i32[300] permutation", "i32[300]"]

[page_rank_pull]
grid = [3]
block = [128]
arguments = ["i32 300", "i32[301] ramp 5", "i32[1500] below 300", "f32[300] uniform 0 1", "f32[300]"]

[floyd_warshall_step]
grid = [3, 5]
block = [32, 16]
arguments = ["i32 70", "i32 33", "i32[4900]"]
*/

extern "C" __global__ void spmv_csr_scalar(int rows, const int *starts, const int *columns, const float *values,
                                           const float *x, float *y)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float sum = 0;
    for (int k = starts[r]; k < starts[r + 1]; ++k)
        sum += values[k] * x[columns[k]];
    y[r] = sum;
}

extern "C" __global__ void spmv_csr_vector(int rows, const int *starts, const int *columns, const float *values,
                                           const float *x, float *y)
{
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= rows)
        return;
    float sum = 0;
    for (int k = starts[r] + lane; k < starts[r + 1]; k += 32)
        sum += values[k] * x[columns[k]];
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, s);
    if (lane == 0)
        y[r] = sum;
}

extern "C" __global__ void spmv_ell(int rows, int width, const int *columns, const float *values, const float *x,
                                    float *y)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float sum = 0;
    for (int k = 0; k < width; ++k)
        sum += values[k * rows + r] * x[columns[k * rows + r]];
    y[r] = sum;
}

extern "C" __global__ void spmv_coo(int n, const int *rows, const int *columns, const int *values, const int *x,
                                    int *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&y[rows[i]], values[i] * x[columns[i]]);
}

extern "C" __global__ void bfs_level(int nodes, int level, const int *starts, const int *edges, int *levels)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nodes || atomicAdd(&levels[v], 0) != level)
        return;
    for (int k = starts[v]; k < starts[v + 1]; ++k)
        atomicCAS(&levels[edges[k]], 0, level + 1);
}

extern "C" __global__ void relax_edges(int edges, const int *from, const int *to, const int *length,
                                       const int *known, int *distance)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges)
        atomicMin(&distance[to[e]], known[from[e]] + length[e]);
}

extern "C" __global__ void count_degrees(int edges, const int *to, int *degrees)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges)
        atomicAdd(&degrees[to[e]], 1);
}

extern "C" __global__ void count_triangles(int nodes, const int *starts, const int *edges, unsigned *triangles)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nodes)
        return;
    unsigned found = 0;
    for (int k = starts[v]; k < starts[v + 1]; ++k) {
        int u = edges[k], i = starts[v], j = starts[u];
        while (i < starts[v + 1] && j < starts[u + 1]) {
            int a = edges[i], b = edges[j];
            found += a == b;
            i += a <= b;
            j += b <= a;
        }
    }
    atomicAdd(triangles, found);
}

extern "C" __global__ void smallest_label(int nodes, const int *starts, const int *edges, const int *in, int *out)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nodes)
        return;
    int label = in[v];
    for (int k = starts[v]; k < starts[v + 1]; ++k)
        label = min(label, in[edges[k]]);
    out[v] = label;
}

extern "C" __global__ void page_rank_pull(int nodes, const int *starts, const int *edges, const float *rank,
                                          float *next)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nodes)
        return;
    float sum = 0;
    for (int k = starts[v]; k < starts[v + 1]; ++k) {
        int u = edges[k];
        sum += rank[u] / (starts[u + 1] - starts[u]);
    }
    next[v] = 0.15f / nodes + 0.85f * sum;
}

extern "C" __global__ void floyd_warshall_step(int n, int k, int *distance)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n || i == k || j == k)
        return;
    int through = distance[i * n + k] + distance[k * n + j];
    if (through < distance[i * n + j])
        distance[i * n + j] = through;
}
