# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where generic addresses of shared and local memory start; global ones lie elsewhere."""

SHARED_WINDOW = 0x7F00_0000_0000
LOCAL_WINDOW = 0x7E00_0000_0000
WINDOW_BYTES = 1 << 32
