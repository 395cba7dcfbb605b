# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor's counts beside the hardware's, at the edges of what is told apart."""

from each import each
from synthetic_runs import Gemm, counted_run, counters, gemm_case, record, run, sim_run, transpose_run

from gpuprof.analysis.counts import address_conflicts, sampled
from gpuprof.comparison.cautions import differences
from gpuprof.records import replace
from gpuprof.results import Counter, Measurement

LOADS = ("shared_load_wavefronts", "shared_load_bank_conflicts")


def case(hardware: dict[str, Counter], executor: dict[str, Counter]) -> Measurement:
    """A case that both counted."""
    like = gemm_case("naive", Gemm(64, 64, 64), 9.0)
    return replace(like, counters=hardware, executor_counters=executor)


PREDICATED = '"cp.async.cg.shared.global [%0], [%1], 16, %2;"'
L2_HINT = '"cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;"'
L1_COUNT = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
COPIES, SECTORS = "async_copy_shared_wavefronts", "global_load_sectors"
PRODUCTS = ("hmma_instructions", "tensor_tf32_operations")
EXTRA, EFFICIENCY = "async_copy_shared_bank_conflicts", "global_load_efficiency_pct"


@each(
    counted=[
        # Names, what executor and hardware count of each, and how many differences nothing explains.
        # Arbitration explains up to its share of the hardware's wavefronts.
        (LOADS, (850, 0), (1000, 150), 0),
        (LOADS, (849, 0), (1000, 151), 2),
        # Passes that differ without their conflicts are unexplained throughout.
        (LOADS, (1000, 500), (1001, 500), 2),
        # Loads wait for tensor cores that read shared memory too, not for those that read registers.
        ((*LOADS, *PRODUCTS), (1000, 500, 10, 163_840), (1400, 500, 10, 163_840), 0),
        ((*LOADS, *PRODUCTS), (1000, 500, 10, 40_960), (1400, 500, 10, 40_960), 2),
        ((*LOADS, *PRODUCTS), (1000, 500, 10, 163_840), (999, 500, 10, 163_840), 2),
        # Wavefronts without conflicts are no comparison.
        ((LOADS[0], "barriers"), (5, 2), (6, 2), 0),
        (("barriers",), (0,), (3,), 1),
        (("branch_divergent_warps",), (0,), (3,), 0),
        # L1's own count may vary by half a percent.
        ((SECTORS,), (100_000,), (100_500,), 0),
        ((SECTORS,), (100_000,), (100_501,), 1),
        # Hardware adds conflicts to copies and never takes any.
        ((EXTRA,), (10,), (12,), 0),
        ((EXTRA,), (10,), (9,), 1),
        # Shares agree to the digits that are printed.
        ((EFFICIENCY,), (82.5,), (82.5059,), 0),
        ((EFFICIENCY,), (82.5,), (82.507,), 1),
        # Fewer sectors are known of copies whose bytes a register decides.
        ((COPIES, PREDICATED), (9,), (8,), 0),
        ((COPIES, L2_HINT), (9,), (8,), 0),
        ((COPIES, PREDICATED), (8,), (9,), 1),
        ((COPIES, PREDICATED.replace(", %2", "")), (9,), (8,), 1),
        ((COPIES, '"copies in a file that it includes"'), (9,), (8,), 0),
        # A card may count more than a least count, and no less; so of pipes where threads wait.
        (("warp_instructions", "pipe_alu_instructions"), (100, 10), (110, 12), 0),
        (("warp_instructions", "pipe_alu_instructions"), (100, 10), (110, 9), 1),
    ]
)
def test_what_explains_a_difference(counted) -> None:
    names, executor, hardware, unexplained = counted
    source = names[-1] if names[-1].startswith('"') else ""
    theirs = counters("ncu", **dict(zip(names, hardware, strict=False)))
    ours = counters("sim", **dict(zip(names, executor, strict=False)))
    theirs = {name: replace(one, metric=L1_COUNT) if name == SECTORS else one for name, one in theirs.items()}
    for name in {"warp_instructions"} & ours.keys():
        ours[name] = replace(ours[name], is_least=True, has_waits=True)
    held = run("gpu", [record("naive", "gemm", 1.0, source=source)], [case(theirs, ours)])
    assert len(differences(held)) == unexplained


def test_what_one_side_did_not_count_is_no_difference() -> None:
    assert differences(counted_run()) == differences(sim_run()) == differences(transpose_run()) == ()


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


def test_sample_is_told_where_fewer_blocks_ran_than_the_grid_has() -> None:
    assert sampled(case(counters("sim", (6, 7), barriers=1), {})) == (6, 7)
    assert sampled(case({}, counters("sim", (6, 7), barriers=1))) == (6, 7)
    assert sampled(case(counters("sim", (7, 7), barriers=1), {})) is None
    assert sampled(case(counters("ncu", barriers=1), {})) is None
