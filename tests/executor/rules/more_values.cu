// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "values of other types and modifiers"

[[family]]
name = "more_cvt_{modes}_{to}_f32"
rule = "An f32 becomes a {to} by .{modes}: clamped to the finite numbers, or to those not negative."
line = 'VALUE1({name}, "cvt.{modes}.{to}.f32 d, a;", {to.args}, "f32", "b32", 4)'
operands = ["f32"]
result = "{to}"
modes = ["rn.satfinite", "rz.relu", "rn.relu.satfinite"]
to = ["f16", "bf16"]

[[family]]
name = "more_cvt_{modes}_{to}_f32_pair"
rule = "Two f32 become one {to} by .{modes}."
line = 'VALUE2({name}, "cvt.{modes}.{to}.f32 d, a, b;", {to.args}, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "{to}"
modes = ["rn.satfinite", "rz.relu"]
to = ["f16x2", "bf16x2"]

[[family]]
name = "more_cvt_{modes}_{to}_f16x2"
rule = "Two f16 become two 8-bit floats by .{modes}."
line = 'VALUE1({name}, "cvt.{modes}.{to}.f16x2 d, a;", {to.args}, "b32", "b32", 4)'
operands = ["f16x2"]
result = "{to}"
modes = ["rn.satfinite", "rn.satfinite.relu"]
to = ["e4m3x2", "e5m2x2"]

[[family]]
name = "more_cvt_rn_relu_f16x2_{from}"
rule = "Two 8-bit floats become two f16, negative ones 0."
line = 'VALUE1({name}, "cvt.rn.relu.f16x2.{from} d, a;", "b32", "b32", 4, {from.args})'
operands = ["u16"]
result = "f16x2"
from = ["e4m3x2", "e5m2x2"]

[[family]]
name = "more_cvt_{modes}_tf32_f32"
rule = "An f32 becomes a tf32 by .{modes}."
line = 'VALUE1({name}, "cvt.{modes}.tf32.f32 d, a;", "b32", "b32", 4, "f32", "b32", 4)'
operands = ["f32"]
result = "u32"
modes = ["rna.satfinite", "rz.relu"]

[[family]]
name = "more_cvt_{modes}_{to}_bf16"
rule = "A bf16 becomes a {to} by .{modes}."
line = 'VALUE1({name}, "cvt.{modes}.{to}.bf16 d, a;", {to.args}, "b16", "b16", 2)'
operands = ["bf16"]
result = "{to}"
modes = ["rni", "rpi"]
to = ["s32", "u16", "s64"]

[[family]]
name = "more_cvt_rn_bf16_{from}"
rule = "A {from} becomes the nearest bf16, rounded once."
line = 'VALUE1({name}, "cvt.rn.bf16.{from} d, a;", "b16", "b16", 2, {from.args})'
operands = ["{from}"]
result = "bf16"
from = ["f16", "f64", "s32", "u64", "s16"]

[[family]]
name = "more_cvt_{modes}{to}_bf16"
rule = "A bf16 as a {to}: what becomes of its NaN."
line = 'VALUE1({name}, "cvt.{modes}{to}.bf16 d, a;", {to.args}, "b16", "b16", 2)'
operands = ["bf16"]
result = "{to}"
modes = ["rn."]
to = ["f16"]

[[family]]
name = "more_cvt_f64_bf16"
rule = "A bf16 as an f64: what becomes of its NaN."
line = 'VALUE1({name}, "cvt.{to}.bf16 d, a;", {to.args}, "b16", "b16", 2)'
operands = ["bf16"]
result = "{to}"
to = ["f64"]

[[family]]
name = "more_cvt_{modes}_bf16_bf16"
rule = "A bf16 is rounded to an integral one by .{modes}."
line = 'VALUE1({name}, "cvt.{modes}.bf16.bf16 d, a;", "b16", "b16", 2, "b16", "b16", 2)'
operands = ["bf16"]
result = "bf16"
modes = ["rni", "rmi"]

[[family]]
name = "more_cvt_pack_{to}"
rule = "cvt.pack clamps two s32 and puts the second below the first."
line = 'VALUE2({name}, "cvt.pack.sat.{to}.s32 d, a, b;", "b32", "b32", 4, "s32", "b32", 4, "s32", "b32", 4)'
operands = ["s32", "s32"]
result = "u32"
to = ["u16", "s16"]

[[family]]
name = "more_cvt_pack_{to}_b32"
rule = "cvt.pack of bytes puts them below a third operand."
line = 'VALUE3({name}, "cvt.pack.sat.{to}.s32.b32 d, a, b, c;", "b32", "b32", 4, "s32", "b32", 4, "s32", "b32", 4, "b32", "b32", 4)'
operands = ["s32", "s32", "u32"]
result = "u32"
to = ["u8", "s8"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}: subnormals are zeros of their sign."
line = 'VALUE2({name}, "{op}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["sub.rn.ftz", "min.ftz", "max.ftz.NaN", "mul.ftz.sat"]
type = ["f16", "f16x2"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}: subnormals are zeros of their sign."
line = 'VALUE1({name}, "{op}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
op = ["neg.ftz", "abs.ftz"]
type = ["f16", "f16x2"]

