# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Lanes that have parted: where they are in the program, where they join, and who of them waits for whom."""
