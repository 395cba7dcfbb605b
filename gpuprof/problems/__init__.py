# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is computed: each problem with its sizes, inputs, reference and work model. No CUDA here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """The names of one problem family that kernel headers may use.

    Args:
        name: `gemm` or `transpose`.
        dimension_names: Sizes, for header expressions.
        argument_names: What a kernel may take as arguments.
        array_names: Which of those are arrays.
    """

    name: str
    dimension_names: tuple[str, ...]
    argument_names: tuple[str, ...]
    array_names: tuple[str, ...]


OPERATIONS: dict[str, Operation] = {
    "gemm": Operation(
        "gemm", ("M", "N", "K"), ("M", "N", "K", "alpha", "A", "B", "beta", "C"), ("A", "B", "C")
    ),
    "transpose": Operation("transpose", ("nx", "ny"), ("nx", "ny", "in", "out"), ("in", "out")),
}
