// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "TF32, rows of any length"
problem = "gemm"
dtypes = ["tf32"]
rung = 697
shape_of = "tf32"
idea = "The copy engine takes rows that start at multiples of 16 bytes. Where those of A or B do not, all blocks first copy them to rows that do."
after = "tf32"
change = "One more pass over A and B, next to nothing where K is long, and C is written element by element: pipe_lsu_instructions rise."
bottleneck = "That of tf32; in small matrices the copying before it, for which all blocks wait."
entry = "tf32"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "A", "B", "A_packed", "B_packed"]

[moves]
pipe_lsu_instructions = "rises"

[workspace.A_packed]
shape = ["M", "cdiv(K, 4) * 4"]

[workspace.B_packed]
shape = ["K", "cdiv(N, 4) * 4"]

[tensor_maps.A_map]
array = ["A", "A_packed"]
extents = ["K", "M"]
strides = ["cdiv(K, 4) * 4"]
box = ["BK", "BM // CLUSTER"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = ["B", "B_packed"]
extents = ["N", "K"]
strides = ["cdiv(N, 4) * 4"]
box = ["BK", "BK"]
swizzle_bytes = 128

[launch]
block = [384]
grid = ["CLUSTER * min(sm_count // CLUSTER, cdiv(M, BM) * COLUMNS)"]
cooperative = true
dynamic_shared_bytes = "128 * STAGES * (BM + BN) + 64 * BN"

[constants]
BK = 32     # k per tile
BN = 128    # columns of C per block
CLUSTER = "SHARES if SHARES else 1 if N <= BN else 2"
SHARING = "CLUSTER"
SPLIT = 0
COLUMNS = "cdiv(N, BN * CLUSTER)" # of clusters
DOWN = "cdiv(COLUMNS * cdiv(M, TALLEST), sm_count // CLUSTER) * (sm_count // CLUSTER) // COLUMNS" # tiles in a column, in no more waves
BM = "max(64, 16 * cdiv(M, 16 * DOWN))" # rows of C per block
STAGES = "min(8, 1744 // (BM + BN))" # tiles in shared memory, of 226 KiB

[parameters]
TALLEST = 256 # most rows of C per block: fewer where that fills the last wave
SHARES = 0    # blocks of a cluster, which share rows of A; 0 for two, unless one has all columns
PANEL = 8     # rows of tiles of C whose tiles run together

[candidates]
TALLEST = [64, 128, 192, 256]
SHARES = [0, 1, 2]
PANEL = [4, 8, 16]

[[require]]
condition = "TALLEST >= 64 and TALLEST <= 256 and TALLEST % 16 == 0"
because = "{id} has products of 64, 80, 96, … 256 rows"

[[require]]
condition = "0 <= SHARES and SHARES <= 2"
because = "{id} shares rows of A among 1 or 2 blocks"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#define PACKED
#include "tf32.cu"
