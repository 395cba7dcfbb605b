# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The declared ladders on the executor: right at every size, block and parameter that their headers allow."""

import pytest
from problem_support import ladder, measured, problem_for

pytestmark = pytest.mark.deep

#: The ends of a warp, of a block, of what a thread takes; lengths that are no multiple of anything.
SIZES = {
    "reduce": [(1,), (33,), (255,), (512,), (10_007,)],
    "softmax": [(1, 1), (130, 1), (1, 33), (3, 1021), (2, 1028), (1, 4100), (1, 9001)],
    "attention": [(1, 1, 1, 64), (1, 2, 70, 64), (1, 1, 140, 128)],
}
#: Scalars besides the defaults.
SCALARS = {"attention": {"causal": 1.0}}
#: Kernel, parameters and block other than the header's own, at sizes that leave tails; tune's tests try those
#: that headers declare as candidates.
OTHERS = {
    "reduce": [
        *((name, {"BLOCK": block}, None) for name in ("interleaved", "sequential") for block in (64, 1024)),
        ("shuffles", {"BLOCK": 96, "BLOCKS_PER_SM": 1}, None),
        ("float4_loads", {"BLOCK": 32}, None),
        ("batched_loads", {"BLOCK": 1024, "LOADS": 3}, None),
        ("atomic_add", {"BLOCK": 32, "LOADS": 1}, None),
        ("last_block", {"LOADS": 2}, (32, 1, 1)),
        ("read_all", {"LOADS": 1}, (96, 1, 1)),
    ],
    "softmax": [
        *((name, {}, (32, 1, 1)) for name in ("online", "float4_online", "smem_row")),
        ("block_row", {}, (100, 1, 1)),
        ("copy", {"VECTORS": 3}, (64, 1, 1)),
        ("registers", {"VECTORS": 3}, (96, 1, 1)),
        ("warp_row", {"VECTORS": 9}, (32, 1, 1)),
        ("warp_row", {"VECTORS": 9}, (256, 1, 1)),
    ],
    "attention": [
        *(("overlap", {"BN": keys, "SKIP": 1}, None) for keys in (64, 160)),
        ("overlap", {"BM": 192, "PINGPONG": 1, "STAGES": 5}, None),
        ("wgmma_producer", {"BM": 192, "STAGES": 2}, None),
        ("wgmma_tma", {"BN": 176, "STAGES": 3}, None),
    ],
}
TAILS = {"reduce": (70_001,), "softmax": (5, 1027), "attention": (1, 1, 200, 64)}


def types_of(kernel):
    return kernel.dtypes or ladder(kernel.operation)[0].dtypes


def measure(kernel, size, dtype=None, block=None, params=None, **scalars):
    problem = problem_for(kernel, *size, dtype=dtype or types_of(kernel)[0], **scalars)
    return measured(kernel, problem, block, params or {}, ladder(kernel.operation))


@pytest.mark.parametrize(
    "kernel", [kernel for name in SIZES for kernel in ladder(name)], ids=lambda kernel: kernel.id
)
def test_right_at_every_size(kernel):
    first, *others = types_of(kernel)
    scalars = SCALARS.get(kernel.operation, {})
    for index, size in enumerate(SIZES[kernel.operation]):
        if kernel.id == "three_passes" and size[-1] > 300:
            continue  # one thread walks along a row, which takes the executor long
        # How a kernel divides its work among threads is the same for each type, and for each of its shapes.
        for dtype in (first, *others) if index % 3 == 1 and not kernel.shape_of else (first,):
            measurement = measure(kernel, size, dtype, **(scalars if index % 2 else {}))
            if measurement.outcome == "skipped":
                declared = [one.because.replace("{id}", kernel.id) for one in kernel.requirements]
                assert measurement.reason.removesuffix(".") in declared
            else:
                assert measurement.outcome == "ok", (size, dtype, measurement.reason)


@pytest.mark.parametrize(
    ("operation", "name", "params", "block"),
    [(operation, *other) for operation, others in OTHERS.items() for other in others],
)
def test_right_with_other_parameters_and_blocks(operation, name, params, block):
    kernel = next(kernel for kernel in ladder(operation) if kernel.id == name)
    scalars = SCALARS.get(operation, {})
    measurement = measure(kernel, TAILS[operation], block=block, params=params, **scalars)
    assert measurement.outcome == "ok", measurement.reason
    assert {name: measurement.params[name] for name in params} == params


@pytest.mark.parametrize("causal", [0.0, 1.0])
@pytest.mark.parametrize(
    ("size", "params", "sms"),
    [
        ((2, 3, 700, 64), {}, 4),
        ((1, 9, 70, 128), {"BN": 128}, 2),  # one tile for all queries of a head
        ((1, 7, 300, 64), {"BM": 192, "BN": 128}, 3),  # causal: other heads in the second half
    ],
)
def test_blocks_of_attention_go_on_to_further_queries(size, params, sms, causal):
    kernel = next(kernel for kernel in ladder("attention") if kernel.id == "overlap_persistent")
    problem = problem_for(kernel, *size, dtype="bf16", causal=causal)
    measurement = measured(kernel, problem, None, params, ladder("attention"), blocks=0, sms=sms)
    assert (measurement.outcome, measurement.grid[0]) == ("ok", sms), measurement.reason


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [(1024, "warp_row"), (1025, "registers"), (8193, "smem_row"), (32_769, "split_row")],
)
def test_softmax_by_size_goes_where_the_row_fits(columns, chosen):
    measurement = measure(ladder("softmax")[-1], (1, columns))
    assert (measurement.outcome, measurement.chosen) == ("ok", chosen), measurement.reason


@pytest.mark.parametrize(
    ("size", "chosen"), [((1, 1, 70, 64), "overlap_persistent_128"), ((1, 1, 140, 128), "overlap_persistent")]
)
def test_attention_by_size_lets_blocks_go_on(size, chosen):
    measurement = measure(ladder("attention")[-1], size)
    assert (measurement.outcome, measurement.chosen) == ("ok", chosen), measurement.reason


def test_blocks_that_do_one_thing_or_another_are_sampled_as_both():
    """192 pieces of work for 132 blocks: a sample of a few tells how many go on to a second one."""
    kernel = next(kernel for kernel in ladder("attention") if kernel.id == "overlap_persistent_128")
    measurement = measure(kernel, (1, 24, 1024, 64))
    assert (measurement.outcome, measurement.grid[0]) == ("ok", 132), measurement.reason
    stored = measurement.counters["global_store_useful_bytes"]
    assert stored.sampled_blocks < stored.total_blocks
    assert stored.value == 24 * 1024 * 64 * 2


def test_blocks_that_add_up_by_atomics_are_all_counted():
    """Of this many blocks a few run where each is by itself; here the last one needs what all have done."""
    kernel = next(kernel for kernel in ladder("reduce") if kernel.id == "last_block")
    measurement = measure(kernel, (2**23 + 1,))
    assert measurement.outcome == "ok", measurement.reason
    atomics = measurement.counters["global_atomic_requests"]
    assert atomics.value == atomics.sampled_blocks == atomics.total_blocks


def test_sample_of_blocks_that_do_not_add_up():
    measurement = measure(ladder("reduce")[0], (2**23 + 1,))
    assert measurement.outcome == "ok", measurement.reason
    loads = measurement.counters["global_load_sectors"]
    assert loads.sampled_blocks < loads.total_blocks
    assert loads.value == pytest.approx(2**23 / 8, rel=0.01)
