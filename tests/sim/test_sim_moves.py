# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the shipped kernels' headers say that their steps move, held against the executor's counts."""

from functools import cache

import pytest
from plain_runs import plain_run
from problem_support import executor, find_kernel, problem_for, shipped_kernels

from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.backends.base import Findings
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.problems.sizes import parse_sizes

pytestmark = pytest.mark.deep

MOVERS = [kernel for kernel in shipped_kernels() if kernel.moves]
#: The smallest sizes at which all steps of a ladder show: several of the largest tiles, and more elements to
#: sum than a GPU has threads.
LADDER_SIZES = {
    **{"gemm": "256x256x64", "reduce": "600001", "softmax": "16x1024", "transpose": "256"},
    "attention": "1x1x300x64",
}
#: Sizes of whole tiles, for kernels whose tiles 256 does not fill.
SIZES = {
    **dict.fromkeys(("streamk", "streamk_fit"), "384x512x64"),
    "registers": "16x8192",
    "few_rows": "4x256x512",
    "short_k": "4x256x32",
    "splitk_fit": "88x256x128",
    "splitk_tall": "512x2048x96",
    "realigned": "129x257x65",
    "packed": "129x257x65",
    "wgmma_persistent": "2560x1792x8",
    **dict.fromkeys(("wgmma_streamk", "wgmma_packed"), "256x256x512"),
}


#: What only the counts of machine code tell.
LINKED = ("pipe_", "warp_instructions")


def counts_only(self, case, compiled):
    """Instead of `run`: other tests see that a kernel is right."""
    executed = self.count(case, compiled)
    return Findings("ok", counters=executed.counters, lines=executed.lines)


@cache
def executed(operation, name, size, dtype, linked):
    """The counts of a kernel, as an H200: two blocks of a product stand for the others, unless these wait
    for each other; elsewhere a grid has few.
    """
    kernel = find_kernel(operation, name)
    (extents,) = parse_sizes(size, shipped_operation(operation).dimensions)
    case = Case.of(kernel, problem_for(kernel, *extents, dtype=dtype))
    for blocks in (2, None) if operation == "gemm" else (None,):
        counted = measure_case(case, *executor(blocks=blocks, linked=linked))[0]
        if counted.outcome == "ok":
            break
    return counted


def rung_of(kernel):
    """The rung of a kernel above the one that its step starts from."""
    pair = (find_kernel(kernel.operation, kernel.after), kernel)
    size = SIZES.get(kernel.id) or LADDER_SIZES[kernel.operation]
    linked = any(name.startswith(LINKED) for name in kernel.moves)
    cases = [executed(one.operation, one.id, size, kernel.dtypes[0], linked) for one in pair]
    run = plain_run([one.record() for one in pair], cases, backend="sim")
    (group,) = groups(run)
    return build_ladder(run, group.sizes[0]).rung(kernel.id)


@pytest.mark.parametrize("kernel", MOVERS, ids=lambda kernel: f"{kernel.operation}-{kernel.id}")
def test_figures_move_as_the_header_says(kernel, monkeypatch):
    monkeypatch.setattr(SimBackend, "run", counts_only)
    rung = rung_of(kernel)
    if rung.case.outcome == "skipped":
        pytest.skip(f"{kernel.id}: {rung.case.reason}")
    assert rung.previous == kernel.after
    assert rung.case.resources.spill_bytes == 0
    # The executor has no value for what only the caches and the memory behind them know.
    found = {
        name: claim.moved
        for name, claim in zip(kernel.moves, rung.claims, strict=True)
        if claim.step is not None
    }
    assert found
    assert found == {name: kernel.moves[name] for name in found}
    assert all(name.startswith(("dram_", "l2_")) for name in kernel.moves.keys() - found.keys())
