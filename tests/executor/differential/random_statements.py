# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random statements of CUDA C++ over a thread's own variables, with a defined result whatever these hold.

The variables are the 32-bit integers `a`, `b`, `c`, the floats `p`, `q`, the double `u` and the 64-bit `w`;
`t` is the thread's number in its block and `g` that in the grid. Statements read the arrays `x`, `f`, `d` and
the constant `table` at masked indices.
"""

import random

#: What every kernel starts with. NaNs are stored as one pattern, because PTX leaves that of `neg` and `abs`
#: open; divisions and roots get operands of a size for which hardware takes its common path.
HELPERS = r"""
__constant__ unsigned table[64] = {
    11, 97, 5, 61, 3, 40, 88, 17, 29, 2, 73, 54, 90, 31, 7, 66, 45, 12, 99, 83, 20, 58, 36, 1, 77, 94, 6, 49, 15,
    62, 33, 80, 9, 71, 24, 57, 42, 18, 85, 30, 64, 4, 93, 26, 50, 70, 13, 38, 81, 22, 59, 8, 47, 95, 34, 16, 75,
    28, 60, 10, 87, 41, 53, 19};
__device__ unsigned bits(float v) { return v == v ? __float_as_uint(v) : 0x7fffffffu; }
__device__ unsigned long long bits(double v)
{
    return v == v ? (unsigned long long)__double_as_longlong(v) : 0x7fffffffffffffffull;
}
__device__ unsigned fold(unsigned long long v) { return (unsigned)v ^ (unsigned)(v >> 32); }
__device__ float tame(float v) { return fminf(fmaxf(v, -1000.0f), 1000.0f); }
__device__ double tame(double v) { return fmin(fmax(v, -1000.0), 1000.0); }
__device__ float plain(float v) { return fabsf(v) < 0.001f ? 0.5f : tame(v); }
__device__ double plain(double v) { return fabs(v) < 0.001 ? 0.5 : tame(v); }
__device__ unsigned short half_of(float v)
{
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
__device__ float from_half(unsigned short h)
{
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
__device__ unsigned short half_fma(unsigned short x, unsigned short y, unsigned short z)
{
    unsigned short h;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(h) : "h"(x), "h"(y), "h"(z));
    return h;
}
__device__ unsigned short half_add(unsigned short x, unsigned short y)
{
    unsigned short h;
    asm("add.rn.f16 %0, %1, %2;" : "=h"(h) : "h"(x), "h"(y));
    return h;
}
template <int size, bool global_only> __device__ void copy(void *to, const void *from)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (global_only)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(size) : "memory");
}
template <int size, bool global_only> __device__ void copy_cut(void *to, const void *from, unsigned read)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (global_only)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(read) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(size), "r"(read)
                     : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ void wait_for_all() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
