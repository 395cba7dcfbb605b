# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cases belong side by side: one group per problem family and element type, one slice per size."""

from dataclasses import dataclass

from gpuprof.problems.gemm import Gemm
from gpuprof.problems.transpose import Transpose
from gpuprof.results import KernelRecord, Measurement, Run


@dataclass(frozen=True, slots=True)
class SizeSlice:
    """All cases of one group at one size.

    Args:
        label: The size as a user types it.
        problem: The problem of the first case; its work is that of every case here.
        cases: In the order measured.
    """

    label: str
    problem: Gemm | Transpose
    cases: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that compute the same thing at one or more sizes.

    Args:
        op: `gemm` or `transpose`.
        dtype: `f32` or `f64`.
        scalars: Alpha and beta in words, empty where they do not exist.
        layouts: Storage orders that occur, in the order met.
        sizes: From least to most data moved.
    """

    op: str
    dtype: str
    scalars: str
    layouts: tuple[str, ...]
    sizes: tuple[SizeSlice, ...]

    @property
    def rate_is_flops(self) -> bool:
        """True where GFLOP/s is the headline rate; a transpose computes nothing, so GB/s is."""
        return self.op == "gemm"


def groups(run: Run) -> tuple[Group, ...]:
    """A run's cases by problem family, element type and scalars, in the order first met.

    Row- and column-major kernels share a group: they do the same work and differ in how they store it.
    """
    buckets: dict[tuple[str, str, str], list[Measurement]] = {}
    for case in run.cases:
        key = (case.problem.op, case.problem.dtype, _scalars(case.problem))
        buckets.setdefault(key, []).append(case)
    return tuple(
        Group(
            op=op,
            dtype=dtype,
            scalars=scalars,
            layouts=tuple(dict.fromkeys(case.problem.layout for case in cases)),
            sizes=_slices(cases),
        )
        for (op, dtype, scalars), cases in buckets.items()
    )


def kernel_record(run: Run, kernel_id: str) -> KernelRecord:
    """The record of a kernel, or an empty one where the file holds none, so that its cases still show."""
    try:
        return run.kernel(kernel_id)
    except KeyError:
        op = next((case.problem.op for case in run.cases if case.kernel == kernel_id), "")
        return KernelRecord(
            id=kernel_id,
            op=op,
            title="",
            rung=float("inf"),
            idea="",
            change="",
            bottleneck="",
            study="",
            aliases=(),
            reference="",
            source="",
            source_hash="",
            file_name="",
        )


def format_extent(extent: tuple[int, int, int]) -> str:
    """A block or grid as users write it: `8x32`, with z only when it is not 1."""
    return "x".join(map(str, extent if extent[2] != 1 else extent[:2]))


def _slices(cases: list[Measurement]) -> tuple[SizeSlice, ...]:
    by_label: dict[str, list[Measurement]] = {}
    for case in cases:
        by_label.setdefault(case.problem.label, []).append(case)
    slices = [SizeSlice(label, held[0].problem, tuple(held)) for label, held in by_label.items()]
    return tuple(sorted(slices, key=lambda item: (item.problem.flops, item.problem.min_bytes)))


def _scalars(problem: Gemm | Transpose) -> str:
    if isinstance(problem, Gemm):
        return f"alpha = {problem.alpha:g}, beta = {problem.beta:g}"
    return ""
