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
parameters = { ACROSS = 0 }

[[variants]]
id = "e4m3_turned"
rung = 698.02
shape_of = "e4m3"
title = "8-bit floats, turned"
idea = "Columns of B by rows of A: where C is low, its rows are the width of a tile, of which any 16 fill the waves."
after = "e4m3"
change = "Of a low C less of each tile lies beyond it: 400x4656x4224 takes 16.0 us on an H200, not 18.9 by e4m3_64_below."
bottleneck = "As in e4m3."
parameters = { TURNED = 1, ACROSS = 0 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_2x2"
rung = 698.04
shape_of = "e4m3"
title = "8-bit floats, clusters of two by two"
idea = "Four blocks of a cluster share both operands: those side by side rows of A, those one below the other columns of B."
after = "e4m3"
change = "Each block fetches half of either, which counts where rows start within sectors: 672x6336x3504 takes 27.4 us on an H200, not 33.6 by e4m3_64_below."
bottleneck = "The SMs that are left over, as each cluster of four lies within one group of SMs."
parameters = { SHARING = 4, ACROSS = 2 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_turned_2x2"
rung = 698.06
shape_of = "e4m3"
title = "8-bit floats, turned, clusters of two by two"
idea = "Both: e4m3_2x2 with columns of B by rows of A."
after = "e4m3_turned"
change = "288x6144x5328 takes 19.5 us on an H200, not 25.8 by e4m3_turned_64."
bottleneck = "The SMs that are left over."
parameters = { SHARING = 4, ACROSS = 2, TURNED = 1 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_64_fit"
rung = 698.1
shape_of = "e4m3"
title = "64 rows of 8-bit floats"
idea = "For a C of few tiles: one warpgroup that multiplies, so that there are twice as many blocks, each alone."
after = "e4m3"
change = "Half of the tile: block_threads fall."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BM = 64, SHARING = 1, PANEL = 64 }

[variants.moves]
block_threads = "falls"

[[variants]]
id = "e4m3_64_pairs"
rung = 698.15
shape_of = "e4m3"
title = "64 rows of 8-bit floats, blocks in pairs"
idea = "As e4m3_64_fit, and two blocks side by side share rows of A: for a C of a tile to nearly each SM, which together fetch more than the L2 cache gives."
after = "e4m3_64_fit"
change = "Half of each tile of A comes from the other block."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BM = 64, ACROSS = 2, PANEL = 4 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_64_below"
rung = 698.17
shape_of = "e4m3"
title = "64 rows of 8-bit floats, four blocks share columns"
idea = "wgmma_store_64_below for 8-bit floats."
after = "e4m3_64_fit"
change = "Three quarters of each tile of B come from the other blocks."
bottleneck = "The SMs that are left over, as each cluster of four lies within one group of SMs; latency."
parameters = { BM = 64, SHARING = 4, GRAIN = 32, PANEL = 4 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_turned_64"
rung = 698.18
shape_of = "e4m3"
title = "8-bit floats, turned, 64 columns, four blocks share rows"
idea = "wgmma_store_turned_64 for 8-bit floats."
after = "e4m3_64_below"
change = "Columns of B by rows of A: 208x1744x1552 takes 5.9 us on an H200, not 6.2."
bottleneck = "The SMs that are left over; latency."
parameters = { BM = 64, SHARING = 4, TURNED = 1, GRAIN = 32, PANEL = 4 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_split"
rung = 698.2
shape_of = "e4m3"
title = "8-bit floats, k split over the blocks of a cluster"
idea = "wgmma_split for 8-bit floats."
after = "e4m3_64_fit"
change = "Two to eight blocks share out the k of a tile: grid_blocks rise."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
parameters = { BM = 64, WIDEST = 128, SHARING = 1, SPLIT = 1, WAYS = 0 }
launches = [{ entry = "wgmma_split", arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map", "C_rest_map"], block = ["128 + 2 * BM"], grid = ["CLUSTER * cdiv(WIDTH, BN * BESIDE)", "ROWS"], dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + BM + OWN)" }]

[variants.moves]
grid_blocks = "rises"

[[variants]]
id = "e4m3_split_turned"
rung = 698.22
shape_of = "e4m3"
title = "8-bit floats, k split, turned"
idea = "As e4m3_split, of columns of B by rows of A: where C is low all of its rows are one tile, and each line of B, the larger matrix, is read once."
after = "e4m3_split"
change = "Tiles of 64 columns and up to 256 rows: 136x2720x3840 takes 7.8 us on an H200, not 10.3."
bottleneck = "Latency: launch, the first tiles, and the meeting of the blocks."
parameters = { BM = 64, WIDEST = 256, SHARING = 1, TURNED = 1, SPLIT = 1, WAYS = 0 }
launches = [{ entry = "wgmma_split", arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map", "C_rest_map"], block = ["128 + 2 * BM"], grid = ["CLUSTER * cdiv(WIDTH, BN * BESIDE)", "ROWS"], dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + BM + OWN)" }]

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_split_2x2"
rung = 698.25
shape_of = "e4m3"
title = "8-bit floats, k split, squares of blocks"
idea = "As e4m3_split, of tiles as wide as fills the SMs once: each of two parts of k has two by two of them, which share rows of A and columns of B."
after = "e4m3_split"
change = "Each block fetches half of either operand: 544x544x3088 takes 7.1 us on an H200, not 8.3 by e4m3_64_pairs."
bottleneck = "The sums that blocks send each other; the SMs that are left over."
parameters = { BM = 64, SHARING = 4, ACROSS = 2, SPLIT = 1, WAYS = 2 }
launches = [{ entry = "wgmma_split", arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map", "C_rest_map"], block = ["128 + 2 * BM"], grid = ["CLUSTER * cdiv(WIDTH, BN * BESIDE)", "ROWS"], dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + BM + OWN)" }]

[variants.moves]
block_threads = "stays"

[[variants]]
id = "e4m3_split_128_2x2"
rung = 698.27
shape_of = "e4m3"
title = "8-bit floats, k split, squares of 128 rows"
idea = "wgmma_split_128_2x2 for 8-bit floats."
after = "e4m3_split_2x2"
change = "Larger tiles: block_threads rise."
bottleneck = "The sums that blocks send each other; the SMs that are left over."
parameters = { SHARING = 4, ACROSS = 2, SPLIT = 1, WAYS = 2 }
launches = [{ entry = "wgmma_split", arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map", "C_rest_map"], block = ["128 + 2 * BM"], grid = ["CLUSTER * cdiv(WIDTH, BN * BESIDE)", "ROWS"], dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + BM + OWN)" }]

[variants.moves]
block_threads = "rises"

[[variants]]
id = "e4m3_192_beside"
rung = 698.3
shape_of = "e4m3"
title = "192 rows of 8-bit floats, blocks side by side"
idea = "wgmma_store_192_beside for 8-bit floats."
after = "e4m3"
change = "Three warpgroups that multiply: block_threads rise. 3360x5568x4320 takes 112 us on an H200 with blocks one below the other, 119 side by side."
bottleneck = "Shared memory, from which three warpgroups read the same columns of B."
parameters = { BM = 192, WIDEST = 192, PIECES = 0, ACROSS = 0 }

[variants.moves]
block_threads = "rises"

[[variants]]
id = "e4m3_turns"
rung = 698.4
shape_of = "e4m3"
title = "8-bit floats, warpgroups in turn"
idea = "Each of two warpgroups has tiles of its own: while one writes its tile to C, the other keeps the tensor cores at work. Of 8-bit floats products take half as long as of halves, and what lies between two tiles weighs twice."
after = "e4m3"
change = "Smaller tiles, each of one warpgroup, none of which waits for a tile to be written; as many columns as cost least over all waves."
bottleneck = "Shared memory, from which narrower tiles fetch more for the same products; in large matrices the power that tensor cores may draw."
parameters = { WIDEST = 160, IN_TURN = 1 }

[variants.moves]
grid_blocks = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BN * BESIDE // SHARING if TURNED else A_ROWS // BESIDE"]
swizzle_bytes = 128

[tensor_maps.B_map]
array = "B"
box = ["BK", "A_ROWS // BESIDE if TURNED else BN * BESIDE // SHARING"]
swizzle_bytes = 128

[tensor_maps.C_map]
array = "C"
box = ["64", "64 if TURNED else 16"]
swizzle_bytes = 128

[tensor_maps.C_rest_map]
array = "C"
box = ["64 if TURNED or BN % 64 == 0 else BN % 64", "16 if not TURNED else BN % 64 if BN % 64 else 64"]
swizzle_bytes = 128

[[launches]]
entry = "wgmma_store"
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "beta", "C", "C_map", "C_rest_map"]
block = ["128 + 2 * BM"]
grid = ["STEP * CLUSTER"]
dynamic_shared_bytes = "128 * (STAGES * (BM + BN) + HELD * BM)"

[constants]
BK = 128 # k per tile
HEIGHT = "N if TURNED else M" # of C, in tiles of BM
WIDTH = "M if TURNED else N"
CLUSTERS = "(sm_count if SHARING * WAYS <= 2 else sm_count * 10 // 11) // (SHARING * max(1, WAYS))" # that run at once
ROWS_1 = "cdiv(HEIGHT, BM * SHARING)" # of clusters one block wide
ROWS_2 = "cdiv(HEIGHT, BM * max(1, SHARING // 2))" # and two
WAVES_1 = "cdiv(ROWS_1 * cdiv(WIDTH, WIDEST), CLUSTERS)" # as few as there can be
WAVES_2 = "cdiv(ROWS_2 * cdiv(WIDTH, 2 * WIDEST), CLUSTERS)"
WIDE_1 = "max(64, GRAIN * cdiv(WIDTH, GRAIN * (WAVES_1 * CLUSTERS // ROWS_1)))" # columns that fill so many
WIDE_2 = "max(64, GRAIN * cdiv(WIDTH, GRAIN * 2 * (WAVES_2 * CLUSTERS // ROWS_2)))"
COST_1 = "WAVES_1 * WIDE_1 * 1024 + BM + WIDE_1 // SHARING" # narrow tiles count, of as narrow ones rows and columns that a block fetches
COST_2 = "WAVES_2 * WIDE_2 * 1024 + BM // 2 + WIDE_2 * 2 // SHARING"
BESIDE = "ACROSS if ACROSS else 2 if COST_2 < COST_1 else 1" # blocks of a cluster side by side
A_ROWS = "min(BM, cdiv(HEIGHT, 8 * BESIDE) * 8 * BESIDE)" # of a tile of A that are fetched: zeros in the place of others would take as long as rows
ROWS = "ROWS_1 if BESIDE == 1 else ROWS_2"
FEWEST = "WAVES_1 if BESIDE == 1 else WAVES_2"
FIT = "WIDE_1 if BESIDE == 1 else WIDE_2"
FIT_1 = "max(80, GRAIN * cdiv(WIDTH, GRAIN * BESIDE * ((FEWEST + 1) * CLUSTERS // ROWS))) if IN_TURN else 0" # and one more
FIT_2 = "max(80, GRAIN * cdiv(WIDTH, GRAIN * BESIDE * ((FEWEST + 2) * CLUSTERS // ROWS))) if IN_TURN else 0"
FITS = "min(FEWEST * (FIT + 24) * 512 + FIT, (FEWEST + 1) * (FIT_1 + 24) * 512 + FIT_1, (FEWEST + 2) * (FIT_2 + 24) * 512 + FIT_2) % 512 if IN_TURN else FIT" # where all waves cost least, a tile as much as 24 columns more; in the lowest 9 bits
EVEN = "max(32 if TURNED else 64, GRAIN * cdiv(WIDTH, GRAIN * cdiv(WIDTH, WIDEST)))"
BN = "FITS if WAYS else 64 if not TURNED and 2 * ROWS * cdiv(WIDTH, 64) <= sm_count else EVEN" # columns of C per block
CLUSTER = "SHARING * WAYS if WAYS else max(3 if 7 * ROWS * cdiv(WIDTH, BN) <= 2 * sm_count else 2, min(8, 3 * sm_count // (4 * ROWS * cdiv(WIDTH, BN))))"
BELOW = "SHARING // BESIDE" # blocks of a cluster one below the other
TILES = "ROWS * cdiv(WIDTH, BN * BESIDE)" # of C, as many as a cluster has
WAVES = "cdiv(TILES, (sm_count if CLUSTER <= 2 else sm_count * 10 // 11) // CLUSTER)" # of them
STEP = "min(CLUSTERS, TILES) if IN_TURN else cdiv(TILES, WAVES)" # as in wgmma_store
HELD = "1 if SPLIT else PIECES if PIECES else 2 if 4 * (BM + BN) + 2 * BM <= 1808 else 1" # pieces of C in shared memory, for each warp
SENT = "cdiv(BM // (64 if TURNED else 16) * cdiv(BN, 64), CLUSTER // SHARING) * (4 if TURNED else 1) * (CLUSTER // SHARING - 1) * 32" # as in wgmma_split
OWN = "SENT if 5 * (BM + BN) + BM + SENT <= 1808 else 0"
STAGES = "min(8 if CLUSTER > 1 or BN <= 64 else 6, (1808 - HELD * BM - OWN) // (BM + BN))" # tiles in shared memory, of 226 KiB
LATE = "1 if BM <= 128 and WAVES > 1 and not IN_TURN and not TURNED else 0" # as in wgmma_store
GPCS = "8 if WAVES == 1 and CLUSTER <= 2 else 1" # as in wgmma_store
WHOLE_ROWS = "cdiv(TILES, WAVES) * ROWS // TILES"
LOW = "PANEL if WHOLE_ROWS >= PANEL or 5 * WIDTH * K > 3 * l2_bytes else 4 if WHOLE_ROWS >= 4 else min(2, max(1, WHOLE_ROWS))"
HIGH = "(LOW if CLUSTER <= 2 else PANEL) if WAVES > 1 or CLUSTER != 2 else 1 if BESIDE == 1 else 64"
IN = "20 * min(1, K % 128) + 31 * min(1, K % 64) + 47 * min(1, K % 32)" # hundredths of a line more for each 128 bytes of a row, as rows start within lines and within sectors
WHOLE = "92 if GPCS == 8 and (CLUSTER == 1 or 8 * (ROWS if BESIDE == 2 else TILES // ROWS) >= TILES) else 100" # as in wgmma_store
LINES = "BM * (100 + IN if IN or BESIDE > 1 else WHOLE) // BESIDE + BN * (100 + IN if IN or BELOW > 1 else WHOLE) // BELOW" # hundredths, that a block fetches for a tile of k
RUNNING = "cdiv(TILES, WAVES) * CLUSTER" # blocks at once
FETCHED = "LINES * RUNNING * 9815 // l2_bytes" # cycles, from the L2 cache,
SHARED = "22 * BM // 15 + BM * BN // 119 + 13 * (BM + BN) // 25" # of shared memory, which each 64 rows read and the copy engine fills,
MULTIPLIED = "BM * BN * 3 // 100" # and for the products
MOST = "max(FETCHED, SHARED, MULTIPLIED)"
WAITS = "WAVES * cdiv(cdiv(K, BK), CLUSTER // SHARING)"
STREAMED = "8400 * (M + N) * K // (l2_bytes * WAITS)" # as in wgmma_store
BUSY = "WAITS * (148 * RUNNING // sm_count - 104 + 99 * min(1, K % 32) + max(STREAMED, MOST + 2 * (FETCHED ** 2 + SHARED ** 2 + MULTIPLIED ** 2 - MOST ** 2) // (17 * MOST))) + SPLIT * 5000 * (WAVES - 1)"
CYCLES = "27 * min(WAITS, 32) + (1570 + 165 * IN_TURN) * WAVES + (max(BUSY, (BUSY + WAVES * BM * BN * 3 // 20) // 2) if IN_TURN else BUSY)" # the first tiles come later
WRITES = "(((cdiv(WAVES, 2) if N % 16 else 1) if IN_TURN else WAVES) * SHARING + SPLIT * 18 * (CLUSTER - SHARING) // 7) * BM * BN // (64 * CLUSTER if SPLIT else 64 * SHARING) * (14 if TURNED and M >= N else 9) // 9" # of a block its part of the tile, and what it sends the others
MEETS = "CLUSTER + 2 * min(1, CLUSTER - 1)" # as in wgmma_store

[parameters]
BM = 128     # rows of C per block
WIDEST = 256 # most columns of C per block
GRAIN = 16   # by so many fewer where that fills the last wave
SHARING = 2  # blocks of a cluster, one below the other, which share columns of B
ACROSS = 1   # of them side by side, which share rows of A; 0 for one or two, whichever costs less
TURNED = 0   # 1 for tiles of BM columns by up to WIDEST rows
SPLIT = 0    # whether those of a cluster share out the k of a tile instead
WAYS = 1     # into how many parts; 0 for as many as there are SMs for
PANEL = 8    # rows of clusters whose tiles run together
PIECES = 2   # of C in shared memory, for each warp; 0 for two where four tiles fit besides, else one
IN_TURN = 0  # whether two warpgroups take whole tiles in turn

[candidates]
BM = [64, 128, 192]
WIDEST = [64, 128, 192, 256]
GRAIN = [16, 32, 64]
PANEL = [2, 4, 8]
PIECES = [0, 1, 2]
SHARING = [1, 2, 4]
WAYS = [0, 1, 2, 4]

[[require]]
condition = "not (SPLIT and TURNED) or M <= WIDEST and CLUSTER <= 4"
because = "{id} has all rows of C in one tile, and adds up its few pieces in at most 4 blocks"

[[require]]
condition = "BM == 64 or BM == 128 or BM == 192 and WIDEST <= 192 and not SPLIT"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two, or of three with 192 columns"

[[require]]
condition = "WIDEST >= 64 and WIDEST <= 256 and WIDEST % GRAIN == 0 and GRAIN % 16 == 0 and BN * BESIDE % (8 * SHARING) == 0 and (SHARING == 1 or WAYS) and CLUSTER <= 8"
because = "{id} has products of 64, 80, 96, … 256 columns"

[[require]]
condition = "(SHARING == 1 or SHARING == 2 or SHARING == 4 or SHARING == 8) and (ACROSS == 1 or (ACROSS == 0 or ACROSS == 2) and SHARING > 1)"
because = "{id} has 1, 2, 4 or 8 blocks in a cluster, in one column or in two"

[[require]]
condition = "WAYS != 1 if SPLIT else WAYS == 1"
because = "{id} takes 1 for WAYS where it does not split k, and others where it does"

[[require]]
condition = "not IN_TURN or BM == 128 and WIDEST <= 160 and not SPLIT"
because = "{id} has room for the sums of a warpgroup of 128 rows with 160 columns"

[[require]]
condition = "PIECES == 0 or PIECES == 1 or PIECES == 2"
because = "{id} writes C by way of one piece in shared memory or two"

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
