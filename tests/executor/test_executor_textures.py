# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces: bit for bit what a card gives, and what is wrong with them.

The kernels and what they read stand in `textures/`, with the answers of cards, which
`benchmarks/texture_answers.py` writes on a machine with a GPU.
"""

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from executor_harness import cuda_program

from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    LaunchRefused,
    bind_texels,
    launch,
    load_program,
)
from gpuprof.texture_units import Sampling, Texels

FOLDER = Path(__file__).parent / "textures"
sys.path.insert(0, str(FOLDER))

from on_executor import run  # noqa: E402
from texture_corpus import cases  # noqa: E402

pytestmark = pytest.mark.deep

ANSWERS = [
    (path.stem.removeprefix("answers-"), name) for path in FOLDER.glob("answers-*.npz") for name in cases()
]
COUNTED = [
    (path.stem.removeprefix("counters-"), name)
    for path in FOLDER.glob("counters-*.json")
    for name in json.loads(path.read_text())["counters"]
]


@functools.cache
def executed(name: str) -> dict[str, np.ndarray]:
    """What the executor makes of a case."""
    return run(cases()[name])[0]


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether two arrays hold the same bits, any NaN being as good as another."""
    if got.dtype.kind == "f":
        return bool(
            ((got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))).all()
        )
    return np.array_equal(got, wanted)


@pytest.mark.parametrize("name", ["plane_linear_border", "by_handle", "surface_copy", "surface_zeros"])
def test_following_undefined_values_changes_nothing(name):
    followed = run(cases()[name], follow_undefined=True)[0]
    assert all(same(got, executed(name)[array]) for array, got in followed.items())


def test_textures_are_no_global_loads():
    counters = run(cases()["convolve_clamp"])[1].counters
    assert counters["global_load_requests"] == 0
    assert counters["global_store_requests"] == 24


@pytest.mark.parametrize(("card", "name"), ANSWERS)
def test_bits_are_the_cards(card, name):
    with np.load(FOLDER / f"answers-{card}.npz") as answers:
        for array, got in executed(name).items():
            assert same(got, answers[f"{name}/{array}"].reshape(got.shape)), array


@pytest.mark.parametrize(("card", "name"), COUNTED)
def test_global_accesses_beside_them_are_counted_as_on_the_card(card, name):
    told = json.loads((FOLDER / f"counters-{card}.json").read_text())["counters"][name]
    counters = run(cases()[name])[1].counters
    for kind, metric in (("load", "ld"), ("store", "st")):
        wanted = told.get(f"l1tex__t_requests_pipe_lsu_mem_global_op_{metric}.sum", 0)
        assert counters[f"global_{kind}_requests"] == wanted


SURFACE = """
extern "C" __global__ void k(float *out, cudaSurfaceObject_t s, cudaTextureObject_t t)
{
    const int i = threadIdx.x;
    BODY;
}
"""


def surface_fault(body: str, texels: Texels | None = None) -> KernelFault:
    """The fault of a kernel that has a surface and a texture of the same 32 x 2 floats."""
    memory = GlobalMemory()
    out, content = (memory.allocate(np.zeros(64, np.float32), name) for name in ("out", "image"))
    texels = texels or Texels("2d", (32, 2, 1), "f32")
    handles = bind_texels(memory, content, texels), bind_texels(memory, content, texels, Sampling())
    with pytest.raises(KernelFault) as caught:
        launch(cuda_program(SURFACE.replace("BODY", body)), (1, 1, 1), (32, 1, 1), [out, *handles], memory)
    return caught.value


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("surf2Dwrite(1.0f, s, i * 4, 2)", FaultKind.OUT_OF_BOUNDS, "y = 2, z = 0 of the surface image"),
        ("out[i] = surf2Dread<float>(s, i * 8, 1)", FaultKind.OUT_OF_BOUNDS, "reads 4 bytes at x = 128"),
        ("surf2Dwrite(1.0f, s, i * 2, 1)", FaultKind.MISALIGNED, "no multiple of 4"),
        ("out[i] = tex2D<float>(s, i, 0)", FaultKind.OUT_OF_BOUNDS, "a surface, not a texture"),
        ("out[i] = surf2Dread<float>(t, i, 0)", FaultKind.OUT_OF_BOUNDS, "a texture, not a surface"),
        ("out[i] = tex2D<float>(t + 5, i, 0)", FaultKind.OUT_OF_BOUNDS, "neither a texture nor a surface"),
        ("out[i] = tex3D<float>(t, i, 0, 0)", FaultKind.OUT_OF_BOUNDS, "a 2d texture, not a 3d one"),
        (
            "surf2Dwrite(1.0f, s, i * 4, 1); __syncthreads(); out[i] = tex2D<float>(t, 31 - i, 1)",
            FaultKind.GLOBAL_RACE,
            "whose cache does not see",
        ),
        ("surf2Dwrite((float)i, s, 0, 1)", FaultKind.GLOBAL_RACE, "image"),
        (
            "surf2Dwrite(1.0f, s, i * 4, 1); out[i] = surf2Dread<float>(s, 124 - i * 4, 1)",
            FaultKind.GLOBAL_RACE,
            "",
        ),
    ],
)
def test_faults_name_what_was_done(body, kind, words):
    fault = surface_fault(body)
    assert fault.kind is kind
    assert words in str(fault)
    assert fault.source_line == 5


def test_texels_must_fill_their_array():
    memory = GlobalMemory()
    image = memory.allocate(np.zeros(60, np.float32), "image")
    with pytest.raises(LaunchRefused, match="have 256 bytes; image has 240"):
        bind_texels(memory, image, Texels("2d", (32, 2, 1), "f32"), Sampling())


def test_residence_is_told():
    ptx = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_0, .param .u64 k_1)
{
.reg .b64 p, t; .reg .f32 f<4>; .reg .pred q; .reg .b32 n;
ld.param.u64 p, [k_0];
ld.param.u64 t, [k_1];
tex.1d.v4.f32.s32 {f0, f1, f2, f3}|q, [t, {3}];
selp.u32 n, 7, 0, q;
st.global.u32 [p], n;
ret;
}
"""
    memory = GlobalMemory()
    out, line = (
        memory.allocate(np.zeros(1, np.uint32), "out"),
        memory.allocate(np.ones(8, np.float32), "line"),
    )
    handle = bind_texels(memory, line, Texels("1d", (8, 1, 1), "f32", 1, True), Sampling())
    launch(load_program(ptx, "k"), (1, 1, 1), (1, 1, 1), [out, handle], memory)
    assert out.array()[0] == 7
