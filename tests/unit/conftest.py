# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Settings of the unit tests: no deadline per example, since a busy machine is no fault of the code."""

from hypothesis import settings

settings.register_profile("gpuprof", deadline=None)
settings.load_profile("gpuprof")
