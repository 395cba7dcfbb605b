# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks that wait for each other: all are counted without values, and a few verify the grid."""

from dataclasses import replace
from functools import cache

import pytest
from problem_support import Gemm, find_kernel

from gpuprof.backends.base import ExplainedFailure, Findings
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.executor import FaultKind, GridLaunch, KernelFault
from gpuprof.kernels.shape import configure
from gpuprof.toolchain.nvrtc import compile_source, compiler_options

pytestmark = pytest.mark.deep

CARD = load_card("h200")
#: Tiles of 128x256, two of which make a row of the first two problems.
TILE = {"BM": 128, "TM": 8, "TN": 16}
#: Every tile is several blocks' work, but for the last one of the second: rows and columns are left over.
SHARED, RAGGED = Gemm(256, 512, 128), Gemm(200, 300, 100)
#: Four tiles to each block and more: most are one block's own.
LONG = Gemm(1536, 4096, 64)


def run(
    problem: Gemm,
    *,
    blocks: int | None,
    wrong: tuple[str, str] | None = None,
    name: str = "streamk",
) -> Findings:
    """Run a stream-K GEMM, perhaps with something in its source, or in what it includes, replaced."""
    kernel = find_kernel("gemm", name)
    if wrong:
        texts = {"": kernel.source, **kernel.headers}
        changed = {file: text.replace(*wrong) for file, text in texts.items()}
        assert changed != texts
        kernel = replace(kernel, source=changed.pop(""), headers=changed)
    params = TILE if name == "streamk" else {}
    shape = configure(kernel, problem, kernel.launch.block, params, CARD)
    assert shape.launches[0].cooperative
    options = compiler_options("sm_90", shape.defines, kernel.compile_options)
    (entry,) = {launch.entry for launch in shape.launches}
    compiled = compile_source(kernel.source, kernel.file_name, entry, options, kernel.headers)
    backend = SimBackend(CARD, seed=0, blocks=blocks)
    return backend.run(kernel, problem, shape, {entry: compiled})


@cache
def sampled(problem: Gemm) -> Findings:
    return run(problem, blocks=6)


@pytest.mark.parametrize("problem", [SHARED, RAGGED], ids=["shared", "ragged"])
def test_every_block_is_counted_as_a_whole_run_counts(problem):
    whole = run(problem, blocks=0)
    found = sampled(problem)
    assert (whole.outcome, found.outcome) == ("ok", "ok")
    assert found.counters == whole.counters
    assert found.lines == whole.lines
    assert found.counters_reason is None
    requests = found.counters["global_store_requests"]
    assert requests.sampled_blocks == requests.total_blocks > 6


def test_what_a_few_blocks_finish_is_verified_and_said():
    found = sampled(LONG)
    assert found.outcome == "ok"
    tile = 128 * 256
    assert tile <= found.verification.checked_elements < LONG.sizes[0] * LONG.sizes[1]
    (remark,) = found.remarks
    assert remark.startswith("Its blocks depend on each other: ")
    assert found.counters["ffma_thread_instructions"].value == LONG.flops // 2


SIGNAL = "*(volatile unsigned *)&written[blockIdx.x] = 1"
FENCE = """            __threadfence();
            __syncthreads();
            if (t == 0)
                *(volatile"""


def test_a_block_that_never_tells_is_a_hang_with_its_place():
    with pytest.raises(ExplainedFailure, match="loops forever") as caught:
        run(SHARED, blocks=6, wrong=(SIGNAL, f"if (blockIdx.x != 12) {SIGNAL}"))
    explanation = caught.value.explanation
    assert explanation.cause == "endless loop"
    assert explanation.block == (13, 0, 0)


def test_a_flag_without_a_fence_is_a_race():
    with pytest.raises(ExplainedFailure, match="nothing orders them") as caught:
        run(SHARED, blocks=6, wrong=(FENCE, FENCE.split("\n", 1)[1]))
    assert caught.value.explanation.cause == "race"


def test_a_race_that_only_a_sample_sees_is_settled_by_the_whole_grid(monkeypatch):
    def seem_to_race(self, args, memory, sample):
        where = {"source_line": 7, "block": (1, 0, 0), "thread": (0, 0, 0), "other_block": (1, 0, 0)}
        raise KernelFault(FaultKind.SHARED_RACE, "writes what nothing orders", kernel="k", **where)

    monkeypatch.setattr(GridLaunch, "with_values", seem_to_race)
    assert run(SHARED, blocks=6).outcome == "ok"


def test_a_tile_that_nobody_stores_is_incorrect():
    found = run(SHARED, blocks=6, wrong=("if (row >= M)", "if (row >= M || m0 == 128 && n0 == 256)"))
    assert found.outcome == "incorrect"
    assert found.reason.startswith("32768 of 131072 elements of C (25 %) are never written")
    assert found.verification.wrong_elements == 32768


def test_a_part_that_is_added_twice_is_incorrect():
    found = run(SHARED, blocks=6, wrong=("add4(c, value);", "add4(c, value), add4(c, value);"))
    assert found.outcome == "incorrect"
    assert "checked elements" in found.reason


#: Rows of A and of B are packed by all blocks before the copy engine takes them.
PACKED = Gemm(130, 517, 201)


def test_what_all_blocks_pack_is_there_for_the_few_that_are_verified():
    whole = run(PACKED, blocks=0, name="packed")
    found = run(PACKED, blocks=6, name="packed")
    assert (whole.outcome, found.outcome) == ("ok", "ok")
    differ = {name for name, counter in found.counters.items() if counter != whole.counters[name]}
    assert differ <= {"l1_passes"}  # how often blocks look whether the others have come, is nobody's to say
    assert 0 < found.verification.checked_elements < 130 * 517


def test_a_row_that_is_packed_wrong_is_incorrect():
    wrong = ("to[p][j * 32] = values[p][j];", "to[p][j * 32] = 2 * values[p][j];")
    found = run(PACKED, blocks=6, wrong=wrong, name="packed")
    assert found.outcome == "incorrect"
