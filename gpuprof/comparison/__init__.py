# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What differs between runs: cases matched, verdicts that hold, gates. Pure functions over runs."""
