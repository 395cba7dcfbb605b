# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Cut a function into stretches of code, within which ptxas combines instructions.

A stretch has no way in or out but its ends. What ends one is read off machine code: labels that are jumped
to, branches, calls, and instructions that machine code branches for though PTX does not show it.
"""

from collections import Counter
from collections.abc import Iterator

from gpuprof.executor.program.flow import reads_and_writes
from gpuprof.executor.program.ptx import Function, Instruction, Label, Sym

#: Instructions of a stretch, with their positions in the function's body.
Stretch = list[tuple[int, Instruction]]

#: What ends a stretch of code wherever it stands.
_ENDS = frozenset({"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "membar", "pmevent"})
#: What machine code runs under a predicate, or selects from; it branches around anything else.
_PREDICATED = frozenset(
    {
        *("mov", "cvt", "cvta", "selp", "slct", "setp", "set", "testp", "copysign", "isspacep"),
        *("add", "sub", "mul", "mad", "fma", "neg", "abs", "min", "max", "sad", "mul24", "mad24"),
        *("and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf", "prmt", "bfe", "bfi", "bmsk"),
        *("bfind", "popc", "clz", "brev", "fns", "szext", "dp4a", "dp2a", "addc", "subc", "madc"),
        *("ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt", "div", "rem"),
    }
)
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})


def stretches(function: Function) -> Iterator[Stretch]:
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
        elif _ends_stretch(item):
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


def _ends_stretch(item: Instruction) -> bool:
    """Tell whether machine code branches for an instruction, or calls."""
    name, words = item.opcode[0], item.opcode
    if name in _ENDS or (item.guard is not None and name not in _PREDICATED):
        return True
    if name == "fence":
        return "proxy" not in words and "mbarrier_init" not in words
    if name in ("div", "rem") and words[-1][0] in "us":
        return words[-1] != "u32"
    if name in ("div", "rcp", "sqrt"):
        return not _ROUNDINGS.isdisjoint(words)
    return name == "rsqrt" and words[-1] == "f64" and "ftz" not in words


def read_first(stretch: Stretch) -> set[str]:
    """Return the registers whose value comes from another stretch, or from another pass through this one."""
    first: set[str] = set()
    written: set[str] = set()
    for _, item in stretch:
        reads, writes = reads_and_writes(item)
        first |= {*reads} - written
        if item.guard is None:
            written |= {*writes}
    return first
