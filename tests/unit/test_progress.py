# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Progress in a pipe, a line for each case; and the trace of what ran when, in which process."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
from each import each
from plain_runs import plain_run
from problem_support import Gemm
from unit_support import DEVICE, gpuprof

from gpuprof.commands.progress import Pace, format_seconds, watch
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.measure.case import Case, unmeasured
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Place

SAMPLE = Path(__file__).parents[2] / "samples" / "reduce-h200.json"
KERNEL = shipped_ladder("gemm").find("reg_8x8")
ONE = plain_run([], devices=(DEVICE,))
A = replace(DEVICE, name="A")
TWO = replace(ONE, devices=(A, A), places=(Place("0"), Place("1")))


def lines(capsys, act):
    with watch(quiet=False) as progress:
        progress.opened(ONE, 2)
        act(progress)
    return capsys.readouterr().err.splitlines()[1:]


def ended(case, **changes):
    return replace(unmeasured(case, KERNEL, "ok", None, "not run"), **changes)


def test_a_case_is_named_by_size_block_and_parameters(capsys):
    cases = [Case.of(KERNEL, Gemm(64, 64, 64), params={"BK": value}) for value in (8, 16)]

    def act(progress):
        progress.finished(ended(cases[0]))
        progress.finished(ended(cases[1], kernel="by_size", chosen="reg_8x8"))
        progress.finished(ended(cases[0], outcome="failed", over_limit=True))
        progress.finished(ended(cases[0], over_limit=True))  # as a stranger's file may say
        progress.profiling(cases[0])

    assert lines(capsys, act) == [
        "[1/2] reg_8x8 64 256x1 BK=8 TN=8: ok",
        "[2/2] by_size 64 → reg_8x8 256x1: ok",  # of a kernel that was chosen the header says the parameters
        "[3/2] reg_8x8 64 256x1 BK=8 TN=8: over limit",  # no failure: the status stays 0
        "[4/2] reg_8x8 64 256x1 BK=8 TN=8: ok",
        "ncu: reg_8x8 64 256x1 BK=8",
    ]


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self):
        return self.now


def test_the_rest_is_reckoned_from_what_went_before():
    clock = Clock()
    pace = Pace(10, clock)
    rests = []
    for _ in range(10):
        clock.now += 4
        pace.done += 1
        rests.append(pace.rest_s())
    assert rests == [None, None, 28, 24, 20, 16, 12, 8, 4, None]
    pace = Pace(100, clock)
    for _ in range(50):  # what is over at once is not told
        clock.now += 0.01
        pace.done += 1
    assert pace.rest_s() is None


def test_what_the_header_says_of_its_parameters_goes_without_saying(capsys):
    cases = [Case.of(KERNEL, Gemm(64, 64, 64), params=params) for params in ({}, {"BK": 8})]

    def act(progress):
        for case in cases:
            progress.started(case)
            progress.finished(ended(case))

    assert lines(capsys, act) == ["[1/2] reg_8x8 64 256x1: ok", "[2/2] reg_8x8 64 256x1 BK=8: ok"]


@each(
    duration=[
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (190, "3 min 10 s"),
        (3900, "1 h 5 min"),
    ]
)
def test_durations_are_written_as_people_say_them(duration):
    seconds, text = duration
    assert format_seconds(seconds) == text


@pytest.fixture
def terminal(monkeypatch):
    """Makes standard error a terminal of some width, and gives what is written to it."""

    def made(width):
        file = io.StringIO()
        monkeypatch.setattr(sys, "stderr", file)
        monkeypatch.setattr(file, "isatty", lambda: True, raising=False)
        settings = {"COLUMNS": str(width), "LINES": "40", "TERM": "xterm", "NO_COLOR": "1"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        return file

    return made


def shown_in(file, word):
    """The last line that holds a word, without what steers the terminal."""
    line = [line for line in re.split(r"[\r\n]+", file.getvalue()) if word in line][-1]
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).rstrip()


@each(width=[60, 80, 120])
def test_the_bar_finds_room_for_what_it_says(terminal, width):
    file = terminal(width)
    case = replace(Case.of(KERNEL, Gemm(512, 1024, 256)), name="streamk_12x16")
    with watch(quiet=False) as progress:
        progress.opened(ONE, 34)
        for _ in range(5):
            progress.started(case)
            progress.finished(ended(case))
        progress._progress.update(progress._task, told="about 3 min 10 s left")
        progress._progress.refresh()
    shown = shown_in(file, "5/34")
    assert "streamk_12x16 512x1024x256" in shown
    assert "about 3 min 10 s left" in shown
    assert len(shown) <= width