[[family]]
name = "more_fma_{modes}_{type}"
rule = "fma of {type} by .{modes}."
line = 'VALUE3({name}, "fma.{modes}.{type} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
modes = ["rn.ftz.relu", "rn.ftz.sat", "rn.sat"]
type = ["f16x2"]

[[family]]
name = "more_fma_{modes}_f32"
rule = "fma of f32 by .{modes}."
line = 'VALUE3({name}, "fma.{modes}.f32 d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["f32", "f32", "f32"]
result = "f32"
modes = ["rm.ftz", "rp.sat", "rz.ftz.sat"]
type = ["f32"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}, each half by itself."
line = 'VALUE2({name}, "{op}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["min.xorsign.abs", "max.NaN.xorsign.abs", "max.NaN"]
type = ["f16x2", "bf16x2"]

[[family]]
name = "more_min_ftz_{modes}_f32"
rule = "min of f32 with .ftz.{modes}."
line = 'VALUE2({name}, "min.ftz.{modes}.f32 d, a, b;", "f32", "b32", 4, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "f32"
modes = ["NaN", "xorsign.abs"]

[[family]]
name = "more_set_{compare}_{to}_{type}"
rule = "set of {type} gives a {to}: all ones, or 1.0."
line = 'VALUE2({name}, "set.{compare}.{to}.{type} d, a, b;", {to.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{to}"
without = [["lt", "f16", "bf16"], ["geu", "f16", "bf16"], ["lt", "bf16", "f16"], ["geu", "bf16", "f16"]]
compare = ["lt", "geu"]
to = ["f16", "bf16", "u16", "s32"]
type = ["f16", "bf16"]

[[family]]
name = "more_set_{compare}_{type}_{type}"
rule = "set of {type} compares each half."
line = 'VALUE2({name}, "set.{compare}.{type}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
compare = ["lt", "neu"]
type = ["f16x2", "bf16x2"]

[[family]]
name = "more_set_{compare}_{combine}_f32"
rule = "set combined with a predicate by .{combine}."
line = 'VALUE2({name}, "setp.eq.f32 q, a, a; set.{compare}.{combine}.u32.f32 d, a, b, q;", "b32", "b32", 4, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "u32"
compare = ["lt.ftz", "leu"]
combine = ["and", "or", "xor"]

[[family]]
name = "more_setp_{compare}_{type}"
rule = "Comparing {type} by .{compare}."
line = 'VALUE2({name}, "setp.{compare}.{type} p, a, b; selp.u32 d, 1, 0, p;", "b32", "b32", 4, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "u32"
compare = ["lt.ftz", "equ.ftz"]
type = ["f16", "f32"]

[[family]]
name = "more_setp_{compare}_bf16"
rule = "Comparing bf16 by .{compare}."
line = 'VALUE2({name}, "setp.{compare}.{type} p, a, b; selp.u32 d, 1, 0, p;", "b32", "b32", 4, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "u32"
compare = ["gt", "neu"]
type = ["bf16"]

[[family]]
name = "more_{op}"
rule = "{op} on two 16-bit integers in a word."
line = 'VALUE2({name}, "{op} d, a, b;", "b32", "b32", 4, "b32", "b32", 4, "b32", "b32", 4)'
operands = ["u32", "u32"]
result = "u32"
op = ["add.u16x2", "add.s16x2", "min.u16x2", "max.s16x2", "min.s16x2", "max.relu.s16x2", "min.relu.s16x2", "min.relu.s32", "max.relu.s32"]

[[family]]
name = "more_szext_{mode}_{type}"
rule = "szext.{mode} extends the low bits; a length beyond 32 is clamped or wraps."
line = 'VALUE2({name}, "szext.{mode}.{type} d, a, b;", {type.args}, {type.args}, "b32", "b32", 4)'
operands = ["{type}", "u32"]
result = "{type}"
mode = ["clamp", "wrap"]
type = ["u32", "s32"]

[[family]]
name = "more_bfe_{type}_beyond"
rule = "bfe of {type} with position and length beyond a byte."
line = 'VALUE3({name}, "bfe.{type} d, a, b, c;", {type.args}, {type.args}, "b32", "b32", 4, "b32", "b32", 4)'
inputs = [["{type}", ["80ff7f01deadbeef", "80ff7f01deadbeef", "80ff7f01deadbeef", "80ff7f01deadbeef",
    "80ff7f01deadbeef", "80ff7f01deadbeef", "0123456789abcdef", "0123456789abcdef",
    "0123456789abcdef", "0123456789abcdef", "0123456789abcdef", "0123456789abcdef"]],
    ["u32", [257, 264, 65544, 511, 63, 40, 320, 33, 8, 0, 2147483652, 31]],
    ["u32", [8, 264, 257, 4, 2, 280, 65544, 512, 260, 256, 5, 288]]]
