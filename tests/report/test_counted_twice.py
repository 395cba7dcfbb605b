# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor's counts beside the hardware's, at the edges of what is told apart."""

from dataclasses import replace

from each import each
from synthetic_runs import Gemm, counters, gemm_case, record, run

from gpuprof.analysis.agreement import CaseAgreement, agreements
from gpuprof.analysis.counts import address_conflicts, names_in, sampled, total
from gpuprof.results import Counter, Measurement

LOADS = ("shared_load_wavefronts", "shared_load_bank_conflicts")


def case(hardware: dict[str, Counter], executor: dict[str, Counter]) -> Measurement:
    """A case that both counted."""
    like = gemm_case("naive", Gemm(64, 64, 64), 9.0)
    return replace(like, counters=hardware, executor_counters=executor)


def agreement(
    executor: dict[str, float], hardware: dict[str, float], metric: str | None = None
) -> CaseAgreement:
    """What two sets of counts come to."""
    theirs = counters("ncu", **hardware)
    if metric:
        theirs = {name: replace(one, metric=metric) for name, one in theirs.items()}
    (found,) = agreements(run("gpu", [], [case(theirs, counters("sim", **executor))]))
    return found


def shared(ours: tuple[float, float], theirs: tuple[float, float]) -> list[tuple[float, float, str]]:
    """What is left, wavefronts and conflicts: both values and kind."""
    found = agreement(dict(zip(LOADS, ours, strict=True)), dict(zip(LOADS, theirs, strict=True)))
    return [(one.executor, one.hardware, one.kind) for one in found.comparisons]


@each(
    counted=[
        ((1000, 500), (1000, 500), ["agrees", "agrees", "agrees"]),
        # Arbitration explains up to its share of the hardware's wavefronts.
        ((850, 0), (1000, 150), ["agrees", "arbitration", "arbitration"]),
        ((849, 0), (1000, 151), ["agrees", "unexplained", "unexplained"]),
        ((1000, 500), (999, 499), ["agrees", "unexplained", "unexplained"]),
        # Passes that differ without their conflicts are unexplained throughout.
        ((1000, 500), (1001, 500), ["unexplained"] * 3),
    ]
)
def test_wavefronts_and_conflicts_explain_each_other(counted) -> None:
    ours, theirs, kinds = counted
    found = shared(ours, theirs)
    values = [(pair[0] - pair[1], *pair) for pair in (ours, theirs)]
    assert found == list(zip(*values, kinds, strict=True))


@each(
    copied=[
        ('"cp.async.cg.shared.global [%0], [%1], 16, %2;"', 9, 8, "predicated"),
        ('"cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;"', 9, 8, "predicated"),
        ('"cp.async.cg.shared.global [%0], [%1], 16, %2;"', 8, 9, "unexplained"),
        ('"cp.async.cg.shared.global [%0], [%1], 16;"', 9, 8, "unexplained"),
    ]
)
def test_fewer_sectors_are_known_of_copies_whose_bytes_a_register_decides(copied) -> None:
    source, executor, hardware, kind = copied
    name = "async_copy_shared_wavefronts"
    measured = case(counters("ncu", **{name: hardware}), counters("sim", **{name: executor}))
    (found,) = agreements(run("gpu", [record("naive", "gemm", 1.0, source=source)], [measured]))
    assert [one.kind for one in found.comparisons] == [kind]


def test_wavefronts_without_conflicts_are_no_comparison() -> None:
    found = agreement({LOADS[0]: 5, "barriers": 2}, {LOADS[0]: 6, "barriers": 2})
    assert [one.label for one in found.comparisons] == ["Barriers"]


def test_what_both_saw_none_of_is_not_compared() -> None:
    found = agreement({"barriers": 0, "global_load_requests": 5}, {"barriers": 0, "global_load_requests": 5})
    assert len(found.comparisons) == 1
    found = agreement({"barriers": 0}, {"barriers": 3})
    assert len(found.comparisons) == 1
    assert found.comparisons[0].difference_pct is None
    assert agreement({"barriers": 4}, {"barriers": 3}).comparisons[0].difference_pct == -25.0


L1_COUNT = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


