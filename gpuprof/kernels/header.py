# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The TOML header of a kernel file: its fields, their checks, and what they say of a launch.

The header is the first comment of a `.cu` file, opened by `/*gpuprof`. It is the one truth about a kernel:
its place in the ladder, how it is launched and which problems it takes.
"""

import hashlib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from gpuprof.copy_engine import SWIZZLES
from gpuprof.counter_table import COUNTERS
from gpuprof.errors import HeaderError
from gpuprof.kernels.expression import ExpressionError, variables
from gpuprof.kernels.tensor_map import TensorMapSpec
from gpuprof.ncu.metrics import BY_NAME
from gpuprof.problems import OPERATIONS
from gpuprof.problems.base import Dtype, Layout
from gpuprof.problems.transpose import Result

T = TypeVar("T")
#: What a figure does from one rung to the next, for the same problem.
Direction = Literal["falls", "rises", "stays"]

_HEADER = re.compile(r"\A\s*(?://[^\n]*\n\s*)*/\*gpuprof\b(?P<toml>.*?)\*/", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: Variables every header expression may use besides the problem's dimensions and the kernel's parameters.
LAUNCH_VARIABLES = ("block_x", "block_y", "block_z", "threads", "real_bytes", "sm_count", "arch")
#: Of these, what is known before a kernel is chosen.
CHOICE_VARIABLES = ("real_bytes", "sm_count", "arch")
#: What a header that chooses leaves to the chosen kernel's; what its own step moves depends on that too.
_OF_THE_CHOSEN = (
    *("arguments", "launch", "entry", "parameters", "tensor_maps", "require"),
    *("dtypes", "options", "moves", "after"),
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: What a launch occupies, which a step may move as well as a counter. `shared_bytes` is static and dynamic.
RESOURCES = (
    "registers_per_thread",
    "shared_bytes",
    "theoretical_occupancy_pct",
    "grid_blocks",
    "block_threads",
)
#: Every figure that a header's `moves` may name.
MOVABLE = (*COUNTERS, *RESOURCES, *(name for name in BY_NAME if name not in COUNTERS))
#: Template for the message of an unreadable header, so that a newcomer sees the smallest one that works.
_EXAMPLE = (
    'Start the file with:\n/*gpuprof\ntitle = "My kernel"\nproblem = "gemm"\n'
    'arguments = ["M", "N", "K", "alpha", "A", "B", "beta", "C"]\n[launch]\nblock = [32, 32]\n'
    'grid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]\n*/'
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on size, block or parameters, and the sentence shown when it does not hold."""

    condition: str
    because: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched.

    Args:
        block: Default block, threads in x, y, z.
        any_block: True when the block may be chosen freely within `requirements`.
        grid: Expressions for the grid's x, y and z.
        dynamic_shared_bytes: Expression for the dynamic shared memory of one block.
        cooperative: True when blocks wait for each other, so that all must be on the device at once.
    """

    block: tuple[int, int, int]
    any_block: bool
    grid: tuple[str, str, str]
    dynamic_shared_bytes: str
    cooperative: bool = False


#: In the place of a launch where the chosen kernel has one.
_NO_LAUNCH = Launch(block=(1, 1, 1), any_block=False, grid=("1", "1", "1"), dynamic_shared_bytes="0")


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel of the same ladder, and the condition under which it runs.

    Args:
        kernel: Its id.
        when: Expression over the problem's dimensions and `CHOICE_VARIABLES`.
    """

    kernel: str
    when: str


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """What a kernel's authors reported, on their GPU: context, never a target."""

    size: str
    time_ms: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel file: its header and its source.

    Args:
        moves: What the step to this kernel does to counters and resources, for the same problem.
        after: Id of the kernel that the step starts from; empty for whichever stands below it.
        tensor_maps: Arguments that are tensor maps, by name.
        choices: The kernels of which it runs the first whose condition holds; empty for a kernel with code of
            its own. With choices, `launch` is a placeholder, and entry, arguments and types are empty.
    """

    id: str
    path: Path
    source: str
    op: str
    title: str
    rung: float
    idea: str
    change: str
    bottleneck: str
    study: str
    reference: str
    aliases: tuple[str, ...]
    layout: Layout
    dtypes: tuple[Dtype, ...]
    entry: str
    arguments: tuple[str, ...]
    launch: Launch
    parameters: Mapping[str, int]
    requirements: tuple[Requirement, ...]
    published: tuple[PublishedFigure, ...]
    result: str | None = None
    options: tuple[str, ...] = field(default=())
    moves: Mapping[str, Direction] = field(default_factory=dict)
    after: str = ""
    tensor_maps: Mapping[str, TensorMapSpec] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()

    @property
    def source_hash(self) -> str:
        """SHA-256 of the whole file, header included, in hexadecimal."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def parse_kernel(source: str, path: Path) -> Kernel:
    """Read a kernel file's header.

    Args:
        source: The whole file.
        path: Where it stands; the kernel's id is the file's stem.

    Raises:
        HeaderError: The header is missing, is not TOML, or a field is missing, unknown or of the wrong type.
    """
    match = _HEADER.match(source)
    if match is None:
        raise HeaderError(f"{path} has no /*gpuprof … */ header at its top.", fix=_EXAMPLE)
    try:
        table = tomllib.loads(match["toml"])
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError: also a number of 5000 digits
        line = source[: match.start("toml")].count("\n") + 1
        raise HeaderError(f"{path}: the header that starts on line {line} is not TOML: {error}.") from error
    reader = _Reader(table, path)
    kernel = _read_kernel(reader, source, path)
    reader.finish()
    _check_expressions(kernel, path)
    if kernel.choices and _COMMENT.sub("", source[match.end() :]).strip():
        raise HeaderError(
            f"{path} has code below a header that chooses: it would never run.",
            fix="Put the code into a file of its own, or leave out choose.",
        )
    return kernel


