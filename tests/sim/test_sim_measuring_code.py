# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The measuring side's device code, executed here: comparison, checksum and references as NumPy's."""

import struct
from functools import cache
from itertools import cycle, product

import numpy as np
import pytest
from compile_support import compile_source
from problem_support import Gemm, Transpose, problem_id

from gpuprof.backends.gpu.device_code import device_macros, device_source
from gpuprof.executor import GlobalMemory, KernelFault, load_program
from gpuprof.executor import launch as execute
from gpuprof.problems.check import ErrorBound, compare
from gpuprof.problems.dtypes import ELEMENT_TYPES, RUN_TYPES, largest, rounded
from gpuprof.problems.references import HostReal, Pointer
from gpuprof.toolchain.nvrtc import compiler_options

pytestmark = pytest.mark.deep

GRID, BLOCK = (3, 1, 1), (64, 1, 1)


@cache
def ptx(source: str | None, entry: str, dtype: str) -> str:
    """That of all kernels beside one."""
    options = compiler_options("compute_90", device_macros(dtype))
    return compile_source(device_source(source), "x.cu", entry, options).ptx


@cache
def program(source: str | None, entry: str, dtype: str):
    return load_program(ptx(source, entry if source else "compare", dtype), entry)


def run(
    source: str | None, entry: str, dtype: str, arrays: dict, arguments: list, grid=GRID, block=BLOCK
) -> dict:
    """Launch device code, by default the measuring side's own; arguments that are names stand for arrays."""
    memory = GlobalMemory()
    # The executor knows bytes of types that NumPy lacks.
    plain = {
        name: array if array.dtype.isbuiltin else array.view(f"u{array.itemsize}")
        for name, array in arrays.items()
    }
    buffers = {name: memory.allocate(array, name) for name, array in plain.items()}
    given = [np.int64(value) if isinstance(value, int) else value for value in arguments]
    passed = [buffers[value] if isinstance(value, str) else value for value in given]
    passed = [value(buffers) if callable(value) else value for value in passed]
    execute(program(source, entry, dtype), grid, block, passed, memory)
    return {name: buffer.array() for name, buffer in buffers.items()}


KEY = 0x123456789ABCDEF


