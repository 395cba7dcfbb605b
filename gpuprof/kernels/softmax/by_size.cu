// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The right place for the row"
operation = "softmax"
rung = 100
idea = "A short row fits the registers of a warp, a longer one those of a block, a long one the shared memory of an SM, and the longest none of them; of few long rows each is shared out among SMs."
change = "No code of its own: the shape decides which of the kernels below runs."
bottleneck = "That of the chosen kernel."

[[choose]]
kernel = "warp_row"
when = "columns <= 1024"

[[choose]]
kernel = "registers"
when = "columns <= 8192"

[[choose]]
kernel = "split_row"
when = "columns > 32768 and rows <= 4 * sm_count"

[[choose]]
kernel = "smem_row"
when = "cdiv(columns, 4) * 16 + 256 <= (232448 if arch == 90 or arch == 100 or arch == 103 else 166912 if arch == 80 or arch == 87 else 101376 if arch >= 86 else 49152)"

[[choose]]
kernel = "float4_online"
when = "1"
*/
