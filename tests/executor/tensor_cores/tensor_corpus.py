# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that ask what tensor cores compute and what they count: products, tiles, and fragments of `wmma`.

Only the standard library and NumPy are used, so that a bare machine with a GPU can ask its card. Operands are
random bits by seed, in eight styles that repeat: exponents close together, further apart and far apart, small
numbers down to subnormals, anything with infinities and NaN, mostly zeros, a wide spread, and C zero. After
them come some that are chosen: zeros of both signs, and sums too small for the result.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: What an output holds before the launch.
POISON = 0xA5
#: Random products of each shape, a warp each; and chosen ones.
TESTS, CHOSEN = 64, 8
_STYLES = 8
_WITHOUT_C = 7
_SPREAD = {0: 2, 1: 6, 2: 12, 5: 14, 6: 2, 7: 12}
_SMALL, _ANYTHING, _MOSTLY_ZERO = 3, 4, 5
_WITH_LOW_BITS = (2, 7)
#: Exponent bits, fraction bits, and bytes of an element.
FORMATS = {
    "f16": (5, 10, 2),
    "bf16": (8, 7, 2),
    "tf32": (8, 10, 4),
    "e4m3": (4, 3, 1),
    "e5m2": (5, 2, 1),
    "f32": (8, 23, 4),
    "f64": (11, 52, 8),
}
WMMA = (Path(__file__).parent / "wmma.cu").read_text()


@dataclass(frozen=True)
class Case:
    """One launch.

    The name is also the kernel's; parameters are the output, of `count` words, then the inputs.
    """

    name: str
    file: str
    count: int
    inputs: tuple[bytes, ...]
    grid: tuple[int, int, int] = (1, 1, 1)
    counted: bool = True
    block: tuple[int, int, int] = (32, 1, 1)
    shared: int = 0
    cooperative: bool = False

    @property
    def dtype(self) -> np.dtype:
        """Of a word of the output."""
        return np.dtype(np.uint32)

    @property
    def kernel(self) -> str:
        """The entry function."""
        return self.name


#: The C type of an operand's words, and the letter of their registers.
_WORDS = {"f64": ("double", "d"), "f32": ("float", "f"), "b32": ("unsigned", "r")}


def multiplying(
    name: str,
    instruction: str,
    counts: tuple[int, int, int],
    kind: tuple[str, str] = _WORDS["b32"],
    sums: tuple[str, str] = _WORDS["b32"],
) -> str:
    """A kernel of which every warp multiplies once: by lane it is given words of A, B and C.

    Args:
        counts: How many of each.
        kind: Of the words of A and B, as in `_WORDS`; `sums` those of C and D.
    """
    a, b, c = counts
    numbers = itertools.count()
    operands = ["{" + ",".join(f"%{next(numbers)}" for _ in range(count)) + "}" for count in (c, a, b, c)]
    outputs = ", ".join(f'"={sums[1]}"(d[{i}])' for i in range(c))
    inputs = [f'"{kind[1]}"({name}[{i}])' for name, count in (("x", a), ("y", b)) for i in range(count)]
    inputs += [f'"{sums[1]}"(z[{i}])' for i in range(c)]
    return f"""extern "C" __global__ void {name}({sums[0]} *out, const {kind[0]} *a, const {kind[0]} *b,
                                        const {sums[0]} *c)
{{
    const int thread = blockIdx.x * 32 + threadIdx.x;
    {kind[0]} x[{a}], y[{b}];
    {sums[0]} z[{c}], d[{c}];
    for (int i = 0; i < {a}; ++i)
        x[i] = a[thread * {a} + i];
    for (int i = 0; i < {b}; ++i)
        y[i] = b[thread * {b} + i];
    for (int i = 0; i < {c}; ++i)
        z[i] = c[thread * {c} + i];
    asm volatile("{instruction} {", ".join(operands)};"
                 : {outputs}
                 : {", ".join(inputs)});
    for (int i = 0; i < {c}; ++i)
        out[thread * {c} + i] = d[i];
}}
"""