count = 12
block = 12
result = "{type}"
type = ["u32", "s32", "u64", "s64"]

[[family]]
name = "more_bfi_{type}_beyond"
rule = "bfi of {type} with position and length beyond a byte."
line = 'VALUE3({name}, "bfi.{type} d, a, 0, b, c;", {type.args}, {type.args}, "b32", "b32", 4, "b32", "b32", 4)'
inputs = [["{type}", ["80ff7f01deadbeef", "80ff7f01deadbeef", "80ff7f01deadbeef", "80ff7f01deadbeef",
    "80ff7f01deadbeef", "80ff7f01deadbeef", "0123456789abcdef", "0123456789abcdef",
    "0123456789abcdef", "0123456789abcdef", "0123456789abcdef", "0123456789abcdef"]],
    ["u32", [257, 264, 65544, 511, 63, 40, 320, 33, 8, 0, 2147483652, 31]],
    ["u32", [8, 264, 257, 4, 2, 280, 65544, 512, 260, 256, 5, 288]]]
count = 12
block = 12
result = "{type}"
type = ["b32", "b64"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}."
line = 'VALUE3({name}, "{op}.{type} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
op = ["sad"]
type = ["s16", "u32", "s64"]

[[family]]
name = "more_mul_wide_{type}"
rule = "mul.wide of {type} is exact."
line = 'VALUE2({name}, "mul.wide.{type} d, a, b;", "b64", "b64", 8, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "u64"
type = ["u32", "s32"]

[[family]]
name = "more_{op}"
rule = "{op} by the low 24 bits."
line = 'VALUE3({name}, "{op}.u32 d, a, b, c;", "b32", "b32", 4, "b32", "b32", 4, "b32", "b32", 4, "b32", "b32", 4)'
operands = ["u32", "u32", "u32"]
result = "u32"
op = ["mad24.lo", "mad24.hi", "mad.hi"]

[[family]]
name = "more_fns_{base}"
rule = "fns from bit {base}."
line = 'VALUE2({name}, "fns.b32 d, a, {base}, b;", "b32", "b32", 4, "b32", "b32", 4, "s32", "b32", 4)'
inputs = [["u32", ["ffffffff", "00000008", "f0f0f0f0", "80000001", "12345678", "0f0f0f0f", "00000007", "fffffff8",
    "ffffffff", "00000008", "f0f0f0f0", "80000001", "12345678", "0f0f0f0f", "00000007", "fffffff8",
    "ffffffff", "00000008", "f0f0f0f0", "80000001", "12345678", "0f0f0f0f", "00000007", "fffffff8",
    "ffffffff", "00000008", "f0f0f0f0", "80000001", "12345678", "0f0f0f0f", "00000007", "fffffff8"]],
    ["s32", [0, 1, -1, 2, 0, 1, -1, 2, 0, 1, -1, 2, 0, 1, -1, 2, 0, 1, -1, 2, 0, 1, -1, 2, 0, 1, -1, 2, 0, 1,
    -1, 2]]]
count = 32
block = 32
result = "u32"
base = ["0", "7", "31"]

[[family]]
name = "more_{op}_approx_{modes}f32"
rule = "{op}.approx of f32 at tiny and large arguments, and around multiples of a quarter turn."
line = 'VALUE1({name}, "{op}.approx.{modes}f32 d, a;", {type.args}, {type.args})'
inputs = [["f32", ["0da24260", "2f800000", "33000000", "33800000", "34000000", "35800000", "37000000", "38800000",
    "3a000000", "3c23d70a", "3d000000", "40c90fdb", "c0c90fda", "40490fda", "3fc90fda", "4096cbe4",
    "42c80000", "447a0000", "49742400", "4b7fffff", "7149f2ca", "ff7fffff", "3f060a92", "beaaaaab"]]]
count = 24
block = 24
result = "f32"
absolute = 6.7434957e-7
op = ["sin", "cos"]
modes = ["", "ftz."]
type = ["f32"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}, each half by itself."
line = 'VALUE1({name}, "{op}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
ulps = 2.0
op = ["ex2.approx"]
type = ["f16x2"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}, each half by itself."
line = 'VALUE1({name}, "{op}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
ulps = 2.0
op = ["ex2.approx.ftz"]
type = ["bf16x2"]

