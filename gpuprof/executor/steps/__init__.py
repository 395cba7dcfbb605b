# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One instruction on a whole batch: what a PTX instruction is decoded to, by family."""
