# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An operation made of the arguments of one call: what a kernel gets, and what it must make of it."""

import math
import sys
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct

from gpuprof.errors import InputError, asked, foreign
from gpuprof.operation import ArrayDeclaration, Check, Operation, ScalarDeclaration, ScalarType, Work
from gpuprof.problems.coded import GIVEN
from gpuprof.problems.dtypes import ELEMENT_TYPES, RUN_TYPES, integer_range, numpy_dtype
from gpuprof.problems.formulas import ExpressionError, evaluate_real, variables
from gpuprof.problems.given import keep
from gpuprof.problems.references import Array

#: Of the error that an output may have unless the caller says: so many roundoffs of an element's size, and as
#: many of the mean size. A few dozen operations on numbers of one sign stay below it, long sums may not.
DEFAULT_ROUNDOFFS = 32
#: Largest integer up to which a double, as results files keep scalars, holds all of them.
_EXACT = 2**53
_NARROW: Mapping[str, ScalarType] = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}

#: An array, anything that gives one, a number; None for an output that starts poisoned.
Argument = Any
#: The expected array, a function of all arguments that returns it, or None: an output that may hold anything.
Expectation = Any | Callable[[Mapping[str, Any]], Any]
#: One figure for every output, or one for each by name.
Tolerance = float | Mapping[str, float] | None


class Call(Struct, frozen=True):
    """One computation, told by its arguments.

    Args:
        lists: Arrays of addresses, with whose they are.
        compound: Of arrays of complex numbers and of structs the elements, which are their last axis here.
    """

    operation: Operation
    sizes: tuple[int, ...]
    dtype: str
    scalars: Mapping[str, float]
    integers: Mapping[str, int]
    lists: Mapping[str, tuple[str, ...]] = {}
    compound: "Mapping[str, np.dtype[Any]]" = {}


def read_call(
    name: str,
    arguments: Mapping[str, Argument],
    expected: Mapping[str, Expectation],
    folder: Path,
    *,
    relative: Tolerance = None,
    absolute: Tolerance = None,
    flops: int | str | None = None,
    nbytes: int | str | None = None,
) -> Call:
    """Make an operation of what a program calls a kernel with.

    Integers that are an extent or a product of extents are sizes, others scalars. An array that is expected
    is an output: it starts as it was given, or poisoned where it was given as None. All others are inputs.

    Args:
        arguments: Values by the names of the kernel's arguments, in their order.
        expected: What outputs must hold, by name; None of one that may hold anything.
        relative: Error allowed, as a share of an element's size.
        flops: Floating-point operations that the computation needs: a number or a formula of the sizes.
        nbytes: Fewest bytes that must move; every array once when None.

    Raises:
        InputError: An argument is neither array nor number, an expected one does not fit, or a name is none.
    """
    if all(each is None for each in expected.values()):
        raise InputError("Nothing is expected of the kernel.", fix='Name an output: expect={"y": …}.')
    _check_names(arguments, expected)
    converted = {key: _converted(key, value) for key, value in arguments.items() if value is not None}
    numbers = {key: value for key, value in converted.items() if isinstance(value, int | float)}
    given = {key: value for key, value in converted.items() if not isinstance(value, int | float)}
    wanted = _wanted(expected, {**numbers, **given})
    arrays = {key: _plain(array) for key, array in given.items()}
    results = {key: _result(key, array, arrays.get(key)) for key, array in wanted.items()}
    results |= {key: arrays[key] for key in expected if key not in wanted}
    kinds = {key: array.dtype.newbyteorder("=") for key, array in {**wanted, **given}.items()}
    compound = {key: kind for key, kind in kinds.items() if _is_compound(kind)}
    held = {key: arrays[key] if key in arrays else results[key] for key in arguments if key not in numbers}
    counts = {key: n for key, n in numbers.items() if not isinstance(arguments[key], bool | np.bool_)}
    sizes = _sizes_of(counts, held, results)
    scalars = {key: number for key, number in numbers.items() if key not in sizes}
    total = sum(array.nbytes for array in held.values())
    operation = Operation(
        name=name,
        title=name,
        dimensions=tuple(sizes),
        default_sizes="x".join(map(str, sizes.values())),
        arrays={
            key: ArrayDeclaration(
                shape=tuple(map(str, array.shape)),
                role="in" if key not in results else "out" if key not in arrays else "inout",
                dtype=element_type(key, array.dtype),
            )
            for key, array in held.items()
        },
        scalars={key: _scalar(key, number, arguments[key]) for key, number in scalars.items()},
        options={},
        inputs={key: keep(array, folder) for key, array in arrays.items()},
        work=Work(
            flops=_formula("flops", 0 if flops is None else flops, sizes),
            bytes=_formula("bytes", total if nbytes is None else nbytes, sizes),
            rate="bytes" if flops is None else "flops",
        ),
        checks={
            key: _check(key, held[key], values, folder, relative, absolute)
            if key in wanted
            else Check(value=keep(np.zeros(0), folder), unordered=True)
            for key, values in results.items()
        },
        coded=GIVEN,
    )
    integers = {key: number for key, number in numbers.items() if isinstance(number, int)} | sizes
    return Call(operation, tuple(sizes.values()), _run_type(held), scalars, integers, compound=compound)


