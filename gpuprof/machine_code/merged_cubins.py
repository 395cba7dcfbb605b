# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Put the code of several cubins into one ELF file.

nvdisasm reads one file at a time, and takes half a second to begin. So the sections that it prints, and those
that tell it about them, are copied side by side, under names that tell from which cubin they come.
"""

import re
import struct
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from gpuprof.cubin_file import HEADER, SECTION, SYMBOL, CubinFile, FileSection, Symbol, name_at

_RELOCATION = struct.Struct("<QQq")
#: The same where what is added stands in the place itself, as in files for sm_80 and older ones.
_SHORT_RELOCATION = struct.Struct("<QQ")
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS, _REL = 1, 2, 3, 4, 8, 9
_INFO_LINK = 0x40
#: From here on the number of a symbol's section says something else.
_RESERVED = 0xFF00
#: Of the word of a code section that names its symbol, what counts the registers.
_REGISTERS = 0xFF00_0000
#: Sections that come along, and those that say which line of PTX an instruction came from.
_OF_CODE = (".text.", ".nv.info.", ".rela.text.", ".rel.text.")
_LINES = ".nv_debug_line_sass"
#: Every merged file begins with: nothing, names of sections, names of symbols, symbols, lines, relocations.
_SYMBOLS, _FIRST_OF_CODE = 3, 6
_TITLE = re.compile(r"^//-+ \.text\.cubin(\d+)\..*$", re.MULTILINE)


class _Strings(Struct):
    content: bytearray = field(default_factory=lambda: bytearray(1))

    def add(self, name: str) -> int:
        place = len(self.content)
        self.content += name.encode() + b"\0"
        return place


def _of_code(cubin: CubinFile) -> Iterator[int]:
    """Yield the numbers of the sections that come along."""
    for number, (name, section) in enumerate(cubin.sections):
        if name.startswith(_OF_CODE) and (section.size or section.kind not in (_RELA, _REL)):
            yield number


def _titled(name: str, which: int) -> str:
    """Return the name, in a merged file, of a section or symbol: those of one name must be told apart."""
    start = next((start for start in _OF_CODE if name.startswith(start)), "")
    rest = name.removeprefix(start)
    return f"{start}cubin{which}.{rest}" if rest and not rest.startswith(".") else name


def kind_of(cubin: bytes) -> tuple[object, ...]:
    """Return what merged files have in common: what their headers say of machine and architecture."""
    if len(cubin) < HEADER.size:
        return ()
    header = HEADER.unpack_from(cubin)
    return (*header[:4], header[7])


def merged(cubins: Sequence[bytes]) -> bytes:
    """Return one ELF file with the code of several cubins of one kind; ValueError if one is no cubin."""
    try:
        return _Merger([CubinFile(cubin) for cubin in cubins]).file()
    except (struct.error, LookupError) as error:
        raise ValueError("a damaged ELF file") from error


class _Merger:
    def __init__(self, cubins: Sequence[CubinFile]) -> None:
        self._cubins = cubins
        self._section_names, self._symbol_names = _Strings(), _Strings()
        kept = [(which, number) for which, cubin in enumerate(cubins) for number in _of_code(cubin)]
        #: The new numbers of sections, and of symbols, by the cubin's and the old number.
        self._sections = {place: _FIRST_OF_CODE + i for i, place in enumerate(kept)}
        self._symbols: dict[tuple[int, int], int] = {}
        self._placed: list[tuple[FileSection, bytes]] = []

    def file(self) -> bytes:
        symbols, first_global = self._merged_symbols()
        lines, places = self._merged_lines()
        # The names of sections come first: they are put in once all are known.
        self._add(".shstrtab", FileSection(kind=_STRTAB), b"")
        self._add(".strtab", FileSection(kind=_STRTAB), bytes(self._symbol_names.content))
        table = FileSection(kind=_SYMTAB, link=2, info=first_global, align=8, entry_size=SYMBOL.size)
        self._add(".symtab", table, symbols)
        self._add(_LINES, FileSection(kind=_PROGBITS), lines)
        relocated = FileSection(
            kind=_RELA, flags=_INFO_LINK, link=_SYMBOLS, info=4, align=8, entry_size=_RELOCATION.size
        )
        self._add(f".rela{_LINES}", relocated, places)
        for which, number in self._sections:
            self._add_code(which, number)
        self._placed[0] = self._placed[0][0], bytes(self._section_names.content)
        return self._laid_out()

    def _merged_symbols(self) -> tuple[bytes, int]:
        """Return the table of symbols, those of a file only first, and how many these are."""
        table = [SYMBOL.pack(0, 0, 0, 0, 0, 0)]
        first_global = 0
        for local in (True, False):
            for which, cubin in enumerate(self._cubins):
                for number, symbol in enumerate(cubin.symbols[1:], start=1):
                    if symbol.is_local is local:
                        self._symbols[which, number] = len(table)
                        table.append(self._merged_symbol(which, symbol))
            first_global = first_global or len(table)
        return b"".join(table), first_global

    def _merged_symbol(self, which: int, symbol: Symbol) -> bytes:
        name = _titled(name_at(self._cubins[which].names, symbol.name), which)
        section = symbol.section
        if section < _RESERVED:  # the symbols of what does not come along are nowhere
            section = self._sections.get((which, section), 0)
        place = self._symbol_names.add(name) if name else 0
        return SYMBOL.pack(*symbol._replace(name=place, section=section))

    def _merged_lines(self) -> tuple[bytes, bytes]:
        lines, places = bytearray(), bytearray()
        for which, cubin in enumerate(self._cubins):
            places += self._relocations(which, cubin.named(f".rela{_LINES}"), len(lines))
            for offset, info in _SHORT_RELOCATION.iter_unpack(cubin.named(f".rel{_LINES}")):
                places += self._relocations(which, _RELOCATION.pack(offset, info, 0), len(lines))
            lines += cubin.named(_LINES)
        return bytes(lines), bytes(places)

    def _relocations(
        self, which: int, content: bytes, base: int = 0, form: struct.Struct = _RELOCATION
    ) -> bytes:
        moved = bytearray()
        for offset, info, *addend in form.iter_unpack(content):
            symbol = self._symbols.get((which, info >> 32), 0)
            moved += form.pack(offset + base, symbol << 32 | info & 0xFFFF_FFFF, *addend)
        return bytes(moved)

    def _add_code(self, which: int, number: int) -> None:
        cubin = self._cubins[which]
        (name, section), content, info = cubin.sections[number], cubin.content[number], 0
        if section.kind in (_RELA, _REL):
            form = _RELOCATION if section.kind == _RELA else _SHORT_RELOCATION
            content = self._relocations(which, content, form=form)
            info = self._sections[which, section.info]
        elif name.startswith(".text."):
            symbol = self._symbols.get((which, section.info & ~_REGISTERS), 0)
            info = section.info & _REGISTERS | symbol
        else:
            info = self._sections.get((which, section.info), 0)
        self._add(_titled(name, which), section._replace(address=0, link=_SYMBOLS, info=info), content)

    def _add(self, name: str, section: FileSection, content: bytes) -> None:
        self._placed.append((section._replace(name=self._section_names.add(name)), content))

    def _laid_out(self) -> bytes:
        body, table = bytearray(HEADER.size), bytearray(SECTION.size)
        for section, content in self._placed:
            body += bytes(-len(body) % max(1, section.align))
            table += SECTION.pack(*section._replace(offset=len(body), size=len(content)))
            body += content
        body += bytes(-len(body) % 8)
        header = list(self._cubins[0].header)
        # No table of segments; then where that of the sections is, how long, and which of them has the names.
        header[5], header[9], header[10] = 0, 0, 0
        header[6], header[12], header[13] = len(body), len(self._placed) + 1, 1
        body[: HEADER.size] = HEADER.pack(*header)
        return bytes(body + table)


def parted(listing: str, count: int) -> list[str]:
    """Return what nvdisasm printed of each of the `count` cubins that were merged, under the names there."""
    pieces = _TITLE.split(listing)
    found = [""] * count
    for number, text in zip(pieces[1::2], pieces[2::2], strict=True):
        found[int(number)] += text.replace(f"cubin{number}.", "")
    return found
