# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The tables of a header that brings its operation along, of what is known of a kernel and its launch."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from msgspec import Struct

from gpuprof.backends.arguments import HANDLES, points_to
from gpuprof.cubin_file import function_of
from gpuprof.cuda_source.host_launch import HostLaunch, UnreadableError
from gpuprof.executor import Use
from gpuprof.kernels.starting_point import listed_texts
from gpuprof.problems.declaration import RESERVED
from gpuprof.problems.dtypes import ELEMENT_TYPES, is_float
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.problems.generators import default_generator
from gpuprof.text import listed, renamed

_BYTES = {
    "char": "i8",
    "signed char": "i8",
    "int8_t": "i8",
    "unsigned char": "u8",
    "uint8_t": "u8",
    "uchar": "u8",
    "bool": "u8",
}
VECTOR = re.compile(r"(?<=[a-z])[234]\Z|(?<=bfloat16)2\Z")
#: Threads of a block, where nothing says how many.
THREADS = 256
#: The type of a tensor map.
_MAP = "CUtensorMap"
#: Element types that values of so many bits most likely are, where PTX says no more.
_OF_BITS = {"b8": "u8", "b16": "f16", "b32": "f32", "b64": "f64"}


def _guards(code: str) -> dict[str, tuple[str, bool]]:
    """What the place of a thread in the grid is held against, by axis: `x < nx`, `if (y >= ny) return`.

    And whether it is the place of its block alone. A place that is made of several axes is one of the first.
    """
    found: dict[str, tuple[str, bool]] = {}
    places = set()
    for axis in "xyz":
        place = re.search(rf"\b(\w+)\s*=([^=;,]*)\bblockIdx\s*\.\s*{axis}\b(\s*[;,])?", code)
        held = re.compile(rf"\b{place[1]}\s*(?:<|>=)\s*((?:\w+\s*\.\s*)?\w+)") if place else None
        if place and held and place[1] not in places and (bound := held.search(code, place.end())):
            found[axis] = (bound[1], bool(place[3]) and not place[2].strip())
            places.add(place[1])
    return found


T = TypeVar("T")


def read(question: Callable[..., T], *given: object) -> T | None:
    """What host code says; None where it is not plain to read."""
    try:
        return question(*given)
    except UnreadableError:
        return None


class Taken(Struct, frozen=True):
    """What a kernel takes: a parameter, or a member of a struct that is one.

    Args:
        name: Of an integer that follows from others, such as a stride, the formula.
        type: As a declaration has it, empty where that is not understood.
        place: Where it, or its struct, stands in the list.
        member: How the member is reached there, such as `.width`.
        kind: The element type of a value, or of what a pointer is to; None where no text tells.
        lanes: How many of these an element of an array is, 0 for one.
        use: What the kernel does with the array.
        shape: Extents of an array whose parameter holds them too.
    """

    name: str
    text: str
    type: str
    place: int
    member: str = ""
    kind: str | None = None
    lanes: int = 0
    use: Use | None = None
    shape: tuple[str, ...] = ()

    @property
    def handle(self) -> str:
        """`textures` or `surfaces`, for one of these."""
        return HANDLES.get(self.type, "")

    @property
    def is_array(self) -> bool:
        return self.type.endswith("*") or bool(self.handle)


class SourceFacts(Struct, frozen=True):
    """What a source says beside the parameters of a kernel.

    Args:
        code: The kernel, and what stands below it.
        launch: Its launch, by what formulas call its arguments.
        template: Its template's integers.
        variables: What a kernel uses that is no parameter: types, extents of an array, and for what.
        dynamic: Whether it uses dynamic shared memory.
        is_cooperative: Whether its blocks wait for each other.
    """

    code: str
    launch: Callable[..., HostLaunch]
    template: Sequence[str]
    variables: Mapping[str, tuple[str, Sequence[str], Use]]
    dynamic: bool
    is_cooperative: bool


