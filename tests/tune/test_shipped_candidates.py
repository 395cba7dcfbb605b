# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The values that shipped headers declare to be worth trying: what they allow is right."""

import math
import random
from itertools import islice

import pytest
from each import each
from problem_support import executor

from gpuprof.devices.cards import load_card
from gpuprof.kernels.candidates import Candidates
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shipped import shipped_names
from gpuprof.measure.execute import measure_case
from gpuprof.measure.request import Selection, make_request
from gpuprof.problems.sizes import parse_sizes
from gpuprof.records import replace
from gpuprof.tuning.space import SearchSpace, make_space

pytestmark = pytest.mark.deep

#: Small, ragged against every tile, and yet with several steps for every loop.
SIZES = {"gemm": "36x132x140", "transpose": "100x132", "reduce": "10004", "softmax": "3x500"}
#: Of halves and bytes with rows of whole 16-byte words, as bulk copies need them.
HALVES = {"gemm": "36x136x144", "attention": "1x1x200x64"}
#: Where these are not what a kernel is for.
SPECIAL = {
    "few_rows": "3x132x1037",
    "short_k": "36x132x7",
    "dmma": "36x132x36",
    "realigned": "37x133x141",
    "smem_sectors": "101x133",
    **dict.fromkeys(("packed", "tf32_packed"), "37x133x41"),
}
USUAL = {
    **{"warp_row": "4096x1024", "few_rows": "4x4096x4096", "short_k": "4096x4096x16", "realigned": "1001"},
    "wgmma_gathered_short": "2001x2003x50",
}
#: Of what is drawn only grids of so few blocks run, more of which take the executor long.
MOST_BLOCKS = 200
MOST_SHARED = load_card("h200").shared_bytes_per_block_optin
#: Their values follow from their shape, or they hand over to others.
FIXED = {
    "gemm": {"reg_2x1", "smem_tiled_16", "float4_4x4", "col_smem", "col_smem_1d", "col_smem_noconflict"}
    | {"col_4x1", "col_4x1_float4", "by_size", "wmma", "mma_sync", "mma_swizzled"},
    "softmax": {"by_size"},
    "attention": {"three_kernels", "online", "mma_sync", "mma_swizzled", "by_size"},
    "transpose": {"smem_tile", "smem_padded", "smem_swizzled", "float4_tile", "float4_down"},
}
KERNELS = [
    (name, kernel.id)
    for name in shipped_names()
    for kernel in shipped_ladder(name).kernels
    if kernel.candidates != Candidates()
]


def spaces():
    """Of the kernels of one source, which are points of one space, the first."""
    found = {}
    for name, kernel_id in KERNELS:
        kernel = shipped_ladder(name).find(kernel_id)
        found.setdefault((kernel.source, kernel.entries), (name, kernel_id))
    return found.values()


def candidates(name: str, kernel_id: str, size: str | None = None):
    """What may run of one kernel beside its header's values: first what has the fewest of these."""
    ladder = shipped_ladder(name)
    kernel = ladder.find(kernel_id)
    small = (HALVES if {"bf16", "e4m3"} & {*kernel.dtypes} else SIZES)[name]
    sizes = parse_sizes(size or SPECIAL.get(kernel_id, small), ladder.operation.dimensions)
    request = make_request(ladder, (Selection(kernel),), sizes, (), kernel.dtypes[0], {}, ())
    (axes,) = make_space(request.selections, named=True).axes
    problem, device = request.problem(sizes[0], {}), load_card("h200")
    own, *others = axes.points()
    random.Random(kernel_id).shuffle(others)
    values = {*own.params, own.block}
    for point in sorted(others, key=lambda point: len(values & {*point.params, point.block})):
        one = replace(axes, values={name: (value,) for name, value in point.params}, blocks=(point.block,))
        yield from SearchSpace((one,)).allowed(problem, device)[0]


def test_a_search_leaves_out_what_only_bounds_the_others():
    ladder = shipped_ladder("transpose")
    request = make_request(ladder, tuple(map(Selection, ladder.rungs)), ((64, 64),), (), "f32", {}, ())
    names = {one.kernel.id for one in request.selections} - {one.kernel.id for one in request.competing}
    assert names == {"copy_row", "copy_col"}


@pytest.mark.parametrize("name", shipped_names())
def test_every_kernel_that_has_something_to_choose_says_what_is_worth_trying(name):
    without = {kernel.id for kernel in shipped_ladder(name).kernels if kernel.candidates == Candidates()}
    assert without == FIXED.get(name, set())


@pytest.mark.parametrize(("name", "kernel"), spaces())
def test_at_the_usual_size_there_is_something_to_search(name, kernel):
    usual = shipped_ladder(name).operation.default_sizes
    assert next(candidates(name, kernel, USUAL.get(kernel, usual)), None)


@each(kernel=["e4m3", "e4m3_split"])
def test_what_splits_k_and_what_does_not_are_searched_apart(kernel):
    points = [dict(one.point.params) for one in islice(candidates("gemm", kernel), 100)]
    assert {point["WAYS"] == 1 for point in points} == {kernel == "e4m3"}


@pytest.mark.parametrize(("name", "kernel"), spaces())
def test_declared_candidates_are_right(name, kernel):
    for one in candidates(name, kernel):
        launch = one.configured.largest
        # A search does not begin what takes more shared memory than a block may have.
        if math.prod(launch.grid) > MOST_BLOCKS or launch.dynamic_shared_bytes > MOST_SHARED:
            continue
        measured, _ = measure_case(one.case, *executor(assembled=True))
        assert measured.outcome == "ok", (one.point, measured.reason)
        return
    raise AssertionError("no candidate fits on an SM")
