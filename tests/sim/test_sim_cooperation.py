# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Grids that are counted as they are, without values where that is dear, and verified at a smaller size."""

import pytest
from cuda_sources import kernel_file
from problem_support import Gemm, decoded_kernels, find_kernel, ptx_alone
from typer.testing import CliRunner

from gpuprof.backends.base import ExplainedFailure, Findings
from gpuprof.backends.compiling import compile_kernel
from gpuprof.backends.sim import backend, sampled
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.backends.sim.executed import ExecutedCase
from gpuprof.cli import app
from gpuprof.devices.cards import load_card
from gpuprof.devices.device import Device
from gpuprof.executor.memory import banks
from gpuprof.kernels.shape import configure
from gpuprof.options import RunOptions
from gpuprof.reading import read_run
from gpuprof.records import replace

pytestmark = pytest.mark.deep

CARD = load_card("h200")
#: Tiles of 128x256, two of which make a row of the first two problems.
TILE = {"ROWS": 128, "TM": 8, "TN": 16}
#: Every tile is several blocks' work, but for the last one of the second: rows and columns are left over.
SHARED, RAGGED = Gemm(256, 512, 128), Gemm(200, 300, 52)
#: Four tiles to each block and more: most are one block's own.
LONG = Gemm(1536, 4096, 64)


class Case:
    """A GEMM, perhaps with something in its source, or in what it includes, replaced.

    Its machine code is read, and its time modelled, only if `linked`.
    """

    def __init__(
        self,
        problem: Gemm,
        wrong: tuple[str, str] | None = None,
        name: str = "streamk",
        card: Device = CARD,
        linked: bool = False,
    ) -> None:
        kernel = find_kernel("gemm", name)
        if wrong:
            texts = {"": kernel.source, **kernel.headers}
            changed = {file: text.replace(*wrong) for file, text in texts.items()}
            assert changed != texts
            kernel = replace(kernel, source=changed.pop(""), headers=changed)
        self.card, self.problem, self.modelled = card, problem, linked
        self.decoded = decoded_kernels(card, linked)
        self.shape = configure(kernel, problem, kernel.block, TILE if name == "streamk" else {}, card)
        self.compiled = (compile_kernel if linked else ptx_alone)(self.shape, self.decoded.arch)

    def on(self, blocks: int | None = None) -> SimBackend:
        """A backend that has executed nothing yet."""
        options = RunOptions(sim_blocks=blocks)
        return SimBackend(self.card, options, models=self.modelled, decoded=self.decoded)

    def run(self, blocks: int | None = 6) -> Findings:
        return self.on(blocks).run(self.shape, self.compiled)

    def count(self, blocks: int | None = 6) -> ExecutedCase:
        return self.on(blocks).count(self.shape, self.compiled)


def test_every_block_is_counted_as_a_whole_run_counts():
    case = Case(RAGGED, linked=True)
    whole, found = case.run(blocks=0), case.count()
    assert whole.outcome == "ok"
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


def test_a_large_grid_is_counted_as_it_is_and_verified_smaller():
    alone = Case(LONG, linked=True).run()
    assert alone.outcome == "ok"
    assert alone.verification.checked_elements == 512 * 512
    (remark,) = alone.remarks
    assert "verified at 512x512x64, as blocks depend on each other" in remark
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
    assert found.reason.startswith("At size 256x256x64: ")


#: Rows of A and of B are packed by all blocks before the copy engine takes them.
PACKED = Gemm(34, 133, 41)


def test_what_all_blocks_pack_is_counted_though_the_copy_engine_moves_no_values():
    # Where all blocks wait for each other, few do as well.
    case = Case(PACKED, name="packed", card=replace(CARD, sm_count=4))
    whole, found = case.run(blocks=0), case.count()
    assert whole.outcome == "ok"
    differ = {name for name, counter in found.counters.items() if counter != whole.counters[name]}
    assert differ <= {"l1_passes"}  # how often blocks look whether the others have come, is nobody's to say


SOURCE = kernel_file("one_block")


