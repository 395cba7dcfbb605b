# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""gpuprof: measure, execute and explain ladders of CUDA kernels."""

__version__ = "0.1.0"
