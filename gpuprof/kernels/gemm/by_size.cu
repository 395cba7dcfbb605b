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

[[choose]]
kernel = "dmma_split_16x16"
when = "real_bytes == 8 and cdiv(M, 16) * cdiv(N, 16) <= 3 * sm_count and K <= 512"
because = "Taken at 20 of 74 sizes timed on an NVIDIA H200; without this rule they would take 20 % longer."

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8 and cdiv(M, 32) * cdiv(N, 64) * 2 <= sm_count and cdiv(M, 32) * cdiv(N, 64) * 2048 * 10 <= M * N * 11 and cdiv(M, 32) * cdiv(N, 64) * 2048 < cdiv(M, 128) * cdiv(N, 128) * 16384"
because = "Taken at 1 of 74 sizes timed on an NVIDIA H200; without this rule they would take 12 % longer."

[[choose]]
kernel = "dmma_split_16x16"
when = "real_bytes == 8 and cdiv(M, 16) * cdiv(N, 16) * 256 * 10 <= M * N * 12 and M * N <= 100 * sm_count"
because = "Taken at 3 of 74 sizes timed on an NVIDIA H200; without this rule they would take 36 % longer."

[[choose]]
kernel = "dmma"
when = "real_bytes == 8 and cdiv(cdiv(M, 128) * cdiv(N, 128), sm_count) * sm_count * 16384 * 10 <= M * N * 11 and K > 128"
because = "Taken at 3 of 74 sizes timed on an NVIDIA H200; without this rule they would take 4 % longer."

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8 and cdiv(M, 32) * cdiv(N, 64) <= sm_count and M * N * K >= 4000000 * sm_count"
because = "Taken at 3 of 74 sizes timed on an NVIDIA H200; without this rule they would take 9 % longer."

[[choose]]
kernel = "dmma_split_32x32"
when = "real_bytes == 8 and cdiv(M, 32) * cdiv(N, 32) <= 3 * sm_count and cdiv(M, 32) * cdiv(N, 32) * 1024 * 10 <= M * N * 15"
because = "Taken at 20 of 74 sizes timed on an NVIDIA H200; without this rule they would take 12 % longer."

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8 and cdiv(M, 32) * cdiv(N, 64) <= 3 * sm_count and N % 2 == 0 and K % 2 == 0"
because = "Taken at 4 of 74 sizes timed on an NVIDIA H200; without this rule they would take 15 % longer."

[[choose]]
kernel = "dmma_split"
when = "real_bytes == 8"
because = "Taken at 20 of 74 sizes timed on an NVIDIA H200."

[[choose]]
kernel = "few_rows"
when = "M <= 3 and N * K >= 262144"
because = "Taken at 3 of 197 sizes timed on an NVIDIA H200; without this rule they would take 31 % longer."

[[choose]]
kernel = "bulk_8x16"
when = "K <= 64 and M * N * K >= 2000000 * sm_count"
because = "Taken at 3 of 197 sizes timed on an NVIDIA H200; without this rule they would take 11 % longer."

[[choose]]
kernel = "splitk_fit"
when = "cdiv(M, 44) * cdiv(N, 64) * 2 <= sm_count and cdiv(M, 44) * cdiv(N, 64) * 2816 < cdiv(M, 64) * cdiv(N, 256) * 16384 and M * N * K >= 2000000 * sm_count"
because = "Taken at 4 of 197 sizes timed on an NVIDIA H200; without this rule they would take 34 % longer."

[[choose]]
kernel = ["streamk_fit", "realigned", "splitk_fit"]
when = "N > 32 and cdiv(M, 128) * cdiv(N, 128) <= 2 * sm_count and M * N * K >= 4000000 * sm_count"
because = "Taken at 47 of 197 sizes timed on an NVIDIA H200; without this rule they would take 19 % longer."

[[choose]]
kernel = "splitk"
when = "(K <= 2048 or N <= 64) and cdiv(M, 32) * cdiv(N, 64) <= sm_count and cdiv(cdiv(M, 32) * cdiv(N, 64), sm_count) * sm_count * 2048 * 10 <= M * N * 20"
because = "Taken at 9 of 197 sizes timed on an NVIDIA H200; without this rule they would take 12 % longer."

[[choose]]
kernel = "splitk_16x32"
when = "M * N <= 2000 * sm_count and K > 48"
because = "Taken at 34 of 197 sizes timed on an NVIDIA H200; without this rule they would take 41 % longer."

[[choose]]
kernel = "splitk_fit"
when = "cdiv(M, 44) * cdiv(N, 64) <= 2 * sm_count and K > 48"
because = "Taken at 25 of 197 sizes timed on an NVIDIA H200; without this rule they would take 25 % longer."

[[choose]]
kernel = "splitk_tall"
when = "M * N <= 60000 * sm_count and K <= 256 and K > 64"
because = "Taken at 23 of 197 sizes timed on an NVIDIA H200; without this rule they would take 9 % longer."

[[choose]]
kernel = ["short_k", "splitk_tall"]
when = "(K <= 104 or M * N * K <= 4000000 * sm_count)"
because = "Taken at 27 of 197 sizes timed on an NVIDIA H200; without this rule they would take 86 % longer."

[[choose]]
kernel = ["streamk", "packed", "reg_8x16_pipelined", "reg_8x8", "reg_2x1"]
when = "1"
because = "Taken at 22 of 197 sizes timed on an NVIDIA H200."
*/
