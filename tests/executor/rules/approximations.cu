// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "approximations"
ulps = 2.0

[[family]]
name = "div_{modes}_f32"
rule = "div.{modes} of f32: every bit below 2^126; beyond it 0, of an infinity NaN, with .approx."
line = 'VALUE2({name}, "div.{modes}.f32 d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["f32", "f32"]
result = "f32"
ulps = 0.0
modes = ["approx", "approx.ftz", "full", "full.ftz"]
type = ["f32"]

[[family]]
name = "{op}_{modes}_f32"
rule = "{op}.{modes} of f32 at zeros, subnormals, infinities, negative numbers and NaN, by class and within ulps."
line = 'VALUE1({name}, "{op}.{modes}.f32 d, a;", {type.args}, {type.args})'
operands = ["f32"]
result = "f32"
op = ["rcp", "rsqrt", "sqrt", "ex2"]
modes = ["approx", "approx.ftz"]
type = ["f32"]

[[family]]
name = "{op}_{modes}_f32"
rule = "{op}.{modes} of f32: of zeros, subnormals and infinities; next to 1, where it is 0, within 2^-22."
line = 'VALUE1({name}, "{op}.{modes}.f32 d, a;", {type.args}, {type.args})'
operands = ["f32"]
result = "f32"
absolute = 2.3841858e-7
op = ["lg2"]
modes = ["approx", "approx.ftz"]
type = ["f32"]

[[family]]
name = "{op}_{modes}_f32"
rule = "{op}.{modes} of f32: infinities are NaN, zeros keep their sign, large arguments lose all digits."
line = 'VALUE1({name}, "{op}.{modes}.f32 d, a;", {type.args}, {type.args})'
inputs = [["f32", ["00000000", "80000000", "00000001", "807fffff", "00800000", "3f800000", "bf800000", "40490fdb",
    "c0490fdb", "3fc90fdb", "7f800000", "ff800000", "7fc00000", "3dcccccd", "bdcccccd", "40000000"]]]
count = 16
block = 16
result = "f32"
absolute = 6.7434957e-7
op = ["sin", "cos"]
modes = ["approx", "approx.ftz"]
type = ["f32"]

[[family]]
name = "tanh_approx_{type}"
rule = "tanh.approx of {type}: odd, 1 at infinity, NaN of NaN."
line = 'VALUE1({name}, "tanh.approx.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
ulps = 8192.0
type = ["f32"]

[[family]]
name = "tanh_approx_{type}"
rule = "tanh.approx of {type}: odd, 1 at infinity, NaN of NaN."
line = 'VALUE1({name}, "tanh.approx.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
absolute = 4.9272e-4
type = ["f16"]

[[family]]
name = "tanh_approx_{type}"
rule = "tanh.approx of {type}: odd, 1 at infinity, NaN of NaN."
line = 'VALUE1({name}, "tanh.approx.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
absolute = 0.00390625
type = ["bf16"]

[[family]]
name = "ex2_{modes}_{type}"
rule = "ex2.{modes} of {type}: overflow to infinity, underflow to zero or a subnormal."
line = 'VALUE1({name}, "ex2.{modes}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
modes = ["approx"]
type = ["f16"]

[[family]]
name = "ex2_{modes}_{type}"
rule = "ex2.{modes} of {type} gives a zero for a subnormal."
line = 'VALUE1({name}, "ex2.{modes}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
modes = ["approx.ftz"]
type = ["bf16"]

[[family]]
name = "{op}_approx_ftz_f64"
rule = "{op}.approx.ftz.f64 keeps 20 bits of the fraction and clears the lower word."
line = 'VALUE1({name}, "{op}.approx.ftz.f64 d, a;", {type.args}, {type.args})'
operands = ["f64"]
result = "f64"
ulps = 4294967296.0
op = ["rcp", "rsqrt"]
type = ["f64"]
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
