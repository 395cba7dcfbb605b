# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a header says of launches: `[launch]`, or `[[launches]]` in order, and the workspace between them."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from gpuprof.kernels.kernel import NO_LAUNCH, Launch, LaunchStep, Workspace
from gpuprof.operation import Operation
from gpuprof.problems.dtypes import ELEMENT_TYPES, OF_RUN, REAL
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.records import replace
from gpuprof.tables import TableReader, is_integer

T = TypeVar("T")

#: More launches than anybody writes down one by one; the driver queues a case's as a whole.
MOST_LAUNCHES = 64
#: What an array of addresses may be called to hold.
ADDRESS_TYPES = ("u64", "i64")
#: Fields of a header that say of one launch what each of several says of itself.
_OF_ONE_LAUNCH = ("launch", "entry", "arguments")


def read_launch(reader: TableReader, default: Launch | None = None) -> Launch:
    """The table `[launch]`; what it leaves out is as in `default`."""
    block = reader.take("block", list, list(default.block) if default else None)
    if not 1 <= len(block) <= 3 or not all(is_integer(extent) and 0 < extent < 2**31 for extent in block):
        raise reader.error(
            "block",
            f"must be one to three positive integers, not {block!r}",
            "A block of formulas stands in a [[launches]] table; one is enough."
            if any(isinstance(extent, str) for extent in block)
            else "",
        )
    base = default or NO_LAUNCH
    launch = Launch(
        block=_triple(block, 1),
        any_block=reader.take("any_block", bool, base.any_block),
        grid=_read_extents(reader, "grid", list(default.grid) if default else None),
        dynamic_shared_bytes=reader.formula("dynamic_shared_bytes", base.dynamic_shared_bytes),
        cooperative=reader.take("cooperative", bool, base.cooperative),
    )
    reader.finish()
    return launch


def read_launches(reader: TableReader) -> tuple[LaunchStep, ...]:
    """The tables `[[launches]]`; none where the header has one launch."""
    if "launches" not in reader:
        return ()
    refuse_one_launch(reader)
    steps = tuple(map(_read_step, reader.sections("launches")))
    if not 1 <= len(steps) <= MOST_LAUNCHES:
        raise reader.error("launches", f"has {len(steps)} entries, not 1 to {MOST_LAUNCHES}")
    return steps


def refuse_one_launch(reader: TableReader) -> None:
    """Refuse what says of one launch what each of several says of itself."""
    for name in _OF_ONE_LAUNCH:
        if name in reader:
            raise reader.error(name, "does not go with launches", fix="Each of the launches has its own.")


def _read_step(reader: TableReader) -> LaunchStep:
    step = LaunchStep(
        entry=reader.take("entry", str),
        arguments=reader.formulas("arguments"),
        block=_read_extents(reader, "block"),
        grid=_read_extents(reader, "grid"),
        dynamic_shared_bytes=reader.formula("dynamic_shared_bytes", "0"),
        cooperative=reader.take("cooperative", bool, False),
        repeat=reader.formula("repeat", "1"),
    )
    reader.finish()
    return step


def placeholder(reader: TableReader, steps: Sequence[LaunchStep], integers: Mapping[str, int]) -> Launch:
    """In the place of `[launch]` where there are several: the first one's block, which may not be chosen."""
    blocks = []
    for step in steps:
        try:
            blocks.append([evaluate(text, integers) for text in step.block])
        except ExpressionError as error:
            fix = "It may use parameters and constants."
            raise reader.error("launches.block", f"of {step.entry} has no value: {error}", fix) from error
        if min(blocks[-1]) < 1 or max(blocks[-1]) >= 2**31:
            raise reader.error("launches.block", f"of {step.entry} is {blocks[-1]}, not positive")
    return replace(NO_LAUNCH, block=_triple(blocks[0], 1))


def read_workspace(reader: TableReader, operation: Operation) -> Mapping[str, Workspace]:
    """The tables `[workspace.NAME]`."""
    arrays: dict[str, Workspace] = {}
    for name, entry in reader.named_sections("workspace"):
        if name in operation.argument_names:
            raise reader.error(f"workspace.{name}", f"is the name of something that {operation.name} has")
        addresses = entry.strings("addresses", [])
        for array in addresses:
            if array not in (*operation.arrays, *arrays):
                raise entry.error("addresses", f"names {array!r}, which is no array of {operation.name}")
        shape = entry.formulas("shape", [str(len(addresses))] if addresses else None)
        if not shape:
            raise entry.error("shape", "must be one or more formulas")
        kinds = ADDRESS_TYPES if addresses else (*OF_RUN, *ELEMENT_TYPES)
        dtype = entry.choice("dtype", kinds, ADDRESS_TYPES[0] if addresses else REAL)
        entry.finish()
        arrays[name] = Workspace(shape, dtype, addresses)
    return arrays


def _read_extents(reader: TableReader, key: str, default: list[str] | None = None) -> tuple[str, str, str]:
    extents = reader.formulas(key, default)
    if not 1 <= len(extents) <= 3:
        raise reader.error(key, f"must be one to three integers or formulas, not {list(extents)!r}")
    return _triple(extents, "1")


def _triple(values: Sequence[T], filler: T) -> tuple[T, T, T]:
    x, y, z = (*values, filler, filler)[:3]
    return x, y, z
