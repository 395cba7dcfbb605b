# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What one device reaches: small kernels that keep one part of it busy each, measured once and kept."""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, GpuContext, LoadedModule
from gpuprof.backends.gpu.device_code import rates_source
from gpuprof.backends.gpu.timer import EventTimer, Launch
from gpuprof.devices.device import Device
from gpuprof.devices.measured import MEASURED_RATES, TENSOR_TYPES_MEASURED
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.statistics import percentile
from gpuprof.text import Extent
from gpuprof.toolchain.cache import kept

_THREADS = 256
_WARP_LANES = 32
#: Repetitions of the loops in rates.cu.
_UNROLL = 32
_SAMPLES = 5
#: By what they are timed: rates of another clock are measured anew.
_CLOCK = "CUDA events, less the cost of a pair of them"
#: Bytes of an array that is read, written or copied in device memory; many times any L2 cache.
_DRAM_BYTES = 1 << 30
#: Bytes that all blocks load over and over from L1.
_L1_BYTES = 1 << 14
_WORDS = 1 << 20
#: Steps of a chain of dependent loads, and distance of its places where each is to miss.
_STEPS = 8192
_RINGS = {"l1": (1 << 13, 128), "l2": (1 << 20, 256), "dram": (1 << 26, 8192)}
#: Products of a warpgroup: in a round; floating-point operations of each k; bytes of all k. A block has two
#: warpgroups.
_PRODUCTS, _PRODUCT_FLOPS_OF_K, _PRODUCT_BYTES, _WARPGROUPS = 8, 2 * 64 * 256, 32, 2


class Meter:
    """Times small kernels of one module on an open device."""

    def __init__(
        self, context: GpuContext, device: Device, timer: EventTimer, cubin: bytes, name: str
    ) -> None:
        self._context, self._device, self._timer = context, device, timer
        self._module = LoadedModule(cubin, name)

    @contextmanager
    def _buffer(self, nbytes: int) -> Iterator[DeviceBuffer]:
        buffer = DeviceBuffer(nbytes)
        buffer.fill(0)
        try:
            yield buffer
        finally:
            buffer.free()

    def _launch(
        self, name: str, arguments: Sequence[Any], grid: int, threads: int, module: LoadedModule | None = None
    ) -> Launch:
        """What queues a kernel, whose integers are `int`; it runs once, so that its code is loaded."""
        packed = Arguments([ctypes.c_int(each) if isinstance(each, int) else each for each in arguments])
        function = (module or self._module).function(name)
        shape: tuple[Extent, Extent] = (grid, 1, 1), (threads, 1, 1)

        def launch() -> None:
            function.launch(*shape, 0, self._context.stream, packed)

        launch()
        self._context.synchronize()
        self._timer.reset()
        return launch

    def _warm_us(self, launch: Launch) -> float:
        return percentile(sorted(self._timer.warm(launch, _SAMPLES, group=1)), 0.5)

    def _cold_us(self, launch: Launch) -> float:
        return percentile(sorted(self._timer.cold(launch, _SAMPLES, settle=1)), 0.5)


