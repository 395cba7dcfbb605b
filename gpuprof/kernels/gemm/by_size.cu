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
kernel = "reg_2x1"
when = "real_bytes == 8 and arch < 80"
because = "FP64 without its tensor cores, which need compute capability 8.0."

[[choose]]
kernel = "dmma_128x128"
when = "real_bytes == 8 and (arch == 80 or arch == 87 or 90 <= arch < 120) and cdiv(cdiv(M, 128) * cdiv(N, 128), sm_count) * sm_count * 10 <= cdiv(M, 128) * cdiv(N, 128) * 11"
because = "Its tiles are to fill whole waves but for a tenth. On an H200 (132 SMs) they do at 2048 and 4096, where it is 4 % faster than 64x64; at 1536, 2049 and 3000 they do not, and 64x64 is by 48, 24 and 10 %."

[[choose]]
kernel = "dmma_64x64_even"
when = "real_bytes == 8 and (arch == 80 or arch == 87 or 90 <= arch < 120) and (arch < 90 or K > 2048) and 1900 * sm_count <= M * N and M * N <= 6200 * sm_count and cdiv(M, 64) * cdiv(N, 64) * cdiv(K, 16) >= 15 * sm_count and cdiv(cdiv(M, 64) * cdiv(N, 64), sm_count) * sm_count * 10 >= cdiv(M, 64) * cdiv(N, 64) * 13"
because = "Where a last wave of 64x64 tiles leaves three tenths of the SMs' time idle and k is long, or clusters cannot share it out: on an H200 it is 7 % faster than dmma_64x64_split at 512x512x4096."

[[choose]]
kernel = "dmma_64x64_split_four"
when = "real_bytes == 8 and 90 <= arch < 120 and 8 * cdiv(M, 64) * cdiv(N, 64) <= 3 * sm_count"
because = "Where there are a third as many tiles of 64x64 as SMs: on an H200 it is 13 % faster than dmma_64x64_split at 256, 2 % at 448 (49 tiles), and 19 % slower at 512 (64)."

[[choose]]
kernel = "dmma_64x64_split"
when = "real_bytes == 8 and 90 <= arch < 120 and (cdiv(M, 64) * cdiv(N, 64) <= sm_count or cdiv(2 * cdiv(M, 64) * cdiv(N, 64), sm_count) < 2 * cdiv(cdiv(M, 64) * cdiv(N, 64), sm_count))"
because = "Where tiles of 64x64 are one wave, or leave at least half of the last one idle: on an H200 it is 48 % faster than dmma_64x64 at 512 (64 tiles), 20 % at 768 (144) and 896 (196), 14 % at 1100 (324) and 8 % at 1536 (576); at 1000 (256 tiles) and 1700 (729) it is 4 and 1 % slower."

[[choose]]
kernel = "dmma_64x64"
when = "real_bytes == 8"
because = "Smaller tiles leave less of a last wave idle: at 1024 it takes 45 us and 128x128 78 us."

[[choose]]
kernel = "few_rows"
when = "arch >= 90 and M <= 3 and N * K >= 262144 and cdiv(N, 128) * 88 <= 20 * sm_count"
because = "A few rows leave tiles empty: on an H200 it is 91 % faster than splitk_8x32 at 1x1024x1024. Of four rows none of its variants is: few_rows_two is 13 % slower at 4x8192x2048. Clusters of eight fit up to 3840 columns at once."

[[choose]]
kernel = "few_rows_six"
when = "arch >= 90 and M <= 3 and N * K >= 262144 and cdiv(N, 128) * 66 <= 17 * sm_count"
because = "Of so many columns clusters of eight are not on the GPU all at once: on an H200 it is 10 % faster than few_rows at 1x4096x4096 and 19 % at 2x4096x4096."

[[choose]]
kernel = "few_rows_four"
when = "arch >= 90 and M <= 3 and N * K >= 262144 and cdiv(N, 128) * 33 <= 14 * sm_count"
because = "Likewise: on an H200 it is 16 % faster than few_rows_six at 1x5120x4096, and 14 % at 1x6144x4096."

[[choose]]
kernel = "few_rows_two"
when = "arch >= 90 and M <= 3 and N * K >= 262144 and N <= 8000000"
because = "Likewise: on an H200 it is 15 % faster than few_rows_four at 1x8192x4096, and 9 % at 1x16384x2048."

