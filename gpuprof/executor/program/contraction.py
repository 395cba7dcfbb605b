# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Contract products and sums to fused multiply-adds, as ptxas does after PTX.

PTX leaves open whether `mul` and `add` without a rounding modifier round once or twice, and ptxas decides.
What it decides is read off its machine code:

- A product and its sums must lie in one stretch of code, which has no way in or out but its ends. What ends
  one: labels that are jumped to, branches, calls, and instructions that machine code branches for though PTX
  does not show it. Of a product with a constant factor (a literal, a kernel's parameter, constant memory at a
  fixed address) the sums may lie anywhere.
- A product that any other instruction needs stays, and its sums with it. Moves and changes of its sign only
  rename it.
- A product with several sums is computed anew in each of them; but it stays if one of them has another
  product, which nobody else needs. The packed types do not look so far.
- A coarse quotient is a product too: of the dividend and the divisor's reciprocal.
- Sums choose in their order: of two products the one with fewer uses, else the first operand. The product
  that a sum leaves must stay, and no later sum takes it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from msgspec import Struct, field

from gpuprof.executor.program.flow import first_reads, reads_and_writes
from gpuprof.executor.program.ptx import Function, Imm, Instruction, Label, Mem, Operand, Reg, Sym, Vec

#: Names of multiply-adds, the first of which PTX has, by whether the product and the addend change sign.
_NAMES = {(False, False): "fma", (False, True): "fms", (True, False): "fnma", (True, True): "fnms"}
#: Types of products, and of the registers that hold them.
_TYPES = {"f32": "f32", "f32x2": "b64", "f64": "f64"}
_TYPES |= {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}
_PACKED = ("f16x2", "bf16x2")
_ARITHMETIC = frozenset({"add", "sub", "mul", "fma", "neg", "abs", "min", "max", "mov"})
#: What takes the bits of a register: a changed sign must have been computed.
_TAKES_BITS = frozenset({"st", "red", "atom", "shfl"})
#: Instructions of a stretch, with their positions in the function's body.
Stretch = list[tuple[int, Instruction]]
#: Factors that make no product: 1 and -1.
_ONES = {32: (0x3F80_0000, 0xBF80_0000), 64: (0x3FF0_0000_0000_0000, 0xBFF0_0000_0000_0000)}
#: Modifiers of quotients that are a product with a reciprocal.
_COARSE = ("full", "approx")
_MINUS_ZERO = Imm(0x8000_0000, 32)


def contract_products(function: Function, pure: frozenset[str]) -> None:
    """Contract in place, in a function as it stands in the PTX: ptxas takes each by itself.

    Opcodes are pure that only compute their targets: machine code runs them under a predicate, or selects
    from them, and branches around anything else.
    """
    if not any(isinstance(item, Instruction) and _is_product(item) for item in function.body):
        return
    function.body = _without_unused(function.body)
    found = [*_stretches(function, pure)]
    numbered = [*chain(*found)]
    writes = Counter(name for _, item in numbered for name in reads_and_writes(item)[1])
    # What comes from another stretch, or from another pass through this one.
    passing = {name for stretch in found for name in first_reads(item for _, item in stretch)[0]}
    first_reads_at = {name: at for at, item in reversed(numbered) for name in reads_and_writes(item)[0]}
    uses = _Uses(passing, writes, first_reads_at, _constants(function, writes))
    for stretch in found:
        if uses.reaching or any(_is_product(item) for _, item in stretch):
            uses.read(stretch)
    for one in uses.sums:
        one.choose()
    written: dict[int, list[Instruction]] = {}
    for product in uses.products:
        written |= product.replaced(function)
    body: list[Instruction | Label] = []
    for position, statement in enumerate(function.body):
        body += written.get(position, [statement])
    function.body = body


def _without_unused(body: list[Instruction | Label]) -> list[Instruction | Label]:
    """Leave out arithmetic on floats whose result nobody reads: it is no use of a product."""
    items = [item for item in body if isinstance(item, Instruction)]
    reads = Counter(name for item in items for name in reads_and_writes(item)[0])
    arithmetic = [
        item
        for item in items
        if (item.opcode[0] in _ARITHMETIC and item.opcode[-1] in _TYPES) or _is_quotient(item)
    ]
    unused: set[int] = set()
    found = True
    while found:
        found = False
        for item in reversed(arithmetic):
            sources, targets = reads_and_writes(item)
            if id(item) not in unused and not any(reads[name] for name in targets):
                unused.add(id(item))
                reads.subtract(sources)
                found = True
    return [item for item in body if id(item) not in unused] if unused else body


