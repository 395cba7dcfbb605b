# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What people expect of a command line: files, pipes, JSON, CSV, the newest run, near words, completion."""

import csv
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
import typer.main
from each import each
from processes import ran
from rich.cells import cell_len
from unit_support import gpuprof, write_transpose_kernel

from gpuprof import load
from gpuprof.analysis.figures import FIGURES
from gpuprof.cli import app
from gpuprof.devices.cards import card_names, load_card
from gpuprof.errors import ExitCode
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shipped import shipped_names
from gpuprof.reading import read_run
from gpuprof.report.comma_separated import heading, render_csv

pytestmark = pytest.mark.deep

SAMPLES = Path(__file__).parents[2] / "samples"
TINY = ("transpose", "-k", "naive_row", "--sizes", "64", "--device", "none", "--quiet")
NO_BROWSER = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}


@pytest.fixture
def measured(tmp_path):
    """A folder with a results file that came from a GPU."""
    (tmp_path / "r.json").write_bytes((SAMPLES / "transpose-h200.json").read_bytes())
    return tmp_path


# Files and standard output.


def test_the_page_goes_to_standard_output_byte_for_byte(measured):
    done = ran(
        [sys.executable, "-m", "gpuprof", "report", "r.json", "-o", "-"],
        cwd=measured,
        env={"PATH": "", "PYTHONIOENCODING": "latin-1", "PYTHONPATH": ":".join(sys.path)},
        check=True,
        text=False,
    )
    assert done.stderr == b""
    assert gpuprof("report", "r.json", "-q", "-o", "r.html", cwd=measured).returncode == ExitCode.OK
    assert done.stdout == (measured / "r.html").read_bytes()


@pytest.mark.parametrize(("option", "name"), [("--json", "results.json"), ("--html", "report.html")])
def test_a_run_prints_the_file_that_standard_output_is_named_for(tmp_path, option, name):
    done = gpuprof(*TINY[:-1], option, "-", "-o", "out", cwd=tmp_path, status=ExitCode.OK)
    assert done.stdout == (tmp_path / "out" / name).read_text(encoding="utf-8")
    assert "Wrote out/results.json\nWrote out/report.html" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("name", "environment"),
    [("grün.cu", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}), (b"gr\xfcn.cu", {})],
    ids=["another encoding of names", "bytes that are none"],
)
def test_a_name_that_is_not_in_the_systems_encoding_is_a_name(tmp_path, name, environment):
    path = write_transpose_kernel(tmp_path, "k_good").rename(tmp_path / os.fsdecode(name))
    command = ("run", os.fsencode(path.name), "--sizes", "64", "--device", "none", "-o", "out")
    done = gpuprof(*command, cwd=tmp_path, environment=environment)
    assert "Traceback" not in done.stderr
    assert done.returncode == ExitCode.OK
    assert read_run(tmp_path / "out" / "report.html").cases == read_run(tmp_path / "out").cases


@pytest.mark.parametrize(
    ("arguments", "name"), [([], "r.html"), (["--markdown"], "r.md"), (["--csv", "out"], "r.csv")]
)
def test_a_folder_gets_a_file_that_is_called_as_the_results(measured, arguments, name):
    (measured / "out").mkdir()
    where = [] if arguments[-1:] == ["out"] else ["-o", "out"]
    process = gpuprof("report", "r.json", "-q", *arguments, *where, cwd=measured)
    assert process.stdout == f"Wrote out/{name}\n"
    assert [each.name for each in (measured / "out").iterdir()] == [name]


def test_the_folder_of_a_run_stands_for_its_results(measured):
    (measured / "run").mkdir()
    (measured / "r.json").rename(measured / "run" / "results.json")
    process = gpuprof("report", "run", "-q", cwd=measured)
    assert process.stdout == "Wrote run/report.html\n"
    empty = gpuprof("report", ".", cwd=measured)
    assert ". holds no results.json.\n  Name a results file, or the folder of a run." in empty.stderr
    assert empty.returncode == ExitCode.BAD_INPUT


def test_an_empty_file_that_a_ci_system_prepared_is_filled(measured):
    (measured / "summary").touch()
    gpuprof("report", "r.json", "--markdown", "-o", "summary", cwd=measured, status=ExitCode.OK)
    assert (measured / "summary").stat().st_size > 100


@each(
    wrong=[
        (["--markdown", "--csv", "-"], "Two things cannot both go to standard output."),
        (["-o", "-", "--csv", "-"], "Two things cannot both go to standard output."),
        (["-o", "-", "--open"], "--open needs a page in a file."),
        (["--markdown", "--open"], "--open needs a page in a file."),
        (["--csv", "same.csv", "-o", "same.csv"], "same.csv is named twice."),
        (["--csv", "r.json"], "r.json is named twice."),
        (["--markdown", "-o", "r.json"], "r.json is named twice."),
    ]
)
def test_what_contradicts_itself_is_refused(refused, measured, wrong):
    arguments, words = wrong
    before = (measured / "r.json").read_bytes()
    assert words in refused("report", "r.json", *arguments)
    assert [path.name for path in measured.iterdir()] == ["r.json"]
    assert (measured / "r.json").read_bytes() == before