[[choose]]
kernel = "streamk_8x8_tall"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0 and K > 256 and 32 <= N and N <= 64 and 16 * N <= M and M * N <= 18000 * sm_count and M * N * K >= 1900000 * sm_count"
because = "Where half of a tile of 128 columns would be empty: on an H200 it is 31 % faster than splitk_32x64 at 4096x64x4096, 74 % faster than streamk_8x8_square at 8192x64x8192 and 65 % at 4096x32x4096. At 4096x96x4096 both compute as much and streamk_8x8_square is 10 % faster."

[[choose]]
kernel = "realigned_8x8_alone"
when = "90 <= arch < 120 and (K % 4 != 0 or N % 4 != 0) and K > 500 and K <= 1024 and M * N >= 2450 * sm_count and cdiv(M, 128) * cdiv(N, 128) * 5 <= sm_count and cdiv(M, 128) * cdiv(N, 128) * 163840 <= 13 * M * N"
because = "Rows of any length in few tiles of 128x128: on an H200 it is 5 % faster than splitk_64x64 at 577 (25 tiles). At 641 (36, two fifths larger than C) it is 11 % slower."

[[choose]]
kernel = "shifted_80x64"
when = "arch >= 80 and (K % 4 != 0 or N % 4 != 0) and K > 256 and K <= 2048 and cdiv(M, 80) * cdiv(N, 64) <= sm_count and cdiv(M, 80) * cdiv(N, 64) * 10 >= 9 * sm_count and cdiv(M, 80) * cdiv(N, 64) * 76800 <= 17 * M * N and (arch < 90 or cdiv(M, 128) * cdiv(N, 128) * 163840 > 13 * M * N)"
because = "Rows of any length, where its tiles are one wave and a seventh larger than C at most, and those of 128x128 three tenths: on an H200 it is 2 % faster than any other rung at 769 and 785."

[[choose]]
kernel = "splitk_44x64"
when = "arch >= 80 and K <= 1024 and M * N >= 2450 * sm_count and (cdiv(M, 44) * cdiv(N, 64) <= sm_count and cdiv(M, 44) * cdiv(N, 64) * 10 >= 9 * sm_count or cdiv(M, 44) * cdiv(N, 64) <= 2 * sm_count and cdiv(M, 44) * cdiv(N, 64) * 10 >= 17 * sm_count)"
because = "Where its tiles are one wave, or two blocks for each SM, but for a tenth or so: on an H200 it is 21 % faster than splitk_64x64 at 576 (126 tiles), 20 % faster than any other rung at 832 (247), and at 801 it takes 39.5 us and realigned_8x8_alone 40.4. At 640 (150) it is 27 % slower than splitk_64x64."

[[choose]]
kernel = "splitk_44x64"
when = "arch >= 80 and K <= 1024 and M * N >= 1900 * sm_count and cdiv(M, 32) * cdiv(N, 64) > sm_count and cdiv(M, 44) * cdiv(N, 64) <= sm_count and cdiv(M, 44) * cdiv(N, 64) * 10 >= 8 * sm_count"
because = "Where tiles of 32x64 are more than one wave and these are not: on an H200 it is 13 % faster than any other rung at 521 and 545."

[[choose]]
kernel = "splitk_64x64"
when = "arch >= 80 and M * N >= 2450 * sm_count and cdiv(M, 64) * cdiv(N, 64) <= sm_count and K <= 1024"
because = "Where its tiles are one wave, and those of splitk_32x64 more: on an H200 it is 8 % faster than any other rung at 640 (100 tiles), 13 % at 704 (121), and 12 and 16 % at 577 and 641."

[[choose]]
kernel = "streamk_8x8_square"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0 and K > 256 and M * N <= 18000 * sm_count and M * N * K >= 1900000 * sm_count and cdiv(M, 128) * cdiv(N, 128) < cdiv(M, 64) * cdiv(N, 256) and cdiv(M, 128) * cdiv(N, 128) * 32768 <= 3 * M * N"
because = "Where fewer tiles of 128x128 than of 64x256 make up C: on an H200 it is 3 % faster than streamk_8x8 at 896 and 5 % at 1152, and 6 % faster than splitk_64x128 at 8192x128x8192."

