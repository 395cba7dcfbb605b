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

# Picoseconds, by benchmarks/shape_costs.py from docs/data/gemm-sizes-e4m3-h200.csv and -h100.csv.
[[choose]]
kernel = ["e4m3_split", "e4m3_split_turned", "e4m3_split_2x2", "e4m3_split_128_2x2", "e4m3_64_fit", "e4m3_64_pairs", "e4m3_turned_64", "e4m3_64_below", "e4m3_192_beside", "e4m3", "e4m3_turned", "e4m3_2x2", "e4m3_turned_2x2", "e4m3_turns"]
when = "1"
least = "4520000 + 594 * CYCLES + 5200 * WRITES + 44000 * MEETS"
*/
