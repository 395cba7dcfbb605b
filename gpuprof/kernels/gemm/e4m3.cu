// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["e4m3"]
layout = "tn"

[[variants]]
id = "e4m3"
rung = 698
title = "8-bit floats by warpgroups"
idea = "A byte a number: a row of 128 bytes holds 128 k, and one instruction multiplies 32 of them where it multiplied 16 halves. Of 8-bit floats wgmma takes operands along k only, so A lies in rows and B in columns. All else is as in wgmma_store_fit: a warp fetches, warpgroups multiply, the copy engine writes C, in bf16."
change = "The first rung of 8-bit floats, which tensor cores multiply as they are; of the fraction of their sums they keep 13 bits."
bottleneck = "Shared memory, from which tensor cores read 80 of 128 bytes a cycle while 48 come in; in large matrices the power that tensor cores may draw."

[[variants]]
id = "e4m3_64"
rung = 698.1
shape_of = "e4m3"
title = "64 rows of 8-bit floats"
idea = "For a C of few tiles: one warpgroup that multiplies, so that there are twice as many blocks."
after = "e4m3"
change = "Half of the tile: block_threads fall."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BM = 64, GRAIN = 64, SHARING = 1, PANEL = 4 }

[variants.moves]
block_threads = "falls"

[[variants]]
id = "e4m3_split"
rung = 698.2
shape_of = "e4m3"
title = "8-bit floats, k split over the blocks of a cluster"
idea = "wgmma_split for 8-bit floats."
after = "e4m3_64"
change = "Two to eight blocks share out the k of a tile: grid_blocks rise."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
parameters = { BM = 64, WIDEST = 128, SHARING = 1, SPLIT = 1 }
launches = [{ entry = "wgmma_split", arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map"], block = ["128 + 2 * BM"], grid = ["CLUSTER * cdiv(N, BN)", "cdiv(M, BM)"], dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + PIECES * BM)" }]

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "e4m3_192"
rung = 698.3
shape_of = "e4m3"
title = "192 rows of 8-bit floats"
idea = "wgmma_store_192 for 8-bit floats."
after = "e4m3"
change = "Three warpgroups that multiply: block_threads rise."
bottleneck = "Shared memory, from which three warpgroups read the same columns of B."
parameters = { BM = 192, WIDEST = 192, PIECES = 1 }

[variants.moves]
block_threads = "rises"

[tensor_maps.A_map]
array = "A"
box = ["BK", "A_ROWS"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BK", "BN // SHARING"]
swizzle_bytes = 128

[tensor_maps.C_map]
array = "C"
box = ["64", "16"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_store"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map"]
block = ["128 + 2 * BM"]
grid = ["min(sm_count // CLUSTER, cdiv(N, BN) * cdiv(M, BM * CLUSTER)) * CLUSTER"]
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + PIECES * BM)"

[constants]
A_ROWS = "min(BM, cdiv(M, 8) * 8)" # of a tile of A that are fetched: zeros in the place of others would take as long as rows
BK = 128 # k per tile
ROWS = "cdiv(M, BM * SHARING)" # of clusters
ACROSS = "cdiv(ROWS * cdiv(N, WIDEST), sm_count // SHARING) * (sm_count // SHARING) // ROWS" # tiles in a row, in no more waves
BN = "(64 if 2 * ROWS * cdiv(N, 64) <= sm_count else WIDEST) if SPLIT else max(64, GRAIN * cdiv(N, GRAIN * ACROSS))" # columns of C per block
CLUSTER = "max(2, min(8, 3 * sm_count // (4 * ROWS * cdiv(N, BN)))) if SPLIT else SHARING"
STAGES = "min(8, (1808 - PIECES * BM) // (BM + BN))" # tiles in shared memory, of 226 KiB

[parameters]
BM = 128     # rows of C per block
WIDEST = 256 # most columns of C per block
GRAIN = 16   # by so many fewer where that fills the last wave
SHARING = 2  # blocks of a cluster that share columns of B
SPLIT = 0    # whether those of a cluster share out the k of a tile instead
PANEL = 8    # rows of clusters whose tiles run together
PIECES = 2   # of C in shared memory, for each warp

[candidates]
BM = [64, 128, 192]
WIDEST = [64, 128, 192, 256]
GRAIN = [16, 32, 64]
PANEL = [2, 4, 8]
PIECES = [1, 2]

[[require]]
condition = "BM == 64 or BM == 128 or BM == 192 and WIDEST <= 192 and not SPLIT"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two, or of three with 192 columns"

[[require]]
condition = "WIDEST >= 64 and WIDEST <= 256 and WIDEST % GRAIN == 0 and GRAIN % 16 == 0 and BN % (8 * SHARING) == 0 and (SHARING == 1 or not SPLIT)"
because = "{id} has products of 64, 80, 96, … 256 columns"

[[require]]
condition = "PIECES == 2 or PIECES == 1 and not SPLIT"
because = "{id} writes C by way of one piece in shared memory or two, and of shared sums by two"

[[require]]
condition = "N % 8 == 0 and K % 16 == 0"
because = "{id} copies 16 bytes at a time: K must be a multiple of 16, and N one of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

// Of the run's type are A and B alone, which only the copy engine and tensor cores see: C's is what threads write.
#include <cuda_bf16.h>
#undef real
#define real __nv_bfloat16
#if SPLIT
#include "wgmma_split.cu"
#else
#include "wgmma_store.cu"
#endif