[[choose]]
kernel = "streamk_8x8"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0 and K > 256 and M * N <= 18000 * sm_count and M * N * K >= 1900000 * sm_count and cdiv(M, 64) * cdiv(N, 256) * 32768 <= 3 * M * N"
because = "Where there is much work for a C of a few tiles to an SM: on an H200 it is 10 % faster than the splitk rungs at 768 and 65 % at 512x512x8192, level with 64x128 at 1024, and 3 to 5 % faster than streamk_8x16 at 1280 and 4096x512x512. Its tiles of 64x256 may compute half as much again as C has."

[[choose]]
kernel = "short_k_44x96"
when = "arch >= 80 and (K % 4 != 0 or N % 4 != 0) and K >= 32 and K <= 80 and cdiv(M, 44) * cdiv(N, 96) <= sm_count and cdiv(M, 44) * cdiv(N, 96) * 10 >= 8 * sm_count and cdiv(M, 44) * cdiv(N, 96) * 42240 <= 12 * M * N"
because = "Rows of any length and very little k, where its tiles are one wave: on an H200 it is 27 to 31 % faster than splitk_44x64 at 129x4097x65."

[[choose]]
kernel = "short_k_52x96"
when = "arch >= 80 and (K % 4 != 0 or N % 4 != 0) and K >= 32 and K <= 80 and cdiv(M, 52) * cdiv(N, 96) <= sm_count and cdiv(M, 52) * cdiv(N, 96) * 10 >= 8 * sm_count and cdiv(M, 52) * cdiv(N, 96) * 49920 <= 12 * M * N"
because = "Likewise: on an H200 it is 5 to 7 % faster than splitk_44x64 at 295x1999x77. At 301x1777x97 it is 2 to 6 % slower."

[[choose]]
kernel = "splitk_44x64"
when = "arch >= 80 and (K % 4 != 0 or N % 4 != 0) and K <= 512 and M * N > 3900 * sm_count and M * N <= 8500 * sm_count and cdiv(M, 44) * cdiv(N, 64) * 28160 <= M * N * 11"
because = "Rows of any length and little k, where its tiles compute a tenth more than C has at most: on an H200 it is 16 % faster than splitk_32x64 and 64 % faster than packed_8x8 at 131x5003x257, and 21 % faster than splitk_64x128 at 129x4097x65."

[[choose]]
kernel = "realigned_8x8_alone"
when = "90 <= arch < 120 and (K % 4 != 0 or N % 4 != 0) and K > 256 and M * N >= 3700 * sm_count and cdiv(M, 128) * cdiv(N, 128) * cdiv(K, 16) <= 24 * sm_count and cdiv(M, 128) * cdiv(N, 128) * 32768 <= 3 * M * N"
because = "Rows of any length with at most 24 k-tiles of a tile of 128x128 an SM: on an H200 it is 3 to 5 % faster than with two blocks to an SM at 705, 833 and 865 (20 an SM), and 3 % slower at 929 (29)."

[[choose]]
kernel = "realigned_8x8"
when = "90 <= arch < 120 and (K % 4 != 0 or N % 4 != 0) and K > 256 and M * N <= 34000 * sm_count and M * N * K >= 1900000 * sm_count and cdiv(M, 128) * cdiv(N, 128) * 32768 <= 3 * M * N and cdiv(M, 64) * cdiv(N, 256) * 6 > cdiv(M, 128) * cdiv(N, 128) * 5"
because = "Rows of any length without packing them first: on an H200 it is 5 to 11 % faster than packed_8x8 at 961, 1001, 1023, 1111, 1333 and 1401, and 1 % at 2049. At 1201 packed_8x8 is 1 % faster."

[[choose]]
kernel = "realigned_8x8_alone"
when = "90 <= arch < 120 and (K % 4 != 0 or N % 4 != 0) and K > 1024 and M * N * K >= 1900000 * sm_count and cdiv(M, 128) * cdiv(N, 128) * 5 <= sm_count and cdiv(M, 128) * cdiv(N, 128) * 8192 <= M * N"
because = "Few tiles, up to twice as large as C, with much k: on an H200 it is 24 % faster than splitk_16x32 at 301x301x3001."

[[choose]]
kernel = "realigned_8x8"
when = "90 <= arch < 120 and (K % 4 != 0 or N % 4 != 0) and K > 1024 and M * N <= 12000 * sm_count and M * N * K >= 1900000 * sm_count and cdiv(M, 128) * cdiv(N, 128) * 7800 <= M * N and cdiv(M, 64) * cdiv(N, 256) * 6 > cdiv(M, 128) * cdiv(N, 128) * 5"
because = "Likewise: on an H200 it is 37 % faster than splitk_32x64 at 65x4097x4097, where half of each tile is empty."

