# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The machine code that plays tapes of float32 arithmetic, and what their instructions are called.

A row is what the 32 lanes of a warp hold of one value. A tape is played for one warp after the other.
"""

import ctypes
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpuprof.executor.arithmetic.native_code import compiled, multiplies_and_adds
from gpuprof.executor.lanes.masks import WARP

#: What a tape's instructions do, by number. Some go between rows and the arrays of a call: `LOAD`, `STORE`,
#: and `HAND_ON`, which keeps the bits of a NaN. Others load floats from shared memory: one a lane, or four. A
#: `CHAIN` adds any number of products to a value, which stays in the CPU's registers meanwhile.
LOAD, STORE, HAND_ON = 0, 1, 2
OPERATIONS = {"mul": 3, "add": 4, "sub": 5, "fms": 6, "fnma": 7, "fnms": 8}
CHAIN = 9
SHARED, SHARED_VECTOR = 10, 11
#: Floats that an instruction of `SHARED_VECTOR` loads for each lane.
VECTOR = 4
#: Numbers of an instruction: what it does, the row that it writes, what it reads (3), and more rows to write.
ITEM_WORDS = 8
#: What the player notes of an array.
ARRAY_BYTES = 32

#: Where NumPy keeps an array's data, extents and strides, behind what every Python object begins with: part
#: of its binary interface. To ask for them from Python takes a microsecond an array.
_HEAD = object.__basicsize__
_DATA, _EXTENTS, _STRIDES = _HEAD, _HEAD + 16, _HEAD + 24

#: An array is {address of its first element, and bytes from one block, one warp and one lane to the next}, 0
#: where it does not change. An instruction of a tape is {operation, target, three of what it reads, more
#: targets}. What a load from shared memory reads is the array of its addresses, as integers, and a
#: displacement in bytes; what a chain reads is its first value, and how many products follow, in as many
#: items as hold their operands.
_PLAYER = """
%item = type {{ i32, i32, i32, i32, i32, i32, i32, i32 }}
%array = type {{ ptr, i64, i64, i64 }}
declare <32 x float> @llvm.fma.v32f32(<32 x float>, <32 x float>, <32 x float>)
declare <32 x float> @llvm.masked.gather.v32f32.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x float>)

define internal i64 @stride(ptr %extents, ptr %strides, i64 %axis) alwaysinline {{
  %extent_at = getelementptr i64, ptr %extents, i64 %axis
  %extent = load i64, ptr %extent_at
  %stride_at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride_at
  %changes = icmp sgt i64 %extent, 1
  %result = select i1 %changes, i64 %stride, i64 0
  ret i64 %result
}}

define internal ptr @first_of(ptr %array, i64 %b, i64 %w) alwaysinline {{
  %start = load ptr, ptr %array
  %by_block_at = getelementptr %array, ptr %array, i32 0, i32 1
  %by_block = load i64, ptr %by_block_at
  %by_warp_at = getelementptr %array, ptr %array, i32 0, i32 2
  %by_warp = load i64, ptr %by_warp_at
  %offset_b = mul i64 %b, %by_block
  %offset_w = mul i64 %w, %by_warp
  %offset = add i64 %offset_b, %offset_w
  %first = getelementptr i8, ptr %start, i64 %offset
  ret ptr %first
}}

define internal i64 @by_lane(ptr %array) alwaysinline {{
  %by_lane_at = getelementptr %array, ptr %array, i32 0, i32 3
  %by_lane = load i64, ptr %by_lane_at
  ret i64 %by_lane
}}

