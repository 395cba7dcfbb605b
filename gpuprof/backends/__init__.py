# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What executes a case: a real GPU (`gpu`) or the SIMT executor (`sim`)."""
