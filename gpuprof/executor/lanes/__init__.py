# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The lanes of a batch: which of them run, what values they hold, and what is counted of them."""