define void @play(
  ptr %tape, i64 %count, ptr %objects, i64 %number, ptr %arrays, i64 %blocks, i64 %warps, ptr %rows,
  ptr %shared, i64 %block_bytes) {{
entry:
  br label %place
place:
  %n = phi i64 [0, %entry], [%n_next, %place]
  %object_at = getelementptr ptr, ptr %objects, i64 %n
  %object = load ptr, ptr %object_at
  %data_at = getelementptr i8, ptr %object, i64 {data}
  %data = load ptr, ptr %data_at
  %extents_at = getelementptr i8, ptr %object, i64 {extents}
  %extents = load ptr, ptr %extents_at
  %strides_at = getelementptr i8, ptr %object, i64 {strides}
  %strides = load ptr, ptr %strides_at
  %by_block = call i64 @stride(ptr %extents, ptr %strides, i64 0)
  %by_warp = call i64 @stride(ptr %extents, ptr %strides, i64 1)
  %by_lane = call i64 @stride(ptr %extents, ptr %strides, i64 2)
  %array_at = getelementptr %array, ptr %arrays, i64 %n
  %with_data = insertvalue %array poison, ptr %data, 0
  %with_block = insertvalue %array %with_data, i64 %by_block, 1
  %with_warp = insertvalue %array %with_block, i64 %by_warp, 2
  %placed = insertvalue %array %with_warp, i64 %by_lane, 3
  store %array %placed, ptr %array_at
  %n_next = add i64 %n, 1
  %n_more = icmp slt i64 %n_next, %number
  br i1 %n_more, label %place, label %block_first
block_first:
  br label %block
block:
  %b = phi i64 [0, %block_first], [%b_next, %block_end]
  %own_offset = mul i64 %b, %block_bytes
  %own = getelementptr i8, ptr %shared, i64 %own_offset
  br label %warp
warp:
  %w = phi i64 [0, %block], [%w_next, %warp_end]
  br label %item
item:
  %i = phi i64 [0, %warp], [%i_next, %item_end], [%i_after, %chain_end]
  %op_at = getelementptr %item, ptr %tape, i64 %i, i32 0
  %op = load i32, ptr %op_at
  %d_at = getelementptr %item, ptr %tape, i64 %i, i32 1
  %d = load i32, ptr %d_at
  %x_at = getelementptr %item, ptr %tape, i64 %i, i32 2
  %x = load i32, ptr %x_at
  %y_at = getelementptr %item, ptr %tape, i64 %i, i32 3
  %y = load i32, ptr %y_at
  %d_row = getelementptr <32 x float>, ptr %rows, i32 %d
  %z_at = getelementptr %item, ptr %tape, i64 %i, i32 4
  %z = load i32, ptr %z_at
  %x_row = getelementptr <32 x float>, ptr %rows, i32 %x
  %y_row = getelementptr <32 x float>, ptr %rows, i32 %y
  %z_row = getelementptr <32 x float>, ptr %rows, i32 %z
  switch i32 %op, label %chain [
    i32 {load}, label %load
    i32 {store}, label %store
    i32 {hand_on}, label %hand_on
    i32 {mul}, label %mul
    i32 {add}, label %add
    i32 {sub}, label %sub
    i32 {fms}, label %fms
    i32 {fnma}, label %fnma
    i32 {fnms}, label %fnms
    i32 {shared}, label %shared_one
    i32 {shared_vector}, label %shared_vector
  ]
chain:
  %chain_first = load <32 x float>, ptr %x_row, align 64
  %chain_count = sext i32 %y to i64
  %chain_pairs = getelementptr %item, ptr %op_at, i64 1
  br label %product
product:
  %p = phi i64 [0, %chain], [%p_next, %product]
  %sum = phi <32 x float> [%chain_first, %chain], [%sum_next, %product]
  %left_at = getelementptr {{ i32, i32 }}, ptr %chain_pairs, i64 %p, i32 0
  %left = load i32, ptr %left_at
  %right_at = getelementptr {{ i32, i32 }}, ptr %chain_pairs, i64 %p, i32 1
  %right = load i32, ptr %right_at
  %left_row = getelementptr <32 x float>, ptr %rows, i32 %left
  %right_row = getelementptr <32 x float>, ptr %rows, i32 %right
  %left_values = load <32 x float>, ptr %left_row, align 64
  %right_values = load <32 x float>, ptr %right_row, align 64
  %sum_next = call <32 x float> @llvm.fma.v32f32(
    <32 x float> %left_values, <32 x float> %right_values, <32 x float> %sum)
  %p_next = add i64 %p, 1
  %p_more = icmp slt i64 %p_next, %chain_count
  br i1 %p_more, label %product, label %chain_end
chain_end:
  store <32 x float> %sum_next, ptr %d_row, align 64
  %chain_filled = add i64 %chain_count, {pairs_but_one}
  %chain_items = udiv i64 %chain_filled, {pairs_of_item}
  %i_last = add i64 %i, %chain_items
  %i_after = add i64 %i_last, 1
  %i_after_more = icmp slt i64 %i_after, %count
  br i1 %i_after_more, label %item, label %warp_end
{three_operands}
{two_operands}
load:
  %from_array = getelementptr %array, ptr %arrays, i32 %x
  %from = call ptr @first_of(ptr %from_array, i64 %b, i64 %w)
  %step = call i64 @by_lane(ptr %from_array)
  switch i64 %step, label %gather [ i64 4, label %copy i64 0, label %spread ]
copy:
  %copied = load <32 x float>, ptr %from, align 4
  store <32 x float> %copied, ptr %d_row, align 64
  br label %item_end
spread:
  %one = load float, ptr %from, align 4
  %ones = insertelement <32 x float> poison, float %one, i32 0
  %same = shufflevector <32 x float> %ones, <32 x float> poison, <32 x i32> zeroinitializer
  store <32 x float> %same, ptr %d_row, align 64
  br label %item_end
gather:
  %steps_0 = insertelement <32 x i64> poison, i64 %step, i32 0
  %steps = shufflevector <32 x i64> %steps_0, <32 x i64> poison, <32 x i32> zeroinitializer
  %offsets = mul <32 x i64> %steps, <{numbers}>
  %places = getelementptr i8, ptr %from, <32 x i64> %offsets
  %gathered = call <32 x float> @llvm.masked.gather.v32f32.v32p0(
    <32 x ptr> %places, i32 4, <32 x i1> <{everyone}>, <32 x float> poison)
  store <32 x float> %gathered, ptr %d_row, align 64
  br label %item_end
store:
  %given = load <32 x float>, ptr %x_row, align 64
  %isnan = fcmp uno <32 x float> %given, %given
  %result = select <32 x i1> %isnan, <32 x float> <{nans}>, <32 x float> %given
  br label %put
hand_on:
  %same_bits = load <32 x float>, ptr %x_row, align 64
  br label %put
put:
  %value = phi <32 x float> [%result, %store], [%same_bits, %hand_on]
  %to_array = getelementptr %array, ptr %arrays, i32 %d
  %to = call ptr @first_of(ptr %to_array, i64 %b, i64 %w)
  %to_step = call i64 @by_lane(ptr %to_array)
  %is_row = icmp ne i64 %to_step, 0
  br i1 %is_row, label %put_row, label %put_one
put_row:
  store <32 x float> %value, ptr %to, align 4
  br label %item_end
put_one:
  %first = extractelement <32 x float> %value, i32 0
  store float %first, ptr %to, align 4
  br label %item_end
{shared_loads}
item_end:
  %i_next = add i64 %i, 1
  %i_more = icmp slt i64 %i_next, %count
  br i1 %i_more, label %item, label %warp_end
warp_end:
  %w_next = add i64 %w, 1
  %w_more = icmp slt i64 %w_next, %warps
  br i1 %w_more, label %warp, label %block_end
block_end:
  %b_next = add i64 %b, 1
  %b_more = icmp slt i64 %b_next, %blocks
  br i1 %b_more, label %block, label %done
done:
  ret void
}}
"""
_TWO_OPERANDS = """
{name}:
  %{name}_x = load <32 x float>, ptr %x_row, align 64
  %{name}_y = load <32 x float>, ptr %y_row, align 64
  %{name}_r = f{name} <32 x float> %{name}_x, %{name}_y
  store <32 x float> %{name}_r, ptr %d_row, align 64
  br label %item_end"""
#: Changing a sign is exact: a NaN's does not matter here.
_THREE_OPERANDS = """
{name}:
  %{name}_x = load <32 x float>, ptr %x_row, align 64
  %{name}_y = load <32 x float>, ptr %y_row, align 64
  %{name}_z = load <32 x float>, ptr %z_row, align 64
  %{name}_minus_x = fneg <32 x float> %{name}_x
  %{name}_minus_z = fneg <32 x float> %{name}_z
  %{name}_r = call <32 x float> @llvm.fma.v32f32(
    <32 x float> %{name}_{x}, <32 x float> %{name}_y, <32 x float> %{name}_{z})
  store <32 x float> %{name}_r, ptr %d_row, align 64
  br label %item_end"""
#: By operation: its first factor and its addend. A sum of products with its own signs is a chain.
_SIGNS = {"fms": ("x", "minus_z"), "fnma": ("minus_x", "z"), "fnms": ("minus_x", "minus_z")}
#: How a load from shared memory begins: where this warp's addresses stand.
_ADDRESSES = """
{name}:
  %{name}_array = getelementptr %array, ptr %arrays, i32 %x
  %{name}_places = call ptr @first_of(ptr %{name}_array, i64 %b, i64 %w)
  %{name}_step = call i64 @by_lane(ptr %{name}_array)
  %{name}_from = getelementptr i8, ptr %own, i32 %y
  %{name}_differ = icmp ne i64 %{name}_step, 0
  br i1 %{name}_differ, label %{name}_each, label %{name}_same
{name}_same:
  %{name}_place = load i64, ptr %{name}_places
  %{name}_one_at = getelementptr i8, ptr %{name}_from, i64 %{name}_place
