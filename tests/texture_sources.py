# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels with textures and surfaces, called as users call them: on the executor, and on a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
from cuda_sources import write_kernel_file

import gpuprof

IMAGE = np.random.default_rng(11).integers(0, 200, (48, 104)).astype(np.float32)
COLOURS = np.random.default_rng(12).integers(0, 256, (48, 104, 4)).astype(np.uint8)
_COORDINATES = "const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y; if (x >= 104) return;"


def call(parameters: str, body: str, args: dict[str, Any], expect: dict[str, Any], **more: Any) -> Any:
    """The case of a kernel `k` of 104 x 48 threads, called once."""
    source = f'extern "C" __global__ void k({parameters})\n{{\n    {_COORDINATES}\n    {body}\n}}\n'
    given = {"grid": (2, 48), "block": 64, "seconds_per_case": 0.02, **more}
    return gpuprof.profile(gpuprof.Source(source, "k"), args=args, expect=expect, **given).cases[0]


_DOUBLED = "surf2Dwrite(2 * tex2D<float>(image, x + 0.5f, y + 0.5f), out, 4 * x, y);"


def doubled(device: Any, body: str = _DOUBLED) -> Any:
    """Reads a texture, writes a surface."""
    return call(
        "cudaTextureObject_t image, cudaSurfaceObject_t out",
        body,
        {"image": IMAGE, "out": None},
        {"out": 2 * IMAGE},
        textures={"image": {}},
        surfaces={"out": {}},
        device=device,
    )


def in_place(device: Any) -> Any:
    """Changes a surface that holds something before."""
    return call(
        "cudaSurfaceObject_t image",
        "surf2Dwrite(1 + surf2Dread<float>(image, 4 * x, y), image, 4 * x, y);",
        {"image": IMAGE},
        {"image": 1 + IMAGE},
        surfaces={"image": {}},
        device=device,
    )


def near(device: Any) -> Any:
    """Reads linear memory through a texture and through its address."""
    return call(
        "cudaTextureObject_t look, const float *image, float *out",
        "out[y * 104 + x] = tex2D<float>(look, x + 1.5f, y + 0.5f) - image[y * 104 + x];",
        {"look": None, "image": IMAGE, "out": None},
        {"out": np.pad(IMAGE, ((0, 0), (0, 1)))[:, 1:] - IMAGE},
        textures={"look": {"array": "image", "memory": "linear", "address": "border"}},
        device=device,
    )


def grey(device: Any) -> Any:
    """Reads bytes of four channels as fractions."""
    return call(
        "cudaTextureObject_t image, float *out",
        "const float4 c = tex2D<float4>(image, x + 0.5f, y + 0.5f); out[y * 104 + x] = c.x + c.y + c.z;",
        {"image": COLOURS, "out": None},
        {"out": (COLOURS[..., :3].sum(axis=2) / 255.0).astype(np.float32)},
        textures={"image": {"channels": 4, "read": "normalized"}},
        absolute=1e-6,
        device=device,
    )


def blur(device: Any, folder: Path) -> Any:
    """A kernel whose header says it all."""
    return gpuprof.profile(write_kernel_file(folder, "blur"), device=device, seconds_per_case=0.02).cases[0]