def _constants(function: Function, writes: Counter[str]) -> set[str]:
    """Return the registers that machine code has as constants: literals, parameters, constant memory."""
    parameters = {variable.name for variable in function.params} if function.entry else set()
    found: set[str] = set()
    for item in function.body:
        if not isinstance(item, Instruction) or item.guard is not None or len(item.operands) != 2:
            continue
        source = item.operands[1]
        if item.opcode[0] in ("mov", "neg"):
            constant = isinstance(source, Imm) or (isinstance(source, Reg) and source.name in found)
        elif item.opcode[0] == "ld" and isinstance(source, Mem) and isinstance(source.base, Sym):
            constant = "const" in item.opcode or source.base.name in parameters
        else:
            constant = False
        if constant:
            found |= {name for name in reads_and_writes(item)[1] if writes[name] == 1}
    return found


def _is_quotient(item: Instruction) -> bool:
    return item.opcode[0] == "div" and item.opcode[1] in _COARSE and item.guard is None


def _is_product(item: Instruction) -> bool:
    return _is_quotient(item) or (
        item.opcode[0] == "mul"
        and item.opcode[-1] in _TYPES
        and item.opcode[1:-1] in ((), ("ftz",))
        and item.guard is None
        and not any(isinstance(x, Imm) and x.bits in _ONES.get(x.width, ()) for x in item.operands[1:])
    )


def _is_sum(item: Instruction) -> bool:
    return (
        item.opcode[0] in ("add", "sub")
        and item.opcode[-1] in _TYPES
        and {*item.opcode[1:-1]} <= {"ftz", "sat"}
    )


def _kind(item: Instruction) -> tuple[str, bool]:
    """What a product and its sum must have in common: the type, and whether subnormals are flushed."""
    return item.opcode[-1], "ftz" in item.opcode


class _Product(Struct, eq=False):
    """A product that may go into sums.

    `versions` counts how often its factors had been written before; `overwritten` are those, by number, that
    are written again before a sum reads the product. `names` are positions of moves and changes of sign that
    rename it. `sums` are those that could take it, one of them twice where both operands are this product;
    `others` counts other operands that it is, and `bits_taken` how many of these take the bits of a change of
    its sign, by the position of that. `left` tells whether a sum has taken another product instead. One that
    `reaches` others has a constant factor; `stretch` is the number of that where it lies.
    """

    position: int
    item: Instruction
    versions: tuple[int, ...]
    stretch: int
    reaches: bool
    overwritten: set[int] = field(default_factory=set)
    names: list[int] = field(default_factory=list)
    sums: list["_Sum"] = field(default_factory=list)
    others: int = 0
    bits_taken: Counter[int] = field(default_factory=Counter)
    taken_by: list["_Sum"] = field(default_factory=list)
    left: bool = False

    @property
    def uses(self) -> int:
        return len(self.sums) + self.others

    @property
    def may_be_taken(self) -> bool:
        """Whether it is needed by sums only, each of which would take it."""
        if self.others or self.left or len({*self.sums}) < len(self.sums):
            return False
        if len(self.sums) == 1 or self.item.opcode[-1] in _PACKED:
            return True
        return all(term is None or term.product.uses > 1 for one in self.sums for term in one.terms)

    def replaced(self, function: Function) -> dict[int, list[Instruction]]:
        """Return what stands in the place of instructions, by position, now that sums have chosen."""
        sign = self._sign_to_compute()
        if not self.taken_by and sign is None:
            return {}
        copies, factors = self._factors(function)
        written = {one.position: [one.contracted(factors)] for one in self.taken_by}
        if sign is not None:
            item = function.body[sign]
            assert isinstance(item, Instruction)
            operands = (item.operands[0], *factors, _MINUS_ZERO)
            written[sign] = [replace(item, opcode=_fused("fnma", self.item), operands=operands)]
        elif len(self.taken_by) < len(self.sums):
            return written | {self.position: [*copies, self.item]}
        else:
            written |= {position: [] for position in self.names}
        return written | {self.position: copies}

    def _sign_to_compute(self) -> int | None:
        """Return the position of a change of sign, the only use, that becomes a multiply-add; of f32 only."""
        coarse = _is_quotient(self.item)
        if coarse or self.item.opcode[-1] != "f32" or self.sums or len(self.bits_taken) != 1:
            return None
        ((position, uses),) = self.bits_taken.items()
        return position if uses == self.others and self.names[0] == position else None

    def _factors(self, function: Function) -> tuple[list[Instruction], tuple[Operand, ...]]:
        """Return moves that keep the factors that are written again, and the factors for sums to read."""
        copies: list[Instruction] = []
        factors = list(self.item.operands[1:])
        for number in sorted(self.overwritten):
            kind = _TYPES[self.item.opcode[-1]]
            copy = Reg(f"factor {number + 1} of {self.position}")
            function.registers[copy.name] = kind
            copies.append(replace(self.item, opcode=("mov", kind), operands=(copy, factors[number])))
            factors[number] = copy
        if _is_quotient(self.item):
            inverse = Reg(f"reciprocal of {self.position}")
            function.registers[inverse.name] = "f32"
            opcode = ("rcp", "approx", *self.item.opcode[2:])
            copies.append(replace(self.item, opcode=opcode, operands=(inverse, self.item.operands[2])))
            factors[1] = inverse
        return copies, tuple(factors)


