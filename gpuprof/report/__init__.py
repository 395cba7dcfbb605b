# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Showing a run: HTML, terminal and Markdown. Nothing here measures."""
