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
when = "M * N <= 2000 * sm_count and K > 256"
because = "Taken at 6 of 26 sizes timed on an NVIDIA H200; without this rule they would take 26 % longer."

[[choose]]
kernel = "e4m3_64"
when = "M * N <= 16000 * sm_count and N % 16 == 0 and K % 16 == 0"
because = "Taken at 7 of 26 sizes timed on an NVIDIA H200; without this rule they would take 12 % longer."

[[choose]]
kernel = "e4m3"
when = "1"
because = "Taken at 13 of 26 sizes timed on an NVIDIA H200."
*/
