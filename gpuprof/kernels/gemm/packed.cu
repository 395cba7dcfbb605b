// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows packed first"
problem = "gemm"
aliases = ["packed_8x16"]
rung = 580
shape_of = "realigned"
idea = "The copy engine takes rows that start at multiples of 16 bytes. Where those of A or B do not, all blocks first copy them to rows that do, and go on as streamk once all have."
after = "realigned"
change = "One more pass over A and B, next to nothing where K is long, and no element moves within shared memory: shared_load_requests fall."
bottleneck = "That of streamk; in small matrices the copying before it, for which all blocks wait."
entry = "streamk"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "A", "B", "A_packed", "B_packed"]

[moves]
shared_load_requests = "falls"

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
box = ["256 * TM * TN // BM", "BK"]

[launch]
block = [256]
grid = ["BLOCKS"]
dynamic_shared_bytes = "(STAGES * BK * (2 * BM + 256 * TM * TN // BM) + 8 * block_x // 32 * (4 * TN + 16)) * real_bytes"
cooperative = true

[constants]
BK = 16        # k per tile
WARPS = 8
DEEP = "STAGES"
BM = 128       # rows of C per block
TM = 8         # rows of C per thread
TN = 16        # columns of C per thread
SM_BLOCKS = 1
SCALE_FIRST = 0
WHOLE = 0
SHARE_TILES = "cdiv(M, BM) * cdiv(N, 256 * TM * TN // BM)" # of C, of which each SM does an equal part: its cycles of products,
BLOCKS = "min(sm_count * SM_BLOCKS, SHARE_TILES * cdiv(K, BK))"
CYCLES = "cdiv(SHARE_TILES * cdiv(K, BK), sm_count) * BK * 2 * TM * TN"
WRITES = "(SHARE_TILES + BLOCKS) * TM * TN * 8 // sm_count" # what its warps write of C: each tile, and the part of one that each block ends with,
WAITS = "BLOCKS * TM * TN * 8 // SHARE_TILES" # and what the blocks of a tile write one after the other
COPIES = "(M * K * (K % 4 > 0) + N * K * (N % 4 > 0)) // (128 * sm_count)" # rows that are copied first

[parameters]
STAGES = 4

[candidates]
STAGES = [3, 4]

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one is turned, one fills"

[[require]]
condition = "sm_count <= 1024"
because = "{id} has room to mark the tiles of 1024 SMs"

[[require]]
condition = "arch >= 90"
because = "{id} uses bulk copies, which need compute capability 9.0"

[[require]]
condition = "arch < 120"
because = "{id} fills 148 KiB of shared memory per block, more than compute capability 12 has"
*/

#define PACKED
#include "streamk.cu"