def test_a_terminal_that_cannot_draw_gets_lines(terminal, monkeypatch):
    file = terminal(80)
    monkeypatch.setenv("TERM", "dumb")
    with watch(quiet=False) as progress:
        progress.opened(ONE, 1)
        progress.finished(ended(Case.of(KERNEL, Gemm(512, 1024, 256))))
    assert "[1/1]" in file.getvalue()
    assert "\x1b" not in file.getvalue()


def test_a_stage_that_has_a_limit_begins_with_it(capsys):
    def act(progress):
        progress.stage("Compiling", 90, 240.0)
        progress.stage("Timing", 20)

    assert lines(capsys, act)[0] == "Compiling: 90 to do, 4 min at most"


def test_lines_tell_each_time_and_the_answer_by_all_times_before_the_executor_has_counted(capsys):
    run = replace(read_run(SAMPLE), complete=False)
    case = next(case for case in run.cases if case.kernel == "last_block" and case.problem.label == "1048576")

    def act(progress):
        progress.finished(case)
        progress.timed(run)

    told = lines(capsys, act)
    assert re.fullmatch(r"\[1/2\] last_block 1048576 .*: 5\.12 µs", told[0])
    assert any(re.match(r"last_block +5\.12 µs .*…", line) for line in told)
    assert "counts" in told[-1]
    assert not any("did not finish" in line for line in told)


def test_the_bar_shows_the_times_while_the_executor_still_counts_and_takes_them_away(terminal):
    file = terminal(100)
    run = read_run(SAMPLE)
    with watch(quiet=False) as progress:
        progress.opened(ONE, 2)
        before = file.getvalue()
        progress.timed(run)
        shown = file.getvalue()[len(before) :]
    assert "counting" not in before
    assert "counting" in shown
    assert re.search(r"last_block +5\.12 µs .*…", shown)
    removed = file.getvalue()[len(before) + len(shown) :]
    assert removed.count("\x1b[2K") >= shown.splitlines()[-1].count("\n") + 10  # line by line


def test_of_several_devices_each_line_names_its_own(capsys):
    with watch(quiet=False) as progress:
        progress.opened(TWO, 2)
        for device in (1, 0):
            case = replace(Case.of(KERNEL, Gemm(64, 64, 64)), device=device)
            progress.started(case)
            progress.finished(ended(case))
    told = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert told[0] == "0"
    assert told[1].startswith("[1/2] reg_8x8 64 256x1 on A (GPU 1)")
    assert told[2].startswith("[2/2] reg_8x8 64 256x1 on A (GPU 0)")


def test_the_bar_shows_on_which_of_several_devices_a_case_began(terminal):
    file = terminal(80)
    with watch(quiet=False) as progress:
        progress.opened(TWO, 34)
        progress.started(replace(Case.of(KERNEL, Gemm(512, 1024, 256)), device=1))
        progress._progress.refresh()
    assert "1: reg_8x8 512x1024x256" in shown_in(file, "0/34")


def test_a_trace_holds_what_command_and_worker_did(tmp_path):
    command = ("transpose", "-k", "naive_row", "--sizes", "32", "--device", "sim", "-o", "run")
    trace = tmp_path / "trace.json"
    gpuprof(*command, cwd=tmp_path, environment={"GPUPROF_TIMELINE": str(trace)}, status=0)
    text = trace.read_text(encoding="utf-8")
    events = {event["name"]: event for event in json.loads(text.rstrip().rstrip(",") + "]")}
    assert {"command", "open", "case", "compile", "execute", "table", "page"} <= events.keys()
    command, case, execute, page = (events[name] for name in ("command", "case", "execute", "page"))
    assert command["pid"] == case["pid"] != execute["pid"]
    for inner, outer in ((case, command), (execute, case), (page, command)):
        assert outer["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert execute["tdur"] > 0
    assert execute["args"] == {"of": "naive_row"}


def test_a_trace_replaces_no_file(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine", encoding="utf-8")
    done = gpuprof("list", cwd=tmp_path, environment={"GPUPROF_TIMELINE": str(mine)})
    assert (done.returncode, done.stdout) == (2, "")
    assert "GPUPROF_TIMELINE" in done.stderr
    assert "Traceback" not in done.stderr
    assert mine.read_text(encoding="utf-8") == "mine"
