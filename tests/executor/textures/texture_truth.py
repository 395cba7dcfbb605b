# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What textures give by CUDA's programming guide ("Texture Fetching"), texel by texel in float64.

Slow and plain on purpose, and nothing of the executor's: a filter's weights along an axis are fractions
rounded to 8 bits. How their products and their sum are rounded the guide does not say: a mean has slack.
"""

import math
from itertools import product

import numpy as np
from texture_corpus import View


def texel(view: View, place: list[int], layer: int) -> np.ndarray:
    """Return the channels of the texel at x, y and z, beyond the edges what stands for it."""
    extents = view.texels.extents[: len(place)]
    unfiltered = view.texels.linear and view.texels.kind == "1d"
    found = []
    for axis, (index, extent) in enumerate(zip(place, extents, strict=True)):
        mode = "border" if unfiltered else view.sampling.address[axis]
        if mode == "clamp":
            index = min(max(index, 0), extent - 1)
        elif mode == "wrap":
            index -= extent * math.floor(index / extent)
        elif mode == "mirror":
            turn, index = divmod(index, extent)
            index = extent - 1 - index if turn % 2 else index
        elif not 0 <= index < extent:
            border = view.sampling.border if not unfiltered else (0.0,) * 4
            return np.array(border[: view.texels.channels])
        found.append(index)
    x, y, z = [*found, 0, 0][:3] if len(found) < 3 else found
    return as_number(view, view.array[layer or z, y, x])


def as_number(view: View, channels: np.ndarray) -> np.ndarray:
    """Return channels as they are read."""
    if view.sampling.read == "normalized":
        largest = np.iinfo(channels.dtype).max
        return np.maximum(np.float32(channels.astype(np.float64) / largest).astype(np.float64), -1)
    return channels.astype(np.float64)


def in_texels(view: View, coordinates: list[float]) -> list[float]:
    """Return coordinates that count texels."""
    return [
        float(c) * extent if view.sampling.normalized else float(c)
        for c, extent in zip(coordinates, view.texels.extents, strict=False)
    ]


def around(view: View, coordinates: list[float], layer: int = 0) -> list[tuple[float, np.ndarray]]:
    """Return the texels that a filter makes a mean of, and their shares of it."""
    first, weight = [], []
    for c in in_texels(view, coordinates):
        base = math.floor(c - 0.5)
        first.append(base)
        weight.append(math.floor((c - 0.5 - base) * 256 + 0.5) / 256)
    found = []
    for corner in product((0, 1), repeat=len(first)):
        share = math.prod(w if side else 1 - w for w, side in zip(weight, corner, strict=True))
        place = [f + side for f, side in zip(first, corner, strict=True)]
        if share:
            found.append((share, texel(view, place, layer)))
    return found


def value(view: View, coordinates: list[float], layer: int = 0) -> np.ndarray:
    """Return what a texture gives at coordinates."""
    layer = min(layer % 2**32, view.texels.extents[2] - 1) if view.texels.layout.layered else layer
    if view.sampling.filter == "point":
        return texel(view, [math.floor(c) for c in in_texels(view, coordinates)], layer)
    with np.errstate(all="ignore"):
        return sum(share * channels for share, channels in around(view, coordinates, layer))


def slack(view: View, coordinates: list[float], layer: int = 0) -> float:
    """Return how far a mean may be from the exact one.

    Products of weights are rounded to 8 bits once for each axis after the first, the result to the precision
    of the texels: fractions to 15 bits or more.
    """
    if view.sampling.filter == "point":
        return 0.0
    sizes = np.abs([channels for _, channels in around(view, coordinates, layer)])
    sizes = np.where(np.isfinite(sizes), sizes, 0)
    grain = {"f32": 2.0**-23, "f16": 2.0**-10}.get(view.texels.dtype, 0) * sizes.max()
    if view.sampling.read == "normalized":
        grain = 1 / 32767
    return float((len(coordinates) - 1) * sizes.sum(axis=0).max() / 512 + grain + 2.0**-126)


def on_cube(view: View, direction: list[float]) -> tuple[np.ndarray, float]:
    """Return what a cube gives in a direction, by the table of the guide's "Cubemap Textures", and slack."""
    x, y, z = direction
    axis = max(range(3), key=lambda i: (abs(direction[i]), -i))
    face = 2 * axis + (direction[axis] < 0)
    s, t = [(-z, -y), (z, -y), (x, z), (x, -z), (x, -y), (-x, -y)][face]
    extent = view.texels.extents[0]
    major = abs(direction[axis])
    place = [(s / major + 1) / 2 * extent, (t / major + 1) / 2 * extent]
    if view.sampling.filter == "point":
        return texel(view, [math.floor(c) for c in place], face), 0.0
    flat = View(view.array[face : face + 1], view.texels, view.sampling)
    return value(flat, place), slack(flat, place)
