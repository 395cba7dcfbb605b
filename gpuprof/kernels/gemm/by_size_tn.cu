// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The right shape for the size"
problem = "gemm"
rung = 701
layout = "tn"
idea = "As by_size, of kernels that take A in rows and B in columns."
change = "No code of its own: for each problem and device one of the shapes below it runs."
bottleneck = "That of the chosen kernel."

[[choose]]
kernel = "e4m3_split"
when = "cdiv(M, 64) * cdiv(N, 64) <= sm_count and K > 2048"
because = "Taken at 6 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 25 % longer."

[[choose]]
kernel = "e4m3_192_beside"
when = "cdiv(cdiv(M, 192) * cdiv(N, 192), sm_count) * 36864 < cdiv(cdiv(M, 64) * cdiv(N, 128), sm_count) * 8192"
because = "Taken at 2 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 53 % longer."

[[choose]]
kernel = "e4m3"
when = "cdiv(cdiv(M, 128) * cdiv(N, 256), sm_count) * sm_count * 32768 * 10 <= M * N * 12 and K > 2048"
because = "Taken at 6 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 3 % longer."

[[choose]]
kernel = "e4m3_64_pairs"
when = "cdiv(M, 64) * cdiv(N, 256) <= sm_count and M * N <= 12000 * sm_count and M * N > 5000 * sm_count and K <= 2048"
because = "Taken at 8 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 3 % longer."

[[choose]]
kernel = "e4m3_64_fit"
when = "cdiv(M, 64) * cdiv(N, 128) <= sm_count and cdiv(M, 64) * cdiv(N, 128) * 8192 * 10 <= M * N * 11 and cdiv(M, 64) * cdiv(N, 128) * 8192 < cdiv(M, 128) * cdiv(N, 256) * 32768"
because = "Taken at 4 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 16 % longer."

[[choose]]
kernel = "e4m3_64_below"
when = "cdiv(M, 256) * cdiv(N, 256) * 4 <= sm_count and M * N > 1500 * sm_count and M <= N"
because = "Taken at 12 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 8 % longer."

[[choose]]
kernel = "e4m3_64_fit"
when = "cdiv(M, 64) * cdiv(N, 256) <= sm_count and (N % 16 != 0 or K % 16 != 0)"
because = "Taken at 2 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 2 % longer."

[[choose]]
kernel = "e4m3_64_pairs"
when = "cdiv(M, 64) * cdiv(N, 256) <= sm_count"
because = "Taken at 8 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 17 % longer."

[[choose]]
kernel = "e4m3"
when = "cdiv(M, 128) * cdiv(N, 256) <= sm_count"
because = "Taken at 10 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200; without this rule they would take 6 % longer."

[[choose]]
kernel = "e4m3_turns"
when = "1"
because = "Taken at 10 of 68 sizes timed on an NVIDIA H100 80GB HBM3 and an NVIDIA H200."
*/
