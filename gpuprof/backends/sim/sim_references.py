# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Hold what the executed blocks wrote against the problem's references."""

from collections.abc import Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.verification import compare_output, compare_without_order, worst
from gpuprof.executor import Buffer, Kept
from gpuprof.problems.dtypes import is_float, numpy_dtype, rounded
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array, Expected
from gpuprof.results import Verification

#: Elements whose references are kept for the next kernel that is sampled in the same places.
_KEPT_ELEMENTS = 1 << 21


class References:
    """The references of one problem, computed when they are first needed and kept for its other kernels."""

    def __init__(self, problem: Problem, inputs: Mapping[str, Array]) -> None:
        self.problem = problem
        self.inputs = inputs
        self._whole: dict[str, Expected] | None = None
        #: Those of some elements, by output and elements: kernels of one tile shape are sampled alike.
        self._some: Kept[Expected | None] = Kept(_KEPT_ELEMENTS, lambda one: len(one.values) if one else 0)

    def verify(self, buffers: Mapping[str, Buffer], *, whole: bool) -> Verification:
        """Compare every output.

        If not `whole`, only the elements that were written are looked at.
        """
        return worst([self._verify(spec, buffers, whole) for spec in self.problem.outputs])

    def expected(self, output: str, element: int, *, whole: bool) -> Any:
        """What one element of an output must be; `whole` as for `verify`, whose reference it then is."""
        spec = self.problem.array(output)
        if whole:
            return self._expected(spec, np.arange(spec.elements), whole).values[element]
        return self._expected(spec, np.array([element]), whole).values[0]

    def result(self, spec: ArraySpec) -> Array:
        """An output as a kernel should leave it, rounded to its type."""
        values = self._expected(spec, np.arange(spec.elements), whole=True).values
        values = np.pad(values, (0, spec.elements - len(values)))
        with np.errstate(over="ignore"):
            return (
                rounded(values, spec.dtype)
                if is_float(spec.dtype)
                else values.astype(numpy_dtype(spec.dtype))
            )

    def _verify(self, spec: ArraySpec, buffers: Mapping[str, Buffer], whole: bool) -> Verification:
        buffer = buffers[spec.name]
        written = buffer.written_mask()
        indices = np.arange(spec.elements) if whole else np.flatnonzero(written)
        if not len(indices):
            bound, detail = self.problem.bound(spec.name), f"the sampled blocks wrote nothing to {spec.name}"
            return Verification(None, None, bound.relative, 0, detail=detail)
        # What nobody wrote is wrong, whatever happens to be there.
        missing = None if spec.is_read else ~written
        if self.problem.checks[spec.name].unordered:
            every = self._expected(spec, indices, whole=True)
            return compare_without_order(
                self.problem, spec, lambda one: buffers[one.name].array(), every, missing
            )
        expected = self._expected(spec, indices, whole)
        got = buffer.array() if whole else buffer.array()[indices]
        if not whole:
            return compare_output(self.problem, spec, got, expected, indices)
        return compare_output(self.problem, spec, got, expected, unwritten=~written, missing=missing)

    def _expected(self, spec: ArraySpec, indices: NDArray[np.intp], whole: bool) -> Expected:
        if not whole and self._whole is None:
            key = spec.name, blake2b(indices.tobytes()).digest()
            reference = partial(self.problem.reference_at, self.inputs, spec.name, indices)
            if (some := self._some.of(key, reference)) is not None:
                return some
        if self._whole is None:
            self._whole = self.problem.reference(self.inputs)
        expected = self._whole[spec.name]
        return expected if whole else expected.at(indices)
