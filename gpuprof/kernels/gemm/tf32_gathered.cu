// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
problem = "gemm"
dtypes = ["tf32"]
title = "TF32, rows of any length, gathered"
rung = 696.4
shape_of = "tf32"
idea = "As wgmma_gathered: for a C of few tiles whose rows the copy engine does not take, the warpgroup that fetches copies them."
after = "tf32_split"
change = "128 threads fetch, not one: pipe_lsu_instructions rise. No block waits for all others, as where rows are packed first."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
entry = "tf32"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]

[moves]
pipe_lsu_instructions = "rises"

[launch]
block = [256]
grid = ["CLUSTER * TILES"]
dynamic_shared_bytes = "128 * STAGES * (BM + BN)"

[constants]
BM = 64 # rows of C per block
BN = 64 # columns
BK = 32 # k per tile
TILES = "cdiv(M, BM) * cdiv(N, BN)" # of C
CLUSTER = "WAYS if WAYS else 1 if TILES >= sm_count else max(2, min(8, max(3 * sm_count // (4 * TILES), min(15 * sm_count // (8 * TILES), K // (4 * BK)))))" # two blocks an SM where each has four tiles of k
A_WIDTH = "16 if K % 4 == 0 else 8 if K % 2 == 0 else 4" # bytes of A that are copied at once: rows start at multiples of them
B_WIDTH = "16 if N % 4 == 0 else 8 if N % 2 == 0 else 4" # of B
SHARING = 1
SPLIT = 1
PANEL = 8
STAGES = "DEEP if DEEP else 4 if TILES <= 2 * sm_count else 3" # tiles in shared memory
RESIDENT = "2 if TILES <= 2 * sm_count else 3" # blocks that an SM has registers for

[parameters]
DEEP = 0 # tiles in shared memory; 0: as many as leave room for the blocks
WAYS = 0 # that share the k of a tile; 0 for as many as there are SMs for

[candidates]
DEEP = [0, 2, 3, 4, 6]
WAYS = [0, 1, 2, 3, 4, 6, 8]

[[require]]
condition = "(DEEP == 0 or DEEP >= 2) and 0 <= WAYS and WAYS <= 8"
because = "{id} shares a tile's k among at most 8 blocks"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define GATHERED
#include "tf32.cu"
