# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Products of `mma.sync` of 4 bits and 1 bit, and sparse ones.

Every case is one warp for each of `TESTS` random products, of whose matrices the fragments are made here as
the PTX ISA draws them.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from card_process import KernelsOnCard
from executor_harness import compile_both
from tensor_corpus import multiplying

from gpuprof.executor import Definedness, GlobalMemory, LaunchResult, launch, load_program

TESTS = 16
_BITS = {"s4": 4, "u4": 4, "b1": 1, "s8": 8, "u8": 8, "f16": 16, "bf16": 16, "tf32": 32}
#: The pairs of places, of four, that a sparse row may hold; of tf32 the two words that name one of two.
_PAIRS = [first | second << 2 for first in range(4) for second in range(first + 1, 4)]
_SINGLES = (0b0100, 0b1110)


@dataclass(frozen=True)
class MoreProduct:
    """One form of `mma`.

    `kinds` are types of A's elements, B's, and the sums'. Of a sparse product, `selector` says whose words
    tell which elements of A are stored. It is `exact` if the operands are small whole numbers, whose sums no
    order can change.
    """

    name: str
    rows: int
    depth: int
    kinds: tuple[str, str, str]
    suffix: str = ""
    modifier: str = ""
    selector: int | None = None
    exact: bool = True

    @property
    def stored(self) -> int:
        """Elements of a row of A."""
        return self.depth if self.selector is None else self.depth // 2

    @property
    def counts(self) -> tuple[int, int, int]:
        """Words that a lane gives of A, B and C."""
        bits = _BITS[self.kinds[0]]
        return self.rows * self.stored * bits // 1024, 8 * self.depth * bits // 1024, self.rows // 4

    @property
    def source(self) -> str:
        """A kernel of which every warp multiplies once."""
        sparse = "mma" if self.selector is None else "mma.sp::ordered_metadata"
        first, second, sums = self.kinds
        instruction = f"{sparse}.sync.aligned.m{self.rows}n8k{self.depth}.row.col.{self.modifier}"
        instruction += f"{sums}.{first}.{second}.{sums}{self.suffix}"
        words = ("float", "f") if sums == "f32" else ("unsigned", "r")
        return multiplying(self.name, instruction, self.counts, sums=words, selector=self.selector)

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Stored A, (tests, rows, stored), B, (tests, 8, depth), and C, (tests, rows, 8), as bits; and what
        each group of a sparse row holds, (tests, rows, groups)."""
        rng = np.random.default_rng([3, *self.name.encode()])
        a = self._drawn(rng, self.kinds[0], (TESTS, self.rows, self.stored))
        b = self._drawn(rng, self.kinds[1], (TESTS, 8, self.depth))
        c = self._drawn(rng, self.kinds[2], (TESTS, self.rows, 8))
        groups = self.depth // (2 if self.kinds[0] == "tf32" else 4)
        which = np.zeros((TESTS, self.rows, groups), np.int64)
        if self.selector is not None:
            which = rng.choice(_SINGLES if self.kinds[0] == "tf32" else _PAIRS, which.shape)
        return a, b, c, which

    def _drawn(self, rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
        if kind == "s32":
            return rng.integers(-(2**24), 2**24, shape).astype(np.int32).view(np.uint32)
        if kind in ("s4", "u4", "b1", "s8", "u8"):
            return rng.integers(0, 1 << _BITS[kind], shape, dtype=np.uint8)
        numbers = rng.integers(-8, 9, shape).astype(np.float32)
        if not self.exact:
            numbers = (rng.normal(size=shape) * 2.0 ** rng.integers(-6, 7, shape)).astype(np.float32)
            numbers[rng.random(shape) < 0.02] = np.inf
        if kind == "f16":
            return numbers.astype(np.float16).view(np.uint16)
        bits = numbers.view(np.uint32)
        return (bits >> 16).astype(np.uint16) if kind == "bf16" else bits

    def arrays(self) -> list[np.ndarray]:
        """What the kernel reads, by lane: A, B, C, and the words that tell what of a sparse A is stored."""
        a, b, c, which = self.matrices()
        lane = np.arange(32)
        group, place = lane // 4, lane % 4
        words_a, words_b = (_packed(matrix, _BITS[self.kinds[0]]) for matrix in (a, b))
        halves = self.rows // 8
        count_a, count_b, _ = self.counts
        of_a = [words_a[:, group + 8 * (i % halves), place + 4 * (i // halves)] for i in range(count_a)]
        of_b = [words_b[:, group, place + 4 * i] for i in range(count_b)]
        arrays = [np.stack(of_a, axis=2), np.stack(of_b, axis=2), self.by_lane(c)]
        return arrays if self.selector is None else [*arrays, self._which(which)]

    def by_lane(self, matrix: np.ndarray) -> np.ndarray:
        """An accumulator by lane: shape (tests, 32, words)."""
        lane = np.arange(32)
        group, place = lane // 4, lane % 4
        words = [
            matrix[:, group + 8 * half, 2 * place + i] for half in range(self.rows // 8) for i in range(2)
        ]
        return np.ascontiguousarray(np.stack(words, axis=2))

    def _which(self, which: np.ndarray) -> np.ndarray:
        """The words that tell which elements are stored: shape (tests, 32); others are random."""
        words = np.random.default_rng(4).integers(0, 2**32, (TESTS, 32), dtype=np.uint32)
        groups = which.shape[2]
        in_bytes = self.kinds[0] in ("s8", "u8")
        each = 8 if in_bytes else 4
        for group in range(8):
            for first in range(0, groups, each):
                bits = [
                    (which[:, row, first : first + each] << 4 * np.arange(each)).sum(axis=1)
                    for row in (group, group + 8)
                ]
                number = first // each
                if in_bytes:
                    lane = 4 * group + (2 * self.selector if groups == 8 else 2 * number)
                    words[:, lane], words[:, lane + 1] = bits
                else:
                    lane = 4 * group + self.selector * (groups // 4) + number
                    words[:, lane] = bits[0] | bits[1] << 16
        return words


def _packed(matrix: np.ndarray, bits: int) -> np.ndarray:
    """Rows of elements as words of 32 bits, the first element lowest."""
    per = 32 // bits
    parts = matrix.astype(np.uint64).reshape(*matrix.shape[:2], -1, per)
    return (parts << np.arange(0, 32, bits, dtype=np.uint64)).sum(axis=3).astype(np.uint32)


def _products() -> Iterator[MoreProduct]:
    for rows, depth in ((8, 32), (16, 32), (16, 64)):
        for a, b in (("s4", "s4"), ("u4", "s4"), ("s4", "u4"), ("u4", "u4")):
            yield MoreProduct(f"m{rows}n8k{depth}_{a}_{b}", rows, depth, (a, b, "s32"))
    yield MoreProduct("m16n8k64_s4_sat", 16, 64, ("s4", "s4", "s32"), modifier="satfinite.")
    for rows, depth in ((8, 128), (16, 128), (16, 256)):
        for how in ("xor", "and"):
            name = f"m{rows}n8k{depth}_b1_{how}"
            yield MoreProduct(name, rows, depth, ("b1", "b1", "s32"), suffix=f".{how}.popc")
    sparse = {"f16": (16, 32), "bf16": (16, 32), "tf32": (8, 16), "s8": (32, 64), "u8": (32, 64)}
    for kind, (short, long) in sparse.items():
        sums = "s32" if kind in ("s8", "u8") else "f32"
        for selector in range(2 if kind in ("s8", "u8") else 4):
            yield MoreProduct(
                f"sparse_k{short}_{kind}_{selector}", 16, short, (kind, kind, sums), selector=selector
            )
        for selector in range(1 if kind in ("s8", "u8") else 2):
            yield MoreProduct(
                f"sparse_k{long}_{kind}_{selector}", 16, long, (kind, kind, sums), selector=selector
            )
        if sums == "f32":
            kinds = (kind, kind, sums)
            yield MoreProduct(f"sparse_k{long}_{kind}_random", 16, long, kinds, selector=0, exact=False)


@cache
def more_products() -> dict[str, MoreProduct]:
    """Every product by name."""
    return {product.name: product for product in _products()}


@cache
def more_source() -> str:
    """All kernels, as one file."""
    return "\n".join(product.source for product in more_products().values())


THREADS = (32, 1, 1)


@functools.cache
def compiled() -> tuple[str, bytes]:
    """The PTX and the machine code of all kernels."""
    return compile_both(more_source(), (), "sm_90")


def blank(product: MoreProduct) -> np.ndarray:
    """The output before the launch."""
    return np.zeros((TESTS, 32, product.counts[2]), np.uint32)


def executed(
    product: MoreProduct, ptx: str = "", *, follow_undefined: bool = False
) -> tuple[np.ndarray, LaunchResult]:
    """Run a case on the executor; return the words of D by lane and the result of the launch."""
    memory = GlobalMemory()
    given = [memory.allocate(array, "given") for array in product.arrays()]
    out = memory.allocate(blank(product), "out")
    program = load_program(
        ptx or compiled()[0], product.name, observer=Definedness() if follow_undefined else None
    )
    result = launch(program, (TESTS, 1, 1), THREADS, [out, *given], memory)
    return out.array(), result


class CardRuns(KernelsOnCard):
    """Runs cases on the first device; the compiled kernels may stand in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "more.cubin", compiled()[1])

    def run(self, product: MoreProduct) -> np.ndarray:
        """Run a case; return the words of D by lane."""
        arrays = blank(product), *product.arrays()
        return self.launched(product.name, arrays, grid=(TESTS, 1, 1), block=THREADS)[0]
