// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "8-bit floats, rows of any length, gathered"
problem = "gemm"
dtypes = ["e4m3"]
layout = "tn"
rung = 698.5
shape_of = "e4m3"
idea = "As wgmma_gathered: rows that the copy engine does not take, and cuBLASLt neither, are copied by a warpgroup, 4 to 16 bytes at once where they start at multiples of so many, byte by byte where they start anywhere."
after = "e4m3_split"
change = "128 threads fetch, not one: pipe_lsu_instructions rise. K and N may be any number."
bottleneck = "Where rows start anywhere the loads, of a byte each; else latency: launch, the first tiles, and the meeting of the blocks."

[moves]
pipe_lsu_instructions = "rises"

[[launches]]
entry = "wgmma_split"
arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]
block = [256]
grid = ["CLUSTER * cdiv(N, BN)", "cdiv(M, BM)"]
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + BM)"

[constants]
BM = 64 # rows of C per block
BN = 64 # columns
BK = 128 # k per tile
A_WIDTH = "16 if K % 16 == 0 else 8 if K % 8 == 0 else 4 if K % 4 == 0 else 1" # bytes that are copied at once: rows start at multiples of them
B_WIDTH = "A_WIDTH"
TILES = "cdiv(M, BM) * cdiv(N, BN)" # of C
CLUSTER = "WAYS if WAYS else 1 if TILES >= sm_count else max(2, min(8, max(3 * sm_count // (4 * TILES), min(15 * sm_count // (8 * TILES), K // (4 * BK)))))" # two blocks an SM where each has four tiles of k
STAGES = "DEEP if DEEP else 4 if TILES <= 2 * sm_count else 3" # tiles in shared memory
RESIDENT = 2 # blocks that an SM has registers for at least

[parameters]
DEEP = 0 # tiles in shared memory; 0: as many as leave room for the blocks
WAYS = 0 # that share the k of a tile; 0 for as many as there are SMs for

[candidates]
DEEP = [0, 2, 3, 4, 6]
WAYS = [0, 1, 2, 3, 4, 6, 8]

[[require]]
condition = "(DEEP == 0 or DEEP >= 2) and 0 <= WAYS and WAYS <= 8"
because = "{id} shares a tile's k among at most 8 blocks, and computes from one of DEEP tiles while another fills"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

// Of the run's type are A and B alone.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#undef real
#define real __nv_bfloat16
#define OPERAND __nv_fp8_e4m3
#define GATHERED
#include "wgmma_split.cu"
