# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Pure functions over a run: rates, limits, comparisons and the sentences that explain them."""
