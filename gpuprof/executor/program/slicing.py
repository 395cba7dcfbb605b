# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is left of a kernel when the values that it computes are left out: its *control slice*.

Where a thread goes, what it touches, whom it waits for and what it tells others by flags and tickets rarely
depends on the numbers that a kernel is there to compute. The slice keeps what does decide these things. Other
accesses to memory are *address-only*: they are counted and their addresses checked, but no value moves. Other
arithmetic is gone. So a slice counts what the kernel counts, at a fraction of its work.

What is kept is found by following values back from every branch, barrier, guard and address. A load that is
kept needs what was stored. So integers are stored as they are where anything is kept that loads by the same
parameter or variable, as far as can be told. Floats are not; that no kept load meets an element without value
is for the run to see.
"""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from gpuprof.executor.program.flow import BasicBlock, read_before_written, reads_and_writes, registers_in
from gpuprof.executor.program.origins import Origin, origins_in, origins_of
from gpuprof.executor.program.ptx import Imm, Instruction, Mem, Operand, Reg, Vec, address_of

_FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"})
#: Operations on memory, by what they do there.
_LOADS, _STORES, _ATOMICS = frozenset({"ld", "ldu"}), frozenset({"st"}), frozenset({"atom", "red"})
#: Operations of whole warps on tiles of matrices, and between those.
_TILES = frozenset({"ldmatrix", "stmatrix", "movmatrix", "mma", "wmma"})
#: What only orders products of warp groups.
_ORDERING = frozenset({"fence", "commit_group", "wait_group"})
#: Values go from lane to lane; the operand of which nothing else is decided is the one after the targets.
_EXCHANGES = frozenset({"shfl", "vote", "match", "redux"})
#: Spaces whose content nobody changes, and whose accesses cost nothing that is counted.
_CONSTANT = frozenset({"param", "const"})
#: Sums that hand a carry on, which has no name.
_CARRIED = frozenset({"addc", "subc", "madc"})
#: Of `cp.async`, what copies nothing.
_GROUPS = frozenset({"commit_group", "wait_group", "wait_all", "prefetch"})
#: What is not followed: textures, surfaces, and memory of several cards.
_NOT_FOLLOWED = frozenset({"tex", "tld4", "suld", "sust", "sured", "multimem"})
#: Integer additions that only move an address on.
_ADDITIONS = frozenset({"s32", "u32", "s64", "u64"})


class NoSlice(Exception):
    """What is left of a kernel would be all of it."""


class Role(Enum):
    """What a slice makes of an instruction."""

    KEPT = "runs as it is"
    ADDRESS_ONLY = "is counted, and moves no value"
    GONE = "does nothing"


class Accesses(Struct, frozen=True):
    """Address-only accesses of a basic block to shared memory around one address: they are counted together.

    Each instruction stands with its distance from the base, in bytes.
    """

    base: Operand
    items: tuple[tuple[Instruction, int], ...]


#: What a slice does in a basic block, in order.
SliceItem = Accesses | tuple[Instruction, Role]


def can_be_followed(blocks: list[BasicBlock]) -> bool:
    """Tell whether a control slice of these basic blocks does what they do, but for values."""
    return not any(item.opcode[0] in _NOT_FOLLOWED for block in blocks for item in block.body)


def control_slice(
    blocks: list[BasicBlock], pure: frozenset[str]
) -> tuple[list[list[SliceItem]], frozenset[str]]:
    """Return what is left of each basic block.

    Opcodes are pure that only compute their targets from their sources. Returned is what is done in each
    block, and the spaces, of "global", "shared" and "local", whose content decides something.

    Raises:
        NoSlice: Products that read shared memory by themselves decide something, or registers that may be
            read before they are written.
    """
    found = _Slicer(blocks, pure)
    items = found.items()
    if not found.wanted.isdisjoint(read_before_written(blocks)):
        raise NoSlice
    return items, frozenset(found.content)


class _Slicer:
    def __init__(self, blocks: list[BasicBlock], pure: frozenset[str]) -> None:
        self._blocks = blocks
        self._pure = pure
        #: Registers whose values decide something.
        self.wanted = {name for block in blocks if block.last for name in reads_and_writes(block.last)[0]}
        #: The spaces whose content decides something.
        self.content: set[str] = set()
        #: By which parameters and variables kept loads go there; None where that is not known.
        self._read_by: set[tuple[str, Origin | None]] = set()
        self._origins = origins_of(blocks)
        self._places = [_Places(block) for block in blocks]

    def items(self) -> list[list[SliceItem]]:
        """Follow values back until nothing more is wanted."""
        before = None
        while before != (before := (len(self.wanted), len(self._read_by))):
            for number in reversed(range(len(self._blocks))):
                for place in reversed(range(len(self._blocks[number].body))):
                    self._want(number, place)
        return [list(self._of_block(number)) for number in range(len(self._blocks))]

    def _want(self, number: int, place: int) -> None:
        item = self._blocks[number].body[place]
        role = self._role(item)
        if role is Role.KEPT:
            self.wanted.update(reads_and_writes(item)[0])
            if item.opcode[0] in (*_LOADS, *_ATOMICS, *_TILES) and self._is_wanted(item):
                self._load(_spaces(item), self._origins_of(item))
            elif item.opcode[0] == "cp" and "shared" in self.content:
                self._load({"global"}, frozenset({None}))
        elif role is Role.ADDRESS_ONLY and (base := self._base(number, place)) is not None:
            self.wanted.update(registers_in(base[0]))
        elif role is Role.ADDRESS_ONLY:
            self.wanted.update(_directing(item))

    def _base(self, number: int, place: int) -> tuple[Operand, int, int] | None:
        """Return the base of an address-only access that may be counted together with others."""
        if "shared" in self.content and self._blocks[number].body[place].opcode[0] in _STORES:
            return None  # where it leaves no value is remembered
        return self._places[number].base(place)

    def _load(self, spaces: set[str], origins: frozenset[Origin | None]) -> None:
        self.content |= spaces
        self._read_by.update((space, origin) for space in spaces for origin in origins)

    def _origins_of(self, item: Instruction) -> frozenset[Origin | None]:
        """Return by what an access may go to memory."""
        memory = address_of(item)
        found = origins_in(memory.base, self._origins) if memory is not None else frozenset()
        return found or frozenset({None})

    def _is_read(self, item: Instruction) -> bool:
        """Whether a kept load may read what an item stores."""
        mine = self._origins_of(item)
        return any(
            space in _spaces(item) and (origin is None or None in mine or origin in mine)
            for space, origin in self._read_by
        )

    def _is_wanted(self, item: Instruction) -> bool:
        return not self.wanted.isdisjoint(reads_and_writes(item)[1])

    def _role(self, item: Instruction) -> Role:
        name, wanted = item.opcode[0], self._is_wanted(item)
        if name in self._pure and not ("cc" in item.opcode or name in _CARRIED):
            return Role.KEPT if wanted else Role.GONE
        words = set(item.opcode)
        if name in _LOADS:
            unwanted = Role.GONE if _CONSTANT & words else Role.ADDRESS_ONLY
            return Role.KEPT if wanted else unwanted
        if name in _TILES:
            return Role.KEPT if wanted else Role.ADDRESS_ONLY
        if name == "wgmma" and not _ORDERING & words:
            if wanted:
                raise NoSlice
            return Role.ADDRESS_ONLY
        arrives = name == "cp" and not (_GROUPS & words or item.opcode[2] == "mbarrier")
        if arrives or (name in ("st", "red") and "async" in words):
            return Role.KEPT if "shared" in self.content else Role.ADDRESS_ONLY
        if name in _STORES or name in _ATOMICS:
            decides = wanted or (not _FLOATS & words and self._is_read(item))
            return Role.KEPT if decides else Role.ADDRESS_ONLY
        if name in _EXCHANGES:
            return Role.KEPT if wanted else Role.ADDRESS_ONLY
        return Role.KEPT

    def _of_block(self, number: int) -> Iterator[SliceItem]:
        found: list[tuple[Instruction, Role, tuple[Operand, int] | None]] = []
        together: dict[tuple[Operand, int], list[tuple[Instruction, int]]] = {}
        for place, item in enumerate(self._blocks[number].body):
            role = self._role(item)
            base = self._base(number, place) if role is Role.ADDRESS_ONLY else None
            if base is not None:
                together.setdefault(base[:2], []).append((item, base[2]))
            found.append((item, role, base and base[:2]))
        for item, role, near in found:
            if near is None and role is not Role.GONE:
                yield item, role
            elif near in together:  # all of them, where the first one stands
                yield Accesses(near[0], tuple(together.pop(near)))


class _Places:
    """Where plain accesses of one basic block to a block's own shared memory lie: a base and a distance."""

    def __init__(self, block: BasicBlock) -> None:
        self._found: dict[int, tuple[Operand, int, int]] = {}
        versions: dict[str, int] = {}
        #: What a register is since it was written here: another one, as it was then, and a distance.
        sums: dict[str, tuple[Operand, int, int]] = {}

        def origin(operand: Operand, offset: int) -> tuple[Operand, int, int]:
            if isinstance(operand, Reg):
                if operand.name in sums:
                    base, version, distance = sums[operand.name]
                    return base, version, distance + offset
                return operand, versions.get(operand.name, 0), offset
            return operand, 0, offset

        for place, item in enumerate(block.body):
            own = "shared" in item.opcode and "cluster" not in item.opcode
            if own and item.guard is None and item.opcode[0] in ("ld", "st"):
                memory = address_of(item)
                if memory is not None and not isinstance(memory.base, Imm):
                    self._found[place] = origin(memory.base, memory.offset)
            moved = _moved(item)
            after = origin(*moved) if moved is not None else None
            for name in reads_and_writes(item)[1]:
                versions[name] = versions.get(name, 0) + 1
                sums.pop(name, None)
                if after is not None:
                    sums[name] = after

    def base(self, place: int) -> tuple[Operand, int, int] | None:
        """Return the base of an access, which version of it, and the distance; None of any other item."""
        return self._found.get(place)


