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
kernel = "e4m3_192"
when = "cdiv(cdiv(M, 192) * cdiv(N, 192), sm_count) * 36864 < cdiv(cdiv(M, 128) * cdiv(N, 128), sm_count) * 16384"
because = "Taken at 3 of 28 sizes timed on an NVIDIA H200; without this rule they would take 7 % longer."

[[choose]]
kernel = "e4m3_split"
when = "M * N <= 2000 * sm_count and K > 512"
because = "Taken at 4 of 28 sizes timed on an NVIDIA H200; without this rule they would take 33 % longer."

[[choose]]
kernel = "e4m3_64"
when = "M * N <= 16000 * sm_count"
because = "Taken at 12 of 28 sizes timed on an NVIDIA H200; without this rule they would take 10 % longer."

[[choose]]
kernel = "e4m3"
when = "1"
because = "Taken at 9 of 28 sizes timed on an NVIDIA H200."
*/
