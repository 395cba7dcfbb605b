# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The hottest float arithmetic as machine code of this CPU: multiply-adds for NumPy, and the player of tapes.

NumPy has no fused multiply-add, and doing it exactly with NumPy's other functions takes ten passes over the
data in float32. LLVM compiles a loop around the CPU's instruction, or the C library's function where there is
none, and NumPy's C interface makes that loop a ufunc, which brings broadcasting and strides.

A tape (`float_runs`) is played for one warp after the other. A row is what its 32 lanes hold of one value.
"""

import ctypes
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

from gpuprof.executor.arithmetic.float_runs import (
    ARRAY_BYTES,
    HAND_ON,
    ITEM_WORDS,
    LINE_BYTES,
    LOAD,
    OPERATIONS,
    ROW_BYTES,
    STORE,
)
from gpuprof.executor.arithmetic.formats import LOWEST_EXPONENT
from gpuprof.executor.arithmetic.nans import CANONICAL
from gpuprof.executor.lanes.masks import WARP

_VOID, _BIT, _BYTE, _WORD, _LONG = ir.VoidType(), *(ir.IntType(bits) for bits in (1, 8, 32, 64))
_POINTER, _FLOAT, _DOUBLE = ir.PointerType(), ir.FloatType(), ir.DoubleType()
_ROW, _PLACES, _POINTERS = (ir.VectorType(each, WARP) for each in (_FLOAT, _LONG, _POINTER))
#: Types of a loop: LLVM's, and NumPy's.
_TYPES: dict[str, tuple[Any, np.dtype[Any]]] = {
    "f32": (_FLOAT, np.dtype(np.float32)),
    "f64": (_DOUBLE, np.dtype(np.float64)),
}
#: Place of `PyUFunc_FromFuncAndData` in NumPy's table of ufunc functions, part of its binary interface.
_FROM_LOOPS = 1
#: Where NumPy keeps an array's data, extents and strides, behind what every Python object begins with: part
#: of its binary interface. To ask for them from Python takes a microsecond an array.
_HEAD = object.__basicsize__
_DATA, _EXTENTS, _STRIDES = _HEAD, _HEAD + 16, _HEAD + 24


@functools.cache
def _machine_code(write: Callable[..., ir.Module], *about: Any, vectorised: bool) -> Any:
    """Compile the module that a function writes; the cache keeps the machine code alive."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(write(*about)))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    if vectorised:
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        # A warp is four vectors: more at once only takes longer to compile.
        tuning.loop_vectorization, tuning.loop_interleaving, tuning.loop_unrolling = True, False, False
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


@contextmanager
def _repeated(b: ir.IRBuilder, count: ir.Value) -> Iterator[ir.Value]:
    """Write a loop of one iteration or more, numbered from 0."""
    before, body = b.block, b.append_basic_block()
    b.branch(body)
    b.position_at_end(body)
    number = b.phi(_LONG)
    number.add_incoming(_LONG(0), before)
    yield number
    following = b.add(number, _LONG(1))
    number.add_incoming(following, b.block)
    after = b.append_basic_block()
    b.cbranch(b.icmp_signed("<", following, count), body, after)
    b.position_at_end(after)


def _at(b: ir.IRBuilder, base: ir.Value, offset: ir.Value | int) -> ir.Value:
    """Return the address so many bytes behind another."""
    return b.gep(base, [_LONG(offset) if isinstance(offset, int) else offset], source_etype=_BYTE)


def _long_at(b: ir.IRBuilder, base: ir.Value, number: ir.Value | int) -> ir.Value:
    index = _LONG(number) if isinstance(number, int) else number
    return b.load(b.gep(base, [index], source_etype=_LONG), typ=_LONG)


def _multiply_add(module: ir.Module, kind: Any, name: str) -> ir.Function:
    return ir.Function(module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.{name}")


@functools.cache
def multiply_add(kind: str) -> Callable[..., Any]:
    """Return a ufunc (a, b, c) -> a * b + c of `f32` or `f64`, rounded once; its NaNs are the CPU's."""
    functions = importlib.import_module("numpy._core._multiarray_umath")._UFUNC_API
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(functions, None), ctypes.POINTER(ctypes.c_void_p))
    pointers, counts, texts = [ctypes.c_void_p] * 3, [ctypes.c_int] * 4, [ctypes.c_char_p] * 2
    from_loops = ctypes.PYFUNCTYPE(ctypes.py_object, *pointers, *counts, *texts, ctypes.c_int)(
        table[_FROM_LOOPS]
    )
    no_identity = -1
    addresses = (ctypes.addressof(array) for array in _tables(kind))
    ufunc: Callable[..., Any] = from_loops(*addresses, 1, 3, 1, no_identity, b"fma", b"rounded once", 0)
    return ufunc


