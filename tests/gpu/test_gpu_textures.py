# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces on the GPU: bit for bit what the executor makes of the same launches."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import texture_sources

from gpuprof.texture_units import Sampling, Texels

EXECUTOR = Path(__file__).parents[1] / "executor"
sys.path[:0] = [str(EXECUTOR), str(EXECUTOR / "textures")]

from executor_harness import compile_both  # noqa: E402
from on_card import ask  # noqa: E402
from on_executor import run  # noqa: E402
from texture_corpus import SOURCE, cases  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu_count")


@pytest.fixture(scope="module")
def card(backend):
    """The open device, and the corpus's kernels on it."""
    from gpuprof.backends.gpu.context import GpuContext, LoadedModule

    return GpuContext(0), LoadedModule(compile_both(SOURCE, (), backend.device.arch)[1], "textures")


@cache
def executed(name: str) -> dict[str, np.ndarray]:
    """What the executor makes of a case."""
    return run(cases()[name])[0]


def different(got: np.ndarray, wanted: np.ndarray) -> str:
    """The first elements that differ in their bits; any NaN is as good as another."""
    wrong = got.view(f"u{got.itemsize}") != wanted.view(f"u{got.itemsize}")
    if got.dtype.kind == "f":
        wrong &= ~(np.isnan(got) & np.isnan(wanted))
    places = np.argwhere(wrong)
    if not len(places):
        return ""
    shown = [(tuple(place.tolist()), got[tuple(place)], wanted[tuple(place)]) for place in places[:6]]
    return f"{len(places)} of {got.size} differ: place, card, executor: {shown}"


@pytest.mark.parametrize("name", cases())
def test_bits_are_the_executors(card, name):
    found = ask(*card, cases()[name])
    assert found.keys() == executed(name).keys()
    for array, got in found.items():
        assert not different(got, executed(name)[array]), array


@pytest.mark.parametrize(
    "texels",
    [
        Texels("2d", (5, 3, 1), "f32"),
        Texels("3d", (5, 3, 4), "u8", 4),
        Texels("1d", (7, 1, 1), "i16", 2),
        Texels("1d_layered", (7, 1, 3), "f16"),
        Texels("2d_layered", (5, 3, 4), "u32"),
        Texels("cube", (4, 4, 6), "f32"),
        Texels("cube_layered", (4, 4, 12), "u16"),
    ],
    ids=lambda texels: texels.kind,
)
def test_a_cuda_array_gives_back_what_it_got(backend, texels):
    from gpuprof.backends.gpu.context import DeviceBuffer
    from gpuprof.backends.gpu.opaque_arguments import CudaArray, DeviceTexture

    count = int(np.prod(texels.extents)) * texels.texel_bytes
    content = np.random.default_rng(3).integers(0, 256, count, dtype=np.uint8)
    memory, array = DeviceBuffer(count), CudaArray(texels, written=True)
    made = [DeviceTexture(texels, sampling, array) for sampling in (Sampling(), None)]
    memory.upload(content)
    array.fill(memory.address)
    memory.fill(0)
    array.drain(memory.address)
    assert np.array_equal(memory.download(np.uint8, count=count), content)
    assert not memory.overrun()
    for one in (*made, array, memory):
        one.free()


@pytest.mark.parametrize("name", ["doubled", "in_place", "near", "grey"])
def test_a_call_is_right_and_timed(name):
    case = getattr(texture_sources, name)(0)
    assert case.ok, case.reason
    assert case.median_us > 0


def test_one_launch_reads_what_another_wrote(tmp_path):
    case = texture_sources.blur(0, tmp_path)
    assert case.ok, case.reason
    assert case.median_us > 0


def test_an_input_that_a_surface_wrote_is_noticed():
    case = texture_sources.call(
        "cudaSurfaceObject_t image, float *out",
        "surf2Dwrite(-1.0f, image, 4 * x, y); out[y * 104 + x] = 1;",
        {"image": texture_sources.IMAGE, "out": None},
        {"out": np.ones_like(texture_sources.IMAGE)},
        surfaces={"image": {}},
        device=0,
        explain=False,
    )
    assert case.outcome == "incorrect"
    assert "wrote to one of its inputs" in case.reason


def test_texels_that_nobody_wrote_are_told():
    body = "if (x != 7) surf2Dwrite(2 * tex2D<float>(image, x + 0.5f, y + 0.5f), out, 4 * x, y);"
    case = texture_sources.doubled(0, body)
    assert case.outcome == "incorrect"
    assert "out[0, 7]" in case.reason
    assert "never written" in case.reason
