# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Planning and running cases: worker process, verification, timing statistics."""
