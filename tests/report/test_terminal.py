# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The terminal report at pinned widths, in a pipe, and where only ASCII can be written."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from synthetic_runs import RUNS, gemm_run, sim_run

from gpuprof.analysis.status import status_of
from gpuprof.comparison.cautions import cautions
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.report.document import AnswerTile, Document
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import answer_document, overview, run_report, show_run
from gpuprof.report.terminal import print_document
from gpuprof.results import Run

SAMPLES = Path(__file__).parents[2] / "samples"
WIDTHS = (60, 120)
KINDS = (run_report, answer_document)
Build = Callable[[Run], Document]


def printed(document: Document, width: int | None = None, color: bool | None = None) -> str:
    file = io.StringIO()
    print_document(document, file=file, width=width, color=color)
    return file.getvalue()


def table(run: Run, width: int | None = None, color: bool | None = None) -> str:
    return printed(run_report(run), width, color)


def answer(run: Run, width: int = 80, **said: object) -> str:
    return printed(answer_document(run, **said), width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sorted(set(RUNS) - {"hostile"}))
def test_every_case_has_its_outcome_and_every_caution_its_title(name: str, width: int) -> None:
    run, text = RUNS[name](), " ".join(table(RUNS[name](), width).split())
    said_by_rows = {"incorrect", "failed", "over_limit"}
    for caution in cautions(run):
        assert caution.code in said_by_rows or caution.title in text
    for case in run.cases:
        assert case.kernel[: width // 8] in text
        status = status_of(run, case)
        told = (case.kernel, case.problem.label, status.word, case.reason or "")
        assert status.usable or all(word in text for word in told)
    assert run.created_utc in text


@pytest.mark.parametrize("build", KINDS)
@pytest.mark.parametrize("name", sorted(set(RUNS) - {"hostile"}))
def test_no_line_is_wider_than_asked_or_ends_in_a_blank(name: str, build: Build) -> None:
    document = build(RUNS[name]())
    for width in [*range(40, 160, 17), 400]:
        for line in printed(document, width).splitlines():
            assert cell_len(line) <= width
            assert line == line.rstrip()


@pytest.mark.parametrize("build", KINDS)
@pytest.mark.parametrize("name", RUNS)
def test_a_pipe_gets_no_control_codes_and_an_ascii_stream_ascii(name: str, build: Build) -> None:
    document = build(RUNS[name]())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed(document))
    assert in_ascii(document).isascii()


def in_ascii(document: Document) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_document(document, file=file, width=100)
    file.flush()
    return raw.getvalue().decode()


def test_a_notebook_gets_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    run, (plain, shown) = RUNS["sim"](), (io.StringIO(), io.StringIO())
    show_run(run, file=plain, width=100)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    show_run(run, file=shown, width=100)
    assert shown.getvalue() == plain.getvalue() != ""


@pytest.mark.parametrize("name", ["sim", "compiled"])
def test_without_a_gpu_no_time_is_printed(name: str) -> None:
    for text in (table(RUNS[name](), 140), answer(RUNS[name]())):
        heads = [line for line in text.splitlines() if line.startswith(("kernel ", "128 "))]
        assert heads
        assert not any("time" in head.split() for head in heads if "rung order" not in head)
        assert "Fastest" not in text
        # Bounds are times that nobody measured: under their own heading, and said to be bounds.
        told = re.search(r"\d (?:ns|µs|ms|s)\b", text)
        assert ("at least" in text) == bool(told)


@pytest.mark.parametrize("name", RUNS)
def test_an_answer_fits_on_a_screen(name: str) -> None:
    assert len(answer(RUNS[name]()).splitlines()) <= 34  # files and status take the rest of 40


def test_an_answer_of_one_kernel_says_what_to_do_next() -> None:
    run = gemm_run()
    assert answer(run, 200).splitlines()[-1].startswith("Next at 4096: ")
    assert "Next" not in answer(read_run(SAMPLES / "gemm-h200.json"))  # others at other sizes
    alone = replace(run, cases=tuple(case for case in run.cases if case.problem == run.cases[0].problem))
    (tile,) = re.findall(r"Next: (.*)", markdown_of(run_report(alone)))
    assert answer(alone, 200).splitlines()[-1] == f"Next: {tile}"
    assert "Next" not in answer(alone, pending=True)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("NO_COLOR", ""), ("TERM", "dumb")])
