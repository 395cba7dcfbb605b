# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The rules of the PTX ISA as small kernels: what each file beside this one holds, as cases.

Only the standard library and NumPy are used, so that a bare machine with a GPU can ask its card.

A file is CUDA C++ with a TOML block in front. `[NAME]` is one case, of the kernel with that name or the one
that `kernel` says. `[[family]]` makes cases from lists of words: `line` is a line of source for each
combination, with the words filled in, appended to the file.
"""

import hashlib
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
#: What an output holds before the launch: a byte that no rule here gives by itself.
POISON = 0xA5
_OPENING = "/*rules\n"

_BITS = {"f16": 16, "bf16": 16, "e4m3x2": 16, "e5m2x2": 16, "f16x2": 32, "bf16x2": 32, "tf32": 32}
_REGISTER = {"u8": "u16", "s8": "s16", "f16": "b16", "bf16": "b16", "tf32": "b32"}
_PACKED = ("f16x2", "bf16x2", "e4m3x2", "e5m2x2")


class Word(str):
    """One word of a family's list; of a PTX type, with what a line of source needs to know of it."""

    @property
    def bits(self) -> int:
        """Size of a value."""
        return _BITS.get(self) or int(self[1:])

    @property
    def args(self) -> str:
        """Three macro arguments: the types of a register and of a load or store, and the bytes of a value."""
        register = f"b{self.bits}" if self in _PACKED else _REGISTER.get(self, str(self))
        moved = str(self) if self in ("u8", "s8") else f"b{self.bits}"
        return f'"{register}", "{moved}", {self.bits // 8}'