def accessed(use: Use | None) -> str:
    """The element type as which a kernel reads or writes an array, as far as PTX says."""
    named = _OF_BITS.get(use.type, use.type.replace("s", "i")) if use else ""
    return named if named in ELEMENT_TYPES else "f32"


def _role(one: Taken, told: bool) -> str:
    """The role of an array, by what the kernel does with it, else by how its pointer is declared."""
    if one.handle:
        return "in" if one.handle == "textures" else "out"
    if not told:
        return "in" if "const" in one.text.partition("*")[0].split() else "out"
    return _role_of(one.use)


def _role_of(use: Use | None) -> str:
    return "in" if use is None or not use.written else "inout" if use.read else "out"


class HeaderTables:
    """The tables of a header that brings its operation along: sizes, arrays, scalars, what arrays are for.

    Attributes:
        sizes: Integers that it takes or its launch is told, which formulas may name.
        maps: What the tensor maps that it takes describe, by the name of that one.
        lists: What holds the arrays that it takes as an array of pointers, by the name of that one.
        arrays: Element types of its arrays.
        allocated: Extents of arrays that host code tells.
        bounds: What each axis of its grid is held against, and whether by the place of a block alone.
        extents: Those of an array of which nothing is told.
    """

    def __init__(
        self,
        own: Mapping[str, int],
        taken: Sequence[Taken],
        compiled: bool,
        block: Sequence[int],
        around: SourceFacts,
    ) -> None:
        self._own, self._taken, self._compiled = own, taken, compiled
        self._block, self._around = block, around
        self._by_name = by_name = {one.name: one for one in taken}
        self.lists = {one.name: f"{one.name}_data" for one in taken if one.type.endswith("**")}
        self.arrays = {one.name: one.kind or accessed(one.use) for one in taken if one.is_array}
        values = {
            one.name: one.kind for one in taken if one.kind and not one.is_array and one.name.isidentifier()
        }
        self.scalars = {name: kind for name, kind in values.items() if is_float(kind)}
        sizes = [
            name for name, kind in values.items() if not is_float(kind) and ELEMENT_TYPES[kind].nbytes > 2
        ]
        known: dict[int, dict[str, str]] = {}
        for name in sizes:
            known.setdefault(by_name[name].place, {})[by_name[name].member] = name
        host, alone = around.launch(known, around.template, {*by_name, *own, *RESERVED}), around.launch()
        self.launch = _launch_told(host, alone, own)
        self.allocated: dict[str, list[str] | None] = {
            name: [*by_name[name].shape]
            or read(host.shape, by_name[name].place, self._nbytes(name), by_name[name].member)
            for name in self.arrays
            if name not in self.lists
        }
        self._defaults = [
            *(read(alone.argument, by_name[name].place, by_name[name].member) or "" for name in sizes),
            *(read(alone.formula, name) or "" for name in host.free),
        ]
        places = {name: by_name[name].place for name in self.scalars if not by_name[name].member}
        self._given = {name: read(alone.number, place) for name, place in places.items()}
        self.sizes = [*sizes, *host.free] or ["n"]
        of_grid = [*host.free, *sizes] or ["n"]
        self.bounds = self._bounds(around.code, len(block), of_grid)
        self.extents = [name for name, _ in self.bounds[::-1]] if len(self.bounds) > 1 else of_grid[:2]
        self.roles = {
            one.name: _role(one, compiled and one.name not in self.lists) for one in taken if one.is_array
        }
        self.maps = {one.name: f"{one.name}_data" for one in taken if one.type == _MAP}
        self.arrays |= dict.fromkeys(self.maps.values(), "f32")
        self.roles |= dict.fromkeys(self.maps.values(), "in")
        self._symbols: dict[str, str] = {}
        self._guessed: list[str] = []
        self._add(around.variables)
        if not {"out", "inout"} & {*self.roles.values()}:
            self.roles |= dict.fromkeys([*self.roles][-1:], "out")

    def of(self, entry: str) -> Iterator[str]:
        """All of them, of an entry that the header names."""
        yield f'operation = "{function_of(re.split("[<(]", entry)[0].rpartition("::")[2])}"'
        yield f'entry = "{entry}"'
        yield f"dimensions = {listed_texts(self.sizes)} # what --sizes sets"
        yield from self._default_sizes()
        yield self._arguments()
        if own := self._own:
            yield from (
                "[parameters] # of the template",
                *(f"{name} = {value}" for name, value in own.items()),
            )
        yield from self._array_tables()
        yield from self._value_tables()
        yield from self._work_and_check()
        yield from self._launch_table()

    def _nbytes(self, name: str) -> int:
        return ELEMENT_TYPES[self.arrays[name]].nbytes * max(1, self._by_name[name].lanes)

    def _bounds(self, code: str, axes: int, of_grid: Sequence[str]) -> list[tuple[str, bool]]:
        bounds = []
        for _, (bound, alone) in sorted(_guards(code).items()):
            names = (re.sub(r"\s*\.\s*", "_", bound), re.split(r"\W+", bound)[-1])
            bounds += [(name, alone) for name in names if name in self.sizes][:1]
        if len(bounds) != axes:
            grid = self.launch.grid or ()
            bounds = [(name, False) for text in grid for name in of_grid if name in _words(text)]
        square = [*of_grid, *[of_grid[-1]] * (sum(extent > 1 for extent in self._block) - 1)][:axes]
        return bounds if len(bounds) == axes else [(name, False) for name in square[::-1]]

    def _add(self, variables: Mapping[str, tuple[str, Sequence[str], Use]]) -> None:
        """Make arrays and scalars of variables; an integer's value has to be guessed, and another struct."""
        for name, (kind, cut, use) in variables.items():
            if not kind:
                self._guessed.append(name)
                continue
            called = f"{name}_" if name in {*self._by_name, *self.sizes, *RESERVED} else name
            self._symbols[name] = called
            if cut or _role_of(use) != "in":
                self.arrays[called], self.roles[called] = kind, _role_of(use)
                self.allocated[called] = [*cut] or ["1"]
            elif is_float(kind):
                self.scalars[called] = kind
            else:
                self._guessed.append(name)
                self._symbols[name] = "1"

    def _default_sizes(self) -> Iterator[str]:
        """The sizes that host code launches it with."""
        shapes = [one for name in self.arrays for one in self.allocated.get(name) or self.sizes]
        if self.sizes == ["n"] and all(map(str.isdecimal, [*shapes, *(self.launch.grid or self.sizes)])):
            yield 'default_sizes = "1" # nothing depends on it: the file fixes all extents'
        elif self._defaults and all(one.isdecimal() and int(one) for one in self._defaults):
            yield f'default_sizes = "{"x".join(self._defaults)}" # as the file launches it'

    def _arguments(self) -> str:
        """What the kernel is given for each parameter; what no text tells is to do."""
        names = {*self.arrays, *self.scalars, *self.sizes, *self.maps}
        arguments, unknown = [], []
        for _, group in groupby(self._taken, lambda one: one.place):
            each = [*group]
            known = [one.name in names or not one.name.isidentifier() for one in each]
            texts = [
                one.name if told else "1" if one.kind else "0" for one, told in zip(each, known, strict=True)
            ]
            untold = (one for one in each if not (one.is_array or one.kind or one.type == _MAP))
            unknown += [f"{one.name} ({told})" for one in untold if (told := one.type or one.text)]
            if each[0].member:
                widths = ("" if one.is_array else _as(one.kind) for one in each)
                texts = [f"{{{', '.join(map(''.join, zip(texts, widths, strict=True)))}}}"]
            arguments += texts
        todo = f"TODO: {listed(unknown)}; a struct as its members in braces"
        return f"arguments = {listed_texts(arguments)} # {todo if unknown else 'or formulas of integers'}"

    def _shape(self, name: str) -> list[str]:
        shape = self.allocated.get(name) or self.extents
        if sorted(shape) == sorted(self.extents):  # a product of theirs has no order
            shape = self.extents
        lanes = self._by_name[name].lanes if name in self._by_name else 0
        return [*(renamed(one, self._own) for one in shape), *[str(lanes)][: bool(lanes)]]

    @property
    def _guesses_extents(self) -> bool:
        return not all(map(self.allocated.get, self.arrays))

    def _array_tables(self) -> Iterator[str]:
        """Arrays, and how textures are read."""
        yield f"[arrays] # {'TODO: ' * self._guesses_extents}their extents, the last one fastest"
        for name, kind in self.arrays.items():
            role = f', role = "{self.roles[name]}"' if self.roles[name] != "in" else ""
            guess = " # or inout, where it reads what it held" * (not self._compiled or name in self.lists)
            notes = {"inout": " # or out, where it reads only what it wrote", "out": guess}
            shape = listed_texts(self._shape(name))
            called = self.lists.get(name, name)
            yield f'{called} = {{ shape = {shape}, dtype = "{kind}"{role} }}{notes.get(self.roles[name], "")}'
        for name, called in self.maps.items():
            yield f"[tensor_maps.{name}] # TODO: type, box, swizzle_bytes … as the host encodes it"
            yield f'array = "{called}"\nbox = ["1"]'
        for one in (one for one in self._taken if one.handle):
            yield f"[{one.handle}.{one.name}] # TODO: filter, address, normalized … as the host has them"
            if one.lanes:
                yield f"channels = {one.lanes}"

    def _value_tables(self) -> Iterator[str]:
        """What variables, arrays of pointers, scalars and arrays of integers hold."""
        if self._symbols or self._guessed:
            todo = f"; TODO: {listed(self._guessed)}" * bool(self._guessed)
            yield f"[symbols] # what variables hold before the launch{todo}"
            yield from (f'{name} = "{value}"' for name, value in self._symbols.items())
        if self.lists:
            yield "[workspace] # addresses of equal parts"
            for name, called in self.lists.items():
                yield f'{name} = {{ addresses = ["{called}"], shape = {listed_texts(self.extents[:1])} }}'
        if self.scalars:
            yield "[scalars]"
            for name, kind in self.scalars.items():
                given = self._given.get(name)
                told = "" if given is None else " # as the file launches it"
                yield f'{name} = {{ type = "{kind}", default = {1.0 if given is None else given} }}{told}'
        roles = self.roles.items()
        integers = [name for name, role in roles if role != "out" and not is_float(self.arrays[name])]
        if integers:
            yield "[inputs] # or permutation, csr_offsets(nnz) …"
        for name in integers:
            yield f'{self.lists.get(name, name)} = "{default_generator(self.arrays[name])}"'

    def _work_and_check(self) -> Iterator[str]:
        """The bytes that must move, and what tells whether the kernel is right."""
        moved: Counter[str] = Counter()
        for name, kind in self.arrays.items():
            # Of a constant a kernel may read a part only.
            if name in self._by_name or self.roles[name] != "in":
                shape = self._shape(name)
                elements = " * ".join(one if re.fullmatch(r"\w+", one) else f"({one})" for one in shape)
                moved[elements] += (1 + (self.roles[name] == "inout")) * ELEMENT_TYPES[kind].nbytes
        nbytes = " + ".join(f"{each} * {elements}" for elements, each in moved.items())
        guess = "TODO: with those extents, " * self._guesses_extents
        yield f'[work]\nbytes = "{nbytes or 0}" # {guess}what must move at least'
        yield "[check] # TODO: what each must hold, a formula of the arrays before"
        written = {name: kind for name, kind in self.arrays.items() if self.roles[name] != "in"}
        if any(map(is_float, written.values())):
            yield '# A sum is off by its terms: magnitude = "sum(abs(x))" beside such a value.'
        for name, kind in written.items():
            error = ', relative = "4 * u"' * is_float(kind)
            error += ', absolute = "tiny"' * (is_float(kind) and ELEMENT_TYPES[kind].nbytes < 4)
            yield f'{self.lists.get(name, name)} = {{ value = ""{error} }}'

    def _launch_table(self) -> Iterator[str]:
        """The table of the launch: as host code tells it, the rest as the kernel lets one guess."""
        told, bounds, own = self.launch, self.bounds, self._own
        grid, threads = told.grid, told.block
        block = [*self._block] if len(bounds) == len(self._block) else [THREADS]
        try:
            block = [evaluate(extent, own) for extent in threads or ()] or block
        except ExpressionError:
            threads = None
        if grid is None:
            cut = zip(bounds, "xyz", strict=False)
            grid = [name if alone else f"cdiv({name}, block_{axis})" for (name, alone), axis in cut]
        else:
            cuts = zip(grid, [*block, 0, 0], "xyz", strict=False)
            grid = [re.sub(rf", {extent}\)\Z", f", block_{axis})", text) for text, extent, axis in cuts]
        for extents in (block, grid):
            while len(extents) > 1 and str(extents[-1]) == "1":
                extents.pop()
        words: dict[str, object] = {"block": threads, "grid": told.grid}
        if self._around.dynamic:
            words["dynamic_shared_bytes"] = told.shared
        guessed = listed([word for word, text in words.items() if text is None])
        yield "[launch]" + f" # TODO: {guessed}, which no launch in the file says plainly" * bool(guessed)
        yield f"block = {block}" + " # which default_sizes need" * (not told.fixed and threads is not None)
        yield f"grid = {listed_texts(grid)}"
        if len(words) > 2 or told.shared not in (None, "0"):
            yield f'dynamic_shared_bytes = "{told.shared or "4 * threads"}"'
        if self._around.is_cooperative:
            yield "cooperative = true"


