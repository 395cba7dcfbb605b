# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A problem's arrays on the device: clean before a launch, and looked at behind it."""

import ctypes
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any

import numpy as np

from gpuprof import timeline
from gpuprof.backends.arguments import Argument
from gpuprof.backends.gpu import ahead
from gpuprof.backends.gpu.context import (
    POISON,
    Arguments,
    DeviceBuffer,
    DeviceCode,
    GpuContext,
    queue_copy,
    settle_device,
)
from gpuprof.backends.gpu.device_code import compiled_code
from gpuprof.backends.gpu.expected_outputs import REFERENCE_BYTES, ExpectedOutputs
from gpuprof.backends.gpu.fresh_inputs import CodeFor, FreshInputs
from gpuprof.backends.gpu.opaque_arguments import CaseTextures, encode_tensor_map
from gpuprof.backends.gpu.timer import Around, Launch
from gpuprof.backends.verification import worst
from gpuprof.errors import CaseFailure
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.kernels.texture import Texture
from gpuprof.problems.dtypes import numpy_dtype, unwritten_byte
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.problems.references import Array
from gpuprof.records import replace
from gpuprof.results import Verification

_HANDLE = ctypes.c_uint64
#: Problems that keep their arrays while another one's kernels are measured (a ladder has kernels for matrices
#: by rows and by columns, and a library takes either), where that one takes no more of the free memory.
_MOST_KEPT = 1
_MEMORY_SHARE = 0.125


