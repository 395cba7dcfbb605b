# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random kernels of which the PTX ISA defines every result: `random_kernel(seed)`.

A kernel is a row of sections: divergent control flow over integer and floating-point arithmetic, exchanges
through shared memory, among the lanes of a warp, by atomics, by asynchronous copies and behind named
barriers. What a section leaves in a thread's variables the next goes on with, and at the end each thread
stores them.

Results are defined by construction. Between barriers a thread writes its own slots of shared memory only,
and of the output its own elements; what several threads meet is met by one kind of atomic operation, whose
order makes no difference. Lanes exchange values where all lanes of the mask arrive. Products and sums are not
contracted (the kernels are compiled with `-fmad=false` and ask for their fused multiply-adds), nothing
approximate is used, and a NaN is stored as one bit pattern.
"""

import math
import random
import re
import tomllib
from pathlib import Path

import numpy as np
from launch_case import LaunchCase

_FOLDER = Path(__file__).parent
#: What every kernel starts with.
HELPERS = (_FOLDER / "random_helpers.cuh").read_text()
_PARTS = tomllib.loads((_FOLDER / "random_statements.toml").read_text())
#: The kind of value that each letter of an expression stands for.
_KINDS = {letter: letters[0] for letters in ("IJK", "FGH", "DE", "LM") for letter in letters}
_TARGETS = [*(("a", "I"), ("b", "I"), ("c", "I")) * 3, *(("p", "F"), ("q", "F")) * 2, ("u", "D"), ("w", "L")]


class Statements:
    """Writes statements; all randomness comes from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.loops = 0

    def functions(self) -> str:
        """Return the function that is called and not inlined."""
        body = "    if (i & 8u) return j ^ i;\n" if self.rng.random() < 0.5 else ""
        body += f"    for (unsigned k = 0; k < (i & 3u); ++k) i = i * {self.rng.choice([3, 5, 9])}u + j;\n"
        return (
            "__device__ __noinline__ unsigned far(unsigned i, unsigned j)\n{\n"
            f"{body}    return i {self.rng.choice('+-^')} (j >> {self.rng.randint(1, 9)});\n}}\n"
        )

    def condition(self) -> str:
        """Return a condition on which lanes may differ."""
        return self.rng.choice(_PARTS["conditions"])

    def assignment(self) -> str:
        """Return a statement that changes one variable."""
        name, family = self.rng.choice(_TARGETS)
        return f"{name} = {self._expression(family, self.rng.randint(1, 2))};"

    def block(self, depth: int, *, may_return: bool = False) -> str:
        """Return one to four statements, nested up to `depth`; a thread may leave where that is allowed."""
        return " ".join(self._statement(depth, may_return) for _ in range(self.rng.randint(1, 3)))

    def _statement(self, depth: int, may_return: bool) -> str:
        rng = self.rng
        kind = rng.random() if depth else 0.0
        if kind < 0.5:
            return self.assignment()
        if kind < 0.7:
            text, other = self.block(depth - 1, may_return=may_return), self.block(depth - 1)
            return f"if ({self.condition()}) {{ {text} }} else {{ {other} }}"
        if kind < 0.85:
            return self._loop(depth, may_return)
        if kind < 0.95 or not may_return:
            return self._switch(depth)
        return f"if ({self.condition()}) {{ {self.assignment()} LEAVE }}"

    def _loop(self, depth: int, may_return: bool) -> str:
        rng = self.rng
        self.loops += 1
        i, n = f"i{self.loops}", f"n{self.loops}"
        trips, jump = rng.choice(_PARTS["trips"]), rng.choice(_PARTS["jumps"])
        body = f"{self.block(depth - 1, may_return=may_return)} {jump} b += {i};"
        if rng.random() < 0.3:
            loop = f"unsigned {i} = 0; do {{ ++{i}; {body} }} while ({i} < {n});"
        else:
            unroll = rng.choice(["", "", '_Pragma("unroll 1") '])
            loop = f"{unroll}for (unsigned {i} = 0; {i} < {n}; ++{i}) {{ {body} }}"
        return f"{{ const unsigned {n} = {trips}; {loop} }}"

    def _switch(self, depth: int) -> str:
        rng = self.rng
        count = rng.randint(2, 5)
        cases = " ".join(
            f"case {i}: {self.block(depth - 1)} {'break;' if rng.random() < 0.8 else ''}"
            for i in range(count)
        )
        return (
            f"switch ({rng.choice('abc')} & {rng.choice([3, 7])}u) {{ {cases} default: {self.assignment()} }}"
        )

    def _expression(self, kind: str, depth: int) -> str:
        rng = self.rng
        if not depth or rng.random() < 0.15:
            return rng.choice(_PARTS["leaves"][kind])
        pattern = rng.choice(_PARTS["expressions"][kind])
        made = {letter: self._expression(of, depth - 1) for letter, of in _KINDS.items() if letter in pattern}
        return "(" + re.sub(r"\b[D-M]\b", lambda match: made[match[0]], pattern) + ")"


