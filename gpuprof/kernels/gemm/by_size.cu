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
kernel = "dmma"
when = "real_bytes == 8 and (arch == 80 or arch == 87 or 90 <= arch < 120) and cdiv(cdiv(M, 128) * cdiv(N, 128), sm_count) * sm_count * 10 <= cdiv(M, 128) * cdiv(N, 128) * 11"
because = "Its tiles are to fill whole waves but for a tenth. On an H200 (132 SMs) they do at 2048 and 4096, where it is 4 % faster than 64x64; at 1536, 2049 and 3000 they do not, and 64x64 is by 48, 24 and 10 %."

[[choose]]
kernel = "dmma_split_four"
when = "real_bytes == 8 and 90 <= arch < 120 and 5 * cdiv(M, 32) * cdiv(N, 32) <= 4 * sm_count"
because = "Where tiles of 32x32 are at most four fifths of the SMs: on an H200 it is 9 % faster than dmma_split_32x64 at 256 and 12 % at 128; at 333 (121 tiles) that one is 15 % faster."

[[choose]]
kernel = "dmma_split_32x64"
when = "real_bytes == 8 and 90 <= arch < 120 and cdiv(M, 32) * cdiv(N, 64) <= sm_count"
because = "Where there are fewer tiles of 32x64 than SMs: on an H200 it is 20 % faster than 64x64 split over four blocks at 333, 10 % at 448, and 9 % faster than dmma_split at 500."

[[choose]]
kernel = "dmma_split"
when = "real_bytes == 8 and 90 <= arch < 120 and (cdiv(M, 64) * cdiv(N, 64) <= sm_count or cdiv(2 * cdiv(M, 64) * cdiv(N, 64), sm_count) < 2 * cdiv(cdiv(M, 64) * cdiv(N, 64), sm_count))"
because = "Where tiles of 64x64 are one wave, or leave at least half of the last one idle: on an H200 it is 48 % faster than dmma_64x64 at 512 (64 tiles), 20 % at 768 (144) and 896 (196), 14 % at 1100 (324) and 8 % at 1536 (576); at 1000 (256 tiles) and 1700 (729) it is 4 and 1 % slower."

[[choose]]
kernel = "dmma_64x64"
when = "real_bytes == 8 and arch >= 80"
because = "Smaller tiles leave less of a last wave idle: at 1024 it takes 45 us and 128x128 78 us."

[[choose]]
kernel = "wgmma_store_64"
when = "real_bytes == 2 and M * N > 2000 * sm_count and M * N <= 12000 * sm_count"
because = "Taken at 9 of 52 sizes timed on an NVIDIA H200; without this rule they would take 12 % longer."

[[choose]]
kernel = "wgmma_split"
when = "real_bytes == 2 and M * N <= 3900 * sm_count"
because = "Taken at 9 of 52 sizes timed on an NVIDIA H200; without this rule they would take 58 % longer."

[[choose]]
kernel = "wgmma_store_192"
when = "real_bytes == 2 and cdiv(M, 192) * cdiv(N, 192) * 36864 < cdiv(M, 128) * cdiv(N, 256) * 32768"
because = "Taken at 2 of 52 sizes timed on an NVIDIA H200; without this rule they would take 15 % longer."

[[choose]]
kernel = "wgmma_gathered"
when = "real_bytes == 2 and M * N <= 3900 * sm_count and K <= 1024"
because = "Taken at 6 of 52 sizes timed on an NVIDIA H200; without this rule they would take 47 % longer."

[[choose]]
kernel = "wgmma_store_fit"
when = "real_bytes == 2"
because = "Taken at 19 of 52 sizes timed on an NVIDIA H200."

[[choose]]
kernel = ["wgmma_packed", "mma_async"]
when = "real_bytes == 2"
because = "Taken at 7 of 52 sizes timed on an NVIDIA H200."

[[choose]]
kernel = "tf32_split"
when = "real_bytes == 4 and cdiv(M, 64) * cdiv(N, 64) * 2 <= sm_count"
because = "Taken at 7 of 36 sizes timed on an NVIDIA H200; without this rule they would take 29 % longer."

[[choose]]
kernel = "tf32_64"
when = "real_bytes == 4 and M * N <= 12000 * sm_count"
because = "Taken at 7 of 36 sizes timed on an NVIDIA H200; without this rule they would take 14 % longer."

[[choose]]
kernel = "tf32_gathered"
when = "real_bytes == 4 and M * N <= 1500 * sm_count"
because = "Taken at 5 of 36 sizes timed on an NVIDIA H200; without this rule they would take 75 % longer."

[[choose]]
kernel = "tf32"
when = "real_bytes == 4"
because = "Taken at 12 of 36 sizes timed on an NVIDIA H200."

[[choose]]
kernel = "tf32_packed"
when = "real_bytes == 4"
because = "Taken at 5 of 36 sizes timed on an NVIDIA H200."

[[choose]]
kernel = "few_rows"
when = "M <= 3 and N * K >= 262144"
because = "Taken at 3 of 133 sizes timed on an NVIDIA H200; without this rule they would take 36 % longer."

[[choose]]
kernel = "splitk_8x32"
when = "K <= 2048 and M * N <= 250 * sm_count"
because = "Taken at 8 of 133 sizes timed on an NVIDIA H200; without this rule they would take 4 % longer."

[[choose]]
kernel = "short_k"
when = "1"
because = "Taken at 12 of 133 sizes timed on an NVIDIA H200; without this rule they would take 56 % longer."

[[choose]]
kernel = ["streamk_fit", "realigned", "splitk_fit"]
when = "N > 32 and M * N <= 24000 * sm_count and M * N * K >= 4000000 * sm_count"
because = "Taken at 36 of 133 sizes timed on an NVIDIA H200; without this rule they would take 21 % longer."

[[choose]]
kernel = "splitk_fit"
when = "M * N * K >= 2000000 * sm_count and cdiv(M, 44) * cdiv(N, 64) * 2 <= sm_count"
because = "Taken at 3 of 133 sizes timed on an NVIDIA H200; without this rule they would take 20 % longer."

[[choose]]
kernel = "splitk"
when = "(K <= 2048 or N <= 64) and M * N > 1000 * sm_count and cdiv(M, 32) * cdiv(N, 64) <= sm_count"
because = "Taken at 7 of 133 sizes timed on an NVIDIA H200; without this rule they would take 15 % longer."

[[choose]]
kernel = "splitk_16x32"
when = "M * N <= 2000 * sm_count"
because = "Taken at 14 of 133 sizes timed on an NVIDIA H200; without this rule they would take 40 % longer."

[[choose]]
kernel = "splitk_fit"
when = "M * N <= 24000 * sm_count"
because = "Taken at 24 of 133 sizes timed on an NVIDIA H200; without this rule they would take 123 % longer."

[[choose]]
kernel = "bulk_8x16"
when = "K <= 64"
because = "Taken at 3 of 133 sizes timed on an NVIDIA H200; without this rule they would take 25 % longer."

[[choose]]
kernel = ["streamk", "packed", "reg_8x16_pipelined", "reg_8x8", "reg_2x1"]
when = "1"
because = "Taken at 23 of 133 sizes timed on an NVIDIA H200."
*/
