# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ read as text, as far as that tells: what a file includes, declares and keeps for the host."""
