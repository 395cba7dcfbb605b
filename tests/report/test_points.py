# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that ran with several blocks or sets of parameters: their points, who is best, and why."""

import pytest
from synthetic_runs import Gemm, compiled_run, counters, gemm_case, record, run, sim_run

from gpuprof.analysis.groups import groups
from gpuprof.comparison.tuned import swept
from gpuprof.records import replace
from gpuprof.report.document import Section, Sentence
from gpuprof.report.tuned_text import sweep_content
from gpuprof.results import Bound, Measurement, Model, Run


def timed(block: tuple[int, int, int] = (32, 32, 1), **params: int) -> Measurement:
    """A case whose time in microseconds is a hundred times the product of its parameters."""
    time = 100.0
    for value in params.values():
        time *= value
    return replace(gemm_case("k", Gemm(512, 512, 512), time, block), params=params)


def of(cases: list[Measurement], **default: int) -> Run:
    return run("gpu", [record("k", "gemm", 10, parameters=default)], cases)


def points(of: Run) -> list[list[tuple[str, float | None, bool]]]:
    """Every kernel's and size's points: as typed, with their figure, and whether they may be the best."""
    return [
        [(" ".join(row.values.values()), row.value_us, row.is_tied) for row in (*size.rows, *size.wrong)]
        for group in groups(of)
        for _, size in swept(of, group)
    ]


def told(of: Run) -> list[str]:
    return [
        item.text
        for group in groups(of)
        for section in sweep_content(of, group, briefly=False)
        for item in (section.content if isinstance(section, Section) else ())
        if isinstance(item, Sentence)
    ]


#: As a foreign file may have it: a time, and no rounds.
ROUNDLESS = timed(A=2)
assert ROUNDLESS.timing is not None
ROUNDLESS = replace(
    ROUNDLESS, timing=replace(ROUNDLESS.timing, cold=replace(ROUNDLESS.timing.cold, rounds_us=((0.0,),)))
)
WRONG = replace(timed(A=2, B=2), outcome="incorrect", reason="5 differ.", timing=None)


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        ([timed(A=2), timed(A=1)], [[("1", 100.0, True), ("2", 200.0, False)]]),
        # A block tells points apart unless it follows from parameters.
        ([timed((8, 8, 1), A=1), timed((16, 8, 1), A=2)], [[("1", 100.0, True), ("2", 200.0, False)]]),
        ([timed((8, 8, 1)), timed((16, 8, 1))], [[("8x8", 100.0, True), ("16x8", 100.0, True)]]),
        (
            [timed((8, 8, 1), A=1), timed((16, 8, 1), A=1), timed((8, 8, 1), A=3)],
            [[("1 8x8", 100.0, True), ("1 16x8", 100.0, True), ("3 8x8", 300.0, False)]],
        ),
        ([timed(A=1, B=1), WRONG], [[("1 1", 100.0, True), ("2 2", None, False)]]),
        ([timed(A=1), ROUNDLESS], [[("1", 100.0, True), ("2", 200.0, False)]]),
        ([timed(A=1)], []),
        ([replace(timed(A=1), chosen="x"), replace(timed(A=2), chosen="y")], []),
        ([replace(timed(A=1), is_reference=True), replace(timed(A=2), is_reference=True)], []),
    ],
)
def test_the_best_first_and_who_is_as_good(
    cases: list[Measurement], found: list[list[tuple[str, float | None, bool]]]
) -> None:
    assert points(of(cases)) == found


def test_without_times_the_model_decides_and_without_it_the_bound() -> None:
    like = replace(sim_run().cases[0], bound_by="l1")
    bounds = (1.0, 1.0005, 2.0)
    cases = [
        replace(like, params={"A": number}, bounds={"l1": Bound(least, "", "")})
        for number, least in enumerate(bounds)
    ]
    executed = replace(sim_run(), cases=tuple(cases))
    assert points(executed) == [[("0", 1.0, True), ("1", 1.0005, True), ("2", 2.0, False)]]
    models = [
        replace(case, model=Model(us, us, 1.2 * us)) for case, us in zip(cases, (4, 5, 4.5), strict=True)
    ]
    modelled = replace(executed, cases=tuple(models))
    assert points(modelled) == [[("0", 4, True), ("2", 4.5, True), ("1", 5, False)]]
    assert points(replace(compiled_run(), cases=tuple(cases))) == []


def test_the_best_beside_the_headers_own_values_and_what_counts_differ_in() -> None:
    counted = [counters("ncu", global_load_sectors=sectors, barriers=7) for sectors in (4e6, 1e6)]
    slow, fast = (replace(timed(A=a), counters=held) for a, held in zip((3, 1), counted, strict=True))
    assert told(of([slow, fast], A=3)) == [
        "k 512: best is A=1, 100 µs; the default values: 300 µs, 3.00× as long.",
        "From A=3 to the best: DRAM without cache hits 26.0 µs → 6.51 µs;"
        " L2 without cache hits 7.65 µs → 1.91 µs.",
    ]
    assert told(of([slow, fast], A=1))[0] == "k 512: best is A=1, 100 µs: the default values."
    # Of a foreign file points need not have the same parameters.
    assert "best is A=1 B=1" in told(of([timed(A=1, B=1), timed(A=1, B=2), timed(A=2)]))[0]
    # Without a known default it is the slowest.
    assert told(of([slow, fast]))[1].startswith("From A=3 to the best: ")
    assert told(of([timed(A=1), replace(WRONG, params={"A": 2})]))[-1] == "A=2 incorrect: 5 differ."
