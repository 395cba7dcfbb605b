# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Merge adjacent shared-memory accesses into wider ones, as ptxas does after PTX.

PTX shows four loads, or stores, of consecutive words; where their address is provably a multiple of 16,
the hardware runs one of 128 bits. What is provable follows from how addresses are computed: the alignment
of a sum is the lesser of its terms', that of a product the product of its factors'. An address that is
written as a variable and a number is known entirely. Of the sum of two registers, one of which is written in
several places, as one that a loop advances (but for that advance itself), ptxas knows no more than the
alignment that variables in it were declared with, and not where they lie; of a difference of registers, of a
minimum and of a maximum nothing. Words that were loaded before, with nothing in between that may change them,
are not loaded again. Which accesses merge is read off the machine code that ptxas makes.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from msgspec import Struct

from gpuprof.executor.program.calls import SYSTEM_CALLS
from gpuprof.executor.program.flow import BasicBlock, reads_and_writes
from gpuprof.executor.program.ptx import Imm, Instruction, Mem, Operand, Reg, Sym, Vec

#: Largest alignment worth knowing, in bytes.
_ENOUGH = 256
_WORD_BYTES = 4
_SIZES = {"f32": 4, "b32": 4, "u32": 4, "s32": 4, "f64": 8, "b64": 8, "u64": 8, "s64": 8}
#: Opcodes that may touch shared memory, or order accesses to it.
_TOUCHING = frozenset(
    {
        *("ld", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "wmma", "wgmma"),
        *("bar", "barrier", "fence", "membar", "shfl", "mbarrier"),
        *SYSTEM_CALLS,
    }
)
#: Of them those behind which shared memory may hold something else.
_CHANGING = _TOUCHING - {"ld", "ldmatrix", "shfl"}
_ELSEWHERE = frozenset({"global", "local", "param", "const"})
#: A word of shared memory: the operand that its address is told from, the distance, and its bytes.
_Word = tuple[Operand, int, int]


class SharedPlace(Struct, frozen=True):
    """What is known of where a shared variable lies.

    Its address leaves `remainder` when divided by `modulus`, a power of two. `declared` is the alignment that
    it was declared with, in bytes.
    """

    modulus: int
    remainder: int = 0
    declared: int = _ENOUGH

    @property
    def alignment(self) -> int:
        """The largest power of two, up to the modulus, that divides the address."""
        return math.gcd(self.modulus, self.remainder)

    @classmethod
    def at(cls, offset: int, declared: int = _ENOUGH) -> "SharedPlace":
        """Return what is known of a variable of some declared alignment at `offset` in shared memory."""
        return cls(_ENOUGH, offset % _ENOUGH, declared)


def merge_shared_accesses(blocks: list[BasicBlock], places: dict[str, SharedPlace]) -> None:
    """Merge in place, by what is known of each shared variable's address."""
    aligned = _alignments([item for block in blocks for item in block.body], places)
    for block in blocks:
        block.body = _without_repeated_loads(block.body)
        for name in ("ld", "st"):
            block.body = _merged(block.body, aligned, places, name)


def _alignments(body: Sequence[Instruction], places: Mapping[str, SharedPlace]) -> dict[str, int]:
    """Return for each register a power of two that all its values are multiples of."""
    writes = Counter(name for item in body for name in reads_and_writes(item)[1])
    numbers = {
        item.operands[0].name
        for item in body
        if item.opcode[0] == "mov" and isinstance(item.operands[0], Reg) and isinstance(item.operands[1], Imm)
    }
    fixed = {name for name in numbers if writes[name] == 1}
    several = {name for name, times in writes.items() if times > 1}
    declared = {name: min(place.alignment, place.declared) for name, place in places.items()}
    carried = _Alignments(body, declared, fixed).known if several else {}
    carried = {name: carried[name] for name in several}
    return _Alignments(body, {name: place.alignment for name, place in places.items()}, fixed, carried).known