@dataclass(frozen=True)
class Case:
    """One launch that tells whether a rule is kept.

    The kernel's parameters are the output, `count` elements of type `result`, then the inputs. `defined`
    masks those that the ISA defines, and `expected` has their bits where it states them. The verdict is "ok",
    "fault", "refused", "undefined" (the kernel breaks a rule, whatever comes out), or "" where only the card
    can tell; by `faults` the executor may report it. Values may be so many `ulps`, or `absolute`, from the
    card's. A `risky` case may fault or hang, and is asked alone.
    """

    name: str
    chapter: str
    rule: str
    file: str
    kernel: str
    result: str
    count: int
    inputs: tuple[bytes, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cooperative: bool
    defined: tuple[bool, ...]
    expected: tuple[int, ...] | None
    verdict: str
    faults: tuple[str, ...]
    ulps: float | None
    absolute: float | None
    risky: bool
    counted: bool

    @property
    def dtype(self) -> np.dtype:
        """Unsigned integers of an output element's size."""
        return np.dtype(f"u{Word(self.result).bits // 8}")

    @property
    def key(self) -> str:
        """Changes whenever the card would have to be asked again: not with what is said of a case."""
        shape = (self.kernel, self.result, self.count, self.grid, self.block, self.shared, self.cooperative)
        text = repr((shape, [hashlib.sha256(content).hexdigest() for content in self.inputs]))
        code = sources()[self.file].partition("*/")[2]
        return hashlib.sha256((code + text).encode()).hexdigest()[:16]


_COMMON = {"chapter", "rule", "kernel", "result", "count", "inputs", "operands", "grid", "block", "shared"}
_COMMON |= {"cooperative", "defined", "expected", "verdict", "faults", "ulps", "absolute", "risky", "counted"}


@cache
def cases() -> dict[str, Case]:
    """Return every case by name."""
    found: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.cu")):
        for case in _read(path)[1]:
            if case.name in found:
                raise ValueError(f"{path.name}: {case.name} also stands in {found[case.name].file}")
            found[case.name] = case
    return found


@cache
def sources() -> dict[str, str]:
    """Return the source to compile by file name: the file and the lines that its families make."""
    return {path.name: _read(path)[0] for path in sorted(FOLDER.glob("*.cu"))}


@cache
def _read(path: Path) -> tuple[str, list[Case]]:
    text = path.read_text()
    header = tomllib.loads(text.partition(_OPENING)[2].partition("*/")[0])
    families = header.pop("family", [])
    shared = {key: header.pop(key) for key in list(header) if not isinstance(header[key], dict)}
    made, lines = [], []
    for name, entry in header.items():
        made.append(_case(path.name, name, shared | entry))
    for family in families:
        for name, line, entry in _members(family):
            made.append(_case(path.name, name, shared | entry))
            lines.append(line)
    return "\n".join([text, *lines, ""]), made


def _members(family: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, line of source and entry of each combination of a family's words."""
    lists = {key: value for key, value in family.items() if key not in _COMMON | {"line", "name", "without"}}
    entry = {key: value for key, value in family.items() if key in _COMMON}
    without = {tuple(words) for words in family.get("without", [])}
    for combination in itertools.product(*lists.values()):
        if combination in without:
            continue
        words = {key: Word(word) for key, word in zip(lists, combination, strict=True)}
        name = re.sub(r"\W+", "_", family["name"].format(**words)).strip("_").replace("__", "_")
        filled = {key: _filled(value, words) for key, value in entry.items()}
        yield name, family["line"].format(name=name, **words), filled


def _filled(value: Any, words: Mapping[str, Word]) -> Any:
    if isinstance(value, str):
        return value.format(**words)
    return [_filled(part, words) for part in value] if isinstance(value, list) else value


def _case(file: str, name: str, entry: Mapping[str, Any]) -> Case:
    if unknown := entry.keys() - _COMMON:
        raise ValueError(f"{file}: {name} has no {', '.join(sorted(unknown))}")
    result = entry.get("result", "u32")
    arrays = [bits(kind, values) for kind, values in entry.get("inputs", [])]
    operands = products(entry["operands"]) if "operands" in entry else []
    count = entry.get("count", len(operands[0]) if operands else 32)
    expected = entry.get("expected")
    if expected is not None:
        expected = tuple(int(value) for value in np.resize(bits(result, expected), count))
    defined = np.zeros(count, bool)
    for first, end in entry.get("defined", [[0, count]]):
        defined[first:end] = True
    return Case(
        name,
        entry["chapter"],
        entry["rule"],
        file,
        entry.get("kernel", name),
        result,
        count,
        tuple(array.tobytes() for array in (*arrays, *operands)),
        _extent(entry.get("grid", 1)),
        _extent(entry.get("block", count if operands else 32)),
        entry.get("shared", 0),
        entry.get("cooperative", False),
        tuple(defined.tolist()),
        expected,
        entry.get("verdict", ""),
        tuple(entry.get("faults", ())),
        entry.get("ulps"),
        entry.get("absolute"),
        entry.get("risky", entry.get("verdict", "ok") not in ("ok", "")),
        entry.get("counted", False),
    )


def _extent(shape: int | list[int]) -> tuple[int, int, int]:
    x, y, z = ([shape] if isinstance(shape, int) else shape) + [1] * (
        2 if isinstance(shape, int) else 3 - len(shape)
    )
    return x, y, z


def bits(kind: str, values: list[Any]) -> np.ndarray:
    """Return the bits of values of a PTX type: floats are values, integers and hexadecimal words are bits."""
    size = Word(kind).bits
    words = []
    for value in values:
        if isinstance(value, float):
            pattern = np.array(value, f"f{size // 8}").view(f"u{size // 8}")
            words.append(int(pattern))
        else:
            words.append((int(value, 16) if isinstance(value, str) else value) & (1 << size) - 1)
    return np.array(words, f"u{size // 8}")


def products(kinds: list[str]) -> list[np.ndarray]:
    """Return arrays that hold every combination of special values of the types, at most 1024 of them."""
    most = {1: 1024, 2: 32, 3: 10}[len(kinds)]
    columns = [special_values(kind)[:most] for kind in kinds]
    return [grid.ravel() for grid in np.meshgrid(*columns, indexing="ij")]


#: The most telling first: a product of three lists takes the first ten of each.
SPECIAL_FLOATS = {
    "f32": "00000000 80000000 3f800000 bf800000 7f800000 ff800000 7fc00000 7f800001 00000001 7f7fffff"
    " ff7fffff 807fffff 00800000 80800000 ffc12345 7fffffff 3f000000 40200000 c0600000 4effffff 4f000000"
    " cf000001 4f7fffff 5f000000 7e800000 7e800001 7f000000 00400000 33800000 3f800001 3effffff 42fe0000"
    " 43000000 47800000 477fe000 477ff000 38800000 387fffff 33000000 b3000001 7f7f8000 7f7f7fff 3fc00000"
    " c0200000 40490fdb 42c80000 c3160000 7ec00000 2f800000 0000ffff 4b000001 4b7fffff 4a800003 5effffff",
    "f64": "0000000000000000 8000000000000000 3ff0000000000000 bff0000000000000 7ff0000000000000"
    " fff0000000000000 7ff8000000000000 7ff0000000000001 0000000000000001 7fefffffffffffff ffefffffffffffff"
    " 800fffffffffffff 0010000000000000 fff8000012345678 3fe0000000000000 4004000000000000 c00c000000000000"
    " 41dfffffffc00000 41dfffffffe00000 41e0000000000000 c1e0000000200000 43e0000000000000 47efffffe0000000"
    " 47effffff0000000 36a0000000000000 3690000000000000 3690000000000001 3810000000000000 380fffffffffffff"
    " 3ff0000010000000 3ff0000010000001 40effc0000000000",
    "f16": "0000 8000 3c00 bc00 7c00 fc00 7e00 7c01 0001 7bff fbff 83ff 0400 8400 fe12 7fff 3800 4100 c300"
    " 3c01 5bff 5c00 d801 6400 77ff 7800 0200 1400",
    "bf16": "0000 8000 3f80 bf80 7f80 ff80 7fc0 7f81 0001 7f7f ff7f 807f 0080 8080 ffc1 7fff 3f00 4020 c060"
    " 3f81 4f00 4eff 5f00 7f00 0040 7e80 3400 4300",
}
_FLOATS = SPECIAL_FLOATS | {
    "f32": SPECIAL_FLOATS["f32"] + " 41300000 c1300000 3f317218 402df854 461c4000 7149f2ca 0da24260"
}
_INTEGERS = (
    0,
    1,
    -1,
    2,
    31,
    32,
    33,
    -(2**31),
    2**31 - 1,
    2**32 - 1,
    7,
    8,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    1000,
)
_INTEGERS += (0x12345678, -77, 0x80808080, 0x7F7F7F7F, 0xFFFF, 0x10000, 0x1000001, 0xFFFFFF, 0x5A5A5A5A, -128)
_WIDE = (
    2**63 - 1,
    2**63,
    2**53 + 1,
    2**62 + 1,
    2**24 + 1,
    2**40 + 2**15,
    0xFFFFFFFFFFFFFBFF,
    0x7FFFFFBFFFFFFFFF,
)


def special_values(kind: str) -> np.ndarray:
    """Return the bits of the values of a type at which rules bite."""
    if kind in _FLOATS:
        return bits(kind, _FLOATS[kind].split())
    if kind in ("f16x2", "bf16x2"):
        halves = special_values(kind[:-2]).astype(np.uint32)
        return halves | np.roll(halves, 5) << 16
    size = Word(kind).bits
    if size == 64:
        values = (*_INTEGERS[:9], *_WIDE, *_INTEGERS[9:])
    else:
        values = _INTEGERS if size == 32 else tuple(dict.fromkeys(v & (1 << size) - 1 for v in _INTEGERS))
    return bits(kind, list(values))
