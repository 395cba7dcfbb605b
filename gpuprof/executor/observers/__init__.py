# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Who is told of what a launch does: searches for races, witnesses, and what else watches one."""
