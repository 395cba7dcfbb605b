// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The right shape for the size"
aliases = ["by_size_tn"] # of 8-bit floats, before
problem = "gemm"
rung = 700
idea = "No shape is right for every size: small tiles fill the GPU when C is small, large tiles reuse what they load when C is large. How much of C falls to each SM decides."
change = "No code of its own: for each problem and device one of the shapes below it runs."
bottleneck = "That of the chosen kernel."

[[choose]]
kernel = "wgmma_gathered_short"
when = "real_bytes == 2 and (N % 8 != 0 or K % 8 != 0) and K <= 64 and cdiv(M, 64) * cdiv(N, 64) > sm_count"
because = "Rows that the copy engine does not take, of a short k: writing C is most of the time, and many small blocks overlap it."

[[choose]]
kernel = "wgmma_gathered"
when = "real_bytes == 2 and (N % 8 != 0 or K % 8 != 0) and M * N * K <= (10000000 if cdiv(M, 64) * cdiv(N, 64) <= sm_count else 2700000) * sm_count"
because = "Such rows of a small C or few products: threads gather them, as a copy of all would take longer."

# Picoseconds, by benchmarks/shape_costs.py from docs/data/gemm-sizes-bf16-h200.csv and -h100.csv.
[[choose]]
kernel = ["wgmma_split", "wgmma_split_below", "wgmma_split_128_2x2", "wgmma_split_128_4", "wgmma_split_turned", "wgmma_store_64", "wgmma_store_64_below", "wgmma_store_64_beside", "wgmma_store_192_beside", "wgmma_store_256", "wgmma_store_2x2", "wgmma_store_turned", "wgmma_store_turned_2x2", "wgmma_store_turned_64", "wgmma_store_turned_2x4", "wgmma_store_turns", "wgmma_store_fit"]
when = "real_bytes == 2"
least = "4620000 + 580 * CYCLES + 2220 * WRITES + 38200 * MEETS"
because = "Split where C has few tiles; 64 rows fill one wave, 128 or more many; turned where tiles begin within lines; beside, below and square clusters share what they fetch."

[[choose]]
kernel = ["wgmma_packed", "mma_async"]
when = "real_bytes == 2"
because = "Rows that the copy engine does not take, of a larger C; mma_async where it is missing."

# And from docs/data/gemm-sizes-tf32-h200.csv and -h100.csv.
[[choose]]
kernel = ["tf32_split", "tf32_split_128", "tf32_64", "tf32_64_beside", "tf32"]
when = "real_bytes == 4"
least = "4080000 + 269 * CYCLES + 97400 * WAITS + 5870 * WRITES"
because = "As of two bytes: k split where C has few tiles, 64 columns to fill one wave, 128 for many."

[[choose]]
kernel = "tf32_gathered"
when = "real_bytes == 4 and (cdiv(M, 64) * cdiv(N, 64) <= sm_count or K > 36 and cdiv(M, 64) * cdiv(N, 64) <= 3 * sm_count and M * N * K <= 1800000 * sm_count or K > 36 and min(M, N) <= 192)"
because = "As of two bytes: threads gather rows of a small C or few products, or of a narrow one, for which copies of all are not read often."

[[choose]]
kernel = "tf32_packed"
when = "real_bytes == 4 and K > 36"
because = "Rows that the copy engine does not take, of a larger C. With fewer k short_k is left, further down: FP32 takes no longer than TF32."

# And from docs/data/gemm-sizes-e4m3-h200.csv and -h100.csv.
[[choose]]
kernel = ["e4m3_split", "e4m3_split_turned", "e4m3_split_2x2", "e4m3_split_128_2x2", "e4m3_64_fit", "e4m3_64_pairs", "e4m3_turned_64", "e4m3_64_below", "e4m3_192_beside", "e4m3", "e4m3_turned", "e4m3_2x2", "e4m3_turned_2x2", "e4m3_turns"]
when = "real_bytes == 1"
least = "4520000 + 594 * CYCLES + 5200 * WRITES + 44000 * MEETS"
because = "As of two bytes, A in rows and B in columns: split where C has few tiles, turned where it is low."

[[choose]]
kernel = "e4m3_gathered"
when = "real_bytes == 1"
because = "Rows that the copy engine does not take, which threads gather."

# And from docs/data/gemm-sizes-f64-h200.csv.
[[choose]]
kernel = "dmma_split_16x16"
when = "real_bytes == 8"
least = "1320000 + 1360 * CYCLES + 3710 * COPIES + 25000 * SUMMED + 39400 * WRITES + 2500000 * JOINS"
because = "Up to about 256: the smallest tiles give every SM one."

[[choose]]
kernel = "dmma_split_32x32"
when = "real_bytes == 8"
least = "3000000 + 868 * CYCLES + 570 * COPIES + 68000 * SUMMED + 11800 * WRITES"
because = "Around 384: few tiles, a long k shared by warps and blocks."

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8"
least = "2510000 + 477 * CYCLES + 2140 * COPIES + 6870 * WRITES + 2750000 * JOINS"
because = "Fewer tiles than SMs: half the rows of dmma_split."

