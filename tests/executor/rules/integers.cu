// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
/*rules
chapter = "integers and bits"

[[family]]
name = "{op}_{type}"
rule = "{op} of {type} by more than the width is clamped to it: 0, or all sign bits."
line = 'VALUE2({name}, "{op}.{type} d, a, b;", {type.args}, {type.args}, "u32", "b32", 4)'
operands = ["{type}", "u32"]
result = "{type}"
op = ["shl", "shr"]
type = ["b16", "b32", "b64"]

[[family]]
name = "shr_{type}"
rule = "shr of {type} fills with the sign, also beyond the width."
line = 'VALUE2({name}, "shr.{type} d, a, b;", {type.args}, {type.args}, "u32", "b32", 4)'
operands = ["{type}", "u32"]
result = "{type}"
type = ["s16", "s32", "s64"]

[[family]]
name = "shf_{side}_{mode}"
rule = "A funnel shift by c clamps at 32 with .clamp, and takes it modulo 32 with .wrap."
line = 'VALUE3({name}, "shf.{side}.{mode}.b32 d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["u32", "u32", "u32"]
side = ["l", "r"]
mode = ["clamp", "wrap"]
type = ["b32"]

[[family]]
name = "bfe_{type}"
rule = "bfe takes position and length from the low byte; beyond the width it reads 0 or the sign."
line = 'VALUE3({name}, "bfe.{type} d, a, b, c;", {type.args}, {type.args}, "u32", "b32", 4, "u32", "b32", 4)'
operands = ["{type}", "u32", "u32"]
result = "{type}"
type = ["u32", "s32", "u64", "s64"]

[[family]]
name = "bfi_{type}_length_{length}"
rule = "bfi of {length} bits at any position: what goes beyond the width is lost."
line = 'VALUE3({name}, "bfi.{type} d, a, b, c, {length};", {type.args}, {type.args}, {type.args}, "u32", "b32", 4)'
operands = ["{type}", "{type}", "u32"]
result = "{type}"
type = ["b32", "b64"]
length = ["0", "5", "32", "200"]

[[family]]
name = "bmsk_{mode}"
rule = "bmsk.{mode} of position and length beyond 32."
line = 'VALUE2({name}, "bmsk.{mode}.b32 d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["u32", "u32"]
mode = ["clamp", "wrap"]
type = ["b32"]

[[family]]
name = "{op}_{type}_by_zero"
rule = "{op} of {type}: by zero it is unspecified but does not fault; the smallest by -1 does not either."
line = 'VALUE2({name}, "{op}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["div", "rem"]
type = ["u16", "s16", "u32", "s32", "u64", "s64"]

[[family]]
name = "prmt_{mode}"
rule = "prmt.{mode} picks bytes by the low bits of its selector; bit 3 of a nibble copies the sign by default."
line = 'VALUE3({name}, "prmt.b32{mode} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
inputs = [["u32", ["00112233", "80ff7f01", "deadbeef", "00000000", "00112233", "80ff7f01", "deadbeef", "12345678"]],
    ["u32", ["44556677", "fe80017f", "cafebabe", "ffffffff", "44556677", "fe80017f", "cafebabe", "9abcdef0"]],
    ["u32", ["00007531", "0000fedc", "ffff3210", "00000849", "00000002", "00000003", "00000005", "ffffffff"]]]
count = 8
block = 8
mode = ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"]
type = ["b32"]

[[family]]
name = "lop3_{table}"
rule = "lop3 applies the truth table {table} to the bits of a (0xf0), b (0xcc) and c (0xaa)."
line = 'VALUE3({name}, "lop3.b32 d, a, b, c, {table};", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["u32", "u32", "u32"]
table = ["0x1a", "0x80", "0xe8", "0x96", "0xca"]
type = ["b32"]

[[family]]
name = "{op}_{first}_{second}"
rule = "{op} of {first} by {second} bytes, added to the third operand, wraps."
line = 'VALUE3({name}, "{op}.{first}.{second} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["u32", "u32", "u32"]
op = ["dp4a", "dp2a.lo", "dp2a.hi"]
first = ["u32", "s32"]
second = ["u32", "s32"]
type = ["u32"]

[[family]]
name = "{op}_{half}_{type}"
rule = "{op}.{half} of {type} reads the low 24 bits and gives the low or high 32 of 48."
line = 'VALUE2({name}, "{op}.{half}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
op = ["mul24"]
half = ["lo", "hi"]
type = ["u32", "s32"]

[[family]]
name = "mad24_{half}_{type}"
rule = "mad24.{half} of {type} adds after taking the low or high 32 of 48 bits."
line = 'VALUE3({name}, "mad24.{half}.{type} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
half = ["lo", "hi", "hi.sat"]
type = ["s32"]

[[family]]
name = "mul_{half}_{type}"
rule = "mul.{half} of {type}."
line = 'VALUE2({name}, "mul.{half}.{type} d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
result = "{type}"
half = ["lo", "hi"]
type = ["u16", "s16", "u32", "s32", "u64", "s64"]

[[family]]
name = "mad_{half}_{type}"
rule = "mad.{half} of {type}; .sat clamps the sum."
line = 'VALUE3({name}, "mad.{half}.{type} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
half = ["lo", "hi", "hi.sat"]
type = ["s32"]

[[family]]
name = "{op}_sat_s32"
rule = "{op}.sat.s32 clamps instead of wrapping."
line = 'VALUE2({name}, "{op}.sat.s32 d, a, b;", {type.args}, {type.args}, {type.args})'
operands = ["s32", "s32"]
result = "s32"
op = ["add", "sub"]
type = ["s32"]

[[family]]
name = "carry_{chain}"
rule = "The carry or borrow of {chain} reaches the next word of a 64-bit number."
line = 'VALUE2({name}, "{{ .reg .b32 x, y, v, w; mov.b64 {{x, y}}, a; mov.b64 {{v, w}}, b; {chain}.cc.u32 x, x, v; {chain}c.u32 y, y, w; mov.b64 d, {{x, y}}; }}", {type.args}, {type.args}, {type.args})'
operands = ["u64", "u64"]
result = "u64"
chain = ["add", "sub"]
type = ["u64"]

[[family]]
name = "carry_{chain}_out"
rule = "addc.cc and subc.cc hand their own carry on: a third word receives it."
line = 'VALUE2({name}, "{{ .reg .b32 x, y, v, w; mov.b64 {{x, y}}, a; mov.b64 {{v, w}}, b; {chain}.cc.u32 x, x, v; {chain}c.cc.u32 y, y, w; {chain}c.u32 d, 0, 0; }}", "u32", "b32", 4, {type.args}, {type.args})'
operands = ["u64", "u64"]
chain = ["add", "sub"]
type = ["u64"]

[[family]]
name = "carry_mad"
rule = "mad.lo.cc and madc.hi make a 64-bit product and sum of 32-bit words."
line = 'VALUE3({name}, "{{ .reg .b32 x, y; mad.lo.cc.u32 x, a, b, c; madc.hi.u32 y, a, b, 0; mov.b64 d, {{x, y}}; }}", "u64", "b64", 8, {type.args}, {type.args}, {type.args})'
operands = ["u32", "u32", "u32"]
result = "u64"
type = ["u32"]

[[family]]
name = "{op}_{type}"
rule = "{op} of {type}: 0, all ones, and the sign bit."
line = 'VALUE1({name}, "{op}.{type} d, a;", "u32", "b32", 4, {type.args})'
operands = ["{type}"]
op = ["popc", "clz"]
type = ["b32", "b64"]

[[family]]
name = "{op}_{type}"
rule = "{op} of {type}: of 0, and of -1 where it is signed, it is 0xffffffff."
line = 'VALUE1({name}, "{op}.{type} d, a;", "u32", "b32", 4, {type.args})'
operands = ["{type}"]
op = ["bfind", "bfind.shiftamt"]
type = ["u32", "s32", "u64", "s64"]

[[family]]
name = "fns"
rule = "fns finds the n-th set bit from a base, upwards or downwards, or 0xffffffff."
line = 'VALUE2({name}, "{op}.b32 d, a, 3, b;", "u32", "b32", 4, "b32", "b32", 4, "s32", "b32", 4)'
inputs = [["u32", ["ffffffff", "00000008", "00000000", "80000001", "0f0f0f0f", "0f0f0f0f", "00000007", "fffffff8"]],
    ["s32", [0, 0, 0, 1, 2, -2, -2, 29]]]
count = 8
block = 8
op = ["fns"]

[[family]]
name = "sad_{type}"
rule = "sad adds the distance of two {type}, which wraps."
line = 'VALUE3({name}, "sad.{type} d, a, b, c;", {type.args}, {type.args}, {type.args}, {type.args})'
operands = ["{type}", "{type}", "{type}"]
result = "{type}"
type = ["u16", "s32", "u64"]

[[family]]
name = "{op}_{type}"
rule = "{op} of {type}: of the smallest it is itself."
line = 'VALUE1({name}, "{op}.{type} d, a;", {type.args}, {type.args})'
operands = ["{type}"]
result = "{type}"
op = ["neg", "abs"]
type = ["s16", "s32", "s64"]

[[family]]
name = "setp_{compare}_{type}"
rule = "Comparing {type} by .{compare}: .lo and .hs are unsigned whatever the bits say."
line = 'VALUE2({name}, "setp.{compare}.{type} p, a, b; selp.u32 d, 1, 0, p;", "u32", "b32", 4, {type.args}, {type.args})'
operands = ["{type}", "{type}"]
compare = ["lt", "ge"]
type = ["u16", "s32", "u64"]
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