class RateMeter(Meter):
    """Measures the rates of a device; those of its tensor cores by the kernels of `tensor_cubin`."""

    def __init__(
        self,
        context: GpuContext,
        device: Device,
        timer: EventTimer,
        cubin: bytes,
        tensor_cubin: bytes | None = None,
    ) -> None:
        super().__init__(context, device, timer, cubin, "rates.cu")
        self._tensor_cubin = tensor_cubin
        self._blocks = device.sm_count * max(1, device.max_threads_per_sm // _THREADS)

    def measure(self) -> dict[str, float]:
        """Every rate of `MEASURED_RATES` but the launch overhead, by its key."""
        with self._buffer(1 << 22) as sink:
            found = {
                **self._arithmetic(sink),
                **self._tensor_cores(sink),
                **self._caches(sink),
                **self._atomics(sink),
                **self._dram(sink),
                **self._latencies(sink),
            }
        self._module.unload()
        return {key: found[key] for key in MEASURED_RATES if key in found}

    def _per_us(self, name: str, rounds: int, each: float, arguments: Sequence[Any]) -> float:
        """Units of work per microsecond, of which each round of a thread does `each`."""
        launch = self._launch(name, [rounds, *arguments], self._blocks, _THREADS)
        return self._blocks * _THREADS * rounds * each / self._warm_us(launch)

    def _arithmetic(self, sink: DeviceBuffer) -> dict[str, float]:
        # Where double precision has a small part of the lanes, a few rounds take long enough.
        return {
            "fma_f32_gflops": self._per_us("fma_f32", 256, 16 * _UNROLL, [sink]) / 1e3,
            "fma_f64_gflops": self._per_us("fma_f64", 32, 16 * _UNROLL, [sink]) / 1e3,
            "alu_gips": self._per_us("alu", 128, 4 * _UNROLL / _WARP_LANES, [sink]) / 1e3,
            "xu_gips": self._per_us("xu", 32, 4 * _UNROLL / _WARP_LANES, [sink]) / 1e3,
            "barriers_gips": self._per_us("barriers", 128, _UNROLL / _WARP_LANES, []) / 1e3,
        }

    def _tensor_cores(self, sink: DeviceBuffer) -> dict[str, float]:
        """Products of warpgroups, as wide as there are; other architectures have other instructions."""
        if self._tensor_cubin is None:
            return {}
        rounds, found = 256, {}
        module = LoadedModule(self._tensor_cubin, "tensor_rates.cu")
        for kind in TENSOR_TYPES_MEASURED:
            arguments = [rounds, sink]
            launch = self._launch(f"tensor_{kind}", arguments, self._device.sm_count, _THREADS, module)
            depth = _PRODUCT_BYTES // ELEMENT_TYPES[kind].nbytes
            flops = rounds * _PRODUCTS * _WARPGROUPS * depth * _PRODUCT_FLOPS_OF_K
            found[f"tensor_{kind}_gflops"] = self._device.sm_count * flops / self._warm_us(launch) / 1e3
        module.unload()
        return found

    def _caches(self, sink: DeviceBuffer) -> dict[str, float]:
        quarter = 1 << max(20, (self._device.l2_bytes // 4).bit_length() - 1)
        with self._buffer(quarter) as data:
            return {
                "shared_gbps": self._per_us("shared_loads", 64, 16 * _UNROLL, [sink]) / 1e3,
                "l1_gbps": self._per_us("l1_loads", 64, 16 * _UNROLL, [sink, data, _L1_BYTES]) / 1e3,
                "l2_gbps": self._per_us("l2_loads", 32, 16 * _UNROLL, [sink, data, quarter]) / 1e3,
            }

    def _atomics(self, sink: DeviceBuffer) -> dict[str, float]:
        apart = self._per_us("atomics_apart", 4, _UNROLL, [sink, _WORDS])
        launch = self._launch("atomics_together", [1, sink], self._device.sm_count, _THREADS)
        together = self._device.sm_count * _THREADS * _UNROLL / self._warm_us(launch)
        return {"atomics_apart_gops": apart / 1e3, "atomics_together_gops": together / 1e3}

    def _dram(self, sink: DeviceBuffer) -> dict[str, float]:
        nbytes = min(_DRAM_BYTES, self._context.free_bytes() // 4) // 4096 * 4096
        quads = ctypes.c_longlong(nbytes // 16)
        found = {}
        with self._buffer(nbytes) as one, self._buffer(nbytes) as other:
            for key, name, arguments, times in (
                ("dram_read_gbps", "dram_reads", [one, sink], 1),
                ("dram_write_gbps", "dram_writes", [one], 1),
                ("dram_copy_gbps", "dram_copies", [one, other], 2),
            ):
                launch = self._launch(name, [quads, *arguments], self._blocks, _THREADS)
                found[key] = times * nbytes / self._cold_us(launch) / 1e3
        return found

    def _latencies(self, sink: DeviceBuffer) -> dict[str, float]:
        found = {}
        with self._buffer(8) as cycles:
            ends = [_STEPS, sink, cycles]

            def read(launch: Launch, timed: Callable[[Launch], float]) -> float:
                timed(launch)
                return float(cycles.download(np.int64, count=1)[0]) / _STEPS

            for part in ("fma", "shared"):
                launch = self._launch(f"latency_of_{part}", ends, 1, 1)
                found[f"{part}_latency_cycles"] = read(launch, self._warm_us)
            for part, (nbytes, apart) in _RINGS.items():
                with self._buffer(nbytes) as ring:
                    ring.upload(ring_of(nbytes, apart))
                    name = "latency_of_l1" if part == "l1" else "latency_of_l2"
                    launch = self._launch(name, [*ends, ring], 1, 1)
                    timed = self._cold_us if part == "dram" else self._warm_us
                    found[f"{part}_latency_cycles"] = read(launch, timed)
        return found


def ring_of(nbytes: int, apart: int) -> Any:
    """Places `apart` bytes from each other, each of which holds the offset of another: one random round."""
    places = np.random.default_rng(0).permutation(nbytes // apart).astype(np.uint64) * np.uint64(apart)
    ring = np.zeros(nbytes // 8, dtype=np.uint64)
    ring[(places // 8).astype(np.intp)] = np.roll(places, -1)
    return ring


def kept_rates(device: Device, identity: str, measure: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """The rates of a device as they were measured before, or as they are measured now."""
    said = [device.name, identity, rates_source(), list(MEASURED_RATES), _CLOCK]
    return kept(dict[str, float], said, lambda: {key: float(value) for key, value in measure().items()})
