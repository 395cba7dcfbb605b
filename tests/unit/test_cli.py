# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: sentences, exit statuses and files; never a traceback."""

import json
import os
import re
from pathlib import Path

import pytest
from each import each
from loaded_packages import loaded
from problem_support import ladder
from unit_support import build_request, gpuprof, write_transpose_kernel

from gpuprof.commands.output import RunOutputs
from gpuprof.commands.profile import exit_code, failing_case
from gpuprof.errors import ExitCode
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shipped import shipped_names
from gpuprof.measure.request import plan_cases
from gpuprof.options import OutputOptions
from gpuprof.reading import read_run
from gpuprof.records import replace

#: A few kernels in the order in which they run, and what a row says of one that only compiled.
FEW = "naive,smem_panel,smem_tiled,reg_2x1"
PLANNED = [
    case.name for case in plan_cases(build_request(shipped_ladder("gemm"), [FEW], False, "128", None, "f32"))
]
COMPILED = "Compiled, not run: only compilation was asked for."
LADDERS = ", ".join(shipped_names())
SAMPLES = Path(__file__).parents[2] / "samples"
NONE = ("--device", "none")
HEAVY = {"numpy", "cuda", "plotly", "jinja2"}


def said(process):
    """What the command complained of, as one text; a traceback is never part of it."""
    assert "Traceback" not in process.stderr, process.stderr
    assert "Error in" not in process.stderr
    return process.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A few GEMM kernels, compiled for a card that is not there."""
    directory = tmp_path_factory.mktemp("compiled")
    arguments = ["gemm", "-k", FEW, "--device", "none", "--arch", "sm_86", "--sizes", "128", "-o", "out"]
    return directory, gpuprof(*arguments, cwd=directory)


# What is loaded.


def test_what_measures_nothing_loads_nothing_heavy(tmp_path):
    sample = str(SAMPLES / "transpose-h200.json")
    helped = ("gemm", "run", "report", "compare", "import", "list", "devices", "--help")
    light = {  # what each may not load, which the next ones may
        **{(command, "--help"): HEAVY for command in helped},
        **dict.fromkeys((("--version",), ("doctor", "-h")), HEAVY),
        ("list",): {"cuda", "plotly", "jinja2"},
        ("transpose", "--sizes", "64", *NONE, "-o", "none"): {"numpy", "cuda"},
        ("report", sample, "--markdown"): {"cuda"},
        ("report", sample, "-o", "again.html"): {"cuda"},
    }
    there = loaded(*light, cwd=tmp_path)
    for command, unwanted, found in zip(light, light.values(), there, strict=True):
        assert not found & unwanted, command


@pytest.mark.deep
@pytest.mark.parametrize("command", [["list"], ["devices"], ["report", "results.json", "-o", "out.html"]])
def test_works_where_cuda_bindings_are_not_installed(compiled, tmp_path, command):
    directory, _ = compiled
    (tmp_path / "results.json").write_bytes((directory / "out" / "results.json").read_bytes())
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "cuda.py").write_text(
        "raise ModuleNotFoundError('No module named cuda', name='cuda')\n"
    )
    process = gpuprof(*command, cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path / "path")}, status=0)
    assert said(process) == ""


# Help, lists and versions.


def test_terminal_without_the_characters_is_no_error(tmp_path):
    process = gpuprof("gemm", "--help", cwd=tmp_path, environment={"PYTHONIOENCODING": "latin-1"})
    assert process.returncode == ExitCode.OK
    assert "--kernel ID[:P=V][,\\u2026]" in process.stdout


# Mistakes.


@each(
    mistake=[
        (["transpose", "-k", "copyrwo"], "Did you mean copyrow, copy_row or copycol?"),
        (["gemm", "-k", "qqqqqqq"], "See `gpuprof list gemm`."),
        (["gemm", "--sizes", "12x"], "--sizes '12x' is not a size.\n  Write 4096 or MxNxK, as numbers."),
        (["gemm", "--dtype", "f8"], "Choose one of f32, f64, f16, bf16, tf32, e4m3."),
        (["gemm", "--alpha", "nan"], "alpha = nan is not a finite number."),
        (["gemm", "--all", "-k", "naive"], "--all and --kernel exclude each other."),
        (["list", "fft"], f"There is no operation 'fft'.\n  Choose one of {LADDERS}."),
        (["report", "nothing.json"], "Name a results.json that gpuprof wrote."),
        (["gemm", "-k", "nothing.cu"], "the kernel file nothing.cu: No such file or directory."),
        (["gemm", "--sizes", "1000000", *NONE], "Size 1000000 needs 11,175.9 GiB of memory"),
        (["gemm", "--sizes", "64,1000000", "--device", "none:rtx3090"], "there are 23.6 GiB."),
        (["gemm", "--device", "bogus"], "--device bogus is not a device."),
        (["gemm", "--device", "cuda:1"], "Did you mean 1?"),
        (["gemm", "--device", "cuda"], "Did you mean 0?"),
        (["gemm", "--device", "GPU 2"], "Did you mean 2?"),
        (["transpose", "--sizes", "128", "4096", *NONE], "Write --sizes 128,4096."),
        (["transpose", "--sizes", "128,", "64x32", "-q", *NONE], "Write --sizes 128,64x32."),
        (["run", "mine.cu", "--sizes", "128", "4096", *NONE], "Write --sizes 128,4096."),
        (["transpose", "--block", "8x8", "16x16", *NONE], "Write --block 8x8,16x16."),
        (["transpose", "--sizes", "128", *NONE, "--sizes=256"], "Write one list: --sizes 128,256."),
        (["transpose", "--dtype", "f32", *NONE, "--dtype=f64"], "A run has one type: run it for each."),
        (["transpose", "--ncu", "--ncu-path", "/no/ncu", *NONE], "/no/ncu is not a program"),
        (["transpose", "-o", "-", *NONE], "- stands for standard output"),
        (["transpose", "--json", "-", "--html", "-", *NONE], "cannot both go to standard output"),
        (["transpose", *NONE, "--json", "/"], "/ is a directory."),
        (["transpose", *NONE, "--json", "same", "--html", "./same"], "same is named twice."),
        (["gemm", "--device", "none:gtx9999"], "gpuprof's table has no card 'gtx9999'."),
        (["gemm", *NONE, "--arch", "banana"], "'banana' is not a GPU architecture."),
        (["gemm", "--device", "0", "--arch", "sm_90"], "--arch does not go with a real GPU"),
        (["gemm", *NONE, "--sizes", "9" * 5000], "--sizes"),
        (["gemm", "--device", "9" * 5000], "is not a device."),
        (["gemm", "-k", "naive", *NONE, "--block", ""], "--block is empty."),
        (["gemm", *NONE, "--sizes="], "--sizes is empty."),
        (["gemm", "-k", "naive", *NONE, "-o", ""], "-o is empty."),
        (["report", ""], "An argument is empty."),
    ]
)
def test_mistake_gets_its_sentence_and_leaves_nothing_behind(refused, tmp_path, mistake):
    arguments, words = mistake
    complaint = refused(*arguments)
    assert complaint.startswith("gpuprof: ")
    assert words in complaint
    assert list(tmp_path.iterdir()) == []


@each(
    mistake=[
        (["gemm", "--bogus"], "gpuprof: No such option: --bogus."),
        (["gemm", "--sizess", "64"], "gpuprof: No such option: --sizess.\n  Did you mean --sizes"),
        (["report", "--html", "-"], "gpuprof: No such option: --html.\n  `"),
        (["nothing"], "gpuprof: No such command 'nothing'.\n  The commands: attention, gemm, "),
        (["new", "a.cu"], "Missing argument 'FILE.cu': the kernel file to write"),
        (["my kernel.cu"], "No such command 'my kernel.cu'.\n  Did you mean `gpuprof run 'my kernel.cu'`?"),
        (["."], "Did you mean `gpuprof run .`?"),
        (["gemm", "naive", "mine.cu"], "-k: -k naive,mine.cu\n"),
        (["gemm", "--seed", "x"], "--seed"),
        (["gemm", "--seed", "-1"], "--seed"),
        *((["gemm", *NONE, "--timeout", text], "--timeout") for text in ("0", "nan", "inf", "1e10", "1e12")),
        (["gemm", "--seconds", "inf", *NONE], "--seconds"),
        (["gemm", "--seconds", "ten", *NONE], "'ten' is no number"),
        (["doctor", "--device", "first"], "'first' is no whole number"),
        (["gemm", "--flush", "warm", *NONE], "--flush is 'warm'."),
        (["gemm", "--alpha", "x"], "--alpha"),
        (["gemm", "--kernel"], "--kernel"),
        (["report"], "RESULTS.json"),
        (["list", "gemm", "transpose"], "unexpected extra argument"),
    ]
)
def test_option_that_cannot_be_is_named(refused, mistake):
    arguments, words = mistake
    complaint = refused(*arguments)
    assert words in complaint
    assert not re.search("Input should|valid (int|float)", complaint)  # the words of libraries


def test_no_command_shows_the_help(tmp_path):
    process = gpuprof(cwd=tmp_path)
    assert "Usage:" in process.stdout + process.stderr
    assert process.returncode == ExitCode.BAD_INPUT


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")
def test_gpu_that_is_not_there_is_an_environment_error(tmp_path):
    process = gpuprof("gemm", "--device", "7", cwd=tmp_path)
    assert said(process).startswith("gpuprof: ")
    assert process.returncode == ExitCode.ENVIRONMENT


# Paths.

TINY = ("transpose", "-k", "naive_row", "--sizes", "64", *NONE, "--quiet")


def test_earlier_results_are_replaced_by_force_only(tmp_path):
    for name in ("results.json", "report.html"):
        (tmp_path / name).write_text("precious")
        process = gpuprof(*TINY, "-o", ".", cwd=tmp_path)
        assert f"{name} exists already." in said(process)
        assert process.returncode == ExitCode.BAD_INPUT
        assert process.stdout == ""
        assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]
        (tmp_path / name).unlink()
    (tmp_path / "results.json").write_text("precious")
    assert gpuprof(*TINY, "-o", ".", "--force", cwd=tmp_path).returncode == ExitCode.OK
    assert read_run(tmp_path / "results.json").complete


def test_without_a_path_a_quiet_run_gets_a_directory_of_its_own_and_names_its_files_only(tmp_path):
    process = gpuprof(*TINY, cwd=tmp_path)
    (directory,) = {path.resolve() for path in (tmp_path / "gpuprof-results").iterdir()}
    assert directory.name.startswith("transpose-")
    assert sorted(path.name for path in directory.iterdir()) == ["report.html", "results.json"]
    where = directory.relative_to(tmp_path)
    assert process.stdout == f"Wrote {where / 'results.json'}\nWrote {where / 'report.html'}\n"
    assert len(process.stderr.splitlines()) == 1
    assert process.stderr.startswith("Nothing ran: ")


@pytest.mark.parametrize(
    ("directory", "json_path", "html_path", "expected"),
    [
        ("d", None, None, ("d/results.json", "d/report.html")),
        (None, "x/a.json", None, ("x/a.json", "x/a.html")),
        (None, None, "x/b.html", ("x/b.json", "x/b.html")),
        (None, "x/a.json", "y/b.html", ("x/a.json", "y/b.html")),
        ("d", "x/a.json", None, ("x/a.json", "d/a.html")),
    ],
)
def test_lone_path_puts_the_other_file_beside_it(tmp_path, directory, json_path, html_path, expected):
    paths = [None if name is None else tmp_path / name for name in (directory, json_path, html_path)]
    found = RunOutputs.of_run(OutputOptions(paths[0], json=paths[1], html=paths[2]), "gemm")
    assert (found.json, found.html) == tuple(tmp_path / name for name in expected)


def test_a_run_that_goes_on_may_have_its_page_elsewhere(tmp_path):
    found = RunOutputs.of_run(OutputOptions(resume=tmp_path, html=Path("x.html")), "gemm")
    assert (found.json, found.html) == (tmp_path / "results.json", Path("x.html"))


# Reports.


@pytest.mark.parametrize(
    ("results", "arguments"), [("r.json", ["-o", "r.json"]), ("r.html", []), ("r.json", ["-o", "./r.json"])]
)
def test_report_never_replaces_its_own_results(compiled, tmp_path, results, arguments):
    text = (compiled[0] / "out" / "results.json").read_bytes()
    (tmp_path / results).write_bytes(text)
    process = gpuprof("report", results, "--quiet", *arguments, cwd=tmp_path)
    assert (tmp_path / results).read_bytes() == text
    assert process.returncode == ExitCode.BAD_INPUT
    assert said(process).startswith("gpuprof: ")


def test_report_replaces_an_earlier_report_but_other_files_by_force_only(compiled, tmp_path):
    (tmp_path / "r.json").write_bytes((compiled[0] / "out" / "results.json").read_bytes())
    page = tmp_path / "r.html"
    page.write_text("precious")
    for arguments in ([], ["-o", "r.html"]):
        process = gpuprof("report", "r.json", *arguments, cwd=tmp_path)
        assert "r.html exists already." in said(process)
        assert process.stdout == ""
        assert process.returncode == ExitCode.BAD_INPUT
        assert page.read_text() == "precious"
    for arguments in (["--force"], []):
        assert gpuprof("report", "r.json", "-q", *arguments, cwd=tmp_path).returncode == ExitCode.OK
        assert page.stat().st_size > 10_000


# Runs without a GPU.


def test_compiling_writes_both_files_and_names_them_last(compiled):
    directory, process = compiled
    assert process.returncode == ExitCode.OK, process.stderr
    said(process)
    hint, *written = process.stdout.splitlines()[-3:]
    assert (hint.partition("Report: ")[2], written) == (
        "gpuprof report out --open",
        ["Wrote out/results.json", "Wrote out/report.html"],
    )
    assert process.stderr.splitlines()[-1].startswith("Status 0: ")
    assert sorted(path.name for path in (directory / "out").iterdir()) == ["report.html", "results.json"]


def test_compiling_tells_resources_and_occupancy_of_every_kernel(compiled):
    run = read_run(compiled[0] / "out" / "results.json")
    assert [case.kernel for case in run.cases] == PLANNED
    assert run.device.arch == "sm_86"
    cases = [case for case in run.cases if case.reason == COMPILED]
    assert {case.kernel for case in cases} >= {"naive", "smem_panel", "smem_tiled", "reg_2x1"}
    for case in cases:
        assert case.resources.registers_per_thread > 0
        assert case.resources.spill_bytes == 0
        assert 0 < case.occupancy.theoretical_pct <= 100
        assert case.occupancy.achieved_pct is None
        assert any("sm_86" in option for option in case.compile_options)
    shared = {case.kernel: case.resources for case in cases}
    assert shared["smem_panel"].dynamic_shared_bytes == 32 * 1024
    assert shared["reg_2x1"].static_shared_bytes == 8 * 1024
    occupancy = {case.kernel: case.occupancy.theoretical_pct for case in cases}
    assert occupancy["naive"] == pytest.approx(66.67, abs=0.01)
    assert occupancy["reg_2x1"] == 100


def test_compiling_shows_no_figure_that_was_not_measured(compiled):
    run = read_run(compiled[0] / "out" / "results.json")
    assert run.backend == "none"
    assert run.complete
    for case in run.cases:
        assert case.outcome == "skipped"
        assert (case.verification, case.timing, case.throughput) == (None, None, None)
        assert (case.clocks, case.lines, dict(case.counters)) == (None, None, {})
        for part in ("verification", "timing", "throughput", "clocks", "counters", "lines"):
            assert getattr(case, f"{part}_reason")


def test_results_record_where_they_come_from(compiled):
    document = json.loads((compiled[0] / "out" / "results.json").read_text())
    assert document["argv"][:3] == ["gemm", "-k", FEW]
    assert document["tool"]["name"] == "gpuprof"
    assert {"nvrtc", "python", "numpy"} <= set(document["environment"])
    assert document["created_utc"].endswith("Z")
    assert [kernel["source_hash"] for kernel in document["kernels"]] == [
        kernel.source_hash for kernel in ladder("gemm") if kernel.id in PLANNED
    ]


def test_kernel_that_does_not_compile_fails_the_command_but_not_the_others(tmp_path):
    path = write_transpose_kernel(tmp_path, "broken")
    path.write_text(path.read_text().replace("out[", "out("))
    process = gpuprof(
        "transpose", "-k", "naive_row,broken.cu", "--sizes", "64", *NONE, "-o", "out", "--quiet", cwd=tmp_path
    )
    assert re.search(r"1 failed\. broken 64: .* broken\.cu\(\d+\): error: ", process.stderr)
    assert process.returncode == ExitCode.CASES_FAILED
    cases = read_run(tmp_path / "out" / "results.json").cases
    assert [(case.kernel, case.outcome) for case in cases] == [("naive_row", "skipped"), ("broken", "failed")]
    assert "broken.cu(" in cases[1].log
    assert (tmp_path / "out" / "report.html").exists()


@each(
    ends=[
        ("ok", "ok", False, ExitCode.OK),
        ("ok", "skipped", False, ExitCode.OK),
        ("ok", "failed", True, ExitCode.OK),
        ("ok", "failed", False, ExitCode.CASES_FAILED),
        ("ok", "incorrect", False, ExitCode.CASES_FAILED),
        ("ok", "timeout", False, ExitCode.CASES_FAILED),
        ("skipped", "skipped", False, ExitCode.OK),
        ("skipped", "failed", False, ExitCode.CASES_FAILED),
        # Nothing could be measured.
        ("skipped", "failed", True, ExitCode.CASES_FAILED),
    ]
)
def test_exit_status_follows_the_outcomes(compiled, ends):
    others, outcome, over_limit, code = ends
    run = read_run(compiled[0] / "out" / "results.json")
    cases = [replace(case, outcome=others) for case in run.cases]
    cases[2] = replace(cases[2], outcome=outcome, over_limit=over_limit)
    assert exit_code(replace(run, cases=tuple(cases))) == code


def test_who_is_excused_is_not_blamed(compiled):
    run = read_run(compiled[0] / "out" / "results.json")
    fine, excused, wrong = (replace(case, outcome="ok") for case in run.cases[:3])
    excused = replace(excused, outcome="failed", over_limit=True)
    wrong = replace(wrong, outcome="incorrect")
    assert failing_case(replace(run, cases=(fine, excused, wrong))) is wrong
    assert failing_case(replace(run, cases=(fine, excused))) is None


def test_kernel_that_compiled_is_done_where_nothing_is_executed(compiled):
    run = read_run(compiled[0] / "out" / "results.json")
    skipped = replace(run.cases[0], resources=None)
    for last, code in ((run.cases[0], ExitCode.OK), (skipped, ExitCode.CASES_FAILED)):
        assert exit_code(replace(run, cases=(skipped, last))) == code


def test_import_never_replaces_a_foreign_file_unasked(tmp_path, compiled):
    directory, _ = compiled
    (tmp_path / "made.ncu-rep").write_bytes(b"not a report")
    (tmp_path / "mine.json").write_text("mine")
    results = directory / "out" / "results.json"
    process = gpuprof("import", "made.ncu-rep", str(results), "-o", "mine.json", cwd=tmp_path)
    assert process.returncode == ExitCode.BAD_INPUT
    assert "mine.json exists already" in process.stderr
    assert (tmp_path / "mine.json").read_text() == "mine"