def _fused(name: str, item: Instruction) -> tuple[str, ...]:
    """Return the opcode of a multiply-add with the modifiers of a product or sum."""
    return (name, "rn", *(word for word in item.opcode[1:] if word not in _COARSE))


@dataclass(frozen=True)
class _Name:
    """What a register holds: a product, or that with the other sign, which changed at a position last."""

    product: _Product
    minus: bool = False
    changed_at: int = -1


class _Sum(Struct, eq=False):
    """A sum or difference of two terms, those named that are products of its kind."""

    position: int
    item: Instruction
    terms: tuple[_Name | None, _Name | None]
    taken: int = -1

    def choose(self) -> None:
        """Take the term that ptxas contracts it with, if any."""
        choice = [
            (term.product.uses, number)
            for number, term in enumerate(self.terms)
            if term is not None and term.product.may_be_taken
        ]
        if not choice:
            return
        self.taken = min(choice)[1]
        term, other = self.terms[self.taken], self.terms[1 - self.taken]
        assert term is not None
        term.product.taken_by.append(self)
        if other is not None:
            other.product.left = True

    def contracted(self, factors: tuple[Operand, ...]) -> Instruction:
        """Return the multiply-add that it becomes, given the factors of the product that it took."""
        target, *operands = self.item.operands
        term = self.terms[self.taken]
        assert term is not None
        minus = [False, self.item.opcode[0] == "sub"]
        opcode = _fused(_NAMES[minus[self.taken] != term.minus, minus[1 - self.taken]], self.item)
        return replace(self.item, opcode=opcode, operands=(target, *factors, operands[1 - self.taken]))


