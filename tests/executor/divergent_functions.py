# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random functions full of divergence, written in CUDA and in Python at once."""

import random

MASK = 0xFFFFFFFF
EXPRESSIONS = ["a + b", "b * 3 + c", "a ^ c", "(a >> 3) | b", "c - a", "a & b", "b + t", "x[(a ^ t) & 63]"]
CONDITIONS = ["a & 1", "(b ^ t) & 2", "(c & 7) > 3", "t & 4"]
TRIPS = ["(a & 3)", "(t & 5)", "3", "(b & 7)"]
JUMPS = [("(a & 15) == 7", "break"), ("c & 1", "continue"), None]


class Generator:
    """Writes one random function in CUDA and in Python at once."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.loops = 0

    def block(self, depth: int) -> tuple[str, list[str]]:
        """Return one to four statements as (CUDA text, Python lines)."""
        parts = [self.statement(depth) for _ in range(self.rng.randint(1, 4))]
        return " ".join(text for text, _ in parts), [line for _, lines in parts for line in lines]

    def statement(self, depth: int) -> tuple[str, list[str]]:
        kind = self.rng.random() if depth else 0.0
        if kind < 0.45:
            name, value = self.rng.choice("abc"), self.rng.choice(EXPRESSIONS)
            return f"{name} = {value};", [f"{name} = ({value}) & {MASK}"]
        if kind < 0.7:
            condition = self.rng.choice(CONDITIONS)
            (text, lines), (other_text, other_lines) = self.block(depth - 1), self.block(depth - 1)
            code = f"if ({condition}) {{ {text} }} else {{ {other_text} }}"
            return code, [f"if {condition}:", *indented(lines), "else:", *indented(other_lines)]
        if kind < 0.9:
            return self.loop(depth)
        condition = self.rng.choice(["(a & 31) == 5", "(t & 31) == (b & 31)"])
        code = f"if ({condition}) {{ out[t] = a + b; return; }}"
        return code, [f"if {condition}: return (a + b) & {MASK}"]

    def loop(self, depth: int) -> tuple[str, list[str]]:
        self.loops += 1
        i, n, trips, jump = f"i{self.loops}", f"n{self.loops}", self.rng.choice(TRIPS), self.rng.choice(JUMPS)
        text, lines = self.block(depth - 1)
        leave = f"if ({jump[0]}) {jump[1]};" if jump else ""
        code = (
            f"unsigned {n} = {trips}; for (unsigned {i} = 0; {i} < {n}; ++{i}) {{ {text} {leave} b += {i}; }}"
        )
        body = [*lines, *([f"if {jump[0]}: {jump[1]}"] if jump else []), f"b = (b + {i}) & {MASK}"]
        return code, [f"{n} = {trips}", f"for {i} in range({n}):", *indented(body)]


def indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
