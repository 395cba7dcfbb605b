// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["f64"]
rung = 655
title = "64x64 tiles on FP64 tensor cores, an even share"
idea = "Stream-K: the k-tiles of all tiles of C are dealt out evenly to two blocks an SM, or to one where a share would be of fewer than sixteen. A tile that several blocks share is written by the first and added to by the others."
after = "dmma_64x64"
shape_of = "dmma_128x128"
change = "No last wave of blocks leaves SMs idle, and a C of fewer tiles than SMs fills them all: grid_blocks rise. Atomic additions to C are the price."
bottleneck = "FP64 tensor cores; at small sizes the wait for each piece's first tiles."

[moves]
grid_blocks = "rises"

[[launches]]
entry = "dmma"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["32 * (BM // WM) * (BN // WN)"]
grid = ["min(sm_count * SM_BLOCKS, max(min(sm_count, cdiv(M, BM) * cdiv(N, BN) * cdiv(K, BK)), cdiv(M, BM) * cdiv(N, BN) * cdiv(K, BK) // 16))"]
dynamic_shared_bytes = "STAGES * BK * (BM + BN) * real_bytes"
cooperative = true

[parameters]
BM = 64    # rows of C per block
BN = 64    # columns of C per block
WM = 32    # rows of C per warp
WN = 32    # columns of C per warp
BK = 16    # k per tile
STAGES = 4 # tiles in shared memory
DEPTH = 8  # k per instruction, from compute capability 9.0 on; it is 4 before
PANEL = 8  # tile rows whose blocks run together
SM_BLOCKS = 2 # blocks to an SM at most

[candidates]
BM = [64, 128]
BN = [64, 128]
WM = [32, 64]
WN = [16, 32, 64]
BK = [16, 32]
STAGES = [3, 4, 5, 6]
DEPTH = [4, 8, 16]
SM_BLOCKS = [1, 2, 3]

[[require]]
condition = "1900 * sm_count <= M * N and M * N <= 6200 * sm_count"
because = "{id} is for a C of 1900 to 6200 elements an SM: smaller ones have too little k to share out, in larger ones a last wave costs little"

[[require]]
condition = "SM_BLOCKS > 0 and sm_count * SM_BLOCKS <= 1024"
because = "{id} has room to mark the tiles of 1024 blocks"

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
condition = "arch >= 80"
because = "{id} needs FP64 tensor cores and cp.async, which come with compute capability 8.0"

[[require]]
condition = "arch == 80 or arch == 87 or 90 <= arch < 120 or SM_BLOCKS * STAGES * BK * (BM + BN) * real_bytes <= 101376"
because = "{id} fills more shared memory per SM than this compute capability has; with SM_BLOCKS=1 and STAGES=3 it does not"
*/

#define EVEN
#include "dmma.cu"