@pytest.mark.parametrize(("blocks", "executed"), [(2**31 - 1, 6), (2**28 // 256 + 1, 6), (1000, 1000)])
def test_grid_far_larger_than_its_problem_is_sampled(tmp_path, blocks, executed):
    (tmp_path / "one_block.cu").write_text(SOURCE.replace("BLOCKS", str(blocks)))
    arguments = ["transpose", "-k", str(tmp_path / "one_block.cu"), "--sizes", "64", "--device", "sim:h200"]
    result = CliRunner().invoke(app, [*arguments, "--quiet", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (case,) = read_run(tmp_path / "results.json").cases
    assert case.outcome == "ok", case.reason
    stores = case.counters["global_store_requests"]
    assert (stores.sampled_blocks, stores.total_blocks) == (executed, blocks)
    assert stores.value == 64 * 64 // 32
    assert case.verification.checked_elements == 64 * 64


@pytest.mark.parametrize(("name", "dtype"), [("tf32x3_mma", "f32"), ("wgmma_tma", "bf16")])
def test_a_sample_whose_sums_are_dear_is_counted_alike_without_them(name, dtype, monkeypatch):
    case = Case(Gemm(512, 640, 72, dtype=dtype), name=name, linked=True)
    found = []
    for most_s in (1e9, 0.0):
        monkeypatch.setattr(sampled, "_SUMS_S", most_s)
        found.append(case.run(3))
    with_values, without = found
    assert with_values.outcome == without.outcome == "ok"
    assert [one for one in without.remarks if one.startswith("Counted at this size, verified at ")]
    kept = ("remarks", "verification")
    assert replace(without, **{part: getattr(with_values, part) for part in kept}) == with_values
    # What a card verifies needs no values, however few sums there are.
    monkeypatch.setattr(sampled, "_SUMS_S", 1e9)
    monkeypatch.setattr(backend.SimBackend, "_execute", None)
    assert case.count(3).counters == with_values.counters


def test_a_dear_grid_that_no_sample_stands_for_is_counted_whole_without_values(monkeypatch):
    case = Case(Gemm(256, 512, 64, dtype="bf16"), name="wgmma_tma")
    with_values = case.count(0)
    monkeypatch.setattr(sampled, "_SUMS_S", 0.0)
    monkeypatch.setattr(backend, "stands_for_grid", lambda *_: False)
    monkeypatch.setattr(backend.SimBackend, "_execute", None)
    found = case.count(2)
    assert found.caveat is None
    assert found.counters == with_values.counters


def test_a_dear_grid_whose_sample_is_an_estimate_is_counted_whole_without_values(monkeypatch):
    # SMs have two tiles, or one.
    case = Case(Gemm(640, 512, 64, dtype="bf16"), name="wgmma_persistent", card=replace(CARD, sm_count=7))
    with_values = case.count(None)
    assert with_values.result.sampled_blocks == 7
    monkeypatch.setattr(backend, "of_two_kinds", lambda *_: None)
    monkeypatch.setattr(sampled, "_FEW_BLOCKS_FMAS", 0)
    assert case.count(6).caveat
    monkeypatch.setattr(sampled, "_SUMS_S", 6.5 / 7 * case.problem.flops * sampled._SUM_S)
    executed = []
    execute = backend.SimBackend._execute
    monkeypatch.setattr(
        backend.SimBackend, "_execute", lambda *given: executed.append(given[3]) or execute(*given)
    )
    found = case.count(None)
    ((sample,),) = executed
    assert sample.count == 6
    assert found.caveat is None
    assert found.counters == with_values.counters


@pytest.mark.parametrize(("name", "blocks"), [("wgmma_persistent", 6), ("wgmma_store_64_below", 24)])
def test_a_sample_stands_for_a_persistent_grid_that_was_verified_elsewhere(name, blocks, monkeypatch):
    case = Case(Gemm(1024, 2048, 64, dtype="bf16"), name=name, card=replace(CARD, sm_count=40))
    whole = case.on()._count_slices(case.shape, case.compiled, [None])
    monkeypatch.setattr(sampled, "_SUMS_S", 0.0)
    monkeypatch.setattr(sampled, "_FEW_BLOCKS_FMAS", 0)
    found = case.count(None)
    assert (found.result.sampled_blocks, found.caveat) == (blocks, None)
    for name, counter in whole.counters.items():
        assert found.counters[name] == replace(counter, sampled_blocks=blocks)
    assert found.lines == whole.lines
    assert found.result.busiest == whole.result.busiest
    # One that was not must show that no tile is left out.
    assert case.run(None).counters == whole.counters


@pytest.mark.parametrize(
    ("operations", "sums", "dear"),
    [
        (1e12, [set()], False),
        (1e9, [{"bf16"}], False),
        (1e9, [set(), {"bf16", "tf32"}], True),
        (2e9, [{"bf16"}], True),
        (1e8, [{"f64"}], False),
    ],
)
def test_sums_are_dear_by_what_they_take_whatever_the_kernel(operations, sums, dear):
    assert sampled.are_dear(operations, sums) == dear