"""
#: One float for all lanes of a warp.
_SPREAD = """
  %{name}_spread_at{part} = getelementptr float, ptr %{name}_one_at, i32 {part}
  %{name}_one{part} = load float, ptr %{name}_spread_at{part}, align 4
  %{name}_ones{part} = insertelement <32 x float> poison, float %{name}_one{part}, i32 0
  %{name}_all{part} = shufflevector <32 x float> %{name}_ones{part}, <32 x float> poison,
    <32 x i32> zeroinitializer
  store <32 x float> %{name}_all{part}, ptr {row}, align 64
"""
_SHARED = """
shared_one_each:
  %each_place = load <32 x i64>, ptr %shared_one_places, align 8
  %each_at = getelementptr i8, ptr %shared_one_from, <32 x i64> %each_place
  %each = call <32 x float> @llvm.masked.gather.v32f32.v32p0(
    <32 x ptr> %each_at, i32 4, <32 x i1> <{everyone}>, <32 x float> poison)
  store <32 x float> %each, ptr %d_row, align 64
  br label %item_end
"""
#: The vector of one lane, and those of four lanes turned into what each row has of these lanes.
_LANE = """
  %place_at{lane} = getelementptr i64, ptr %shared_vector_places, i32 {lane}
  %place{lane} = load i64, ptr %place_at{lane}
  %vector_at{lane} = getelementptr i8, ptr %shared_vector_from, i64 %place{lane}
  %vector{lane} = load <4 x float>, ptr %vector_at{lane}, align 4