class ProblemArrays:
    """Device arrays of one problem, kept while its kernels are measured one after the other."""

    def __init__(
        self,
        code_for: CodeFor,
        problem: Problem,
        seed: int,
        free_bytes: Callable[[], int],
        *,
        others: bool = False,
    ) -> None:
        self.problem = problem
        self._free_bytes = free_bytes
        self._code_for = code_for
        self._seed = seed
        #: Hides references and makes checksums: no kernel knows it.
        self._key = secrets.randbits(63) | 1
        self._fresh = self._fresh_inputs()
        if others:
            self.begin_others()
        with timeline.span("inputs", problem.label):
            host = ahead.result(type(problem).inputs, problem, seed)
        self._buffers = {spec.name: DeviceBuffer(spec.nbytes) for spec in problem.arrays}
        #: What arrays that are read and written held before any kernel ran.
        self._initial = {spec.name: DeviceBuffer(spec.nbytes) for spec in problem.outputs if spec.is_read}
        for name, array in host.items():
            self._initial.get(name, self._buffers[name]).upload(array)
        self._workspace: dict[str, DeviceBuffer] = {}
        #: Those of it that hold addresses.
        self._tables: dict[str, ArraySpec] = {}
        self._textures = CaseTextures((), self.address)
        self._inputs = [spec.name for spec in problem.arrays if not spec.is_output]
        self.expected = ExpectedOutputs(code_for, problem, self._key, self._buffers, self._initial)
        start = perf_counter()
        with timeline.span("reference", problem.label):
            self.expected.make(host)
        self._reference_seconds = perf_counter() - start
        self._changed: Callable[[], None] | None = None
        self._checksums = {name: self._checksum(self._buffers[name]) for name in self._inputs}
        self._of_references = self._reference_checksums()

    @staticmethod
    def device_bytes(problem: Problem) -> int:
        """Device memory that the arrays of a problem take, reference included."""
        reference = problem.device_reference()
        columns = 2 if reference is None or reference.has_magnitude else 1
        total = problem.array_bytes
        for spec in problem.outputs:
            total += columns * REFERENCE_BYTES * spec.elements
            total += spec.nbytes if spec.is_read else 0
        return total

    @property
    def reads_output(self) -> bool:
        """Whether an output holds something before a kernel runs."""
        return bool(self._initial)

    def make_workspace(self, specs: Sequence[ArraySpec]) -> None:
        """Give the arrays of another kernel back, and make those of this one."""
        while self._workspace:
            self._workspace.popitem()[1].free()
        for spec in specs:
            self._workspace[spec.name] = DeviceBuffer(spec.nbytes, unwritten_byte(spec.dtype))
        self._tables = {spec.name: spec for spec in specs if spec.addresses}

    def make_textures(self, textures: Sequence[Texture]) -> None:
        self._textures.free()
        self._textures = CaseTextures((), self.address)
        self._textures = CaseTextures(textures, self.address)

    @property
    def workspace(self) -> tuple[DeviceBuffer, ...]:
        """Arrays of the kernel that it may write."""
        return tuple(buffer for name, buffer in self._workspace.items() if name not in self._tables)

    @property
    def given(self) -> tuple[DeviceBuffer, ...]:
        return (*self._buffers.values(), *self._workspace.values())

    @property
    def in_cuda_arrays(self) -> frozenset[str]:
        """Arrays for which CUDA arrays stand while the kernel runs."""
        return self._textures.arrays

    def address(self, name: str) -> int:
        """Where an array starts on the device, be it the problem's or the kernel's own."""
        return (self._workspace.get(name) or self._buffers[name]).address

    def content(self, name: str) -> bytes:
        """What an array holds before a kernel runs."""
        spec = self.problem.array(name)
        if not spec.is_read:
            return bytes([POISON]) * spec.nbytes
        buffer = self._initial.get(name) or self._buffers[name]
        return bytes(buffer.held(spec).tobytes())

    def follow_inputs(self, changed: Callable[[], None] | None) -> None:
        """Say what is to be done where the inputs become others; None for nothing."""
        self._changed = changed

    def buffer(self, name: str) -> DeviceBuffer:
        return self._buffers[name]

    def arguments(self, bound: Sequence[Argument]) -> Arguments:
        packed: list[Any] = []
        for argument in bound:
            match argument:
                case TensorMap(array=array):
                    packed.append(encode_tensor_map(argument, self.address(array)))
                case Texture(argument=name):
                    packed.append(_HANDLE(self._textures.handle(name)))
                case _:
                    content = argument.packed(self.address)
                    packed.append((ctypes.c_ubyte * len(content)).from_buffer_copy(content))
        return Arguments(packed)

    def prepare(self, unread: float | None = None) -> None:
        """Make all as if no kernel had run: inputs, guards, and the rest poisoned or as it was.

        Outputs that kernels must not read, though they may for other scalars, hold `unread`; None for poison.
        """
        self._mend()
        for buffer in self.given:
            buffer.poison_guards()
        for buffer in self.workspace:
            buffer.fill(buffer.poison)
        for name, spec in self._tables.items():
            self._workspace[name].upload(spec.table(self.address))
        for spec in self.problem.outputs:
            if spec.is_read:
                self._buffers[spec.name].copy_from(self._initial[spec.name])
            elif spec.unread and unread is not None:
                self._buffers[spec.name].upload(np.full(spec.elements, unread, numpy_dtype(spec.dtype)))
            else:
                self._buffers[spec.name].fill(POISON)
        self._textures.fill()

    def _mend(self) -> None:
        """Put inputs and references back where a kernel wrote to them."""
        broken = self._reference_checksums() != self._of_references
        if not broken and self.inputs_intact():
            return
        host = self.problem.inputs(self._seed)
        for name in self._inputs:
            self._buffers[name].upload(host[name])
        if broken:
            for name, initial in self._initial.items():
                initial.upload(host[name])
            self.expected.make(host)

    def outputs(self) -> dict[str, Array]:
        self._textures.drain()
        return {spec.name: self._buffers[spec.name].held(spec) for spec in self.problem.outputs}

    def verify(self) -> Verification:
        """Compare the outputs, element by element, with their references."""
        self._textures.drain()
        verification = worst([self.expected.compare(spec) for spec in self.problem.outputs])
        if verification.passed and (detail := self._check_surroundings()):
            return replace(verification, detail=detail, array="")
        return verification

    def inputs_intact(self) -> bool:
        """Whether no kernel wrote to the inputs since they were uploaded."""
        return all(self._checksum(self._buffers[name]) == self._checksums[name] for name in self._inputs)

    def restore(self, name: str, stream: Any) -> None:
        """Queue that an array that is read and written holds again what it held before any kernel ran."""
        buffer = self._buffers[name]
        queue_copy(buffer.address, self._initial[name].address, buffer.nbytes, stream)

    def begin_others(self) -> None:
        """Begin to make other inputs, which `other_inputs` will want."""
        self._fresh.begin()

    @contextmanager
    def other_inputs(self, settle: Callable[[], None]) -> Iterator[str]:
        """Hold other inputs at the same addresses meanwhile; outputs keep what they hold.

        Yields:
            Why there are none; empty where there are.
        """
        with timeline.span("other inputs", self.problem.label):
            missing = self._fresh.make_ready(self._free_bytes(), self._reference_seconds)
        if missing:
            yield missing
            return
        settle()
        self._exchange()
        for name, initial in self._initial.items():
            self._buffers[name].copy_from(initial)
        self._textures.fill()
        try:
            yield ""
        except BaseException:
            with suppress(CaseFailure):
                self._fresh.free()
            self._fresh = self._fresh_inputs()
            raise
        self._exchange()

    def _exchange(self) -> None:
        self._fresh.queue_exchange(self._held)
        settle_device()
        if self._changed is not None:
            self._changed()

    def first_before_others(self, launch: Launch, launches: int, stream: Any) -> Around | None:
        """A case with the first inputs before one with others that stand in their place.

        None where the host has to follow the inputs, with variables of a module or CUDA arrays.
        """
        if self._changed is not None or self.in_cuda_arrays:
            return None

        def exchange() -> None:
            self._fresh.queue_exchange(self._held)
            for name in self._initial:
                self.restore(name, stream)

        def before() -> None:
            exchange()
            launch()
            exchange()

        exchanges = 2 * (len(self._held) + len(self._initial))
        return Around(launches + exchanges, before, lambda: None)

    @property
    def _held(self) -> dict[str, DeviceBuffer]:
        """What differs with other inputs."""
        return {name: self._buffers[name] for name in self._inputs} | self._initial

    def renew_others(self) -> None:
        """Let the other inputs be ones of yet another seed from now on."""
        self._fresh.free()
        self._fresh = self._fresh_inputs()

    def _fresh_inputs(self) -> FreshInputs:
        return FreshInputs(self._code_for, self.problem, self._checksum)

    def verify_others(self) -> Verification:
        """Compare some elements of each output with what follows from the other inputs."""
        self._textures.drain()
        found = worst([self._fresh.compare(spec, self._buffers) for spec in self.problem.outputs])
        if found.passed and self._fresh.written_to(self._held):
            return replace(found, detail="the kernel wrote to one of its inputs")
        return found

    def free(self) -> None:
        self._textures.free()
        self._fresh.free()
        self.expected.free()
        for held in (self._buffers, self._workspace, self._initial):
            for buffer in held.values():
                buffer.free()

    def _check_surroundings(self) -> str:
        for name, buffer in {**self._buffers, **self._workspace}.items():
            if place := buffer.overrun():
                return f"the kernel wrote {place} of {name}"
        if not self.inputs_intact():
            return "the kernel wrote to one of its inputs"
        if self._reference_checksums() != self._of_references:
            return "the kernel wrote to memory that it was not given"
        return ""

    def _reference_checksums(self) -> list[int]:
        """Of what results are held against, and of the old content of arrays."""
        return [self._checksum(buffer) for buffer in (*self.expected.buffers, *self._initial.values())]

    def _checksum(self, buffer: DeviceBuffer) -> int:
        return self._code_for("f32", None).checksum(buffer, self._key)


