# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The documentation holds together, its figures are those of the data, and the site is made of it."""

import csv
import importlib
import importlib.util
import re
import runpy
import shlex
import statistics
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer.main
from each import each
from problem_support import Gemm, find_kernel
from processes import ran
from unit_support import gpuprof

from gpuprof import errors, load
from gpuprof.bounds.parts import PARTS
from gpuprof.cli import app
from gpuprof.devices.cards import load_card
from gpuprof.errors import ExitCode, GpuprofError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shape import choose
from gpuprof.reading import read_run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def prose(page):
    """A page without its blocks of code."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page):
    """What can be linked to on a page: its headings, as hosting sites and Sphinx name them."""
    titles = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


@each(page=PAGES)
def test_every_link_leads_somewhere(page):
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target}: there is no {file}"
        assert file.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(file), f"{target}: {file.name} has no such heading"


def test_the_lists_of_the_index_lead_to_every_page_once():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"^- \[[^\]]*\]\(([\w-]+\.md)\)", index, re.MULTILINE)
    assert sorted(linked) == sorted({page.name for page in DOCS.glob("*.md")} - {"index.md"})


def test_every_variable_of_the_environment_is_told_of():
    read = re.compile(r'(?:environ\.get\(|VARIABLES? = )"(GPUPROF_\w+)"')
    code = (path.read_text(encoding="utf-8") for path in (ROOT / "gpuprof").rglob("*.py"))
    names = {name for text in code for name in read.findall(text)}
    told = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(names) >= 4
    assert [name for name in names if name not in told] == []


def test_the_readme_is_short_and_shows_one_picture():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert len(re.findall(r"!\[", text)) == 1


def command_lines():
    """Every command line of the documentation, in blocks and in sentences."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]
        for line in dict.fromkeys((*lines, *spans)):
            if line.startswith("gpuprof "):
                yield line.partition("  #")[0]


COMMANDS = typer.main.get_command(app).commands


@each(line=command_lines())
def test_every_command_line_names_commands_and_options_that_exist(line):
    _, name, *words = shlex.split(line.split("||")[0].split("&&")[0])
    if name.startswith("-") or name == "COMMAND":
        return
    assert name in COMMANDS
    parameters = COMMANDS[name].params
    known = {option for each in parameters for option in (*each.opts, *each.secondary_opts)}
    for word in words:
        if re.match("--?[a-zA-Z]", word):
            assert word.partition("=")[0] in {*known, "--help"}, word


# What scripts write.


def generator():
    spec = importlib.util.spec_from_file_location("update", ROOT / "docs" / "update.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_documentation_is_current():
    generated = list(generator().generated())
    assert len(generated) > 1
    for path, text in generated:
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python docs/update.py"


def test_every_problem_of_the_samples_has_its_fastest_kernel_on_the_page():
    page = (ROOT / "docs" / "measured-h200.md").read_text(encoding="utf-8")
    for name in (name for names in generator().SAMPLES for name in names):
        run = read_run(ROOT / "samples" / f"{name}.json")
        for size in {case.problem.label for case in run.cases}:
            assert re.search(rf"^\| {size} \| `\w+`", page, re.MULTILINE), (name, size)


def test_the_steps_of_the_page_of_limits_are_between_kernels_that_exist():
    for _, sample, _, *kernels, _ in generator().STEPS:
        for kernel in kernels:
            assert find_kernel(sample.partition("-")[0], kernel).id == kernel


# Data.


def test_every_data_file_is_named_on_a_page():
    linked = {target for page in PAGES for target in _LINK.findall(prose(page))}
    assert {f"data/{path.name}" for path in (DOCS / "data").iterdir()} <= linked


def test_the_page_of_the_executor_and_hardware_says_what_its_data_hold():
    with (DOCS / "data" / "executor-accuracy.csv").open(encoding="utf-8", newline="") as file:
        told = [row for row in csv.DictReader(file) if row["executor"]]
    equal = sum(row["executor"] == row["hardware"] for row in told)
    page = (DOCS / "executor-accuracy.md").read_text(encoding="utf-8")
    assert f"{equal:,} of {len(told):,} counters are equal" in page


# Limiters.


def test_every_limiter_has_a_row_that_leads_to_what_to_do():
    page = (DOCS / "limits.md").read_text(encoding="utf-8")
    rows = " ".join(re.findall(r"^\| \[.*?\]\(#.*?\)", page, re.MULTILINE))
    for part in PARTS.values():
        assert re.match(r"\w+", part.short)[0] in rows, part.label


# Statuses.


def statuses():
    """The documented statuses: value and name."""
    page = (DOCS / "exit-status.md").read_text(encoding="utf-8")
    return [(int(value), name) for value, name in re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE)]


def test_every_status_of_the_code_is_documented_and_no_other():
    assert statuses() == [(code.value, name) for name, code in ExitCode.__members__.items()]


def test_every_error_ends_with_a_documented_status():
    documented = {value for value, _ in statuses()}
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, GpuprofError) and kind.__module__ == errors.__name__
    }
    assert len(kinds) > 5
    assert {kind.exit_code.value for kind in kinds} <= documented


def test_no_command_ends_with_a_number_of_its_own():
    for path in (ROOT / "gpuprof" / "cli.py", *sorted((ROOT / "gpuprof" / "commands").glob("*.py"))):
        numbers = re.findall(
            r"(?:sys\.exit|typer\.Exit|SystemExit)\((\d+)\)", path.read_text(encoding="utf-8")
        )
        assert not numbers, path


