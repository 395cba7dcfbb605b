# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whole runs of float32 arithmetic by machine code: a tape of instructions, played for one warp at a time.

NumPy's cost per call is that of hundreds of lanes. A register-tiled kernel multiplies and adds thousands of
times in a basic block, so the block's arithmetic is written to a tape once, and one call into machine code
plays it. A warp's values are a row of 32 floats; the rows of one warp stay in the CPU's nearest cache.

Results are rounded once, and a NaN that is handed out has the bits that the GPU gives it: between two
instructions of a tape its bits cannot matter.
"""

import ctypes
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.executor.arithmetic.native_code import compiled, multiplies_and_adds
from gpuprof.executor.lanes.scalars import Lanes

_WARP = 32
_ROW_BYTES = 4 * _WARP
#: What the player notes of an array.
_ARRAY_BYTES = 32
#: Rows begin at a line of the CPU's cache.
_LINE_BYTES = 64

#: What a tape's instructions do, by number; `load` and `store` go between rows and the arrays of a call.
_LOAD, _STORE, _HAND_ON = 0, 1, 2
OPERATIONS = {"fma": 3, "mul": 4, "add": 5, "sub": 6, "fms": 7, "fnma": 8, "fnms": 9}

#: Where NumPy keeps an array's data, extents and strides, behind what every Python object begins with: part
#: of its binary interface. To ask for them from Python takes a microsecond an array.
_HEAD = object.__basicsize__
_DATA, _EXTENTS, _STRIDES = _HEAD, _HEAD + 16, _HEAD + 24

#: One instruction of a tape is {operation, target, first, second, third}; an array is {address of its first
#: element, and bytes from one block, one warp and one lane to the next}, 0 where it does not change.
_PLAYER = """
%item = type {{ i32, i32, i32, i32, i32 }}
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