def test_who_wants_no_color_gets_no_style_either(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for variable, usual in (("TERM", "xterm"), ("NO_COLOR", ""), (name, value)):
        monkeypatch.setenv(variable, usual)
    monkeypatch.setattr(file := io.StringIO(), "isatty", lambda: True, raising=False)
    print_document(run_report(sim_run()), file=file)
    assert ("\x1b" in file.getvalue()) == (not value)


@pytest.mark.parametrize(
    ("make", "kernel"),
    [(lambda: many_sizes(60), "reg_2x1"), (lambda: read_run(SAMPLES / "gemm-by-size-h200.json"), "streamk")],
)
def test_an_answer_of_many_sizes_has_a_line_each_for_some(make: Callable[[], Run], kernel: str) -> None:
    lines = answer(make()).splitlines()
    assert len(lines) <= 34
    assert sum(kernel in line for line in lines) > 10
    assert any(re.match(r"\d+ more sizes", line) for line in lines)


def test_of_equal_bounds_answer_and_table_name_the_same_kernel_and_why_no_time_is_modelled() -> None:
    run = sim_run()
    first = next(case for case in run.cases if not case.is_reference)
    reason = "It reads a texture."
    twins = [replace(first, kernel=name, model_reason=reason) for name in ("a_later", "naive")]
    kernels = {kernel.id: kernel for kernel in run.kernels}
    held = [replace(kernels["naive"], id="a_later", rung=99.0), kernels["naive"]]
    run = replace(run, cases=tuple(twins), kernels=tuple(held))
    lines = answer(run).splitlines()
    head = next(number for number, line in enumerate(lines) if "at least" in line)
    lowest = next(line for line in lines if line.startswith("Lowest bound"))
    assert lines[head + 1].split()[0] == lowest.split()[3] == "naive"
    size = lowest.split()[2]
    told = f"! Not modelled: naive {size} and a_later {size}: {reason}"
    assert told in lines
    assert told in table(run, 100).splitlines()
    assert told.replace("_", "\\_") in markdown_of(run_report(run))


def test_the_peak_is_told_once_it_is_known_what_tensor_cores_multiplied() -> None:
    run = read_run(SAMPLES / "gemm-h200.json")
    bare = tuple(replace(case, counters={}, executor_counters={}) for case in run.cases)
    text = answer(replace(run, cases=bare), pending=True)
    (row,) = (line for line in text.splitlines() if line.startswith("tf32x3 "))
    assert row.split()[-2:] == ["…", "…"]
    assert "exceeds" not in text
    assert "exceeds" in answer(replace(run, cases=bare))


def many_sizes(count: int) -> Run:
    """The fastest of a ladder at so many sizes."""
    run = gemm_run()
    cases = [case for case in run.cases if case.kernel in ("naive", "reg_2x1") and case.timing]
    made = []
    for number in range(1, count + 1):
        for case in cases[:2]:
            sizes = dict.fromkeys(case.problem.sizes, 64 * number)
            problem = replace(case.problem, sizes=sizes, flops=case.problem.flops * number)
            made.append(replace(case, problem=problem))
    return replace(run, cases=tuple(made))


def test_what_does_not_apply_is_counted_unless_it_was_named() -> None:
    run = gemm_run()
    skipped = replace(run.cases[0], kernel="dmma", outcome="skipped", reason="Not for f32.", timing=None)
    run = replace(run, cases=(*run.cases, skipped))
    assert "1 not applicable" in answer(run)
    assert "Not for f32." not in answer(run)
    assert "Not for f32." in answer(run, named={"dmma"})
    assert "Not for f32." in answer(replace(run, cases=(skipped,)))
    file = io.StringIO()
    show_run(replace(run, argv=("gemm", "-k", "naive,dmma:BM=64")), file=file)
    assert "Not for f32." in file.getvalue()


def test_no_line_of_an_overview_claims_what_another_one_does() -> None:
    tiles = [
        AnswerTile("Fastest", "1", "a", (("modelled", "2 µs"),)),
        AnswerTile("Lowest bound", "2", "a", (("at least", "1 µs"),)),
    ]
    _, first, second, *_ = printed(Document("", content=tuple(overview(tiles)))).splitlines()
    assert (first.split()[:2], second.split()[:4]) == (["1", "a"], ["2", "a", "(lowest", "bound)"])


def test_reasons_that_are_left_out_are_counted_after_those_that_are_told() -> None:
    first = gemm_run().cases[0]
    failed = [replace(first, kernel=f"k{n}", outcome="skipped", reason=f"Reason {n}.") for n in range(9)]
    *_, last, count = answer(replace(gemm_run(), cases=tuple(failed))).splitlines()
    assert (last, count) == ("○ k5 128 skipped: Reason 5.", "3 more reasons")


def test_a_reason_names_the_shapes_of_a_kernel_that_it_holds_for() -> None:
    first = replace(gemm_run().cases[0], kernel="k", outcome="failed", timing=None)
    texts = {8: "Too small.", 16: "Too small.", 32: "Too large."}
    failed = [replace(first, params={"BM": value}, reason=text) for value, text in texts.items()]
    *_, small, large = answer(replace(gemm_run(), cases=tuple(failed))).splitlines()
    assert (small, large) == (
        "✗ k BM=8 128 and k BM=16 128 failed: Too small.",
        "✗ k BM=32 128 failed: Too large.",
    )
    *_, alike = answer(replace(gemm_run(), cases=tuple(failed[:2]))).splitlines()
    assert alike == "✗ k 128 failed: Too small."


@pytest.mark.parametrize("width", [*range(60, 100, 3)])
def test_a_mark_and_its_word_stand_on_one_line(width: int) -> None:
    run = gemm_run()
    wrong = replace(run.cases[0], kernel="wrong", outcome="incorrect", reason="All of it.")
    lines = table(replace(run, cases=(*run.cases, wrong)), width).splitlines()
    (row,) = [line for line in lines if line.startswith("wrong ")]
    assert "≠ incorrect" in row or "outcome" not in next(line for line in lines if line.startswith("kernel "))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["gemm", "sim", "compiled"])