OPTIONS = ("-fmad=false",)
#: Elements of the arrays that kernels read; powers of two, so that an index is made by a mask.
WORDS, FLOATS, DOUBLES = 1024, 1024, 256
#: What the operations of one kind do to a word, and what it holds before; their order makes no difference.
ATOMICS = (
    ("atomicAdd(&{0}, {1});", 5),
    ("atomicMin(&{0}, {1});", 2**32 - 1),
    ("atomicMax(&{0}, {1});", 0),
    ("atomicAnd(&{0}, {1});", 2**32 - 1),
    ("atomicOr(&{0}, {1});", 0),
    ("atomicXor(&{0}, {1});", 9),
    ("atomicMin((int *)&{0}, (int)({1}));", 2**31 - 1),
    ("atomicMax((int *)&{0}, (int)({1}));", 2**31),
    ("atomicSub(&{0}, {1});", 7),
    ("atomicInc(&{0}, 1000u);", 3),
    ("atomicAdd((float *)&{0}, (float)(({1}) & 15u));", 0),
)
#: Words that are met by one kind in global memory.
BIN_REGION = 16
#: Words that a thread stores.
RESULTS = 4
_BLOCKS = [(32, 1, 1), (64, 1, 1), (96, 1, 1), (128, 1, 1), (192, 1, 1), (256, 1, 1), (33, 1, 1), (45, 1, 1)]
_BLOCKS += [(70, 1, 1), (100, 1, 1), (1, 1, 1), (7, 1, 1), (16, 8, 1), (8, 8, 1), (32, 4, 1), (13, 5, 1)]
_BLOCKS += [(4, 4, 4), (5, 3, 7), (2, 9, 3), (16, 4, 2), (3, 32, 1), (1, 40, 2), (10, 10, 2), (128, 2, 1)]
_GRIDS = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (5, 1, 1), (2, 2, 1), (1, 3, 1), (2, 1, 2), (7, 1, 1)]
#: Shared memory that one section may take, in bytes.
_SECTION_BYTES = 6144
_SHARED_TYPES = {
    "unsigned char": 1,
    "unsigned short": 2,
    "unsigned": 4,
    "float": 4,
    "unsigned long long": 8,
    "double": 8,
    "uint2": 8,
    "uint4": 16,
    "float4": 16,
}
#: How a value becomes an element of shared memory, and what an element changes of a thread's variables.
_TO_SHARED = {
    "unsigned char": "(unsigned char)a",
    "unsigned short": "(unsigned short)(a ^ c)",
    "unsigned": "a + b",
    "float": "p",
    "unsigned long long": "w + a",
    "double": "u",
    "uint2": "make_uint2(a, b)",
    "uint4": "make_uint4(a, b, c, t)",
    "float4": "make_float4(p, q, p, 1.5f)",
}
_FROM_SHARED = {
    "unsigned char": "a = a * 5u + {0};",
    "unsigned short": "b ^= {0};",
    "unsigned": "c += {0};",
    "float": "q = fmaf({0}, 0.5f, q);",
    "unsigned long long": "w ^= {0};",
    "double": "u = {0} - u * 0.25;",
    "uint2": "{{ const uint2 v = {0}; a ^= v.x; b += v.y; }}",
    "uint4": "{{ const uint4 v = {0}; a ^= v.x + v.w; b += v.y; c ^= v.z; }}",
    "float4": "{{ const float4 v = {0}; p = fmaf(v.x, v.w, p); q = q + v.y - v.z; }}",
}


