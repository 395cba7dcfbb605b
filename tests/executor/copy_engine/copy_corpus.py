# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launches that ask what the copy engine does: boxes in and out of arrays, and what it combines.

Every case has one array, `data`, that the engine reads or changes, and one, `words`, with what threads put
into shared memory or found there. All content is random by seed; the bits of floats are chosen so that NaN,
infinities, subnormals and zeros of both signs meet.
"""

import ctypes
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from card_process import KernelsOnCard
from executor_harness import compile_both, compile_cuda

from gpuprof.backends.sim.launching import descriptor_of
from gpuprof.executor import GlobalMemory, Program, encode_tensor_map, launch, load_program
from gpuprof.kernels.tensor_map import TensorMap
from gpuprof.records import replace

#: What lies in an array that nothing was put into.
POISON = 0xA5
_ITEM_BYTES = {
    "u8": 1,
    "f16": 2,
    "bf16": 2,
    "u16": 2,
    "f32": 4,
    "i32": 4,
    "u32": 4,
    "f64": 8,
    "i64": 8,
    "u64": 8,
}
_HELPERS = r"""
struct alignas(64) Map { unsigned char bytes[128]; };
__device__ __forceinline__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void fill(unsigned *tile, const unsigned *words, int bytes)
{
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        tile[i] = words[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}
__device__ __forceinline__ void finish()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
"""
_SEND_BOX = """extern "C" __global__ void {name}(const __grid_constant__ Map map, const unsigned *words,
                                 int bytes, int x, int y, int z, int u, int v)
{{
    extern __shared__ __align__(1024) unsigned tile[];
    fill(tile, words, bytes);
    if (threadIdx.x == 0) {{
        asm volatile("{opcode} [%0, {{{places}}}], [%1];"
                     ::"l"(&map), "r"(at(tile)), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v) : "memory");
        finish();
    }}
}}
"""
_FETCH_BOX = """extern "C" __global__ void {name}(const __grid_constant__ Map map, unsigned *words, int bytes,
                                 int x, int y, int z, int u, int v)
{{
    extern __shared__ __align__(1024) unsigned tile[];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) {{
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(at(&barrier)), "r"(bytes) : "memory");
        asm volatile("{opcode} [%0], [%1, {{{places}}}], [%2];"
                     ::"r"(at(tile)), "l"(&map), "r"(at(&barrier)), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v)
                     : "memory");
    }}
    __syncthreads();
    asm volatile("{{\\n.reg .pred over;\\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;\\n"
                 "@!over bra again;\\n}}" ::"r"(at(&barrier)) : "memory");
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        words[i] = tile[i];
}}
"""
_COMBINE = """extern "C" __global__ void {name}(unsigned *data, const unsigned *words, int bytes)
{{
    extern __shared__ __align__(1024) unsigned tile[];
    fill(tile, words, bytes);
    if (threadIdx.x == 0) {{
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{how} [%0], [%1], %2;"
                     ::"l"(data), "r"(at(tile)), "r"(bytes) : "memory");
        finish();
    }}
}}
"""


@dataclass(frozen=True)
class CopyCase:
    """One launch of 64 threads.

    `data` is the array that the engine sees, through `map` if there is one, and `words` what threads see.
    With `faults` the engine traps.
    """

    name: str
    source: str
    data: np.ndarray
    words: np.ndarray
    numbers: tuple[int, ...]
    shared: int
    item_bytes: int
    map: TensorMap | None = None
    faults: bool = False


@dataclass(frozen=True)
class Box:
    """A box and where it is cut. Lists start at the fastest dimension.

    `steps` are elements from one that is taken to the next; the pattern of `swizzle` is in bytes.
    """

    name: str
    dtype: str
    extents: tuple[int, ...]
    box: tuple[int, ...]
    place: tuple[int, ...]
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    fill: str = "zero"

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return _ITEM_BYTES[self.dtype]

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements that the box takes along each dimension."""
        steps = (1, *self.steps[1:]) if self.steps else (1,) * len(self.box)
        return tuple(-(-size // step) for size, step in zip(self.box, steps, strict=True))

    @property
    def bytes(self) -> int:
        """Bytes of the box in shared memory: a row takes the whole width of a swizzle."""
        return max(self.item_bytes * self.counts[0], self.swizzle) * int(np.prod(self.counts[1:]))

    @property
    def map(self) -> TensorMap:
        """Its tensor map; rows lie as close as the engine lets them."""
        strides = []
        for extent in self.extents[:-1]:
            before = strides[-1] if strides else self.item_bytes
            strides.append(-(-extent * before // 16) * 16)
        common = {"swizzle_bytes": self.swizzle, "steps": self.steps, "fills_nan": self.fill == "nan"}
        return TensorMap("map", "data", self.dtype, self.extents, tuple(strides), self.box, **common)

    @property
    def array_bytes(self) -> int:
        """Bytes of the array, gaps included."""
        strides = (self.item_bytes, *self.map.stride_bytes)
        last = sum((extent - 1) * stride for extent, stride in zip(self.extents, strides, strict=True))
        return -(-(last + self.item_bytes) // 16) * 16


BOXES = [
    Box("line", "f32", (100,), (32,), (16,)),
    Box("line_left", "f32", (100,), (32,), (-8,)),
    Box("line_before", "f32", (100,), (32,), (-32,)),
    Box("line_right", "u8", (100,), (64,), (80,)),
    Box("plane", "f32", (40, 20), (16, 8), (8, 4)),
    Box("plane_corner", "f32", (41, 20), (16, 8), (32, 15)),
    Box("plane_before", "f16", (40, 20), (16, 8), (-8, -2)),
    Box("plane_left", "f32", (40, 20), (16, 8), (-8, 4)),
    Box("plane_above", "f32", (40, 20), (16, 8), (8, -3)),
    Box("plane_over", "f32", (40, 20), (16, 8), (8, -9)),
    Box("plane_under", "f32", (40, 20), (16, 8), (8, 20)),
    Box("plane_above_128", "f32", (64, 40), (32, 8), (32, -1), 128),
    Box("plane_outside", "f32", (40, 20), (16, 8), (48, 4)),
    Box("plane_32", "f16", (64, 40), (16, 16), (16, 7), 32),
    Box("plane_64", "f32", (64, 40), (16, 16), (52, 30), 64),
    Box("plane_128", "bf16", (128, 40), (64, 24), (64, 9), 128),
    Box("plane_128_f64", "f64", (48, 40), (16, 8), (40, 36), 128),
    Box("solid", "u16", (24, 7, 9), (16, 4, 3), (16, 5, 7)),
    Box("solid_before", "u16", (24, 7, 9), (16, 4, 3), (8, 5, -2)),
    Box("solid_128", "f32", (40, 7, 9), (32, 4, 3), (16, -1, 2), 128),
    Box("solid_128_right", "f32", (40, 7, 9), (32, 4, 3), (16, 2, 2), 128),
    Box("solid_128_above", "f32", (40, 7, 9), (32, 4, 3), (8, -1, 2), 128),
    Box("four", "i32", (12, 5, 4, 6), (8, 3, 2, 3), (8, -1, 3, 4)),
    Box("five", "f32", (12, 5, 4, 6, 3), (8, 3, 2, 3, 2), (8, 3, -1, 4, 2)),
    Box("five_64", "u64", (12, 5, 4, 6, 3), (8, 3, 2, 3, 2), (2, 1, 1, 2, 0), 64),
    Box("steps", "f32", (40, 20, 9), (16, 9, 4), (8, 4, 1), 0, (1, 2, 3)),
    Box("steps_edge", "f16", (64, 20, 9), (32, 9, 4), (48, 14, 6), 64, (1, 4, 2)),
]
#: And those whose rows are narrower than the swizzle.
STORED_BOXES = [
    *BOXES,
    Box("narrow_128", "bf16", (128, 40), (32, 16), (64, 9), 128),
    Box("narrow_64", "f32", (64, 7, 9), (4, 4, 3), (8, 1, 2), 64),
]
#: Boxes that start between two multiples of 16 bytes, within the array and outside it.
MISPLACED_BOXES = [
    Box("line_off", "f32", (100,), (32,), (17,)),
    Box("line_left_off", "f32", (100,), (32,), (-5,)),
    Box("line_outside_off", "f32", (100,), (32,), (130,)),
    Box("plane_off_f16", "f16", (40, 20), (16, 8), (12, -9)),
    Box("plane_off_f64", "f64", (40, 20), (16, 8), (33, 4)),
    Box("plane_off_128", "bf16", (128, 40), (64, 24), (20, 9), 128),
]
NAN_BOXES = [
    Box(f"nan_{kind}", kind, (41, 20), (16, 8), (32, 15), fill="nan")
    for kind in ("f16", "bf16", "f32", "f64")
]
#: What a box can be combined by, and where: with elements of both kinds of borders.
COMBINED_BOXES = [
    ("add", Box("i32", "i32", (41, 20), (16, 8), (32, 15))),
    ("add", Box("u64", "u64", (41, 20), (16, 8), (32, 15))),
    ("add", Box("f32", "f32", (41, 20), (16, 8), (32, 15))),
    # With so many elements, subnormal ones meet.
    ("add", Box("f32_many", "f32", (64, 40), (32, 32), (16, 4))),
    ("add", Box("f32_before", "f32", (41, 20), (16, 8), (-4, -2))),
    ("add", Box("f64", "f64", (41, 20), (16, 8), (32, 15))),
    ("add", Box("f16", "f16", (41, 20), (16, 8), (32, 15))),
    ("add", Box("bf16_128", "bf16", (128, 20), (64, 8), (72, 15), 128)),
    ("min", Box("i64", "i64", (41, 20), (16, 8), (32, 15))),
    ("max", Box("u32", "u32", (41, 20), (16, 8), (32, 15))),
    ("min", Box("f16", "f16", (41, 20), (16, 8), (32, 15))),
    ("max", Box("bf16", "bf16", (41, 20), (16, 8), (32, 15))),
    ("inc", Box("u32", "u32", (41, 20), (16, 8), (32, 15))),
    ("dec", Box("u32", "u32", (41, 20), (16, 8), (32, 15))),
    ("and", Box("i32", "i32", (41, 20), (16, 8), (32, 15))),
    ("or", Box("u64", "u64", (41, 20), (16, 8), (32, 15))),
    ("xor", Box("u32", "u32", (41, 20), (16, 8), (32, 15))),
]
#: What a stretch of bytes can be combined by.
COMBINED = [
    *(("add", kind) for kind in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16")),
    *((name, kind) for name in ("min", "max") for kind in ("u32", "s32", "u64", "s64", "f16", "bf16")),
    *((name, kind) for name in ("and", "or", "xor") for kind in ("b32", "b64")),
    *((name, "u32") for name in ("inc", "dec")),
]


def _cases() -> Iterator[CopyCase]:
    for box in (*STORED_BOXES, *MISPLACED_BOXES):
        yield _send(box, "store", "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group")
    for name, box in (*COMBINED_BOXES, *(("add", box) for box in MISPLACED_BOXES)):
        opcode = f"cp.reduce.async.bulk.tensor.{{}}d.global.shared::cta.{name}.tile.bulk_group"
        yield _send(box, f"box_{name}", opcode)
    for box in (*BOXES, *NAN_BOXES, *MISPLACED_BOXES):
        opcode = "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        source = _source(_FETCH_BOX, box, f"load_{box.name}", opcode, 3)
        words = np.full(box.bytes, POISON, np.uint8).view(np.uint32)
        yield _case(box, f"load_{box.name}", source, words)
    for name, kind in COMBINED:
        how = f"{name}.{kind}"
        title = f"reduce_{how.replace('.', '_')}"
        count = 2048
        data, words = (
            _bits(f"{title} {side}", kind.removeprefix("noftz."), count) for side in ("data", "words")
        )
        source = _COMBINE.format(name=title, how=how)
        item_bytes = int(kind.rpartition("f")[2] if "f" in kind else kind[1:]) // 8
        yield CopyCase(title, source, data, words.view(np.uint32), (count,), count, item_bytes)


def _send(box: Box, prefix: str, opcode: str) -> CopyCase:
    name = f"{prefix}_{box.name}"
    words = _bits(f"{name} words", box.dtype, box.bytes).view(np.uint32)
    case = _case(box, name, _source(_SEND_BOX, box, name, opcode, 2), words)
    # Only loads may start before the array.
    return replace(case, faults=case.faults or min(box.place) < 0)


def _source(template: str, box: Box, name: str, opcode: str, first: int) -> str:
    rank = len(box.box)
    places = ", ".join(f"%{first + axis}" for axis in range(rank))
    return template.format(name=name, opcode=opcode.format(rank), places=places)


def _case(box: Box, name: str, source: str, words: np.ndarray) -> CopyCase:
    place = (*box.place, 0, 0, 0, 0)[:5]
    data = _bits(f"{name} data", box.dtype, box.array_bytes)
    numbers = (box.bytes, *place)
    faults = box in MISPLACED_BOXES
    return CopyCase(name, source, data, words, numbers, box.bytes, box.item_bytes, box.map, faults)


def _bits(seed: str, kind: str, count: int) -> np.ndarray:
    """Random bytes; of floats many have an exponent near that of 1, and the smallest and the largest."""
    rng = np.random.default_rng([*seed.encode()])
    raw = rng.integers(0, 256, count, dtype=np.uint8)
    layout = {
        "f16": (np.uint16, 5, 10),
        "bf16": (np.uint16, 8, 7),
        "f32": (np.uint32, 8, 23),
        "f64": (np.uint64, 11, 52),
    }
    if kind not in layout:
        return raw
    unsigned, exponent_bits, fraction_bits = layout[kind]
    words = raw.view(unsigned)
    top = (1 << exponent_bits) - 1
    style = rng.integers(0, 8, words.size)
    near = (top >> 1) + rng.integers(-2, 3, words.size)
    exponent = np.where(style < 5, near, np.where(style == 5, 0, np.where(style == 6, top, -1)))
    field = unsigned(top << fraction_bits)
    chosen = words & ~field | (exponent & top).astype(unsigned) << unsigned(fraction_bits)
    words = np.where(exponent >= 0, chosen, words).astype(unsigned)
    fraction = unsigned((1 << fraction_bits) - 1)
    # Zeros, and infinities.
    words = np.where((rng.random(words.size) < 0.1) & (style >= 5), words & ~fraction, words)
    return words.astype(unsigned).view(np.uint8)


@cache
def cases() -> dict[str, CopyCase]:
    """Every case by name."""
    return {case.name: case for case in _cases()}


@cache
def source() -> str:
    """All kernels, as one file."""
    return _HELPERS + "\n".join(case.source for case in cases().values())


THREADS = (64, 1, 1)


@functools.cache
def program(name: str) -> Program:
    """Return a decoded kernel of the corpus."""
    return load_program(compile_cuda(source()), name)


def executed(case: CopyCase) -> tuple[np.ndarray, np.ndarray]:
    """Run a case on the executor; return its data and its words as they are afterwards."""
    memory = GlobalMemory()
    data, words = memory.allocate(case.data, "data"), memory.allocate(case.words, "words")
    first = data if case.map is None else encode_tensor_map(descriptor_of(case.map, data.address))
    launch(program(case.name), (1, 1, 1), THREADS, [first, words, *case.numbers], memory, case.shared)
    return data.array(), words.array()


class CardRuns(KernelsOnCard):
    """Runs cases on the first device; the compiled kernels may stand in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "copies.cubin", compile_both(source())[1])

    def run(self, case: CopyCase) -> tuple[np.ndarray, np.ndarray]:
        """Run a case; return its data and its words as they are afterwards."""
        from gpuprof.backends.gpu.opaque_arguments import encode_tensor_map as encode_for_the_driver

        def first(address: int) -> Any:
            return ctypes.c_void_p(address) if case.map is None else encode_for_the_driver(case.map, address)

        numbers = [ctypes.c_int(number) for number in case.numbers]
        shape = {"block": THREADS, "shared": case.shared, "first": first}
        data, words = self.launched(case.name, (case.data, case.words), numbers, **shape)
        return data, words
