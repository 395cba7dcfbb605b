# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX's instructions in each form that ptxas takes for sm_90: what they make of operands is what a card made.

`instructions/answers-h200.json.xz` has the arithmetic ones, and kernels of products of matrices, of atomics
and of what lanes exchange, with checksums of what an H200 left in their arrays.
"""

import json
import lzma
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
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


def of_one_kind(kinds: str, entries: list[list]) -> Iterator[tuple]:
    """Kernels that each execute several arithmetic instructions with operands of the same types."""
    for start in range(0, len(entries), TOGETHER):
        some = entries[start : start + TOGETHER]
        kernel = of_arithmetic([(text, result) for text, _, result, _ in some], json.loads(kinds))
        answers = [value for *_, told_of in some for value in told_of.values()]
        first = len(kernel[1]) - len(some)
        yield " ".join(text for text, *_ in some), *kernel, dict(enumerate(answers, first))


def test_arithmetic_is_what_the_card_computes():
    """In each form that ptxas takes, with 4,096 operands; approximations apart."""
    alike = defaultdict(list)
    for entry in told()["arithmetic"]:
        alike[json.dumps(entry[1])].append(entry)
    assert not differing(chain.from_iterable(of_one_kind(*some) for some in alike.items()))


def test_kernels_leave_what_they_do_on_the_card():
    """Products of matrices, atomics, and what lanes exchange."""
    assert not differing(told()["kernels"])