class _Reader:
    """Takes typed fields out of a TOML table and remembers which are left."""

    def __init__(self, table: dict[str, Any], path: Path, name: str = "") -> None:
        self.table = dict(table)
        self.path = path
        self.name = name

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        if key not in self.table:
            if default is None:
                raise HeaderError(f"{self.path}: the header lacks {self.name}{key}.", fix=_EXAMPLE)
            return default
        value = self.table.pop(key)
        if kind is float and _is_integer(value) and abs(value) < 2**63:
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"must be a {kind.__name__}, not {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(key, f"must be a finite number, not {value}")
        return value

    def strings(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        values = self.take(key, list, default)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, f"must be a list of strings, not {values!r}")
        return tuple(values)

    def section(self, key: str, default: dict[str, Any] | None = None) -> "_Reader":
        return _Reader(self.take(key, dict, default), self.path, f"{self.name}{key}.")

    def sections(self, key: str) -> list["_Reader"]:
        entries = self.take(key, list, [])
        if not all(isinstance(entry, dict) for entry in entries):
            raise self.error(key, f"must be a list of tables, not {entries!r}")
        return [_Reader(entry, self.path, f"{self.name}{key}.") for entry in entries]

    def error(self, key: str, problem: str) -> HeaderError:
        return HeaderError(f"{self.path}: {self.name}{key} {problem}.")

    def finish(self) -> None:
        for key in self.table:
            raise HeaderError(f"{self.path}: the header has an unknown field {self.name}{key}.")


def _read_kernel(reader: _Reader, source: str, path: Path) -> Kernel:
    op = reader.take("problem", str)
    if op not in OPERATIONS:
        raise reader.error("problem", f"is {op!r}, not one of {', '.join(OPERATIONS)}")
    choices = _read_choices(reader)
    launch = _NO_LAUNCH if choices else _read_launch(reader.section("launch"))
    parameters = reader.take("parameters", dict, {})
    kernel = Kernel(
        id=path.stem,
        path=path,
        source=source,
        op=op,
        title=reader.take("title", str),
        rung=reader.take("rung", float, 1000.0),
        idea=reader.take("idea", str, ""),
        change=reader.take("change", str, ""),
        bottleneck=reader.take("bottleneck", str, ""),
        study=reader.take("study", str, ""),
        reference=reader.take("reference", str, ""),
        aliases=reader.strings("aliases", []),
        layout=reader.take("layout", str, "row"),
        dtypes=cast("tuple[Dtype, ...]", reader.strings("dtypes", [] if choices else ["f32"])),
        entry=reader.take("entry", str, "" if choices else path.stem),
        arguments=reader.strings("arguments", [] if choices else None),
        launch=launch,
        parameters=parameters,
        requirements=tuple(_read_requirement(entry) for entry in reader.sections("require")),
        published=tuple(_read_published(entry) for entry in reader.sections("published")),
        result=reader.take("result", str, "") or None,
        options=reader.strings("options", []),
        moves=_read_moves(reader),
        after=reader.take("after", str, ""),
        tensor_maps=_read_tensor_maps(reader.section("tensor_maps", {}), op),
        choices=choices,
    )
    known_arguments = (*OPERATIONS[op].argument_names, *kernel.tensor_maps)
    for argument in kernel.arguments:
        if argument not in known_arguments:
            raise reader.error("arguments", f"names {argument!r}, not one of {', '.join(known_arguments)}")
    if not choices and not _IDENTIFIER.match(kernel.entry):
        raise reader.error("entry", f"must be a C identifier, not {kernel.entry!r}")
    if not choices and not kernel.dtypes:
        raise reader.error("dtypes", "must name f32, f64 or both")
    for value in kernel.dtypes:
        if value not in ("f32", "f64"):
            raise reader.error("dtypes", f"has {value!r}, not f32 or f64")
    if kernel.layout not in ("row", "col"):
        raise reader.error("layout", f"must be row or col, not {kernel.layout!r}")
    if kernel.result is not None and (op != "transpose" or kernel.result not in get_args(Result)):
        raise reader.error(
            "result", f"is {kernel.result!r}; only a transpose kernel has one, copy or transpose"
        )
    if kernel.after == kernel.id:
        raise reader.error("after", f"is {kernel.after!r}, this kernel itself")
    for name, value in parameters.items():
        if not _IDENTIFIER.match(name) or not _is_integer(value):
            raise reader.error(f"parameters.{name}", f"must name an integer, not {value!r}")
    return kernel


