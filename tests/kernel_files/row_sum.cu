// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "A row sum"
operation = "row_sum"
operation_title = "Sum of rows"
dimensions = ["rows", "columns"]
default_sizes = "64x32"
arguments = ["rows", "columns", "scale", "x", "y"]
dtypes = ["f32", "f64"]
entry = "row_sum"
compile_options = ["--use_fast_math"]
include = ["."]
define = { FAST = 1, CHECKED = true, ADD = "a + b" }
aliases = ["rs"]
rung = 10

[arrays]
x = { shape = ["rows", "columns"] }
y = { shape = ["rows"], role = "out" }

[scalars.scale]
default = 2.0
type = "real"

[inputs]
x = "normal(0, 1)"

[work]
flops = "rows * columns"
bytes = "(rows * columns + rows) * real_bytes"
rate = "bytes"

[check.y]
value = "scale * sum(x, axis=1)"
magnitude = "sum(abs(x), axis=1)"
relative = "8 * sqrt(columns) * u"

[launch]
block = [32, 8]
any_block = true
grid = ["cdiv(rows, block_y)"]
dynamic_shared_bytes = "0"

[parameters]
WIDTH = 32

[[require]]
condition = "columns % WIDTH == 0"
because = "columns must fit"

[[variants]]
id = "row_sum_64"
entry = "row_sum_wide<WIDTH, real>"
arguments = ["rows", "columns", "x", "y"]
dtypes = ["f64"]
parameters = { WIDTH = 64 }
define = { FAST = 0 }
launch = { block = [64], grid = ["rows"] }

[[variants]]
id = "row_sum_16"
parameters = { WIDTH = 16 }
*/
extern "C" __global__ void row_sum() {}
