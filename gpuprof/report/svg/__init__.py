# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG with text in HTML, drawn once for every width, theme and printer."""
