# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG with text in HTML, drawn once: every width, theme and printer shows the same markup."""
