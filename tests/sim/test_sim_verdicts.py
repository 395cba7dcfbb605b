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
    body = f"__shared__ __align__(16384) int tile[64]; tile[threadIdx.x] = x[threadIdx.x]; __syncthreads(); {COPY}"
    body = body.replace("y[i] = x[i]", "y[i] = tile[i]")
    case = judged(body)
    assert case.outcome == "ok"
    assert case.record.remarks == (
        "Shared memory of a block starts at 0x400 on the card, whatever alignment is asked for: tile lies at 0x400,"
        " which is no multiple of 16,384",
    )
    assert judged(body, device="sim:a100").record.remarks == ()
