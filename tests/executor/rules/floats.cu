// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "floating point"

[[family]]
name = "{op}_{modes}_{type}"
rule = "{op} of {type} by .{modes}: overflow, subnormals, signed zeros and NaN patterns."
line = 'VALUE2({name}, "{op}.{modes}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["add", "sub", "mul", "div"]
modes = ["rn", "rz", "rm", "rp"]
type = ["f32", "f64"]

[[family]]
name = "{op}_{modes}_f32"
rule = "{op} of f32 by .{modes}: subnormal operands and results are zeros; .sat makes a NaN 0."
line = 'VALUE2({name}, "{op}.{modes}.f32 d, a, b;", "f32", "b32", 4, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "f32"
op = ["add", "mul"]
modes = ["rn.ftz", "rz.ftz", "rn.sat", "rn.ftz.sat"]

[[family]]
name = "div_{modes}_f32"
rule = "div of f32 by .{modes}."
line = 'VALUE2({name}, "div.{modes}.f32 d, a, b;", "f32", "b32", 4, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "f32"
modes = ["rn.ftz", "rz.ftz"]

[[family]]
name = "fma_{modes}_f32"
rule = "fma of f32 by .{modes} rounds once; infinity times zero, opposite infinities, exact cancellation."
line = 'VALUE3({name}, "fma.{modes}.f32 d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["f32", "f32", "f32"]
result = "f32"
modes = ["rn", "rz", "rm", "rp", "rn.ftz", "rn.sat"]
type = ["f32"]

[[family]]
name = "fma_{modes}_f64"
rule = "fma of f64 by .{modes} rounds once."
line = 'VALUE3({name}, "fma.{modes}.f64 d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["f64", "f64", "f64"]
result = "f64"
modes = ["rn", "rz", "rm"]
type = ["f64"]

[[family]]
name = "fma_{modes}_{type}"
rule = "fma of {type} by .{modes} rounds once to {type}; its NaN is canonical."
line = 'VALUE3({name}, "fma.{modes}.{type} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
modes = ["rn", "rn.relu"]
type = ["f16", "bf16", "f16x2", "bf16x2"]

[[family]]
name = "fma_{modes}_f16"
rule = "fma of f16 by .{modes}."
line = 'VALUE3({name}, "fma.{modes}.f16 d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["f16", "f16", "f16"]
result = "f16"
modes = ["rn.ftz", "rn.sat"]
type = ["f16"]

[[family]]
name = "{op}_{type}"
rule = "{op} of {type} rounds once to {type}; its NaN is canonical."
line = 'VALUE2({name}, "{op}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["add", "sub", "mul"]
type = ["f16", "f16x2", "bf16", "bf16x2"]

[[family]]
name = "{op}_{modes}_f16"
rule = "{op} of f16 with .{modes}."
line = 'VALUE2({name}, "{op}.{modes}.f16 d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["f16", "f16"]
result = "f16"
op = ["add", "mul"]
modes = ["rn.ftz", "rn.sat"]
type = ["f16"]

[[family]]
name = "{op}_{type}"
rule = "{op} of {type}: a NaN loses against a number, -0 is below +0, two NaNs are canonical."
line = 'VALUE2({name}, "{op}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["min", "max"]
type = ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"]

[[family]]
name = "{op}_{modes}_{type}"
rule = "{op} of {type} with .{modes}: a NaN wins with .NaN, and is canonical; .xorsign.abs compares sizes."
line = 'VALUE2({name}, "{op}.{modes}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["min", "max"]
modes = ["NaN", "xorsign.abs", "NaN.xorsign.abs"]
type = ["f32", "f16", "bf16"]

[[family]]
name = "{op}_ftz_f32"
rule = "{op} of f32 with .ftz gives a zero for a subnormal."
line = 'VALUE2({name}, "{op}.ftz.f32 d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["f32", "f32"]
result = "f32"
op = ["min", "max"]
type = ["f32"]

[[family]]
name = "{op}_{modes}_{type}"
rule = "{op} of {type} by .{modes}: infinities, zeros with sign, subnormals, NaN patterns."
line = 'VALUE1({name}, "{op}.{modes}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
op = ["sqrt", "rcp"]
modes = ["rn", "rz", "rm", "rp"]
type = ["f32", "f64"]

[[family]]
name = "{op}_rn_ftz_f32"
rule = "{op} of f32 by .rn.ftz: a subnormal counts as a zero, and none comes out."
line = 'VALUE1({name}, "{op}.rn.ftz.f32 d, a;", {type.args}, {type.args})'
operands = ["f32"]
result = "f32"
op = ["sqrt", "rcp"]
type = ["f32"]

[[family]]
name = "{op}_{type}"
rule = "{op} of {type} touches the sign bit; what becomes of a NaN the card tells."
line = 'VALUE1({name}, "{op}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
op = ["neg", "abs"]
type = ["f32", "f64", "f16", "bf16", "f16x2", "bf16x2"]

[[family]]
name = "{op}_ftz_f32"
rule = "{op} of f32 with .ftz gives a zero, with its sign, for a subnormal."
line = 'VALUE1({name}, "{op}.ftz.f32 d, a;", {type.args}, {type.args})'
operands = ["f32"]
result = "f32"
op = ["neg", "abs"]
type = ["f32"]

[[family]]
name = "copysign_{type}"
rule = "copysign takes the sign of its first operand and the size of its second, of NaNs too."
line = 'VALUE2({name}, "copysign.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
type = ["f32", "f64"]

[[family]]
name = "setp_{compare}_{type}"
rule = "Comparing {type} by .{compare}: ordered ones are false for a NaN, unordered ones true."
line = 'VALUE2({name}, "setp.{compare}.{type} p, a, b; selp.u32 d, 1, 0, p;", "u32", "b32", 4, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
compare = ["lt", "ge", "ne", "equ", "neu", "ltu", "num", "nan"]
type = ["f32", "f16"]

[[family]]
name = "set_{compare}_{to}_f32"
rule = "set gives all ones, or 1.0, where the comparison holds."
line = 'VALUE2({name}, "set.{compare}.{to}.f32 d, a, b;", {to.args}, {type.args}, {type.args})'
operands = ["f32", "f32"]
compare = ["lt.ftz", "geu"]
to = ["u32", "f32"]
type = ["f32"]

[[family]]
name = "testp_{what}_{type}"
rule = "testp.{what} looks at the bits of a {type}."
line = 'VALUE1({name}, "testp.{what}.{type} p, a; selp.u32 d, 1, 0, p;", "u32", "b32", 4, {type.args})'
operands = ["{type}"]
what = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
type = ["f32", "f64"]
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
