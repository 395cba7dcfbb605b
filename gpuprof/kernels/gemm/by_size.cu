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
kernel = "tf32_64"
when = "real_bytes == 4 and cdiv(M, 64) * cdiv(N, 64) <= 2 * sm_count and cdiv(cdiv(M, 64) * cdiv(N, 64), sm_count) * sm_count * 4096 * 10 <= M * N * 15"
because = "Taken at 12 of 70 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 47 % longer."

[[choose]]
kernel = ["tf32_split", "tf32_gathered"]
when = "real_bytes == 4 and cdiv(M, 64) * cdiv(N, 64) * 2 <= sm_count"
because = "Taken at 12 of 70 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 41 % longer."

[[choose]]
kernel = "tf32_64_beside"
when = "real_bytes == 4 and cdiv(M, 256) * cdiv(N, 256) * 4 <= sm_count"
because = "Taken at 8 of 70 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 14 % longer."

[[choose]]
kernel = "tf32"
when = "real_bytes == 4"
because = "Taken at 32 of 70 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200."

[[choose]]
kernel = "tf32_packed"
when = "real_bytes == 4"
because = "Taken at 6 of 70 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200."

[[choose]]
kernel = "wgmma_split_pairs"
when = "real_bytes == 2 and cdiv(M, 128) * cdiv(N, 128) * 5 <= sm_count and M * N > 1000 * sm_count and K > 2048"
because = "Taken at 4 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 9 % longer."

[[choose]]
kernel = "wgmma_split"
when = "real_bytes == 2 and cdiv(M, 64) * cdiv(N, 64) * 2 <= sm_count and K > 256"
because = "Taken at 6 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 2 % longer."

[[choose]]
kernel = "wgmma_store_64_below"
when = "real_bytes == 2 and cdiv(M, 256) * cdiv(N, 256) * 4 <= sm_count and cdiv(M, 256) * cdiv(N, 256) * 65536 * 10 <= M * N * 11 and K > 1024 and M <= N"
because = "Taken at 6 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 9 % longer."

[[choose]]
kernel = "wgmma_store_square"
when = "real_bytes == 2 and cdiv(M, 192) * cdiv(N, 192) * 2 <= sm_count and M * N > 12000 * sm_count"
because = "Taken at 6 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 6 % longer."

[[choose]]
kernel = "wgmma_store_64_beside"
when = "real_bytes == 2 and cdiv(M, 64) * cdiv(N, 256) <= sm_count and cdiv(M, 64) * cdiv(N, 256) * 2 <= sm_count and M * N > 6500 * sm_count"
because = "Taken at 4 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 22 % longer."

[[choose]]
kernel = "wgmma_store_64"
when = "real_bytes == 2 and cdiv(M, 64) * cdiv(N, 256) <= sm_count"
because = "Taken at 12 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 13 % longer."

[[choose]]
kernel = "wgmma_gathered"
when = "real_bytes == 2 and cdiv(M, 64) * cdiv(N, 64) <= sm_count"
because = "Taken at 2 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 104 % longer."

[[choose]]
kernel = "wgmma_store_256"
when = "real_bytes == 2 and cdiv(M, 256) * cdiv(N, 176) <= sm_count and cdiv(cdiv(M, 256) * cdiv(N, 176), sm_count) * sm_count * 45056 * 10 <= M * N * 13"
because = "Taken at 4 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 6 % longer."

[[choose]]
kernel = "wgmma_store_192_beside"
when = "real_bytes == 2 and cdiv(M, 192) * cdiv(N, 192) <= 2 * sm_count and cdiv(cdiv(M, 192) * cdiv(N, 192), sm_count) * sm_count * 36864 * 10 <= M * N * 15 and cdiv(M, 128) * cdiv(N, 256) > sm_count"
because = "Taken at 6 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 11 % longer."

[[choose]]
kernel = ["wgmma_store_fit", "wgmma_packed", "mma_async"]
when = "real_bytes == 2"
because = "Taken at 22 of 72 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200."

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
when = "cdiv(M, 44) * cdiv(N, 64) * 2 <= sm_count and M * N > 700 * sm_count and K > 4096"
because = "Taken at 1 of 197 sizes timed on an NVIDIA H200; without this rule they would take 26 % longer."

[[choose]]
kernel = ["streamk_fit", "realigned", "splitk_fit"]
when = "N > 32 and cdiv(M, 128) * cdiv(N, 128) <= 2 * sm_count and M * N * K >= 4000000 * sm_count"
because = "Taken at 47 of 197 sizes timed on an NVIDIA H200; without this rule they would take 13 % longer."

[[choose]]
kernel = "splitk"
when = "(K <= 2048 or N <= 64) and cdiv(M, 32) * cdiv(N, 64) <= sm_count and cdiv(cdiv(M, 32) * cdiv(N, 64), sm_count) * sm_count * 2048 * 10 <= M * N * 20"
because = "Taken at 9 of 197 sizes timed on an NVIDIA H200; without this rule they would take 15 % longer."

[[choose]]
kernel = "splitk_fit"
when = "cdiv(M, 44) * cdiv(N, 64) * 2816 * 10 <= M * N * 15 and M * N <= 8500 * sm_count and M * N * K >= 500000 * sm_count"
because = "Taken at 24 of 197 sizes timed on an NVIDIA H200; without this rule they would take 29 % longer."

[[choose]]
kernel = "splitk_16x32"
when = "M * N <= 2000 * sm_count and K > 48"
because = "Taken at 32 of 197 sizes timed on an NVIDIA H200; without this rule they would take 39 % longer."

[[choose]]
kernel = "splitk_tall"
when = "K > 64 and K <= 256 and M * N * K >= 1000000 * sm_count and M * N <= 60000 * sm_count"
because = "Taken at 21 of 197 sizes timed on an NVIDIA H200; without this rule they would take 9 % longer."

[[choose]]
kernel = ["short_k", "splitk_tall"]
when = "(K <= 104 or M * N * K <= 4000000 * sm_count)"
because = "Taken at 35 of 197 sizes timed on an NVIDIA H200; without this rule they would take 86 % longer."

[[choose]]
kernel = ["streamk", "packed", "reg_8x16_pipelined", "reg_8x8", "reg_2x1"]
when = "1"
because = "Taken at 22 of 197 sizes timed on an NVIDIA H200."
*/
