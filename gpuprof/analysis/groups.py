# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cases belong side by side: one group per operation, element type and device, one slice per size."""

from msgspec import Struct

from gpuprof.operation import Operation
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.records import grouped
from gpuprof.results import KernelRecord, Measurement, ProblemRecord, Run


class SizeSlice(Struct, frozen=True):
    """All cases of one group at one size; the problem is that of the first, and its work that of all."""

    label: str
    problem: ProblemRecord
    cases: tuple[Measurement, ...]
    device: int = 0
    device_label: str = ""

    @property
    def heading(self) -> str:
        """The size, and the device where the run has several."""
        return ", ".join(filter(None, (self.label, self.device_label)))


class Group(Struct, frozen=True):
    """Cases that compute the same thing at one or more sizes, from least to most data moved, on one device.

    Scalars and variants are in words; the device's label is empty where the run has no other.
    """

    operation: Operation
    dtype: str
    scalars: str
    variants: tuple[str, ...]
    sizes: tuple[SizeSlice, ...]
    device: int = 0
    device_label: str = ""

    @property
    def rate_is_flops(self) -> bool:
        """True where GFLOP/s is the headline rate, and not GB/s."""
        return self.operation.work.rate == "flops"

    @property
    def title(self) -> str:
        """For example `GEMM, float32, row-major and column-major`."""
        known = (ELEMENT_TYPES.get(dtype) for dtype in self._dtypes)
        types = [one.name if one else dtype for one, dtype in zip(known, self._dtypes, strict=True)]
        parts = (self.operation.title, " and ".join(types), " and ".join(self.variants), self.device_label)
        return ", ".join(filter(None, parts))

    @property
    def short(self) -> str:
        """For example `GEMM f32`."""
        return " ".join((self.operation.title, *self._dtypes))

    @property
    def _dtypes(self) -> tuple[str, ...]:
        """What it computes with: the run's element type, or its arrays' where nothing of it is the run's."""
        arrays = [array.dtype for array in self.operation.arrays.values()]
        types = [*arrays, *(scalar.type for scalar in self.operation.scalars.values())]
        return (self.dtype,) if not arrays or "real" in types else tuple(dict.fromkeys(arrays))


def groups(run: Run) -> tuple[Group, ...]:
    """A run's cases by operation, element type, scalars and device, in the order first met.

    Kernels of different options share a group: they do the same work and differ in how. The groups of one
    problem stand together, a ladder a card.
    """
    return tuple(
        _group(run, key, device, cases)
        for key, alike in grouped(run.cases, _kind_of).items()
        for device, cases in grouped(alike, lambda case: case.device).items()
    )


def _kind_of(case: Measurement) -> tuple[str, str, str]:
    scalars = ", ".join(f"{name} = {value:g}" for name, value in case.problem.scalars.items())
    return case.problem.operation, case.problem.dtype, scalars


def _group(run: Run, key: tuple[str, str, str], device: int, cases: list[Measurement]) -> Group:
    name, dtype, scalars = key
    label = run.device_label(device) if len(run.devices) > 1 else ""
    operation = run.operations[name]
    words = (
        option.values.get(case.problem.options.get(option_name, option.default), "")
        for case in cases
        for option_name, option in operation.options.items()
    )
    return Group(
        operation=operation,
        dtype=dtype,
        scalars=scalars,
        variants=tuple(dict.fromkeys(filter(None, words))),
        sizes=_slices(cases, label),
        device=device,
        device_label=label,
    )


def kernel_record(run: Run, kernel_id: str) -> KernelRecord:
    """The record of a kernel, or an empty one where the file holds none, so that its cases still show."""
    try:
        return run.kernel(kernel_id)
    except KeyError:
        operation = next((case.problem.operation for case in run.cases if case.kernel == kernel_id), "")
        return KernelRecord.without_source(kernel_id, operation, float("inf"))


def name_of(run: Run, kernel: KernelRecord) -> str:
    """A reference's title without the operation's, which every kernel of a ladder computes; else the id."""
    operation = run.operations.get(kernel.operation)
    if not kernel.is_reference or operation is None:
        return kernel.id
    return kernel.title.removesuffix(f" {operation.title}") or kernel.id


def _slices(cases: list[Measurement], device_label: str) -> tuple[SizeSlice, ...]:
    slices = [
        SizeSlice(label, held[0].problem, tuple(held), held[0].device, device_label)
        for label, held in grouped(cases, lambda case: case.problem.label).items()
    ]
    return tuple(sorted(slices, key=lambda item: (item.problem.flops, item.problem.min_bytes)))
