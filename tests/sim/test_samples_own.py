# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The examples of users' kernels under samples/own: each is right, and every command of their page runs."""

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.cli import app
from gpuprof.reading import read_run

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("unread")]

ROOT = Path(__file__).parent.parent.parent
OWN = ROOT / "samples" / "own"
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
#: Sizes of each sample: one that fits its tiles, where it has some, and one that fits nothing.
SIZES = {
    "axpy_f16.cu": ["10001", "1", "4096"],
    "hgemm": ["128x192x64", "64x64x32"],
    "histogram": ["100000", "1"],
    "scan": ["30001", "1", "2048"],
    "stencil.cu": ["100x257", "1", "1x70"],
    "stencil_texture.cu": ["100x257", "1", "1x70"],
}
#: Those that check no bounds.
WHOLE_TILES = ["sgemm_2d_tiles.cu", "sgemm_float4.cu", "sgemm_warp_tiles.cu"]
SAMPLES = [*SIZES, *WHOLE_TILES]
#: Whole tiles of every GEMM.
TILES = "256x128x32"


def run(folder, *arguments, device="sim:h200"):
    """What a command measures."""
    # Results alone: nobody reads a page of each.
    options = ["--device", device, "--quiet", "--no-lines", "--json", str(folder / "results.json")]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == 0, result.output
    return read_run(folder / "results.json")


def test_every_sample_is_tried():
    assert {path.name for path in OWN.iterdir()} == {*SAMPLES}


@pytest.mark.parametrize("name", SIZES)
def test_sample_is_right(name, tmp_path):
    run_of_sample = run(tmp_path, "run", str(OWN / name), "--sizes", ",".join(SIZES[name]))
    assert {case.problem.label for case in run_of_sample.cases} == set(SIZES[name])
    assert {case.outcome for case in run_of_sample.cases} == {"ok"}
    assert not [remark for case in run_of_sample.cases for remark in case.remarks if "as sm_90" in remark]
    for group in groups(run_of_sample):
        for size in group.sizes[-1:]:
            rungs = build_ladder(run_of_sample, size).rungs
            assert not [claim for rung in rungs for claim in rung.claims if claim.contradicted]


def test_own_sgemms_scale_and_add_and_say_what_they_cannot_take(tmp_path):
    kernels = ",".join(str(OWN / name) for name in WHOLE_TILES).replace("2d_tiles.cu", "2d_tiles.cu:BK=8|32")
    arguments = ["gemm", "-k", kernels, "--sizes", f"{TILES},100x100x30", "--alpha", "-1.5", "--beta", "0.5"]
    cases = run(tmp_path, *arguments).cases
    assert [case.outcome for case in cases] == ["ok"] * 4 + ["skipped"] * 4
    said = "checks no bounds: M, N and K must be multiples of its tile's."
    assert all(said in case.reason for case in cases[4:])


def test_tensor_cores_that_were_not_measured_are_remarked_on(tmp_path):
    for case in run(tmp_path, "run", str(OWN / "hgemm"), "--sizes", "64x64x32", device="sim:a100").cases:
        assert len([remark for remark in case.remarks if "as sm_90" in remark]) == 1


def commands():
    """The commands of the page, one a line."""
    lines = [
        line for block in PAGE.split("```")[1::2] if block.startswith("\n") for line in block.splitlines()
    ]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("gpuprof ")]


#: `gpuprof run SAMPLE` without more is what measures each sample above.
@pytest.mark.parametrize(
    "arguments", [one for one in commands() if len(one) > 2 + 2 * ("--sizes" in one)], ids=" ".join
)
def test_command_of_the_page_runs(arguments, tmp_path, monkeypatch):
    """With other sizes, where the page has large ones; compiled, as the samples themselves are right."""
    monkeypatch.chdir(ROOT)
    if "--sizes" in arguments:
        position = arguments.index("--sizes")
        del arguments[position : position + 2]
    gemm = any("sgemm" in argument for argument in arguments)
    cases = run(tmp_path, *arguments, "--sizes", TILES if gemm else "64", device="none:h200").cases
    assert {case.reason for case in cases} == {"Compiled, not run: only compilation was asked for."}


def test_page_shows_every_sample():
    for name in SAMPLES:
        assert f"samples/own/{name}" in PAGE, name