@each(
    counted=[
        # L1's own count may vary by half a percent.
        ("global_load_sectors", 100_000, 100_500, L1_COUNT, "passes"),
        ("global_load_sectors", 100_000, 99_500, L1_COUNT, "passes"),
        ("global_load_sectors", 100_000, 100_501, L1_COUNT, "unexplained"),
        # Hardware adds conflicts to copies and never takes any.
        ("async_copy_shared_bank_conflicts", 10, 12, None, "arbitration"),
        ("async_copy_shared_bank_conflicts", 10, 10, None, "agrees"),
        ("async_copy_shared_bank_conflicts", 10, 9, None, "unexplained"),
        # Shares agree to the digits that are printed.
        ("global_load_efficiency_pct", 82.5, 82.5059, None, "agrees"),
        ("global_load_efficiency_pct", 82.5, 82.4941, None, "agrees"),
        ("global_load_efficiency_pct", 82.5, 82.507, None, "unexplained"),
    ]
)
def test_what_explains_a_difference(counted) -> None:
    name, executor, hardware, metric, kind = counted
    assert agreement({name: executor}, {name: hardware}, metric).comparisons[0].kind == kind


def conflicts(
    hardware: tuple[float, float] | None, executor: tuple[float, float] | None, source: str = "ncu"
):
    theirs = counters(source, **dict(zip(LOADS, hardware, strict=True))) if hardware else {}
    ours = counters("sim", **dict(zip(LOADS, executor, strict=True))) if executor else {}
    return address_conflicts(case(theirs, ours), "load")


def test_conflicts_of_addresses_are_the_executors_or_more_than_arbitration_adds() -> None:
    assert conflicts((1000, 600), (1000, 500)) == 500
    assert conflicts((1000, 151), None) == 151
    assert conflicts((1000, 150), None) is None
    assert conflicts((1000, 1), None) is None
    assert conflicts((1000, 0), None) == 0
    assert conflicts((1000, 150), None, source="sim") == 150
    assert conflicts(None, None) is None


def test_conflicts_of_several_kinds_add_up_or_are_unknown() -> None:
    stores = counters("sim", shared_store_wavefronts=70, shared_store_bank_conflicts=7)
    loads = counters("sim", shared_load_wavefronts=50, shared_load_bank_conflicts=5)
    assert address_conflicts(case({**loads, **stores}, {}), "load", "store") == 12
    assert address_conflicts(case(loads, stores), "load", "store") == 12
    assert address_conflicts(case(loads, {}), "load", "store") is None


def test_sum_needs_every_counter_that_is_there() -> None:
    held = counters("sim", global_load_sectors=3, global_store_sectors=0)
    names = ("global_load_sectors", "global_store_sectors", "async_copy_sectors")
    assert total(case(held, {}), *names) == 3
    assert total(case({}, {}), *names) is None
    unknown = {**held, "async_copy_sectors": replace(held["global_load_sectors"], value=None)}
    assert total(case(unknown, {}), *names) is None


def test_foreign_counters_follow_in_order_up_to_a_hundred() -> None:
    foreign = counters("ncu", **{f"foreign_{i:03}": 1.0 for i in range(102)}, barriers=1)
    many = case(foreign, {})
    names = names_in((many, case(counters("sim", global_load_sectors=1), {})))
    assert names[:2] == ("global_load_sectors", "barriers")
    assert names[2:] == tuple(f"foreign_{i:03}" for i in range(100))


def test_sample_is_told_where_fewer_blocks_ran_than_the_grid_has() -> None:
    assert sampled(case(counters("sim", (6, 7), barriers=1), {})) == (6, 7)
    assert sampled(case({}, counters("sim", (6, 7), barriers=1))) == (6, 7)
    assert sampled(case(counters("sim", (7, 7), barriers=1), {})) is None
    assert sampled(case(counters("ncu", barriers=1), {})) is None


def test_a_card_may_count_more_than_a_least_count_and_no_less() -> None:
    def compared(ours: float, theirs: float) -> str:
        executor = {
            name: replace(one, is_least=True) for name, one in counters("sim", warp_instructions=ours).items()
        }
        found = agreements(run("gpu", [], [case(counters("ncu", warp_instructions=theirs), executor)]))
        ((one,),) = (item.comparisons for item in found)
        return one.kind

    assert [compared(100, theirs) for theirs in (110, 99, 100)] == ["least", "unexplained", "agrees"]