"""
_FOUR_LANES = """
  %low{a} = shufflevector <4 x float> %vector{a}, <4 x float> %vector{b}, {low}
  %low{c} = shufflevector <4 x float> %vector{c}, <4 x float> %vector{d}, {low}
  %high{a} = shufflevector <4 x float> %vector{a}, <4 x float> %vector{b}, {high}
  %high{c} = shufflevector <4 x float> %vector{c}, <4 x float> %vector{d}, {high}
  %part{a} = shufflevector <4 x float> %low{a}, <4 x float> %low{c}, {first}
  %part{b} = shufflevector <4 x float> %low{a}, <4 x float> %low{c}, {second}
  %part{c} = shufflevector <4 x float> %high{a}, <4 x float> %high{c}, {first}
  %part{d} = shufflevector <4 x float> %high{a}, <4 x float> %high{c}, {second}
"""
_SHUFFLES = {
    "low": "<4 x i32> <i32 0, i32 4, i32 1, i32 5>",
    "high": "<4 x i32> <i32 2, i32 6, i32 3, i32 7>",
    "first": "<4 x i32> <i32 0, i32 1, i32 4, i32 5>",
    "second": "<4 x i32> <i32 2, i32 3, i32 6, i32 7>",
}
_PART = """
  %part_at{number} = getelementptr float, ptr {row}, i32 {lane}
  store <4 x float> %part{number}, ptr %part_at{number}, align 16
