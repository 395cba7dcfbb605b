# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor's counts: against Nsight Compute's on an H200, and as headers say that steps move them."""

import json
from functools import cache
from math import prod
from pathlib import Path

import pytest
from plain_runs import plain_run
from problem_support import executor, find_kernel, measured, problem_for, shipped_kernels

from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.backends.base import Findings
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.problems.sizes import parse_sizes

pytestmark = pytest.mark.deep

COUNTED = json.loads((Path(__file__).parent / "hardware" / "counters.json").read_text())
#: Loads and stores of neighbouring instructions contend for the shared-memory pipe. Nsight Compute counts the
#: wavefronts lost so as bank conflicts; what is left without them is what a kernel's addresses decide.
ARBITRATION = ("shared_load", "shared_store")
EXACT = (
    *("global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors"),
    "ffma_thread_instructions",
)


#: Where the executor is known to count otherwise, by operation and kernel: at every size, or at one.
DIFFERS = {
    ("softmax", "online", 33, 77): "0.6 % more FMAs: some of a warp's lanes have no element in the last step"
}
#: Rows that take the executor long, by operation and kernel, since one thread does so much: the counts of a
#: longer loop, or of more rows, follow from those of the kernel's other rows.
LONG = {
    ("softmax", "three_passes"): [[5, 4100], [4, 8192]],
    **{("gemm", f"col_8x8_{name}"): [[4096, 4096, 4096]] for name in ("warp", "prefetch", "double")},
}


def cases():
    for op in (name for name in shipped_names() if name in COUNTED):
        for row in COUNTED[op]:
            if row["size"] in LONG.get((op, row["kernel"]), ()):
                continue
            name = f"{row['kernel']}-{'x'.join(map(str, row['size']))}-{'x'.join(map(str, row['block']))}"
            reason = DIFFERS.get((op, row["kernel"])) or DIFFERS.get((op, row["kernel"], *row["size"]))
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            yield pytest.param(op, row, id=f"{name}-{row.get('dtype', 'f32')}", marks=marks)


def counts_only(self, case, compiled):
    """Instead of `run`: other tests see that a kernel is right."""
    executed = self.count(case, compiled)
    return Findings("ok", counters=executed.counters, lines=executed.lines)


#: Product of the extents from which on a kernel is counted alone, in a few blocks that stand for the others:
#: it is verified at the smaller sizes.
VERIFIED, FEW_BLOCKS = 1 << 22, 6


@pytest.mark.parametrize(("op", "row"), [*cases()])
def test_every_kernel_counts_as_the_hardware_does(op, row, monkeypatch):
    kernel = find_kernel(op, row["kernel"])
    large = prod(row["size"]) >= VERIFIED
    if large:
        monkeypatch.setattr(SimBackend, "run", counts_only)
    problem = problem_for(kernel, *row["size"], dtype=row.get("dtype", "f32"))
    measurement = measured(kernel, problem, (*row["block"], 1), blocks=FEW_BLOCKS if large else None)
    assert measurement.outcome == "ok", measurement.reason
    ours = {name: counter.value for name, counter in measurement.counters.items()}
    theirs = row["counters"]
    for name in EXACT:
        assert ours[name] == theirs[name], name
    if problem.dtype == "f64":
        assert ours["dfma_thread_instructions"] == theirs["dfma_thread_instructions"]
    for name in ("global_load_efficiency_pct", "global_store_efficiency_pct"):
        # Nsight Compute shows two digits of a percentage.
        assert ours[name] == pytest.approx(theirs[name], abs=0.006), name
    for space in ARBITRATION:
        assert ours[f"{space}_wavefronts"] - ours[f"{space}_bank_conflicts"] == (
            theirs[f"{space}_wavefronts"] - theirs[f"{space}_bank_conflicts"]
        ), space
        lost = theirs[f"{space}_bank_conflicts"] - ours[f"{space}_bank_conflicts"]
        assert 0 <= lost <= 0.13 * theirs[f"{space}_wavefronts"], space
    if kernel.study.name == "A":
        assert ours["shared_load_wavefronts"] == pytest.approx(theirs["shared_load_wavefronts"], rel=5e-4)


