# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels in the manner of public suites: right, where NumPy says it in a line, and counted as cards do.

The cards' counts are recorded by `benchmarks/executor_accuracy.py`; why some differ stands in
`differential/known_differences.toml`.
"""

import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from executor_harness import compile_cuda

FOLDER = Path(__file__).parent / "public_style"
sys.path.append(str(FOLDER))

from public_kernels import public_kernels  # noqa: E402  (it finds the rooms beside it)

from against_card import compared, counts_of_card, execute, reason_of  # noqa: E402  # isort: skip
from answers_file import load_answers  # noqa: E402  # isort: skip

pytestmark = pytest.mark.deep

ANSWERS = {path.name: load_answers(path)["answers"] for path in sorted(FOLDER.glob("answers-*.json.xz"))}


def of_kernel(name):
    """Return what a kernel is given, and what its arrays hold in the end."""
    case = public_kernels()[name]
    return case.arguments, execute(case, compile_cuda(case.source)).arrays


def test_there_are_many():
    assert len(public_kernels()) >= 60


def test_reduce():
    for name in ("reduce_interleaved", "reduce_sequential"):
        (_, x, _), (_, out) = of_kernel(name)
        assert out.sum() == x.sum()


def test_scan_tree():
    (x, _), (_, out) = of_kernel("scan_tree")
    rows = x.reshape(-1, 128)
    assert np.array_equal(out.reshape(-1, 128), np.cumsum(rows, axis=1) - rows)


@pytest.mark.parametrize("name", ["histogram_global", "histogram_shared", "histogram_per_warp"])
def test_histograms(name):
    (_, data, bins), (_, counts) = of_kernel(name)
    assert np.array_equal(counts, np.bincount(data, minlength=len(bins)))


@pytest.mark.parametrize("name", ["transpose_naive", "transpose_tile", "transpose_padded", "transpose_xor"])
def test_transposes(name):
    (nx, ny, x, _), (_, out) = of_kernel(name)
    assert np.array_equal(out[: nx * ny].reshape(nx, ny), x[: nx * ny].reshape(ny, nx).T)


@pytest.mark.parametrize(
    "name", [name for name in public_kernels() if name.startswith("gemm_") and "int8" not in name]
)
def test_gemms(name):
    (m, n, k, a, b, _), (_, _, c) = of_kernel(name)
    expected = a.reshape(m, k).astype(float) @ b.reshape(k, n)
    np.testing.assert_allclose(c.reshape(m, n), expected, atol=1e-4)


def test_sorts():
    (data,), (out,) = of_kernel("bitonic_shared")
    assert np.array_equal(out.reshape(-1, 256), np.sort(data.reshape(-1, 256), axis=1))
    (_, _, a, b, _), (_, _, merged) = of_kernel("merge_by_ranks")
    assert np.array_equal(merged, np.sort(np.concatenate([a, b])))


def test_crc():
    (count, length, data, _), (_, sums) = of_kernel("crc32")
    assert sums.tolist() == [zlib.crc32(row.tobytes()) for row in data.reshape(count, length)]


def test_fft():
    case = public_kernels()["fft_radix_2"]
    turns = np.exp(-2j * np.pi * np.arange(64) / 128).astype(np.complex64).view(np.float32)
    case = replace(case, arguments=(case.arguments[0], turns))
    out = execute(case, compile_cuda(case.source)).arrays[0]
    expected = np.fft.fft(case.arguments[0].view(np.complex64).reshape(-1, 128))
    np.testing.assert_allclose(out.view(np.complex64).reshape(-1, 128), expected, atol=1e-4)


def test_softmax():
    (columns, x, _), (_, out) = of_kernel("softmax_row")
    e = np.exp(x.reshape(-1, columns).astype(float))
    np.testing.assert_allclose(out.reshape(-1, columns), e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def counted():
    for file, answers in ANSWERS.items():
        for name in answers:
            yield pytest.param(file, name)


@pytest.mark.parametrize(("file", "name"), [*counted()])
def test_what_a_card_counted(file, name):
    case, answer = public_kernels()[name], ANSWERS[file][name]
    assert answer["key"] == case.key, "the kernel has changed since: ask the card again"
    counters = compared(execute(case, answer["ptx"]).counters, counts_of_card(answer))
    assert len(counters) > 10
    unexplained = [c for c in counters if not c.equal and reason_of(name, c.name) is None]
    assert not unexplained