def mixed(place: np.ndarray, key: int) -> np.ndarray:
    """The finalizer of splitmix64, by its definition."""
    with np.errstate(over="ignore"):
        bits = np.uint64(key) + (place.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def hidden(reference: np.ndarray) -> np.ndarray:
    return reference.view(np.uint64) ^ mixed(np.arange(len(reference)), KEY)


FLOATS = (*RUN_TYPES, "e5m2")


def held(bound: ErrorBound, *, exact: bool = False):
    """What elements are held against, as an argument: `expected`, and `magnitude` if there is one."""

    def packed(buffers: dict) -> bytes:
        places = [buffers[name].address if name in buffers else 0 for name in ("expected", "magnitude")]
        bounds = (bound.relative, bound.absolute, bound.largest, bound.rounding)
        return struct.pack("QQddddQi4x", *places, *bounds, KEY, exact)

    return packed


def compared(dtype: str, got, expected, bound: ErrorBound, magnitude=None) -> tuple[float, float, int, int]:
    """Largest absolute and relative error, number of wrong elements, and the first; of hidden references."""
    result = np.array([0, 0, 0, 2**64 - 1], np.uint64)
    arrays = {"got": got, "expected": hidden(expected), "result": result}
    if magnitude is not None:
        arrays["magnitude"] = hidden(magnitude)
    arguments = [len(got), "got", held(bound, exact=expected.dtype == np.int64), "result"]
    raw = run(None, "compare", dtype, arrays, arguments)["result"]
    largest, relative = raw[:2].view(np.float64)
    return float(largest), float(relative), int(raw[2]), int(raw[3])


#: Whether each element has a magnitude of its own, and what is rounded.
BOUNDS = [*product((True, False), (0.0, 2.0**-8))]


@pytest.mark.parametrize(
    ("dtype", "whole", "rounding"),
    # How a type is read has to do with neither: one type with all bounds, and the others with one each.
    [*((FLOATS[0], *bound) for bound in BOUNDS), *((d, *b) for d, b in zip(FLOATS[1:], cycle(BOUNDS)))],
)
def test_comparison_on_the_device_is_that_on_the_host(dtype, whole, rounding):
    rng = np.random.default_rng(3)
    bound = ErrorBound(0.01, 1e-6, largest(dtype), rounding)
    expected = rng.standard_normal(700)
    expected[:6] = [bound.largest, -bound.largest, np.inf, -np.inf, 0.0, 1.0]
    magnitude = np.abs(expected) * rng.choice([0.5, 1.0, 3.0], 700)
    magnitude[10], magnitude[2:4] = 0.0, np.inf
    beyond = {place: np.copysign(np.inf, expected[place]) for place in (300, 699)}
    changes = ({}, {7: np.nan}, {0: np.inf}, beyond, {300: -beyond[300]}, {2: -np.inf}, {4: 9e-7})
    for errors in (0.0, 0.009, 0.011, 1.0):
        with np.errstate(all="ignore"):
            got = rounded(expected * (1 + errors * rng.random(700)), dtype)
        for wrong in changes if errors == 0.009 else changes[:2]:
            changed = got.copy()
            for place, value in wrong.items():
                changed[place] = value
            sizes = magnitude if whole else np.ones(1)
            said = compare(changed, expected, sizes, bound)
            found = compared(dtype, changed, expected, bound, magnitude if whole else None)
            first = int(said.wrong.argmax()) if said.wrong.any() else 2**64 - 1
            assert found[2:] == (int(said.wrong.sum()), first)
            np.testing.assert_allclose(found[:2], (said.max_abs_error, said.max_rel_error), rtol=1e-14)


def test_integers_on_the_device_are_told_apart_as_on_the_host():
    rng = np.random.default_rng(4)
    expected = rng.integers(-(2**31), 2**31, 500)
    exact = ErrorBound(0.0, 0.0, 0.0)
    for places in ([], [0], [499, 3], list(range(100, 200))):
        got = expected.astype(np.int32)
        got[places] -= 3
        said = compare(got, expected, np.ones(1), exact)
        largest, _, wrong, first = compared("i32", got, expected, exact)
        assert (largest, wrong) == (said.max_abs_error, len(places))
        assert first == (min(places) if places else 2**64 - 1)
    near = np.array([2**62, 2**62 + 1])
    assert compared("i64", near, near[::-1].copy(), exact) == (1.0, 1.0, 2, 0)


@pytest.mark.parametrize("size", [4, 1000, 1003])
def test_checksum_shows_any_changed_word_and_any_exchange(size):
    data = np.random.default_rng(5).integers(0, 256, size).astype(np.uint8)

    def checksum(content: np.ndarray, key: int = KEY) -> int:
        arrays = {"data": content, "result": np.zeros(1, np.uint64)}
        return int(run(None, "checksum", "f32", arrays, [size, "data", key, "result"])["result"][0])

    assert checksum(data) == checksum(data)
    assert checksum(data) != checksum(data, KEY + 1)
    for place in {0, size // 2, size - 1}:
        changed = data.copy()
        changed[place] ^= 1
        assert checksum(changed) != checksum(data)
    exchanged = data.copy()
    exchanged[[0, 1]] = data[[1, 0]] + np.uint8(data[0] == data[1])
    assert checksum(exchanged) != checksum(data)


def test_references_are_hidden_and_shown_again():
    values = np.random.default_rng(8).standard_normal(500)
    once = run(None, "hide", "f32", {"data": values}, [500, "data", KEY])["data"]
    assert (once.view(np.uint64) == hidden(values)).all()
    assert not np.isin(once, values).any()
    assert (run(None, "hide", "f32", {"data": once}, [500, "data", KEY])["data"] == values).all()
    assert (run(None, "hide", "f32", {"data": values}, [500, "data", 0])["data"] == values).all()


TYPES = (*FLOATS, "i32", "u8")


def result_of(dtype: str, elements: int):
    """A right output, with zeros in it, and its reference in 64 bits."""
    rng = np.random.default_rng(12)
    if dtype in FLOATS:
        values = rounded(rng.standard_normal(elements) * (rng.random(elements) > 0.1), dtype)
        return values, values.astype(np.float64)
    values = rng.integers(0, 200, elements).astype(f"{dtype[0]}{int(dtype[1:]) // 8}")
    return values, values.astype(np.int64)


def wrong_after(dtype: str, got, expected, picks: int, secret: int) -> int:
    """How many of the picked elements of an output are not right."""
    arrays = {
        **{
            "got": got,
            "expected": hidden(expected),
            "magnitude": hidden(np.abs(expected).astype(np.float64)),
        },
        "wrong": np.zeros(1, np.uint64),
    }
    bound = ErrorBound(0.01, 1e-6, largest(dtype) if dtype in FLOATS else 0.0)
    arguments = [len(got), "got", held(bound, exact=dtype not in FLOATS), picks, secret, "wrong"]
    return int(run(None, "compare_picked", dtype, arrays, arguments)["wrong"][0])


@pytest.mark.parametrize(
    ("dtype", "elements", "picks"),
    [*((dtype, 2000, 100) for dtype in TYPES), ("f32", 300, 300), ("bf16", 300, 1000), ("u8", 300, 1000)],
)
def test_spoiled_elements_are_wrong_and_look_like_results(dtype, elements, picks):
    right, expected = result_of(dtype, elements)
    assert wrong_after(dtype, right, expected, picks, 77) == 0
    spoiled = run(None, "spoil", dtype, {"data": right}, [elements, "data", picks, 77])["data"].view(
        right.dtype
    )
    changed = spoiled != right
    assert changed.sum() == min(elements, picks)
    assert wrong_after(dtype, spoiled, expected, picks, 77) == min(elements, picks)
    values = spoiled.astype(np.float64)
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 2 * np.abs(right.astype(np.float64)).max() + 1
    if elements > picks:  # another launch has others
        other = run(None, "spoil", dtype, {"data": right}, [elements, "data", picks, 78])["data"]
        assert ((other.view(right.dtype) != right) != changed).any()


@pytest.mark.parametrize("nbytes", [1, 127, 5000])
def test_demoting_lines_changes_nothing(nbytes):
    data = np.random.default_rng(2).integers(0, 256, nbytes).astype(np.uint8)
    assert (run(None, "demote", "f32", {"data": data}, [nbytes, "data"])["data"] == data).all()


def test_scribbling_fills_as_much_shared_memory_as_a_block_has():
    """One word more is beyond it."""
    for words, fits in ((1000, True), (1001, False)):
        arguments = [np.int32(words), np.int64(77)]
        task = (
            program(None, "scribble_shared", "f32"),
            (2, 1, 1),
            (64, 1, 1),
            arguments,
            GlobalMemory(),
            8000,
        )
        if fits:
            execute(*task)
        else:
            with pytest.raises(KernelFault):
                execute(*task)


@pytest.mark.parametrize("nbytes", [16, 35, 1000])
def test_buffers_are_exchanged_to_the_last_byte(nbytes):
    one, other = np.random.default_rng(1).integers(0, 256, (2, nbytes)).astype(np.uint8)
    after = run(None, "exchange", "f32", {"one": one, "other": other}, [nbytes, "one", "other"])
    assert (after["one"] == other).all()
    assert (after["other"] == one).all()


GEMMS = [
    Gemm(5, 3, 7),
    Gemm(70, 130, 33, alpha=2.0, beta=0.5),
    Gemm(70, 130, 33, layout="col", alpha=-0.3, beta=0.7),
    Gemm(65, 64, 16, "f64", beta=-1.0),
]
NARROW = [
    *(Gemm(33, 70, 19, dtype, "tn", 0.5, -2.0) for dtype in ("f16", "bf16", "tf32", "e4m3")),
    *(Transpose(9, 14, dtype) for dtype in ("f16", "bf16", "e4m3")),
]


@pytest.mark.parametrize(
    "problem",
    [*GEMMS, *NARROW, Transpose(33, 70), Transpose(33, 70, result="copy"), Transpose(5, 3, "f64")],
    ids=problem_id,
)
def test_references_on_the_device_are_those_of_numpy(problem):
    reference, inputs = problem.device_reference(), problem.inputs(6)
    (output,) = (spec.name for spec in problem.outputs)
    expected = problem.reference(inputs)[output]
    elements = problem.array(output).elements
    arrays = {**inputs, f"expected {output}": np.full(elements, np.nan)}
    if reference.has_magnitude:
        arrays[f"magnitude {output}"] = np.full(elements, np.nan)
    arguments = []
    for argument in reference.arguments:
        if isinstance(argument, Pointer):
            # What holds nothing at first has no address.
            name = argument.array.removeprefix("initial ")
            arguments.append(name if name in arrays else 0)
        else:
            arguments.append(argument)
    code = (reference.source, reference.entry, problem.dtype)
    found = run(*code, arrays, arguments, reference.grid, reference.block)
    # Sums of so few products are off by at most some roundoffs of a double.
    np.testing.assert_allclose(found[f"expected {output}"], expected.values, rtol=1e-12, atol=1e-13)
    if reference.has_magnitude:
        np.testing.assert_allclose(found[f"magnitude {output}"], expected.magnitude, rtol=1e-12)


def cublas_gemm(memory, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """C = alpha op(A) op(B) + beta C, column-major, as cuBLAS documents it."""
    rows = lambda trans, plain, turned: turned if trans else plain  # noqa: E731
    left = matrix(memory[a.array], lda, k if not trans_a else m)[: rows(trans_a, m, k)]
    right = matrix(memory[b.array], ldb, n if not trans_b else k)[: rows(trans_b, k, n)]
    product = (left.T if trans_a else left) @ (right.T if trans_b else right)
    target = matrix(memory[c.array], ldc, n)[:m]
    target[...] = alpha.value * product + (beta.value * target if beta.value else 0)


def cublas_geam(memory, trans_a, trans_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc):
    """C = alpha op(A) + beta op(B), column-major, as cuBLAS documents it."""
    left = matrix(memory[a.array], lda, m if trans_a else n)
    total = alpha.value * (left[:n].T if trans_a else left[:m])
    if beta.value:
        right = matrix(memory[b.array], ldb, m if trans_b else n)
        total = total + beta.value * (right[:n].T if trans_b else right[:m])
    matrix(memory[c.array], ldc, n)[:m] = total


def matrix(flat: np.ndarray, leading: int, columns: int) -> np.ndarray:
    """A column-major matrix in a flat array; changes go through."""
    assert flat.size == leading * columns
    return flat.reshape(columns, leading).T


@pytest.mark.parametrize(
    "problem", [*GEMMS, *NARROW[:4], Gemm(3, 5, 2, layout="col"), Transpose(33, 70)], ids=problem_id
)
def test_library_is_called_for_what_numpy_computes(problem):
    (output,) = (spec.name for spec in problem.outputs)
    inputs = problem.inputs(7)
    expected = problem.reference(inputs)[output].values
    references = [each for each in problem.operation.references if each.computes_in(problem.dtype)]
    assert len(references) > 1
    for declared in references:
        memory = {name: array.astype(np.float64) for name, array in inputs.items()}
        memory.setdefault(output, np.full(len(expected), np.nan))
        if declared.on_host:
            found = problem.host_call(declared.id, inputs)()
        elif declared.library:
            call = problem.library_call(declared.id)
            letter = {"f32": "S", "f64": "D"}.get(problem.dtype, "LtMatmul")
            name = call.function.removeprefix(f"cublas{letter}").removesuffix("_v2") or "gemm"
            assert all(isinstance(argument, int | Pointer | HostReal) for argument in call.arguments)
            {"gemm": cublas_gemm, "geam": cublas_geam}[name](memory, *call.arguments)
            found = memory[output]
        else:
            continue
        room = 2 * ELEMENT_TYPES[problem.dtype].roundoff if declared.on_host else 0
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-4 + room, atol=1e-4)