define void @play(
  ptr %tape, i64 %count, ptr %objects, i64 %number, ptr %arrays, i64 %blocks, i64 %warps, ptr %rows) {{
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
  br label %warp
warp:
  %w = phi i64 [0, %block], [%w_next, %warp_end]
  br label %item
item:
  %i = phi i64 [0, %warp], [%i_next, %item_end]
  %op_at = getelementptr %item, ptr %tape, i64 %i, i32 0
  %op = load i32, ptr %op_at
  %d_at = getelementptr %item, ptr %tape, i64 %i, i32 1
  %d = load i32, ptr %d_at
  %x_at = getelementptr %item, ptr %tape, i64 %i, i32 2
  %x = load i32, ptr %x_at
  %y_at = getelementptr %item, ptr %tape, i64 %i, i32 3
  %y = load i32, ptr %y_at
  %z_at = getelementptr %item, ptr %tape, i64 %i, i32 4
  %z = load i32, ptr %z_at
  %d_row = getelementptr <32 x float>, ptr %rows, i32 %d
  %x_row = getelementptr <32 x float>, ptr %rows, i32 %x
  %y_row = getelementptr <32 x float>, ptr %rows, i32 %y
  %z_row = getelementptr <32 x float>, ptr %rows, i32 %z
  switch i32 %op, label %fma [
    i32 {load}, label %load
    i32 {store}, label %store
    i32 {hand_on}, label %hand_on
    i32 {mul}, label %mul
    i32 {add}, label %add
    i32 {sub}, label %sub
    i32 {fms}, label %fms
    i32 {fnma}, label %fnma
    i32 {fnms}, label %fnms
  ]
{three_operands}
{two_operands}
load:
  %from_at = getelementptr %array, ptr %arrays, i32 %x, i32 0
  %from_start = load ptr, ptr %from_at
  %from_b_at = getelementptr %array, ptr %arrays, i32 %x, i32 1
  %from_b = load i64, ptr %from_b_at
  %from_w_at = getelementptr %array, ptr %arrays, i32 %x, i32 2
  %from_w = load i64, ptr %from_w_at
  %step_at = getelementptr %array, ptr %arrays, i32 %x, i32 3
  %step = load i64, ptr %step_at
  %from_offset_b = mul i64 %b, %from_b
  %from_offset_w = mul i64 %w, %from_w
  %from_offset = add i64 %from_offset_b, %from_offset_w
  %from = getelementptr i8, ptr %from_start, i64 %from_offset
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
  %to_at = getelementptr %array, ptr %arrays, i32 %d, i32 0
  %to_start = load ptr, ptr %to_at
  %to_b_at = getelementptr %array, ptr %arrays, i32 %d, i32 1
  %to_b = load i64, ptr %to_b_at
  %to_w_at = getelementptr %array, ptr %arrays, i32 %d, i32 2
  %to_w = load i64, ptr %to_w_at
  %to_step_at = getelementptr %array, ptr %arrays, i32 %d, i32 3
  %to_step = load i64, ptr %to_step_at
  %to_offset_b = mul i64 %b, %to_b
  %to_offset_w = mul i64 %w, %to_w
  %to_offset = add i64 %to_offset_b, %to_offset_w
  %to = getelementptr i8, ptr %to_start, i64 %to_offset
  %is_row = icmp ne i64 %to_step, 0
  br i1 %is_row, label %put_row, label %put_one
put_row:
  store <32 x float> %value, ptr %to, align 4
  br label %item_end
put_one:
  %first = extractelement <32 x float> %value, i32 0
  store float %first, ptr %to, align 4
  br label %item_end
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
#: By operation: its first factor and its addend.
_SIGNS = {
    "fma": ("x", "z"),
    "fms": ("x", "minus_z"),
    "fnma": ("minus_x", "z"),
    "fnms": ("minus_x", "minus_z"),
}
#: The NaN of single precision on a GPU, as LLVM writes a float: by the bits of the same double.
_NAN = f"0x{int(np.float64(np.uint32(0x7FFFFFFF).view(np.float32)).view(np.uint64)):016X}"


@functools.cache
def player() -> Callable[..., None] | None:
    """Return the machine code that plays tapes.

    Returns:
        None when llvmlite is not installed, or when the CPU has no fused multiply-add.
    """
    if not multiplies_and_adds():
        return None
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    signature = ctypes.CFUNCTYPE(None, pointer, integer, pointer, integer, pointer, integer, integer, pointer)
    return signature(_compiled().get_function_address("play"))


@functools.cache
def _compiled() -> Any:
    """Compile the player; the cache keeps the machine code alive."""
    source = _PLAYER.format(
        data=_DATA,
        extents=_EXTENTS,
        strides=_STRIDES,
        load=_LOAD,
        store=_STORE,
        hand_on=_HAND_ON,
        **{name: number for name, number in OPERATIONS.items() if name != "fma"},
        two_operands="".join(_TWO_OPERANDS.format(name=name) for name in OPERATIONS if name not in _SIGNS),
        three_operands="".join(_THREE_OPERANDS.format(name=n, x=x, z=z) for n, (x, z) in _SIGNS.items()),
        numbers=", ".join(f"i64 {lane}" for lane in range(_WARP)),
        everyone=", ".join(["i1 true"] * _WARP),
        nans=", ".join([f"float {_NAN}"] * _WARP),
    )
    return compiled(source)


@dataclass
class Tape:
    """A run of arithmetic, written instruction by instruction, in which every value is assigned once.

    Attributes:
        sources: How many arrays it reads.
        targets: How many arrays it makes; of each, `needs` names the sources that it depends on.
    """

    sources: int = 0
    targets: int = 0
    needs: list[frozenset[int]] = field(default_factory=list)
    _items: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list)
    #: By value: the sources that it depends on, and whether it is one of them, bit for bit.
    _cones: list[frozenset[int]] = field(default_factory=list)
    _given: list[bool] = field(default_factory=list)

    def source(self) -> int:
        """Read the next array; return the value's number."""
        self.sources += 1
        value = self._value(frozenset({self.sources - 1}), given=True)
        self._items.append((_LOAD, value, (self.sources - 1,)))
        return value

    def compute(self, operation: str, operands: Sequence[int]) -> int:
        """Compute a value from others; return its number."""
        value = self._value(frozenset().union(*(self._cones[x] for x in operands)), given=False)
        self._items.append((OPERATIONS[operation], value, tuple(operands)))
        return value

    def target(self, value: int) -> None:
        """Hand a value out as the next array."""
        self._items.append((_HAND_ON if self._given[value] else _STORE, self.targets, (value,)))
        self.needs.append(self._cones[value])
        self.targets += 1

    def _value(self, cone: frozenset[int], *, given: bool) -> int:
        self._cones.append(cone)
        self._given.append(given)
        return len(self._cones) - 1

    def compiled(self) -> "CompiledTape":
        """Return the tape ready to be played: each value loaded where it is first used, rows used again."""
        items = self._in_order_of_use()
        last_use: dict[int, int] = {}
        for place, (operation, _, operands) in enumerate(items):
            if operation != _LOAD:
                last_use.update(dict.fromkeys(operands, place))
        row_of: dict[int, int] = {}
        free: list[int] = []
        rows = 0
        words: list[tuple[int, int, int, int, int]] = []
        for place, (operation, target, operands) in enumerate(items):
            read = operands if operation == _LOAD else tuple(row_of[x] for x in operands)
            if operation != _LOAD:
                free += [row_of[x] for x in dict.fromkeys(operands) if last_use[x] == place]
            if operation in (_STORE, _HAND_ON):
                written = self.sources + target
            else:
                if not free:
                    free.append(rows)
                    rows += 1
                written = row_of[target] = free.pop()
            first, second, third = (*read, 0, 0)[:3]
            words.append((operation, written, first, second, third))
        return CompiledTape(np.array(words, dtype=np.int32), rows, self.sources, tuple(self.needs))

    def _in_order_of_use(self) -> list[tuple[int, int, tuple[int, ...]]]:
        loads = {target: (op, target, operands) for op, target, operands in self._items if op == _LOAD}
        used: set[int] = set()
        needed = []
        for item in reversed(self._items):
            if item[0] in (_STORE, _HAND_ON) or (item[0] != _LOAD and item[1] in used):
                used.update(item[2])
                needed.append(item)
        items = []
        for item in reversed(needed):
            items += [loads.pop(x) for x in dict.fromkeys(item[2]) if x in loads]
            items.append(item)
        return items


@dataclass
class CompiledTape:
    """A tape ready to be played.

    Attributes:
        words: Its instructions, of shape (instructions, 5).
        rows: Rows of 32 values that it needs.
        sources: How many arrays it reads.
        needs: Of each array that it makes, the sources that it depends on.
    """

    words: NDArray[np.int32]
    rows: int
    sources: int
    needs: tuple[frozenset[int], ...]
    _shapes: dict[tuple[tuple[int, ...], ...], list[tuple[int, ...]]] = field(default_factory=dict)

    def play(self, machine: Callable[..., None], sources: Sequence[Lanes]) -> list[Lanes]:
        """Compute the targets.

        Args:
            machine: The player.
            sources: float32 arrays of shape (blocks or 1, warps or 1, 32 or 1).

        Returns:
            Arrays of the shapes to which the sources that each depends on broadcast.
        """
        given = tuple(source.shape for source in sources)
        shapes = self._shapes.get(given)
        if shapes is None:
            shapes = [np.broadcast_shapes(*(given[source] for source in need)) for need in self.needs]
            self._shapes[given] = shapes
        targets = _empty(shapes)
        arrays = [*sources, *targets]
        objects = np.array([id(array) for array in arrays], dtype=np.int64)
        room = np.empty(self.rows * _ROW_BYTES + len(arrays) * _ARRAY_BYTES + _LINE_BYTES, dtype=np.uint8)
        rows = -(-_address(room) // _LINE_BYTES) * _LINE_BYTES
        placed = rows + self.rows * _ROW_BYTES
        blocks, warps, _ = np.broadcast_shapes(*dict.fromkeys(shapes))
        words = self.words
        machine(_address(words), len(words), _address(objects), len(arrays), placed, blocks, warps, rows)
        return targets


def _empty(shapes: list[tuple[int, ...]]) -> list[Lanes]:
    """Return an array for each shape; those of one shape are made together, which takes less time."""
    parts = {
        shape: iter(np.empty((times, *shape), dtype=np.float32)) for shape, times in Counter(shapes).items()
    }
    return [next(parts[shape]) for shape in shapes]


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
