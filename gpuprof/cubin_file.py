# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a compiler made, as a file: of machine code its sections and symbols, and which kernels there are."""

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from gpuprof.text import Extent

#: What of an ELF file of 64 bits, little-endian, is read: header, a section, a symbol.
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
_MAGIC = b"\x7fELF\x02\x01"
_SYMTAB, _NOBITS = 2, 8


class FileSection(NamedTuple):
    """An entry of the table of sections."""

    name: int = 0
    kind: int = 0
    flags: int = 0
    address: int = 0
    offset: int = 0
    size: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry_size: int = 0


class Symbol(NamedTuple):
    """An entry of the table of symbols."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_local(self) -> bool:
        """Whether no other file sees it."""
        return self.info >> 4 == 0


class CubinFile:
    """One cubin, read."""

    def __init__(self, content: bytes) -> None:
        if not content.startswith(_MAGIC):
            raise ValueError("not an ELF file of 64 bits")
        self.header = HEADER.unpack_from(content)
        first, count, names = self.header[6], self.header[12], self.header[13]
        sections = [
            FileSection(*SECTION.unpack_from(content, first + i * SECTION.size)) for i in range(count)
        ]
        if sum(section.size for section in sections if section.kind != _NOBITS) > 2 * len(content):
            raise ValueError("its sections hold more than the file")
        self.content = [self._bytes(content, section) for section in sections]
        self.sections = [(name_at(self.content[names], section.name), section) for section in sections]
        table = [section.kind for section in sections].index(_SYMTAB)
        self.symbols = [Symbol(*each) for each in SYMBOL.iter_unpack(self.content[table])]
        self.names = self.content[sections[table].link]

    @staticmethod
    def _bytes(content: bytes, section: FileSection) -> bytes:
        if section.kind == _NOBITS:
            return b""
        return content[section.offset : section.offset + section.size]

    def named(self, wanted: str) -> bytes:
        """Return the content of the section of a name; nothing if there is none."""
        found = (number for number, (name, _) in enumerate(self.sections) if name == wanted)
        return next((self.content[number] for number in found), b"")


def name_at(table: bytes, place: int) -> str:
    """Return the name that begins at a place of a table of names."""
    return table[place : table.index(b"\0", place)].decode()


class CubinKernel(Struct, frozen=True):
    """What a cubin says of one of its kernels.

    Args:
        frame_bytes: Local memory of a thread, whatever it is for.
        reqntid: The only block that it may be launched with.
        maxntid: The largest one, in threads of each dimension.
    """

    name: str
    registers_per_thread: int
    static_shared_bytes: int
    frame_bytes: int
    parameter_bytes: tuple[int, ...]
    reqntid: Extent | None = None
    maxntid: Extent | None = None


#: Attributes of a kernel in `.nv.info`, and how their values are written: a byte, two, or a length and bytes.
_REGCOUNT, _FRAME_SIZE, _PARAMETER, _REQNTID, _MAX_THREADS = 0x2F, 0x11, 0x17, 0x10, 0x05
_SIZED_VALUE = 4
#: Shared memory that the system takes of a block, of which files count it in from this architecture on.
_RESERVES, _RESERVED_BYTES = 90, 1024
#: In PTX: dynamic shared memory, how it is aligned, and its name.
_DYNAMIC = re.compile(r"\.extern\s+\.shared\s+\.align\s+(\d+)\s+\.\w+\s+([\w$]+)")
#: From this version of the file format on, the architecture stands a byte further up.
_NEWER_ABI = 8


def architecture_in(cubin: bytes) -> int:
    """Return what a cubin is for, as 90 for sm_90."""
    identity, *_ = header = HEADER.unpack_from(cubin)
    flags = int(header[7])
    return (flags >> 8 if identity[8] >= _NEWER_ABI else flags) & 0xFF


def kernels_in(cubin: bytes) -> dict[str, CubinKernel]:
    """Return the kernels of a cubin by their names.

    Raises:
        ValueError: It is none, or damaged.
    """
    try:
        file = CubinFile(cubin)
        shared = {name: section.size for name, section in file.sections if name.startswith(".nv.shared.")}
        names = [name_at(file.names, symbol.name) for symbol in file.symbols]
        of_symbols: dict[tuple[int, str], int] = {}
        for kind, value in _attributes(file.named(".nv.info")):
            if kind in (_REGCOUNT, _FRAME_SIZE):
                symbol, number = struct.unpack_from("<II", value)
                of_symbols[kind, names[symbol]] = number
        reserved = _RESERVED_BYTES if architecture_in(cubin) >= _RESERVES else 0
        found = {}
        for title, _ in file.sections:
            if not title.startswith(".nv.info."):
                continue
            name = title.removeprefix(".nv.info.")
            attributes = [*_attributes(file.named(title))]
            extents = {
                kind: struct.unpack_from("<III", value)
                for kind, value in attributes
                if kind in (_REQNTID, _MAX_THREADS)
            }
            found[name] = CubinKernel(
                name,
                of_symbols[_REGCOUNT, name],
                max(0, shared.get(f".nv.shared.{name}", 0) - reserved),
                of_symbols.get((_FRAME_SIZE, name), 0),
                tuple(size for _, size in sorted(_parameters(attributes))),
                extents.get(_REQNTID),
                extents.get(_MAX_THREADS),
            )
    except (struct.error, LookupError, UnicodeDecodeError) as error:
        raise ValueError("a damaged ELF file") from error
    return found


def misplaced_shared(ptx: str, cubin: bytes) -> int:
    """Return how dynamic shared memory should be aligned, where a cubin places it otherwise; else 0.

    It begins where a kernel's static shared memory ends, which its section tells.
    """
    declared = {match[2]: int(match[1]) for match in _DYNAMIC.finditer(ptx)}
    ends = {name: section.size for name, section in CubinFile(cubin).sections}
    for body in ptx.split(".entry")[1:]:
        words = re.findall(r"[\w$]+", body)
        end = ends.get(f".nv.shared.{words[0]}", 0)
        align = max((declared[word] for word in declared.keys() & words), default=1)
        if end % align:
            return align
    return 0


def function_of(symbol: str) -> str:
    """Return a function's own name of a mangled one: `gemm` of `_Z4gemmPKfS0_Pf` and of `_ZN2ns4gemmEv`.

    CuTe DSL's `kernel_cutlass_gemm_tensorptrf32…` is one too.
    """
    if match := re.fullmatch(r"kernel_cutlass_(\w+?)_(?:tensor\w*|_?\d+)", symbol):
        return match[1]
    rest, found = re.sub(r"^_ZN?", "", symbol), symbol
    while length := re.match(r"\d+", rest if rest != symbol else ""):
        end = length.end() + int(length[0])
        found, rest = rest[length.end() : end], rest[end:]
    return found


def _parameters(attributes: list[tuple[int, bytes]]) -> Iterator[tuple[int, int]]:
    """Yield the number of each parameter, and its bytes."""
    for kind, value in attributes:
        if kind == _PARAMETER:
            _, ordinal, _, packed = struct.unpack_from("<IHHI", value)
            yield ordinal, packed >> 18 & 0x3FFF


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes of an information section: their numbers, and values of several bytes."""
    place = 0
    while place < len(content):
        form, kind, short = struct.unpack_from("<BBH", content, place)
        place += 4
        length = short if form == _SIZED_VALUE else 0
        yield kind, content[place : place + length]
        place += length
