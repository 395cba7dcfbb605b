# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel files with tensor maps in both directions, and with warpgroup products, from header to verdict."""

import pytest
from cuda_sources import kernel_file
from problem_support import executor, find_kernel, measured_file, problem_for

from gpuprof.backends.sim import backend, sampled
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case

SCALED_BOXES, WARPGROUP_GEMM = kernel_file("scaled_boxes"), kernel_file("warpgroup_gemm")

pytestmark = pytest.mark.deep


def case_of(folder, text, sizes, dtype="f32"):
    path = folder / "mine.cu"
    path.write_text(text)
    return measured_file(path, sizes, dtype)


@pytest.mark.parametrize("sizes", ["3x21x40", "1x1x4", "2x8x16", "4x9x100"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_boxes_go_in_and_out(tmp_path, sizes, dtype):
    case = case_of(tmp_path, SCALED_BOXES, sizes=sizes, dtype=dtype)
    assert case.outcome == "ok", case.reason


def test_rows_that_the_engine_cannot_take_are_skipped_with_the_reason(tmp_path):
    case = case_of(tmp_path, SCALED_BOXES, sizes="2x8x18")
    assert case.outcome == "skipped"
    assert "of x cannot be made: rows are multiples of 16 bytes apart, below 2^40, not 72." in case.reason


def test_missing_fence_is_told_with_its_line(tmp_path):
    text = SCALED_BOXES.replace('asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // visible', "")
    case = case_of(tmp_path, text, sizes="3x21x40")
    assert case.outcome == "failed"
    assert "missing proxy fence" in case.reason
    wrote = next(i for i, line in enumerate(text.splitlines(), 1) if "tile[i] + tile[i]" in line)
    assert f"which line {wrote} wrote, and no fence.proxy.async lies between" in case.reason


@pytest.mark.parametrize("sizes", ["64x64x64", "128x192x200", "72x40x328"])
def test_tensor_copies_feed_a_warpgroup(tmp_path, sizes):
    case = case_of(tmp_path, WARPGROUP_GEMM, sizes=sizes, dtype="f16")
    assert case.outcome == "ok", case.reason
    m, n, k = map(int, sizes.split("x"))
    blocks = -(-m // 64) * -(-n // 64)
    assert case.counters["tensor_f16_operations"].value == 2 * blocks * 64 * 64 * -(-k // 64) * 64


def test_wide_tiles_are_counted_and_modelled_without_values_as_with_them(monkeypatch):
    kernel = find_kernel("gemm", "wgmma_producer_128x256")
    problem = problem_for(kernel, 1024, 1024, 512, dtype="f16")
    case = Case.of(kernel, problem)
    computed, _ = measure_case(case, *executor(blocks=6, linked=True))
    monkeypatch.setattr(sampled, "_SUMS_S", 0.0)
    counted, _ = measure_case(case, *executor(blocks=6, linked=True, seed=1))
    assert (computed.outcome, counted.outcome) == ("ok", "ok"), (computed.reason, counted.reason)
    assert computed.remarks == ()
    assert "verified at 256x512x256" in "".join(counted.remarks)
    assert computed.model == counted.model is not None


@pytest.mark.parametrize("kernel", ["wgmma_persistent", "wgmma_multicast"])
def test_blocks_of_several_tiles_stand_for_those_of_as_many(monkeypatch, kernel):
    # 40 tiles of 32 blocks: 8 have two.
    kernel = find_kernel("gemm", kernel)
    case = Case.of(kernel, problem_for(kernel, 512, 2560, 64, dtype="f16"))
    monkeypatch.setattr(sampled, "_SUMS_S", 0.0)
    whole, _ = measure_case(case, *executor(linked=True, blocks=6, sms=32, seed=2))
    monkeypatch.setattr(backend, "_QUICK_SLICE_STEPS", 0.0)
    few, _ = measure_case(case, *executor(linked=True, blocks=6, sms=32, seed=3))
    assert few.outcome == whole.outcome == "ok", (few.reason, whole.reason)
    assert few.counters_reason is None
    for name, counter in whole.counters.items():
        assert counter.sampled_blocks == counter.total_blocks == 32
        found = few.counters[name]
        assert found.sampled_blocks < 20
        assert (name, found.value, found.busiest_sm) == (name, counter.value, counter.busiest_sm)
    assert few.model == whole.model is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("wait(at(arrived + step % 2), step / 2 % 2);", "", "is still in flight"),
        (
            'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); // multiplied',
            "",
            "which the wgmma of line",
        ),
    ],
)
def test_missing_waits_are_told(tmp_path, old, new, words):
    assert old in WARPGROUP_GEMM
    case = case_of(tmp_path, WARPGROUP_GEMM.replace(old, new), sizes="64x64x256", dtype="f16")
    assert case.outcome == "failed"
    assert words in case.reason
