# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute, wrapped: run it over the cases of a run, read its reports, explain its failures."""
