# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A modelled time, from exact counts, machine code and measured rates; nothing is fitted to a kernel."""

from gpuprof.sm_model.modelled import Modelled, modelled
from gpuprof.sm_model.played_launch import NotModelled, PlayedLaunch
from gpuprof.sm_model.traffic import Place, Traffic, TrafficSites, traffic_of
