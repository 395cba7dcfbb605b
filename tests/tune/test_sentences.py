# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search found, said in sentences."""

from types import SimpleNamespace

import pytest

from gpuprof.comparison.tuned import TunedRow, TunedSize, answer_sentence
from gpuprof.results import Model, ProblemRecord, Tuned

PROBLEM = ProblemRecord("scale", {"n": 4096}, "f32", {}, {}, 1, 1)


def row(value_us: float | None, each: int, *, tied: bool = False, default: bool = False) -> TunedRow:
    model = Model(value_us, 0.85 * value_us, 1.3 * value_us) if value_us else None
    case = SimpleNamespace(kernel="scale", model=model)
    return TunedRow(case, {"EACH": str(each)}, value_us, tied, default)


def size(*rows: TunedRow, by: str = "time", wrong: int = 0, **what) -> TunedSize:
    told = {"combinations": len(rows), "ruled_out": {}, "uncompiled": 0, "evaluated": len(rows), **what}
    tuned = Tuned(PROBLEM, by=by, **told)
    wrongs = tuple(row(None, number) for number in range(wrong))
    return TunedSize("4096", by, rows, wrongs, tuned=tuned)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (size(row(20, 4, tied=True)), "best is EACH=4, 20.0 µs"),
        (size(row(20, 1, tied=True, default=True)), "EACH=1, 20.0 µs: the header's own values"),
        (size(row(20, 4, tied=True), row(20.1, 1, tied=True, default=True)), "own values are as good"),
        (size(row(20, 4, tied=True), row(40, 1, default=True)), "own values: 40.0 µs, 2.00× as long"),
        (
            size(row(20, 4, tied=True), row(40, 1, default=True), by="bound"),
            "with a bound of 20.0 µs; the header's own values: 40.0 µs, 2.00× as high a bound",
        ),
        (
            size(row(20, 4, tied=True), row(40, 1, default=True), by="model"),
            "20 µs modelled (17–26 µs); the header's own values: 40 µs modelled (34–52 µs), 2.00× as",
        ),
        (
            size(row(20, 4, tied=True), row(22, 1, tied=True, default=True), by="model"),
            "own values, 22 µs modelled (19–29 µs), are too near to tell",
        ),
        (size(wrong=3, combinations=3, evaluated=3, by="model"), "3 of 3 points that were executed failed"),
        (size(combinations=2, ruled_out={"It is large.": 2}), "no combination can run"),
        (size(combinations=2), "nothing was timed"),
    ],
)
def test_the_answer(found, said):
    assert said in answer_sentence(found)
