# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launches of one `wgmma` each: operands in every layout of shared memory, or in registers, and random sums.

A kernel copies an image of shared memory, multiplies once, and stores what its threads hold of D. The image
is laid out here, element by element, as the PTX ISA draws it.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
from card_process import KernelsOnCard
from executor_harness import compile_both, compile_cuda

from gpuprof.executor import GlobalMemory, LaunchResult, launch, load_program

#: Where B begins, in the image: A has at most 64 rows of 128 bytes.
B_OFFSET = 8192
IMAGE_BYTES = 65536
_ROW_BYTES = {0: 16, 1: 128, 2: 64, 3: 32}
_DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, **dict.fromkeys(("e4m3", "e5m2", "s8", "u8"), 32)}
_KERNEL = """extern "C" __global__ void {name}({word} *out, const unsigned *image, const unsigned *of_a,
                                 const {word} *of_c, unsigned long long a, unsigned long long b)
{{
    extern __shared__ __align__(1024) unsigned tile[];
    const int t = threadIdx.x;
    for (int i = t; i < {words}; i += 128)
        tile[i] = image[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long start = (unsigned)__cvta_generic_to_shared(tile) >> 4;
    a += start;
    b += start + {b_start};
    unsigned r[4];
    {word} d[{count}];
    for (int i = 0; i < 4; ++i)
        r[i] = of_a[t * 4 + i];
    for (int i = 0; i < {count}; ++i)
        d[i] = of_c[t * {count} + i];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, {adds}, 0;\\n"
                 "{opcode} {{{registers}}}, {a_text}, {b_text}, p{numbers};\\n}}"
                 : {outputs} : {inputs} : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {count}; ++i)
        out[t * {count} + i] = d[i];
}}
"""


