# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Each floor against the division that it is, on a card whose rates are easy to divide by."""

import pytest

from gpuprof.bounds import floors, with_bounds
from gpuprof.devices.cards import load_card
from gpuprof.devices.measured import latencies, reached, theoretical
from gpuprof.devices.rates import sm_rates
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement, ProblemRecord

#: Ten SMs at 1,000 MHz: one cycle is a nanosecond.
DEVICE = replace(load_card("h200"), sm_count=10, sm_clock_mhz=1000.0, peak_bandwidth_gbps=100.0)
PROBLEM = ProblemRecord("gemm", {"M": 64, "N": 64, "K": 64}, "f32", {}, {}, 524288, 49152, 16384)


def case_with(counters, **parts):
    counted = {
        name: value if isinstance(value, Counter) else Counter(value, "", "sim")
        for name, value in counters.items()
    }
    bare = Measurement("k", PROBLEM, (32, 1, 1), (10, 1, 1), {}, "ok", "", counters=counted)
    return replace(bare, **parts)


def floor(key, counters, **parts):
    return floors(case_with(counters, **parts), DEVICE)[key]


@pytest.mark.parametrize(
    ("key", "counters", "us"),
    [
        # 1000 instructions over 10 SMs at 4 a cycle: 25 cycles.
        ("issue", {"warp_instructions": 1000}, 0.025),
        ("fma", {"ffma_thread_instructions": 128_000}, 0.1),
        ("fma", {"pipe_fma_instructions": 4000, "ffma_thread_instructions": 32}, 0.1),
        ("fp64", {"dfma_thread_instructions": 64_000}, 0.1),
        ("alu", {"pipe_alu_instructions": 2000}, 0.1),
        ("xu", {"pipe_xu_instructions": 500}, 0.1),
        ("barrier", {"barriers": 500}, 0.1),
        ("l1", {"l1_passes": 1000}, 0.1),
        ("l1", {"shared_load_wavefronts": 600, "shared_store_wavefronts": 400}, 0.1),
        ("tensor_f16", {"tensor_f16_operations": 2 * 2048 * 1000}, 0.1),
    ],
)
def test_a_part_of_the_sm(key, counters, us):
    found = floor(key, counters)
    assert found.least_us == pytest.approx(us)
    assert found.even_us is None
    assert set(found.counters) <= set(counters)
    assert f"/ {10} SMs" in found.formula
    assert found.source


def test_the_busiest_sm_sets_the_floor():
    found = floor("l1", {"l1_passes": Counter(1000, "", "sim", busiest_sm=150)})
    assert (found.least_us, found.even_us) == (pytest.approx(0.15), pytest.approx(0.1))
    assert "150 passes on the busiest SM" in found.formula


def test_loads_may_hit_in_l1_but_never_all_and_stores_never():
    # 64 bytes a cycle and SM, 640 in all. 32,768 bytes of inputs must come once; 2^20 were asked for.
    found = floor("l2", {"global_load_sectors": 32768, "global_store_sectors": 512})
    assert found.least_us == pytest.approx(32768 / 640e3)
    assert found.most_us == pytest.approx(2**20 / 640e3)
    found = floor("l2", {"global_load_sectors": 1024, "global_store_sectors": 32768})
    assert found.least_us == pytest.approx(2**20 / 640e3)
    assert found.most_us is None


def test_results_may_stay_in_l2_and_what_was_measured_counts():
    counters = {"global_load_sectors": 32768, "global_store_sectors": 512}
    assert floor("dram", counters).least_us == pytest.approx((49152 - 16384) / 100e3)
    small = replace(DEVICE, l2_bytes=4096)
    found = floors(case_with(counters), small)["dram"]
    assert found.least_us == pytest.approx((49152 - 4096) / 100e3)
    assert found.most_us == pytest.approx(32 * (32768 + 512) / 100e3)
    measured = {"dram_read_bytes": 90_000, "dram_write_bytes": 10_000}
    found = floor("dram", {**counters, **measured})
    assert (found.least_us, found.most_us) == (pytest.approx(1.0), None)
    assert "Nsight Compute" in found.source


def test_a_file_that_does_not_tell_its_outputs_takes_all_for_outputs():
    case = case_with({"global_load_sectors": 8}, problem=replace(PROBLEM, output_bytes=None))
    assert "dram" not in floors(case, DEVICE)


def test_the_largest_binds_and_the_launch_may():
    case = with_bounds(case_with({"l1_passes": 10_000}, event_floor_us=0.05), DEVICE)
    assert (case.bound_by, case.bounds_reason) == ("l1", None)
    case = with_bounds(case_with({"l1_passes": 1000}, event_floor_us=3.0), DEVICE)
    assert case.bound_by == "launch"


def test_without_counts_nothing_binds():
    case = with_bounds(case_with({}, event_floor_us=3.0), DEVICE)
    assert case.bound_by is None
    assert case.bounds_reason == "exact counts are missing: the executor did not count it"
    failed = with_bounds(case_with({"l1_passes": 1000}, outcome="failed"), DEVICE)
    assert (failed.bounds, failed.bound_by) == ({}, None)


def test_what_no_document_publishes_has_no_floor():
    old = replace(DEVICE, compute_capability="5.2")
    assert floors(case_with({"l1_passes": 1000, "warp_instructions": 9}), old).keys() <= {"dram"}


def test_the_executors_count_goes_before_what_hardware_adds_to_it():
    case = case_with({"l1_passes": 1000})
    case = replace(case, executor_counters={"l1_passes": Counter(500, "", "sim")})
    assert floors(case, DEVICE)["l1"].least_us == pytest.approx(0.05)


def test_measured_rates_tell_what_is_reachable():
    device = replace(DEVICE, measured_rates={"shared_gbps": 640.0, "dram_read_gbps": 80.0})
    assert reached(device) == {"l1": pytest.approx(0.5), "dram": pytest.approx(0.8)}
    found = floors(case_with({"l1_passes": 1000}), device)["l1"]
    assert (found.least_us, found.reachable_us) == (pytest.approx(0.1), pytest.approx(0.2))


def test_theoretical_rates_are_those_of_the_peaks():
    card = load_card("h200")
    limits = theoretical(card)
    assert limits["fma_f32_gflops"] == pytest.approx(card.peak_fp32_gflops)
    assert limits["fma_f64_gflops"] == pytest.approx(card.peak_fp64_gflops)
    assert limits["shared_gbps"] == pytest.approx(132 * 1.98 * 128)
    assert latencies(card)["dram_latency_cycles"] == 662
    assert (
        latencies(replace(card, measured_rates={"dram_latency_cycles": 500.0}))["dram_latency_cycles"] == 500
    )


def test_every_card_has_the_rates_that_its_architecture_publishes():
    assert sm_rates(load_card("h200"))["l1"].per_cycle == 1
    assert "synchronization" in sm_rates(load_card("a100"))["barrier"].source
    for name in ("t4", "a100", "rtx3090", "rtx4090", "h200", "rtx5090"):
        rates = sm_rates(load_card(name))
        assert {"issue", "fma", "fp64", "l1"} <= rates.keys()
        assert all(rate.source for rate in rates.values())
