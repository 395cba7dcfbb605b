// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Structs by value: an image of OpenCV, a tensor's accessor, a vector; and the name of a function of CUDA's.
/*gpuprof
operation = "image"
dimensions = ["h", "w"]
default_sizes = "20x48"
arguments = ["{src, 3 * w as u64, w, h}", "{y, h, w, w, 1}", "{fx, fy, one}", "h"]
[arrays]
src = { shape = ["h", "w", "3"], dtype = "u8" }
y = { shape = ["h", "w"], role = "out" }
[scalars]
fx = { default = 0.5 }
fy = { default = 0.25 }
one = { default = 1.0 }
[work]
bytes = "7 * h * w"
[check]
y = { value = "fx * src[:, :, 0] + fy * src[:, :, 1] + one * src[:, :, 2]", relative = "4 * u" }
[launch]
block = [32, 4]
grid = ["cdiv(w, 32)", "cdiv(h, 4)"]
*/
#include <opencv2/core/cuda_types.hpp>
#include <torch/extension.h>
struct Place { int row, column; };
__global__ void norm(const cv::cuda::PtrStepSz<uchar3> src,
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> y, float3 f, int h)
{
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    Place at = {.row = i, .column = j};
    if (at.row >= src.rows || at.column >= src.cols)
        return;
    uchar3 pixel = src(at.row, at.column);
    y[at.row][at.column] = f.x * pixel.x + f.y * pixel.y + f.z * pixel.z;
}
