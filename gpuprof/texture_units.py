# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What CUDA says of textures and surfaces: words and limits that headers, backends and the executor share.

They stand by themselves so that reading a kernel's header does not load the executor.
"""

from typing import Literal

from msgspec import Struct, field

Kind = Literal["1d", "2d", "3d", "1d_layered", "2d_layered", "cube", "cube_layered"]
Filter = Literal["point", "linear"]
AddressMode = Literal["clamp", "border", "wrap", "mirror"]
Reading = Literal["element", "normalized"]

#: Address modes that take the fraction of a coordinate, and so need one from 0 to 1.
PERIODIC_MODES: frozenset[str] = frozenset({"wrap", "mirror"})
#: Types of a texel's channels, with their bytes.
TEXEL_TYPES = {"f32": 4, "f16": 2, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4}
#: Of these, integers that may be read as fractions of the largest.
FRACTION_TYPES = frozenset({"u8", "i8", "u16", "i16"})
#: How many channels a texel may have.
CHANNELS = (1, 2, 4)
#: Squares of a cube.
FACES = 6


class Layout(Struct, frozen=True):
    """What the extents of a kind of texture mean.

    `axes` are coordinates of a texel within its layer; layers are never filtered across; `largest` holds for
    cards since sm_80.
    """

    axes: int
    layered: bool
    cube: bool
    largest: tuple[int, int, int]


LAYOUTS: dict[str, Layout] = {
    "1d": Layout(1, False, False, (131072, 1, 1)),
    "2d": Layout(2, False, False, (131072, 65536, 1)),
    "3d": Layout(3, False, False, (16384, 16384, 16384)),
    "1d_layered": Layout(1, True, False, (32768, 1, 2048)),
    "2d_layered": Layout(2, True, False, (32768, 32768, 2048)),
    "cube": Layout(2, False, True, (32768, 32768, FACES)),
    "cube_layered": Layout(2, True, True, (32768, 32768, 2046)),
}
#: The same where texels lie in linear memory, which only these kinds can.
LARGEST_LINEAR = {"1d": (1 << 28, 1, 1), "2d": (131072, 65000, 1)}
#: Bytes that rows of a two-dimensional texture in linear memory are a multiple of.
PITCH_BYTES = 32


class Texels(Struct, frozen=True):
    """How texels lie in an array: along x, then y, then z or the layers; the channels of each together.

    Args:
        kind: Which coordinates a texel has.
        extents: Texels along x and y, and along z or layers; 1 along what it lacks.
        linear: Whether they lie in the array itself, not in a CUDA array made of it.
    """

    kind: Kind
    extents: tuple[int, int, int]
    dtype: str
    channels: int = 1
    linear: bool = False

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.kind]

    @property
    def item_bytes(self) -> int:
        return TEXEL_TYPES[self.dtype]

    @property
    def texel_bytes(self) -> int:
        return self.item_bytes * self.channels

    @property
    def row_bytes(self) -> int:
        return self.extents[0] * self.texel_bytes


class Sampling(Struct, frozen=True):
    """How a texture gives a value for coordinates.

    Args:
        filter: `point` for the texel that coordinates lie in, `linear` for a mean of those around them.
        address: What stands for texels beyond the edges, along x, y and z.
        normalized: Whether coordinates go from 0 to 1 instead of counting texels.
        read: `normalized` for integers as fractions of their largest, `element` for texels as they are.
        border: What lies beyond the edges where `address` is `border`, by channel.
    """

    filter: Filter = "point"
    address: tuple[AddressMode, AddressMode, AddressMode] = ("clamp", "clamp", "clamp")
    normalized: bool = False
    read: Reading = "element"
    border: tuple[float, float, float, float] = field(default=(0.0, 0.0, 0.0, 0.0))

    def gives_floats(self, dtype: str) -> bool:
        """Whether what it gives of texels of a type are floats."""
        return dtype.startswith("f") or self.read == "normalized"