def test_a_file_in_a_folder_that_is_not_there_brings_it_along_and_one_that_cannot_be_says_why(measured):
    assert (
        gpuprof("report", "r.json", "-q", "--csv", "new/deep/r.csv", cwd=measured).returncode == ExitCode.OK
    )
    assert (measured / "new" / "deep" / "r.csv").is_file()
    named = gpuprof("report", "r.json", "-q", "-o", "folder", cwd=measured)
    assert named.stdout == "Wrote folder/r.html\n"
    process = gpuprof("report", "r.json", "--csv", "/proc/r.csv", cwd=measured)
    assert process.stderr.startswith("gpuprof: Cannot write /proc/r.csv: ")
    assert process.returncode == ExitCode.BAD_INPUT


@each(arguments=["-o -", "--csv -", "--markdown"])
def test_head_ends_a_report_in_peace(measured, arguments):
    command = f"{sys.executable} -m gpuprof report r.json {arguments} | head -1"
    done = ran(command, shell=True, cwd=measured, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_a_table_on_standard_output_leaves_gates_to_standard_error(measured):
    gate = "registers_per_thread > 10"
    printed = gpuprof("report", "r.json", "--fail-on", gate, "--csv", "-", cwd=measured)
    assert printed.returncode == ExitCode.CASES_FAILED
    assert len(rows(printed.stdout)) == len(read_run(measured / "r.json").cases)
    assert gate in printed.stderr


# A browser.


def test_open_without_a_browser_says_so_and_is_no_failure(measured):
    process = gpuprof("report", "r.json", "-q", "--open", cwd=measured, environment=NO_BROWSER)
    assert process.returncode == ExitCode.OK
    assert process.stdout == "Wrote r.html\n"
    assert process.stderr == (
        "There is no browser here: copy r.html to where there is one; it needs no other file.\n"
    )


def test_open_hands_the_report_to_the_browser(tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'asked')!r}, 'w').write(sys.argv[1])\n"
    )
    browser.chmod(0o755)
    process = gpuprof(*TINY, "-o", "a b", "--open", cwd=tmp_path, environment={"BROWSER": f"{browser} %s"})
    assert process.returncode == ExitCode.OK, process.stderr
    assert (tmp_path / "asked").read_text() == (tmp_path / "a b" / "report.html").as_uri()


# The newest run.


def test_latest_leads_to_the_newest_run_that_named_no_place(tmp_path):
    for _ in range(2):
        process = gpuprof(*TINY, cwd=tmp_path)
        written = Path(re.match(r"Wrote (.*)", process.stdout)[1])
        latest = tmp_path / "gpuprof-results" / "latest"
        assert latest.is_symlink()
        assert latest.resolve() == (tmp_path / written.parent).resolve()
    gpuprof(*TINY, "-o", "elsewhere", cwd=tmp_path, status=ExitCode.OK)
    assert latest.resolve() == (tmp_path / written.parent).resolve()
    process = gpuprof("report", "-q", cwd=tmp_path)
    assert process.stdout == "Wrote gpuprof-results/latest/report.html\n"


def test_what_is_called_latest_and_is_no_link_stays(tmp_path):
    (tmp_path / "gpuprof-results" / "latest").mkdir(parents=True)
    assert gpuprof(*TINY, cwd=tmp_path).returncode == ExitCode.OK
    assert not (tmp_path / "gpuprof-results" / "latest").is_symlink()
    process = gpuprof("report", cwd=tmp_path)
    assert process.stderr.startswith("gpuprof: No run is named, and there is none at gpuprof-results/latest/")
    assert process.returncode == ExitCode.BAD_INPUT


# CSV.


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@each(name=["gemm-h200", "transpose-h200", "softmax-h200"])
def test_csv_holds_every_figure_of_every_case_in_full(name):
    run = load(SAMPLES / f"{name}.json")
    table = rows(run.to_csv())
    assert len(table) == len(run.cases)
    assert {heading(figure) for figure in FIGURES.values()} <= set(table[0])
    for row, case in zip(table, run.cases, strict=True):
        assert (row["kernel"], row["size"], row["outcome"]) == (case.kernel, case.size, case.outcome)
        assert {key: int(row[f"size_{key}"]) for key in case.sizes} == dict(case.sizes)
        for key, figure in FIGURES.items():
            field, value = row[heading(figure)], case.figures.get(key)
            if value is None:
                assert field == "", (case, key)
            elif figure.unit == "text":
                assert field == value
            else:
                assert float(field) == value, (case, key)