[[choose]]
kernel = "dmma_split_64x32"
when = "real_bytes == 8"
least = "2670000 + 395 * CYCLES + 2820 * COPIES + 54600 * SUMMED + 8600 * WRITES + 190000 * JOINS"
because = "The same with half the columns, where fewer lie beyond C or rows start anywhere."

[[choose]]
kernel = "dmma_split"
when = "real_bytes == 8"
least = "4250000 + 518 * CYCLES + 1350 * COPIES + 4040000 * JOINS"
because = "A few tiles for each SM: blocks share k, so that the last wave is not empty."

[[choose]]
kernel = "dmma_128x64"
when = "real_bytes == 8"
least = "2890000 + 377 * CYCLES + 3790 * COPIES + 25000 * WRITES"
because = "A tile of half the columns for nearly each SM: one wave, and nothing to add up."

[[choose]]
kernel = "dmma"
when = "real_bytes == 8"
least = "5450 + 510 * CYCLES + 1330 * COPIES + 8860 * WRITES"
because = "Many tiles: the largest reuse most of what they load."

[[choose]]
kernel = "reg_8x16_pipelined"
when = "real_bytes == 4 and arch < 90 and K > 256 and cdiv(M, 44) * cdiv(N, 64) > 2 * sm_count"
because = "Cards without a copy engine were not timed."

# And from docs/data/gemm-sizes-h200.csv.
[[choose]]
kernel = "few_rows"
when = "real_bytes == 4"
least = "1070000 + 3940 * CYCLES + 1290 * COPIES"
because = "A C of a few rows: B is read once, as a stream."

[[choose]]
kernel = "short_k"
when = "real_bytes == 4"
least = "1470000 + 806 * CYCLES + 10 * WRITES + 88200 * WAITS"
because = "A few k: writing C is all the time there is."

[[choose]]
kernel = "splitk_8x32"
when = "real_bytes == 4"
least = "2230000 + 1520 * CYCLES + 1750 * COPIES + 155000 * WAITS + 58900 * WRITES + 1020000 * JOINS"
because = "Near 128: tiles this small give every SM one."

[[choose]]
kernel = "splitk_16x32"
when = "real_bytes == 4"
least = "2490000 + 979 * CYCLES + 2140 * COPIES + 25500 * WAITS + 35400 * WRITES + 3380 * JOINS"
because = "Near 256: twice the rows, and still about as many blocks as SMs."

[[choose]]
kernel = "splitk"
when = "real_bytes == 4"
least = "1720000 + 899 * CYCLES + 699 * COPIES + 580 * WAITS + 43700 * WRITES + 3080000 * JOINS"
because = "A C of few tiles with aligned rows: warps share k."

[[choose]]
kernel = "splitk_fit"
when = "real_bytes == 4"
least = "2290000 + 766 * CYCLES + 562 * COPIES + 202000 * WAITS + 19200 * WRITES + 838000 * JOINS"
because = "Few tiles whose rows start anywhere: as many rows as leave the busiest SM least."

[[choose]]
kernel = "splitk_tall"
when = "real_bytes == 4"
least = "3710000 + 684 * CYCLES + 1170 * COPIES + 220000 * WAITS + 971 * WRITES + 2690000 * JOINS"
because = "A large C with a K too short for the copy engine's kernels."

[[choose]]
kernel = "streamk_fit"
when = "real_bytes == 4"
least = "2240000 + 648 * CYCLES + 14000 * WRITES"
because = "Few tiles to an SM: smaller ones, of which less lies beyond C, or one for each block."

[[choose]]
kernel = "streamk_small"
when = "real_bytes == 4"
least = "7240000 + 631 * CYCLES + 6080 * WRITES"
because = "Tiles of half the size where still less lies beyond C."

[[choose]]
kernel = "streamk"
when = "real_bytes == 4"
least = "572 * CYCLES + 4390 * WRITES + 5190 * WAITS"
because = "A large C with aligned rows: all SMs end together."

[[choose]]
kernel = "realigned"
when = "real_bytes == 4"
least = "13300000 + 681 * CYCLES + 4450 * WRITES"
because = "Rows that start anywhere, of a larger C: put in place within shared memory."

[[choose]]
kernel = "realigned_fit"
when = "real_bytes == 4"
least = "7960000 + 729 * CYCLES + 7080 * WRITES"
because = "The same of a low or narrow C: tiles of half the size."

[[choose]]
kernel = "packed"
when = "real_bytes == 4"
least = "1740000 + 635 * CYCLES + 1790 * COPIES + 3430 * WRITES + 20000 * WAITS"
because = "Rows that start anywhere, with a long K: copying them first pays."

[[choose]]
kernel = "bulk_8x16"
when = "real_bytes == 4"
least = "731 * CYCLES + 3190 * WRITES"
because = "Whole waves of tiles with aligned rows: nothing is added up."

[[choose]]
kernel = ["reg_8x8", "reg_2x1"]
when = "1"
*/
