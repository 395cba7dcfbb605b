# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a device is: its limits for occupancy and its theoretical peaks.

A `Device` comes either from a driver's attributes (`source="driver"`) or from the bundled table of cards
(`source="table"`); everything downstream reads only this type.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuprof.errors import InputError
from gpuprof.schema import Count, Extent, NonNegative, Positive

DeviceSource = Literal["driver", "table"]

#: FMA results per clock cycle and SM, as (FP32, FP64), by compute capability: the table of arithmetic
#: instruction throughput in the CUDA C++ Programming Guide.
_FMA_PER_CYCLE: dict[tuple[int, int], tuple[int, int]] = {
    (7, 0): (64, 32),
    (7, 2): (64, 32),
    (7, 5): (64, 2),
    (8, 0): (64, 32),
    (8, 6): (128, 2),
    (8, 7): (128, 2),
    (8, 8): (128, 2),
    (8, 9): (128, 2),
    (9, 0): (128, 64),
    (10, 0): (128, 64),
    (10, 3): (128, 2),
    (11, 0): (128, 2),
    (12, 0): (128, 2),
    (12, 1): (128, 2),
}


#: Types of runs for which CUDA cores are made; tensor cores have most of the others' peak.
CUDA_CORE_TYPES = ("f32", "f64")
#: Types of operands that tensor cores multiply; `e4m3` stands for every 8-bit float.
TENSOR_TYPES = ("f16", "bf16", "tf32", "e4m3", "f64", "i8")
#: Multiply-adds per clock cycle and SM of tensor cores, by type of the operands: the whitepapers on the A100
#: and H100 Tensor Core GPU architectures, without sparsity. Elsewhere they are a matter of the product.
_TENSOR_FMA_PER_CYCLE: dict[tuple[int, int], dict[str, int]] = {
    (8, 0): {"f16": 1024, "bf16": 1024, "tf32": 512, "f64": 64, "i8": 2048},
    (9, 0): {"f16": 2048, "bf16": 2048, "tf32": 1024, "e4m3": 4096, "f64": 128, "i8": 4096},
}


def fma_per_cycle(compute_capability: tuple[int, int]) -> tuple[int, int] | None:
    """FP32 and FP64 fused multiply-adds that one SM completes per cycle."""
    return _FMA_PER_CYCLE.get(compute_capability)


def tensor_fma_per_cycle(compute_capability: tuple[int, int]) -> Mapping[str, int]:
    """Multiply-adds that the tensor cores of one SM complete per cycle, by type of the operands."""
    return _TENSOR_FMA_PER_CYCLE.get(compute_capability, {})


def parse_arch(text: str) -> tuple[int, int]:
    """Read an architecture name such as `sm_90`, `90` or `9.0` as a compute capability."""
    digits = text.lower().removeprefix("sm_").removeprefix("compute_").rstrip("af").replace(".", "")
    if not digits.isdecimal() or len(digits) not in (2, 3):
        raise InputError(f"{text!r} is not a GPU architecture.", fix="Write it as sm_90, sm_86, sm_75, …")
    return int(digits[:-1]), int(digits[-1])


class Device(Struct, frozen=True):
    """Limits and peaks of one GPU.

    Args:
        sm_clock_mhz: Boost clock of the SMs.
        max_threads_per_sm: Most resident threads of an SM.
        registers_per_block: Most registers of a block.
        shared_bytes_per_block: Most static shared memory of a block.
        shared_bytes_per_block_optin: Most dynamic shared memory of a block.
        reserved_shared_bytes_per_block: Shared memory that the driver takes from each block.
        peak_bandwidth_gbps: Theoretical: 2 x memory clock x bus width / 8; None where an input is unknown.
        peak_fp32_gflops: Theoretical: 2 x FMA per cycle and SM x SMs x boost clock; None where an input is
            unknown.
        peak_fp64_gflops: The same of double precision.
        source: Whether a driver or the table of cards told it.
        measured_copy_bandwidth_gbps: Bytes read plus bytes written by a large device-to-device copy, on this
            very device in this run.
        measured_rates: Those of `gpuprof.devices.measured`, by a name that ends with the unit: each was
            reached once by a small kernel on this very device.
    """

    name: str
    compute_capability: Annotated[str, Meta(pattern=r"^[0-9]{1,2}[.][0-9]$(?!\n)")]
    sm_count: Extent
    sm_clock_mhz: NonNegative
    memory_clock_mhz: Positive | None
    memory_bus_width_bits: Extent | None
    memory_bytes: Count
    l2_bytes: Count
    max_threads_per_block: Count
    max_threads_per_sm: Count
    max_blocks_per_sm: Count
    registers_per_sm: Count
    registers_per_block: Count
    shared_bytes_per_sm: Count
    shared_bytes_per_block: Count
    shared_bytes_per_block_optin: Count
    reserved_shared_bytes_per_block: Count
    max_grid: tuple[Extent, Extent, Extent]
    peak_bandwidth_gbps: Positive | None
    peak_fp32_gflops: Positive | None
    peak_fp64_gflops: Positive | None
    source: DeviceSource
    measured_copy_bandwidth_gbps: Positive | None = None
    measured_copy_bandwidth_reason: str | None = None
    measured_rates: Mapping[str, Positive] = {}
    measured_rates_reason: str | None = None

    @property
    def capability(self) -> tuple[int, int]:
        return parse_arch(self.compute_capability)

    @property
    def arch(self) -> str:
        """Architecture name for NVRTC, for example `sm_90`."""
        major, minor = self.capability
        return f"sm_{major}{minor}"

    def peak_gflops(self, dtype: str) -> float | None:
        """Theoretical peak rate of runs in a type, in GFLOP/s.

        That of CUDA cores for `f32` and `f64`, and of tensor cores for narrower types where it is known.
        """
        if dtype in CUDA_CORE_TYPES:
            return self.peak_fp64_gflops if dtype == "f64" else self.peak_fp32_gflops
        return self.peak_tensor_gflops(dtype) or self.peak_fp32_gflops

    def peak_tensor_gflops(self, source: str) -> float | None:
        """Theoretical peak rate of tensor cores, in 10^9 operations per second.

        Args:
            source: Type of the operands, one of `TENSOR_TYPES`.

        Returns:
            None where gpuprof does not know the rate.
        """
        rate = tensor_fma_per_cycle(self.capability).get(source)
        return theoretical_gflops(rate, self.sm_count, self.sm_clock_mhz) if rate else None


def theoretical_bandwidth_gbps(memory_clock_mhz: float, bus_width_bits: int) -> float:
    """Peak memory bandwidth in GB/s: two transfers per memory clock cycle over the whole bus."""
    return 2.0 * memory_clock_mhz * 1e6 * (bus_width_bits / 8) / 1e9


def theoretical_gflops(fma_per_sm_cycle: int, sm_count: int, sm_clock_mhz: float) -> float:
    """Peak arithmetic rate in GFLOP/s: one FMA is two floating-point operations."""
    return 2.0 * fma_per_sm_cycle * sm_count * sm_clock_mhz / 1e3
