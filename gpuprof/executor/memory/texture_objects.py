# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces: views of a buffer that kernels name by a handle of 64 bits."""

from dataclasses import dataclass
from math import prod
from typing import Any

from numpy.typing import NDArray

from gpuprof.executor.faults import LaunchRefused
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.texture_units import Sampling, Texels


@dataclass(frozen=True, eq=False)
class SurfaceObject:
    """A surface: a buffer of texels that kernels read and write by place."""

    buffer: Buffer
    texels: Texels


@dataclass(frozen=True, eq=False)
class TextureObject:
    """A texture: a buffer of texels, and how values are made of them."""

    buffer: Buffer
    texels: Texels
    sampling: Sampling

    def content(self) -> NDArray[Any]:
        """Return the texels as they are now, each with its channels: shape (texels, channels)."""
        texels = self.texels
        count = prod(texels.extents) * texels.channels
        bits = self.buffer.view(texels.item_bytes)[:count]
        return bits.view(f"{texels.dtype[0]}{texels.item_bytes}").reshape(-1, texels.channels)


def bind_texture(memory: GlobalMemory, buffer: Buffer, texels: Texels, sampling: Sampling) -> int:
    """Make a texture of a buffer, and return the handle that kernels get.

    Raises:
        LaunchRefused: The texels do not fill the buffer.
    """
    return _bound(memory, TextureObject(buffer, texels, sampling))


def bind_surface(memory: GlobalMemory, buffer: Buffer, texels: Texels) -> int:
    """Make a surface of a buffer, and return the handle that kernels get.

    Raises:
        LaunchRefused: The texels do not fill the buffer.
    """
    return _bound(memory, SurfaceObject(buffer, texels))


def _bound(memory: GlobalMemory, made: TextureObject | SurfaceObject) -> int:
    texels, buffer = made.texels, made.buffer
    wanted = prod(texels.extents) * texels.texel_bytes
    if wanted != buffer.size:
        raise LaunchRefused(
            f"{texels.extents} texels of {texels.texel_bytes} bytes have {wanted} bytes; {buffer.name} has"
            f" {buffer.size}."
        )
    handle = len(memory.objects) + 1
    memory.objects[handle] = made
    return handle