def element_type(name: str, dtype: "np.dtype[Any]") -> str:
    """The element type of an array, by the name that headers and results use."""
    for key, kind in ELEMENT_TYPES.items():
        if kind.numpy == dtype.name:
            return key
    if dtype.names:
        raise InputError(
            f"{name} holds structs.",
            fix="Give an array of them as bytes, .view(numpy.uint8); of one that is passed by value each"
            ' member, and arguments=["y", "{first, second}"].',
        )
    known = ", ".join(dict.fromkeys(kind.numpy for kind in ELEMENT_TYPES.values()))
    raise InputError(f"{name} holds {dtype.name}.", fix=f"Convert it to one of {known}.")


def _check_names(arguments: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name in arguments:
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
            raise InputError(f"{name!r} is not an argument name.", fix="Use letters, digits and _.")
    for name in expected:
        if name not in arguments:
            raise InputError(
                f"{name!r} is expected, and is not an argument.", fix=f"Expect one of {', '.join(arguments)}."
            )
    for name, value in arguments.items():
        if value is None and expected.get(name) is None:
            raise InputError(
                f"{name} is None, and nothing is expected of it.",
                fix="Give it a value; a null pointer is 0.",
            )


def _converted(name: str, value: Any) -> Array | int | float:
    """An argument as an array in C order, or as a number of Python's."""
    if isinstance(value, (Integral, np.bool_)):
        return int(value)
    if isinstance(value, (Real, np.floating)):
        return float(value)
    array = _array(name, value)
    if array.ndim == 0 and array.dtype.kind in "biuf":
        return _converted(name, array[()])
    if array.ndim == 0:
        element_type(name, array.dtype)  # one of ml_dtypes', or refused
        return float(array[()])
    if not array.size:
        raise InputError(f"{name} is an empty array.", fix="Give it at least one element.")
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        raise InputError(
            f"{name} lies in memory column by column, and kernels get arrays row by row.",
            fix=f"Give {name}.T for its memory as it is, or numpy.ascontiguousarray({name}) to move it.",
        )
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _is_compound(dtype: "np.dtype[Any]") -> bool:
    """Whether its elements are complex numbers, or structs that a kernel can read."""
    return dtype.kind == "c" or (dtype.names is not None and not dtype.hasobject)


def _plain(array: Array) -> Array:
    """Complex numbers as pairs of a last axis, and structs as bytes of one."""
    if not array.ndim or not _is_compound(array.dtype):
        return array
    kind = array.real.dtype if array.dtype.kind == "c" else np.uint8
    return np.ascontiguousarray(array).view(kind).reshape(*array.shape, -1)


#: Types of PyTorch's of which NumPy knows nothing.
_TORCHS = {f"torch.{one.numpy}": kind for kind, one in ELEMENT_TYPES.items() if one.of_ml_dtypes}


def _array(name: str, value: Any) -> Array:
    if isinstance(value, np.ndarray):
        return value
    try:
        kind = _TORCHS.get(str(getattr(value, "dtype", "")))
        if kind is not None:
            bits = getattr(sys.modules["torch"], f"int{8 * ELEMENT_TYPES[kind].nbytes}")
            return np.asarray(value.view(bits)).view(numpy_dtype(kind))
        if hasattr(value, "__array__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        first = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(
            f"{name} cannot be read as an array: {foreign(first)}.",
            fix="Arrays are copied from the host: an array of a GPU has a method for that, cpu() or get().",
        ) from error
    raise InputError(
        f"{name} is a {type(value).__name__}: neither a number nor an array.",
        fix="Give a number, a NumPy array, or something with __array__ or __dlpack__.",
    )


def _wanted(expected: Mapping[str, Expectation], given: Mapping[str, Any]) -> dict[str, Array]:
    """What outputs must hold; functions that tell it must leave the arguments as they are."""
    views = {key: value.view() for key, value in given.items() if isinstance(value, np.ndarray)}
    for view in views.values():
        view.flags.writeable = False
    values = MappingProxyType({**given, **views})
    return {
        key: _array(key, asked(key, each, values) if callable(each) else each)
        for key, each in expected.items()
        if each is not None
    }


def _result(name: str, wanted: Array, given: Array | None) -> Array:
    """What an output must hold: of the shape of the output, and without a NaN."""
    result = wanted if wanted.dtype.names else _plain(wanted)
    if result.dtype.kind not in "biufV" or result.dtype.names:
        element_type(f"What is expected of {name}", result.dtype)
    if result.dtype == np.bool_:
        result = result.astype(np.uint8)
    if given is None:
        element_type(name, result.dtype)
    elif result.shape != given.shape:
        raise InputError(
            f"{name} has the shape {given.shape}; what is expected of it has the shape {result.shape}.",
            fix="Give both the same shape.",
        )
    elif given.dtype.kind in "iu" and not _holds(given.dtype, result):
        raise InputError(f"What is expected of {name} is nothing that {given.dtype.name} holds.")
    if not result.size or not result.ndim:
        raise InputError(f"What is expected of {name} is not an array.", fix="Give it at least one element.")
    if np.isnan(result).any():
        first = ", ".join(map(str, np.argwhere(np.isnan(result))[0]))
        raise InputError(
            f"What is expected of {name} holds NaN, which no result of a kernel equals.",
            fix=f"Choose inputs that have a result there: {name}[{first}] is the first.",
        )
    if given is not None and given.dtype.kind in "iu":
        result = result.astype(given.dtype)
    return np.ascontiguousarray(result, result.dtype.newbyteorder("="))


def _holds(dtype: "np.dtype[Any]", values: Array) -> bool:
    """Whether a type of integers holds every value."""
    least, most = integer_range(element_type("", dtype))
    low, high = values.min(), values.max()
    if values.dtype.kind == "f":
        whole = np.isfinite(values).all() and (values == np.trunc(values)).all()
        return bool(whole) and least <= float(low) and float(high) <= most
    return least <= int(low) and int(high) <= most


def _sizes_of(
    numbers: Mapping[str, int | float], arrays: Mapping[str, Array], results: Mapping[str, Array]
) -> dict[str, int]:
    """The sizes of a computation: integers that measure an array, else the extents of the first output."""
    extents = {
        math.prod(array.shape[begin:end])
        for array in arrays.values()
        for begin in range(array.ndim)
        for end in range(begin + 1, array.ndim + 1)
    }
    sizes = {key: number for key, number in numbers.items() if isinstance(number, int) and number in extents}
    first = next(iter(results.values()))
    return sizes or {f"shape_{axis}": extent for axis, extent in enumerate(first.shape)}


def _scalar(name: str, number: int | float, given: Any) -> ScalarDeclaration:
    """A number as it is declared: as narrow as holds it, so that it fits whatever the kernel takes it as."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise InputError(f"{name} = {number} is not a finite number.")
        dtype = str(getattr(given, "dtype", "")).removeprefix("torch.")
        return ScalarDeclaration(_NARROW.get(dtype, "f64"), number)
    if abs(number) > _EXACT:
        raise InputError(f"{name} = {number} is too large.", fix=f"Integers go up to {_EXACT}.")
    kinds: tuple[ScalarType, ...] = ("i32", "u32", "i64")
    kind = next(kind for kind in kinds if integer_range(kind)[0] <= number <= integer_range(kind)[1])
    return ScalarDeclaration(kind, float(number))


def _formula(name: str, given: int | str, sizes: Mapping[str, int]) -> str:
    text = str(given)
    try:
        for unknown in sorted(variables(text, "reals") - {*sizes, "real_bytes", "result_bytes"}):
            raise ExpressionError(f"{unknown!r} is not a size; those are {', '.join(sizes)}")
        if evaluate_real(text, {**sizes, "real_bytes": 1, "result_bytes": 1}) < 0:
            raise ExpressionError("it is negative")
    except ExpressionError as error:
        raise InputError(f"{name} = {text} cannot be used: {error}.") from error
    return text


def _storable(values: Array) -> Array:
    """The same numbers in a type that a file of NumPy's keeps: it forgets those of `ml_dtypes`."""
    return values if values.dtype.isbuiltin != 2 else values.astype(np.float32)


def _check(
    name: str, given: Array, values: Array, folder: Path, relative: Tolerance, absolute: Tolerance
) -> Check:
    """How an output is held against what is expected of it."""
    wanted = _tolerance("relative", relative, name), _tolerance("absolute", absolute, name)
    roundoff = ELEMENT_TYPES[element_type(name, given.dtype)].roundoff
    if wanted == (None, None) and roundoff:
        finite = np.isfinite(values)
        mean = float(np.abs(values).mean(dtype=np.float64, where=finite)) if finite.any() else 0.0
        # So many roundoffs of 8 bits would let everything pass.
        error = roundoff * (DEFAULT_ROUNDOFFS if roundoff <= 2**-8 else 2)
        wanted = error, error * mean
    share, offset = (repr(float(error or 0.0)) if error else "0" for error in wanted)
    return Check(value=keep(_storable(values), folder), relative=share, absolute=offset)


def _tolerance(word: str, given: Tolerance, output: str) -> float | None:
    error = given.get(output) if isinstance(given, Mapping) else given
    if error is None:
        return None
    if not isinstance(error, Real) or not math.isfinite(error) or error < 0:
        raise InputError(f"{word} = {error!r} is not an error of {output}.", fix="Give a number, 0 or more.")
    return float(error)


def _run_type(arrays: Mapping[str, Array]) -> str:
    """The element type that stands for `real`, and whose peak counts: of the first array that has such."""
    types = (element_type(name, array.dtype) for name, array in arrays.items())
    return next((kind for kind in types if kind in RUN_TYPES), "f32")
