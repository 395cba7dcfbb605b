# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a kernel is as machine code: its instructions, the pipes that run them, how often each executes."""