def random_kernel(seed: int) -> LaunchCase:
    """Return the kernel of a seed, always the same."""
    return _Kernel(seed).case()


class _Kernel:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.name = f"random_{seed:04}"
        self.block, self.grid = rng.choice(_BLOCKS), rng.choice(_GRIDS)
        self.threads = math.prod(self.block)
        self.statements = Statements(rng)
        self.shared: list[str] = []
        self.dynamic = 0
        self.arrays = 0

    @property
    def whole_warps(self) -> bool:
        """Whether every warp has all its lanes."""
        return self.threads % 32 == 0

    def case(self) -> LaunchCase:
        rng = self.rng
        kinds = [self.flow, self.exchange, self.warp, self.shared_atomics, self.global_atomics]
        kinds += [self.async_copy, self.scan, self.local_array, self.neighbours]
        if self.threads % 64 == 0:
            kinds += [self.named_barriers, self.producers]
        sections = [self.flow(), *(section() for section in rng.choices(kinds, k=rng.randint(2, 5)))]
        last = self.statements.block(2, may_return=True)
        total = self.threads * math.prod(self.grid)
        bounds = f" __launch_bounds__({max(self.threads, 64)})" if rng.random() < 0.3 else ""
        store, body = self.store(total), "\n".join(f"    {line}" for line in [*self.shared, *sections])
        source = f"""{HELPERS}{self.statements.functions()}
#define LEAVE {{ {store} return; }}
extern "C" __global__ void{bounds} {self.name}(const unsigned *__restrict__ x, const float *__restrict__ f,
    const double *__restrict__ d, unsigned *out, unsigned *bins, unsigned threads)
{{
    const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned g = t + threads * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    const unsigned lane = t & 31u, left = threads - (t & ~31u), lanes = left < 32u ? left : 32u;
    const unsigned mask = left < 32u ? (1u << left) - 1u : 0xffffffffu;
    unsigned a = x[g & {WORDS - 1}], b = x[(g * 7u + 3u) & {WORDS - 1}], c = g;
    float p = f[g & {FLOATS - 1}], q = 0.5f;
    double u = d[g & {DOUBLES - 1}];
    unsigned long long w = (unsigned long long)a << 20 ^ g;
{body}
    {last}
    {store}
}}
"""
        return LaunchCase(
            self.name, source, self.grid, self.block, self._arguments(total), self.dynamic, OPTIONS
        )

    def _arguments(self, total: int) -> tuple[np.ndarray | np.generic, ...]:
        numbers = np.random.default_rng(self.rng.getrandbits(32))
        floats = numbers.uniform(-4, 4, FLOATS).astype(np.float32)
        floats[::67] = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1.0])[
            np.arange(len(floats[::67])) % 8
        ]
        return (
            numbers.integers(0, 2**32, WORDS, dtype=np.uint32),
            floats,
            numbers.uniform(-3, 3, DOUBLES),
            np.full(RESULTS * total, 0xA5A5A5A5, np.uint32),
            np.repeat(np.uint32([start for _, start in ATOMICS]), BIN_REGION),
            np.uint32(self.threads),
        )

    def store(self, total: int) -> str:
        """Return the stores of a thread's results: apart, side by side, or as vectors."""
        values = ["a ^ (b << 1)", "c", "bits(p) + 3u * bits(q)", "fold(w) ^ fold(bits(u))"]
        way = self.rng.random()
        if way < 0.25:
            return f"((uint4 *)out)[g] = make_uint4({', '.join(values)});"
        if way < 0.5:
            pairs = zip(values[::2], values[1::2], strict=True)
            return " ".join(
                f"((uint2 *)out)[g + {i * total}u] = make_uint2({x}, {y});" for i, (x, y) in enumerate(pairs)
            )
        if way < 0.75:
            return " ".join(f"out[g * {RESULTS}u + {i}u] = {value};" for i, value in enumerate(values))
        return " ".join(f"out[g + {i * total}u] = {value};" for i, value in enumerate(values))

    def flow(self) -> str:
        """Divergent control flow."""
        return self.statements.block(self.rng.choice([1, 2, 2, 3]))

    def array(self, kind: str, count: int) -> str:
        """Declare a shared array, now and then in dynamic shared memory; return its name."""
        self.arrays += 1
        name = f"s{self.arrays}"
        if not self.dynamic and self.rng.random() < 0.2:
            self.dynamic = count * _SHARED_TYPES[kind]
            self.shared.append("extern __shared__ __align__(16) unsigned char dynamic[];")
            self.shared.append(f"{kind} *{name} = ({kind} *)dynamic;")
        else:
            aligned = "__align__(16) " if self.rng.random() < 0.5 else ""
            self.shared.append(f"__shared__ {aligned}{kind} {name}[{count}];")
        return name

    def permuted(self) -> str:
        """Return a permutation of the block's threads, of `t`."""
        factor = self.rng.choice(
            [k for k in (1, 1, 3, 5, 7, 11, 17, 31, 63) if math.gcd(k, self.threads) == 1]
        )
        shift = self.rng.choice(["", f" + {self.rng.randrange(9)}u"])
        return f"(t * {factor}u{shift}) % {self.threads}u"

    def exchange(self) -> str:
        """Each thread writes a slot of its own; after a barrier it reads others'."""
        rng = self.rng
        kind = rng.choice(list(_SHARED_TYPES))
        strides = [
            k for k in (1, 1, 2, 3, 4, 8, 9, 33) if self.threads * k * _SHARED_TYPES[kind] <= _SECTION_BYTES
        ]
        stride = rng.choice(strides or [1])
        name, slot = self.array(kind, self.threads * stride), self.permuted()
        value = _TO_SHARED[kind]
        if rng.random() < 0.3:
            condition = self.statements.condition()
            write = f"if ({condition}) {name}[{slot} * {stride}u] = {value};"
            write += f" else {{ {self.statements.assignment()} {name}[{slot} * {stride}u] = {value}; }}"
        else:
            write = f"{name}[{slot} * {stride}u] = {value};"
        reads = []
        for _ in range(rng.randint(1, 3)):
            index = rng.choice(
                [self.permuted(), f"(a % {self.threads}u)", f"(t / 4u * 4u % {self.threads}u)", "0u"]
            )
            read = _FROM_SHARED[kind].format(f"{name}[{index} * {stride}u]")
            reads.append(f"if ({self.statements.condition()}) {{ {read} }}" if rng.random() < 0.4 else read)
        text = f"{write} __syncthreads(); {' '.join(reads)}"
        if rng.random() < 0.3:
            return f"for (unsigned k = 0; k < {rng.randint(2, 4)}u; ++k) {{ {text} __syncthreads(); }}"
        return f"{{ {text} }}"

    def neighbours(self) -> str:
        """A tile with a halo: each thread reads its neighbours of a row in shared memory."""
        name, last = self.array("float", self.threads + 2), self.threads + 1
        return (
            f"{{ {name}[t + 1u] = p; if (t == 0u) {name}[0] = {name}[{last}] = q; __syncthreads();"
            f" p = fmaf({name}[t], 0.25f, fmaf({name}[t + 1u], 0.5f, {name}[t + 2u] * 0.25f)); }}"
        )

    def scan(self) -> str:
        """A prefix sum over the block, one barrier before and one after each step."""
        name, last = self.array("unsigned", self.threads), self.threads - 1
        return (
            f"{{ {name}[t] = a & 0xffffu; __syncthreads();"
            f" for (unsigned k = 1; k < {self.threads}u; k *= 2u) {{"
            f" const unsigned v = t >= k ? {name}[t - k] : 0u; __syncthreads();"
            f" {name}[t] += v; __syncthreads(); }}"
            f" b += {name}[t]; c ^= {name}[{last}]; }}"
        )

    def warp(self) -> str:
        """Exchanges among the lanes of a warp, some inside a branch that a mask names."""
        rng = self.rng
        texts = [self._warp_operation("mask", "lane", all_lanes=True) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.5:
            pattern, condition = rng.choice(
                [("0x55555555u", "!(lane & 1u)"), ("0xaaaaaaaau", "lane & 1u"), ("0xffffu", "lane < 16u")]
            )
            inside = self._warp_operation(f"(mask & {pattern})", "lane", all_lanes=False)
            texts.append(f"if ({condition}) {{ {inside} }}")
        text = " ".join(texts)
        if rng.random() < 0.3:
            return f"for (unsigned k = 0; k < {rng.randint(2, 3)}u; ++k) {{ {text} a += k; }}"
        return f"{{ {text} }}"

    def _warp_operation(self, mask: str, lane: str, *, all_lanes: bool) -> str:
        rng = self.rng
        step, bit = rng.randint(1, 15), rng.choice([1, 2, 4, 8, 16])
        condition = self.statements.condition()
        choices = [
            f"a ^= __ballot_sync({mask}, {condition});",
            f"b += __any_sync({mask}, {condition}) ? 3u : 5u;",
            f"c ^= __all_sync({mask}, {condition}) ? 9u : 1u;",
            f"a += __match_any_sync({mask}, b & {rng.choice([1, 3, 7])}u);",
            f"{{ int same; b ^= __match_all_sync({mask}, c >> {rng.randint(3, 20)}, &same); a += same; }}",
            f"b += __reduce_add_sync({mask}, a);",
            f"c = __reduce_min_sync({mask}, c ^ a);",
            f"a ^= __reduce_max_sync({mask}, b);",
            f"b ^= __reduce_xor_sync({mask}, a) & __reduce_or_sync({mask}, c);",
            f"c += (unsigned)__reduce_max_sync({mask}, (int)b);",
        ]
        if all_lanes:
            choices += [
                f"a += __shfl_sync({mask}, b, ({lane} + {step}u) % lanes);",
                f"q = q + __shfl_sync({mask}, p, (a >> 3) % lanes);",
                f"w += __shfl_sync({mask}, w, ({lane} * {step}u) % lanes);",
            ]
        if all_lanes and self.whole_warps:
            width = rng.choice([32, 16, 8])
            choices += [
                f"b ^= __shfl_xor_sync({mask}, a, {bit});",
                f"a += __shfl_up_sync({mask}, c, {min(step, width - 1)}, {width});",
                f"p = p - __shfl_down_sync({mask}, q, {min(step, width - 1)}, {width});",
                f"u = u + __shfl_xor_sync({mask}, u, {bit});",
                f"for (int k = 16; k > 0; k /= 2) c += __shfl_xor_sync({mask}, c, k);",
                f"c ^= __shfl_sync({mask}, a, (int)(b & 31u), {width});",
            ]
        return rng.choice(choices)

    def _update(self, target: str, operation: str) -> str:
        value = self.rng.choice(["a", "b & 0xffu", "c ^ b", "1u", "t"])
        text = operation.format(target, value)
        return f"if ({self.statements.condition()}) {text}" if self.rng.random() < 0.4 else text

    def shared_atomics(self) -> str:
        """A histogram in shared memory, or its like with another operation."""
        rng = self.rng
        count, (operation, start) = rng.choice([1, 4, 16, 32, 33]), rng.choice(ATOMICS)
        name = self.array("unsigned", count)
        index = rng.choice([f"(a % {count}u)", f"(t % {count}u)", f"(lane / 4u % {count}u)", "0u"])
        clear = f"for (unsigned k = t; k < {count}u; k += {self.threads}u) {name}[k] = {start}u;"
        updates = " ".join(self._update(f"{name}[{index}]", operation) for _ in range(rng.randint(1, 2)))
        return f"{{ {clear} __syncthreads(); {updates} __syncthreads(); b += {name}[(t * 3u) % {count}u]; }}"

    def global_atomics(self) -> str:
        """Operations on words that are met by all threads, of one kind for each word."""
        texts = []
        for _ in range(self.rng.randint(1, 3)):
            number = self.rng.randrange(len(ATOMICS))
            index = self.rng.choice(["(a & 15u)", "(t & 15u)", "(g % 13u)", "3u"])
            texts.append(self._update(f"bins[{number * BIN_REGION}u + {index}]", ATOMICS[number][0]))
        return f"{{ {' '.join(texts)} }}"

    def async_copy(self) -> str:
        """`cp.async` of 4, 8 or 16 bytes a thread, some of which read nothing; in one group or in two."""
        rng = self.rng
        size = rng.choice([4, 8, 16])
        words = size // 4
        pitch = words * rng.choice([1, 1, 2, 3]) if self.threads * size * 3 <= _SECTION_BYTES else words
        around = "true" if size == 16 and rng.random() < 0.5 else "false"
        cut = f", (t & 3u) == 1u ? 0u : {size}u" if rng.random() < 0.3 else ""
        operation = f"{'copy_cut' if cut else 'copy'}<{size}, {around}>"
        groups = rng.choice([1, 1, 2])
        names = [self.array("uint4", (self.threads * pitch + 3) // 4) for _ in range(groups)]
        copies, reads = [], []
        for newer, name in zip(reversed(range(groups)), names, strict=True):
            source = rng.choice(["(g + 3u)", "(g * 5u)", "(b >> 2)", "(t / 2u)"])
            copies.append(
                f"{operation}((unsigned *){name} + t * {pitch}u,"
                f" x + ({source} % {WORDS // words}u) * {words}u{cut}); commit();"
            )
            word = f"{self.permuted()} * {pitch}u + {rng.randrange(words)}u"
            reads.append(f"wait_for_all_but<{newer}>(); __syncthreads(); a ^= ((unsigned *){name})[{word}];")
        return f"{{ {' '.join(copies)} {' '.join(reads)} }}"

    def local_array(self) -> str:
        """An array of the thread's own, with an index that only the thread knows."""
        rng = self.rng
        count = rng.choice([4, 8, 16])
        return (
            f"{{ unsigned own[{count}]; for (unsigned k = 0; k < {count}u; ++k) own[k] = a * k + c;"
            f" own[b & {count - 1}u] ^= b; own[(a >> 4) & {count - 1}u] += 5u;"
            f" c += own[(b >> 3) & {count - 1}u] ^ own[t & {count - 1}u]; }}"
        )

    def named_barriers(self) -> str:
        """Two halves of the block, each behind a barrier of its own."""
        half, name = self.threads // 2, self.array("unsigned", self.threads)
        first, second = self.rng.sample(range(1, 8), 2)
        return (
            f"{{ {name}[t] = a ^ c;"
            f" if (t < {half}u) {{ barrier<{first}, {half}>(); b += {name}[(t + 5u) % {half}u]; }}"
            f" else {{ barrier<{second}, {half}>(); b ^= {name}[{half}u + (t * 3u) % {half}u]; }}"
            " __syncthreads(); }"
        )

    def producers(self) -> str:
        """One half of the block writes and goes on; the other waits for it, and reads."""
        half, name = self.threads // 2, self.array("unsigned", self.threads // 2)
        both, other = f"<{self.rng.randrange(8, 15)}, {self.threads}>", self.rng.randrange(8)
        return (
            f"{{ if (t < {half}u) {{ {name}[t] = b * 3u; __threadfence_block(); arrive{both}(); }}"
            f" else {{ barrier{both}(); a += {name}[(t - {half}u) ^ {other}u]; }} __syncthreads(); }}"
        )
