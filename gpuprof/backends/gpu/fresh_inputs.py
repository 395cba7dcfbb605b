# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Other inputs of a problem: a kernel that remembers a result, or was given it, is wrong with them."""

import ctypes
import secrets
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from gpuprof.backends.gpu import ahead
from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, DeviceCode
from gpuprof.backends.verification import compare_output, compare_without_order
from gpuprof.errors import CaseFailure
from gpuprof.machine import memory_limited
from gpuprof.problems.dtypes import numpy_dtype
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array, Expected
from gpuprof.records import replace
from gpuprof.results import Verification

#: Elements of an output that are looked at; each is read by itself, and a GEMM's cost a row and a column.
_PICKS = 256
#: An output that is copied whole in less time than its elements that are looked at.
_FEW_BYTES = 1 << 20
#: Part of the free device memory that other inputs may take: a kernel's workspace has to find room too.
_MEMORY_SHARE = 0.25
#: Longest that the references of the first inputs may have taken the host for others to be computed.
_SECONDS = 20.0
_NO_ROOM = "Not tried with other inputs: the device has no room for them"

#: Some elements of an output, and what belongs there; None where only all of the reference tells.
Picks = tuple[NDArray[np.intp], Expected | None]
#: Device functions for an element type, of a source or of the measuring side's own.
CodeFor = Callable[[str, str | None], DeviceCode]


class FreshInputs:
    """Inputs of another seed, kept on the device to be exchanged with a problem's own."""

    def __init__(self, code_for: CodeFor, problem: Problem, checksum: Callable[[DeviceBuffer], int]) -> None:
        self._problem = problem
        self._code_for = code_for
        self._checksum = checksum
        #: Nobody knows it before the run, and whoever wants to see what went wrong may ask for it.
        self._seed = secrets.randbits(31)
        self._buffers: dict[str, DeviceBuffer] = {}
        self._checksums: dict[str, int] = {}
        self._picks: dict[str, tuple[NDArray[np.intp], Expected]] = {}
        self._missing: str | None = None

    def begin(self) -> None:
        """Begin to make the inputs, unless they are there."""
        if self._missing is None:
            ahead.begin_inputs(with_picks, self._problem, self._seed)

    def make_ready(self, free_bytes: int, reference_seconds: float) -> str:
        """Make inputs and references, unless they are there.

        Returns:
            Why there are none; empty where there are.
        """
        if not self._intact(self._buffers):
            self.free()
            self._missing = None
        if self._missing is None:
            self._missing = self._make(free_bytes, reference_seconds)
        return self._missing

    def queue_exchange(self, held: Mapping[str, DeviceBuffer]) -> None:
        for name, buffer in self._buffers.items():
            arguments = Arguments([ctypes.c_longlong(buffer.nbytes), held[name], buffer])
            self._code_for("f32", None).queue("exchange", arguments)

    def written_to(self, held: Mapping[str, DeviceBuffer]) -> bool:
        """Whether a kernel wrote to one of them while they were exchanged."""
        return not self._intact({name: held[name] for name in self._buffers})

    def compare(self, spec: ArraySpec, buffers: Mapping[str, DeviceBuffer]) -> Verification:
        """Compare some elements of an output that was computed from them."""
        got = buffers[spec.name]
        indices, expected = self._picks[spec.name]
        dtype = numpy_dtype(spec.dtype)
        if self._problem.checks[spec.name].unordered:
            found = compare_without_order(
                self._problem, spec, lambda one: buffers[one.name].held(one), expected
            )
            return found if found.passed else replace(found, detail=self._with_others(found.detail))
        if spec.nbytes <= _FEW_BYTES:
            values = got.held(spec)[indices]
        else:
            values = np.concatenate([got.download(dtype, count=1, offset=int(place)) for place in indices])
        found = compare_output(self._problem, spec, values, expected, indices)
        if found.passed:
            return found
        # Its place is no place of a launch with the run's own inputs, which is the one that can be explained.
        return replace(found, detail=self._with_others(found.detail), array="", first_wrong=None)

    def _with_others(self, detail: str) -> str:
        return f"with other inputs (--seed {self._seed}) {detail}"

    def free(self) -> None:
        ahead.forget(with_picks, self._problem, self._seed)
        while self._buffers:
            self._buffers.popitem()[1].free()

    def _intact(self, buffers: Mapping[str, DeviceBuffer]) -> bool:
        return all(self._checksum(buffer) == self._checksums[name] for name, buffer in buffers.items())

    def _make(self, free_bytes: int, reference_seconds: float) -> str:
        read = [spec for spec in self._problem.arrays if spec.is_read]
        if sum(spec.nbytes for spec in read) > _MEMORY_SHARE * free_bytes:
            return _NO_ROOM
        inputs, picks = ahead.result(with_picks, self._problem, self._seed)
        whole: Mapping[str, Expected] | None = None
        for name, (indices, expected) in picks.items():
            if expected is None:
                if reference_seconds > _SECONDS:
                    return f"Not tried with other inputs: their reference takes more than {_SECONDS:g} s"
                with memory_limited():
                    whole = whole or self._problem.reference(inputs)
                expected = whole[name]
                if not self._problem.checks[name].unordered:
                    expected = expected.at(indices)
            self._picks[name] = indices, expected
        try:
            for spec in read:
                self._buffers[spec.name] = DeviceBuffer(spec.nbytes)
                self._buffers[spec.name].upload(inputs[spec.name])
                self._checksums[spec.name] = self._checksum(self._buffers[spec.name])
        except CaseFailure as error:
            if error.fatal:
                raise
            self.free()
            return _NO_ROOM
        return ""


def with_picks(problem: Problem, seed: int) -> tuple[Mapping[str, Array], dict[str, Picks]]:
    """Inputs of a problem, and some elements of each output, which differ each time."""
    inputs = problem.inputs(seed)
    picks: dict[str, Picks] = {}
    rng = np.random.default_rng()
    for spec in problem.outputs:
        indices = np.sort(rng.choice(spec.elements, min(_PICKS, spec.elements), replace=False))
        picks[spec.name] = indices, problem.reference_at(inputs, spec.name, indices)
    return inputs, picks
