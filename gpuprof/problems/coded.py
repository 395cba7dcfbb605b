# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The operations that need more than a declaration: where their code stands, loaded when needed."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from gpuprof.operation import Operation

if TYPE_CHECKING:
    from gpuprof.problems.behaviour import Behaviour


@dataclass(frozen=True, slots=True)
class Code:
    """Where the code of an operation stands, and the names that it knows."""

    module: str
    behaviour: str
    dimensions: tuple[str, ...]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


#: By the name that a declaration's `coded` gives.
CODED = {
    "gemm": Code(
        *("gpuprof.problems.gemm", "GemmBehaviour"),
        dimensions=("M", "N", "K"),
        arrays=("A", "B", "C"),
        scalars=("alpha", "beta"),
        options=("layout",),
    ),
    "transpose": Code(
        *("gpuprof.problems.transpose", "TransposeBehaviour"),
        dimensions=("nx", "ny"),
        arrays=("in", "out"),
        options=("result",),
    ),
}

#: What `coded` says of an operation that a program made of arrays, and no declaration may say.
GIVEN = "given"
_OF_GIVEN = Code("gpuprof.problems.given", "GivenBehaviour", (), ())


def behaviour_of(operation: Operation) -> "Behaviour":
    """What an operation's problems do."""
    return _behaviour(operation.coded)


@cache
def _behaviour(coded: str) -> "Behaviour":
    code = {**CODED, GIVEN: _OF_GIVEN}.get(coded)
    module = import_module(code.module if code else "gpuprof.problems.behaviour")
    behaviour: Behaviour = getattr(module, code.behaviour if code else "Behaviour")()
    return behaviour
