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
kernel = "e4m3_64_fit"
when = "K > 4096 and cdiv(M, 64) * cdiv(N, 128) * 8192 < cdiv(M, 128) * cdiv(N, 256) * 32768"
because = "Taken at 1 of 28 sizes timed on an NVIDIA H200; without this rule they would take 5 % longer."

[[choose]]
kernel = "e4m3_192_beside"
when = "cdiv(cdiv(M, 192) * cdiv(N, 192), sm_count) * 36864 < cdiv(cdiv(M, 64) * cdiv(N, 128), sm_count) * 8192"
because = "Taken at 1 of 28 sizes timed on an NVIDIA H200; without this rule they would take 57 % longer."

[[choose]]
kernel = "e4m3_split"
when = "M * N <= 3000 * sm_count and K > 1024"
because = "Taken at 3 of 28 sizes timed on an NVIDIA H200; without this rule they would take 27 % longer."

[[choose]]
kernel = "e4m3_64_fit"
when = "M * N <= 6500 * sm_count"
because = "Taken at 7 of 28 sizes timed on an NVIDIA H200; without this rule they would take 3 % longer."

[[choose]]
kernel = "e4m3_64_pairs"
when = "M * N <= 12000 * sm_count"
because = "Taken at 4 of 28 sizes timed on an NVIDIA H200; without this rule they would take 4 % longer."

[[choose]]
kernel = "e4m3_turns"
when = "1"
because = "Taken at 12 of 28 sizes timed on an NVIDIA H200."
*/
