# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a modelled time needs to know of a device beside its rates: measured by kernels of constants.cu."""

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof import timeline
from gpuprof.backends.gpu.context import DeviceBuffer, GpuContext, LoadedModule
from gpuprof.backends.gpu.device_code import compiled_rates
from gpuprof.backends.gpu.rate_meter import Meter, address_of, ring_of
from gpuprof.backends.gpu.timer import EventTimer, Launch
from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options, target_of

_LANES = 32
_SCHEDULERS = 4
#: Repetitions of a round, and passes over the code, in constants.cu.
_STEPS, _PASSES = 16, 2
_MIB = 1 << 20
#: By their numbers in constants.cu; those from `_SINCE_AMPERE` on exist from compute capability 8.0.
_INSTRUCTIONS = (
    *("ffma", "imad", "lop3", "shf", "imad_hi", "mufu", "f2i_i2f", "dfma", "shfl", "popc", "isetp_sel"),
    *("ldc", "isetp_vote", "hfma2", "bar", "membar"),
    *("redux", "hmma_16816", "hmma_1688", "tf32_1688", "tf32_1684", "dmma", "mbarrier"),
)
_SINCE_AMPERE = _INSTRUCTIONS.index("redux")
#: Whose cost depends on how many warps come together.
_TOGETHER = ("bar", "mbarrier")
_SPACES = ("shared_load", "shared_store", "l1_load", "l2_load", "store", "add", "fetch_add")
_PRODUCTS = ("f16_64", "f16_128", "f16_256", "tf32_128")
_ENTRIES = ("instructions", "requests", "lives", "straight_code", "first_steps", "loaded_latency")
#: Groups that the code for an array of 128 MiB and more, and of L2, is measured with.
_OF_L2, _OF_DRAM = 16 * _MIB, 512 * _MIB
_RING = 64 * _MIB
_L2_SIZES = (4, 8, 16, 32, 64)
#: How long the clock is watched under load.
_WATCHED_CYCLES = 20_000_000
_CHASED = 2000

Group = Callable[[], dict[str, float]]


