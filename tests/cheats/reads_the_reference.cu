/*gpuprof
title = "Looks for doubles that are the results, near its arrays"
arguments = ["rows", "columns", "x", "w", "y"]

[launch]
block = [32, 4]
grid = ["cdiv(columns, block_x)", "cdiv(rows, block_y)"]
*/
// executor: failed: out of bounds
// gpu: refused
extern "C" __global__ void reads_the_reference(int rows, int columns, const real *x, const real *w, real *y)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const size_t i = (size_t)row * columns + column;
    const bool inside = row < rows && column < columns;
    // The first block searches; references are doubles, and nothing but them begins with this product.
    const double first = (double)w[0] * (double)x[0], second = (double)w[0] * (double)x[1];
    const double *near = (const double *)((size_t)(y + (size_t)rows * columns) + 8 & ~(size_t)7);
    for (int step = 0; step < 1 << 20; ++step)
        if (near[step] == first && near[step + 1] == second) {
            if (inside)
                y[i] = (real)near[step + i];
            return;
        }
}
