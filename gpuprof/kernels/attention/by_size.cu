// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The right kernel for head and card"
operation = "attention"
rung = 100
idea = "Short sequences want few blocks, of many queries one after the other; heads of 64 leave registers for a third warpgroup; a card without wgmma has mma.sync, an older one FP32."
change = "No code of its own: sequence, head and card decide which of the kernels below runs."
bottleneck = "That of the chosen kernel."

[[choose]]
kernel = ["overlap_persistent_128", "mma_async", "online"]
when = "sequence <= 1024 and (head == 64 or batch * heads * cdiv(sequence, 128) > sm_count)"

[[choose]]
kernel = ["overlap_persistent_192x128", "mma_async", "online"]
when = "head == 64 and sequence < 4096"

[[choose]]
kernel = ["overlap_skip_192x128", "mma_async", "online"]
when = "head == 64"

[[choose]]
kernel = ["overlap_persistent", "mma_async", "online"]
when = "sequence < 4096"

[[choose]]
kernel = ["overlap_skip", "mma_async", "online"]
when = "1"
*/