# The page for beginners.


@pytest.mark.deep
def test_the_first_report_shows_what_its_command_prints(tmp_path):
    page = (DOCS / "first-report.md").read_text(encoding="utf-8")
    command, shown = (block.strip("`\n") for block in _BLOCK.findall(page)[1:3])
    process = gpuprof(*shlex.split(command)[1:], "-o", "out", cwd=tmp_path, environment={"COLUMNS": "80"})
    assert process.returncode == ExitCode.OK, process.stderr
    assert rows(process.stdout) == rows(shown)
    assert len(rows(shown)) == 3


def rows(text):
    """Kernel, traffic, conflicts and limiter of each row: what no version of the compiler changes."""
    found = (re.split(r" {2,}", line) for line in text.splitlines() if re.match(r"\w.*×", line))
    return [(cells[0], *cells[-3:]) for cells in found]


# The site.


def test_the_site_is_made_without_a_warning(tmp_path):
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason="the site needs pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS)]
    ran([*command, str(tmp_path / "site")], cwd=tmp_path, status=0)
    for page in DOCS.glob("*.md"):
        assert (tmp_path / "site" / f"{page.stem}.html").is_file()
    assert (tmp_path / "site" / "results.schema.json").is_file()


def test_the_page_has_the_line_that_the_committed_run_gives():
    table = runpy.run_path(str(ROOT / "benchmarks" / "gemm_table.py"))
    (line,) = table["page"]([ROOT / "samples" / "gemm-by-size-h200.json"]).split("\n\n")[1:2]
    assert f"\n{line.strip()}\n" in (ROOT / "docs" / "gemm-sizes.md").read_text()
    assert "of 197 " in line


@pytest.mark.deep
def test_by_size_takes_what_was_fast():
    gemm = shipped_ladder("gemm")
    for name, dtype, sizes, untimed, reached in (  # some shapes were timed on one card only
        ("gemm-sizes-h200", "f32", 581, 4, 1.2525),
        ("gemm-sizes-f64-h200", "f64", 292, 9, 1.1112),
        ("gemm-sizes-bf16-h200", "bf16", 657, 0, 1.0604),
        ("gemm-sizes-tf32-h200", "tf32", 194, 17, 1.1755),
        ("gemm-sizes-e4m3-h200", "e4m3", 468, 1, 1.0706),
        ("gemm-sizes-bf16-h100", "bf16", 106, 47, 1.0261),
        ("gemm-sizes-tf32-h100", "tf32", 43, 6, 1.0346),
        ("gemm-sizes-e4m3-h100", "e4m3", 53, 13, 0.9896),
    ):
        kernel = gemm.of_type(gemm.find("by_size"), dtype)
        factors: dict[str, dict[str, float]] = {}
        with (ROOT / "docs" / "data" / f"{name}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                factors.setdefault(row["size"], {})[row["kernel"]] = float(row["over_cublas"])
        taken = []
        for size, timed in factors.items():
            extents = [int(part) for part in size.split("x")]
            problem = Gemm(
                *(extents if len(extents) == 3 else 3 * extents), dtype, kernel.options.get("layout", "row")
            )
            taken.append(timed.get(choose(kernel, gemm.kernels, problem, load_card(name[-4:])).id))
        assert (len(taken), taken.count(None)) == (sizes, untimed), name
        assert statistics.geometric_mean(filter(None, taken)) > 0.999 * reached, name


@pytest.mark.parametrize(
    ("dtype", "tables"),
    [
        pytest.param("f32", ["h200"], marks=pytest.mark.deep),
        ("f64", ["f64-h200"]),
        *(
            pytest.param(of, [f"{of}-h200", f"{of}-h100"], marks=pytest.mark.deep)
            for of in ("bf16", "tf32", "e4m3")
        ),
    ],
)
def test_the_costs_of_by_size_are_those_that_the_command_makes(dtype, tables, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    command = importlib.import_module("shape_costs")
    places = [ROOT / "docs" / "data" / f"gemm-sizes-{table}.csv" for table in tables]
    fit = command.Fit(command.read_all(places), dtype)
    assert fit.sums(fit.numbers(np.ones(len(fit.rows), bool))) == [*fit.tables]


MEASURED = " ".join((ROOT / "docs/measured-h200.md").read_text(encoding="utf-8").split())


def sentences(about):
    """The item of the page's list that begins with these words."""
    return MEASURED.partition(f"- **{about}**")[2].partition("- **")[0]


def rates_of(operation, size):
    run = load(ROOT / "samples" / f"{operation}-h200.json")
    timed = {case.kernel: case.figures.get("gbps") for case in run.find(size=size) if case.ok}
    return run, timed


def test_the_best_reduction_against_what_reading_alone_takes():
    _, timed = rates_of("reduce", str(2**28))
    reading = timed.pop("read_all")
    best = max(timed, key=timed.get)
    share = f"{timed[best] / reading:.3f}"
    for told in (f"`{best}`", f"{timed[best]:,.0f} GB/s", f"{reading:,.0f} GB/s", share):
        assert told in sentences("Reductions.")
    assert float(share) >= 0.95


def test_the_best_softmax_against_the_measured_copy():
    run, timed = rates_of("softmax", "8192")
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
