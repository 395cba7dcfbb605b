# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune` without a GPU: answers, files, going on, findings, what is written, and every refusal."""

import json
from pathlib import Path

import pytest
from cuda_sources import write_kernel_file
from unit_support import gpuprof

import gpuprof as api
from gpuprof.commands.new import write_starting_point
from gpuprof.kernels.catalog import load_kernels
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

SIM = ("--device", "sim:h200")


def tune(*arguments: str | Path, folder: Path, code: int = 0):
    done = gpuprof("tune", *map(str, arguments), cwd=folder, status=code)
    return done


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """One whole search, and what it printed."""
    folder = tmp_path_factory.mktemp("searched")
    write_kernel_file(folder, "scale", ", [2048, 1]")
    return folder, tune("scale.cu", *SIM, "--sizes", "4096,512", "--budget", "20", folder=folder)


def test_the_answer_names_the_best_and_says_that_nothing_was_timed(searched):
    _, done = searched
    out = " ".join(done.stdout.split())
    assert "Not timed; ranked by modelled times" in out
    assert "4096: best is EACH=" in out
    assert "512: best is" in out
    # 3 values by 2 blocks, of which one has 512 elements a block.
    assert "6 combinations: 5 can run, 5 executed." in out
    assert "1 ruled out without a launch because scale gives a block at most 256 elements." in out
    assert done.stdout.rstrip().endswith("report.html")
    assert "keeps SKIP at 0: no candidates are declared" in done.stderr


def test_files_stand_in_a_folder_named_after_the_kernel(searched):
    folder, _ = searched
    run = read_run(folder / "gpuprof-results" / "tune-scale" / "results.json")
    assert run.tuning is not None
    assert [tuned.problem.label for tuned in run.tuning.sizes] == ["4096", "512"]
    for tuned in run.tuning.sizes:
        assert tuned.by == "model"
        assert tuned.ties
        assert len(tuned.ranked) == 5
    assert {case.outcome for case in run.cases} == {"ok"}
    assert "Points at 512" in (folder / "gpuprof-results" / "tune-scale" / "report.html").read_text()
    assert (folder / "gpuprof-results" / "latest" / "results.json").exists()


def test_the_same_command_goes_on_and_measures_nothing_twice(searched):
    folder, first = searched
    again = tune("scale.cu", *SIM, "--sizes", "4096,512", "--budget", "20", folder=folder)
    assert "10 points are known" in again.stderr
    assert again.stdout == first.stdout


def test_a_budget_that_ends_before_anything_is_compiled_is_told(tmp_path):
    write_kernel_file(tmp_path, "scale", ", [2048, 1]")
    done = tune("scale.cu", *SIM, "--budget", "0.001s", folder=tmp_path, code=1)
    assert "nothing was compiled in time, and nothing executed: give --budget more seconds." in done.stdout


def test_another_search_gets_a_folder_of_its_own(searched):
    folder, _ = searched
    done = tune("scale.cu", *SIM, "--sizes", "512", "--seed", "3", "--budget", "1", folder=folder)
    assert "tune-scale-2" in done.stdout


def test_a_named_folder_with_another_search_is_refused(searched):
    folder, _ = searched
    named = folder / "gpuprof-results" / "tune-scale"
    done = tune("scale.cu", *SIM, "--seed", "4", "-o", named, folder=folder, code=2)
    assert "exists already, and it holds another search: --seed was 0, now it is 4" in done.stderr
    assert "--force" in done.stderr


def test_report_renders_a_search_again(searched):
    folder, _ = searched
    done = gpuprof("report", "gpuprof-results/tune-scale/results.json", "--markdown", cwd=folder, status=0)
    assert "4096: best is EACH=" in done.stdout
    assert "| ★" in done.stdout


def test_a_wrong_point_is_a_finding(scale):
    folder = scale.parent
    done = tune("scale.cu", "-k", "scale:EACH=1|3", *SIM, "--sizes", "1024", folder=folder)
    out = " ".join(done.stdout.split())
    assert "EACH=3" in out
    assert "incorrect" in out
    assert "best is EACH=1" in out
    run = read_run(folder / "gpuprof-results" / "tune-scale" / "results.json")
    assert sorted(case.outcome for case in run.cases if case.params["EACH"] == 3) == ["incorrect"]


def test_write_puts_the_best_into_the_header(scale):
    before = scale.read_text(encoding="utf-8")
    done = tune("scale.cu", *SIM, "--sizes", "4096", "--budget", "2", "--write", folder=scale.parent)
    run = read_run(scale.parent / "gpuprof-results" / "tune-scale" / "results.json")
    assert run.tuning is not None
    tied = [(dict(point.params), point.block) for point in run.tuning.sizes[0].ties]
    (kernel,) = load_kernels(scale).kernels
    assert (dict(kernel.parameters), kernel.block) in tied
    if scale.read_text(encoding="utf-8") != before:
        assert "+EACH" in done.stdout or "+block" in done.stdout
        assert f"Wrote {scale.name}" in done.stdout


def test_python_searches_too(scale, tmp_path):
    found = api.tune(scale, sizes=2048, device="sim:h200", budget=2, save=tmp_path / "kept.json")
    assert not found.by_time
    best = found.best()
    assert best.kernel == "scale"
    assert "median_us" not in best.figures
    cases = found.run.record.cases
    assert best.model.median_us == min(case.model.median_us for case in cases) > best.bound_us > 0
    assert found.best(2048) == found.ties("2048")[0]
    assert "6 combinations: 5 can run, 2 executed" in str(found)
    more = api.tune(scale, sizes=2048, device="sim:h200", budget=3, save=tmp_path / "kept.json")
    assert len(more.run) == 3
    with pytest.raises(api.InputError, match="was not searched"):
        found.best(7)


