# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""gpuprof for Python programs: what the commands do, called with values. `import gpuprof` offers it."""
