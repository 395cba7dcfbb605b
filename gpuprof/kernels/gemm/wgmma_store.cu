// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "C written by the copy engine"
problem = "gemm"
dtypes = ["bf16", "f16"]

[[variants]]
id = "wgmma_store"
rung = 680
idea = "A warp puts 16x64 of its results into shared memory, stmatrix four tiles of 8x8 at a time, and the copy engine writes them to C while the warp goes on with the next ones."
after = "wgmma_multicast"
change = "Whole rows of 128 bytes, and no store by threads: pipe_lsu_instructions fall."
bottleneck = "Tiles that run at the same time lie in few rows of C: each needs columns of B of its own, which come from memory where the L2 cache does not hold them."

[variants.moves]
pipe_lsu_instructions = "falls"
shared_bytes = "rises"

[[variants]]
id = "wgmma_store_panels"
title = "Tiles in panels"
rung = 682
idea = "Tiles go down the columns of a panel of rows, then to the next panel: those that run at the same time cover a square of C, and share its rows of A and columns of B in the L2 cache."
after = "wgmma_store"
change = "Another order, the same work: what threads do stays, dram_read_bytes fall, at 8192 by half."
bottleneck = "The last wave of tiles, in which some SMs have nothing to do; in large matrices the power that tensor cores may draw."
parameters = { PANEL = 8 }

[variants.moves]
pipe_lsu_instructions = "stays"
dram_read_bytes = "falls"

[[variants]]
id = "wgmma_store_fit"
rung = 683
shape_of = "wgmma_store_panels"
title = "Tiles as wide as fills the waves"
idea = "Tensor cores take any multiple of 16 columns. So that as many tiles as there are SMs fill the last wave too, they are as narrow as the number of waves allows."
after = "wgmma_store_panels"
change = "More tiles of fewer columns, and as many waves: grid_blocks rise where one wave had room. The two blocks of a cluster lie side by side where that makes them narrower."
bottleneck = "Shared memory, which narrower tiles fill and read for as long as tensor cores multiply."
parameters = { PANEL = 8, GRAIN = 16, ACROSS = 0 }

[variants.moves]
pipe_tensor_instructions = "rises"

[[variants]]
id = "wgmma_store_64"
rung = 683.5
shape_of = "wgmma_store_panels"
title = "64 rows, as wide as fills the waves"
idea = "For a C of few tiles: one warpgroup that multiplies, so that there are twice as many blocks."
after = "wgmma_store_fit"
change = "Half of the tile: block_threads fall."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BM = 64, CLUSTER = 1, PANEL = 4, GRAIN = 64 }

[variants.moves]
block_threads = "falls"