@dataclass(frozen=True)
class Wgmma:
    """One product of 64 rows.

    Layouts, of A and B, are as descriptors name them; of A None where it is in registers. `transposed` says
    whether elements that are neighbours lie along M or N. With `adds`, what D held is added. It is `exact` if
    the operands are small whole numbers, whose sums no order can change.
    """

    name: str
    kind: str
    sums: str
    columns: int
    layouts: tuple[int | None, int]
    transposed: tuple[bool, bool] = (False, False)
    negated: tuple[bool, bool] = (False, False)
    adds: bool = True
    exact: bool = True

    @property
    def depth(self) -> int:
        """Columns of A."""
        return _DEPTHS[self.kind]

    @property
    def registers(self) -> int:
        """Words of D that each thread holds."""
        return self.columns // (4 if self.sums == "f16" else 2)

    @property
    def source(self) -> str:
        """The kernel."""
        count = self.registers
        inputs = [count, count + 1]
        shape = f"m64n{self.columns}k{self.depth}"
        opcode = f"wgmma.mma_async.sync.aligned.{shape}.{self.sums}.{self.kind}.{self.kind}"
        numbers = ""
        if self.kind in ("f16", "bf16", "tf32", "e4m3", "e5m2"):
            numbers = "".join(f", {-1 if sign else 1}" for sign in self.negated)
        if self.kind in ("f16", "bf16"):
            turns = self.transposed if self.layouts[0] is not None else self.transposed[1:]
            numbers += "".join(f", {int(turned)}" for turned in turns)
        given = ['"l"(a)', '"l"(b)']
        a_text = f"%{inputs[0]}"
        if self.layouts[0] is None:
            given += [f'"r"(r[{i}])' for i in range(4)]
            a_text = "{" + ", ".join(f"%{count + 2 + i}" for i in range(4)) + "}"
        given.append(f'"r"({int(self.adds)})')
        word, letter = ("float", "f") if self.sums == "f32" else ("unsigned", "r")
        return _KERNEL.format(
            name=self.name,
            word=word,
            words=(B_OFFSET + 128 * self.columns) // 4,
            b_start=B_OFFSET >> 4,
            count=count,
            opcode=opcode,
            registers=", ".join(f"%{i}" for i in range(count)),
            outputs=", ".join(f'"+{letter}"(d[{i}])' for i in range(count)),
            a_text=a_text,
            b_text=f"%{inputs[1]}",
            adds=f"%{count + len(given) - 1}",
            numbers=numbers,
            inputs=", ".join(given),
        )

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A, (64, k); B, (columns, k); and C, (64, columns), as bits."""
        rng = np.random.default_rng([*self.name.encode()])
        shapes = (64, self.depth), (self.columns, self.depth)
        a, b = (_bits(rng, self.kind, shape, exact=self.exact) for shape in shapes)
        return a, b, _bits(rng, self.sums, (64, self.columns), exact=self.exact)

    def image(self) -> tuple[np.ndarray, int, int]:
        """What shared memory holds, and the descriptors of A and B as they are at address 0."""
        a, b, _ = self.operands()
        image = np.zeros(IMAGE_BYTES, np.uint8)
        descriptors = []
        for matrix, layout, turned, start in zip(
            (a, b), self.layouts, self.transposed, (0, B_OFFSET), strict=True
        ):
            if layout is None:
                descriptors.append(0)
                continue
            place, leading, stride = _places(matrix.shape, matrix.itemsize, layout, turned)
            view = image.view(matrix.dtype)
            view[(place + start) // matrix.itemsize] = matrix
            descriptors.append(layout << 62 | stride >> 4 << 32 | leading >> 4 << 16)
        return image, descriptors[0], descriptors[1]

    def fragments(self) -> tuple[np.ndarray, np.ndarray]:
        """The words of A and of C that each thread gives: shapes (128, 4) and (128, registers)."""
        a, _, c = self.operands()
        words = a.view(np.uint32)
        thread = np.arange(128)
        row, word = thread // 32 * 16 + thread % 32 // 4, thread % 4
        of_a = np.stack([words[row + 8 * (i % 2), word + 4 * (i // 2)] for i in range(4)], axis=1)
        return of_a, self.threads(c)

    def threads(self, matrix: np.ndarray) -> np.ndarray:
        """The words of a (64, columns) accumulator by thread: shape (128, registers)."""
        thread = np.arange(128)
        row, column = thread // 32 * 16 + thread % 32 // 4, thread % 4 * 2
        found = [
            matrix[row[:, None] + 8 * half, column[:, None] + 8 * tile + np.arange(2)]
            for tile in range(self.columns // 8)
            for half in range(2)
        ]
        return np.ascontiguousarray(np.concatenate(found, axis=1)).view(np.uint32)


def _places(shape: tuple[int, int], item: int, layout: int, turned: bool) -> tuple[np.ndarray, int, int]:
    """The byte of each element, and the leading and the stride offset of its descriptor."""
    rows, depth = shape
    pitch = _ROW_BYTES[layout]
    place = np.zeros(shape, np.int64)
    if turned:
        cores, groups = rows * item // 16, depth // 8
        beside = pitch // 16
        if layout:  # rows of K, each with `beside` cores; groups of 8 of them, then the next cores
            stride, leading = 8 * pitch, groups * 8 * pitch
        else:
            leading, stride = cores * 128, 128
        for row in range(rows):
            core, byte = divmod(row * item, 16)
            for k in range(depth):
                if layout:
                    first = core // beside * leading + core % beside * 16 + k // 8 * stride
                else:
                    first = core * stride + k // 8 * leading
                place[row, k] = first + k % 8 * pitch + byte
    else:
        groups = rows // 8
        leading, stride = (groups * 128, 128) if not layout else (16, 8 * pitch)
        for row in range(rows):
            for k in range(depth):
                core, byte = divmod(k * item, 16)
                first = core * (leading if not layout else 16) + row // 8 * stride
                place[row, k] = first + row % 8 * pitch + byte
    permuted = {0: 0, 1: 7, 2: 3, 3: 1}[layout]
    return place ^ (place >> 7 & permuted) << 4, leading, stride


def _bits(rng: np.random.Generator, kind: str, shape: tuple[int, int], *, exact: bool) -> np.ndarray:
    if kind in ("s8", "u8"):
        return rng.integers(0, 256, shape, dtype=np.uint8)
    if kind == "s32":
        return rng.integers(-(2**20), 2**20, shape).astype(np.int32).view(np.uint32)
    numbers = rng.integers(-8, 9, shape).astype(np.float32)
    if not exact:
        numbers = (rng.normal(size=shape) * 2.0 ** rng.integers(-6, 7, shape)).astype(np.float32)
    if kind == "f16":
        return numbers.astype(np.float16).view(np.uint16)
    if kind in ("e4m3", "e5m2"):
        # Any exponents: subnormal ones, and exponents far apart.
        finite = rng.integers(0, 0x7F if kind == "e4m3" else 0x7C, shape) | rng.integers(0, 2, shape) << 7
        eight_bit = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[kind]
        return numbers.astype(eight_bit).view(np.uint8) if exact else finite.astype(np.uint8)
    if kind == "bf16":
        return (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return numbers.view(np.uint32)


def _products() -> Iterator[Wgmma]:
    for kind in ("f16", "bf16"):
        for layout in range(4):
            for turned in (False, True):
                name = f"{kind}_layout{layout}{'_turned' * turned}"
                yield Wgmma(name, kind, "f32", 64, (layout, layout), (turned, turned))
    for kind, sums in (
        ("tf32", "f32"),
        ("s8", "s32"),
        ("u8", "s32"),
        ("f16", "f16"),
        ("e4m3", "f32"),
        ("e5m2", "f32"),
    ):
        for layout in (0, 1, 3):
            yield Wgmma(f"{kind}_{sums}_layout{layout}", kind, sums, 32, (layout, layout))
    for columns in (8, 24, 128, 256):
        yield Wgmma(f"f16_columns{columns}", "f16", "f32", columns, (1, 1))
    for kind, sums in (
        ("f16", "f32"),
        ("f16", "f16"),
        ("bf16", "f32"),
        ("tf32", "f32"),
        ("s8", "s32"),
        ("e4m3", "f32"),
    ):
        yield Wgmma(f"{kind}_{sums}_registers", kind, sums, 16, (None, 1))
    yield Wgmma("f16_registers_turned", "f16", "f32", 64, (None, 1), (False, True))
    yield Wgmma("bf16_mixed", "bf16", "f32", 64, (1, 1), (False, True))
    yield Wgmma("f16_negated", "f16", "f32", 16, (1, 1), negated=(True, False))
    yield Wgmma("tf32_negated", "tf32", "f32", 16, (1, 1), negated=(True, True))
    yield Wgmma("bf16_fresh", "bf16", "f32", 16, (1, 1), adds=False)
    yield Wgmma("s8_fresh", "s8", "s32", 16, (1, 1), adds=False)
    for kind, sums in (
        ("f16", "f32"),
        ("f16", "f16"),
        ("bf16", "f32"),
        ("tf32", "f32"),
        ("e4m3", "f32"),
        ("e5m2", "f32"),
    ):
        for number in range(4):
            yield Wgmma(f"{kind}_{sums}_random{number}", kind, sums, 64, (1, 1), exact=False)


@cache
def products() -> dict[str, Wgmma]:
    """Every product by name."""
    return {product.name: product for product in _products()}


@cache
def source() -> str:
    """All kernels, as one file."""
    return "\n".join(product.source for product in products().values())


THREADS = (128, 1, 1)
#: What the output holds before.
POISON = 0xA5A5A5A5


def arrays_of(product: Wgmma, grid: int = 1) -> list[np.ndarray]:
    """The arrays that a kernel gets: output, image, A and C by thread."""
    out = np.full((grid, 128, product.registers), POISON, np.uint32)
    return [out, product.image()[0], *product.fragments()]


def executed(product: Wgmma, ptx: str = "", *, grid: int = 1) -> tuple[np.ndarray, LaunchResult]:
    """Run a case on the executor; return the words of D by thread, and the launch's result."""
    memory = GlobalMemory()
    out, *given = (memory.allocate(array, "array") for array in arrays_of(product, grid))
    program = load_program(ptx or compile_cuda(source(), (), "sm_90a"), product.name)
    arguments = [out, *given, *product.image()[1:]]
    result = launch(program, (grid, 1, 1), THREADS, arguments, memory, IMAGE_BYTES)
    return out.array()[0], result


class CardRuns(KernelsOnCard):
    """Runs cases on the first device; the compiled kernels may stand in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "products.cubin", compile_both(source(), (), "sm_90a")[1])

    def run(self, product: Wgmma) -> np.ndarray:
        """Run a case; return the words of D by thread."""
        descriptors = [ctypes.c_uint64(descriptor) for descriptor in product.image()[1:]]
        shape = {"block": THREADS, "shared": IMAGE_BYTES}
        return self.launched(product.name, arrays_of(product), descriptors, **shape)[0][0]
