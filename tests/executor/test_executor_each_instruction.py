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
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from each import each

from gpuprof.executor import Buffer, Definedness, GlobalMemory, LaunchResult, launch, load_program

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


def executed(case: tuple, observer: Definedness | None = None) -> tuple[list[Buffer], LaunchResult]:
    """Run a kernel; return its arrays and what was counted."""
    _, text, arrays, grid, block, _ = case
    program, memory = load_program(HEAD + text, "k", observer=observer), GlobalMemory()
    contents = [what if isinstance(what, np.ndarray) else given(json.dumps(what)) for what in arrays]
    buffers = [memory.allocate(content, f"array {i}") for i, content in enumerate(contents)]
    return buffers, launch(program, (grid, 1, 1), (block, 1, 1), buffers, memory)


def differing(cases: Iterable[tuple], observer: Callable[[], Definedness | None] = lambda: None) -> list[str]:
    """Name the kernels that leave something else in arrays than the card, whose checksums come last."""
    found = []
    for case in cases:
        buffers, _ = executed(case, observer())
        wrong = [p for p, value in case[-1].items() if zlib.crc32(buffers[int(p)].array().tobytes()) != value]
        if wrong:
            found.append(f"{case[0]}: array {wrong}")
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


def test_some_leave_the_same_where_undefined_values_are_followed():
    some = [case for case in told()["kernels"][::25] if ".b128" not in case[0]]
    assert len(some) > 20
    assert not differing(some, Definedness)


def kernel(name: str) -> list:
    return next(case for case in told()["kernels"] if case[0].startswith(f"mma.{name} "))


@each(selector=[1, 2, 3])
def test_any_lane_of_four_may_say_what_a_sparse_row_holds(selector):
    name, text, arrays, *more = kernel("sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    assert ", r31, 0;" in text
    moved = np.roll(given(json.dumps(arrays[3])), selector)
    text = text.replace(", r31, 0;", f", r31, {selector};")
    assert not differing([(name, text, [*arrays[:3], moved, *arrays[4:]], *more)])


def test_what_products_of_few_bits_and_sparse_ones_count():
    def counted(name: str) -> tuple[int, LaunchResult]:
        case = kernel(name)
        return case[3] * case[4] // 32, executed(case)[1]

    warps, result = counted("sync.aligned.m16n8k64.row.col.s32.s4.s4.s32")
    assert result.counters["imma_instructions"] == 2 * warps
    assert result.counters["tensor_i8_operations"] == warps * 2 * 16 * 8 * 64
    warps, result = counted("sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert result.counters["hmma_instructions"] == warps
    assert "tensor_f16_operations" in result.hidden
    assert "imma_instructions" in counted("sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc")[1].hidden