def test_a_heading_tells_its_unit():
    token = {"us": "us", "%": "pct", "±%": "pct", "GB/s": "gbps", "GFLOP/s": "gflops", "bytes": "bytes"}
    for figure in FIGURES.values():
        name = heading(figure)
        assert re.fullmatch("[a-z0-9_]+", name)
        if figure.unit in token:
            assert token[figure.unit] in name.split("_"), figure.key
    headings = [heading(figure) for figure in FIGURES.values()]
    assert len(set(headings)) == len(headings)
    assert heading(FIGURES["gain"]) == "gain_ratio"
    assert heading(FIGURES["stall_wait"]) == "stall_wait_cycles_per_instruction"


def test_csv_beside_a_run_and_on_standard_output(tmp_path):
    process = gpuprof(*TINY, "-o", "out", "--csv", "t.csv", cwd=tmp_path)
    assert process.stdout.splitlines()[-1] == "Wrote t.csv"
    held = (tmp_path / "t.csv").read_text()
    assert held == render_csv(read_run(tmp_path / "out" / "results.json"))
    piped = gpuprof(*TINY[:-1], "-o", "out2", "--csv", "-", cwd=tmp_path)
    (row,) = rows(piped.stdout)
    assert row["kernel"] == "naive_row"
    assert "Wrote out2/results.json" in piped.stderr
    assert "compiled" in piped.stderr
    refused = gpuprof(*TINY, "-o", "out3", "--csv", "t.csv", cwd=tmp_path)
    assert "t.csv exists already." in refused.stderr
    assert not (tmp_path / "out3").exists()
    gpuprof(*TINY, "-o", "out3", "--csv", "out3/results.json", cwd=tmp_path, status=ExitCode.BAD_INPUT)


def test_no_field_is_a_formula_to_a_spreadsheet(tmp_path):
    path = write_transpose_kernel(tmp_path, "plain").rename(tmp_path / "=cmd()|x.cu")
    path.write_text(path.read_text().replace("[launch]", 'entry = "plain"\n[launch]'))
    process = gpuprof("run", path.name, "--sizes", "32", "--device", "none", "-q", "--csv", "-", cwd=tmp_path)
    assert process.returncode == ExitCode.OK, process.stderr
    (row,) = rows(process.stdout)
    assert row["kernel"] == "'=cmd()|x"


# Lists for programs.


def test_list_as_json_holds_every_kernel(tmp_path):
    document = json.loads(gpuprof("list", "--json", cwd=tmp_path).stdout)
    assert [one["operation"] for one in document] == list(shipped_names())
    for one in document:
        ladder = shipped_ladder(one["operation"])
        assert [kernel["id"] for kernel in one["kernels"]] == [kernel.id for kernel in ladder.kernels]
        assert one["dimensions"] == list(ladder.operation.dimensions)
        for kernel, known in zip(one["kernels"], ladder.kernels, strict=True):
            assert kernel["published_as"] == list(known.aliases)
            assert kernel["block"] == (None if known.choices else list(known.block))
            assert kernel["parameters"] == dict(known.parameters)
            assert kernel["shape_of"] == (None if known in ladder.rungs else known.shape_of)
    (softmax,) = json.loads(gpuprof("list", "softmax", "--json", cwd=tmp_path).stdout)
    assert softmax["operation"] == "softmax"
    assert gpuprof("list", "sofmax", "--json", cwd=tmp_path).stderr.endswith("Did you mean softmax?\n")


def test_devices_as_json_and_as_a_table_tell_what_to_write(tmp_path):
    document = json.loads(gpuprof("devices", "--json", cwd=tmp_path).stdout)
    assert [card["device"] for card in document["cards"]] == [f"sim:{name}" for name in card_names()]
    assert document["cards"][0]["sm_count"] == load_card(card_names()[0]).sm_count
    assert (document["gpus"] == []) == bool(document["gpus_reason"])
    lines = gpuprof("devices", cwd=tmp_path).stdout.splitlines()
    for name in card_names():
        assert any(line.startswith(f"sim:{name} ") and load_card(name).name in line for line in lines)
    selector = document["cards"][-1]["device"].replace("sim", "none")
    gpuprof(*TINY, "--device", selector, "-o", "out", cwd=tmp_path, status=ExitCode.OK)


# Near words.


