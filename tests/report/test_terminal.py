# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The terminal report at pinned widths, in a pipe, and where only ASCII can be written."""

import io
import re
import subprocess
import sys

import pytest
import snapshot
from rich.cells import cell_len
from synthetic_runs import RUNS, all_failed_run, chosen_run, gemm_run

from gpuprof.report.terminal import print_run
from gpuprof.results import Run

WIDTHS = (60, 80, 120, 140)


def printed(run: Run, width: int | None = None, color: bool | None = None) -> str:
    file = io.StringIO()
    print_run(run, file=file, width=width, color=color)
    return file.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", RUNS)
def test_snapshot(name: str, width: int) -> None:
    snapshot.check(f"terminal-{name}-{width}.txt", printed(RUNS[name](), width))


@pytest.mark.parametrize("width", [*range(40, 160, 7), 400])
@pytest.mark.parametrize("name", sorted(set(RUNS) - {"hostile"}))
def test_no_line_is_wider_than_asked_or_ends_in_a_blank(name: str, width: int) -> None:
    for line in printed(RUNS[name](), width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("name", RUNS)
def test_a_pipe_gets_no_control_codes(name: str) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed(RUNS[name]()))


@pytest.mark.parametrize("name", RUNS)
def test_ascii_streams_get_ascii(name: str) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_run(RUNS[name](), file=file, width=100)
    file.flush()
    assert raw.getvalue().isascii()


def test_colour_only_adds_codes() -> None:
    coloured = printed(gemm_run(), 100, color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == printed(gemm_run(), 100, color=False)


def test_columns_stay_aligned_in_ascii() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_run(gemm_run(), file=file, width=100)
    file.flush()
    rows = [line for line in raw.getvalue().decode().splitlines() if " ok  " in line]
    assert len(rows) == 9
    assert len({row.index("+ ok") for row in rows}) == 1


def test_every_case_that_did_not_finish_has_its_reason() -> None:
    text = " ".join(printed(all_failed_run(), 80).split())
    for case in all_failed_run().cases:
        assert case.reason is not None
        assert f"{case.outcome}: {case.reason}" in text


def test_the_kernel_that_was_chosen_is_named_with_its_block() -> None:
    lines = printed(chosen_run(), 140).splitlines()
    shown = {line.split()[1]: line for line in lines if line.startswith("by_size")}
    assert "→ reg_2x1 32x16" in shown["128"]
    assert "→ float4_4x4 16x16  " in shown["4096"]
    assert "1x1" not in shown["4095"]
    assert "= 4096: fastest is float4_4x4 (by_size), 4.42 ms" in " ".join(lines)


@pytest.mark.parametrize("name", ["sim", "compiled"])
def test_without_a_gpu_no_time_is_printed(name: str) -> None:
    text = printed(RUNS[name](), 140)
    assert "time" not in text.splitlines()[3].split()
    # Bounds are times that nobody measured: under their own heading, and said to be bounds.
    bounds = r"\d (?:ns|µs|ms|s)\b"
    told = [line for line in text.splitlines() if re.search(bounds, line)]
    assert all(line.startswith(("= 128: not timed; lower bounds: ", "naive", "smem_tiled")) for line in told)
    assert ("at least" in text) == bool(told)


def test_importing_the_reports_does_not_load_plotly() -> None:
    code = (
        "import sys, gpuprof.report.html, gpuprof.report.markdown, gpuprof.report.terminal;"
        "print('plotly' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["gemm", "sim", "compiled", "tuned"])
def test_every_column_is_explained_or_named_as_hidden(name: str, width: int) -> None:
    text = printed(RUNS[name](), width)
    widest = printed(RUNS[name](), 400)
    columns = list(legend(widest))
    shown = list(legend(text))
    assert set(shown) <= set(columns)
    assert "hidden at this width" not in widest
    hidden = re.search(r"^- hidden at this width: (.*?); ([0-9]+) +columns", folded(text), re.MULTILINE)
    assert (hidden is not None) == (len(shown) < len(columns))
    if hidden:
        assert [column for column in columns if column not in shown] == hidden[1].split(", ")
        assert list(legend(printed(RUNS[name](), int(hidden[2])))) == columns
        assert list(legend(printed(RUNS[name](), int(hidden[2]) - 1))) != columns


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


@pytest.mark.parametrize("width", WIDTHS)
def test_the_answer_stands_above_its_table(width: int) -> None:
    lines = folded(printed(gemm_run(), width)).splitlines()
    answers = [index for index, line in enumerate(lines) if line.startswith("= ")]
    heading = next(index for index, line in enumerate(lines) if line.startswith("kernel "))
    assert [lines[index].split(",")[0] for index in answers] == [
        "= 128: fastest is reg_2x1",
        "= 4096: fastest is reg_2x1",
    ]
    assert max(answers) < heading
    assert "of theoretical peak compute" in lines[answers[1]]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["gemm", "tuned"])
def test_a_table_of_several_sizes_names_them_at_every_width(name: str, width: int) -> None:
    assert "size" in legend(printed(RUNS[name](), width))


def test_a_figure_stays_on_a_line_with_its_unit() -> None:
    for width in range(40, 100):
        assert not [line for line in printed(gemm_run(), width).splitlines() if line.strip().startswith("% ")]
