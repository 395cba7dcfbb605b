# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random statements of CUDA C++ over a thread's own variables, with a defined result whatever these hold.

The variables are the 32-bit integers `a`, `b`, `c`, the floats `p`, `q`, the double `u` and the 64-bit `w`;
`t` is the thread's number in its block and `g` that in the grid. Statements read the arrays `x`, `f`, `d` and
the constant `table` at masked indices.
"""

import random
import re
import tomllib
from pathlib import Path

_FOLDER = Path(__file__).parent
#: What every kernel starts with.
HELPERS = (_FOLDER / "random_helpers.cuh").read_text()
_PARTS = tomllib.loads((_FOLDER / "random_statements.toml").read_text())
#: The kind of value that each letter of an expression stands for.
_KINDS = {letter: letters[0] for letters in ("IJK", "FGH", "DE", "LM") for letter in letters}
_TARGETS = [*(("a", "I"), ("b", "I"), ("c", "I")) * 3, *(("p", "F"), ("q", "F")) * 2, ("u", "D"), ("w", "L")]


class Statements:
    """Writes statements; all randomness comes from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.loops = 0

    def functions(self) -> str:
        """Return the function that is called and not inlined."""
        body = "    if (i & 8u) return j ^ i;\n" if self.rng.random() < 0.5 else ""
        body += f"    for (unsigned k = 0; k < (i & 3u); ++k) i = i * {self.rng.choice([3, 5, 9])}u + j;\n"
        return (
            "__device__ __noinline__ unsigned far(unsigned i, unsigned j)\n{\n"
            f"{body}    return i {self.rng.choice('+-^')} (j >> {self.rng.randint(1, 9)});\n}}\n"
        )

    def condition(self) -> str:
        """Return a condition on which lanes may differ."""
        return self.rng.choice(_PARTS["conditions"])

    def assignment(self) -> str:
        """Return a statement that changes one variable."""
        name, family = self.rng.choice(_TARGETS)
        return f"{name} = {self._expression(family, self.rng.randint(1, 2))};"

    def block(self, depth: int, *, may_return: bool = False) -> str:
        """Return one to four statements, nested up to `depth`; a thread may leave where that is allowed."""
        return " ".join(self._statement(depth, may_return) for _ in range(self.rng.randint(1, 3)))

    def _statement(self, depth: int, may_return: bool) -> str:
        rng = self.rng
        kind = rng.random() if depth else 0.0
        if kind < 0.5:
            return self.assignment()
        if kind < 0.7:
            text, other = self.block(depth - 1, may_return=may_return), self.block(depth - 1)
            return f"if ({self.condition()}) {{ {text} }} else {{ {other} }}"
        if kind < 0.85:
            return self._loop(depth, may_return)
        if kind < 0.95 or not may_return:
            return self._switch(depth)
        return f"if ({self.condition()}) {{ {self.assignment()} LEAVE }}"

    def _loop(self, depth: int, may_return: bool) -> str:
        rng = self.rng
        self.loops += 1
        i, n = f"i{self.loops}", f"n{self.loops}"
        trips, jump = rng.choice(_PARTS["trips"]), rng.choice(_PARTS["jumps"])
        body = f"{self.block(depth - 1, may_return=may_return)} {jump} b += {i};"
        if rng.random() < 0.3:
            loop = f"unsigned {i} = 0; do {{ ++{i}; {body} }} while ({i} < {n});"
        else:
            unroll = rng.choice(["", "", '_Pragma("unroll 1") '])
            loop = f"{unroll}for (unsigned {i} = 0; {i} < {n}; ++{i}) {{ {body} }}"
        return f"{{ const unsigned {n} = {trips}; {loop} }}"

    def _switch(self, depth: int) -> str:
        rng = self.rng
        count = rng.randint(2, 5)
        cases = " ".join(
            f"case {i}: {self.block(depth - 1)} {'break;' if rng.random() < 0.8 else ''}"
            for i in range(count)
        )
        return (
            f"switch ({rng.choice('abc')} & {rng.choice([3, 7])}u) {{ {cases} default: {self.assignment()} }}"
        )

    def _expression(self, kind: str, depth: int) -> str:
        rng = self.rng
        if not depth or rng.random() < 0.15:
            return rng.choice(_PARTS["leaves"][kind])
        pattern = rng.choice(_PARTS["expressions"][kind])
        made = {letter: self._expression(of, depth - 1) for letter, of in _KINDS.items() if letter in pattern}
        return "(" + re.sub(r"\b[D-M]\b", lambda match: made[match[0]], pattern) + ")"
