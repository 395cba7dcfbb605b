# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How undefined values go through products of matrices, and through what moves their tiles.

A product is undefined where its row of A, its column of B or its element of C holds anything undefined: zero
times an unknown float may be NaN. Moves take the undefined bits where they take the values. The origin of a
value is that of any undefined one that its warp gave.
"""
