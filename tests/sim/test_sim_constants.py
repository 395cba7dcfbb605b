# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The kernels that measure what modelled times need, executed here: no fault, and no loop left out."""

from functools import cache

import numpy as np
import pytest

from gpuprof.backends.gpu.constant_meter import entries_for, source
from gpuprof.executor import GlobalMemory, load_program
from gpuprof.executor import launch as execute
from gpuprof.toolchain.nvrtc import compile_source, compiler_options

pytestmark = pytest.mark.deep

ROUNDS, MASK = 2, (1 << 16) - 1


@cache
def program(entry: str):
    return load_program(
        compile_source(source(), "constants.cu", entry, compiler_options("sm_90a")).ptx, entry
    )


def run(entry: str, arguments: list, threads: int = 32, blocks: int = 1) -> np.ndarray:
    """Launch a kernel; arguments that are names stand for arrays of zeros."""
    memory = GlobalMemory()
    sizes = {"data": MASK + 1, "sink": 4096, "out": 8192, "ring": 64, "done": 4}
    buffers = {name: memory.allocate(np.zeros(size, np.uint8), name) for name, size in sizes.items()}
    passed = [buffers[value] if isinstance(value, str) else value for value in arguments]
    execute(program(entry), (blocks, 1, 1), (threads, 1, 1), passed, memory)
    return buffers["out"].array().view(np.int64)


def cycles(entry: str, arguments: list, threads: int = 32) -> int:
    begin, end = run(entry, arguments, threads)[:2]
    return int(end - begin)


def ints(*values: int) -> list:
    return [np.int32(value) for value in values]


def test_every_instruction_is_repeated() -> None:
    for kind in range(23):
        for chains in (1, 4) if kind < 22 else (1,):
            taken = cycles("instructions", [*ints(kind, chains, ROUNDS), "sink", "out"], 64)
            assert taken >= ROUNDS * 16 * chains, kind


@pytest.mark.parametrize("dependent", [0, 1])
def test_every_request_is_repeated(dependent: int) -> None:
    for space in range(7):
        for words in (1, 2, 4) if space < 5 else (1,):
            steps = [np.uint32(value) for value in (0, 4 * words, 128 * words)]
            more = ["data", np.uint32(MASK >> 1), "sink", "out"]
            taken = cycles("requests", [*ints(space, words, dependent, ROUNDS), *steps, *more])
            assert taken >= ROUNDS * 16, (space, words)


def test_copies_and_products_come_to_an_end() -> None:
    for kind in range(4):
        nbytes = np.uint32(4 ** (kind + 1) if kind < 2 else 1024)
        for depth in (1, 8):
            assert cycles("copies", [*ints(kind, ROUNDS, depth), nbytes, "data", np.uint32(MASK), "out"]) > 0
    for kind in range(4):
        assert cycles("group_products", [*ints(kind, 1, 2), "sink", "out"], 128) > 0


def test_blocks_and_code_are_watched() -> None:
    lives = run("lives", [*ints(50, 1), "data", "out"], 64, 4)[:16].reshape(4, 4)
    assert (lives[:, 2] - lives[:, 1] >= 50).all()
    assert (run("straight_code", [*ints(2), "sink", "out"])[:64] > 0).all()
    assert (run("first_steps", ["data", "sink", "out"])[:2] > 0).all()
    quads = np.uint64(64)
    beside = run("loaded_latency", [*ints(0, 20), "ring", "data", quads, "done", "sink", "out"], 32, 3)
    assert beside[1] - beside[0] >= 20


def test_an_architecture_has_its_kernels() -> None:
    assert "copies" not in entries_for("sm_75")
    assert "copies" in entries_for("sm_86")
    assert "group_products" in entries_for("sm_90")
    assert "group_products" not in entries_for("sm_120")
