// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Smaller tiles, rows packed first"
problem = "gemm"
rung = 575
idea = "The copy engine takes rows that start at multiples of 16 bytes. Where those of A or B do not, all blocks first copy them to rows that do, and go on as streamk_8x8 once all have."
after = "streamk_8x8"
shape_of = "realigned_8x8"
change = "Any M, N and K, for one more pass over A and B: next to nothing where K is long. C is added to element by element through shared memory, so that global_atomic_requests rise."
bottleneck = "That of streamk_8x8; in small matrices the copying before it, for which all blocks wait."
entry = "streamk_8x8"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "A", "B", "A_packed", "B_packed"]

[moves]
global_atomic_requests = "rises"
ffma_thread_instructions = "stays"

[workspace.A_packed]
shape = ["M", "cdiv(K, 4) * 4"]

[workspace.B_packed]
shape = ["K", "cdiv(N, 4) * 4"]

[tensor_maps.A_map]
array = ["A", "A_packed"]
extents = ["K", "M"]
strides = ["cdiv(K, 4) * 4"]
box = ["BK", "BM"]
swizzle_bytes = 64

[tensor_maps.B_map]
array = ["B", "B_packed"]
extents = ["N", "K"]
strides = ["cdiv(N, 4) * 4"]
box = ["16384 // BM", "BK"]

[launch]
block = [256]
grid = ["min(sm_count * SM_BLOCKS, cdiv(M, BM) * cdiv(N, 16384 // BM) * cdiv(K, BK))"]
dynamic_shared_bytes = "(STAGES * BK * (2 * BM + 16384 // BM) + block_x * 12) * real_bytes"
cooperative = true

[constants]
BK = 16  # k per tile

[parameters]
BM = 64         # rows of C per block: 64 or 128; columns are 16384 / BM
STAGES = 4
SM_BLOCKS = 2   # blocks to an SM

[candidates]
BM = [64, 128]
STAGES = [3, 4]
SM_BLOCKS = [1, 2]

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} needs BM 64 or 128"

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "SM_BLOCKS > 0 and sm_count * SM_BLOCKS <= 1024"
because = "{id} has room to mark the tiles of 1024 blocks"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "{id} fills 216 KiB of shared memory per SM, more than compute capability 12 has"
*/

#define ANY_N
#include "streamk_8x8.cu"
