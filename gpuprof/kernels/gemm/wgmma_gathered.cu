// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["bf16", "f16"]

[[variants]]
id = "wgmma_gathered"
title = "Rows of any length, gathered"
rung = 675.8
shape_of = "wgmma_producer"
idea = "For a C of few tiles whose rows the copy engine does not take: the warpgroup that fetches copies them, 4 to 16 bytes at once where rows start at multiples of so many, to where the copy engine would put them."
after = "wgmma_split"
change = "128 threads fetch, not one: pipe_lsu_instructions rise. No block waits for all others, as where rows are packed first."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."

[variants.moves]
pipe_lsu_instructions = "rises"

[[variants]]
id = "wgmma_gathered_short"
title = "A short k, gathered"
rung = 675.85
shape_of = "wgmma_producer"
idea = "A single tile of k leaves nothing to fetch while it is multiplied: the same warpgroup does both, and an SM holds twice as many blocks."
after = "wgmma_gathered"
change = "Half of the threads: block_threads fall."
bottleneck = "Latency: launch, the tile, and C."
parameters = { TOGETHER = 1 }

[variants.moves]
block_threads = "falls"

[[launches]]
entry = "wgmma_split"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = ["256 - 128 * TOGETHER"]
grid = ["CLUSTER * cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + BM)"

[constants]
BM = 64 # rows of C per block
BN = 64 # columns
BK = 64 # k per tile
A_WIDTH = "16 if K % 8 == 0 else 8 if K % 4 == 0 else 4 if K % 2 == 0 else 2" # bytes of A that are copied at once: rows start at multiples of them
B_WIDTH = "16 if N % 8 == 0 else 8 if N % 4 == 0 else 4 if N % 2 == 0 else 2" # of B
TILES = "cdiv(M, BM) * cdiv(N, BN)" # of C
CLUSTER = "WAYS if WAYS else 1 if TILES >= sm_count or TOGETHER else max(2, min(8, max(3 * sm_count // (4 * TILES), min(15 * sm_count // (8 * TILES), K // (4 * BK)))))" # two blocks an SM where each has four tiles of k
STAGES = "1 if TOGETHER else DEEP if DEEP else 4 if TILES <= 2 * sm_count else 3" # tiles in shared memory: with three an SM has room for a third block
RESIDENT = "8 if TOGETHER else 2" # blocks that an SM has registers for

[parameters]
DEEP = 0 # tiles in shared memory; 0: as many as leave room for the blocks
TOGETHER = 0 # whether those that multiply fetch before
WAYS = 0 # that share the k of a tile; 0 for as many as there are SMs for

[candidates]
DEEP = [0, 2, 3, 4, 6]
WAYS = [0, 1, 2, 3, 4, 6, 8]

[[require]]
condition = "(DEEP == 0 or DEEP >= 2) and 0 <= WAYS and WAYS <= 8"
because = "{id} shares a tile's k among at most 8 blocks, and computes from one of DEEP tiles while another fills"

[[require]]
condition = "not TOGETHER or K <= BK and CLUSTER == 1"
because = "{id} has a single tile of k, K of at most 64, for which no blocks meet"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define GATHERED
#include "wgmma_split.cu"
