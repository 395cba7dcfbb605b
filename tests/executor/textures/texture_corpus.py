# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launches that ask what textures give and what surfaces keep.

Coordinates of most are multiples of 1/256 of a texel and texels are small whole numbers, so that only weights
can differ. The probes ask for the rest: how a coordinate becomes a weight, and how a mean is rounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuprof.texture_units import AddressMode, Kind, Sampling, Texels

#: What an output holds before the launch.
POISON = 0xA5
SOURCE = (Path(__file__).parent / "textures.cu").read_text()
_CODES = {
    **{"float32": "f32", "float16": "f16"},
    **{f"{name}int{bits}": f"{name[:1] or 'i'}{bits}" for name in ("", "u") for bits in (8, 16, 32)},
}


@dataclass(frozen=True, eq=False)
class View:
    """A texture, or a surface where there is no sampling.

    The array has shape (z or layers, y, x, channels); `of` is, for a second view of the same texels, the
    number of the first argument that has them.
    """

    array: NDArray[Any]
    texels: Texels
    sampling: Sampling | None
    of: int | None = None


@dataclass(frozen=True, eq=False)
class Case:
    """One launch.

    No two of those that are `counted` have one kernel.
    """

    name: str
    kernel: str
    output: NDArray[Any]
    arguments: tuple[View | NDArray[Any], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    counted: bool = False


def view(
    array: NDArray[Any],
    kind: Kind,
    *,
    address: str | tuple[AddressMode, AddressMode, AddressMode] = "clamp",
    surface: bool = False,
    linear: bool = False,
    **sampling: Any,
) -> View:
    """A texture of an array of shape (z or layers, y, x, channels)."""
    depth, height, width, channels = array.shape
    texels = Texels(kind, (width, height, depth), _CODES[array.dtype.name], channels, linear)
    modes: Any = (address,) * 3 if isinstance(address, str) else address
    return View(array, texels, None if surface else Sampling(address=modes, **sampling))


def _random(*parts: Any) -> np.random.Generator:
    return np.random.default_rng([7, *str(parts).encode()])


def _whole(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Small whole numbers, the same for every shape."""
    return _random(shape).integers(0, 120, shape).astype(dtype)


def _real(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Numbers of any size between 0.001 and 1,000, of both signs."""
    rng = _random("real", shape)
    return (rng.choice([-1, 1], shape) * 10 ** rng.uniform(-3, 3, shape)).astype(dtype)


def _steps(extent: int, count: int, step: int, *, salt: str, beyond: float = 1.5) -> NDArray[np.float32]:
    """Coordinates in texels, in and beyond the edges, at multiples of 1/step."""
    rng = _random("steps", extent, salt)
    places = rng.integers(int(-beyond * step), int((extent + beyond) * step), count)
    return (places / step).astype(np.float32)


def _of(name: str, kernel: str, output: Any, *arguments: Any, threads: int = 256, **more: Any) -> Case:
    shape = (threads, output[1]) if isinstance(output, tuple) else (threads,)
    dtype = output[0] if isinstance(output, tuple) else output
    block = more.pop("block", (min(threads, 256), 1, 1))
    grid = more.pop("grid", (max(1, threads // block[0]), 1, 1))
    return Case(name, kernel, np.zeros(shape, dtype), arguments, grid, block, **more)


F, U, INT = np.float32, np.uint32, np.int32
_MODES = ("clamp", "border", "wrap", "mirror")


def _fetches() -> Iterator[Case]:
    index = _random("fetch").integers(-8, 110, 256).astype(INT)
    inside = _random("inside").integers(0, 100, 256).astype(INT)
    yield _of("fetch", "fetch_float", F, view(_real(1, 1, 100, 1), "1d", linear=True), inside, counted=True)
    yield _of("fetch_beyond", "fetch_float", F, view(_real(1, 1, 100, 1), "1d", linear=True), index)
    yield _of("fetch_vectors", "fetch_float4", (F, 4), view(_real(1, 1, 100, 4), "1d", linear=True), index)
    colours = _random("colours").integers(0, 256, (1, 1, 100, 4)).astype(np.uint8)
    fractions = view(colours, "1d", linear=True, read="normalized")
    yield _of("fetch_fractions", "fetch_float4", (F, 4), fractions, index)
    shorts = _random("shorts").integers(-(2**15), 2**15, (1, 1, 100, 2)).astype(np.int16)
    yield _of("fetch_shorts", "fetch_short2", (INT, 2), view(shorts, "1d", linear=True), index)


def _planes() -> Iterator[Case]:
    x, y = (_steps(extent, 256, 256, salt=f"plane {extent}") for extent in (16, 8))
    image = _whole(1, 8, 16, 1)
    for mode in _MODES:
        periodic = mode in ("wrap", "mirror")
        for normalized in (False, True) if not periodic else (True,):
            u, v = (x / F(16), y / F(8)) if normalized else (x, y)
            for kind in ("point", "linear"):
                how = f"{kind}_{mode}{'_normalized' if normalized else ''}"
                texture = view(image, "2d", address=mode, filter=kind, normalized=normalized)
                yield _of(f"plane_{how}", "plane_float", F, texture, u, v, counted=how == "linear_clamp")
    mixed = view(image, "2d", address=("wrap", "border", "clamp"), filter="linear", normalized=True)
    yield _of("plane_mixed_modes", "plane_float", F, mixed, x / F(16), y / F(8))
    coloured = view(_whole(1, 8, 16, 4), "2d", address="border", filter="linear", border=(1.0, 2.0, 3.0, 4.0))
    yield _of("plane_border_colour", "plane_float4", (F, 4), coloured, x, y, counted=True)
    pitch = view(image, "2d", linear=True, filter="linear")
    yield _of("plane_pitch", "plane_float", F, pitch, x, y)
    yield _of("plane_pitch_border", "plane_float", F, view(image, "2d", linear=True, address="border"), x, y)
    yield _of("plane_level", "plane_level", F, view(image, "2d", filter="linear"), x, y)
    yield _of("plane_missing_channels", "plane_all_channels", (F, 4), view(image, "2d"), x, y)
    two = view(_whole(1, 8, 16, 2), "2d")
    yield _of("plane_two_of_four_channels", "plane_all_channels", (F, 4), two, x, y)
    across, down = (_random("ints", n).integers(0, n, 256).astype(INT) for n in (16, 8))
    yield _of("plane_by_integers", "plane_by_integers", F, view(image, "2d"), across, down)


def _types() -> Iterator[Case]:
    x, y = (_steps(extent, 256, 1, salt=f"types {extent}") + F(0.5) for extent in (16, 8))
    rng = _random("types")
    bytes_ = rng.integers(0, 256, (1, 8, 16, 4)).astype(np.uint8)
    yield _of("bytes", "plane_uchar4", (U, 4), view(bytes_, "2d"), x, y, counted=True)
    yield _of("bytes_fractions", "plane_float4", (F, 4), view(bytes_, "2d", read="normalized"), x, y)
    for dtype in (np.int8, np.uint16, np.int16):
        info = np.iinfo(dtype)
        some = rng.integers(info.min, info.max + 1, (1, 8, 16, 1)).astype(dtype)
        some[0, 0, :2, 0] = info.min, info.max
        fractions = view(some, "2d", read="normalized")
        yield _of(f"{some.dtype.name}_fractions", "plane_float", F, fractions, x, y)
        yield _of(f"{some.dtype.name}_elements", "plane_int", INT, view(some, "2d"), x, y)
    whole = rng.integers(-(2**31), 2**31, (1, 8, 16, 1)).astype(INT)
    yield _of("int32_elements", "plane_int", INT, view(whole, "2d"), x, y)
    yield _of("halves", "plane_float", F, view(_real(1, 8, 16, 1, dtype=np.float16), "2d"), x, y)
    odd = _real(1, 8, 16, 1)
    odd.reshape(-1)[:6] = np.inf, -np.inf, np.nan, -0.0, 1e-40, 3e38
    yield _of("special_values", "plane_float", F, view(odd, "2d"), x, y)


def _others() -> Iterator[Case]:
    x, y, z = (_steps(extent, 256, 8, salt=f"other {extent}") for extent in (16, 8, 4))
    line, volume = _whole(1, 1, 16, 1), _whole(4, 8, 16, 1)
    for kind in ("point", "linear"):
        yield _of(f"line_{kind}", "line_float", F, view(line, "1d", filter=kind), x)
        for mode in ("clamp", "border"):
            boxes = view(volume, "3d", filter=kind, address=mode)
            yield _of(f"volume_{kind}_{mode}", "volume_float", F, boxes, x, y, z)
    wrapped = view(volume, "3d", filter="linear", address="wrap", normalized=True)
    yield _of("volume_wrap", "volume_float", F, wrapped, x / F(16), y / F(8), z / F(4))
    layer = _random("layer").integers(0, 4, 256).astype(INT)
    beyond = _random("beyond").integers(-2, 7, 256).astype(INT)
    lines, planes = _whole(4, 1, 16, 1), _whole(4, 8, 16, 1)
    for name, chosen in (("", layer), ("_beyond", beyond)):
        layers = view(lines, "1d_layered", filter="linear")
        yield _of(f"line_layers{name}", "line_layers", F, layers, x, chosen)
        layers = view(planes, "2d_layered", filter="linear")
        yield _of(f"plane_layers{name}", "plane_layers", F, layers, x, y, chosen)
    tables = view(_whole(4, 1, 16, 4), "1d_layered", filter="linear", normalized=True)
    yield _of("look_up", "look_up", (F, 4), tables, x / F(16), layer)
    faces = view(_whole(6, 4, 4, 1), "cube")
    directions = _random("cube").integers(-15, 16, (3, 256))
    # Away from edges of the cube and of texels, so that no division decides.
    major = np.arange(256) % 3
    directions[major, np.arange(256)] = np.where(np.arange(256) % 2, 16, -16)
    other = directions != np.where(np.arange(256) % 2, 16, -16)
    directions = np.where(other & (directions % 8 == 0), directions + 1, directions)
    yield _of("cube", "cube_float", F, faces, *directions.astype(F))
    for component, name in enumerate(("gather_float", "gather_second")):
        plane = view(_whole(1, 8, 16, 2), "2d")
        middle = _steps(16, 256, 8, salt="gather") + F(1 / 16), _steps(8, 256, 8, salt="gather") + F(1 / 16)
        yield _of(f"gather_{component}", name, (F, 4), plane, *middle)
    both = view(_whole(1, 8, 16, 1), "2d"), view(_whole(1, 8, 8, 1), "2d")
    yield _of("by_handle", "by_handle", F, *both, _random("which").integers(0, 2, 256).astype(INT))


def _images() -> Iterator[Case]:
    """Kernels as people write them."""
    image = _whole(1, 6, 8, 1)
    grid = {"threads": 32 * 24, "block": (32, 1, 1), "grid": (24, 1, 1)}
    scaled = view(image, "2d", filter="linear", normalized=True)
    yield _of("resize", "resize", F, scaled, counted=True, **grid)
    for mode in ("clamp", "border"):
        yield _of(f"convolve_{mode}", "convolve", F, view(_whole(1, 24, 32, 1), "2d", address=mode), **grid)
    yield _of("slice", "slice", F, view(_whole(16, 16, 16, 1), "3d", filter="linear"), **grid)


def _surfaces() -> Iterator[Case]:
    grid = {"threads": 256, "block": (32, 1, 1), "grid": (8, 1, 1)}

    def surface(array: NDArray[Any], kind: Kind) -> View:
        return view(array, kind, surface=True)

    plane, blank = _real(1, 8, 32, 1), np.zeros((1, 8, 32, 1), F)
    yield _of(
        "surface_copy", "surface_copy", F, surface(plane, "2d"), surface(blank, "2d"), counted=True, **grid
    )
    colours = _random("surface").integers(0, 256, (1, 8, 32, 4)).astype(np.uint8)
    pair = surface(colours, "2d"), surface(np.zeros_like(colours), "2d")
    yield _of("surface_colours", "surface_colours", (U, 4), *pair, **grid)
    x, y = (_random("sx", n).integers(-5, n + 5, 256).astype(INT) for n in (32, 8))
    yield _of("surface_clamped", "surface_clamped", F, surface(plane, "2d"), x, y)
    cells = np.arange(256)
    apart = ((cells % 40 - 4).astype(INT), (cells // 40 - 1).astype(INT))
    yield _of("surface_zeros", "surface_zeros", F, surface(plane, "2d"), surface(blank, "2d"), *apart)
    boxes = {"threads": 256, "block": (64, 1, 1), "grid": (4, 1, 1)}
    yield _of("surface_volume", "surface_volume", F, surface(np.zeros((4, 8, 8, 1), F), "3d"), **boxes)
    yield _of("surface_layers", "surface_layers", F, surface(_whole(4, 8, 8, 1), "2d_layered"), **boxes)
    yield _of("surface_line", "surface_line", (F, 4), surface(_real(1, 1, 256, 4), "1d"))
    yield _of("surface_pieces", "surface_pieces", U, surface(_real(1, 16, 8, 2), "2d"))
    sums = _random("sums").integers(0, 32, 256).astype(INT)
    yield _of("surface_sums", "surface_sums", U, surface(np.zeros((1, 8, 32, 1), U), "2d"), sums)
    asked = view(_whole(1, 8, 16, 1), "2d"), surface(_whole(4, 8, 32, 1), "3d")
    yield _of("sizes", "sizes", U, *asked, threads=32)


def _probes() -> Iterator[Case]:
    """What the documentation leaves open; each is asked at 4,096 places."""
    count = 4096
    rng = _random("probes")
    more: dict[str, Any] = {"threads": count}
    ends = np.array([0, 1, 0, 0], F).reshape(1, 1, 4, 1)
    fine = (F(0.5) + np.arange(count, dtype=F) / F(4096)).astype(F)
    yield _of("probe_weight", "line_float", F, view(ends, "1d", filter="linear"), fine, **more)
    ones = np.array([1, 0, 0, 0], F).reshape(1, 1, 4, 1)
    yield _of("probe_other_weight", "line_float", F, view(ones, "1d", filter="linear"), fine, **more)
    halves = (F(0.5) + (np.arange(count) + 0.5) / 512 / 8).astype(F)
    yield _of("probe_weight_halves", "line_float", F, view(ends, "1d", filter="linear"), halves, **more)
    numbered = np.arange(37, dtype=F).reshape(1, 1, 37, 1)
    units = (np.arange(count, dtype=np.float64) / count).astype(F)
    for kind in ("point", "linear"):
        texture = view(numbered, "1d", filter=kind, normalized=True)
        yield _of(f"probe_normalized_{kind}", "line_float", F, texture, units, **more)
    near = (rng.integers(1, 37, count) + rng.integers(-8, 9, count) * 2.0**-12).astype(F)
    yield _of("probe_point_edge", "line_float", F, view(numbered, "1d"), near, **more)
    nearer = np.nextafter(rng.integers(1, 37, count).astype(F), rng.choice([-1, 99], count).astype(F))
    yield _of("probe_point_ulp", "line_float", F, view(numbered, "1d"), nearer.astype(F), **more)
    far = (rng.choice([-1, 1], count) * 10 ** rng.uniform(0, 38, count)).astype(F)
    far[:4] = np.nan, np.inf, -np.inf, 0
    for mode in _MODES:
        texture = view(numbered, "1d", address=mode, normalized=True)
        yield _of(f"probe_far_{mode}", "line_float", F, texture, far, **more)
    x, y, z = (rng.uniform(-1, extent + 1, count).astype(F) for extent in (16, 8, 4))
    yield _of("probe_line", "line_float", F, view(_real(1, 1, 16, 1), "1d", filter="linear"), x, **more)
    yield _of("probe_plane", "plane_float", F, view(_real(1, 8, 16, 1), "2d", filter="linear"), x, y, **more)
    volume = view(_real(4, 8, 16, 1), "3d", filter="linear")
    yield _of("probe_volume", "volume_float", F, volume, x, y, z, **more)
    half = view(_real(1, 8, 16, 1, dtype=np.float16), "2d", filter="linear")
    yield _of("probe_half", "plane_float", F, half, x, y, **more)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        info = np.iinfo(dtype)
        some = rng.integers(info.min, info.max + 1, (1, 8, 16, 1)).astype(dtype)
        texture = view(some, "2d", filter="linear", read="normalized")
        yield _of(f"probe_{some.dtype.name}", "plane_float", F, texture, x, y, **more)
    everything = np.arange(65536).reshape(1, 256, 256, 1).astype(np.uint16)
    places = rng.integers(0, 256, (2, count)).astype(F) + F(0.5)
    texture = view(everything, "2d", read="normalized")
    yield _of("probe_fractions", "plane_float", F, texture, *places, **more)
    odd = _real(1, 8, 16, 1)
    odd.reshape(-1)[::5] = np.resize(np.array([np.inf, np.nan, -0.0, 1e-40, 3e38], F), 26)
    yield _of("probe_special", "plane_float", F, view(odd, "2d", filter="linear"), x, y, **more)
    directions = rng.normal(size=(3, count)).astype(F)
    for kind in ("point", "linear"):
        faces = view(_whole(6, 4, 4, 1), "cube", filter=kind)
        yield _of(f"probe_cube_{kind}", "cube_float", F, faces, *directions, **more)
    plane = view(_whole(1, 8, 16, 1), "2d")
    yield _of("probe_gather", "gather_float", (F, 4), plane, x, y, **more)
    across, down = (rng.integers(-4, n + 4, count).astype(INT) for n in (16, 8))
    for mode in ("clamp", "border"):
        plane = view(_whole(1, 8, 16, 1), "2d", address=mode)
        yield _of(f"probe_integers_{mode}", "plane_by_integers", F, plane, across, down, **more)


@cache
def cases() -> dict[str, Case]:
    """All launches by name."""
    parts = (_fetches, _planes, _types, _others, _images, _surfaces, _probes)
    found = [case for part in parts for case in part()]
    names = [case.name for case in found]
    assert len(names) == len({*names})
    return {case.name: case for case in found}
