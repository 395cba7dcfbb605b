// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows of any length"
problem = "gemm"
dtypes = ["bf16", "f16"]

[[variants]]
id = "wgmma_packed"
rung = 688
shape_of = "wgmma_streamk"
idea = "The copy engine takes rows that start at multiples of 16 bytes. Where those of A or B do not, a launch before copies them to rows that do; C is written by the warps, two neighbours a lane."
after = "wgmma_streamk"
change = "One more pass over A and B, next to nothing where K is long, and no tensor map of C: pipe_lsu_instructions rise."
bottleneck = "That of wgmma_streamk; in small matrices the copying before it."

[variants.moves]
pipe_lsu_instructions = "rises"

[[variants]]
id = "wgmma_packed_128x128"
rung = 689
shape_of = "wgmma_streamk"
title = "Rows of any length, 128x128 tiles"
idea = "The same for a small C."
after = "wgmma_packed"
change = "Half of the tile, of which less lies beyond a small C."
bottleneck = "Latency: two launches, and the adding up of a tile's pieces."
parameters = { BN = 128, LEAST = 8 }

[variants.moves]
shared_bytes = "falls"

[workspace.A_packed]
shape = ["M", "cdiv(K, 8) * 8"]

[workspace.B_packed]
shape = ["K", "cdiv(N, 8) * 8"]

[workspace.partial]
shape = ["sm_count", "BM * BN"]
dtype = "f32"

[tensor_maps.A_map]
array = ["A", "A_packed"]
extents = ["K", "M"]
strides = ["cdiv(K, 8) * 8"]
box = ["BK", "BM"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = ["B", "B_packed"]
extents = ["N", "K"]
strides = ["cdiv(N, 8) * 8"]
box = ["64", "BK // CLUSTER"]
swizzle_bytes = 128

[[launches]]
entry = "pack_operands"
arguments = ["M", "N", "K", "A", "B", "A_packed", "B_packed"]
block = ["1024"]
grid = ["1 if N % 8 == 0 and K % 8 == 0 else 2 * sm_count"]

[[launches]]
entry = "wgmma_streamk"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "partial"]
block = ["384"]
grid = ["min(sm_count // CLUSTER, cdiv(cdiv(N, BN) * cdiv(M, BM * CLUSTER) * cdiv(K, BK), LEAST)) * CLUSTER"]
cooperative = true
dynamic_shared_bytes = "(STAGES * BK * (BM + BN) + 2 * 64 * BM) * real_bytes"

[constants]
BM = 128 # rows of C per block
BK = 64  # k per tile

[parameters]
BN = 256   # columns of C per block
STAGES = 4 # tiles in shared memory
CLUSTER = 2 # blocks that share columns of B
LEAST = 4  # tiles of k that a block has, unless there are fewer
PANEL = 8  # rows of clusters whose tiles run together

[candidates]
CLUSTER = [1, 2]
LEAST = [2, 4, 8]
BN = [64, 128, 192, 256]
STAGES = [3, 4, 5, 6]
PANEL = [1, 2, 4, 8, 16]

[[require]]
condition = "BN == 64 or BN == 128 or BN == 192 or BN == 256"
because = "{id} has products of 64, 128, 192 and 256 columns"

[[require]]
condition = "CLUSTER == 1 or CLUSTER == 2 or CLUSTER == 4"
because = "{id} shares columns among 1, 2 or 4 blocks"

[[require]]
condition = "2 * (STAGES * BK * (BM + BN) + 2 * 64 * BM) <= 231424"
because = "{id} has 226 KiB of shared memory for its tiles"

[[require]]
condition = "LEAST >= 1"
because = "{id} gives each block a tile of k or more"

[[require]]
condition = "sm_count <= 256"
because = "{id} has room to mark the sums of 256 blocks"

[[require]]
condition = "PANEL >= 1"
because = "{id} needs a PANEL of one row of clusters or more"

[[require]]
condition = "STAGES >= 2"
because = "{id} needs two STAGES or more: one is computed from, the others fill"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define PACKED
#include "pack_halves.cuh"
#include "wgmma_streamk.cu"