[[choose]]
kernel = "splitk_64x64_even"
when = "90 <= arch < 120 and (K % 4 != 0 or N % 4 != 0) and K > 256 and K <= 1024 and M * N >= 2450 * sm_count and M * N <= 5000 * sm_count and cdiv(M, 64) * cdiv(N, 64) * 40960 <= M * N * 13"
because = "Rows of any length without the time to pack them: on an H200 it is 4 % faster than packed_8x8 at 705."

[[choose]]
kernel = "packed_8x8"
when = "90 <= arch < 120 and K > 256 and M * N <= 12000 * sm_count and M * N * K >= 1900000 * sm_count and cdiv(M, 64) * cdiv(N, 256) * 32768 <= 3 * M * N"
because = "Rows of any length: on an H200 it is 32 to 45 % faster than the splitk rungs at 769, 1001, 1021, 1023 and 1025x511x2047. At 509 splitk_32x64 takes half its time."

[[choose]]
kernel = "splitk_8x32"
when = "arch >= 80 and (M * N <= 166 * sm_count or M <= 8)"
because = "On an H200 the smallest tile is fastest up to 144 x 144, 157 elements of C an SM; at 152 x 152, 175 an SM, 16x32 is by 10 %. Of eight rows any other tile leaves half empty."

[[choose]]
kernel = "splitk_16x32"
when = "arch >= 80 and (M * N <= 1000 * sm_count or cdiv(M, 32) * cdiv(N, 64) > sm_count and cdiv(M, 32) * cdiv(N, 64) * 10 <= sm_count * 13)"
because = "On an H200 it is 30 and 21 % faster than 32x64 at 320 and 333 (840 elements of C an SM); and where tiles of 32x64 would leave most of a second wave idle."

[[choose]]
kernel = "splitk_32x64"
when = "arch >= 80 and M * N <= 3900 * sm_count"
because = "Fastest there from 384 (1117 elements of C an SM) to 512, where its tiles are one wave, by 6 to 37 %."

[[choose]]
kernel = "splitk_64x128"
when = "arch >= 80 and (M * N <= 8500 * sm_count or K <= 256 and M * N <= 16000 * sm_count)"
because = "At 1024 (7944 an SM) as fast as any. With K = 256 the large tiles' longer start keeps it in front up to 1408 (15019 an SM); with K = 512 no longer."

[[choose]]
kernel = "streamk_12x16"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0 and (K >= 512 or K >= 128 and M * N >= 500000 * sm_count) and M * N >= 24000 * sm_count and cdiv(M, 96) * cdiv(N, 512) * 48 <= cdiv(M, 128) * cdiv(N, 256) * 33"
because = "Fastest there by 1 to 7 % from 1800 on (24545 an SM), with K = 128 at 8192x8192, unless its wider tiles waste that: one computes 96 x 512 elements and 8x16's 128 x 256, 48 to 32, so that it may compute 33 to 32 as many. At N = 2304, a tenth more, it is 6 to 9 % slower."

[[choose]]
kernel = "streamk_8x16"
when = "90 <= arch < 120 and K % 4 == 0 and N % 4 == 0"
because = "Its bulk copies need compute capability 9.0, 128 KiB of shared memory and rows of a multiple of 16 bytes."

[[choose]]
kernel = "packed_8x8"
when = "90 <= arch < 120 and K > 256 and M * N <= 34000 * sm_count and cdiv(M, 64) * cdiv(N, 256) * 41 <= cdiv(M, 128) * cdiv(N, 256) * 80"
because = "Where tiles of 128x256 waste a fortieth more: on an H200 it is 2 % faster than packed_8x16 at 2049, 2053 and 2050x1026x4098, and 3 % at 777x3333x555; at 1531, where they waste as much, they are level."

[[choose]]
kernel = "packed_8x16"
when = "90 <= arch < 120"
because = "Rows of any length, as its copies of A and B have whole pieces of 16 bytes: on an H200 it is 8 % faster than cuBLAS at 3067 and 8191, 5 % at 4095 and 9 % at 4099."

[[choose]]
kernel = "reg_8x16_pipelined"
when = "arch >= 80"
because = "The fastest shape whose copies take rows of any length and that fits compute capability 8 and 12."

[[choose]]
kernel = "reg_8x8"
when = "1"
because = "The fastest shape without asynchronous copies, which compute capability 7.x lacks."
*/
