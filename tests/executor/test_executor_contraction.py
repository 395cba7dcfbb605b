# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is contracted to fused multiply-adds is what ptxas contracts, and everything follows from that.

`contraction/ptxas.json` holds what ptxas made of the same kernels; `benchmarks/contraction.py` asks it.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from gpuprof.executor import Definedness, GlobalMemory, launch, load_program
from gpuprof.executor.program.contraction import contract_products
from gpuprof.executor.program.parsing import parse
from gpuprof.executor.program.ptx import Function, Instruction
from gpuprof.executor.steps.fusion import PURE

FOLDER = Path(__file__).parent / "contraction"
sys.path.append(str(FOLDER))

from contraction_kernels import (  # noqa: E402  (it stands beside this file)
    TYPES,
    branching_kernels,
    form_kernels,
    kernel,
    module,
    parted_kernels,
    straight_kernels,
)
from expressions import of_function  # noqa: E402

PTXAS = json.loads((FOLDER / "ptxas.json").read_text())
MULTIPLY_ADDS = ("fma", "fms", "fnma", "fnms")


def contracted(name: str, text: str) -> Function:
    function = parse(module({name: text})).functions[name]
    contract_products(function, PURE)
    return function


def counted(function: Function) -> list[int]:
    """Return how many multiply-adds, products and sums of f32 there are."""
    kinds = dict.fromkeys(MULTIPLY_ADDS, 0) | {"mul": 1, "add": 2, "sub": 2}
    found = Counter(
        kinds.get(item.opcode[0])
        for item in function.body
        if isinstance(item, Instruction) and item.opcode[-1] == "f32"
    )
    return [found[i] for i in range(3)]


@pytest.mark.parametrize(
    ("table", "kernels"),
    [("straight", straight_kernels()), ("forms", form_kernels())],
    ids=["straight", "forms"],
)
def test_expressions_are_those_of_machine_code(table, kernels):
    ours = {
        name: of_function(contracted(name, text), TYPES[kind][0]) for name, (kind, text) in kernels.items()
    }
    found = {name: {str(number): of[number] for number in sorted(of)} for name, of in ours.items()}
    assert found == {name: PTXAS[table][name] for name in kernels}


#: Of these ptxas fuses one product less, or one more, across a branch: no rule is known.
UNEXPLAINED = {"branches_22", "branches_33", "branches_34", "branches_49", "constants_12", "constants_135"}


def test_branches_part_and_barriers_do_not():
    found = {name: counted(contracted(name, text)) for name, text in branching_kernels().items()}
    assert {name for name, counts in found.items() if counts != PTXAS["branching"][name]} == UNEXPLAINED


def test_what_parts_a_product_from_its_sum():
    for name, (line, text) in parted_kernels().items():
        fused = any(
            isinstance(item, Instruction)
            and item.opcode[0] in MULTIPLY_ADDS
            and item.operands[0].name == "%t1"
            for item in contracted(name, text).body
        )
        assert fused == PTXAS["between"][line], line


def run(lines: list[str], x: np.ndarray, count: int, kind: str = "f32", *, undefined: bool = False):
    """Run lines on 32 threads, thread i on row i of x; return what each stores, and the counters."""
    text = module({"k": kernel("k", kind, lines, x.shape[1], [f"%t{i}" for i in range(count)])})
    row = 256 // x.dtype.itemsize
    arrays = np.zeros((2, 32, row), x.dtype)
    arrays[0, :, : x.shape[1]] = x
    memory = GlobalMemory()
    source, target = (memory.allocate(array, name) for array, name in zip(arrays, "io", strict=True))
    program = load_program(text, "k", observer=Definedness() if undefined else None)
    result = launch(program, (1, 1, 1), (32, 1, 1), [source, target], memory)
    return target.array().reshape(32, row)[:, :count], result.counters


def values(seed: int, columns: int, dtype=np.float32) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, (32, columns)).astype(dtype)


