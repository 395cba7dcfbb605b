// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["f64"]

[[variants]]
id = "dmma_64x64_split"
rung = 657
title = "64x64 tiles on FP64 tensor cores, k split over two blocks"
idea = "For a C of few tiles for each SM: the two blocks of a cluster share out the k of a tile, and each adds up a half of the sums, which it reads from the other's shared memory. Nobody waits for memory, or adds to C there."
after = "dmma_128x128"
change = "Twice as many blocks, each with half the k: grid_blocks rise. A tile's sums pass through shared memory once, at the end."
bottleneck = "L2 bandwidth, and the wait for each block's first tiles: a block has little k."
parameters = { CLUSTER = 2 }

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "dmma_64x64_split_four"
rung = 658
title = "64x64 tiles on FP64 tensor cores, k split over four blocks"
idea = "The same with four blocks a cluster, for a C of a third as many tiles as there are SMs, or fewer."
after = "dmma_64x64_split"
shape_of = "dmma_64x64_split"
change = "Four blocks share a tile: grid_blocks rise once more."
bottleneck = "Memory latency: at 256 a block has four tiles of k."
parameters = { CLUSTER = 4 }

[variants.moves]
grid_blocks = "rises"

[[launches]]
entry = "dmma"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["32 * (BM // WM) * (BN // WN)"]
grid = ["cdiv(M, BM) * cdiv(N, BN) * CLUSTER"]
dynamic_shared_bytes = "max(STAGES * BK * (BM + BN), BM * BN) * real_bytes"

[parameters]
CLUSTER = 2 # blocks that share the k of a tile
BM = 64    # rows of C per block
BN = 64    # columns of C per block
WM = 32    # rows of C per warp
WN = 32    # columns of C per warp
BK = 16    # k per tile
STAGES = 4 # tiles in shared memory
DEPTH = 8  # k per instruction
PANEL = 8  # tile rows whose blocks run together

[candidates]
CLUSTER = [2, 4]
BM = [64, 128]
BN = [64, 128]
WM = [32, 64]
WN = [16, 32, 64]
BK = [16, 32]
STAGES = [3, 4, 5, 6]
DEPTH = [4, 8, 16]

[[require]]
condition = "WM > 0 and WN > 0 and WM % 32 == 0 and WN % 16 == 0 and BM % WM == 0 and BN % WN == 0"
because = "{id} needs warps of a multiple of 32 rows and 16 columns, which divide the block's"

[[require]]
condition = "WM * WN <= 2048"
because = "{id} keeps a warp's sums in registers, which hold WM * WN of at most 2048"

[[require]]
condition = "DEPTH == 4 or DEPTH == 8 or DEPTH == 16"
because = "{id} needs DEPTH 4, 8 or 16"

[[require]]
condition = "(BK == 16 or BK == 32) and BK >= 2 * DEPTH"
because = "{id} needs BK 16 or 32, two DEPTH or more: one is multiplied while the next is loaded"

[[require]]
condition = "32 * (BM // WM) * (BN // WN) % BN == 0 and 32 * (BM // WM) * (BN // WN) % BK == 0 and BM * BK % (64 * (BM // WM) * (BN // WN)) == 0 and BN * BK % (64 * (BM // WM) * (BN // WN)) == 0"
because = "{id} copies whole rows by all threads: they must be a multiple of BN and of BK, and half of them may not exceed a tile's values"

[[require]]
condition = "STAGES >= 3"
because = "{id} needs three STAGES or more: one is computed from, one has arrived, one fills"

[[require]]
condition = "PANEL >= 1"
because = "{id} needs a PANEL of one tile row or more"

[[require]]
condition = "CLUSTER >= 2 and CLUSTER <= 8"
because = "{id} needs a CLUSTER of 2 to 8 blocks"

[[require]]
condition = "arch >= 90"
because = "{id} uses clusters, which need compute capability 9.0"

[[require]]
condition = "arch < 120 or STAGES * BK * (BM + BN) * real_bytes <= 101376"
because = "{id} fills more shared memory per block than this compute capability has; with STAGES=3 it does not"
*/

#include "dmma.cu"