@dataclass(frozen=True)
class Product:
    """An `mma.sync`: its types, and the words that each lane gives of A, B and C."""

    name: str
    instruction: str
    a: str
    b: str
    c: str
    words: tuple[int, int, int]

    @property
    def source(self) -> str:
        """A kernel of which every warp multiplies once."""
        kind = _WORDS["f64" if self.a == "f64" else "b32"]
        counts = tuple(count // (2 if self.a == "f64" else 1) for count in self.words)
        return multiplying(self.name, self.instruction, counts, kind, _WORDS.get(self.c, _WORDS["b32"]))

    def operands(self) -> tuple[bytes, ...]:
        """Random and chosen A, B and C, by lane."""
        rng = np.random.default_rng([1, *self.name.encode()])
        kinds = (self.a, self.b, self.c)
        tests: list[list[NDArray[np.uint32]]] = []
        for test in range(TESTS):
            style = test % _STYLES
            words = [_words(rng, *part, style) for part in zip(kinds, self.words, strict=True)]
            if style == _WITHOUT_C:
                words[2][:] = 0
            tests.append(words)
        for test in range(CHOSEN):
            tests.append(
                [_chosen(rng, *part, test, i) for i, part in enumerate(zip(kinds, self.words, strict=True))]
            )
        return tuple(np.stack(column).tobytes() for column in zip(*tests, strict=True))


def _words(rng: np.random.Generator, kind: str, words: int, style: int) -> NDArray[np.uint32]:
    """Random words of each lane: shape (32, words)."""
    if kind in ("s8", "u8", "s32"):
        wide = rng.integers(0, 2**32, 32 * words, dtype=np.uint64)
        if kind == "s32" and style <= _ANYTHING:
            wide = wide >> np.uint64(8)
        return wide.astype(np.uint32).reshape(32, words)
    return _packed(_floats(rng, kind, 128 * words // FORMATS[kind][2], style), kind)


def _floats(rng: np.random.Generator, kind: str, count: int, style: int) -> NDArray[np.uint64]:
    exponent_bits, fraction_bits, _ = FORMATS[kind]
    bias, top = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1
    sign = rng.integers(0, 2, count, dtype=np.uint64)
    fraction = rng.integers(0, 1 << fraction_bits, count, dtype=np.uint64)
    if style in _SPREAD:
        spread = min(_SPREAD[style], bias - 1)
        exponent = bias + rng.integers(-spread, spread + 1, count)
    else:
        exponent = rng.integers(0, max(2, bias // 3) if style == _SMALL else top + 1, count)
    if kind == "e4m3" and style != _ANYTHING:
        fraction = np.where(exponent == top, fraction & np.uint64(6), fraction)
    bits = sign << np.uint64(exponent_bits + fraction_bits)
    bits |= exponent.astype(np.uint64) << np.uint64(fraction_bits) | fraction
    if style == _MOSTLY_ZERO:
        bits = np.where(rng.random(count) < 0.7, np.uint64(0), bits)
    if kind == "tf32":
        bits = bits << np.uint64(13)
        if style in _WITH_LOW_BITS:  # bits that the type does not have
            bits |= rng.integers(0, 1 << 13, count, dtype=np.uint64)
    return bits


def _packed(bits: NDArray[np.uint64], kind: str) -> NDArray[np.uint32]:
    return bits.astype(f"u{FORMATS[kind][2]}").view(np.uint32).reshape(32, -1)


def _chosen(rng: np.random.Generator, kind: str, words: int, test: int, operand: int) -> NDArray[np.uint32]:
    """Words of each lane that make zeros: all of them (0 to 3), or sums that are too small (4 to 7)."""
    if kind in ("s8", "u8", "s32"):
        return _words(rng, kind, words, _ANYTHING)
    exponent_bits, fraction_bits, size = FORMATS[kind]
    shift = 13 if kind == "tf32" else 0
    count = 128 * words // size
    negative = np.uint64(1 << exponent_bits + fraction_bits + shift)
    sign = [test & 1, 0, test >> 1 & 1][operand]
    if test < 4:
        bits = np.full(count, negative if sign else 0, np.uint64)
    elif operand == 2:
        bits = np.full(count, negative if test & 1 else 0, np.uint64)
    else:
        small = rng.integers(1, 1 << max(1, fraction_bits - 1), count, dtype=np.uint64) << np.uint64(shift)
        bits = small | (negative if operand == 0 and test & 2 else np.uint64(0))
    return _packed(bits, kind)


@cache
def products() -> dict[str, Product]:
    """Every `mma.sync` by name."""
    return {product.name: product for product in _products()}


def _products() -> Iterator[Product]:
    for kind in ("f16", "bf16"):
        yield _product(f"m16n8k8_{kind}_f32", kind, kind, "f32", (2, 1, 4))
        yield _product(f"m16n8k16_{kind}_f32", kind, kind, "f32", (4, 2, 4))
    yield _product("m16n8k8_f16_f16", "f16", "f16", "f16", (2, 1, 2))
    yield _product("m16n8k16_f16_f16", "f16", "f16", "f16", (4, 2, 2))
    yield _product("m16n8k4_tf32_f32", "tf32", "tf32", "f32", (2, 1, 4))
    yield _product("m16n8k8_tf32_f32", "tf32", "tf32", "f32", (4, 2, 4))
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield _product(f"m16n8k32_{a}_{b}_f32", a, b, "f32", (4, 2, 4))
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            yield _product(f"m16n8k32_{a}_{b}", a, b, "s32", (4, 2, 4))
    yield _product("m16n8k16_s8_s8", "s8", "s8", "s32", (2, 1, 4))
    yield _product("m8n8k16_s8_s8", "s8", "s8", "s32", (1, 1, 2))
    yield _product("m16n8k32_s8_s8_sat", "s8", "s8", "s32", (4, 2, 4), "satfinite.")
    yield _product("m8n8k4_f64", "f64", "f64", "f64", (2, 2, 4))
    yield _product("m16n8k4_f64", "f64", "f64", "f64", (4, 2, 8))
    yield _product("m16n8k8_f64", "f64", "f64", "f64", (8, 4, 8))
    yield _product("m16n8k16_f64", "f64", "f64", "f64", (16, 8, 8))


def _product(name: str, a: str, b: str, c: str, words: tuple[int, int, int], modifier: str = "") -> Product:
    shape = name.partition("_")[0]
    return Product(name, f"mma.sync.aligned.{shape}.row.col.{modifier}{c}.{a}.{b}.{c}", a, b, c, words)


#: Addresses of the rows of tiles, by lane.
ROWS = {
    "plain": "lane * 16",
    "padded": "lane * 80 % 4096",
    "swizzled": "lane % 8 * 128 + (lane / 8 ^ lane % 8) * 16",
    "column": "lane % 8 * 128 + lane / 8 * 16",
    "pitch64": "lane * 64 % 8192",
    "same": "0",
    "two_rows": "lane % 2 * 16",
}
#: Where several lanes give one address, what a store leaves there is up to the card.
_LOADED_ONLY = ("same", "two_rows")


def _moves() -> Iterator[tuple[str, str]]:
    """Yield names and sources of kernels that move tiles once."""
    for where, address in ROWS.items():
        for count in (1, 2, 4):
            for order in ("", ".trans"):
                form = f"sync.aligned.m8n8.x{count}{order}.shared.b16"
                name = f"x{count}{order.replace('.', '_')}_{where}"
                names = [f"%{i}" for i in range(count + 1)]
                outputs = ", ".join(f'"=r"(r[{i}])' for i in range(count))
                yield (
                    f"ldmatrix_{name}",
                    _move(
                        f"ldmatrix_{name}",
                        address,
                        f'asm volatile("ldmatrix.{form} {{{",".join(names[:-1])}}}, [{names[-1]}];"'
                        f' : {outputs} : "r"(at) : "memory");',
                    ),
                )
                if where in _LOADED_ONLY:
                    continue
                inputs = ", ".join(f'"r"(r[{i}])' for i in range(count))
                yield (
                    f"stmatrix_{name}",
                    _move(
                        f"stmatrix_{name}",
                        address,
                        f'asm volatile("stmatrix.{form} [{names[0]}], {{{",".join(names[1:])}}};"'
                        f' :: "r"(at), {inputs} : "memory");',
                    ),
                )


def _move(name: str, address: str, statement: str) -> str:
    return f"""extern "C" __global__ void {name}(unsigned *out, const unsigned *in)
{{
    __shared__ __align__(128) unsigned s[2048];
    for (int i = threadIdx.x; i < 2048; i += 32)
        s[i] = in[i & 1023];
    __syncthreads();
    unsigned lane = threadIdx.x, at = (unsigned)__cvta_generic_to_shared(s) + {address};
    unsigned r[4] = {{lane, lane + 100, lane + 200, lane + 300}};
    {statement}
    __syncthreads();
    for (int i = 0; i < 4; ++i)
        out[i * 32 + lane] = r[i];
    for (int i = 0; i < 64; ++i)
        out[128 + i * 32 + lane] = s[i * 32 + lane] ^ in[i * 32 + lane & 1023];
}}
"""


_EXCHANGE = """extern "C" __global__ void movmatrix(unsigned *out, const unsigned *in)
{
    unsigned word = in[threadIdx.x];
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(word));
    out[threadIdx.x] = word;
}
"""
#: Types of factors and sums that `wmma.cu` multiplies, with the style of their random bits.
_WMMA_BYTES = {"f16": 2, "bf16": 2, "s8": 1, "u8": 1, "tf32": 4, "f32": 4, "s32": 4, "f64": 8}


def _wmma_cases() -> Iterator[Case]:
    shapes = {"f16": ("f32", "f16"), "bf16": ("f32",), "s8": ("s32",)}
    wide = ("m16n16k16", "m32n8k16", "m8n32k16")
    names = [(a, shape, c) for a, sums in shapes.items() for c in sums for shape in wide]
    names += [("u8", "m16n16k16", "s32"), ("tf32", "m16n16k8", "f32"), ("f64", "m8n8k4", "f64")]
    for a, shape, c in names:
        for order in ("rr", "cc", "rc"):
            for where in ("", "_shared"):
                name = f"{a}_{shape}_{c}_{order}{where}"
                rng = np.random.default_rng([2, *name.encode()])
                inputs = tuple(_words(rng, kind, 8 * _WMMA_BYTES[kind], 1).tobytes() for kind in (a, a, c))
                count = (1536 * _WMMA_BYTES[c] + 1024 * _WMMA_BYTES[a]) // 4
                yield Case(name, "wmma.cu", count, inputs)


@cache
def sources() -> dict[str, str]:
    """Every source by the name of its file."""
    found = {f"{name}.cu": product.source for name, product in products().items()}
    found["moves.cu"] = "\n".join([*(source for _, source in _moves()), _EXCHANGE])
    return found | {"wmma.cu": WMMA}


@cache
def cases() -> dict[str, Case]:
    """Every case by name."""
    found = []
    for name, product in products().items():
        tests = TESTS + CHOSEN
        count = tests * 32 * product.words[2]
        found.append(Case(name, f"{name}.cu", count, product.operands(), (tests, 1, 1)))
    numbers = np.random.default_rng(5).integers(0, 2**32, 1024, dtype=np.uint32).tobytes()
    found += [Case(name, "moves.cu", 128 + 2048, (numbers,)) for name, _ in _moves()]
    found.append(Case("movmatrix", "moves.cu", 32, (numbers,)))
    found += _wmma_cases()
    return {case.name: case for case in found}
