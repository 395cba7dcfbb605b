// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*gpuprof
title = "The right kernel for head and card"
operation = "attention"
rung = 100
idea = "Heads of 64 leave registers for a third warpgroup; a card without wgmma has mma.sync, an older one FP32."
change = "No code of its own: the length of a head and the card decide which of the kernels below runs."
bottleneck = "That of the chosen kernel."

[[choose]]
kernel = ["overlap_skip_192x128", "mma_async", "online"]
when = "head == 64"

[[choose]]
kernel = ["overlap_skip", "mma_async", "online"]
when = "1"
*/
