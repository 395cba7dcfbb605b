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
when = "arch >= 80 and M * N <= 166 * sm_count"
because = "On an H200 (132 SMs) the smallest tile is fastest up to 144 x 144, 157 elements of C an SM; at 152 x 152, 175 an SM, 16x32 is by 10 %."

[[choose]]
kernel = "splitk_16x32"
when = "arch >= 80 and M * N <= 1000 * sm_count"
because = "Fastest there from 152 up to 320 (776 an SM); from 384 to 448 (1117 to 1520 an SM) 32x64 leads by 0.5 to 3 %, at 480 by 27 %. At 576 whole waves of 16x32 win once more."

[[choose]]
kernel = "splitk_32x64"
when = "arch >= 80 and M * N <= 3900 * sm_count"
because = "Fastest there at 704 (3755 an SM) by 22 %; at 736 (4104 an SM) 64x128 is by 16 %."

[[choose]]
kernel = "splitk_64x128"
when = "arch >= 80 and (M * N <= 8500 * sm_count or K <= 256 and M * N <= 16000 * sm_count)"
because = "Fastest there at 1024 (7944 an SM) by 23 %; at 1088 (8968 an SM) streamk_8x16 is by 35 %. With K = 256 the large tiles' longer start keeps it in front up to 1408 (15019 an SM); with K = 512 no longer."

[[choose]]
kernel = "streamk_12x16"
when = "90 <= arch < 120 and K >= 512 and K % 4 == 0 and N % 4 == 0 and M * N >= 25000 * sm_count and cdiv(M, 96) * cdiv(N, 512) * 48 <= cdiv(M, 128) * cdiv(N, 256) * 33"
because = "Fastest there by 1 to 5 % from 1856 on (26096 an SM) unless its wider tiles waste that: one computes 96 x 512 elements and 8x16's 128 x 256, 48 to 32, so that it may compute 33 to 32 as many. At N = 2304, a tenth more, it is 6 to 9 % slower."

[[choose]]
kernel = "streamk_8x16"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0"
because = "Its bulk copies need compute capability 9.0, 128 KiB of shared memory and rows of a multiple of 16 bytes."

[[choose]]
kernel = "reg_8x16_pipelined"
when = "arch >= 80"
because = "The fastest shape whose copies take rows of any length."

[[choose]]
kernel = "reg_8x8"
when = "1"
because = "The fastest shape without asynchronous copies, which compute capability 7.x lacks."
*/