@pytest.mark.parametrize(
    ("arguments", "message", "fix"),
    [
        (("scale.cu", "--values", "EAHC=1|2"), "scale has no parameter 'EAHC'", "Did you mean EACH?"),
        (("scale.cu", "--values", "EACH"), "--values 'EACH' names no values", "Write NAME=8|16|32"),
        (("scale.cu", "--budget", "many"), "--budget 'many' is not a budget", "Write points, seconds or"),
        (("scale.cu", "--budget", "0"), "budget of 0 points", "Give 1 to"),
        (("scal.cu",), "Cannot read the kernel file scal.cu", "Did you mean scale.cu?"),
        (("reg_8x9",), "There is no kernel 'reg_8x9' to tune", "Did you mean reg_8x8"),
        (("scale",), "There is no kernel 'scale' to tune", "Did you mean scale.cu?"),
        (("col_smem_1d",), "declares no candidates for TILE", "[candidates]\nTILE = [32, 64]"),
        (("by_size",), "by_size is a kernel of attention and of gemm and", "tune attention -k by_size"),
        (("gemm", "-k", "by_size"), "by_size chooses among other kernels", "Tune those that it names."),
        (("naive", "smem_padded"), "The kernels compute different operations", "Tune one operation"),
        (("smem_unrolled", "--block", "8x8"), "The block of smem_unrolled is fixed", "any_block = true"),
        (("reg_8x8", "--values", "BK=8|16", "--write"), "comes with gpuprof", "Copy its file"),
        (("scale.cu", "--device", "none"), "only compiles, and a search needs times", "Use --device sim"),
        (("scale.cu", "--device", "sim:h200,0"), "mixes GPUs with devices that measure no time", "two runs"),
        (("scale.cu", "--device", "sim:h201"), "h201", "h200"),
        (("large.cu",), "large.cu:16", "a block holds at most 1024 threads"),
        (
            ("mine.cu",),
            "mine declares no candidates for its block",
            "[candidates]\nblock = [[16, 16], [32, 8]]",
        ),
    ],
)
def test_refusals_say_what_to_do(refused, scale, arguments, message, fix):
    write_kernel_file(scale.parent, "scale", to="large")
    write_starting_point("transpose", scale.parent / "mine.cu", force=False)
    said = refused("tune", *SIM, *arguments)
    assert message in said
    assert fix in said


def test_each_of_several_devices_has_its_own_answer(scale):
    cards = "sim:h200,sim:rtx4090"
    arguments = ("scale.cu", "--sizes", "512", "--device", cards, "--budget", "2")
    done = tune(*arguments, folder=scale.parent)
    assert "512 on NVIDIA H200: best is" in done.stdout
    assert "512 on NVIDIA GeForce RTX 4090: best is" in done.stdout
    assert "0: NVIDIA H200, 1: NVIDIA GeForce RTX 4090" in done.stderr
    results = scale.parent / "gpuprof-results" / "tune-scale" / "results.json"
    run = read_run(results)
    assert [tuned.device for tuned in run.tuning.sizes] == [0, 1]
    assert [case.device for case in run.cases] == [0, 0, 1, 1]
    page = results.with_name("report.html").read_text()
    assert "Points at 512 on NVIDIA GeForce RTX 4090" in page
    alone = tune(*arguments[:3], *SIM, "-o", results.parent, folder=scale.parent, code=2)
    assert "it ran on 2 devices, now there are 1" in alone.stderr


def test_python_names_the_device_where_there_are_several(scale):
    found = api.tune(scale, sizes=512, device=["sim:h200", "sim:h100"], budget=2)
    assert found.sizes == ("512",)
    with pytest.raises(api.InputError, match="Several devices were searched"):
        found.best(512)
    with pytest.raises(api.InputError, match="NVIDIA A100 was not searched"):
        found.best(512, "NVIDIA A100")
    for device in found.run.devices:
        assert found.best(512, device).kernel == "scale"


def test_narrow_terminals_and_quiet(searched):
    folder, _ = searched
    results = "gpuprof-results/tune-scale/results.json"
    done = gpuprof("report", results, "-o", "narrow.html", cwd=folder, environment={"COLUMNS": "44"})
    assert all(len(line) <= 44 for line in done.stdout.splitlines() if "Wrote" not in line)
    quiet = tune("scale.cu", *SIM, "--sizes", "4096,512", "-q", folder=folder)
    assert quiet.stdout.splitlines() == [
        "Wrote gpuprof-results/tune-scale/results.json",
        "Wrote gpuprof-results/tune-scale/report.html",
    ]


def test_the_results_file_says_what_was_searched(searched):
    folder, _ = searched
    document = json.loads((folder / "gpuprof-results" / "tune-scale" / "results.json").read_text())
    assert document["tuning"]["values"] == {"scale": {"EACH": [1, 2, 4]}}
    assert document["tuning"]["blocks"] == {"scale": [[64, 1, 1], [128, 1, 1]]}
    assert list(document)[-2:] == ["tuning", "cases"]


def test_a_search_that_names_no_device_of_its_file_is_refused(searched, tmp_path):
    folder, _ = searched
    document = json.loads((folder / "gpuprof-results" / "tune-scale" / "results.json").read_text())
    document["tuning"]["sizes"][0]["device"] = 1
    (tmp_path / "r.json").write_text(json.dumps(document), encoding="utf-8")
    done = gpuprof("report", "r.json", cwd=tmp_path, status=2)
    assert "tuning.sizes[0].device" in done.stderr
    assert "there is no device 1" in done.stderr
