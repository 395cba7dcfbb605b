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
kernel = "splitk_8x32"
when = "arch >= 80 and M * N <= 160 * sm_count"

[[choose]]
kernel = "splitk_16x32"
when = "arch >= 80 and M * N <= 1600 * sm_count"

[[choose]]
kernel = "splitk_32x64"
when = "arch >= 80 and M * N <= 3600 * sm_count"

[[choose]]
kernel = "splitk_64x128"
when = "arch >= 80 and (M * N <= 9000 * sm_count or K <= 512 and M * N <= 18000 * sm_count)"

[[choose]]
kernel = "streamk_12x16"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0 and M * N >= 28000 * sm_count and cdiv(M, 96) * cdiv(N, 512) * 48 <= cdiv(M, 128) * cdiv(N, 256) * 33"

[[choose]]
kernel = "streamk_8x16"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0"

[[choose]]
kernel = "reg_8x16_pipelined"
when = "arch >= 80"

[[choose]]
kernel = "reg_8x8"
when = "1"
*/
