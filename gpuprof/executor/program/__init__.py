# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel as text: from PTX to basic blocks of instructions, and where their values live."""
