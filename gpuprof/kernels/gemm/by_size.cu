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

# Picoseconds, by benchmarks/shape_costs.py from docs/data/gemm-sizes-bf16-h200.csv and -h100.csv.
[[choose]]
kernel = ["wgmma_split", "wgmma_split_pairs", "wgmma_store_64", "wgmma_store_64_below", "wgmma_store_64_beside", "wgmma_store_square", "wgmma_store_192_beside", "wgmma_store_256", "wgmma_store_fit"]
when = "real_bytes == 2"
least = "930 + 846 * CYCLES + 100000 * WAITS + 1700 * WRITES + 2350000 * SPLIT"

[[choose]]
kernel = ["wgmma_packed", "mma_async"]
when = "real_bytes == 2"

# And from docs/data/gemm-sizes-tf32-h200.csv and -h100.csv.
[[choose]]
kernel = ["tf32_split", "tf32_64", "tf32_64_beside", "tf32"]
when = "real_bytes == 4"
least = "1520000 + 543 * CYCLES + 108000 * WAITS + 10 * WRITES"

[[choose]]
kernel = "tf32_gathered"
when = "real_bytes == 4 and cdiv(M, 64) * cdiv(N, 64) * 2 <= sm_count"

[[choose]]
kernel = "tf32_packed"
when = "real_bytes == 4"

# And from docs/data/gemm-sizes-f64-h200.csv.
[[choose]]
kernel = "dmma_split_16x16"
when = "real_bytes == 8"
least = "3030000 + 839 * CYCLES + 5880 * COPIES + 490 * SUMMED + 53200 * WRITES + 138000 * JOINS"

[[choose]]
kernel = "dmma_split_32x32"
when = "real_bytes == 8"
least = "2970000 + 371 * CYCLES + 1900 * COPIES + 183000 * SUMMED + 76900 * WRITES + 1270000 * JOINS"

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8"
least = "11700000 + 224 * CYCLES + 4040 * COPIES + 10 * SUMMED + 14300 * WRITES"

[[choose]]
kernel = "dmma_split"
when = "real_bytes == 8"
least = "10400000 + 451 * CYCLES + 1 * COPIES + 475000 * SUMMED + 2 * WRITES"

[[choose]]
kernel = "dmma"
when = "real_bytes == 8"
least = "106000 + 279 * CYCLES + 4120 * COPIES + 58600 * WRITES"

[[choose]]
kernel = "reg_8x16_pipelined"
when = "real_bytes == 4 and arch < 90 and K > 256 and cdiv(M, 44) * cdiv(N, 64) > 2 * sm_count"
because = "Cards without a copy engine were not timed."

# And from docs/data/gemm-sizes-h200.csv.
[[choose]]
kernel = "few_rows"
when = "real_bytes == 4"
least = "2220000 + 2640 * CYCLES + 1860 * COPIES"

[[choose]]
kernel = "short_k"
when = "real_bytes == 4"
least = "799000 + 914 * CYCLES + 2700 * WRITES + 116000 * WAITS + 1 * STREAMED"

[[choose]]
kernel = "splitk_8x32"
when = "real_bytes == 4"
least = "1390000 + 723 * CYCLES + 2500 * COPIES + 330000 * WAITS + 163000 * WRITES"

[[choose]]
kernel = "splitk_16x32"
when = "real_bytes == 4"
least = "2520000 + 845 * CYCLES + 2420 * COPIES + 27000 * WAITS + 66400 * WRITES + 2850 * JOINS"

[[choose]]
kernel = "splitk"
when = "real_bytes == 4"
least = "391000 + 1040 * CYCLES + 104 * COPIES + 610 * WAITS + 84700 * WRITES + 4800000 * JOINS"

[[choose]]
kernel = "splitk_fit"
when = "real_bytes == 4"
least = "3760000 + 663 * CYCLES + 1540 * COPIES + 95200 * WAITS + 31200 * WRITES + 86400 * JOINS"

[[choose]]
kernel = "splitk_tall"
when = "real_bytes == 4"
least = "6570000 + 747 * CYCLES + 1060 * COPIES + 366000 * WAITS + 5170 * WRITES + 4150000 * JOINS"

[[choose]]
kernel = "streamk_fit"
when = "real_bytes == 4"
least = "8970000 + 629 * CYCLES + 14100 * WRITES"

[[choose]]
kernel = "streamk"
when = "real_bytes == 4"
least = "56000000 + 460 * CYCLES + 1410 * WRITES"

[[choose]]
kernel = "realigned"
when = "real_bytes == 4"
least = "10200000 + 730 * CYCLES + 18500 * WRITES"

[[choose]]
kernel = "packed"
when = "real_bytes == 4"
least = "38600000 + 656 * CYCLES + 73400 * COPIES + 11 * WRITES"

[[choose]]
kernel = "bulk_8x16"
when = "real_bytes == 4"
least = "76800 + 647 * CYCLES + 5090 * WRITES"

[[choose]]
kernel = ["reg_8x8", "reg_2x1"]
when = "1"
*/