class ArrayKeeper:
    """The arrays of the last problems, and the device functions that they need."""

    def __init__(self, context: GpuContext, arch: str, seed: int) -> None:
        self._context = context
        self._arch = arch
        self._seed = seed
        self._coming: list[Problem] = []
        self._code: dict[tuple[str, str | None], DeviceCode] = {}
        self._kept: dict[Problem, ProblemArrays] = {}

    def code(self, dtype: str, source: str | None = None) -> DeviceCode:
        """Device functions for an element type, of a source or the measuring side's own."""
        key = (dtype, source)
        if key not in self._code:
            self._code[key] = DeviceCode(self._context, self._arch, dtype, source)
        return self._code[key]

    def foresee(self, problems: Sequence[Problem]) -> None:
        """Begin to compile what these problems need, in that order, and to make the inputs of the first."""
        self._coming = list(problems)
        for problem in problems:
            needed: list[tuple[str, str | None]] = [(spec.dtype, None) for spec in problem.outputs]
            if (reference := problem.device_reference()) is not None:
                needed.append((problem.dtype, reference.source))
            for text in needed:
                if text not in self._code:
                    ahead.begin(compiled_code, self._arch, *text)
        self._begin_next(None)

    def _begin_next(self, problem: Problem | None) -> None:
        """Begin to make the inputs of the problem that comes behind one, where the host has room for them."""
        behind = self._coming.index(problem) + 1 if problem in self._coming else 0
        for coming in self._coming[behind : behind + 1]:
            ahead.begin_inputs(type(coming).inputs, coming, self._seed)

    def of(self, problem: Problem) -> ProblemArrays:
        """The arrays of a problem; where room is scarce those of others are given back first."""
        arrays = self._kept.pop(problem, None)
        if arrays is None:
            room = _MEMORY_SHARE * self._context.free_bytes()
            self.forget(_MOST_KEPT if ProblemArrays.device_bytes(problem) <= room else 0)
            with timeline.span("arrays", problem.label):
                arrays = ProblemArrays(
                    *(self.code, problem, self._seed, self._context.free_bytes),
                    others=problem in self._coming,
                )
            self._begin_next(problem)
        self._kept[problem] = arrays
        return arrays

    def forget(self, most: int = 0) -> None:
        """Give device memory back until no more problems than so many have some."""
        while len(self._kept) > most:
            self._kept.pop(next(iter(self._kept))).free()