class _Alignments:
    """What registers are multiples of.

    Starts from the most hopeful assumption and weakens it until every definition agrees, so that an address
    that a loop advances by 128 stays a multiple of 128.

    `fixed` registers hold a number; `carried` is what a sum may rely on of registers that are written in
    several places.
    """

    def __init__(
        self,
        body: Sequence[Instruction],
        symbols: Mapping[str, int],
        fixed: Set[str],
        carried: Mapping[str, int] | None = None,
    ) -> None:
        self.known: dict[str, int] = {}
        self._symbols, self._fixed, self._carried = symbols, fixed, carried or {}
        known = self.known
        definitions = [(item, names) for item in body if (names := reads_and_writes(item)[1])]
        changed = True
        while changed:
            changed = False
            for item, names in definitions:
                result = self._result(item)
                for name in names:
                    found = min(known.get(name, _ENOUGH), result)
                    if known.get(name) != found:
                        known[name], changed = found, True
            # What is known to be a multiple of 1 only can get no weaker.
            definitions = [each for each in definitions if any(known[name] != 1 for name in each[1])]

    def _of(self, operand: Operand) -> int:
        if isinstance(operand, Reg):
            return self.known.get(operand.name, _ENOUGH)
        if isinstance(operand, Imm):
            return _power_of_two_in(operand.bits)
        if isinstance(operand, Sym):
            return min(self._symbols.get(operand.name, 1), _power_of_two_in(operand.offset))
        return 1

    def _is_number(self, operand: Operand) -> bool:
        return isinstance(operand, Imm) or (isinstance(operand, Reg) and operand.name in self._fixed)

    def _sum(self, target: Operand, *terms: Operand) -> int:
        found = min(map(self._of, terms))
        if target not in terms and not any(map(self._is_number, terms)):
            names = (term.name for term in terms if isinstance(term, Reg))
            found = min(found, *(self._carried.get(name, _ENOUGH) for name in names))
        return found

    def _result(self, item: Instruction) -> int:
        """Return what the result of an instruction is a multiple of, given that of its operands."""
        name, sources, of = item.opcode[0], item.operands[1:], self._of
        if name in ("mov", "cvt", "cvta") and len(sources) == 1:
            return of(sources[0])
        if name in ("add", "or", "xor", "selp") and "pred" not in item.opcode:
            return self._sum(*item.operands[:3])
        if name == "sub":
            narrow = item.opcode[-1].endswith("32") and self._is_number(sources[0])
            return self._sum(*item.operands) if narrow or self._is_number(sources[1]) else 1
        if name == "and":
            return max(of(sources[0]), of(sources[1]))
        if name in ("mul", "mul24") and "hi" not in item.opcode:
            return min(of(sources[0]) * of(sources[1]), _ENOUGH)
        if name in ("mad", "mad24") and "hi" not in item.opcode:
            return min(of(sources[0]) * of(sources[1]), of(sources[2]))
        if name == "shl":
            by = min(sources[1].bits, 8) if isinstance(sources[1], Imm) else 0
            return min(of(sources[0]) << by, _ENOUGH)
        return 1


def _power_of_two_in(value: int) -> int:
    return min(value & -value, _ENOUGH) if value else _ENOUGH


def _without_repeated_loads(body: list[Instruction]) -> list[Instruction]:
    """Replace loads of words that registers hold already by moves."""
    held: dict[_Word, Reg] = {}
    #: The words that each register holds, or held, or is the address of.
    about: defaultdict[str, set[_Word]] = defaultdict(set)
    items: list[Instruction] = []
    for position, item in enumerate(body):
        access = _access(item, position, "ld", ("v2", "v4"))
        moves = _moves(item, access, held) if access is not None else []
        items += moves or [item]
        if item.opcode[0] in _CHANGING and not _ELSEWHERE & set(item.opcode):
            held.clear()
            about.clear()
        written = reads_and_writes(item)[1]
        for name in written:
            for word in about.pop(name, ()):
                if word in held and (held[word].name == name or _is_in(word[0], (name,))):
                    del held[word]
        if access is not None and not moves and not _is_in(access.base, written):
            for number, value in enumerate(access.values):
                if isinstance(value, Reg):
                    word = access.base, access.offset + number * access.size, access.size
                    held[word] = value
                    for operand in (access.base, value):
                        if isinstance(operand, Reg):
                            about[operand.name].add(word)
    return items


def _is_in(operand: Operand, names: Collection[str]) -> bool:
    return isinstance(operand, Reg) and operand.name in names


def _moves(item: Instruction, access: "_MergeCandidate", held: Mapping[_Word, Reg]) -> list[Instruction]:
    """Return the moves that stand for a load; none if not all of its words are held."""
    size, opcode = access.size, ("mov", f"b{8 * access.size}")
    sources = [held.get((access.base, access.offset + i * size, size)) for i in range(len(access.values))]
    found = [
        (value, source) for value, source in zip(access.values, sources, strict=True) if source is not None
    ]
    if len(found) < len(sources) or {value for value, _ in found} & {source for _, source in found}:
        return []
    return [replace(item, opcode=opcode, operands=pair) for pair in found if isinstance(pair[0], Reg)]