def _moved(item: Instruction) -> tuple[Operand, int] | None:
    """Return a register and a distance if all that an instruction does is add them."""
    if item.guard is not None or item.opcode[0] != "add" or len(item.operands) != 3:
        return None
    _, source, distance = item.operands
    if len(item.opcode) != 2 or item.opcode[1] not in _ADDITIONS:
        return None
    if not isinstance(source, Reg) or not isinstance(distance, Imm) or distance.width:
        return None
    bits = 32 if item.opcode[1].endswith("32") else 64
    value = distance.bits & ((1 << bits) - 1)
    return source, value - (1 << bits) if value >> (bits - 1) else value


def _spaces(item: Instruction) -> set[str]:
    """Return the spaces that threads may write to which an access may go to."""
    if _CONSTANT & set(item.opcode):
        return set()
    every = {"global", "shared", "local"}
    return every & set(item.opcode) or every


def _directing(item: Instruction) -> list[str]:
    """Return the registers that say where an address-only instruction goes, and with whom it exchanges."""
    name = item.opcode[0]
    if name == "cp":
        return reads_and_writes(item)[0]
    found = [item.guard] if item.guard else []
    if name in _EXCHANGES:
        position = 2 if name == "shfl" and len(item.operands) == 5 + ("sync" in item.opcode) else 1
        if name == "match" and len(item.operands) == 4:
            position = 2
        directing = [operand for i, operand in enumerate(item.operands) if i > position]
        return found + [register for operand in directing for register in registers_in(operand)]
    if name == "wgmma":  # descriptors of what lies in shared memory; the rest are values
        return found + [operand.name for operand in item.operands[1:3] if isinstance(operand, Reg)]
    if name == "wmma":  # where its matrix lies, and how far rows are apart
        return found + [
            name
            for operand in item.operands
            if not isinstance(operand, Vec)
            for name in registers_in(operand)
        ]
    memory = [operand for operand in item.operands if isinstance(operand, Mem)]
    return found + [register for operand in memory for register in registers_in(operand.base)]
