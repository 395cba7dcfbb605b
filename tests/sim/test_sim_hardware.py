# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor against Nsight Compute's counts on an H200: copies too. tests/sim/hardware has the records."""

import json
from pathlib import Path

import pytest
from problem_support import find_kernel, measured, problem_for

from gpuprof.kernels.shipped import shipped_names

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


@pytest.mark.parametrize(("op", "row"), [*cases()])
def test_every_kernel_counts_as_the_hardware_does(op, row):
    kernel = find_kernel(op, row["kernel"])
    problem = problem_for(kernel, *row["size"], dtype=row.get("dtype", "f32"))
    measurement = measured(kernel, problem, (*row["block"], 1))
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
def test_copies_cost_what_the_hardware_counts(what):
    name, sizes, *expected = COPIES[what]
    kernel = find_kernel("gemm", name)
    measurement = measured(kernel, problem_for(kernel, *sizes), blocks=0)
    assert measurement.outcome == "ok", measurement.reason
    names = ("requests", "sectors", "shared_wavefronts")
    got = [measurement.counters[f"async_copy_{name}"].value for name in names]
    assert [value for value, known in zip(got, expected, strict=True) if known is not None] == [
        known for known in expected if known is not None
    ]
