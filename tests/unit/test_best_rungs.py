# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the documentation says of the declared ladders is what the samples hold."""

from pathlib import Path

import gpuprof

ROOT = Path(__file__).parent.parent.parent
PAGE = " ".join((ROOT / "docs/measured-h200.md").read_text(encoding="utf-8").split())


def sentences(about):
    """The item of the page's list that begins with these words."""
    return PAGE.partition(f"- **{about}**")[2].partition("- **")[0]


def rates(operation, size):
    run = gpuprof.load(ROOT / "samples" / f"{operation}-h200.json")
    timed = {case.kernel: case.figures.get("gbps") for case in run.find(size=size) if case.ok}
    return run, timed


def test_the_best_reduction_against_what_reading_alone_takes():
    _, timed = rates("reduce", str(2**28))
    reading = timed.pop("read_all")
    best = max(timed, key=timed.get)
    share = f"{timed[best] / reading:.3f}"
    for told in (f"`{best}`", f"{timed[best]:,.0f} GB/s", f"{reading:,.0f} GB/s", share):
        assert told in sentences("Reductions.")
    assert float(share) >= 0.95


def test_the_best_softmax_against_the_measured_copy():
    run, timed = rates("softmax", "8192")
    del timed["copy"]
    best = max(timed.values())
    share = f"{best / run.record.device.measured_copy_bandwidth_gbps:.3f}"
    for told in (f"{best:,.0f} GB/s", "8192 x 8192", f"{share} of the measured copy"):
        assert told in sentences("Softmax")
    assert float(share) >= 0.95


def test_every_example_is_told_of():
    files = sorted((ROOT / "samples" / "own").rglob("*.cu"))
    assert files
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    for file in files:
        told = file.name if file.parent.name == "own" else file.parent.name
        assert f"samples/own/{told}" in page
