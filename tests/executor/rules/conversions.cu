// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "conversions"

[[family]]
name = "cvt_{rounding}_{to}_{from}"
rule = "A {from} becomes a {to}: rounded by .{rounding}, clamped to its range, and NaN to what the ISA says."
line = 'VALUE1({name}, "cvt.{rounding}.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
rounding = ["rni", "rzi", "rmi", "rpi"]
to = ["s32", "u32", "s64", "u64"]
from = ["f16", "f32", "f64"]

[[family]]
name = "cvt_{rounding}_{to}_{from}"
rule = "A {from} becomes a {to}, which is narrower than a register: clamped to its range."
line = 'VALUE1({name}, "cvt.{rounding}.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
rounding = ["rni", "rzi"]
to = ["s8", "u8", "s16", "u16"]
from = ["f16", "f32", "f64"]

[[family]]
name = "cvt_{rounding}_ftz_{to}_f32"
rule = "With .ftz a subnormal f32 is a zero before it is rounded by .{rounding}."
line = 'VALUE1({name}, "cvt.{rounding}.ftz.{to}.f32 d, a;", {to.args}, "f32", "b32", 4)'
operands = ["f32"]
result = "{to}"
rounding = ["rmi", "rpi"]
to = ["s32", "u64"]

[[family]]
name = "cvt_{rounding}_{to}_{from}"
rule = "A {from} becomes the {to} that .{rounding} chooses; too large ones overflow as that rounding does."
line = 'VALUE1({name}, "cvt.{rounding}.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
rounding = ["rn", "rz", "rm", "rp"]
to = ["f16", "f32", "f64"]
from = ["s32", "u64", "s64"]

[[family]]
name = "cvt_rn_{to}_{from}"
rule = "A {from} becomes the nearest {to}, to even on ties."
line = 'VALUE1({name}, "cvt.rn.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
to = ["f16", "f32", "f64"]
from = ["u8", "s8", "u16", "s16", "u32"]

[[family]]
name = "cvt_{modes}_{to}_{from}"
rule = "A {from} becomes the {to} that .{modes} chooses: subnormal results, overflow, NaN patterns."
line = 'VALUE1({name}, "cvt.{modes}.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
modes = ["rn", "rz", "rm", "rp", "rn.sat", "rn.ftz"]
to = ["f32"]
from = ["f64"]

[[family]]
name = "cvt_{modes}_{to}_f32"
rule = "An f32 becomes the {to} that .{modes} chooses: subnormal results, overflow, NaN patterns."
line = 'VALUE1({name}, "cvt.{modes}.{to}.f32 d, a;", {to.args}, "f32", "b32", 4)'
operands = ["f32"]
result = "{to}"
modes = ["rn", "rz", "rn.relu"]
to = ["f16", "bf16"]

[[family]]
name = "cvt_{modes}_f16_{from}"
rule = "A {from} becomes the f16 that .{modes} chooses."
line = 'VALUE1({name}, "cvt.{modes}.f16.{from} d, a;", "b16", "b16", 2, {from.args})'
operands = ["{from}"]
result = "f16"
modes = ["rm", "rp", "rn.sat"]
from = ["f32"]

[[family]]
name = "cvt_rn_f16_f64"
rule = "An f64 becomes the nearest f16, rounded once: a detour over f32 rounds twice."
line = 'VALUE1({name}, "cvt.rn.f16.f64 d, a;", "b16", "b16", 2, {from.args})'
operands = ["f64"]
result = "f16"
from = ["f64"]

[[family]]
name = "cvt_{to}_{from}"
rule = "A {from} is exact as {to}; a NaN keeps or loses its payload."
line = 'VALUE1({name}, "cvt.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
to = ["f32", "f64"]
from = ["f16"]

[[family]]
name = "cvt_{modes}_{to}_{from}"
rule = "A {from} is exact as {to}, with .{modes}; a NaN keeps or loses its payload."
line = 'VALUE1({name}, "cvt.{modes}{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
modes = ["", "ftz.", "sat."]
to = ["f64"]
from = ["f32"]