@functools.cache
def _tables(kind: str) -> tuple[Any, Any, Any]:
    """What the ufunc refers to as long as it lives: its loop, the loop's data, and operand types."""
    engine = _machine_code(_loop_module, kind, vectorised=False)
    types = bytes([_TYPES[kind][1].num]) * 4
    return (
        (ctypes.c_void_p * 1)(engine.get_function_address("loop")),
        (ctypes.c_void_p * 1)(),
        ctypes.create_string_buffer(types, len(types)),
    )


def _loop_module(kind: str) -> ir.Module:
    """Write a NumPy inner loop: arrays of operands, length, and byte strides come in.

    Of operands that have a value for each lane, or a single one, it takes as many at once as a warp has
    lanes; a single one is spread before.
    """
    module, (number, dtype) = ir.Module(), _TYPES[kind]
    row, size = ir.VectorType(number, WARP), dtype.itemsize
    function = ir.Function(module, ir.FunctionType(_VOID, [_POINTER] * 4), "loop")
    arrays, length, steps, _ = function.args
    b = ir.IRBuilder(function.append_basic_block())
    n = b.load(length, typ=_LONG)
    given = [b.inttoptr(_long_at(b, arrays, i), _POINTER) for i in range(4)]
    strides = [_long_at(b, steps, i) for i in range(4)]
    spread = [b.alloca(row) for _ in range(3)]
    single = [b.icmp_signed("==", stride, _LONG(0)) for stride in strides[:3]]
    dense = [b.icmp_signed("==", stride, _LONG(size)) for stride in strides]
    either = [dense[3], *map(b.or_, single, dense)]
    rows = b.select(functools.reduce(b.and_, either), b.udiv(n, _LONG(WARP)), _LONG(0))
    done = b.mul(rows, _LONG(WARP))

    def computed(kind: Any, name: str, places: Sequence[ir.Value]) -> None:
        x = [b.load(place, align=size, typ=kind) for place in places[:3]]
        b.store(b.call(_multiply_add(module, kind, name), x), places[3], align=size)

    with b.if_then(b.icmp_signed("!=", rows, _LONG(0))):
        for place, value in zip(spread, given, strict=False):
            b.store(_spread(b, b.load(value, align=size, typ=number), row), place)
        starts = [*map(b.select, single, spread, given), given[3]]
        with _repeated(b, rows) as i:
            offset = b.mul(i, _LONG(size * WARP))
            moved = [b.select(one, _LONG(0), offset) for one in single]
            computed(row, f"v{WARP}{kind}", [*map(functools.partial(_at, b), starts, [*moved, offset])])
    with b.if_then(b.icmp_signed("!=", done, n)), _repeated(b, b.sub(n, done)) as i:
        computed(
            number,
            kind,
            [_at(b, one, b.mul(b.add(i, done), step)) for one, step in zip(given, strides, strict=True)],
        )
    b.ret_void()
    return module


def _spread(b: ir.IRBuilder, scalar: ir.Value, kind: Any) -> ir.Value:
    """Return a vector of one value for all lanes."""
    one = b.insert_element(ir.Constant(kind, ir.Undefined), scalar, _WORD(0))
    return b.shuffle_vector(one, one, ir.Constant(ir.VectorType(_WORD, WARP), [0] * WARP))


@functools.cache
def aligned_sum(depth: int) -> Callable[..., None]:
    """Return the machine code that adds products of so many factors as tensor cores do (`tensor_products`).

    It takes addresses of contiguous arrays: factors (depth, rows, warps), (depth, columns, warps), and the
    addend (rows, columns, warps), each with that of its exponents behind it; the total; then rows, columns,
    warps, and the fraction bits that a term keeps.
    """
    engine = _machine_code(_sum_module, depth, vectorised=True)
    arguments = [ctypes.c_void_p] * 7 + [ctypes.c_int64] * 4
    return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address("sum"))