class ConstantMeter(Meter):
    """Measures what a modelled time needs beside the rates."""

    def __init__(self, context: GpuContext, device: Device, timer: EventTimer) -> None:
        super().__init__(context, device, timer)
        self._module = LoadedModule(_compiled(device.arch), "constants.cu")
        self._rates = LoadedModule(compiled_rates(device.arch), "rates.cu")
        self._ampere = device.capability >= (8, 0)
        self._hopper = device.arch == "sm_90"

    def measure(self) -> Iterator[tuple[str, dict[str, float], str]]:
        """Yield each group of constants: its name, what was measured, and else why it was not."""
        groups: dict[str, Group] = {
            "code": self._code,
            "instructions": self._instructions,
            "requests of an SM": self._requests_of_an_sm,
            "requests of all": self._requests_of_all,
            "blocks": self._blocks,
            "first steps": self._first_steps,
            "sizes in L2": self._sizes_in_l2,
            "latency under load": self._under_load,
            "clock": self._clock,
            **({"copies": self._copies} if self._ampere else {}),
            **({"products": self._products} if self._hopper else {}),
        }
        self._out = DeviceBuffer(4 * _MIB)
        self._sink = DeviceBuffer(4096)
        for name, group in groups.items():
            try:
                yield name, group(), ""
            except CaseFailure as error:
                yield name, {}, error.what
                if error.fatal:
                    return
        self._out.free()
        self._sink.free()

    def _queued(
        self, name: str, arguments: Sequence[Any], grid: int, threads: int, module: LoadedModule | None = None
    ) -> Launch:
        return self._queueing(module or self._module, name, arguments, grid, threads)

    def _found(self, launch: Launch, count: int) -> NDArray[np.int64]:
        """What a launch writes for each warp or block: four numbers."""
        self._out.fill(0)
        launch()
        self._context.synchronize()
        return np.asarray(self._out.download(np.int64, count=4 * count)).reshape(count, 4)

    def _cycles(self, launch: Launch, warps: int) -> float:
        """Cycles from the first warp's begin to the last one's end, of one block."""
        begin, end = self._found(launch, warps).T[:2]
        return float(end.max() - begin.min())

    def _warm_us(self, launch: Launch) -> float:
        launch()
        self._context.synchronize()
        return super()._warm_us(launch)

    def _instruction(
        self, number: int, chains: int, rounds: int, threads: int, grid: int = 1
    ) -> tuple[Launch, int]:
        numbers = [ctypes.c_int(each) for each in (number, chains, rounds)]
        launch = self._queued(
            "instructions", [*numbers, address_of(self._sink), address_of(self._out)], grid, threads
        )
        return launch, threads // _LANES

    def _instructions(self) -> dict[str, float]:
        found = {}
        for number, name in enumerate(_INSTRUCTIONS):
            if number >= _SINCE_AMPERE and not self._ampere:
                break
            if name in _TOGETHER:
                for warps in (1, 4, 8, 16, 32):
                    cycles = self._cycles(*self._instruction(number, 1, 32, warps * _LANES))
                    found[f"{name}_{warps}_warps_cycles"] = cycles / (32 * _STEPS)
                continue
            cycles = self._cycles(*self._instruction(number, 1, 64, _LANES))
            found[f"{name}_latency_cycles"] = cycles / (64 * _STEPS)
            warps, chains = 32, 4
            cycles = self._cycles(*self._instruction(number, chains, 16, warps * _LANES))
            found[f"{name}_interval_cycles"] = cycles / (16 * _STEPS * chains * warps / _SCHEDULERS)
        return found

    def _request(
        self,
        space: str,
        words: int,
        lane_bytes: int,
        data: DeviceBuffer,
        *,
        rounds: int,
        dependent: bool = False,
        grid: int = 1,
        threads: int = _LANES,
        warp_bytes: int | None = None,
        nbytes: int = _MIB,
    ) -> Launch:
        of_warp = _LANES * lane_bytes if warp_bytes is None else warp_bytes
        numbers = [ctypes.c_int(each) for each in (_SPACES.index(space), words, int(dependent), rounds)]
        steps = [ctypes.c_uint(each) for each in (0, lane_bytes, of_warp)]
        ends = [address_of(data), ctypes.c_uint(nbytes - 1), address_of(self._sink), address_of(self._out)]
        return self._queued("requests", [*numbers, *steps, *ends], grid, threads)

    def _requests_of_an_sm(self) -> dict[str, float]:
        """Latencies of single requests, and cycles from one to the next of 32 warps."""
        found = {}
        with self._buffer(8 * _MIB) as data:
            for space, words, lane_bytes in _PATTERNS:
                name = f"{space}_{32 * words}_apart_{lane_bytes}"
                near = space.startswith(("shared", "l1"))
                if space.endswith(("load", "fetch_add")):
                    launch = self._request(space, words, lane_bytes, data, rounds=16, dependent=True)
                    launch()
                    found[f"{name}_latency_cycles"] = self._cycles(launch, 1) / (16 * _STEPS)
                launch = self._request(
                    *(space, words, lane_bytes, data),
                    rounds=16,
                    threads=1024,
                    warp_bytes=0 if near else None,
                    nbytes=4 * _MIB,
                )
                launch()
                found[f"{name}_interval_cycles"] = self._cycles(launch, 32) / (16 * _STEPS * 32)
        return found

    def _requests_of_all(self) -> dict[str, float]:
        """Requests per nanosecond that L2, and DRAM behind it, take of all SMs."""
        found = {}
        grid = 8 * self._device.sm_count
        room = 1 << (self._context.free_bytes() // 4).bit_length() - 1
        far = min(_OF_DRAM, room)
        with self._buffer(far) as data:
            for place, nbytes in (("l2", min(_OF_L2, far)), ("dram", far)):
                for space, words, lane_bytes in _WIDE_PATTERNS:
                    if place == "dram" and space.endswith("add"):
                        continue
                    warps = 8 * grid
                    covers = nbytes // max(4 * words, lane_bytes) // _LANES
                    rounds = max(1, min(8, math.ceil(covers / warps / _STEPS)))
                    if place == "l2":
                        rounds = 8
                    launch = self._request(
                        space, words, lane_bytes, data, rounds=rounds, grid=grid, threads=256, nbytes=nbytes
                    )
                    requests = _PASSES * rounds * _STEPS * warps
                    name = f"{place}_{space}_{32 * words}_apart_{lane_bytes}_requests_per_ns"
                    found[name] = requests / self._warm_us(launch) / 1e3
            for space in ("add", "fetch_add"):
                # All lanes one word, warps words of their own; and all warps the same 32 words.
                for name, lane_bytes, warp_bytes in (("one_word", 0, 128), ("same_line", 4, 0)):
                    launch = self._request(
                        *(space, 1, lane_bytes, data),
                        rounds=1,
                        grid=self._device.sm_count,
                        threads=256,
                        warp_bytes=warp_bytes,
                        nbytes=_MIB,
                    )
                    requests = _PASSES * _STEPS * 8 * self._device.sm_count
                    found[f"{space}_{name}_requests_per_ns"] = requests / self._warm_us(launch) / 1e3
        return found

    def _blocks(self) -> dict[str, float]:
        """What it takes to start a block where another ended, with and without stores at its end."""
        found, device = {}, self._device
        waves, most_stores = 4, 1
        with self._buffer(device.sm_count * device.max_threads_per_sm * waves * most_stores * 16) as data:
            for threads in (32, 128, 256, 512, 1024):
                resident = min(device.max_blocks_per_sm, device.max_threads_per_sm // threads)
                grid = device.sm_count * resident * waves
                for stores in (0, most_stores):
                    launch = self._life(4000, stores, data, grid, threads)
                    launch()
                    gap, start = _gaps(self._found(launch, grid)[:, :3], resident)
                    name = f"block_of_{threads}" + ("_that_stores" if stores else "")
                    found[f"{name}_gap_cycles"], found[f"{name}_start_cycles"] = gap, start
                for empty in (1, 4, 16):
                    launch = self._life(0, 0, data, grid // waves * empty, threads)
                    found[f"empty_blocks_of_{threads}_waves_{empty}_us"] = self._warm_us(launch)
        return found

    def _life(self, cycles: int, stores: int, data: DeviceBuffer, grid: int, threads: int) -> Launch:
        numbers = [ctypes.c_int(cycles), ctypes.c_int(stores)]
        return self._queued("lives", [*numbers, address_of(data), address_of(self._out)], grid, threads)

    def _code(self) -> dict[str, float]:
        """Cycles of 256 instructions in a row: run for the first time, after a flush of L2, and again."""
        found = {}
        arguments = [ctypes.c_int(3), address_of(self._sink), address_of(self._out)]
        for name, grid in (("first", 1), ("flushed", 1), ("flushed_all_sms", self._device.sm_count)):
            launch = self._queued("straight_code", arguments, grid, _LANES)
            if name == "first":
                passes = self._found(launch, 24)
            else:
                self._timer.cold(launch, 1, settle=0)
                passes = np.asarray(self._out.download(np.int64, count=96))
            cold, _, again = np.asarray(passes).reshape(3, 32)
            found[f"code_{name}_cycles"] = float(np.median(cold))
            found[f"code_{name}_start_cycles"] = float(cold[0])
            found[f"code_{name}_16k_cycles"] = float(cold[:4].mean())
            found[f"code_{name}_128k_cycles"] = float(cold.mean())
            found[f"code_{name}_again_cycles"] = float(again.mean())
        return found

    def _first_steps(self) -> dict[str, float]:
        found = {}
        with self._buffer(4096) as data:
            arguments = [address_of(data), address_of(self._sink), address_of(self._out)]
            launch = self._queued("first_steps", arguments, 1, _LANES)
            for name, timed in (("cold", self._cold_us), ("warm", self._warm_us)):
                found[f"first_steps_{name}_us"] = timed(launch)
                constant, load = self._out.download(np.int64, count=2).tolist()
                found[f"first_constant_{name}_cycles"] = float(constant)
                found[f"first_load_{name}_cycles"] = float(load)
            empty = self._life(0, 0, data, 1, _LANES)
            found["empty_block_cold_us"] = self._cold_us(empty)
            found["empty_block_warm_us"] = self._warm_us(empty)
        return found

    def _sizes_in_l2(self) -> dict[str, float]:
        """What arrays of several sizes are read with, and copied, that stay in L2 or just do not."""
        found = {}
        blocks = self._device.sm_count * 8
        with self._buffer(_L2_SIZES[-1] * _MIB) as one, self._buffer(_L2_SIZES[-1] * _MIB) as other:
            for size in _L2_SIZES:
                quads = ctypes.c_longlong(size * _MIB // 16)
                read = self._queued(
                    "dram_reads", [quads, address_of(one), address_of(self._sink)], blocks, 256, self._rates
                )
                copy = self._queued(
                    "dram_copies", [quads, address_of(one), address_of(other)], blocks, 256, self._rates
                )
                write = self._queued("dram_writes", [quads, address_of(one)], blocks, 256, self._rates)
                for name, launch, times in (("read", read, 1), ("copy", copy, 2), ("write", write, 1)):
                    for manner, timed in (("warm", self._warm_us), ("cold", self._cold_us)):
                        found[f"{name}_{size}_mib_{manner}_us"] = timed(launch)
                    found[f"{name}_{size}_mib_warm_gbps"] = (
                        times * size * _MIB / found[f"{name}_{size}_mib_warm_us"] / 1e3
                    )
        return found

    def _under_load(self) -> dict[str, float]:
        """Latency of DRAM while blocks of 256 threads read, or copy, so many on each SM, and their rate."""
        found, sms = {}, self._device.sm_count
        beside = {"few": sms // 4, **{str(blocks): blocks * sms for blocks in (1, 2, 4, 7)}}
        with self._buffer(_RING) as ring, self._buffer(2 * _OF_DRAM) as data, self._buffer(4) as done:
            ring.upload(ring_of(_RING, 8192))
            for copying, name in enumerate(("dram", "dram_copies")):
                for title, blocks in beside.items():
                    numbers = [
                        ctypes.c_int(copying),
                        ctypes.c_int(_CHASED),
                        address_of(ring),
                        address_of(data),
                    ]
                    ends = [address_of(done), address_of(self._sink), address_of(self._out)]
                    launch = self._queued(
                        "loaded_latency",
                        [*numbers, ctypes.c_uint64(_OF_DRAM // 16), *ends],
                        1 + blocks,
                        256,
                    )
                    for _ in range(2):
                        done.fill(0)
                        each = self._found(launch, 8 * (1 + blocks))
                    begin, end = each[0, :2]
                    found[f"{name}_latency_beside_{title}_cycles"] = float(end - begin) / _CHASED
                    _, rounds, begin, end = each[8:].T
                    moved = float(rounds.sum()) * 32 * _LANES * 16 * (1 + copying)
                    found[f"{name}_beside_{title}_gbps"] = moved / float(end.max() - begin.min())
        return found

    def _clock(self) -> dict[str, float]:
        found, sms = {}, self._device.sm_count
        for name, blocks, threads in (("ffma", 2 * sms, 1024), ("hmma_16816", 2 * sms, 512), ("mufu", 1, 32)):
            number = _INSTRUCTIONS.index(name)
            if number >= _SINCE_AMPERE and not self._ampere:
                continue
            of_a_round = 4 * _STEPS * max(1, threads * blocks // sms // 128) * (16 if blocks == 1 else 1)
            launch, _ = self._instruction(number, 4, _WATCHED_CYCLES // of_a_round // 2, threads, blocks)
            for _ in range(3):
                begin, end, from_ns, to_ns = self._found(launch, 1)[0].tolist()
            found[f"clock_{name}_mhz"] = 1e3 * (end - begin) / max(1, to_ns - from_ns)
        return found

    def _copy(self, kind: int, depth: int, nbytes: int, grid: int, data: DeviceBuffer, rounds: int) -> Launch:
        numbers = [ctypes.c_int(each) for each in (kind, rounds, depth)]
        ends = [
            ctypes.c_uint(nbytes),
            address_of(data),
            ctypes.c_uint(data.nbytes - 1),
            address_of(self._out),
        ]
        return self._queued("copies", [*numbers, *ends], grid, 256 if kind < 2 else _LANES)

    def _copies(self) -> dict[str, float]:
        """Cycles of copies that are waited for one at a time, eight at a time, and what all SMs copy."""
        found = {}
        kinds: list[tuple[int, str, tuple[int, ...]]] = [(0, "cp_async_4", (4,)), (1, "cp_async_16", (16,))]
        if self._hopper:
            kinds += [(kind, name, (128, 1024, 4096)) for kind, name in ((2, "bulk_load"), (3, "bulk_store"))]
        with self._buffer(_OF_L2) as data:
            for kind, name, sizes in kinds:
                warps = 8 if kind < 2 else 1
                for nbytes in sizes:
                    for depth in (1, 8):
                        launch = self._copy(kind, depth, nbytes, 1, data, 64)
                        launch()
                        cycles = self._cycles(launch, warps) / 64
                        found[f"{name}_of_{nbytes}_times_{depth}_cycles"] = cycles
                    blocks = self._device.sm_count * (4 if kind < 2 else 2)
                    copied = _PASSES * 64 * 8 * nbytes * blocks * (256 if kind < 2 else 1)
                    launch = self._copy(kind, 8, nbytes, blocks, data, 64)
                    found[f"{name}_of_{nbytes}_all_sms_gbps"] = copied / self._warm_us(launch) / 1e3
        return found

    def _products(self) -> dict[str, float]:
        """Cycles of matrix products of one and two warp groups, one and eight at a time."""
        found = {}
        for kind, name in enumerate(_PRODUCTS):
            for groups in (1, 2):
                for depth in (1, 8):
                    numbers = [ctypes.c_int(each) for each in (kind, 64, depth)]
                    arguments = [*numbers, address_of(self._sink), address_of(self._out)]
                    launch = self._queued("group_products", arguments, 1, 128 * groups)
                    launch()
                    cycles = self._cycles(launch, 4 * groups) / 64
                    found[f"wgmma_{name}_groups_{groups}_times_{depth}_cycles"] = cycles
        return found


def _gaps(lives: NDArray[np.int64], resident: int) -> tuple[float, float]:
    """Cycles from a block's end to the next one's begin on its SM, and between begins of the first ones."""
    gaps, starts = [], []
    for sm in np.unique(lives[:, 0]):
        begins, ends = (np.sort(lives[lives[:, 0] == sm, column]) for column in (1, 2))
        later = begins[resident:]
        gaps += (later - ends[: len(later)]).tolist()
        starts += np.diff(begins[:resident]).tolist()
    return (float(np.median(each)) if each else 0.0 for each in (gaps, starts))  # type: ignore[return-value]


#: Space, words of a lane, and bytes from lane to lane.
_PATTERNS = (
    *(("shared_load", words, 4 * words) for words in (1, 2, 4)),
    *(("shared_load", 1, apart) for apart in (0, 8, 16, 32, 64, 128)),
    *(("shared_store", words, 4 * words) for words in (1, 2, 4)),
    *(("shared_store", 1, apart) for apart in (8, 32, 128)),
    *(("l1_load", words, 4 * words) for words in (1, 2, 4)),
    *(("l1_load", 1, apart) for apart in (0, 8, 32, 64)),
    *(("l2_load", words, 4 * words) for words in (1, 2, 4)),
    *(("l2_load", 1, apart) for apart in (0, 8, 32, 128)),
    *(("store", words, 4 * words) for words in (1, 2, 4)),
    *(("store", 1, apart) for apart in (8, 32, 128)),
    *((space, 1, apart) for space in ("add", "fetch_add") for apart in (0, 4, 32, 128)),
)
_WIDE_PATTERNS = (
    *(("l2_load", words, 4 * words) for words in (1, 2, 4)),
    *(("l2_load", 1, apart) for apart in (8, 32, 128)),
    *(("store", words, 4 * words) for words in (1, 2, 4)),
    *(("store", words, apart) for words, apart in ((1, 8), (1, 16), (1, 32), (1, 128), (4, 32), (4, 128))),
    *((space, 1, apart) for space in ("add", "fetch_add") for apart in (4, 32, 128)),
)


def source() -> str:
    """The text of the kernels."""
    return resources.files(__package__).joinpath("constants.cu").read_text("utf-8")


def entries_for(arch: str) -> tuple[str, ...]:
    """The kernels that an architecture has."""
    number = int(arch.removeprefix("sm_"))
    return (*_ENTRIES, *(("copies",) if number >= 80 else ()), *(("group_products",) if number == 90 else ()))


def _compiled(arch: str) -> bytes:
    with timeline.span("compile", "constants.cu"):
        options = compiler_options(target_of(arch, (source(),)))
        return compile_entries_cached(source(), "constants.cu", entries_for(arch), options)[0].cubin
