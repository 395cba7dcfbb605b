# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What an operation declares of itself: dimensions, arrays, scalars, work, and how its results are checked.

Data only, so that it can travel, be stored with results and be read without NumPy. What it means for sizes
and values is the business of `problems.problem`.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct

Role = Literal["in", "out", "inout"]
Rate = Literal["flops", "bytes"]
ScalarType = Literal["real", "sum", "f16", "bf16", "f32", "f64", "i32", "i64", "u32", "u64"]


def shape_of(names: Sequence[str]) -> str:
    """How a size of these dimensions is typed: `MxNxK`, or `<rows>x<columns>` where names are words."""
    letters = all(len(name) == 1 for name in names)
    return "x".join(name.upper() if letters else f"<{name}>" for name in names)


class ArrayDeclaration(Struct, frozen=True):
    """One array.

    Args:
        shape: Formulas of its extents, the fastest varying last; of a coded operation they may be the shape
            for its first options.
        role: Whether kernels read it, write it, or both.
        dtype: Element type; `real` is the run's, `result` that of what it computes.
        read_if: Of one that kernels read and write, the formula of dimensions and scalars that is 0 where
            they must not read it; empty where they always may.
        unread: Why not, as the rest of a sentence after `though`.
    """

    shape: tuple[str, ...]
    role: Role = "in"
    dtype: str = "real"
    read_if: str = ""
    unread: str = ""


class ScalarDeclaration(Struct, frozen=True):
    """One number that kernels take besides the sizes; an option of the command line.

    Args:
        type: `real` is the run's element type, `sum` that of its sums.
        default: Its value unless another is asked for.
        neutral: The value that a kernel stands for which does not take it; None where each must.
    """

    type: ScalarType = "real"
    default: float = 1.0
    neutral: float | None = None
    help: str = ""


class OptionDeclaration(Struct, frozen=True):
    """One way in which kernels of an operation may differ in what they compute; a header names it.

    Args:
        values: Each value with its words for a heading, or with none where it goes without saying.
        default: The value of a header that says nothing.
        ceiling: The value whose kernels do less than the operation, and so bound what it can reach.
    """

    values: Mapping[str, str]
    default: str
    ceiling: str = ""


class Work(Struct, frozen=True):
    """What the operation needs, as formulas of dimensions, scalars, `real_bytes` and `result_bytes`.

    Args:
        bytes: Fewest bytes that must cross device memory: inputs read once, outputs written once.
        rate: Which of the two a case is rated by.
    """

    flops: str
    bytes: str
    rate: Rate


class Check(Struct, frozen=True):
    """How one output is held against its reference.

    Args:
        value: Array formula of the expected result; empty for a coded operation's own.
        magnitude: Array formula of what an element's error is measured by; empty for the size of its value.
        relative: Formula of the error allowed, as a share of the magnitude.
        absolute: Formula of the error allowed besides.
        accumulate: Type that sums are kept in, of which `u` and `tiny` in those formulas are where it is
            wider than the output's, whose own rounding is allowed besides; empty for the output's.
        unordered: Whether elements may stand in any order within a row; of an output of one dimension the
            formula may give fewer than it holds, and what stands behind so many is anything.
        together: Other such outputs of one dimension whose elements stand where those belonging to them do.
    """

    value: str = ""
    magnitude: str = ""
    relative: str = "0"
    absolute: str = "0"
    accumulate: str = ""
    unordered: bool = False
    together: tuple[str, ...] = ()


class ReferenceDeclaration(Struct, frozen=True):
    """Something else that computes the operation, to compare kernels with.

    Args:
        id: Its name in a results file.
        idea: What to know about it.
        library: What computes it, for its version to be recorded: `cublas`, `cublasLt`, `numpy`, `torch`, or
            empty for the driver.
        options: The operation's options that it computes with, where they are not the defaults.
        dtypes: Types of a run that it computes in; empty for all.
        function: Of `torch`, one of `torch.nn.functional`, whose result is the operation's only output.
        arguments: Arrays that it takes, in order.
        keywords: What it takes by name: scalars.
    """

    id: str
    title: str
    idea: str
    on_host: bool = False
    library: str = ""
    options: Mapping[str, str] = {}
    dtypes: tuple[str, ...] = ()
    function: str = ""
    arguments: tuple[str, ...] = ()
    keywords: Mapping[str, str] = {}

    def computes_in(self, dtype: str) -> bool:
        """Whether it is called in runs of a type."""
        return not self.dtypes or dtype in self.dtypes


class DeviceReferenceDeclaration(Struct, frozen=True):
    """Device code that computes what the checks say, where NumPy would take minutes.

    Args:
        source: CUDA C++ of one function.
        block: Threads in x, y, z.
        grid: Formulas of the grid's x, y and z, of dimensions.
        arguments: Dimensions and integers (`long long`), other scalars (`double`), arrays, and of each output
            `expected NAME` and `magnitude NAME` (`double *`).
    """

    source: str
    entry: str
    block: tuple[int, int, int]
    grid: tuple[str, str, str]
    arguments: tuple[str, ...]


class Operation(Struct, frozen=True, dict=True):
    """What is computed, apart from its size.

    Args:
        name: What users type.
        dimensions: Names of its sizes, in the order in which users type them.
        default_sizes: Sizes that run when none are asked for, as typed.
        arrays: By name, in the order in which kernels' headers usually list them.
        inputs: Formula of each array's first content, by the array's name.
        work: What it needs.
        checks: How outputs are checked, by the array's name.
        ceiling_checks: The same for kernels that only bound the others; empty where they compute the same.
        parts: Array formulas that checks, and later parts, use by their names.
        independent: First dimensions of every array along which nothing depends on anything else: formulas
            are evaluated for one of them at a time.
        rows: Arrays of which a row of an output, along the dimension behind those, needs that row alone:
            formulas may see some rows of them, whose numbers are `row`.
        device_reference: What computes the references on a GPU; None for the formulas.
        references: What else computes it.
        help: One sentence for the command line.
        coded: Name of the class in `problems` that says what a declaration cannot; empty for none.
    """

    name: str
    title: str
    dimensions: tuple[str, ...]
    default_sizes: str
    arrays: Mapping[str, ArrayDeclaration]
    scalars: Mapping[str, ScalarDeclaration]
    options: Mapping[str, OptionDeclaration]
    inputs: Mapping[str, str]
    work: Work
    checks: Mapping[str, Check]
    ceiling_checks: Mapping[str, Check] = {}
    parts: Mapping[str, str] = {}
    independent: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    device_reference: DeviceReferenceDeclaration | None = None
    references: tuple[ReferenceDeclaration, ...] = ()
    help: str = ""
    coded: str = ""

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        return (*self.dimensions, *self.scalars, *self.arrays)

    @property
    def shape(self) -> str:
        return shape_of(self.dimensions)

    def __hash__(self) -> int:
        return hash((self.name, self.dimensions))