def _read_launch(reader: _Reader) -> Launch:
    block = reader.take("block", list)
    if not 1 <= len(block) <= 3 or not all(_is_integer(extent) and extent > 0 for extent in block):
        raise reader.error("block", f"must be one to three positive integers, not {block!r}")
    grid = reader.strings("grid")
    if not 1 <= len(grid) <= 3:
        raise reader.error("grid", "must be one to three expressions")
    launch = Launch(
        block=_triple(block, 1),
        any_block=reader.take("any_block", bool, False),
        grid=_triple(grid, "1"),
        dynamic_shared_bytes=reader.take("dynamic_shared_bytes", str, "0"),
        cooperative=reader.take("cooperative", bool, False),
    )
    reader.finish()
    return launch


def _read_choices(reader: _Reader) -> tuple[Choice, ...]:
    if "choose" not in reader.table:
        return ()
    for name in _OF_THE_CHOSEN:
        if name in reader.table:
            raise reader.error(name, "does not go with choose: the chosen kernel brings its own")
    choices = []
    for entry in reader.sections("choose"):
        choices.append(Choice(entry.take("kernel", str), entry.take("when", str)))
        entry.finish()
    if not choices:
        raise reader.error("choose", "must name at least one kernel")
    return tuple(choices)


def _read_moves(reader: _Reader) -> Mapping[str, Direction]:
    moves = reader.take("moves", dict, {})
    words = get_args(Direction)
    for name, word in moves.items():
        if name not in MOVABLE:
            raise reader.error("moves", f"names {name!r}, not one of {', '.join(MOVABLE)}")
        if word not in words:
            raise reader.error(f"moves.{name}", f"is {word!r}, not one of {', '.join(words)}")
    return cast("Mapping[str, Direction]", moves)


def _read_tensor_maps(reader: _Reader, op: str) -> Mapping[str, TensorMapSpec]:
    maps = {}
    for name in list(reader.table):
        entry = reader.section(name)
        array, box = entry.take("array", str), entry.strings("box")
        arrays = OPERATIONS[op].array_names
        if array not in arrays:
            raise entry.error("array", f"is {array!r}, not one of {', '.join(arrays)}")
        if len(box) != 2:
            raise entry.error("box", "must be two expressions: elements along a row, then rows")
        swizzle = entry.take("swizzle_bytes", int, 0)
        if swizzle not in SWIZZLES:
            raise entry.error("swizzle_bytes", f"is {swizzle}, not one of {', '.join(map(str, SWIZZLES))}")
        entry.finish()
        maps[name] = TensorMapSpec(array, (box[0], box[1]), swizzle)
    return maps


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _triple(values: Sequence[T], filler: T) -> tuple[T, T, T]:
    x, y, z = (*values, filler, filler)[:3]
    return x, y, z


def _read_requirement(reader: _Reader) -> Requirement:
    requirement = Requirement(reader.take("condition", str), reader.take("because", str))
    reader.finish()
    return requirement


def _read_published(reader: _Reader) -> PublishedFigure:
    figure = PublishedFigure(
        size=reader.take("size", str),
        time_ms=reader.take("time_ms", float, 0.0) or None,
        note=reader.take("note", str, ""),
    )
    reader.finish()
    return figure


def _check_expressions(kernel: Kernel, path: Path) -> None:
    """Refuse an expression with an unknown name when the file is read, not when it is first launched."""
    first = CHOICE_VARIABLES if kernel.choices else LAUNCH_VARIABLES
    known = {*first, *OPERATIONS[kernel.op].dimension_names, *kernel.parameters}
    texts = [*kernel.launch.grid, kernel.launch.dynamic_shared_bytes]
    texts += [choice.when for choice in kernel.choices]
    texts += [requirement.condition for requirement in kernel.requirements]
    texts += [text for spec in kernel.tensor_maps.values() for text in spec.box]
    for text in texts:
        try:
            unknown = sorted(variables(text) - known)
        except ExpressionError as error:
            raise HeaderError(f"{path}: {error}.") from error
        if unknown:
            raise HeaderError(
                f"{path}: the expression {text!r} uses {unknown[0]!r}; known are {', '.join(sorted(known))}."
            )