[[family]]
name = "more_{op}_{type}"
rule = "{op} of {type}, each half by itself."
line = 'VALUE1({name}, "{op}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
ulps = 2.0
op = ["tanh.approx"]
type = ["f16x2", "bf16x2"]

[[family]]
name = "more_atom_{op}_{type}"
rule = "atom.{op} of two {type}: the new values, and the old ones below them."
line = 'PAIRED({name}, "{op}", "{type}", {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["add.noftz", "min.noftz", "max.noftz"]
type = ["f16x2", "bf16x2"]

[[family]]
name = "more_atom_{op}_{type}"
rule = "atom.{op} of two {type}."
line = 'PAIRED({name}, "{op}", "{type}", {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["add"]
type = ["f32"]
*/

// One operand of a value for each thread: `d` is stored, `a` was loaded.
#define VALUE1(NAME, TEXT, D, DMOVE, DBYTES, A, AMOVE, ABYTES)                                              \
    extern "C" __global__ void NAME(char *out, const char *first) {                                         \
        asm volatile("{ .reg ." D " d; .reg ." A " a; .reg .pred p, q; .reg .b32 t, u;"                      \
                     "ld.global." AMOVE " a, [%1];" TEXT "st.global." DMOVE " [%0], d; }"                    \
                     :: "l"(out + threadIdx.x * DBYTES), "l"(first + threadIdx.x * ABYTES) : "memory");      \
    }

// Two operands, `a` and `b`.
#define VALUE2(NAME, TEXT, D, DMOVE, DBYTES, A, AMOVE, ABYTES, B, BMOVE, BBYTES)                            \
    extern "C" __global__ void NAME(char *out, const char *first, const char *second) {                     \
        asm volatile("{ .reg ." D " d; .reg ." A " a; .reg ." B " b; .reg .pred p, q; .reg .b32 t, u;"       \
                     "ld.global." AMOVE " a, [%1]; ld.global." BMOVE " b, [%2];" TEXT                       \
                     "st.global." DMOVE " [%0], d; }"                                                       \
                     :: "l"(out + threadIdx.x * DBYTES), "l"(first + threadIdx.x * ABYTES),                  \
                        "l"(second + threadIdx.x * BBYTES) : "memory");                                      \
    }

// Three operands, `a`, `b` and `c`.
#define VALUE3(NAME, TEXT, D, DMOVE, DBYTES, A, AMOVE, ABYTES, B, BMOVE, BBYTES, C, CMOVE, CBYTES)          \
    extern "C" __global__ void NAME(char *out, const char *first, const char *second, const char *third) {  \
        asm volatile("{ .reg ." D " d; .reg ." A " a; .reg ." B " b; .reg ." C " c; .reg .b32 t, u;"         \
                     ".reg .pred p, q; ld.global." AMOVE " a, [%1]; ld.global." BMOVE " b, [%2];"           \
                     "ld.global." CMOVE " c, [%3];" TEXT "st.global." DMOVE " [%0], d; }"                   \
                     :: "l"(out + threadIdx.x * DBYTES), "l"(first + threadIdx.x * ABYTES),                  \
                        "l"(second + threadIdx.x * BBYTES), "l"(third + threadIdx.x * CBYTES) : "memory");   \
    }

// Even threads combine two neighbours at once, and leave the new values; odd threads of each group of four the old.
#define PAIRED(NAME, OP, TYPE, D, MOVE, BYTES)                                                              \
    extern "C" __global__ void NAME(char *out, const char *first, const char *second) {                     \
        const unsigned at = threadIdx.x / 4 * 4, given = at + threadIdx.x % 4;                              \
        if (threadIdx.x % 4 == 0 && at + 4 <= blockDim.x)                                                   \
            asm volatile("{ .reg ." D " a, b, c, e, x, y; ld.global." MOVE " a, [%1]; ld.global." MOVE       \
                         " b, [%1+" #BYTES "]; ld.global." MOVE " c, [%2]; ld.global." MOVE " e, [%2+" #BYTES "];" \
                         "st.global." MOVE " [%0], a; st.global." MOVE " [%0+" #BYTES "], b;"               \
                         "atom.relaxed.gpu.global." OP ".v2." TYPE " {x, y}, [%0], {c, e};"                 \
                         "st.global." MOVE " [%3], x; st.global." MOVE " [%3+" #BYTES "], y; }"              \
                         :: "l"(out + given * BYTES), "l"(first + given * BYTES), "l"(second + given * BYTES), \
                            "l"(out + (given + 2) * BYTES) : "memory");                                                                       \
        else if (at + 4 > blockDim.x)                                                                       \
            asm volatile("{ .reg ." D " a; ld.global." MOVE " a, [%1]; st.global." MOVE " [%0], a; }"        \
                         :: "l"(out + given * BYTES), "l"(first + given * BYTES) : "memory");               \
    }