class _MergeCandidate(Struct, frozen=True):
    """A load or store that might be merged.

    Its address is `offset` bytes from `base`; `values` are the registers that it loads or the operands that
    it stores, each of `size` bytes.
    """

    position: int
    base: Operand
    offset: int
    values: tuple[Operand, ...]
    size: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the access."""
        return self.offset + self.size * len(self.values)


def _merged(
    body: list[Instruction], aligned: dict[str, int], places: dict[str, SharedPlace], name: str
) -> list[Instruction]:
    """Return the instructions of a basic block with its loads (or stores) of shared memory merged."""
    replaced: dict[int, Instruction | None] = {}
    for accesses in _candidates(body, name):
        place = _place_of(accesses[0].base, aligned, places)
        for width in (16, 8):
            if width > place.modulus:
                continue
            # What is aligned are addresses, not the distances from the base.
            for start in sorted({a.offset - (place.remainder + a.offset) % width for a in accesses}):
                inside = [a for a in accesses if a.offset >= start and a.end <= start + width]
                if not _worthwhile(inside, width, name) or not _movable(body, inside, name):
                    continue
                earliest_or_latest = min if name == "ld" else max
                first = earliest_or_latest(access.position for access in inside)
                replaced |= dict.fromkeys((access.position for access in inside), None)
                replaced[first] = _vector(body[first], inside, start, width)
                accesses = [access for access in accesses if access not in inside]
    items = [replaced.get(position, item) for position, item in enumerate(body)]
    return [item for item in items if item is not None]


def _place_of(base: Operand, aligned: dict[str, int], places: dict[str, SharedPlace]) -> SharedPlace:
    if isinstance(base, Reg):
        return SharedPlace(aligned.get(base.name, 1))
    return places.get(base.name, SharedPlace(1)) if isinstance(base, Sym) else SharedPlace(1)


def _worthwhile(inside: list[_MergeCandidate], width: int, name: str) -> bool:
    """Tell whether ptxas would merge these accesses into one of `width` bytes.

    Stores must fill it. Loads may leave out one word of a 128-bit access: it is loaded in vain.
    """
    covered = sum(access.end - access.offset for access in inside)
    distinct = len({access.offset for access in inside}) == len(inside)
    missing = _WORD_BYTES if name == "ld" and width == 16 else 0
    return len(inside) > 1 and distinct and covered >= width - missing


def _vector(item: Instruction, inside: list[_MergeCandidate], start: int, width: int) -> Instruction:
    size = inside[0].size
    values: list[Operand] = [Sym("_")] * (width // size)
    for access in inside:
        index = (access.offset - start) // size
        values[index : index + len(access.values)] = access.values
    base = inside[0].base
    assert isinstance(base, Reg | Sym)
    opcode = (item.opcode[0], "shared", f"v{len(values)}", f"b{8 * size}")
    memory, vector = Mem(base, start), Vec(tuple(values))
    return replace(
        item, opcode=opcode, operands=(vector, memory) if item.opcode[0] == "ld" else (memory, vector)
    )


def _candidates(body: list[Instruction], name: str) -> Iterator[list[_MergeCandidate]]:
    """Yield accesses of one size and base, with nothing between them that may touch the same memory."""
    groups: dict[tuple[int, Operand, int], list[_MergeCandidate]] = {}
    stretch, last_base = 0, None
    for position, item in enumerate(body):
        access = _access(item, position, name)
        if access is not None:
            if name == "st" and access.base != last_base:
                stretch += 1  # stores through another register may overlap
            last_base = access.base
            groups.setdefault((access.size, access.base, stretch), []).append(access)
        elif item.opcode[0] in _TOUCHING and not _ELSEWHERE & set(item.opcode):
            stretch += item.opcode[0] != name or name == "st"
    yield from groups.values()


def _access(
    item: Instruction, position: int, name: str, vectors: tuple[str, ...] = ("v2",)
) -> _MergeCandidate | None:
    kind, vector = item.opcode[-1], item.opcode[2:-1]
    if item.opcode[:2] != (name, "shared") or kind not in _SIZES or item.guard:
        return None
    if vector and (len(vector) > 1 or vector[0] not in vectors):
        return None
    memory, value = reversed(item.operands) if name == "ld" else item.operands
    if not isinstance(memory, Mem) or not isinstance(memory.base, Reg | Sym):
        return None
    values = value.items if isinstance(value, Vec) else (value,)
    return _MergeCandidate(position, memory.base, memory.offset, values, _SIZES[kind])


def _movable(body: list[Instruction], group: list[_MergeCandidate], name: str) -> bool:
    """Tell whether nothing keeps loads from happening at the first of them, or stores at the last."""
    first, last = min(a.position for a in group), max(a.position for a in group)
    base = group[0].base
    registers: dict[str, int] = {}
    for access in group:
        for value in access.values:
            if isinstance(value, Reg):
                registers.setdefault(value.name, access.position)
    for position in range(first, last):
        reads, writes = reads_and_writes(body[position])
        if isinstance(base, Reg) and base.name in writes:
            return False
        if name == "ld":
            if any(position < registers.get(register, 0) for register in (*reads, *writes)):
                return False
        elif any(position > registers.get(register, last) for register in writes):
            return False
    return name == "st" or len(registers) == sum(len(access.values) for access in group)
