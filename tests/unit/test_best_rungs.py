# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the documentation and the changelog say of the declared ladders is what the samples hold."""

from pathlib import Path

import gpuprof

ROOT = Path(__file__).parent.parent.parent
TEXTS = [
    " ".join((ROOT / name).read_text(encoding="utf-8").split())
    for name in ("docs/measured-h200.md", "CHANGELOG.md")
]


def rates(operation, size):
    run = gpuprof.load(ROOT / "samples" / f"{operation}-h200.json")
    timed = {case.kernel: case.figures.get("gbps") for case in run.find(size=size) if case.ok}
    return run, timed


def test_the_best_reduction_against_what_reading_alone_takes():
    _, timed = rates("reduce", str(2**28))
    reading = timed.pop("read_all")
    best = max(timed, key=timed.get)
    share = f"{timed[best] / reading:.3f}"
    page, changelog = TEXTS
    assert f"`{best}` comes closest to the limit: {timed[best]:,.0f} GB/s at 2^28 floats, {share} of" in page
    assert f"{share} of the {reading:,.0f} GB/s at which `read_all`" in page
    assert f"reach {share} of the measured read bandwidth at 2^28 floats" in changelog
    assert float(share) >= 0.95


def test_the_best_softmax_against_the_measured_copy():
    run, timed = rates("softmax", "8192")
    del timed["copy"]
    best = max(timed.values())
    share = f"{best / run.record.device.measured_copy_bandwidth_gbps:.3f}"
    page, changelog = TEXTS
    assert f"Softmax reaches {best:,.0f} GB/s at 8192 x 8192, {share} of the measured copy" in page
    assert f"{share} of the measured copy at 8192 x 8192" in changelog
    assert float(share) >= 0.95


def test_every_example_is_told_of_and_they_are_counted():
    files = sorted((ROOT / "samples" / "own").rglob("*.cu"))
    assert len(files) == 12
    rules = (ROOT / "docs" / "your-own-kernel.md").read_text(encoding="utf-8")
    assert "twelve such files" in rules
    page = (ROOT / "docs" / "own-kernels.md").read_text(encoding="utf-8")
    for file in files:
        told = file.name if file.parent.name == "own" else file.parent.name
        assert f"samples/own/{told}" in page