def _sum_module(depth: int) -> ir.Module:
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(_VOID, [_POINTER] * 7 + [_LONG] * 4), "sum")
    *given, out, rows, columns, warps, kept = function.args
    out.add_attribute("noalias")
    whole = ir.Function(module, ir.FunctionType(_DOUBLE, [_DOUBLE]), "llvm.trunc.f64")
    b = ir.IRBuilder(function.append_basic_block())

    def loaded(number: int, place: ir.Value) -> tuple[ir.Value, ir.Value]:
        """A number and its exponent, of an operand that consists of both."""
        values, exponents = given[2 * number : 2 * number + 2]
        value = b.load(_at(b, values, b.mul(place, _LONG(4))), align=4, typ=_FLOAT)
        exponent = b.load(_at(b, exponents, b.mul(place, _LONG(2))), align=2, typ=ir.IntType(16))
        return b.fpext(value, _DOUBLE), b.sext(exponent, _LONG)

    def power_of_two(exponent: ir.Value) -> ir.Value:
        return b.bitcast(b.shl(b.add(exponent, _LONG(1023)), _LONG(52)), _DOUBLE)

    def greater(one: ir.Value, other: ir.Value) -> ir.Value:
        return b.select(b.icmp_signed(">", one, other), one, other)

    with _repeated(b, rows) as row, _repeated(b, columns) as column:
        starts = [
            (
                b.mul(b.add(b.mul(_LONG(i), rows), row), warps),
                b.mul(b.add(b.mul(_LONG(i), columns), column), warps),
            )
            for i in range(depth)
        ]
        start = b.mul(b.add(b.mul(row, columns), column), warps)
        with _repeated(b, warps) as warp:
            factors = [tuple(loaded(n, b.add(at[n], warp)) for n in (0, 1)) for at in starts]
            place = b.add(start, warp)
            addend, top = loaded(2, place)
            for (_, of_x), (_, of_y) in factors:
                top = greater(b.add(of_x, of_y), top)
            top = greater(top, _LONG(2 * LOWEST_EXPONENT))
            scale = power_of_two(b.sub(kept, top))
            units: ir.Value = _WORD(0)
            for (x, _), (y, _) in factors:
                units = b.add(units, b.fptosi(b.fmul(b.fmul(x, y), scale), _WORD))  # towards zero
            total = b.fadd(b.call(whole, [b.fmul(addend, scale)]), b.sitofp(units, _DOUBLE))
            b.store(
                b.fmul(total, power_of_two(b.sub(top, kept))), _at(b, out, b.mul(place, _LONG(8))), align=8
            )
    b.ret_void()
    return module


@functools.cache
def player() -> Callable[..., None]:
    """Return the machine code that plays tapes."""
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    arguments = (pointer, integer, pointer, integer, pointer, integer, integer, integer)
    engine = _machine_code(_Player.module, vectorised=False)
    return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address("play"))


