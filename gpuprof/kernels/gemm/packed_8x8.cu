// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Smaller tiles, rows packed first"
problem = "gemm"
rung = 575
idea = "The copy engine takes rows that start at multiples of 16 bytes. Where those of A or B do not, a first launch copies them to rows that do; the second is streamk_8x8."
after = "streamk_8x8"
change = "Any M, N and K, for one more pass over A and B: next to nothing where K is long. C is written element by element through shared memory, so that global_store_requests rise."
bottleneck = "That of streamk_8x8; in small matrices the pass before it."

[moves]
global_store_requests = "rises"
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

[[launches]]
entry = "pack"
arguments = ["M", "N", "K", "A", "B", "A_packed", "B_packed"]
block = [256]
grid = ["min(sm_count * PACK_BLOCKS, max(M * cdiv(K, 256) if K % 4 else 0, K * cdiv(N, 256) if N % 4 else 0) // 8 + 1)"]

[[launches]]
entry = "streamk_8x8"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C"]
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
PACK_BLOCKS = 8 # blocks to an SM that copy

[[require]]
condition = "BM == 64 or BM == 128"
because = "{id} needs BM 64 or 128"

[[require]]
condition = "STAGES >= 3 and PACK_BLOCKS > 0"
because = "{id} needs three STAGES or more, and PACK_BLOCKS"

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
#define BLOCK_X 256 // which several launches leave undefined
#include "pack_rows.cuh"
#include "streamk_8x8.cu"
