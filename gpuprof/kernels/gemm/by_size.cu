// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The right shape for the size"
problem = "gemm"
rung = 700
idea = "No shape is right for every size: small tiles fill the GPU when C is small, large tiles reuse what they load when C is large. How much of C falls to each SM decides."
change = "No code of its own: for each problem and device one of the shapes below it runs."
bottleneck = "That of the chosen kernel."

[[choose]]
kernel = "wgmma_gathered"
when = "real_bytes == 2 and (N % 8 != 0 or K % 8 != 0) and M * N <= 2000 * sm_count"

[[choose]]
kernel = ["wgmma_split", "wgmma_split_pairs", "wgmma_store_64", "wgmma_store_64_below", "wgmma_store_64_beside", "wgmma_store_square", "wgmma_store_192_beside", "wgmma_store_256", "wgmma_store_fit"]
when = "real_bytes == 2"
least = "COST"
because = "Cycles by the tiles of the last wave too, what they fetch, read and multiply: 0.9 % behind the fastest at 114 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200."

[[choose]]
kernel = ["wgmma_packed", "mma_async"]
when = "real_bytes == 2"

[[choose]]
kernel = ["tf32_split", "tf32_64", "tf32_64_beside", "tf32"]
when = "real_bytes == 4"
least = "COST"
because = "As of halves: 0.9 % behind the fastest at 58 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200."

[[choose]]
kernel = "tf32_gathered"
when = "real_bytes == 4 and cdiv(M, 64) * cdiv(N, 64) * 2 <= sm_count"

[[choose]]
kernel = "tf32_packed"
when = "real_bytes == 4"

# Picoseconds, by benchmarks/shape_costs.py from docs/data/gemm-sizes-f64-h200.csv.
[[choose]]
kernel = "dmma_split_16x16"
when = "real_bytes == 8"
least = "2500000 + 761 * CYCLES + 5120 * COPIES + 582 * SUMMED + 64200 * WRITES + 1300000 * JOINS"

[[choose]]
kernel = "dmma_split_32x32"
when = "real_bytes == 8"
least = "2970000 + 371 * CYCLES + 1440 * COPIES + 124000 * SUMMED + 69700 * WRITES + 1570000 * JOINS"

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8"
least = "8720000 + 213 * CYCLES + 3850 * COPIES + 10 * SUMMED + 16300 * WRITES"

[[choose]]
kernel = "dmma_split"
when = "real_bytes == 8"
least = "9430000 + 451 * CYCLES + 1 * COPIES + 343000 * SUMMED + 3 * WRITES"

[[choose]]
kernel = "dmma"
when = "real_bytes == 8"
least = "26500 + 279 * CYCLES + 5250 * COPIES + 19600 * WRITES"

# And from docs/data/gemm-sizes-h200.csv.
[[choose]]
kernel = "few_rows"
when = "real_bytes == 4"
least = "869000 + 2390 * CYCLES + 2050 * COPIES"

[[choose]]
kernel = "short_k"
when = "real_bytes == 4"
least = "824000 + 914 * CYCLES + 1910 * WRITES + 79300 * WAITS + 2 * STREAMED"

[[choose]]
kernel = "splitk_8x32"
when = "real_bytes == 4"
least = "1240000 + 723 * CYCLES + 1780 * COPIES + 349000 * WAITS + 121000 * WRITES"

[[choose]]
kernel = "splitk_16x32"
when = "real_bytes == 4"
least = "1870000 + 805 * CYCLES + 1840 * COPIES + 29400 * WAITS + 60200 * WRITES + 2850 * JOINS"

[[choose]]
kernel = "splitk"
when = "real_bytes == 4"
least = "68400 + 739 * CYCLES + 2330 * COPIES + 55600 * WAITS + 53900 * WRITES + 5580000 * JOINS"

[[choose]]
kernel = "splitk_fit"
when = "real_bytes == 4"
least = "1710000 + 663 * CYCLES + 1620 * COPIES + 80800 * WAITS + 25600 * WRITES + 1210000 * JOINS"

[[choose]]
kernel = "splitk_tall"
when = "real_bytes == 4"
least = "4910000 + 1020 * CYCLES + 1 * COPIES + 125000 * WAITS + 1810 * WRITES + 2080000 * JOINS"

[[choose]]
kernel = "streamk_fit"
when = "real_bytes == 4"
least = "6000000 + 660 * CYCLES + 11600 * WRITES"

[[choose]]
kernel = "streamk"
when = "real_bytes == 4"
least = "35600000 + 527 * CYCLES + 572 * WRITES"

[[choose]]
kernel = "realigned"
when = "real_bytes == 4"
least = "5020000 + 730 * CYCLES + 22200 * WRITES"

[[choose]]
kernel = "packed"
when = "real_bytes == 4"
least = "30700000 + 656 * CYCLES + 91600 * COPIES + 11 * WRITES"

[[choose]]
kernel = "bulk_8x16"
when = "real_bytes == 4"
least = "4800000 + 647 * CYCLES + 3240 * WRITES"

[[choose]]
kernel = "reg_8x16_pipelined"
when = "real_bytes == 4"
least = "17600000 + 944 * CYCLES"

[[choose]]
kernel = ["reg_8x8", "reg_2x1"]
when = "1"
*/
