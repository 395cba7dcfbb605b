# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The kernels that measure what modelled times need, executed here: no fault, and no loop left out."""

import re
from contextlib import nullcontext
from functools import cache
from itertools import product
from unittest.mock import MagicMock

import numpy as np
import pytest
from compile_support import compile_source

from gpuprof.backends.gpu import constant_meter
from gpuprof.backends.gpu.constant_meter import ConstantMeter, entries_for, source
from gpuprof.backends.gpu.timer import Launch
from gpuprof.devices.card_constants import constants_of
from gpuprof.devices.cards import load_card
from gpuprof.executor import GlobalMemory, load_program
from gpuprof.executor import launch as execute
from gpuprof.toolchain.nvrtc import compiler_options

pytestmark = pytest.mark.deep

ROUNDS, MASK = 2, (1 << 16) - 1


@cache
def ptx() -> str:
    """That of all kernels."""
    return compile_source(source(), "constants.cu", "instructions", compiler_options("compute_90a")).ptx


@cache
def program(entry: str):
    return load_program(ptx(), entry)


def widths(entry: str) -> list[int]:
    """Bytes of each parameter."""
    declared = re.search(rf"\.entry {entry}\(([^)]*)\)", ptx())[1]
    return [int(bits) // 8 for bits in re.findall(r"\.param \.[usbf](\d+)", declared)]


def run(entry: str, arguments: list, threads: int = 32, blocks: int = 1, of: str = "out") -> np.ndarray:
    """Launch a kernel, and return an array; arguments that are names stand for arrays of zeros."""
    memory = GlobalMemory()
    sizes = {"data": MASK + 1, "sink": 4096, "out": 8192, "ring": 64, "done": 4}
    buffers = {name: memory.allocate(np.zeros(size, np.uint8), name) for name, size in sizes.items()}
    passed = [buffers[value] if isinstance(value, str) else value for value in arguments]
    execute(program(entry), (blocks, 1, 1), (threads, 1, 1), passed, memory)
    return buffers[of].array().view(np.int64)


def cycles(entry: str, arguments: list, threads: int = 32) -> int:
    begin, end = run(entry, arguments, threads)[:2]
    return int(end - begin)


def ints(*values: int) -> list:
    return [np.int32(value) for value in values]


def test_every_instruction_is_repeated() -> None:
    for kind in range(17):
        for chains in (1, 4) if kind < 16 else (1,):
            taken = cycles("instructions", [*ints(kind, chains, ROUNDS), "sink", "out"], 64)
            assert taken >= ROUNDS * 16 * chains, kind


def test_every_request_is_repeated() -> None:
    for space in range(6):
        for dependent in (0, 1):
            steps = [np.uint32(value) for value in (0, 16, 512)]
            more = ["data", np.uint32(MASK >> 1), "sink", "out"]
            taken = cycles("requests", [*ints(space, dependent, ROUNDS), *steps, *more])
            assert taken >= ROUNDS * 16, space


def test_copies_and_products_come_to_an_end() -> None:
    copied = [*ints(ROUNDS), np.uint32(1024), np.uint32(1), "data", np.uint32(MASK), "out"]
    assert cycles("bulk_copies", copied) > 0
    assert np.ptp(run("cluster_barriers", [*ints(ROUNDS), "out"], 32, 2)[:2]) >= ROUNDS * 16
    for kind in range(3):
        assert cycles("group_products", [*ints(kind, 1, 2), "sink", "out"], 128) > 0


def test_blocks_and_code_are_watched() -> None:
    lives = run("lives", [*ints(50), "out"], 64, 4)[:32].reshape(8, 4)
    assert (lives[:, 1] - lives[:, 0] >= 50).all()
    assert (run("straight_code", [*ints(2), "sink", "out"])[:64] > 0).all()
    quads = np.uint64(64)
    beside = run("loaded_latency", [*ints(0, 20, 1), "ring", "data", quads, "done", "sink", "out"], 32, 3)
    assert beside[1] - beside[0] >= 20


def test_runs_of_rows_are_a_whole_array() -> None:
    """64 rows of 1 KiB, of which blocks access 64 or 256 bytes each."""
    for quads, down in product((4, 16), (0, 1)):
        sizes = [np.uint32(each) for each in (quads, 64, 64)]
        run("dram_runs", [*ints(0, down), *sizes, "data", "sink"], 32, 16)
        assert run("dram_runs", [*ints(1, down), *sizes, "data", "sink"], 32, 16, of="data").all()


def test_an_architecture_has_its_kernels() -> None:
    for arch, has in (("sm_75", False), ("sm_86", False), ("sm_90", True), ("sm_120", False)):
        assert ({"bulk_copies", "group_products"} <= {*entries_for(arch)}) == has


class Untimed(ConstantMeter):
    """Measures nothing, and finds all that it would have measured."""

    def __init__(self) -> None:
        self._device = load_card("h200")
        self._context = self._timer = MagicMock()

    def _launch(self, name: str, arguments: list, grid: int, threads: int, module: object = None) -> Launch:
        assert module or name in entries_for("sm_90")
        assert module or [4 if isinstance(each, int) else 8 for each in arguments] == widths(name)
        return lambda: None

    def _found(self, launch: Launch, count: int) -> np.ndarray:
        return np.cumsum(np.ones((count, 4), np.int64), axis=1)

    _warm_us = _cold_us = lambda self, launch: 1.0
    _buffer = lambda self, nbytes: nullcontext(MagicMock(nbytes=nbytes))  # noqa: E731


def test_what_is_measured_of_a_card_is_what_models_ask_for(monkeypatch) -> None:
    for name in ("DeviceBuffer", "LoadedModule", "compiled_rates", "ring_of"):
        monkeypatch.setattr(constant_meter, name, MagicMock())
    constant_meter.DeviceBuffer().download = lambda dtype, count: np.ones(count, dtype)
    found = {}
    for _, values, reason in Untimed().measure():
        assert not reason
        found |= values
    assert found.keys() == constants_of(load_card("h200")).values.keys()
