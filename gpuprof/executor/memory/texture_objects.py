# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces: views of a buffer that kernels name by a handle of 64 bits."""

from math import prod
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from gpuprof.executor.faults import LaunchRefused
from gpuprof.executor.memory.global_memory import Buffer, GlobalMemory
from gpuprof.texture_units import Sampling, Texels


class TexelView(Struct, frozen=True, eq=False):
    """A buffer of texels: a texture, which says how values are made of them; or else a surface."""

    buffer: Buffer
    texels: Texels
    sampling: Sampling | None

    def content(self) -> NDArray[Any]:
        """Return the texels as they are now, each with its channels: shape (texels, channels)."""
        texels = self.texels
        count = prod(texels.extents) * texels.channels
        bits = self.buffer.view(texels.item_bytes)[:count]
        return bits.view(f"{texels.dtype[0]}{texels.item_bytes}").reshape(-1, texels.channels)


def bind_texels(
    memory: GlobalMemory, buffer: Buffer, texels: Texels, sampling: Sampling | None = None
) -> int:
    """Make a texture of a buffer, or a surface without sampling; return the handle that kernels get.

    Raises:
        LaunchRefused: The texels do not fill the buffer.
    """
    wanted = prod(texels.extents) * texels.texel_bytes
    if wanted != buffer.size:
        raise LaunchRefused(
            f"{texels.extents} texels of {texels.texel_bytes} bytes have {wanted} bytes; {buffer.name} has"
            f" {buffer.size}."
        )
    handle = len(memory.objects) + 1
    memory.objects[handle] = TexelView(buffer, texels, sampling)
    return handle
