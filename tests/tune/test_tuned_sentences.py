# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is said of a search: one point or many, with an answer or without, by time or by bound."""

from types import SimpleNamespace

import pytest

from gpuprof.analysis.tuned import TunedRow, TunedSize, answer_sentence, space_sentence, tie_sentence
from gpuprof.results import OTHER_REASONS, ProblemRecord, Tuned

PROBLEM = ProblemRecord("scale", {"n": 4096}, "f32", {}, {}, 1, 1)


def row(value_us: float | None, each: int, *, tied: bool = False, default: bool = False) -> TunedRow:
    return TunedRow(SimpleNamespace(kernel="scale"), {"EACH": str(each)}, value_us, tied, default)


def size(*rows: TunedRow, by: str = "time", wrong: int = 0, **what) -> TunedSize:
    told = {"combinations": len(rows), "ruled_out": {}, "uncompiled": 0, "evaluated": len(rows), **what}
    tuned = Tuned(PROBLEM, by=by, **told)
    return TunedSize(tuned, ("EACH",), False, rows, tuple(row(None, number) for number in range(wrong)))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (size(row(20, 4, tied=True)), "best is EACH=4, 20.0 µs"),
        (size(row(20, 1, tied=True, default=True)), "best is EACH=1, 20.0 µs: the header's own values"),
        (
            size(row(20, 4, tied=True), row(20.1, 1, tied=True, default=True)),
            "best is EACH=4, 20.0 µs; the header's own values are as good",
        ),
        (
            size(row(20, 4, tied=True), row(40, 1, default=True)),
            "best is EACH=4, 20.0 µs; the header's own values take 40.0 µs, 2.00× as long",
        ),
        (
            size(row(20, 4, tied=True), row(40, 1, default=True), by="bound"),
            "best is EACH=4, with a bound of 20.0 µs; that of the header's own values is 40.0 µs,"
            " 2.00× as high",
        ),
        (size(wrong=1, combinations=1, evaluated=1), "the one point that was timed failed"),
        (size(wrong=2, combinations=2, evaluated=2), "both points that were timed failed"),
        (
            size(wrong=3, combinations=3, evaluated=3, by="bound"),
            "all 3 points that were counted failed",
        ),
        (
            size(combinations=2, ruled_out={"It is large.": 2}),
            "no combination can run, and nothing was timed",
        ),
        (size(combinations=2), "nothing was timed"),
    ],
)
def test_the_answer(found, said):
    assert answer_sentence(found) == said


@pytest.mark.parametrize(
    ("ties", "by", "said"),
    [
        (1, "time", ""),
        (2, "time", "EACH=1 cannot be told apart from it"),
        (2, "bound", "EACH=1 has the same bound"),
        (3, "bound", "2 points have the same bound: EACH=1 and EACH=2"),
        (4, "time", "3 points cannot be told apart from it: EACH=1, EACH=2 and EACH=3"),
        (6, "time", "5 points cannot be told apart from it, among them EACH=1, EACH=2 and EACH=3"),
    ],
)
def test_who_is_as_good(ties, by, said):
    assert tie_sentence(size(*(row(20, each, tied=True) for each in range(ties)), by=by)) == said


def space(combinations: int, evaluated: int, ruled_out: dict[str, int] | None = None, **what) -> str:
    return space_sentence(
        size(combinations=combinations, evaluated=evaluated, ruled_out=ruled_out or {}, **what)
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (space(1, 1), "The one combination can run, and was timed"),
        (space(1, 0), "The one combination can run, but it was not timed"),
        (space(2, 2), "Both combinations can run, and both were timed"),
        (space(2, 1), "Both combinations can run, of which 1 was timed"),
        (space(1200, 20), "All 1,200 combinations can run, of which 20 were timed"),
        (space(3, 0, by="bound"), "All 3 combinations can run, but none was counted"),
        (
            space(3, 2, {"scale is what it is.": 1}),
            "2 of 3 combinations can run, and both were timed. 1 was ruled out without a launch, because"
            " scale is what it is",
        ),
        (
            space(1, 0, {"It needs too much.": 1}),
            "The one combination cannot run. It was ruled out without a launch, because it needs too much",
        ),
        (
            space(9, 0, {"It needs too much.": 9}),
            "None of 9 combinations can run. 9 were ruled out without a launch, because it needs too much",
        ),
        (
            space(20, 5, {"No block fits.": 4, "x is odd.": 6, OTHER_REASONS: 5}),
            "5 of 20 combinations can run, and all were timed. 15 were ruled out without a launch:"
            " 6 because x is odd; 4 because no block fits; 5 for other reasons",
        ),
        (
            space(20, 16, {"a": 1, "b": 1, "c": 1, "d": 1}),
            "16 of 20 combinations can run, and all were timed. 4 were ruled out without a launch:"
            " 1 because a; 1 because b; 1 because c; 1 for other reasons",
        ),
        (
            space(20, 5, uncompiled=1),
            "All 20 combinations can run, of which 5 were timed; 1 was not compiled in time, and"
            " the same command continues with it",
        ),
        (
            space(20, 5, uncompiled=2),
            "All 20 combinations can run, of which 5 were timed; 2 were not compiled in time, and"
            " the same command continues with them",
        ),
    ],
)
def test_the_space(said, told):
    assert said == told
