# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random kernels full of divergence, against the same program run by Python one thread at a time."""

import random

import numpy as np
import pytest
from executor_harness import run_cuda

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


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels(seed):
    text, lines = Generator(seed).block(3)
    source = f"""extern "C" __global__ void k(const unsigned *x, unsigned *out) {{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, a = x[t & 63], b = x[(t * 7) & 63], c = t;
    {text}
    out[t] = a ^ b ^ c;
}}"""
    head = ["def alone(t, x):", "  a, b, c = x[t & 63], x[(t * 7) & 63], t"]
    namespace = {}
    exec("\n".join([*head, *indented(lines), "  return a ^ b ^ c"]), namespace)
    numbers = np.random.default_rng(1).integers(0, 2**32, 64, dtype=np.uint32)
    (_, out), _ = run_cuda(source, numbers, np.zeros(210, np.uint32), grid=(3, 1, 1), block=(70, 1, 1))
    assert out.array().tolist() == [namespace["alone"](t, numbers.tolist()) for t in range(210)]