class _Launch(Struct, frozen=True):
    """What host code says of a launch, None where it does not; a block may be `fixed`, or depend on sizes."""

    grid: list[str] | None
    block: list[str] | None
    shared: str | None
    fixed: bool


def _launch_told(host: HostLaunch, alone: HostLaunch, own: Mapping[str, int]) -> _Launch:
    """What host code says, in formulas of what the kernel takes; a block that depends on that, in numbers."""
    grid, block, shared = read(host.extents, 0), read(host.extents, 1), read(host.shared_bytes)
    for axis, one in zip("xyz", block or (), strict=False):
        if one in host.free:  # a launcher that takes the block
            host.free.remove(one)
            grid = grid and [re.sub(rf"\b{one}\b", f"block_{axis}", text) for text in grid]
            shared = shared and re.sub(rf"\b{one}\b", f"block_{axis}", shared)
    fixed = all(_words(one) <= {*own} for one in block or ())
    return _Launch(grid, block if fixed else _of_many(read(alone.extents, 1) or block or ()), shared, fixed)


def _of_many(block: Sequence[str]) -> list[str] | None:
    """A block that is as large as what there is to do, up to a number, where there is that much."""
    most = [re.sub(r"\Amin\((?:.*, )?(\d+)(?:, .*)?\)\Z", r"\1", one) for one in block]
    return most if most and all(map(str.isdecimal, most)) else None


def _words(formula: str) -> set[str]:
    return {*re.findall(r"[A-Za-z_]\w*", formula)}


def _as(kind: str | None) -> str:
    """How the type of a struct's integer is said, unless it has 32 bits."""
    return f" as {kind}" if kind and not is_float(kind) and ELEMENT_TYPES[kind].nbytes != 4 else ""


def element_type(written: str) -> str | None:
    """The element type of a value, or of what a pointer is to; None where its declaration does not tell."""
    written = written.replace("cuda::", "").replace("std::", "")
    pointee = VECTOR.sub("", written.removesuffix("*").strip()) if written.endswith("*") else written
    unsigned = pointee.startswith(("unsigned", "uint"))
    fits = (name for name, element in ELEMENT_TYPES.items() if points_to(f"{pointee}*", element))
    return _BYTES.get(pointee) or next((name for name in fits if name.startswith("u") == unsigned), None)
