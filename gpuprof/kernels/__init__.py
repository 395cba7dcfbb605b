# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The shipped kernels, one `.cu` file each, and the catalog that reads their headers."""
