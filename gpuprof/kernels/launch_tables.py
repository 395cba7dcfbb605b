# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a header says of launches: `[launch]`, or `[[launches]]` in order, and the workspace between them."""

from collections.abc import Mapping

from gpuprof.kernels.kernel import Kernel, Launch, Workspace
from gpuprof.operation import Operation
from gpuprof.problems.dtypes import ELEMENT_TYPES, OF_RUN, REAL
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.records import replace
from gpuprof.tables import TableReader, is_integer
from gpuprof.text import in_xyz

#: More launches than anybody writes down one by one; the driver queues a case's as a whole.
MOST_LAUNCHES = 64
#: What an array of addresses may be called to hold.
ADDRESS_TYPES = ("u64", "i64")
#: Fields of a header that say of one launch what each of several says of itself.
_OF_ONE_LAUNCH = ("launch", "entry", "arguments")
#: Of a launch that a header leaves to its variants.
_OPEN = ("", "", "")


def read_launches(
    reader: TableReader, before: tuple[Launch, ...], any_block: bool, *, is_open: bool = False
) -> tuple[tuple[Launch, ...], bool]:
    """The tables `[[launches]]`; or `[launch]`, whose function and arguments stand beside it.

    What `[launch]` leaves out is as in the launch `before`. A launch that `is_open` may be left to variants.

    Returns:
        The launches, and whether the one there is takes any block.
    """
    if "launches" not in reader and len(before) == 1:
        return _read_launch(reader, before[0], any_block, is_open)
    for name in _OF_ONE_LAUNCH:
        if name in reader:
            raise reader.error(name, "does not go with launches", fix="Each of the launches has its own.")
    if "launches" not in reader:
        return before, any_block
    launches = tuple(map(_read_listed, reader.sections("launches")))
    if not 1 <= len(launches) <= MOST_LAUNCHES:
        raise reader.error("launches", f"has {len(launches)} entries, not 1 to {MOST_LAUNCHES}")
    return launches, False


def open_launch(entry: str) -> Launch:
    """A launch of which nothing is known but its function."""
    return Launch(entry, (), block=_OPEN, grid=_OPEN)


def _read_launch(
    reader: TableReader, before: Launch, any_block: bool, is_open: bool
) -> tuple[tuple[Launch, ...], bool]:
    launch = before
    if "launch" in reader or not is_open:
        block_known, grid_known = (is_open or extents != _OPEN for extents in (before.block, before.grid))
        table = reader.section("launch", {} if block_known or grid_known else None)
        any_block = table.take("any_block", bool, any_block)
        launch = replace(
            before,
            block=_read_block(table) if "block" in table or not block_known else before.block,
            grid=_read_extents(table, "grid", list(before.grid) if grid_known else None),
            dynamic_shared_bytes=table.formula("dynamic_shared_bytes", before.dynamic_shared_bytes),
            cooperative=table.take("cooperative", bool, before.cooperative),
        )
        table.finish()
    arguments = reader.formulas("arguments", list(before.arguments) or ([] if is_open else None))
    return (replace(launch, entry=reader.take("entry", str, before.entry), arguments=arguments),), any_block


def _read_block(reader: TableReader) -> tuple[str, str, str]:
    block = reader.take("block", list)
    if not 1 <= len(block) <= 3 or not all(is_integer(extent) and 0 < extent < 2**31 for extent in block):
        raise reader.error(
            "block",
            f"must be one to three positive integers, not {block!r}",
            "A block of formulas stands in [[launches]], one or more, each with its entry and arguments."
            if any(isinstance(extent, str) for extent in block)
            else "",
        )
    return in_xyz(map(str, block), "1")


def _read_listed(reader: TableReader) -> Launch:
    launch = Launch(
        entry=reader.take("entry", str),
        arguments=reader.formulas("arguments"),
        block=_read_extents(reader, "block"),
        grid=_read_extents(reader, "grid"),
        dynamic_shared_bytes=reader.formula("dynamic_shared_bytes", "0"),
        cooperative=reader.take("cooperative", bool, False),
        repeat=reader.formula("repeat", "1"),
    )
    reader.finish()
    return launch


def check_blocks(reader: TableReader, kernel: Kernel) -> None:
    """Refuse a block that does not follow from the kernel's own integers."""
    for launch in kernel.launches:
        if launch.block == _OPEN:
            continue
        try:
            block = [evaluate(text, kernel.integers) for text in launch.block]
        except ExpressionError as error:
            fix = "It may use parameters and constants."
            raise reader.error("launches.block", f"of {launch.entry} has no value: {error}", fix) from error
        if min(block) < 1 or max(block) >= 2**31:
            raise reader.error("launches.block", f"of {launch.entry} is {block}, not positive")


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
    return in_xyz(extents, "1")
