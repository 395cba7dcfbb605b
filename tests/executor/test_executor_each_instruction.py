# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX's instructions in each form that ptxas takes for sm_90: what they make of operands is what a card made.

`instructions/answers-h200.json.xz` has the arithmetic ones, and kernels of products of matrices, of atomics
and of what lanes exchange, with checksums of what an H200 left in their arrays.
"""

import json
import lzma
import re
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpuprof.executor import GlobalMemory, launch, load_program

FOLDER = Path(__file__).parent / "instructions"
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "rules")]

from operands import HEAD, array, of_arithmetic  # noqa: E402

pytestmark = pytest.mark.deep


@cache
def told() -> dict:
    return json.loads(lzma.decompress((FOLDER / "answers-h200.json.xz").read_bytes()))


@cache
def given(what: str) -> np.ndarray:
    return array(json.loads(what))


def differing(cases: Iterable[tuple]) -> list[str]:
    """Name the kernels that leave something else in arrays than the card, whose checksums come last."""
    found = []
    for name, text, arrays, grid, block, answer in cases:
        program, memory = load_program(HEAD + text, "k"), GlobalMemory()
        buffers = [memory.allocate(given(json.dumps(what)), f"array {i}") for i, what in enumerate(arrays)]
        launch(program, (grid, 1, 1), (block, 1, 1), buffers, memory)
        wrong = [p for p, value in answer.items() if zlib.crc32(buffers[int(p)].array().tobytes()) != value]
        if wrong:
            found.append(f"{name}: array {wrong}")
    return found


#: Arithmetic instructions that one launch executes, one after another: it takes longer than they do.
TOGETHER = 100


def together(entries: list[list]) -> tuple:
    """One kernel that executes several arithmetic instructions, and answers by the places of their arrays."""
    names, bodies, given, answer = [], [], [], {}
    for name, kinds, result, told_of in entries:
        text, arrays, *launched = of_arithmetic(name, kinds, result)
        first = len(given)
        body = text.partition("{")[2].rpartition("ret;")[0]
        bodies.append(re.sub(r"\[p(\d+)\]", lambda place, first=first: f"[p{first + int(place[1])}]", body))
        answer |= {first + int(place): value for place, value in told_of.items()}
        given += arrays
        names.append(name)
    parameters = ", ".join(f".param .u64 p{place}" for place in range(len(given)))
    whole = "\n".join(
        (f".visible .entry k({parameters}) {{", *(f"{{{body}}}" for body in bodies), "ret;", "}")
    )
    return " ".join(names), whole, given, *launched, answer


def test_arithmetic_is_what_the_card_computes():
    """In each form that ptxas takes, with 4,096 operands; approximations apart."""
    entries = told()["arithmetic"]
    assert not differing(together(entries[i : i + TOGETHER]) for i in range(0, len(entries), TOGETHER))


def test_kernels_leave_what_they_do_on_the_card():
    """Products of matrices, atomics, and what lanes exchange."""
    assert not differing(told()["kernels"])
