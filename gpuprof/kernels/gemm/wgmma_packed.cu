// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "Rows of any length"
problem = "gemm"
dtypes = ["bf16", "f16"]

rung = 688
shape_of = "wgmma_streamk"
idea = "The copy engine takes rows that start at multiples of 16 bytes. Where those of A or B do not, all blocks first copy them to rows that do; C is written by the warps, two neighbours a lane."
entry = "wgmma_streamk"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "partial", "A", "B", "A_packed", "B_packed"]
after = "wgmma_streamk"
change = "One more pass over A and B, next to nothing where K is long, and no tensor map of C: pipe_lsu_instructions rise. The smaller C, the narrower its tiles."
bottleneck = "That of wgmma_streamk; in small matrices the copying before it, for which all blocks wait."

[moves]
pipe_lsu_instructions = "rises"

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

[launch]
block = [384]
grid = ["min(sm_count // CLUSTER, max(TILES, cdiv(TILES * cdiv(K, BK), LEAST))) * CLUSTER"]
cooperative = true
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + 2 * BM)"

[constants]
BM = 128 # rows of C per block
BK = 64  # k per tile
CLUSTER = "SHARES if SHARES else 1 if M <= BM else 2"
PER_SM = "M * N // sm_count" # elements of C
BN = "64 if PER_SM <= 6000 else 128 if PER_SM <= 20000 else 192 if PER_SM <= 90000 else 256" # columns of C per block
TILES = "cdiv(N, BN) * cdiv(M, BM * CLUSTER)" # of C, as many as a cluster has blocks
STAGES = "min(8, (1808 - 2 * BM) // (BM + BN))" # tiles in shared memory, of 226 KiB

[parameters]
SHARES = 0 # blocks of a cluster, which share columns of B; 0 for two, unless one has all rows
LEAST = 8  # tiles of k that a block has, unless those of its tile of C are fewer
PANEL = 8  # rows of clusters whose tiles run together

[candidates]
SHARES = [0, 1, 2]
LEAST = [2, 4, 8]
PANEL = [1, 2, 4, 8, 16]

[[require]]
condition = "SHARES == 0 or SHARES == 1 or SHARES == 2 or SHARES == 4"
because = "{id} shares columns among 1, 2 or 4 blocks"

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
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define PACKED
#include "wgmma_streamk.cu"