def test_every_column_is_explained_or_named_as_hidden(name: str, width: int) -> None:
    text = table(RUNS[name](), width)
    widest = table(RUNS[name](), 400)
    columns = list(legend(widest))
    shown = list(legend(text))
    assert set(shown) <= set(columns)
    assert "hidden at this width" not in widest
    hidden = re.search(r"^- hidden at this width: (.*?); ([0-9]+) +columns", folded(text), re.MULTILINE)
    assert (hidden is not None) == (len(shown) < len(columns))
    if hidden:
        assert [column for column in columns if column not in shown] == hidden[1].split(", ")
        assert list(legend(table(RUNS[name](), int(hidden[2])))) == columns
        assert list(legend(table(RUNS[name](), int(hidden[2]) - 1))) != columns


@pytest.mark.parametrize(("name", "width"), [("gemm", 80), ("sim", 80)])
def test_what_limits_a_kernel_is_among_the_columns_that_stay_longest(name: str, width: int) -> None:
    assert "limited by" in legend(table(RUNS[name](), width))


def legend(text: str) -> dict[str, str]:
    """The columns that the legend explains: the paragraph that begins with the kernel's."""
    (paragraph,) = [
        part for part in text.split("\n\n") if part.startswith("kernel ") and "rung order" in part
    ]
    found = (re.match(r"(\S.*?)  +(\S.*)", line) for line in paragraph.splitlines())
    return {match[1]: match[2] for match in found if match}


def folded(text: str) -> str:
    """Paragraphs that hang behind a mark, on one line each."""
    return re.sub(r"\n  (?=\S)", " ", text)
