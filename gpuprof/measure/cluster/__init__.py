# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The transport to the workers of a Dask cluster. Nothing else of gpuprof needs Dask."""
