# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reading what Nsight Compute 2025.3.1 wrote on an H200: the ground truth, and damaged copies of it."""

import pytest
from ncu_support import FIXTURES

from gpuprof.ncu.metrics import CopyMetrics
from gpuprof.ncu.outcome import profile_of
from gpuprof.ncu.read import parse_raw_csv
from gpuprof.ncu.tool import NcuReadError

GEMM = (FIXTURES / "recorded_gemm_4096.csv").read_text()
TRANSPOSE = (FIXTURES / "recorded_transpose_2048.csv").read_text()
#: Requests and sectors of loads, then of stores, then both efficiencies in percent.
TILED = (134217728, 536870912, 524288, 2097152, 100, 100)
TRUTH = {
    "naive": (4294967296, 10737418240, 524288, 2097152, 82.5, 100),
    "smem_tiled": TILED,
    "reg_2x1": TILED,
    "copy_row": (131072, 524288, 131072, 524288, 100, 100),
    "copy_col": (131072, 2097152, 131072, 2097152, 25, 25),
    **dict.fromkeys(("naive_row", "diagonal_row", "unroll4_row"), (131072, 524288, 131072, 2097152, 100, 25)),
    **dict.fromkeys(("naive_col", "diagonal_col", "unroll4_col"), (131072, 2097152, 131072, 524288, 25, 100)),
}
NAMES = [
    *(f"global_{kind}_{event}" for kind in ("load", "store") for event in ("requests", "sectors")),
    *("global_load_efficiency_pct", "global_store_efficiency_pct"),
]


def profiles(text):
    return {launch.kernel: profile_of(launch, CopyMetrics()) for launch in parse_raw_csv(text)}


def test_every_launch_counts_the_ground_truth():
    found = {**profiles(GEMM), **profiles(TRANSPOSE)}
    assert found.keys() == TRUTH.keys()
    for kernel, profile in found.items():
        assert tuple(profile.counters[name].value for name in NAMES) == TRUTH[kernel], kernel


def test_gemms_count_their_multiply_adds_and_are_as_resident_as_measured():
    found = profiles(GEMM)
    for kernel in ("naive", "smem_tiled", "reg_2x1"):
        assert found[kernel].counters["ffma_thread_instructions"].value == 4096**3
        assert 98 < found[kernel].counters["achieved_occupancy_pct"].value <= 100
    wavefronts = {
        kernel: found[kernel].counters["shared_load_wavefronts"].value for kernel in ("smem_tiled", "reg_2x1")
    }
    assert wavefronts["smem_tiled"] == pytest.approx(4294967296, rel=5e-4)
    assert wavefronts["reg_2x1"] == pytest.approx(2147483648, rel=5e-4)


@pytest.mark.parametrize("length", [0.3, 0.6, 0.9])
def test_truncated_table_is_refused_or_keeps_only_whole_launches(length):
    text = GEMM[: int(len(GEMM) * length)]
    try:
        found = profiles(text)
    except NcuReadError:
        return
    for kernel, profile in found.items():
        assert tuple(profile.counters[name].value for name in NAMES) == TRUTH[kernel]
