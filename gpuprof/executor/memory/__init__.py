# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The memories of a batch: their bytes, what an access costs, and who may touch what when."""
