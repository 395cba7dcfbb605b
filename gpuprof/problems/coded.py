# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The operations that need more than a declaration: where their code stands, loaded when needed."""

from msgspec import Struct


class Code(Struct, frozen=True):
    """Where the code of an operation stands, and the names that it knows."""

    module: str
    name: str
    dimensions: tuple[str, ...]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


#: By the name that a declaration's `coded` gives.
CODED = {
    "gemm": Code(
        *("gpuprof.problems.gemm", "GemmProblem"),
        dimensions=("M", "N", "K"),
        arrays=("A", "B", "C"),
        scalars=("alpha", "beta"),
        options=("layout",),
    ),
    "transpose": Code(
        *("gpuprof.problems.transpose", "TransposeProblem"),
        dimensions=("nx", "ny"),
        arrays=("in", "out"),
        options=("result",),
    ),
}

#: What `coded` says of an operation that a program made of arrays, and no declaration may say.
GIVEN = "given"
OF_GIVEN = Code("gpuprof.problems.given", "GivenProblem", (), ())