#: Kernel, sizes: requests (None where not noted), sectors and shared wavefronts of its copies, on an H200.
COPIES = {
    "rows padded by 16 bytes": ("splitk_16x32", (128, 128, 128), 1536, 28672, 9472),
    "fewer such rows": ("splitk_8x32", (128, 128, 128), 2560, 45056, 13568),
    "more such rows": ("splitk", (128, 128, 128), 768, 14336, 4736),
    "half of the lanes' columns beyond the matrix": ("reg_8x16_async", (128, 128, 128), 256, 6144, 4608),
    "the same with a pipeline": ("reg_8x16_pipelined", (128, 128, 128), 256, 6144, 4608),
    "zeros beyond K": ("reg_8x16_pipelined", (260, 388, 132), None, 41184, 25704),
}


@pytest.mark.parametrize("what", COPIES)
def test_copies_cost_what_the_hardware_counts(what, monkeypatch):
    monkeypatch.setattr(SimBackend, "run", counts_only)
    name, sizes, *expected = COPIES[what]
    kernel = find_kernel("gemm", name)
    measurement = measured(kernel, problem_for(kernel, *sizes), blocks=0)
    assert measurement.outcome == "ok", measurement.reason
    names = ("requests", "sectors", "shared_wavefronts")
    got = [measurement.counters[f"async_copy_{name}"].value for name in names]
    assert [value for value, known in zip(got, expected, strict=True) if known is not None] == [
        known for known in expected if known is not None
    ]


MOVERS = [kernel for kernel in shipped_kernels() if kernel.moves]
#: The smallest sizes at which all steps of a ladder show: several of the largest tiles, and more elements to
#: sum than a GPU has threads.
LADDER_SIZES = {
    **{"gemm": "256x256x64", "reduce": "600001", "softmax": "16x1024", "transpose": "256"},
    "attention": "1x1x300x64",
}
#: Sizes of whole tiles, for kernels whose tiles 256 does not fill.
SIZES = {
    **dict.fromkeys(("streamk", "streamk_fit", "streamk_small"), "384x512x64"),
    **dict.fromkeys(("registers", "split_row"), "16x8192"),
    "few_rows": "4x256x512",
    "short_k": "4x256x32",
    "splitk_fit": "88x256x128",
    "splitk_tall": "512x2048x96",
    **dict.fromkeys(("realigned", "realigned_fit", "packed"), "129x257x165"),
    "wgmma_persistent": "2560x1792x8",
    "overlap_persistent": "1x135x70x64",
    **dict.fromkeys(("wgmma_streamk", "wgmma_packed"), "256x256x512"),
    **dict.fromkeys(("wgmma_split_turned", "e4m3_split_turned"), "64x1664x128"),
}


#: What only the counts of machine code tell.
LINKED = ("pipe_", "warp_instructions")


@cache
def executed(operation, name, size, dtype, linked):
    """The counts of a kernel, as an H200: two blocks of a product stand for the others, unless these wait
    for each other; elsewhere a grid has few.
    """
    kernel = find_kernel(operation, name)
    (extents,) = parse_sizes(size, shipped_operation(operation).dimensions)
    case = Case.of(kernel, problem_for(kernel, *extents, dtype=dtype))
    for blocks in (2, None) if operation == "gemm" else (None,):
        counted = measure_case(case, *executor(blocks=blocks, linked=linked, assembled=True))[0]
        if counted.outcome == "ok":
            break
    return counted


@pytest.mark.parametrize("kernel", MOVERS, ids=lambda kernel: f"{kernel.operation}-{kernel.id}")
def test_figures_move_as_the_header_says(kernel, monkeypatch):
    monkeypatch.setattr(SimBackend, "run", counts_only)
    pair = (find_kernel(kernel.operation, kernel.after), kernel)
    size = SIZES.get(kernel.id) or LADDER_SIZES[kernel.operation]
    linked = any(name.startswith(LINKED) for name in kernel.moves)
    cases = [executed(one.operation, one.id, size, kernel.dtypes[0], linked) for one in pair]
    run = plain_run([one.record() for one in pair], cases, backend="sim")
    (group,) = groups(run)
    rung = build_ladder(run, group.sizes[0]).rung(kernel.id)
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
