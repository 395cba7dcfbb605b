# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a modelled time needs to know of a device beside its rates: measured by kernels of constants.cu.

Every constant here is one that `gpuprof.sm_model` asks for.
"""

import ctypes
from collections.abc import Callable, Iterator
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from gpuprof import timeline
from gpuprof.backends.gpu.context import DeviceBuffer, GpuContext, LoadedModule
from gpuprof.backends.gpu.device_code import compiled_rates
from gpuprof.backends.gpu.rate_meter import Meter, ring_of
from gpuprof.backends.gpu.timer import EventTimer, Launch
from gpuprof.devices.card_constants import DRAM_RUNS
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
    *("lop3", "imad_hi", "mufu", "f2i_i2f", "dfma", "shfl", "popc", "ldc", "membar", "bar"),
    *("redux", "hmma_16816", "hmma_1688", "tf32_1688", "tf32_1684", "dmma", "mbarrier"),
)
_SINCE_AMPERE = _INSTRUCTIONS.index("redux")
#: Whose cost depends on how many warps come together.
_TOGETHER = ("bar", "mbarrier")
#: Requests of warps, by their numbers in constants.cu, and bytes of a lane's.
_SPACES = {"l2_load": 4, "store": 4, "wide_store": 16, "fetch_add": 4, "red": 4, "red_f32": 4}
_PRODUCTS = ("f16_64", "f16_128", "f16_256")
_ENTRIES = ("instructions", "requests", "lives", "straight_code", "loaded_latency", "dram_runs")
_OF_HOPPER = ("bulk_copies", "group_products", "cluster_barriers")
#: Bytes of arrays that L2 holds, and that it does not.
_OF_L2, _OF_DRAM = 16 * _MIB, 512 * _MIB
_RING = 64 * _MIB
_CHASED = 2000
#: Of a copy that L2 holds in part.
_HELD_MIB = 64
#: Bytes of rows of an array.
_ROW = 32 << 10
#: Bytes of a bulk copy.
_COPIED = 128

Group = Callable[[], dict[str, float]]


class ConstantMeter(Meter):
    """Measures what a modelled time needs beside the rates."""

    def __init__(self, context: GpuContext, device: Device, timer: EventTimer) -> None:
        super().__init__(context, device, timer, _compiled(device.arch), "constants.cu")

    def measure(self) -> Iterator[tuple[str, dict[str, float], str]]:
        """Yield each group of constants: its name, what was measured, and else why it was not."""
        groups: dict[str, Group] = {
            "code": self._code,
            "instructions": self._instructions,
            "requests": self._requests,
            "blocks": self._blocks,
            "latency under load": self._under_load,
            "results in L2": self._results_in_l2,
            "runs in DRAM": self._runs_in_dram,
        }
        if self._device.arch == "sm_90":
            groups |= {"copies": self._copies, "products": self._products, "clusters": self._clusters}
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

    def _instruction(self, number: int, chains: int, rounds: int, warps: int) -> float:
        """Cycles of an instruction of one block's warps, each so many chains of it, a repetition."""
        arguments = [number, chains, rounds, self._sink, self._out]
        launch = self._launch("instructions", arguments, 1, warps * _LANES)
        return self._cycles(launch, warps) / (rounds * _STEPS)

    def _instructions(self) -> dict[str, float]:
        found = {}
        for number, name in enumerate(_INSTRUCTIONS):
            if number >= _SINCE_AMPERE and self._device.capability < (8, 0):
                break
            if name in _TOGETHER:
                found[f"{name}_1_warps_cycles"] = self._instruction(number, 1, 32, 1)
                continue
            found[f"{name}_latency_cycles"] = self._instruction(number, 1, 64, 1)
            warps, chains = 32, 4
            cycles = self._instruction(number, chains, 16, warps)
            found[f"{name}_interval_cycles"] = cycles / (chains * warps / _SCHEDULERS)
        return found

    def _request(
        self,
        space: str,
        data: DeviceBuffer,
        *,
        rounds: int,
        lane_bytes: int | None = None,
        dependent: bool = False,
        grid: int = 1,
        threads: int = _LANES,
        nbytes: int,
    ) -> Launch:
        apart = lane_bytes or _SPACES[space]
        numbers = [list(_SPACES).index(space), int(dependent), rounds, 0, apart, _LANES * apart]
        ends = [data, nbytes - 1, self._sink, self._out]
        return self._launch("requests", [*numbers, *ends], grid, threads)

    def _requests(self) -> dict[str, float]:
        """A request's latency and what an SM's warps take for one, and what L2 takes of all a nanosecond."""
        found = {}
        with self._buffer(_OF_L2) as data:
            launch = self._request("fetch_add", data, rounds=16, dependent=True, nbytes=_MIB)
            found["fetch_add_32_apart_4_latency_cycles"] = self._cycles(launch, 1) / (16 * _STEPS)
            launch = self._request("wide_store", data, rounds=16, threads=1024, nbytes=4 * _MIB)
            found["store_128_apart_16_interval_cycles"] = self._cycles(launch, 32) / (16 * _STEPS * 32)
            grid, rounds = 8 * self._device.sm_count, 8
            for space, apart, name in (
                ("l2_load", 32, "l2_l2_load_32_apart_32"),
                ("l2_load", 128, "l2_l2_load_32_apart_128"),
                ("store", 32, "l2_store_32_apart_32"),
                ("store", 128, "l2_store_32_apart_128"),
                ("wide_store", 16, "l2_store_128_apart_16"),
            ):
                launch = self._request(
                    space, data, rounds=rounds, lane_bytes=apart, grid=grid, threads=256, nbytes=_OF_L2
                )
                requests = _PASSES * rounds * _STEPS * 8 * grid
                found[f"{name}_requests_per_ns"] = requests / self._warm_us(launch) / 1e3
            for space in ("red", "red_f32"):  # of single threads, all to one word
                launch = self._request(space, data, rounds=rounds, grid=4 * grid, threads=1, nbytes=4)
                requests = _PASSES * rounds * _STEPS * 4 * grid
                found[f"l2_{space}_1_apart_0_requests_per_ns"] = requests / self._warm_us(launch) / 1e3
        return found

    def _blocks(self) -> dict[str, float]:
        """How far apart warps of a block begin, and what it takes to start empty blocks."""
        device, grid = self._device, 8 * self._device.sm_count
        launch = self._life(4000, grid, 1024)
        begins = self._found(launch, grid * 1024 // _LANES)[:, 0].reshape(grid, -1)
        found = {"block_of_1024_start_cycles": float(np.median(np.ptp(begins, axis=1)))}
        resident = min(device.max_blocks_per_sm, device.max_threads_per_sm // 128)
        for waves in (4, 16):
            launch = self._life(0, device.sm_count * resident * waves, 128)
            found[f"empty_blocks_of_128_waves_{waves}_us"] = self._warm_us(launch)
        return found

    def _life(self, cycles: int, grid: int, threads: int) -> Launch:
        return self._launch("lives", [cycles, self._out], grid, threads)

    def _code(self) -> dict[str, float]:
        """Cycles of 256 instructions in a row after a flush of L2, on all SMs: the first and on average."""
        launch = self._launch("straight_code", [3, self._sink, self._out], self._device.sm_count, _LANES)
        self._timer.cold(launch, 1, settle=0)
        cold = np.asarray(self._out.download(np.int64, count=32))
        name = "code_flushed_all_sms"
        return {
            f"{name}_start_cycles": float(cold[0]),
            f"{name}_16k_cycles": float(cold[:4].mean()),
            f"{name}_128k_cycles": float(cold.mean()),
        }

    def _under_load(self) -> dict[str, float]:
        """Latency of DRAM while blocks of 256 threads read, or copy, so many on each SM, and their rate.

        Of reads also that of requests of 16 lines, which wait for the last of them.
        """
        found, sms = {}, self._device.sm_count
        beside = {"few": sms // 4, **{str(blocks): blocks * sms for blocks in (1, 2, 4, 7)}}
        kinds = (("dram", 0, 1), ("dram", 0, 16), ("dram_copies", 1, 1))
        with self._buffer(_RING) as ring, self._buffer(2 * _OF_DRAM) as data, self._buffer(4) as done:
            ring.upload(ring_of(_RING, 8192))
            for name, copying, lanes in kinds:
                for title, blocks in beside.items():
                    numbers = [copying, _CHASED, lanes]
                    ends = [ring, data, ctypes.c_uint64(_OF_DRAM // 16), done, self._sink, self._out]
                    launch = self._launch("loaded_latency", [*numbers, *ends], 1 + blocks, 256)
                    for _ in range(2):
                        done.fill(0)
                        each = self._found(launch, 8 * (1 + blocks))
                    begin, end = each[0, :2]
                    of = f"_of_{lanes}_lines" if lanes > 1 else ""
                    found[f"{name}_latency{of}_beside_{title}_cycles"] = float(end - begin) / _CHASED
                    if lanes == 1:
                        _, rounds, begin, end = each[8:].T
                        moved = float(rounds.sum()) * 32 * _LANES * 16 * (1 + copying)
                        found[f"{name}_beside_{title}_gbps"] = moved / float(end.max() - begin.min())
        return found

    def _results_in_l2(self) -> dict[str, float]:
        """What a copy takes of which L2 holds some results at the end."""
        rates = LoadedModule(compiled_rates(self._device.arch)[0], "rates.cu")
        nbytes = _HELD_MIB * _MIB
        with self._buffer(nbytes) as one, self._buffer(nbytes) as other:
            arguments = [ctypes.c_longlong(nbytes // 16), one, other]
            launch = self._launch("dram_copies", arguments, 8 * self._device.sm_count, 256, rates)
            self._warm_us(launch)
            return {f"copy_{_HELD_MIB}_mib_cold_us": self._cold_us(launch)}

    def _runs_in_dram(self) -> dict[str, float]:
        """What DRAM takes and gives where blocks that begin one after the other access other rows."""
        found = {}
        with self._buffer(_OF_DRAM) as data:
            for writes, name in enumerate(("reads", "writes")):
                for down, run in (*((1, run) for run in DRAM_RUNS), (0, DRAM_RUNS[-1])):
                    numbers = [writes, down, run // 16, _OF_DRAM // _ROW, _ROW // 16]
                    grid = _OF_DRAM // (16 * 8 * 256)
                    us = self._warm_us(self._launch("dram_runs", [*numbers, data, self._sink], grid, 256))
                    key = f"dram_{name}_of_{run}" if down else f"dram_{name}_in_order"
                    found[f"{key}_gbps"] = _OF_DRAM / us / 1e3
        return found

    def _copies(self) -> dict[str, float]:
        """Cycles of bulk copies that are waited for one at a time."""
        rounds = 64
        with self._buffer(_OF_L2) as data:

            def copies(nbytes: int, sharers: int, grid: int) -> Launch:
                arguments = [rounds, nbytes, sharers, data, data.nbytes - 1, self._out]
                return self._launch("bulk_copies", arguments, grid, _LANES)

            launch = copies(_COPIED, 1, 1)
            found = {f"bulk_load_of_{_COPIED}_times_1_cycles": self._cycles(launch, 1) / rounds}
            # As many blocks as there is room for read it all, each by itself or eight the same.
            grid = 6 * self._device.sm_count // 8 * 8
            for sharers in (1, 8):
                us = self._warm_us(copies(8192, sharers, grid))
                found[f"bulk_loads_by_{sharers}_gbps"] = 2 * rounds * 8192 * grid / us / 1e3
            return found

    def _clusters(self) -> dict[str, float]:
        """Cycles of a barrier of a cluster of two blocks."""
        rounds = 16
        launch = self._launch("cluster_barriers", [rounds, self._out], 2, _LANES)
        return {"cluster_barrier_cycles": self._cycles(launch, 1) / (rounds * _STEPS)}

    def _products(self) -> dict[str, float]:
        """Cycles of a warp group's matrix products, one and eight at a time."""
        found = {}
        for kind, name in enumerate(_PRODUCTS):
            for depth in (1, 8):
                launch = self._launch("group_products", [kind, 64, depth, self._sink, self._out], 1, 128)
                found[f"wgmma_{name}_groups_1_times_{depth}_cycles"] = self._cycles(launch, 4) / 64
        return found


def source() -> str:
    """The text of the kernels."""
    return resources.files(__package__).joinpath("constants.cu").read_text("utf-8")


def entries_for(arch: str) -> tuple[str, ...]:
    """The kernels that an architecture has."""
    return (*_ENTRIES, *(_OF_HOPPER if arch == "sm_90" else ()))


def _compiled(arch: str) -> bytes:
    with timeline.span("compile", "constants.cu"):
        options = compiler_options(target_of(arch, (source(),)))
        return compile_entries_cached(source(), "constants.cu", entries_for(arch), options)[0].cubin
