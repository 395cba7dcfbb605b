# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the executor says of a kernel is what the card would say: rows of small kernels, one rule each."""

import numpy as np

import gpuprof


def judged(body, *, n=64, block=64, grid=1, name="k", expect=None, device="sim:h200", **options):
    """Run `body` for n integers x and y; unless told otherwise, y should be x."""
    text = f'extern "C" __global__ void {name}(int n, const int *x, int *y) {{ {body} }}'
    x = np.arange(1, n + 1, dtype=np.int32)
    run = gpuprof.profile(
        gpuprof.Source(text, name),
        args={"n": n, "x": x, "y": None},
        expect={"y": x if expect is None else expect},
        grid=grid,
        block=block,
        device=device,
        **options,
    )
    return run.case()


COPY = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];"


def test_alignment_that_the_card_does_not_give_is_a_remark():
    body = """__shared__ __align__(16384) int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = tile[threadIdx.x];"""
    case = judged(body)
    assert case.outcome == "ok"
    assert case.record.remarks == (
        "Shared memory of a block starts at 0x400 on the card, whatever alignment is asked for: tile lies at"
        " 0x400, which is no multiple of 16,384",
    )
    assert judged(body, device="sim:a100").record.remarks == ()


def test_what_is_not_modelled_stops_the_run_only_where_it_is_reached():
    unreached = judged(f"if (n < 0) y[0] = (int)clock64(); {COPY}")
    assert unreached.outcome == "ok"
    reached = judged(
        f"if (blockIdx.x == 1 && threadIdx.x > 40) y[0] = (int)clock64(); {COPY}", grid=2, block=64
    )
    assert reached.outcome == "skipped"
    assert reached.reason == (
        "The executor does not model `%clock64` (line 1), which thread (41, 0, 0) of block (1, 0, 0) reached."
        " Run it on a GPU instead."
    )
