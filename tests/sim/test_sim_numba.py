# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions of Numba on the executor, where it is installed: right ones, and faults at their Python line."""

import inspect
import math

import numpy as np
import pytest

import gpuprof

pytest.importorskip("numba.cuda")
from numba import cuda, float32
from numba.cuda import cg

pytestmark = [pytest.mark.deep, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 1000)).astype(np.float32)
HALVES = RNG.normal(size=(2, 1000)).astype(np.float16)
Z = (X + 1j * Y).astype(np.complex64)
PAIRS = np.zeros(1000, [("a", np.int32), ("b", np.float32)])
PAIRS["a"], PAIRS["b"] = np.arange(1000), X
A, B = RNG.normal(size=(2, 40, 40)).astype(np.float32)


@cuda.jit(device=True)
def scaled(x, a):
    return a * x


@cuda.jit
def saxpy(out, x, y, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = scaled(x[i], a) + y[i]


@cuda.jit
def turned(out, z, pairs):
    i, _ = cuda.grid(1), cg.this_grid()  # which nobody waits for
    if i < out.size:
        out[i] = z[i] * z[i] + float32(pairs[i].a * pairs[i].b)


@cuda.jit
def product(out, a, b):
    row, column = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        out[row, column] = total


@cuda.jit
def sums(out, x):
    held = cuda.shared.array(128, float32)
    i, lane = cuda.grid(1), cuda.threadIdx.x
    held[lane] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step:
        if lane < step:
            held[lane] += held[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        out[cuda.blockIdx.x] = held[0]


@cuda.jit
def transposed(out, x):
    row, column = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        out[column, row] = x[row, column]


@cuda.jit
def counted(out, x):
    i = cuda.grid(1)
    if i < x.size and x[i] > 0:
        cuda.atomic.add(out, 0, 1)


@cuda.jit
def halves(out, x, y, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] * y[i] + np.float16(math.exp(x[i]))


@cuda.jit
def passed_on(out):
    column, grid = cuda.grid(1), cg.this_grid()
    for row in range(1, out.shape[0]):
        out[row, column] = out[row - 1, out.shape[1] - column - 1] + 1
        grid.sync()


@cuda.jit
def past_the_end(out, x, y, a):
    i = cuda.grid(1)
    out[i] = a * x[i] + y[i]  # here


@cuda.jit
def wrong(out, x, y, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] - y[i]  # here


def summed(x):
    return np.array(
        [x[begin : begin + 128].sum(dtype=np.float64) for begin in range(0, x.size, 128)], np.float32
    )


LINEAR = {"x": X, "y": Y, "a": np.float32(2)}
CASES = {
    "saxpy": (saxpy, LINEAR, 2 * X + Y, 8, 128, {}),
    "product": (product, {"a": A, "b": B}, A @ B, (5, 5), (8, 8), {"absolute": 1e-4}),
    "turned": (turned, {"z": Z, "pairs": PAIRS}, (Z * Z + PAIRS["a"] * PAIRS["b"]).astype("c8"), 8, 128, {}),
    "sums": (sums, {"x": X}, summed(X), 8, 128, {"absolute": 1e-4}),
    "transposed": (transposed, {"x": A[:, :30].copy()}, A[:, :30].T.copy(), (5, 4), (8, 8), {}),
    "halves": (
        halves,
        {"x": HALVES[0], "y": HALVES[1], "a": np.float16(2)},
        (2 * HALVES[0] * HALVES[1] + np.exp(HALVES[0].astype(np.float32))).astype(np.float16),
        8,
        128,
        {},
    ),
    "counted": (
        counted,
        {"x": X, "out": np.zeros(1, np.int32)},
        np.array([(X > 0).sum()], np.int32),
        8,
        128,
        {},
    ),
    "passed_on": (passed_on, {"out": np.zeros((5, 64))}, np.arange(5.0)[:, None] + np.zeros(64), 2, 32, {}),
}


def run_of(function, args, expected, grid, block, **more):
    args = {"out": None, **args}
    return gpuprof.profile(
        function, args=args, expect={"out": expected}, grid=grid, block=block, device="sim:h200", **more
    )


@pytest.mark.parametrize("name", CASES)
def test_functions_run_with_counts_by_line(name):
    *call, more = CASES[name]
    run = run_of(*call, **more)
    assert run.cases[0].ok, run.record.cases[0].reason
    function = call[0].py_func
    lines, first = inspect.getsourcelines(function)
    counted_lines = {line.line for line in run.record.cases[0].lines}
    assert counted_lines & set(range(first, first + len(lines)))


@pytest.mark.parametrize(("function", "outcome"), [(past_the_end, "failed"), (wrong, "incorrect")])
def test_a_fault_is_found_at_its_python_line(function, outcome):
    (case,) = run_of(function, LINEAR, 2 * X + Y, 8, 128).record.cases
    lines, first = inspect.getsourcelines(function.py_func)
    here = first + next(place for place, line in enumerate(lines) if "# here" in line)
    assert case.outcome == outcome
    assert f"line {here}" in case.reason