[[variants]]
id = "wgmma_store_64_beside"
rung = 683.6
shape_of = "wgmma_store_panels"
title = "64 rows, blocks side by side"
idea = "As wgmma_store_64, and two blocks share rows of A: where there is a tile to nearly each SM they fetch together more than the L2 cache gives."
after = "wgmma_store_64"
change = "Half of each tile of A comes from the other block, and tiles may be narrower."
bottleneck = "Latency: launch, the first tiles, and the way back for C."
parameters = { BM = 64, CLUSTER = 2, ACROSS = 2, PANEL = 2, GRAIN = 16 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_64_below"
rung = 683.65
shape_of = "wgmma_store_panels"
title = "64 rows, four blocks share columns"
idea = "As wgmma_store_64, and four blocks one below the other share columns of B: tiles may be low and still wide, so that tensor cores read less from shared memory for each product, and each block fetches a quarter of its columns."
after = "wgmma_store_64"
change = "Three quarters of each tile of B come from the other blocks."
bottleneck = "The SMs that are left over, as each cluster of four lies within one group of SMs; latency."
parameters = { BM = 64, CLUSTER = 4, PANEL = 4, GRAIN = 16 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_192_beside"
rung = 683.7
shape_of = "wgmma_store_panels"
title = "192 rows, blocks side by side"
idea = "Three warpgroups that multiply: where tiles of 128 rows begin another wave, as at 2056, those of 192 need not. The two blocks of a cluster lie side by side and share rows of A, unless one below the other leaves them narrower, as at 1840."
after = "wgmma_store_fit"
change = "Another split of C: block_threads rise. Each element of B is read three times from shared memory for one that is fetched."
bottleneck = "Shared memory, from which three warpgroups read the same columns of B."
parameters = { BM = 192, WIDEST = 192, GRAIN = 16, PIECES = 0, PANEL = 8, ACROSS = 0 }

[variants.moves]
block_threads = "rises"

[[variants]]
id = "wgmma_store_256"
rung = 683.75
shape_of = "wgmma_store_panels"
title = "256 rows"
idea = "Two warpgroups that multiply 128 rows each: tiles of up to 256x176 fill one wave where those of 128x256 begin another."
after = "wgmma_store_fit"
change = "A larger tile: 5416x800x4488 takes 57.6 us on an H200, not 69.2."
bottleneck = "Shared memory, in which three tiles and one piece of C have room: a warp writes six pieces one after the other."
parameters = { BM = 256, WIDEST = 176, GRAIN = 16, PIECES = 0, PANEL = 8, ACROSS = 0 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_2x2"
rung = 683.78
shape_of = "wgmma_store_panels"
title = "Clusters of two by two"
idea = "Four blocks of a cluster share both operands: those side by side rows of A, those one below the other columns of B."
after = "wgmma_store_fit"
change = "Each block fetches half of either: 6696x184x1728 takes 12.3 us on an H200, not 13.4 by wgmma_store_64_below."
bottleneck = "The SMs that are left over, as each cluster of four lies within one group of SMs."
parameters = { CLUSTER = 4, PANEL = 8, GRAIN = 16, ACROSS = 2 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_turned"
rung = 683.8
shape_of = "wgmma_store_panels"
title = "Turned: columns of B by rows of A"
idea = "A tile as wide as fills the waves begins within a line of 128 bytes of B, and each of its rows reads two. Turned, tensor cores multiply columns of B by rows of A: tiles take 64 columns or more, whole lines, and as many rows as fill the waves, which begin where they begin."
after = "wgmma_store_fit"
change = "The same products for C turned, which stmatrix turns back: the four warps of a warpgroup fill 64 rows of 128 bytes together."
bottleneck = "Shared memory, which narrower tiles fill and read for as long as tensor cores multiply."
parameters = { TURNED = 1, PANEL = 8, GRAIN = 16, ACROSS = 0 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_turned_2x2"
rung = 683.95
shape_of = "wgmma_store_panels"
title = "Turned, clusters of two by two"
idea = "Four blocks of a cluster share both: those side by side columns of B, those one below the other rows of A. Each fetches half of either, in whole lines of B, where a single wave of tiles is too small to do with fewer bytes from the L2 cache."
after = "wgmma_store_turned"
change = "Of cuBLASLt's speed 1360x1360x3832 reaches 0.84x on an H100, not 0.81x, and 1408 1.01x, not 0.98x."
bottleneck = "The SMs that are left over; latency."
parameters = { TURNED = 1, CLUSTER = 4, PANEL = 8, GRAIN = 16, ACROSS = 2 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_turned_64"
rung = 683.975
shape_of = "wgmma_store_panels"
title = "Turned, 64 columns, four blocks share rows"
idea = "wgmma_store_64_below, turned: four blocks side by side share rows of A, and each has whole lines of B."
after = "wgmma_store_turned_2x2"
change = "Three quarters of each tile of A come from the other blocks: of cuBLASLt's speed 368x2104x1112 reaches 1.01x on an H100, not 0.92x, and 576x1440x5056 0.89x, not 0.78x."
bottleneck = "The SMs that are left over; latency."
parameters = { TURNED = 1, BM = 64, CLUSTER = 4, PANEL = 8, GRAIN = 16 }

[variants.moves]
block_threads = "falls"

[[variants]]
id = "wgmma_store_turned_2x4"
rung = 683.977
shape_of = "wgmma_store_panels"
title = "Turned, 64 columns, clusters of two by four"
idea = "Eight blocks of a cluster share both, and tiles of as few as 32 rows of A fill one wave of a small C."
after = "wgmma_store_turned_64"
change = "A quarter of each tile of B and half of A's from the block itself: 1904x640x3504 takes 16.3 us on an H200, not 17.9."
bottleneck = "The SMs that are left over; latency."
parameters = { TURNED = 1, BM = 64, CLUSTER = 8, PANEL = 8, GRAIN = 16, ACROSS = 4, NARROWEST = 32 }

[variants.moves]
block_threads = "stays"

[[variants]]
id = "wgmma_store_turns"
rung = 683.98
shape_of = "wgmma_store_panels"
title = "Warpgroups in turn"
idea = "Each of two warpgroups has tiles of its own: while one writes its tile to C, the other keeps the tensor cores at work. Of a short k writing takes as long as multiplying."
after = "wgmma_store_fit"
change = "Tiles of 128 columns, each of one warpgroup, in whole lines of 128 bytes of B and of C, and four pieces of C on their way: 4160x6080x320 takes 26.6 us on an H200, not 32."
bottleneck = "Shared memory, from which narrower tiles fetch more for the same products: with a long k wider ones are faster."
parameters = { WIDEST = 128, GRAIN = 64, PIECES = 4, PANEL = 8, ACROSS = 0, IN_TURN = 1 }

[variants.moves]
block_threads = "stays"

[tensor_maps.A_map]
array = "A"
box = ["BK", "BN * BESIDE // CLUSTER if TURNED else A_ROWS // BESIDE"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if K % 128 == 0 else 128" # where rows start at such multiples: the next tile needs the other half

[tensor_maps.B_map]
array = "B"
box = ["64", "BK // BESIDE if TURNED else BK * BESIDE // CLUSTER"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if N % 128 == 0 else 128"

[tensor_maps.B_rest_map]
array = "B"
box = ["BN % 64 if BN % 64 else 64", "BK * BESIDE // CLUSTER"]
swizzle_bytes = 128
l2_promotion_bytes = "256 if N % 128 == 0 else 128"

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
arguments = ["M", "N", "K", "alpha", "A_map", "B_map", "B_rest_map", "beta", "C", "C_map", "C_rest_map"]
block = ["384 if BM == 256 or IN_TURN else 128 + 2 * BM"]
grid = ["STEP * CLUSTER"]
dynamic_shared_bytes = "128 * (STAGES * (BM + cdiv(BN, 64) * 64) + HELD * 16 * WARPS)"

[constants]
HEIGHT = "N if TURNED else M" # of C, in tiles of BM
WIDTH = "M if TURNED else N"
BK = 64 # k per tile
WARPS = "8 if BM == 256 or IN_TURN else BM // 16" # that multiply
CLUSTERS = "(sm_count if CLUSTER <= 2 else sm_count * 10 // 11) // CLUSTER" # that run at once
ROWS_1 = "cdiv(HEIGHT, BM * CLUSTER)" # of clusters one block wide
WIDE = "max(2, ACROSS)" # blocks side by side, where more than one are
ROWS_2 = "cdiv(HEIGHT, BM * max(1, CLUSTER // WIDE))" # so many
WAVES_1 = "cdiv(ROWS_1 * cdiv(WIDTH, WIDEST), CLUSTERS)" # as few as there can be
WAVES_2 = "cdiv(ROWS_2 * cdiv(WIDTH, WIDEST * WIDE), CLUSTERS)"
FIT_1 = "max(NARROWEST, max(1, GRAIN) * cdiv(WIDTH, max(1, GRAIN) * (WAVES_1 * CLUSTERS // ROWS_1)))" # columns that fill so many waves
FIT_2 = "max(NARROWEST, max(1, GRAIN) * cdiv(WIDTH, max(1, GRAIN) * WIDE * (WAVES_2 * CLUSTERS // ROWS_2)))"
COST_1 = "(WAVES_1 * FIT_1 * 1024 + BM + FIT_1 // CLUSTER) * 65536 + ROWS_1 * cdiv(WIDTH, FIT_1)" # narrow tiles count, of as narrow ones rows and columns that a block fetches, then fewer clusters
COST_2 = "(WAVES_2 * FIT_2 * 1024 + BM // WIDE + FIT_2 * WIDE // CLUSTER) * 65536 + ROWS_2 * cdiv(WIDTH, FIT_2 * WIDE)"
BESIDE = "ACROSS if ACROSS else 2 if COST_2 < COST_1 else 1" # blocks of a cluster side by side
BELOW = "CLUSTER // BESIDE" # and one below the other
A_ROWS = "BM if TURNED else min(BM, cdiv(M, 8 * BESIDE) * 8 * BESIDE)" # of a tile of A that are fetched: zeros in the place of others would take as long as rows
ROWS = "ROWS_1 if BESIDE == 1 else ROWS_2"
BN = "(FIT_1 if BESIDE == 1 else FIT_2) if GRAIN else WIDEST" # columns of C per block
TILES = "ROWS * cdiv(WIDTH, BN * BESIDE)" # of C, as many as a cluster has blocks
WAVES = "cdiv(TILES, CLUSTERS)" # of them
STEP = "min(CLUSTERS, TILES) if IN_TURN else cdiv(TILES, WAVES)" # tiles at once: no more than fill all waves evenly
GPCS = "8 if WAVES == 1 and CLUSTER <= 2 else 1" # by which clusters are placed
WHOLE_ROWS = "cdiv(TILES, WAVES) * ROWS // TILES" # of clusters, whose tiles run at once
LOW = "PANEL if WHOLE_ROWS >= PANEL or 10 * WIDTH * K > 3 * l2_bytes else 4 if WHOLE_ROWS >= 4 else min(2, max(1, WHOLE_ROWS))" # rows of a panel: whole ones where the L2 cache holds what each wave shares then; a power of two, so that every eighth cluster, which is of the same GPC, has the same row
HIGH = "(LOW if CLUSTER <= 2 else PANEL) if WAVES > 1 or CLUSTER != 2 else 1 if BESIDE == 1 else 64" # rows of clusters whose tiles run together; in a single wave those whose own operand is the same
IN_A = "38 * min(1, K % 64) + 32 * min(1, K % 32) + 27 * min(1, K % 16)" # hundredths of a line more for each 128 bytes of a row of A, as rows start within lines and within sectors,
IN_B = "38 * min(1, N % 64 + (0 if TURNED else BN % 64)) + 32 * min(1, N % 32 + (0 if TURNED else BN % 32)) + 27 * min(1, N % 16)" # and of B
IN_ROWS = "IN_B if TURNED else IN_A"
IN_COLUMNS = "IN_A if TURNED else IN_B"
WHOLE = "78 if GPCS == 8 and (CLUSTER == 1 or 8 * (ROWS if BESIDE == 2 else TILES // ROWS) >= TILES) else 100" # of a hundred that start no row within lines, of what each block fetches for itself: SMs of a GPC ask once for what they fetch alike at the same time
LINES = "BM * (100 + IN_ROWS if IN_ROWS or BESIDE > 1 else WHOLE) // BESIDE + BN * BESIDE * (100 + IN_COLUMNS if IN_COLUMNS or BESIDE == 1 else WHOLE) // CLUSTER" # hundredths, that a block fetches for a tile of k
RUNNING = "cdiv(TILES, WAVES) * CLUSTER" # blocks at once
FETCHED = "LINES * RUNNING * 9290 // l2_bytes" # cycles, from the L2 cache, the wider the larger it is,
SHARED = "2 * BM + 27 * (BM + cdiv(BN, 64) * 64) // 200" # of shared memory, which each 64 rows read and the copy engine fills,
MULTIPLIED = "BM * BN * 27 // 1000" # and for the products
MOST = "max(FETCHED, SHARED, MULTIPLIED)"
WAITS = "WAVES * cdiv(K, BK)" # tiles of k one after the other,
STREAMED = "34000 * (M + N) * K // (l2_bytes * WAITS)" # each of which takes so long from memory in any shape,
BUSY = "WAITS * (30 + 36 * RUNNING // sm_count + 58 * min(1, K % 16) + max(STREAMED, MOST + 3 * (FETCHED ** 2 + SHARED ** 2 + MULTIPLIED ** 2 - MOST ** 2) // (20 * MOST)))" # with what of the shorter is not hidden, the more the more SMs are at work
CYCLES = "(494 + 100 * IN_TURN) * WAVES + (max(BUSY, (BUSY + WAVES * BM * BN * 3 // 20) // 2) if IN_TURN else BUSY)" # of two warpgroups each multiplies, then writes
LATE = "1 if BM <= 128 and WAVES > 1 and not IN_TURN and not TURNED else 0" # whether a tile's results wait in registers, and are written to C beside the next one's products
WRITES = "((cdiv(WAVES, 2) if N % 16 else 1) if IN_TURN else WAVES) * BM * BN * (3 if BM == 256 else 2) * (3 if LATE and N % 64 == 0 else 4) // 256" # and what is written of C when nothing is multiplied: half of all where rows start within sectors, as these are read first; of whole lines a quarter beside products
MEETS = "CLUSTER + 3 * min(1, CLUSTER - 1)" # what its blocks wait for each other, at the begin and at the end; one alone does not
HELD = "PIECES if PIECES else 2 if 4 * (BM + cdiv(BN, 64) * 64) + 32 * WARPS <= 1808 else 1" # pieces of C in shared memory, for each warp
STAGES = "min(8 if CLUSTER > 1 or BN <= 64 else 6, (1808 - HELD * 16 * WARPS) // (BM + cdiv(BN, 64) * 64))" # tiles in shared memory, of 226 KiB: of wide ones more than six delay the first where no block shares them

[parameters]
BM = 128     # rows of C per block
WIDEST = 256 # most columns of C per block
NARROWEST = 64 # fewest
GRAIN = 0    # by so many fewer where that fills the last wave; 0 for never
PIECES = 2   # of C in shared memory, for each warp; 0 for two where four tiles fit besides, else one
CLUSTER = 2  # blocks of a cluster, one below the other, which share columns of B
ACROSS = 1   # of them side by side, which share rows of A; 0 for one or two, whichever costs less
PANEL = 1    # rows of clusters whose tiles run together, where waves are several
TURNED = 0   # 1 for tiles of BM columns by up to WIDEST rows
IN_TURN = 0  # whether two warpgroups take whole tiles in turn: one multiplies while the other writes

[candidates]
PIECES = [0, 1, 2, 4]
BM = [64, 128, 192, 256]
CLUSTER = [1, 2, 4, 8]
ACROSS = [0, 1, 2, 4]
WIDEST = [64, 96, 128, 160, 192, 224, 256]
GRAIN = [0, 16, 32, 64]
PANEL = [1, 2, 4, 8, 16]

[[require]]
condition = "BM == 64 or BM == 128 or BM == 192 and WIDEST <= 192 or BM == 256 and WIDEST <= 176"
because = "{id} has room for the sums of one warpgroup of 64 rows or of two, of three with 192 columns, or of two of 128 rows with 176"

[[require]]
condition = "not IN_TURN or BM * WIDEST <= 128 * 176 and BM <= 128"
because = "{id} has room for the sums of a warpgroup of 128 rows with 176 columns"

[[require]]
condition = "PIECES >= 0"
because = "{id} writes C by way of one piece in shared memory or more"

[[require]]
condition = "(CLUSTER == 1 or CLUSTER == 2 or CLUSTER == 4 or CLUSTER == 8) and (ACROSS == 1 or (ACROSS == 0 or ACROSS == 2) and CLUSTER > 1 or ACROSS == 4 and CLUSTER > 2)"
because = "{id} has 1, 2, 4 or 8 blocks in a cluster, in one column, two or four"

[[require]]
condition = "(NARROWEST == 64 or TURNED and (NARROWEST == 32 or NARROWEST == 48)) and WIDEST >= 64 and WIDEST <= 256 and WIDEST % max(16, GRAIN) == 0 and GRAIN % 16 == 0"
because = "{id} has products of 64, 80, 96, … 256 columns"

[[require]]
condition = "PANEL >= 1 and (TURNED == 0 or TURNED == 1 and BN * BESIDE // CLUSTER % 8 == 0)"
because = "{id} needs a PANEL of one row of clusters or more, and turned (TURNED = 1) 8 rows of A or more for each block to fetch"

[[require]]
condition = "N % 8 == 0 and K % 8 == 0"
because = "{id} copies 16 bytes at a time: N and K must be multiples of 8"

[[require]]
condition = "90 <= arch < 100"
because = "{id} multiplies by wgmma, which compute capability 9.0 alone has"
*/

#ifndef WARPS
#define WARPS (BM / 16) // that multiply
#endif
#define THREADS (128 + 32 * WARPS)
#define GROUP_ROWS (IN_TURN ? BM : BM == 256 ? 128 : 64) // of a tile that a warpgroup multiplies

#include "store_sums.cuh"

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    wgmma_store(int M, int N, int K, float alpha, const __grid_constant__ TensorMap A_map,
                    const __grid_constant__ TensorMap B_map, OF_B_REST float beta, real *C,
                    const __grid_constant__ TensorMap C_map, const __grid_constant__ TensorMap C_rest_map)
{
    // Coordinates.
    const int t = threadIdx.x;
    const int warp = of_warp(t / 32);
    const int tiles_n = TILES / ROWS; // of C, as many as a cluster has blocks: known, as divisions by what is not take long
    const int depth = (K + BK - 1) / BK; // tiles of k
    const int rank = blockIdx.x % CLUSTER;
    const int own = place_by_gpc<GPCS, CLUSTER>(); // tile of the block
    const auto find = [&](int tile, int &m0, int &n0) {
        const int panel = tile / (HIGH * tiles_n);
        const int in_panel = tile % (HIGH * tiles_n);
        constexpr int LEFT = (ROWS - 1) % HIGH + 1; // rows of the last panel, which may be lower
        const bool last = panel == (ROWS - 1) / HIGH;
        const int along = last ? in_panel / LEFT : in_panel / HIGH;
        const int row = in_panel - along * (last ? LEFT : HIGH);
        const int column = panel % 2 ? tiles_n - 1 - along : along; // begin where the last one ended
        m0 = ((panel * HIGH + row) * BELOW + rank % BELOW) * BM;
        n0 = (column * BESIDE + rank / BELOW) * BN;
    };

    // Shared memory: STAGES tiles of A and of B; for each a barrier that counts the bytes which have arrived, and one
    // that counts the warps of all blocks which are done with it. Where warpgroups take turns, each has one more, for the
    // tiles whose last stage it has seen. Behind the tiles are HELD pieces of C for each warp.
    extern __shared__ __align__(1024) char shared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 2 * IN_TURN];
    const unsigned stages = of_warp((unsigned)__cvta_generic_to_shared(shared)); // here, not anew for each tile of k
    const unsigned full = of_warp((unsigned)__cvta_generic_to_shared(barriers));
    const unsigned empty = full + 8 * STAGES;
    const unsigned passed = empty + 8 * STAGES;
    if (t == 0) {
        prefetch(&A_map);
        prefetch(&B_map);
        prefetch(&C_map);
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, BM / GROUP_ROWS * 4 * (BELOW + BESIDE - 1));
        }
        for (int group = 0; group < 2 * IN_TURN; ++group)
            init_barrier(passed + 8 * group, 4);
        publish_barriers();
    }
    if (CLUSTER > 1)
        meet_cluster();
    else
        __syncthreads();

    // Tiles of k are counted through all tiles of C: `turn` says which stage has one, and for which time.
    if (warp < 4) {
        // The warpgroup that fetches: one warp of it.
        if (WARPS > 4)
            shrink_to<WARPS == 8 ? 40 : 32>();
        Turn<STAGES> turn;
#pragma unroll 1
        for (int number = 0; warp == 0 && number < WAVES; ++number) {
            const int tile = own + number * STEP;
            if (tile >= TILES)
                break;
            int m0, n0;
            find(tile, m0, n0);
            // Every other tile takes k from its end, where the L2 cache still holds what others took last.
            const int step = number % 2 ? -BK : BK;
            int k0 = number % 2 ? (depth - 1) * BK : 0;
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; ++k_tile, k0 += step, turn.advance()) {
                wait(empty + 8 * turn.stage, turn.parity ^ 1); // at once in the first round
                if (elected())
                    fetch_tiles<BELOW, BESIDE>(stages + turn.stage * STAGE, &A_map, &B_map, B_REST_MAP, k0, m0, n0, rank,
                                               full + 8 * turn.stage);
            }
        }
    } else {
        // The warpgroups that multiply.
        if (WARPS > 4) // a single one has registers enough
            grow_to<WARPS == 8 ? 232 : 160>();
        const int group = warp / 4 - 1;
        const int m_group = IN_TURN ? 0 : group * GROUP_ROWS; // first row of C in the block's tile
        const unsigned pieces = stages + STAGES * STAGE + (warp - 4) / WRITERS * HELD * PIECE;
        const int lane = t % 32;
        const bool fetches_for_us = lane < CLUSTER && (lane % BELOW == rank % BELOW || lane / BELOW == rank / BELOW);
        int left = (TILES - own + STEP - 1) / STEP * depth; // tiles of k that are still to come
        const auto release = [&](unsigned stage) {
            if (left < STAGES) // it will not fill again, and blocks that fetched for us may have ended
                return;
            if (CLUSTER == 1)
                arrive_at_all<1>(empty + 8 * stage);
            else if (fetches_for_us)
                arrive_at_block(empty + 8 * stage, lane);
        };
        Turn<STAGES> turn;
        unsigned before = 0; // stage of the tile of k before
        unsigned packed[BN / 4];
        int m_packed = 0, n_packed = 0;
        int stored = BN; // columns of the tile before that are on their way to C: a piece every other tile of k
        const auto store_next = [&] {
#pragma unroll
            for (int j = 0; j < BN; j += ROW)
                if (j == stored)
                    store_piece<HELD>(packed, j / 8, pieces, &C_map, &C_rest_map, m_packed, n_packed);
            stored += ROW;
        };
#pragma unroll 1
        for (int number = 0; number < WAVES; ++number) { // of the block's tiles
            const int tile = own + number * STEP;
            if (tile >= TILES)
                break;
            if (IN_TURN && number % 2 != group) {
                turn.skip(depth); // which the other warpgroup has
                left -= depth;
                continue;
            }
            if (IN_TURN && number > 0) // a barrier tells two times apart, not three
                wait(passed + 8 * (group ^ 1), (number - 1) / 2 % 2);
            float sum[GROUP_ROWS * BN / 128];
#pragma unroll 1
            for (int k_tile = 0; k_tile < depth; ++k_tile) {
                wait(full + 8 * turn.stage, turn.parity);
                multiply_tiles(sum, stages + turn.stage * STAGE, m_group, k_tile > 0);
                if (LATE && stored < BN && k_tile > 0 && (k_tile + group) % 2)
                    store_next(); // one warpgroup after the other, while products go on
                // Those of the tile before are done: its stage may fill again.
                wait_for_products<1>();
                if (k_tile > 0)
                    release(before);
                before = turn.stage;
                turn.advance();
                --left;
            }
            if (IN_TURN && t % 32 == 0)
                arrive_at(passed + 8 * group);
            int m0, n0;
            find(tile, m0, n0); // while tensor cores multiply
            wait_for_products<0>();
            release(before);
            while (LATE && stored < BN) // of few k
                store_next();
#pragma unroll
            for (int m = 0; m < GROUP_ROWS; m += 64) {
                m_packed = TURNED ? n0 : m0 + m_group + m;
                n_packed = TURNED ? m0 + m_group + m : n0;
                pack_sums<true>(packed, sums_of(sum, m), m_packed, n_packed, M, N, alpha, beta, C);
                if (LATE)
                    stored = 0;
                else
                    store_packed<HELD>(packed, pieces, &C_map, &C_rest_map, m_packed, n_packed);
            }
        }
        while (LATE && stored < BN)
            store_next();
    }
    wait_for_stores<0>();
}
