# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""NVRTC compilation, its cache, resource usage and occupancy; needs no driver."""
