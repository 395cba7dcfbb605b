# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions of Triton on the executor, where it is installed: right ones, and faults at their Python line."""

import inspect
import re

import numpy as np
import pytest

import gpuprof

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
pytestmark = [pytest.mark.deep, pytest.mark.filterwarnings("ignore")]

N = 1000
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, N)).astype(np.float32)


@triton.autotune([triton.Config({"BLOCK": block}, num_warps=2) for block in (128, 256)], key=["n"])
@triton.jit
def add(x, y, out, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, a * tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def product(A, B, C, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a = tl.load(A + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(C + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def call(function, expected=X + Y, constants=(("BLOCK", 128),), **more):
    args = {"x": X, "y": Y, "out": None, "n": N, **more.pop("args", {})}
    return gpuprof.profile(
        function,
        args=args,
        expect={"out": expected},
        constexprs=dict(constants),
        device="sim:h200",
        **{"grid": lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), **more},
    )


def test_each_configuration_is_a_case_with_counts_by_line():
    run = call(add, 3 * X + Y, constants=(), args={"a": np.float32(3)})
    found = [(case.outcome, case.params["BLOCK"], case.block, case.grid) for case in run.cases]
    assert found == [("ok", 128, (64, 1, 1), (8, 1, 1)), ("ok", 256, (64, 1, 1), (4, 1, 1))]
    assert run.record.kernels[0].source == inspect.getsource(inspect.getmodule(add.fn.fn))
    store = line_of(add.fn, "tl.store")
    lines = {line.line: line.counters for line in run.record.cases[0].lines}
    assert "global_store_requests" in lines[store]


def test_a_product_of_matrices_runs_on_tensor_cores():
    a, b = (RNG.normal(size=shape).astype(np.float16) for shape in ((100, 72), (72, 90)))
    run = gpuprof.profile(
        product,
        args={"A": a, "B": b, "C": None, "M": 100, "N": 90, "K": 72},
        expect={"C": a.astype(np.float32) @ b.astype(np.float32)},
        constexprs={"BLOCK": 64},
        grid=lambda meta: (triton.cdiv(meta["M"], 64), triton.cdiv(meta["N"], 64)),
        flops="2 * M * N * K",
        absolute=1e-4,
        device="sim:h200",
    )
    assert run.cases[0].ok


def set_boxes(nargs):
    rows, inner = nargs["ROWS"], nargs["INNER"]
    nargs["A"].block_shape = nargs["B"].block_shape = [rows, inner]
    nargs["C"].block_shape = [rows, rows]


@triton.autotune(
    [triton.Config({"ROWS": 64, "INNER": inner}, pre_hook=set_boxes) for inner in (32, 64)], key=["K"]
)
@triton.jit
def product_of_boxes(A, B, C, K, ROWS: tl.constexpr, INNER: tl.constexpr):
    m, n = tl.program_id(0) * ROWS, tl.program_id(1) * ROWS
    total = tl.zeros((ROWS, ROWS), tl.float32)
    for k in range(0, K, INNER):
        total = tl.dot(A.load([m, k]), B.load([n, k]).T, total)
    C.store([m, n], total.to(tl.float16))


class OnTheHost(np.ndarray):
    """What Triton's descriptors ask of a tensor of PyTorch's."""

    def data_ptr(self):
        return 0

    def stride(self):
        return tuple(step // self.itemsize for step in self.strides)


@pytest.mark.parametrize("device", ["sim:h200", "sim:a100"])
def test_descriptors_of_the_host_have_the_boxes_that_a_configuration_says(device):
    from triton.tools.tensor_descriptor import TensorDescriptor

    a, b, c = (RNG.normal(size=shape).astype(np.float16) for shape in ((100, 72), (96, 72), (100, 96)))
    described = [TensorDescriptor.from_tensor(array.view(OnTheHost), [1, 1]) for array in (a, b, c)]
    run = gpuprof.profile(
        product_of_boxes,
        args=dict(zip("ABC", described, strict=True), K=72),
        expect={"C": a.astype(np.float32) @ b.astype(np.float32).T},
        grid=(2, 2),
        device=device,
        absolute=1e-2,
        relative=1e-3,
    )
    assert [case.outcome for case in run.cases] == ["ok", "ok"]


@triton.jit
def past_the_end(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)  # here
    tl.store(out + i, a + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def stores_past_the_end(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    both = tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask)
    tl.store(out + i, both)  # here


@triton.jit
def misaligned(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    near = (x.to(tl.int64) + 2).to(tl.pointer_type(tl.float32))
    a = tl.load(near + i, mask=mask)  # here
    tl.store(out + i, a + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def blocks_race(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    both = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, both, mask=i < n)
    tl.store(out + tl.arange(0, BLOCK), both)  # here


@triton.jit
def wrong_value(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    both = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.store(out + i, tl.where(i == 777, both + 1, both), mask=i < n)  # here


@triton.jit
def mask_too_wide(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = i <= n  # planted
    a = tl.load(x + i, mask=wide)  # here
    tl.store(out + i, a + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def offset_overflows(x, y, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) + n - 998
    start = row * 1073741824  # planted
    i = start // 32768 + tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + i))  # here


@triton.jit
def too_narrow(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    both = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    half = (both * 1e6).to(tl.float16)  # planted
    tl.store(out + i, half.to(tl.float32) * 1e-6, mask=i < n)  # here


@triton.jit
def leaves_out(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    narrow = i < n - 3  # planted
    both = tl.load(x + i, mask=narrow) + tl.load(y + i, mask=narrow)
    tl.store(out + i, both, mask=narrow)  # here


@triton.jit
def nothing_cleared(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    both = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    tl.atomic_add(out + i, both, mask=i < n)  # here


def line_of(function, text):
    lines = inspect.getsource(inspect.getmodule(function.fn)).splitlines()
    start = function.fn.__code__.co_firstlineno
    return next(number for number, line in enumerate(lines, 1) if number >= start and text in line)


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (past_the_end, "failed"),
        (stores_past_the_end, "failed"),
        (misaligned, "failed"),
        (blocks_race, "failed"),
        (wrong_value, "incorrect"),
        (mask_too_wide, "failed"),
        (offset_overflows, "failed"),
        (too_narrow, "incorrect"),
        (leaves_out, "incorrect"),
        (nothing_cleared, "incorrect"),
    ],
    ids=lambda value: getattr(getattr(value, "fn", None), "__name__", value),
)
def test_a_fault_is_found_at_its_python_line(function, outcome):
    (case,) = call(function).record.cases
    assert case.outcome == outcome
    assert f"line {line_of(function, '# here')}" in case.reason
    if "# planted" in inspect.getsource(function.fn):
        _, behind = case.reason.split("; it depends on line")
        assert str(line_of(function, "# planted")) in re.findall(r"\d+", behind.partition(".")[0])


def test_what_triton_refuses_is_told_with_its_line():
    (case,) = call(wrong_value, constants=(("BLOCK", 100),)).record.cases
    assert case.outcome == "failed"
    assert f"line {line_of(wrong_value, 'tl.arange')}: arange's range must be a power of 2" in case.reason
