# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The least time that exact counts allow a case on a card: one floor for each part of the device."""

from gpuprof.bounds.floors import floors, with_bounds, without_impossible_time