#: A product of two values goes into a third: lines, and what comes out in more precision.
SIGNS = {
    "fma": ("add.f32 %t0, %t1, %x2;", lambda a, b, c: a * b + c),
    "fms": ("sub.f32 %t0, %t1, %x2;", lambda a, b, c: a * b - c),
    "fnma": ("sub.f32 %t0, %x2, %t1;", lambda a, b, c: c - a * b),
    "fnms": ("neg.f32 %t2, %t1; sub.f32 %t0, %t2, %x2;", lambda a, b, c: -(a * b) - c),
}


@pytest.mark.parametrize("undefined", [False, True])
@pytest.mark.parametrize("name", SIGNS)
def test_it_is_rounded_once_and_counted(name, undefined):
    line, compute = SIGNS[name]
    x = values(1, 3)
    out, counters = run(["mul.f32 %t1, %x0, %x1;", line], x, 1, undefined=undefined)
    # Two factors of 24 bits fit float64, and so does the sum here, but for bits that no float32 shows.
    assert np.array_equal(out[:, 0], compute(*x.astype(np.float64).T).astype(np.float32))
    assert counters["ffma_thread_instructions"] == 32
    twice, counters = run(["mul.rn.f32 %t1, %x0, %x1;", line], x, 1, undefined=undefined)
    assert not np.array_equal(out, twice)
    assert counters["ffma_thread_instructions"] == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in SIGNS
        for kind in TYPES
        if kind != "f32" and (name, kind) != ("fnms", "bf16x2")
    ],
)
def test_other_types_round_once_too(name, kind):
    line = SIGNS[name][0].replace("f32", kind)
    dtype = {"f64": np.uint64, "f16": np.uint16, "bf16": np.uint16}.get(kind, np.uint32)
    rng = np.random.default_rng(3)
    if kind == "f64":
        x = rng.uniform(-2, 2, (32, 3)).view(dtype)
    else:
        one = {"f": 0x3C00, "b": 0x3F80}[kind[0]]
        halves = one + rng.integers(0, 1 << 7, (32, 3, dtype().itemsize // 2), dtype=np.uint16)
        x = halves.view(dtype)[..., 0]
    out, _ = run([f"mul.{kind} %t1, %x0, %x1;", line], x, 1, kind)
    # `fma` on operands whose signs instructions changed: a way that shares nothing with contraction.
    minus_product, minus_addend = name in ("fnma", "fnms"), name in ("fms", "fnms")
    explicit = [
        *([f"neg.{kind} %x0, %x0;"] if minus_product else []),
        *([f"neg.{kind} %x2, %x2;"] if minus_addend else []),
        f"fma.rn.{kind} %t0, %x0, %x1, %x2;",
    ]
    assert np.array_equal(out, run(explicit, x, 1, kind)[0])
    assert not np.array_equal(out, run([f"mul.rn.{kind} %t1, %x0, %x1;", line], x, 1, kind)[0])


def test_under_a_guard_only_those_threads_count_that_it_holds_for():
    x = values(6, 3)
    lines = [
        "setp.lt.u32 %p1, %r1, 10;",
        "mul.f32 %t1, %x0, %x1;",
        "mov.f32 %t0, %x2;",
        "@%p1 sub.f32 %t0, %t1, %x2;",
    ]
    out, counters = run(lines, x, 1)
    a, b, c = x.astype(np.float64).T
    assert np.array_equal(out[:, 0], np.where(np.arange(32) < 10, a * b - c, c).astype(np.float32))
    assert counters["ffma_thread_instructions"] == 10


def test_what_nobody_reads_is_no_use_of_a_product():
    x = values(7, 3)
    lines = ["mul.f32 %t1, %x0, %x1;", "mul.f32 %t2, %t1, %x0;", "add.f32 %t0, %t1, %x2;"]
    _, counters = run(lines, x, 1)
    assert counters["ffma_thread_instructions"] == 32
