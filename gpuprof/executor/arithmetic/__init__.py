# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What instructions compute, bit for bit: from operand arrays to the array of results."""
