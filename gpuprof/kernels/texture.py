# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces: how a kernel's header has arrays passed as such.

To the kernel either is an argument of 8 opaque bytes. Each backend makes its own from the description here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from msgspec import Struct

from gpuprof.errors import CaseSkipped, InputError
from gpuprof.problems.problem import ArraySpec
from gpuprof.tables import TableReader, is_integer
from gpuprof.texture_units import (
    CHANNELS,
    FACES,
    FRACTION_TYPES,
    LARGEST_LINEAR,
    LAYOUTS,
    PERIODIC_MODES,
    PITCH_BYTES,
    TEXEL_TYPES,
    AddressMode,
    Filter,
    Kind,
    Reading,
    Sampling,
    Texels,
)

#: Of arrays that say nothing, the kind by their number of extents.
_BY_EXTENTS: tuple[Kind, ...] = ("1d", "2d", "3d")
_MEMORIES = ("array", "linear")
_MOST_CHANNELS = CHANNELS[-1]
_ROOM = {"array": "a CUDA array", "linear": "linear memory"}
_COMMON = ("array", "kind", "channels")
_FIELDS = {
    "textures": (*_COMMON, "memory", "filter", "address", "normalized", "read", "border"),
    "surfaces": _COMMON,
}


class TextureSpec(Struct, frozen=True):
    """What a header says of one texture or surface; of several channels the array's last extent counts them.

    A linear one reads the array itself, not a CUDA array made of it.
    """

    array: str
    kind: Kind
    channels: int = 1
    linear: bool = False
    sampling: Sampling | None = None

    @property
    def word(self) -> str:
        return _word(self.sampling)


class Texture(Struct, frozen=True):
    """One texture or surface of a launch."""

    argument: str
    array: str
    texels: Texels
    sampling: Sampling | None

    @property
    def word(self) -> str:
        return _word(self.sampling)

    @property
    def c_type(self) -> str:
        return f"cuda{self.word.capitalize()}Object_t"


def read_textures(reader: TableReader, extents: Mapping[str, int]) -> Mapping[str, TextureSpec]:
    """The tables `[textures.NAME]` and `[surfaces.NAME]`."""
    found: dict[str, TextureSpec] = {}
    for table, fields in _FIELDS.items():
        for name, entry in reader.named_sections(table):
            for key in entry.table:
                if key not in fields:
                    raise entry.error(key, f"is no field of {table}; those are {', '.join(fields)}")
            if name in found:
                raise entry.error("array", f"of {name}: it is a texture already")
            found[name] = _read_texture(entry, name, extents, is_surface=table == "surfaces")
    return found


def texture_specs(
    textures: Mapping[str, Mapping[str, Any]],
    surfaces: Mapping[str, Mapping[str, Any]],
    extents: Mapping[str, int],
) -> Mapping[str, TextureSpec]:
    """As `read_textures`, of tables that a program gives."""
    tables = {
        "textures": {name: dict(table) for name, table in textures.items()},
        "surfaces": {name: dict(table) for name, table in surfaces.items()},
    }
    found = read_textures(TableReader(tables, "profile"), extents)
    if complaint := clash_among(found, ()):
        raise InputError(f"{complaint[:1].upper()}{complaint[1:]}.")
    return found


def clash_among(textures: Mapping[str, TextureSpec], arguments: Sequence[str]) -> str:
    """What cannot be, of textures and surfaces together; empty where all is well."""
    views = [(name, spec) for name, spec in textures.items() if not spec.linear]
    for name, spec in views:
        if spec.array != name and spec.array in arguments and spec.array not in textures:
            return f"{spec.array} is passed as an array and as the {spec.word} {name}, which has a copy of it"
        for other, its in views:
            if its.array == spec.array and (its.kind, its.channels) != (spec.kind, spec.channels):
                return f"{name} and {other} see {spec.array} differently: kind and channels must be the same"
    return ""


def make_texture(argument: str, spec: TextureSpec, array: ArraySpec) -> Texture:
    """The texture or surface of a launch.

    Raises:
        CaseSkipped: No card takes it; the message says which limit is broken.
    """
    if array.dtype not in TEXEL_TYPES:
        known = ", ".join(TEXEL_TYPES)
        raise CaseSkipped(f"{array.name} holds {array.dtype}; texels are of {known}.")
    sampling = spec.sampling
    if sampling is not None:
        _check_reading(array, sampling)
    *outer, channels = (*array.shape, 1) if spec.channels == 1 else array.shape
    if channels != spec.channels:
        raise CaseSkipped(
            f"{argument} has {spec.channels} channels; the last extent of {array.name} is {channels}."
        )
    layout = LAYOUTS[spec.kind]
    inner, outermost = outer[::-1][: layout.axes], outer[: len(outer) - layout.axes]
    x, y, z = (*inner, *(1,) * (2 - len(inner)), *outermost, 1)[:3]
    texels = Texels(spec.kind, (x, y, z), array.dtype, spec.channels, spec.linear)
    room = "linear" if spec.linear else "array"
    most = LARGEST_LINEAR[spec.kind] if spec.linear else layout.largest
    if any(extent > limit for extent, limit in zip(texels.extents, most, strict=True)):
        raise CaseSkipped(
            f"{argument} has {x} x {y} x {z} texels; a {spec.kind} {spec.word} in {_ROOM[room]} has at most"
            f" {' x '.join(map(str, most))}."
        )
    if layout.cube and (x != y or z % FACES):
        raise CaseSkipped(f"A cube has {FACES} square faces; {array.name} holds {z} of {x} x {y}.")
    if spec.linear and layout.axes > 1 and texels.row_bytes % PITCH_BYTES:
        raise CaseSkipped(
            f"Rows of a texture in linear memory start at multiples of {PITCH_BYTES} bytes; those of"
            f" {array.name} are {texels.row_bytes} bytes apart.",
            fix='Choose another size, or memory = "array".',
        )
    return Texture(argument, array.name, texels, sampling)