[[family]]
name = "cvt_f32_bf16"
rule = "A bf16 is exact as f32; a NaN keeps or loses its payload."
line = 'VALUE1({name}, "cvt.f32.{from} d, a;", "f32", "b32", 4, {from.args})'
operands = ["bf16"]
result = "f32"
from = ["bf16"]

[[family]]
name = "cvt_{modes}_{type}_{type}"
rule = "A {type} is rounded to an integral {type} by .{modes}; zeros keep their sign."
line = 'VALUE1({name}, "cvt.{modes}.{type}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
modes = ["rni", "rzi", "rmi", "rpi"]
type = ["f16", "f32", "f64"]

[[family]]
name = "cvt_{modes}_f32_f32"
rule = "An f32 is clamped to 0..1 by .sat, where a NaN is 0, and flushed by .ftz."
line = 'VALUE1({name}, "cvt.{modes}.f32.f32 d, a;", "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32"]
result = "f32"
modes = ["sat", "ftz", "ftz.sat", "rni.ftz"]

[[family]]
name = "cvt_{sat}{to}_{from}"
rule = "A {from} becomes a {to} by cutting and extending; with .sat by clamping."
line = 'VALUE1({name}, "cvt.{sat}{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
sat = ["", "sat."]
to = ["s8", "u8", "s16", "u32"]
from = ["s32", "u32", "s64"]
without = [["sat.", "u32", "u32"]]

[[family]]
name = "cvt_{sat}{to}_{from}"
rule = "A {from} becomes a {to} by sign or zero extension."
line = 'VALUE1({name}, "cvt.{sat}{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["{from}"]
result = "{to}"
sat = ["", "sat."]
to = ["u64", "u16"]
from = ["s8", "s16", "s32"]

[[family]]
name = "cvt_s64_{from}"
rule = "A {from} becomes an s64 by sign or zero extension."
line = 'VALUE1({name}, "cvt.s64.{from} d, a;", "s64", "b64", 8, {from.args})'
operands = ["{from}"]
result = "s64"
from = ["s8", "u8", "s16", "u16", "s32", "u32"]

[[family]]
name = "cvt_{modes}_tf32_f32"
rule = "An f32 becomes a tf32 by .{modes}, in the upper 19 bits of a word."
line = 'VALUE1({name}, "cvt.{modes}.tf32.f32 d, a;", "b32", "b32", 4, "f32", "b32", 4)'
operands = ["f32"]
result = "u32"
modes = ["rna", "rn", "rz", "rn.relu"]

[[family]]
name = "cvt_{modes}_{to}_f32_pair"
rule = "Two f32 become one {to} by .{modes}: the first is the upper half."
line = 'VALUE2({name}, "cvt.{modes}.{to}.f32 d, a, b;", {to.args}, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "{to}"
modes = ["rn", "rz", "rn.relu"]
to = ["f16x2", "bf16x2"]

[[family]]
name = "cvt_{modes}_{to}_f32_pair"
rule = "Two f32 become two 8-bit floats by .{modes}: too large ones are the largest finite."
line = 'VALUE2({name}, "cvt.{modes}.{to}.f32 d, a, b;", {to.args}, "f32", "b32", 4, "f32", "b32", 4)'
operands = ["f32", "f32"]
result = "{to}"
modes = ["rn.satfinite", "rn.satfinite.relu"]
to = ["e4m3x2", "e5m2x2"]

[[family]]
name = "cvt_rn_{to}_{from}"
rule = "Two 8-bit floats are exact as f16x2."
line = 'VALUE1({name}, "cvt.rn.{to}.{from} d, a;", {to.args}, {from.args})'
operands = ["u16"]
result = "{to}"
to = ["f16x2"]
from = ["e4m3x2", "e5m2x2"]
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