template <int number, int count> __device__ void barrier()
{
    asm volatile("bar.sync %0, %1;" ::"n"(number), "n"(count) : "memory");
}
template <int number, int count> __device__ void arrive()
{
    asm volatile("bar.arrive %0, %1;" ::"n"(number), "n"(count) : "memory");
}
template <int rounds> __device__ unsigned mixed(unsigned v)
{
    for (int k = 0; k < rounds; ++k)
        v = (v ^ (v >> 15)) * 0x2c1b3c6du + k;
    return v;
}
"""
#: `I`, `J`, `K` are integers, `F`, `G`, `H` floats, `D`, `E` doubles, `L`, `M` 64-bit integers.
_INTEGERS = [
    *("I + J", "I - J", "I * J", "I & J", "I | J", "I ^ J", "~I", "I << (J & 31u)", "I >> (J & 31u)"),
    *("I / (J | 1u)", "I % (J | 1u)", "I / 7u", "I % 10u", "(unsigned)((int)(I >> 1) / (int)((J & 1023u) + 1u))"),
    *("(unsigned)((int)I >> (J & 31u))", "__umulhi(I, J)", "(unsigned)__mulhi((int)I, (int)J)", "__brev(I)"),
    *("(unsigned)__popc(I)", "(unsigned)__clz((int)I)", "(unsigned)__ffs((int)I)", "__byte_perm(I, J, 0x5173)"),
    *("__funnelshift_l(I, J, K)", "__funnelshift_r(I, J, K & 31u)", "min((unsigned)(I), (unsigned)(J))", "max((unsigned)(I), (unsigned)(J))", "__sad(I, J, K)"),
    *("(unsigned)min((int)I, (int)J)", "(unsigned)max((int)I, (int)J)", "__dp4a((unsigned)(I), (unsigned)(J), (unsigned)(K))", "(unsigned)(L >> 7)"),
    *("(unsigned)__dp4a((int)(I), (int)(J), (int)(K))", "I * 3u + J", "(I & 0xffu) * (J & 0xffu) + K", "fold(L)"),
    *("(I > J ? J : K)", "((int)I < (int)J ? I : 5u)", "(F < G ? I : J)", "table[I & 63u]", "mixed<3>(I)"),
    *("x[I & 1023u]", "x[(t + 32u * (J & 7u)) & 1023u]", "((const unsigned char *)x)[I & 4095u]", "far(I, J)"),
    *("(unsigned)((const short *)x)[I & 2047u]", "((const uint2 *)x)[I & 511u].y", "bits(F)", "fold(bits(D))"),
    *("(unsigned)__float2int_rn(tame(F) * 31.0f)", "__float2uint_rz(fabsf(tame(F)))", "(unsigned)(int)tame(D)"),
    *("(unsigned)__double2int_rd(tame(D))", "(unsigned)__popcll(L)", "(unsigned)__clzll((long long)L)"),
    *("(unsigned)(signed char)I", "(unsigned)(short)J", "(unsigned)half_of(F) * (half_of(F) < 0x7c01u ? 1u : 0u)"),
]
_FLOATS = [
    *("F + G", "F - G", "F * G", "fmaf(F, G, H)", "fmaf(F, -0.75f, G)", "fminf(F, G)", "fmaxf(F, G)", "fabsf(F)"),
    *("-F", "plain(F) / (1.0f + fabsf(tame(G)))", "sqrtf(fabsf(tame(F)) + 0.5f)", "1.0f / (2.0f + fabsf(tame(F)))"),
    *("rintf(F)", "floorf(F)", "truncf(F)", "(float)(int)I", "(float)I", "(float)D", "(float)L", "f[I & 1023u]"),
    *("f[(t + 64u * (J & 3u)) & 1023u]", "(F > G ? G : H)", "(I & 4u ? F : G)", "__fadd_rz(F, G)", "__fmul_ru(F, G)"),
    *("from_half(half_fma(half_of(F), half_of(G), half_of(H)))", "from_half(half_add(half_of(F), half_of(G)))"),
    *("((const float4 *)f)[I & 255u].z", "((const float2 *)f)[(t * 3u) & 511u].x", "__fmaf_rd(F, G, H)", "copysignf(2.5f, tame(F))"),
]
_DOUBLES = [
    *("D + E", "D - E", "D * E", "fma(D, E, 0.5)", "fma(D, -0.25, E)", "fmin(D, E)", "fmax(D, E)", "fabs(D)"),
    *("plain(D) / (1.0 + fabs(tame(E)))", "sqrt(fabs(tame(D)) + 0.5)", "(double)F", "(double)(int)I", "(double)I"),
    *("(double)(long long)L", "rint(D)", "floor(D)", "d[I & 255u]", "(D < E ? E : 1.25)", "__dadd_rz(D, E)"),
]
_LONGS = [
    *("L + M", "L - M", "L * M", "L ^ M", "L & M", "L | M", "L << (I & 63u)", "L >> (I & 63u)", "(L / (M | 1ull))"),
    *("__umul64hi(L, M)", "(unsigned long long)I * J", "((unsigned long long)I << 32 | J)", "__brevll(L)", "min(L, M)"),
    *("(unsigned long long)((long long)L >> (J & 63u))", "L % 1000003ull", "(I < J ? L : M)", "bits(D)"),
    *("(unsigned long long)__double2ll_rn(tame(D) * 65536.0)", "(unsigned long long)(long long)tame(F)"),
    *("((const unsigned long long *)x)[I & 511u]", "(unsigned long long)((long long)(int)I * (int)J)"),
]
_LEAVES = {
    "I": (*("a", "b", "c") * 3, "t", "g", "13u", "0x80000001u"),
    "F": (*("p", "q") * 3, "0.75f", "(-3.0f)"),
    "D": ("u", "u", "1.5", "(double)q"),
    "L": ("w", "w", "(unsigned long long)a", "0x9e3779b97f4a7c15ull"),
}
_FAMILIES = {"I": _INTEGERS, "F": _FLOATS, "D": _DOUBLES, "L": _LONGS}
_NAMES = {**dict.fromkeys("IJK", "I"), **dict.fromkeys("FGH", "F"), **dict.fromkeys("DE", "D"), **dict.fromkeys("LM", "L")}
_TARGETS = [*(("a", "I"), ("b", "I"), ("c", "I")) * 3, *(("p", "F"), ("q", "F")) * 2, ("u", "D"), ("w", "L")]
_CONDITIONS = [
    *("a & 1u", "(b ^ t) & 2u", "(c & 7u) > 3u", "t & 4u", "lane < 11u", "g % 3u == 0u", "p < q", "u > 0.25"),
    *("(int)a < (int)b", "(w >> 5) & 1ull", "a > b && (c & 3u)", "!(p >= 1.0f)", "t < 40u", "threadIdx.x == 0u"),
    *("x[(t * 5u) & 1023u] & 16u", "(lane & 7u) == (a & 7u)", "blockIdx.x == 0u", "table[t & 63u] > 40u"),
]
_TRIPS = ["(a & 3u)", "(t & 5u)", "3u", "(b & 7u)", "(lane >> 3)", "2u"]
_JUMPS = ["if ((a & 15u) == 7u) break;", "if (c & 1u) continue;", "if (p > 2.0f) break;", ""]


class Statements:
    """Writes statements; all randomness comes from one generator.

    Args:
        rng: Where it comes from.
    """

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
        return self.rng.choice(_CONDITIONS)

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
        text, jump = self.block(depth - 1, may_return=may_return), rng.choice(_JUMPS)
        if rng.random() < 0.3:
            return (
                f"{{ unsigned {i} = 0; const unsigned {n} = {rng.choice(_TRIPS)}; do {{ ++{i}; {text} {jump}"
                f" b += {i}; }} while ({i} < {n}); }}"
            )
        unroll = rng.choice(["", "", "_Pragma(\"unroll 1\") "])
        return (
            f"{{ const unsigned {n} = {rng.choice(_TRIPS)}; {unroll}for (unsigned {i} = 0; {i} < {n}; ++{i}) {{"
            f" {text} {jump} b += {i}; }} }}"
        )

    def _switch(self, depth: int) -> str:
        rng = self.rng
        count = rng.randint(2, 5)
        cases = " ".join(
            f"case {i}: {self.block(depth - 1)} {'break;' if rng.random() < 0.8 else ''}" for i in range(count)
        )
        return f"switch ({rng.choice('abc')} & {rng.choice([3, 7])}u) {{ {cases} default: {self.assignment()} }}"

    def _expression(self, family: str, depth: int) -> str:
        rng = self.rng
        if not depth or rng.random() < 0.15:
            return rng.choice(_LEAVES[family])
        pattern = rng.choice(_FAMILIES[family])
        made = {name: self._expression(kind, depth - 1) for name, kind in _NAMES.items()}
        words, text = set(_NAMES), ""
        for i, letter in enumerate(pattern):
            alone = not (pattern[i - 1 : i].isalnum() or pattern[i + 1 : i + 2].isalnum() or "_" in pattern[i - 1 : i + 2])
            text += made[letter] if letter in words and alone else letter
        return f"({text})"
