# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Arrays that a program gives: files named by their content, which any process of a run finds again.

An operation whose arrays were given says so by their digests, so that it travels and is stored like any
other, and two results files tell whether they were measured with the same arrays. The arrays themselves lie
in a folder for as long as the run lasts.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.errors import InputError, reason
from gpuprof.problems.dtypes import ELEMENT_TYPES, numpy_dtype
from gpuprof.problems.problem import Problem
from gpuprof.problems.references import Array, Expected

_PREFIX = "given sha256:"
_folder = Path()


def look_in(folder: str) -> None:
    """Say where this process finds the arrays of its run."""
    global _folder
    _folder = Path(folder)


def keep(array: Array, folder: Path) -> str:
    """Store an array.

    Returns:
        How an operation names it.
    """
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    name = digest.hexdigest()
    path = folder / f"{name}.npy"
    if not path.exists():
        try:
            # Its files forget the types of `ml_dtypes`, if they take them.
            known = array.dtype.isbuiltin != 2
            np.save(path, array if known else array.view(f"V{array.itemsize}"), allow_pickle=False)
        except OSError as error:
            raise InputError(
                f"There is no room for {array.nbytes} bytes of arguments in {folder}: {reason(error)}.",
                fix="Name another place for temporary files in the environment variable TMPDIR.",
            ) from error
    return _PREFIX + name


class GivenProblem(Problem):
    """An operation whose inputs and results are arrays that a program gave."""

    def inputs(self, seed: int) -> dict[str, Array]:
        return {
            spec.name: _load(self.operation.inputs[spec.name]).reshape(-1).view(numpy_dtype(spec.dtype))
            for spec in self.arrays
            if spec.is_read
        }

    def reference(self, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        return {spec.name: _expected(self, spec.name, ...) for spec in self.outputs}

    def reference_at(
        self, inputs: Mapping[str, Array], output: str, indices: NDArray[np.intp]
    ) -> Expected | None:
        """Some elements of a result that was given: the others need not be read."""
        return None if self.checks[output].unordered else _expected(self, output, indices)


def _expected(problem: Problem, output: str, indices: Any) -> Expected:
    """Elements of an output as they must be."""
    values = _load(problem.operation.checks[output].value).reshape(-1)[indices]
    dtype = problem.array(output).dtype
    values = values.astype(np.float64 if ELEMENT_TYPES[dtype].roundoff else numpy_dtype(dtype))
    return Expected(values, np.abs(values).astype(np.float64))


def _load(name: str) -> Array:
    """An array, mapped from its file: what a kernel never asks for is never read."""
    array: Array = np.load(_folder / f"{name.removeprefix(_PREFIX)}.npy", mmap_mode="r", allow_pickle=False)
    return array