"""
_MORE_ROWS = """
  %row{part}_at = getelementptr %item, ptr %tape, i64 %i, i32 {word}
  %row{part}_number = load i32, ptr %row{part}_at
  %row{part} = getelementptr <32 x float>, ptr %rows, i32 %row{part}_number
"""
#: The NaN of single precision on a GPU, as LLVM writes a float: by the bits of the same double.
_NAN = f"0x{int(np.float64(np.uint32(0x7FFFFFFF).view(np.float32)).view(np.uint64)):016X}"
_EVERYONE = ", ".join(["i1 true"] * WARP)


def _shared_loads() -> Iterator[str]:
    """Yield the player's code for loads from shared memory."""
    yield _ADDRESSES.format(name="shared_one")
    yield _SPREAD.format(name="shared_one", part=0, row="%d_row")
    yield "  br label %item_end" + _SHARED.format(everyone=_EVERYONE)
    rows = ["%d_row", *(f"%row{part}" for part in range(1, VECTOR))]
    more = "".join(_MORE_ROWS.format(part=part, word=ITEM_WORDS - VECTOR + part) for part in range(1, VECTOR))
    addresses = _ADDRESSES.format(name="shared_vector")
    yield addresses.replace("shared_vector:\n", f"shared_vector:{more}", 1)
    for part, row in enumerate(rows):
        yield _SPREAD.format(name="shared_vector", part=part, row=row)
    yield "  br label %item_end\nshared_vector_each:"
    for lane in range(0, WARP, VECTOR):
        numbers = range(lane, lane + VECTOR)
        yield from (_LANE.format(lane=number) for number in numbers)
        yield _FOUR_LANES.format(**_SHUFFLES, **dict(zip("abcd", numbers, strict=True)))
        for number, row in zip(numbers, rows, strict=True):
            yield _PART.format(number=number, row=row, lane=lane)
    yield "  br label %item_end"


@functools.cache
def player() -> Callable[..., None] | None:
    """Return the machine code that plays tapes.

    Returns:
        None when llvmlite is not installed, or when the CPU has no fused multiply-add.
    """
    if not multiplies_and_adds():
        return None
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    arguments = (pointer, integer, pointer, integer, pointer, integer, integer, pointer, pointer, integer)
    return ctypes.CFUNCTYPE(None, *arguments)(_compiled().get_function_address("play"))


@functools.cache
def _compiled() -> Any:
    """Compile the player; the cache keeps the machine code alive."""
    source = _PLAYER.format(
        data=_DATA,
        extents=_EXTENTS,
        strides=_STRIDES,
        load=LOAD,
        store=STORE,
        hand_on=HAND_ON,
        shared=SHARED,
        shared_vector=SHARED_VECTOR,
        pairs_of_item=ITEM_WORDS // 2,
        pairs_but_one=ITEM_WORDS // 2 - 1,
        **OPERATIONS,
        two_operands="".join(_TWO_OPERANDS.format(name=name) for name in OPERATIONS if name not in _SIGNS),
        three_operands="".join(_THREE_OPERANDS.format(name=n, x=x, z=z) for n, (x, z) in _SIGNS.items()),
        shared_loads="".join(_shared_loads()),
        numbers=", ".join(f"i64 {lane}" for lane in range(WARP)),
        everyone=_EVERYONE,
        nans=", ".join([f"float {_NAN}"] * WARP),
    )
    return compiled(source)