class _Uses:
    """The products of a function and what each is used for, found by reading its stretches in order.

    `passing` are registers whose value may be read in another stretch, or in another pass through this one.
    `writes` counts how often each is written, and `first_reads` has where each is read first.
    """

    def __init__(
        self, passing: set[str], writes: Counter[str], first_reads: dict[str, int], constants: set[str]
    ) -> None:
        self.passing = passing
        self.writes = writes
        self.first_reads = first_reads
        self.constants = constants
        self.products: list[_Product] = []
        self.sums: list[_Sum] = []
        #: Registers that hold, in stretches to come, products which reach these.
        self.reaching: dict[str, _Name] = {}
        self._names: dict[str, _Name] = {}
        self._versions: Counter[str] = Counter()
        self._stretch = 0

    def read(self, stretch: Stretch) -> None:
        self._stretch += 1
        self._names, self._versions = {**self.reaching}, Counter()
        for position, item in stretch:
            self._read(position, item)
        for register in self._names.keys() & self.passing:
            name, written = self._names[register], self.writes[register]
            if name.product.reaches and written == 1 and self.first_reads[register] > name.product.position:
                self.reaching[register] = name
            else:  # a register that others write too is one whose value a way through the code chooses
                self._used_otherwise(register, takes_bits=written > 1)

    def _read(self, position: int, item: Instruction) -> None:
        reads, writes = reads_and_writes(item)
        name = self._renamed(position, item)
        product = None
        if name is None and _is_sum(item):
            self._add(position, item)
        elif name is None:
            vector = any(isinstance(operand, Vec) for operand in item.operands)
            for register in reads:
                self._used_otherwise(register, takes_bits=vector or item.opcode[0] in _TAKES_BITS)
            if _is_product(item):
                versions = (self._versions[x.name] if isinstance(x, Reg) else 0 for x in item.operands[1:])
                product = _Product(position, item, tuple(versions), self._stretch, self._has_constant(item))
                self.products.append(product)
                name = _Name(product)
        for register in writes:
            if item.guard is not None:
                self._used_otherwise(register)
            self._names.pop(register, None)
            self._versions[register] += 1
        if name is not None:
            self._names[writes[0]] = name

    def _has_constant(self, item: Instruction) -> bool:
        return not _is_quotient(item) and any(
            isinstance(x, Imm) or (isinstance(x, Reg) and x.name in self.constants) for x in item.operands[1:]
        )

    def _renamed(self, position: int, item: Instruction) -> _Name | None:
        """Return what a move or a change of sign makes of a product; None if it is nothing of the kind."""
        if item.opcode[0] not in ("mov", "neg") or item.guard is not None or len(item.operands) != 2:
            return None
        target, source = item.operands
        name = self._names.get(source.name) if isinstance(source, Reg) and isinstance(target, Reg) else None
        if name is not None and item.opcode[0] == "neg":
            kind = _kind(name.product.item)
            if kind[0] == "bf16x2" or kind != _kind(item):
                return None
            name = replace(name, minus=not name.minus, changed_at=-1 if name.minus else position)
        if name is not None:
            name.product.names.append(position)
        return name

    def _add(self, position: int, item: Instruction) -> None:
        terms: list[_Name | None] = []
        for operand in item.operands[1:]:
            name = self._names.get(operand.name) if isinstance(operand, Reg) else None
            if name is not None and _kind(name.product.item) != _kind(item):
                name.product.others += 1
                name = None
            terms.append(name)
        if terms == [None, None]:
            return
        one = _Sum(position, item, (terms[0], terms[1]))
        self.sums.append(one)
        for name in one.terms:
            if name is not None:
                product = name.product
                product.sums.append(one)
                factors = enumerate(zip(product.item.operands[1:], product.versions, strict=True))
                here = product.stretch == self._stretch
                product.overwritten |= {
                    number
                    for number, (factor, version) in factors
                    if isinstance(factor, Reg)
                    and (self._versions[factor.name] > version if here else self.writes[factor.name] > 1)
                }

    def _used_otherwise(self, register: str, *, takes_bits: bool = False) -> None:
        name = self._names.get(register)
        if name is not None:
            name.product.others += 1
            if takes_bits and name.changed_at >= 0:
                name.product.bits_taken[name.changed_at] += 1


#: What ends a stretch of code wherever it stands.
_ENDS = frozenset({"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "membar", "pmevent"})
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})


def _stretches(function: Function, pure: frozenset[str]) -> Iterator[Stretch]:
    """Yield instructions that run one after the other whatever happens."""
    ways = Counter(_goal(item) for item in function.body if isinstance(item, Instruction))
    ways.update(name for table in function.tables.values() for name in table)
    found: Stretch = []
    gone_to = ""
    for position, item in enumerate(function.body):
        if isinstance(item, Label):
            arrives = gone_to == item.name
            if ways[item.name] > arrives or (gone_to and not arrives):
                yield found
                found = []
            gone_to = ""
        elif item.guard is None and _goal(item):
            gone_to = _goal(item)
        elif _ends_stretch(item, pure):
            yield found
            yield [(position, item)]
            found = []
        else:
            found.append((position, item))
    yield found


def _goal(item: Instruction) -> str:
    """Return the label that a branch goes to; empty for anything else."""
    goal = item.operands[0] if item.opcode[0] == "bra" else None
    return goal.name if isinstance(goal, Sym) else ""


def _ends_stretch(item: Instruction, pure: frozenset[str]) -> bool:
    """Tell whether machine code branches for an instruction, or calls."""
    name, words = item.opcode[0], item.opcode
    if name in _ENDS or (item.guard is not None and name not in pure):
        return True
    if name == "fence":
        return "proxy" not in words and "mbarrier_init" not in words
    if name in ("div", "rem") and words[-1][0] in "us":
        return words[-1] != "u32"
    if name in ("div", "rcp", "sqrt"):
        return not _ROUNDINGS.isdisjoint(words)
    return name == "rsqrt" and words[-1] == "f64" and "ftz" not in words