def _word(sampling: Sampling | None) -> str:
    return "surface" if sampling is None else "texture"


def _check_reading(array: ArraySpec, sampling: Sampling) -> None:
    if sampling.read == "normalized" and array.dtype not in FRACTION_TYPES:
        known = ", ".join(sorted(FRACTION_TYPES))
        raise CaseSkipped(f'{array.name} holds {array.dtype}; read = "normalized" is for {known}.')
    if sampling.filter == "linear" and not sampling.gives_floats(array.dtype):
        raise CaseSkipped(
            f"{array.name} holds {array.dtype}, which is filtered only as fractions.",
            fix='Say read = "normalized", or filter = "point".',
        )
    if any(sampling.border) and not sampling.gives_floats(array.dtype):
        raise CaseSkipped(f"{array.name} holds {array.dtype}; read so, what lies beyond its edges is 0.")


def _read_texture(
    reader: TableReader, name: str, extents: Mapping[str, int], *, is_surface: bool
) -> TextureSpec:
    array = reader.take("array", str, name)
    reader.require("array", array, extents)
    if name in extents and name != array:
        raise reader.error("array", f"is {array!r}, and {name} is an array too")
    channels = reader.take("channels", int, 1)
    reader.require("channels", channels, CHANNELS)
    count = extents[array] - (channels > 1)
    default = _BY_EXTENTS[count - 1] if 1 <= count <= len(_BY_EXTENTS) else ""
    kind = cast("Kind", reader.choice("kind", get_args(Kind), default))
    layout = LAYOUTS[kind]
    wanted = layout.axes + (layout.layered or layout.cube)
    if count != wanted:
        also = " and the channels" if channels > 1 else ""
        raise reader.error("kind", f"is {kind!r}, of {wanted} extents{also}; {array} has {extents[array]}")
    linear = not is_surface and reader.choice("memory", _MEMORIES, "array") == "linear"
    if linear and kind not in LARGEST_LINEAR:
        raise reader.error("memory", f"is 'linear', which {kind} textures cannot be in")
    if linear and kind == "1d":
        for key in ("filter", "address", "normalized", "border"):
            if key in reader:
                raise reader.error(
                    key,
                    "does not go with one extent of linear memory",
                    "tex1Dfetch reads texels by their number, and zeros beyond.",
                )
    return TextureSpec(array, kind, channels, linear, None if is_surface else _read_sampling(reader))


def _read_sampling(reader: TableReader) -> Sampling:
    address, normalized = _read_address(reader), reader.take("normalized", bool, False)
    periodic = sorted(PERIODIC_MODES.intersection(address))
    if periodic and not normalized:
        what = f"is {periodic[0]!r}, which needs coordinates from 0 to 1"
        raise reader.error("address", what, "Say normalized = true.")
    border = reader.take("border", list, [])
    if border and "border" not in address:
        raise reader.error("border", "is for edges whose address is 'border'")
    numbers = all(is_integer(part) or isinstance(part, float) for part in border)
    if len(border) > _MOST_CHANNELS or not numbers:
        raise reader.error("border", f"must be up to {_MOST_CHANNELS} numbers, not {border!r}")
    r, g, b, a = (*map(float, border), 0.0, 0.0, 0.0, 0.0)[:_MOST_CHANNELS]
    return Sampling(
        filter=cast("Filter", reader.choice("filter", get_args(Filter), "point")),
        address=address,
        normalized=normalized,
        read=cast("Reading", reader.choice("read", get_args(Reading), "element")),
        border=(r, g, b, a),
    )


def _read_address(reader: TableReader) -> tuple[AddressMode, AddressMode, AddressMode]:
    """One word for all axes, or one each for x, y and z."""
    words = get_args(AddressMode)
    if not isinstance(reader.table.get("address"), list):
        word = cast("AddressMode", reader.choice("address", words, "clamp"))
        return word, word, word
    given = reader.strings("address")
    if not 1 <= len(given) <= 3 or not all(word in words for word in given):
        raise reader.error("address", f"must be one to three of {', '.join(words)}, not {list(given)!r}")
    x, y, z = (cast("AddressMode", word) for word in (*given, "clamp", "clamp")[:3])
    return x, y, z