class _Player:
    """Writes the player: for each warp of each block the whole tape.

    It takes NumPy's arrays of the tape, of the objects that hold values, and of room for rows and for what is
    noted of these; how many there are of each; blocks and warps.
    """

    block: ir.Value
    warp: ir.Value
    rows: ir.Value
    arrays: ir.Value

    def __init__(self) -> None:
        self.code = ir.Module()
        taken = [_POINTER, _LONG, _POINTER, _LONG, _POINTER, _LONG, _LONG, _LONG]
        function = ir.Function(self.code, ir.FunctionType(_VOID, taken), "play")
        self.arguments = function.args
        self.b = ir.IRBuilder(function.append_basic_block())
        self.fma = _multiply_add(self.code, _ROW, f"v{WARP}f32")
        self.gather = ir.Function(
            self.code,
            ir.FunctionType(_ROW, [_POINTERS, _WORD, ir.VectorType(_BIT, WARP), _ROW]),
            f"llvm.masked.gather.v{WARP}f32.v{WARP}p0",
        )

    @classmethod
    def module(cls) -> ir.Module:
        self = cls()
        b = self.b
        *taken, blocks, warps = self.arguments
        data = (_long_at(b, _at(b, array, _DATA), 0) for array in taken[::2])
        tape, objects, room = (b.inttoptr(address, _POINTER) for address in data)
        count, number, rows = taken[1::2]
        line = b.and_(b.add(b.ptrtoint(room, _LONG), _LONG(LINE_BYTES - 1)), _LONG(-LINE_BYTES))
        self.rows = b.inttoptr(line, _POINTER)
        self.arrays = _at(b, self.rows, b.mul(rows, _LONG(ROW_BYTES)))
        with _repeated(b, number) as n:
            self._place(b.inttoptr(_long_at(b, objects, n), _POINTER), n)
        with _repeated(b, blocks) as self.block, _repeated(b, warps) as self.warp:
            self._play_tape(tape, count)
        b.ret_void()
        return self.code

    def _place(self, array: ir.Value, number: ir.Value) -> None:
        """Note where a NumPy array of three dimensions begins, and its strides."""
        b = self.b
        data, extents, strides = (_long_at(b, _at(b, array, at), 0) for at in (_DATA, _EXTENTS, _STRIDES))
        extents, strides = b.inttoptr(extents, _POINTER), b.inttoptr(strides, _POINTER)
        noted = [data]
        for axis in range(3):
            changes = b.icmp_signed(">", _long_at(b, extents, axis), _LONG(1))
            noted.append(b.select(changes, _long_at(b, strides, axis), _LONG(0)))
        entry = _at(b, self.arrays, b.mul(number, _LONG(ARRAY_BYTES)))
        for place, value in enumerate(noted):
            b.store(value, _at(b, entry, 8 * place))

    def _play_tape(self, tape: ir.Value, count: ir.Value) -> None:
        b = self.b
        does: dict[int, Callable[[], None]] = {
            LOAD: self._load,
            STORE: lambda: self._store(canonical=True),
            HAND_ON: lambda: self._store(canonical=False),
            **{code: functools.partial(self._compute, name) for name, code in OPERATIONS.items()},
        }
        with _repeated(b, count) as i:
            start = _at(b, tape, b.mul(i, _LONG(4 * ITEM_WORDS)))
            self.words = [b.load(_at(b, start, 4 * place), typ=_WORD) for place in range(ITEM_WORDS)]
            end = b.append_basic_block()
            choice = b.switch(self.words[0], end)
            for code, write in does.items():
                first = b.append_basic_block()
                choice.add_case(_WORD(code), first)
                b.position_at_end(first)
                write()
                b.branch(end)
            b.position_at_end(end)

    def _row(self, number: ir.Value) -> ir.Value:
        return _at(self.b, self.rows, self.b.mul(self.b.sext(number, _LONG), _LONG(ROW_BYTES)))

    def _value(self, word: int) -> ir.Value:
        """Return the row that a word of the instruction names."""
        return self.b.load(self._row(self.words[word]), align=64, typ=_ROW)

    def _put(self, value: ir.Value) -> None:
        self.b.store(value, self._row(self.words[1]), align=64)

    def _gathered(self, start: ir.Value, offsets: ir.Value) -> ir.Value:
        b = self.b
        places = b.add(_spread(b, b.ptrtoint(start, _LONG), _PLACES), offsets)
        everyone = ir.Constant(ir.VectorType(_BIT, WARP), [1] * WARP)
        nothing = ir.Constant(_ROW, ir.Undefined)
        return b.call(self.gather, [b.inttoptr(places, _POINTERS), _WORD(4), everyone, nothing])

    def _array(self, word: int) -> tuple[ir.Value, ir.Value]:
        """Return where the values of this warp begin in an array, and the bytes from one lane to the next."""
        b = self.b
        entry = _at(b, self.arrays, b.mul(b.sext(self.words[word], _LONG), _LONG(ARRAY_BYTES)))
        data, by_block, by_warp, by_lane = (_long_at(b, entry, place) for place in range(4))
        offset = b.add(b.mul(self.block, by_block), b.mul(self.warp, by_warp))
        return _at(b, b.inttoptr(data, _POINTER), offset), by_lane

    def _load(self) -> None:
        b = self.b
        start, step = self._array(2)
        with b.if_else(b.icmp_signed("==", step, _LONG(4))) as (neighbours, others):
            with neighbours:
                self._put(b.load(start, align=4, typ=_ROW))
            with others, b.if_else(b.icmp_signed("==", step, _LONG(0))) as (same, apart):
                with same:
                    self._put(_spread(b, b.load(start, align=4, typ=_FLOAT), _ROW))
                with apart:
                    offsets = b.mul(_spread(b, step, _PLACES), ir.Constant(_PLACES, list(range(WARP))))
                    self._put(self._gathered(start, offsets))

    def _store(self, *, canonical: bool) -> None:
        b = self.b
        value = self._value(2)
        if canonical:
            nans = _spread(b, b.bitcast(_WORD(int(CANONICAL.view(np.uint32))), _FLOAT), _ROW)
            value = b.select(b.fcmp_unordered("uno", value, value), nans, value)
        start, step = self._array(1)
        with b.if_else(b.icmp_signed("!=", step, _LONG(0))) as (row, single):
            with row:
                b.store(value, start, align=4)
            with single:
                b.store(b.extract_element(value, _WORD(0)), start, align=4)

    def _compute(self, name: str) -> None:
        b = self.b
        x, y = self._value(2), self._value(3)
        if name in ("mul", "add", "sub"):
            self._put({"mul": b.fmul, "add": b.fadd, "sub": b.fsub}[name](x, y))
            return
        z = self._value(4)
        # To change a sign is exact: a NaN's does not matter here.
        factor = b.fneg(x) if name.startswith("fn") else x
        self._put(b.call(self.fma, [factor, y, b.fneg(z) if name.endswith("ms") else z]))