@each(
    slip=[
        (["gemmm"], "gemm"),
        (["gemm", "--device", "simm"], "Did you mean sim?"),
        (["gemm", "--device", "h200"], "Did you mean sim:h200,"),
        (["gemm", "--device", "none:h20"], "h200"),
        (["gemm", "--dtype", "f33"], "Did you mean f32?"),
        (["gemm", "--set", "alhpa=2"], "Did you mean alpha?"),
        (["gemm", "-k", "reg_8x8:BKK=8"], "Did you mean BK?"),
        (["gemm", "-k", "reg_8x8:BK"], "Write NAME:BK=16"),
        (["gemm", "--reference", "vendr"], "Did you mean vendor?"),
        (["gemm", "--ncu", "--ncu-clocks", "bas"], "Did you mean base?"),
        (["new", "sofmax", "x.cu"], "Did you mean softmax?"),
        (["report", "resluts.json"], "Did you mean results.json?"),
        (["import", "x.ncu-re", "results.json"], "Did you mean x.ncu-rep?"),
    ]
)
def test_a_slip_of_the_finger_is_answered_with_the_word_that_was_meant(refused, tmp_path, slip):
    arguments, fix = slip
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "x.ncu-rep").write_bytes(b"")
    assert fix in refused(*arguments)


# Colour and width.


@each(columns=[40, 120], arguments=[["list", "softmax"], ["devices"], ["report", "r.json", "--force"]])
def test_nothing_is_wider_than_the_terminal(measured, arguments, columns):
    process = gpuprof(*arguments, cwd=measured, environment={"COLUMNS": str(columns), "TERM": "dumb"})
    assert process.returncode == ExitCode.OK
    assert "\x1b" not in process.stdout
    assert max(len(line) for line in process.stdout.splitlines()) <= columns
    assert "…" not in process.stdout  # no cell is cut: whole columns are left out


def test_help_is_no_wider_than_the_terminal(tmp_path):
    for arguments in ([], ["run"], ["compare"]):
        narrow = gpuprof(*arguments, "--help", cwd=tmp_path, environment={"COLUMNS": "44"}).stdout
        assert 40 < max(map(len, narrow.splitlines())) <= 44


def test_list_says_which_blocks_may_be_any(tmp_path):
    listed = gpuprof("list", "transpose", cwd=tmp_path).stdout
    for kernel in shipped_ladder("transpose").kernels:
        (line,) = re.findall(rf"^{kernel.id} .*", listed, re.MULTILINE)
        assert (" or any " in line) == kernel.any_block, line


def test_narrow_list_names_what_it_hides_and_breaks_no_address(tmp_path):
    narrow = gpuprof("list", "gemm", cwd=tmp_path, environment={"COLUMNS": "80", "TERM": "dumb"}).stdout
    assert "- hidden at this width: published as, types; " in narrow
    assert re.search(r"^float4_multi +16x16", narrow, re.MULTILINE)
    wide = gpuprof("list", "gemm", cwd=tmp_path, environment={"COLUMNS": "130", "TERM": "dumb"}).stdout
    assert "hidden" not in wide
    assert "https://www.zywvvd.com/notes/study/deep-learning/speed-up/cuda-shared-memory" in wide
    assert all(cell_len(line) <= 130 for line in wide.splitlines())
    helped = gpuprof("--help", cwd=tmp_path, environment={"COLUMNS": "80", "TERM": "dumb"}).stdout
    assert "gemm       Matrix multiplication: C" in helped
    assert "..." not in helped.partition("Commands:")[2]


@each(command=list(typer.main.get_command(app).commands))
def test_help_names_no_type_of_python(tmp_path, command):
    process = gpuprof(command, "--help", cwd=tmp_path, environment={"COLUMNS": "80"}, status=ExitCode.OK)
    assert not re.search(r"<(list|path|str|int|float|Path)|x[<>]=", process.stdout)
    assert max(map(len, process.stdout.splitlines())) <= 80
    assert "[[" not in process.stdout


_COMMAND = "import sys; sys.argv[0] = 'gpuprof'; from gpuprof.__main__ import main; main()"


def offered(*words, cwd, shell="bash"):
    """The candidates for the last word of a command line."""
    told = {
        "bash": {"COMP_WORDS": " ".join(("gpuprof", *words)), "COMP_CWORD": str(len(words))},
        "fish": {
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_ARGS": " ".join(("gpuprof", *words)),
        },
    }[shell]
    process = ran(
        [sys.executable, "-c", _COMMAND],
        cwd=cwd,
        env={**os.environ, "_GPUPROF_COMPLETE": f"complete_{shell}", **told},
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return [line for line in process.stdout.splitlines() if line]


def test_commands_and_options_are_offered(tmp_path):
    assert set(shipped_names()) <= set(offered("", cwd=tmp_path))
    assert offered("gemm", "--siz", cwd=tmp_path) == ["--sizes"]
    assert "--device" in [
        line.split("\t")[0] for line in offered("gemm", "--dev", cwd=tmp_path, shell="fish")
    ]
