# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks that wait for each other: all are counted without values, and a smaller size is verified."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
from problem_support import Gemm, find_kernel

from gpuprof.backends.base import ExplainedFailure, Findings
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.executed import ExecutedCase
from gpuprof.devices.cards import load_card
from gpuprof.executor.memory import banks
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case as MeasuredCase
from gpuprof.measure.process import verified_beside
from gpuprof.measure.protocol import Open
from gpuprof.options import RunOptions

pytestmark = pytest.mark.deep

CARD = load_card("h200")
#: Tiles of 128x256, two of which make a row of the first two problems.
TILE = {"ROWS": 128, "TM": 8, "TN": 16}
#: Every tile is several blocks' work, but for the last one of the second: rows and columns are left over.
SHARED, RAGGED = Gemm(256, 512, 128), Gemm(200, 300, 52)
#: Four tiles to each block and more: most are one block's own.
LONG = Gemm(1536, 4096, 64)


class Case:
    """A stream-K GEMM, perhaps with something in its source, or in what it includes, replaced."""

    def __init__(self, problem: Gemm, wrong: tuple[str, str] | None = None, name: str = "streamk") -> None:
        kernel = find_kernel("gemm", name)
        if wrong:
            texts = {"": kernel.source, **kernel.headers}
            changed = {file: text.replace(*wrong) for file, text in texts.items()}
            assert changed != texts
            kernel = replace(kernel, source=changed.pop(""), headers=changed)
        params = TILE if name == "streamk" else {}
        # Where all blocks wait for each other, few do as well.
        self.card = CARD if name == "streamk" else replace(CARD, sm_count=12)
        self.kernel, self.problem = kernel, problem
        self.shape = configure(kernel, problem, kernel.launch.block, params, self.card)
        assert self.shape.launches[0].cooperative
        self.compiled = compile_kernel(self.shape, "sm_90")

    def run(self, blocks: int | None = 6) -> Findings:
        return SimBackend(self.card, RunOptions(sim_blocks=blocks)).run(self.shape, self.compiled)

    def count(self, blocks: int = 6) -> ExecutedCase:
        return SimBackend(self.card, RunOptions(sim_blocks=blocks)).count(self.shape, self.compiled)


def test_every_block_is_counted_as_a_whole_run_counts():
    case = Case(RAGGED)
    whole, found = case.run(blocks=0), case.count()
    assert (whole.outcome, case.run().outcome) == ("ok", "ok")
    assert found.counters == whole.counters
    assert found.lines == whole.lines
    assert found.caveat is None
    requests = found.counters["global_store_requests"]
    assert requests.sampled_blocks == requests.total_blocks > 6


def test_a_control_slice_examines_what_a_loop_reads_of_shared_memory_once(monkeypatch):
    examined, examine = [], banks._examined

    def counted(*arguments, **options):
        examined.append(arguments)
        return examine(*arguments, **options)

    monkeypatch.setattr(banks, "_examined", counted)
    Case(Gemm(1536, 4096, 256)).count()  # thousands one by one: most of a minute at 4096
    assert len(examined) < 50


def test_a_large_grid_is_counted_as_it_is_and_verified_smaller_by_another_process_or_by_this_one():
    case, request = Case(LONG), Open(executes=CARD, sim_blocks=6)
    to_verify = MeasuredCase.of(case.kernel, LONG, params=TILE)
    answers = []

    @contextmanager
    def helped():
        with verified_beside(request, to_verify) as verified:
            yield lambda: answers.append(verified()) or answers[-1]

    @contextmanager
    def lost():
        yield lambda: "its process was lost"

    found = []
    for helper in (helped, lost):
        backend = SimBackend(CARD, RunOptions(sim_blocks=6))
        backend.verify_beside = helper
        found.append(backend.run(case.shape, case.compiled))
    beside, alone = found
    assert beside == alone
    assert [answer.verification for answer in answers] == [alone.verification]
    assert alone.outcome == "ok"
    assert alone.verification.checked_elements == 512 * 512
    (remark,) = alone.remarks
    assert "verified at 512x512x64, as its blocks depend on each other" in remark
    assert alone.counters["ffma_thread_instructions"].value == LONG.flops // 2


SIGNAL = "*(volatile unsigned *)&written[blockIdx.x] = 1"
FENCE = """            __threadfence();
            __syncthreads();
            if (t == 0)
                *(volatile"""


def test_a_block_that_never_tells_is_a_hang_with_its_place():
    with pytest.raises(ExplainedFailure, match="loops forever") as caught:
        Case(SHARED, (SIGNAL, f"if (blockIdx.x != 12) {SIGNAL}")).count()
    explanation = caught.value.explanation
    assert explanation.cause == "endless loop"
    assert explanation.block == (13, 0, 0)


@pytest.mark.parametrize("problem", [SHARED, LONG], ids=["whole", "at a smaller size"])
def test_a_flag_without_a_fence_is_a_race(problem):
    with pytest.raises(ExplainedFailure, match="nothing orders them") as caught:
        Case(problem, (FENCE, FENCE.split("\n", 1)[1])).run()
    assert caught.value.explanation.cause == "race"


@pytest.mark.parametrize(
    ("problem", "wrong"), [(RAGGED, 72 * 44), (LONG, 128 * 256)], ids=["whole", "from the control slice"]
)
def test_a_tile_that_nobody_stores_is_incorrect(problem, wrong):
    found = Case(problem, ("if (row >= M)", "if (row >= M || m0 == 128 && n0 == 256)")).run()
    assert found.outcome == "incorrect"
    assert f"{wrong} of {problem.sizes[0] * problem.sizes[1]} elements" in found.reason
    assert "never written" in found.reason
    assert found.verification.wrong_elements == wrong


def test_a_part_that_is_added_twice_is_incorrect():
    found = Case(LONG, ("add4(c, value);", "add4(c, value), add4(c, value);")).run()
    assert found.outcome == "incorrect"
    assert found.reason.startswith("At size 512x512x64: ")


#: Rows of A and of B are packed by all blocks before the copy engine takes them.
PACKED = Gemm(66, 261, 105)


def test_what_all_blocks_pack_is_counted_though_the_copy_engine_moves_no_values():
    case = Case(PACKED, name="packed")
    whole, found = case.run(blocks=0), case.count()
    assert whole.outcome == "ok"
    differ = {name for name, counter in found.counters.items() if counter != whole.counters[name]}
    assert differ <= {"l1_passes"}  # how often blocks look whether the others have come, is nobody's to say


def test_a_row_that_is_packed_wrong_is_incorrect():
    wrong = ("to[p][j * 32] = values[p][j];", "to[p][j * 32] = 2 * values[p][j];")
    assert Case(Gemm(66, 261, 21), wrong, "packed").run().outcome == "incorrect"
