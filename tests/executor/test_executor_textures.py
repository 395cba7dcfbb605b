# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces: what CUDA's guide says, and bit for bit what a card gives.

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
    bind_surface,
    bind_texture,
    launch,
    load_program,
)
from gpuprof.texture_units import Sampling, Texels

FOLDER = Path(__file__).parent / "textures"
sys.path.insert(0, str(FOLDER))

from on_executor import run  # noqa: E402
from texture_corpus import cases  # noqa: E402
from texture_truth import on_cube, slack, value  # noqa: E402

pytestmark = pytest.mark.deep

#: How many of a case's coordinates are reckoned again texel by texel.
_LOOKED_AT = 256
_PLANES = ("plane_float", "plane_float4", "plane_uchar4", "plane_int", "plane_level", "line_float")
#: The guide does not say what infinity means.
PLAIN = [
    name
    for name, case in cases().items()
    if case.kernel in (*_PLANES, "volume_float") and not name.startswith("probe_far")
]
LAYERED = [
    name for name, case in cases().items() if case.kernel in ("line_layers", "plane_layers", "look_up")
]
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


def rounded(values: list[np.ndarray], like: np.ndarray) -> np.ndarray:
    """What a kernel stores of values reckoned in float64."""
    with np.errstate(over="ignore"):
        return (
            np.array(values)
            .reshape(len(values), -1)[:, : like[0].size]
            .astype(like.dtype)
            .reshape(len(values), *like.shape[1:])
        )


def near(got: np.ndarray, wanted: list[np.ndarray], slacks: list[float]) -> bool:
    """Whether values are those of the guide, or as near to them as its words ask."""
    exact = rounded(wanted, got[:1])
    if not any(slacks):
        return same(got, exact)
    got, exact = (values.reshape(len(slacks), -1) for values in (got, exact))
    with np.errstate(invalid="ignore"):
        close = np.abs(got.astype(np.float64) - exact) <= np.array(slacks)[:, None]
    return bool((close | (got == exact) | (np.isnan(got) & np.isnan(exact))).all())


@pytest.mark.parametrize("name", PLAIN)
def test_a_texture_gives_what_the_guide_says(name):
    case, out = cases()[name], executed(name)["out"]
    texture, *coordinates = case.arguments
    places = [list(place) for place in zip(*(c[:_LOOKED_AT] for c in coordinates), strict=True)]
    wanted, slacks = ([ask(texture, place) for place in places] for ask in (value, slack))
    assert near(out[:_LOOKED_AT], wanted, slacks)
    assert len(np.unique(out)) > 8


@pytest.mark.parametrize("name", LAYERED)
def test_layers_are_not_filtered_across(name):
    case, out = cases()[name], executed(name)["out"]
    texture, *coordinates, layer = case.arguments
    places = zip(*coordinates, strict=True)
    wanted = [value(texture, list(place), int(one)) for place, one in zip(places, layer, strict=True)]
    assert same(out, rounded(wanted, out[:1]))


@pytest.mark.parametrize("name", ["cube", "probe_cube_point", "probe_cube_linear"])
def test_a_cube_is_read_in_directions(name):
    case, out = cases()[name], executed(name)["out"]
    texture, *directions = case.arguments
    places = zip(*(c[:_LOOKED_AT] for c in directions), strict=True)
    found = [on_cube(texture, [float(c) for c in place]) for place in places]
    assert near(out[:_LOOKED_AT], [wanted for wanted, _ in found], [allowed for _, allowed in found])
    assert len(np.unique(out)) > 40


@pytest.mark.parametrize(
    "name", ["fetch", "fetch_beyond", "fetch_vectors", "fetch_fractions", "fetch_shorts"]
)
def test_linear_memory_is_read_by_number_and_holds_zeros_beyond(name):
    texture, index = cases()[name].arguments
    out = executed(name)["out"]
    inside = (index >= 0) & (index < 100)
    assert inside.all() == (name == "fetch")
    texels = texture.array[0, 0, np.where(inside, index, 0)]
    if texture.sampling.read == "normalized":
        texels = (texels / 255).astype(np.float32)
    wanted = np.where(inside[:, None], texels, 0).astype(out.dtype)
    assert same(out.reshape(256, -1), wanted)


@pytest.mark.parametrize("name", ["gather_0", "gather_1"])
def test_four_texels_are_gathered_against_the_clock(name):
    texture, x, y = cases()[name].arguments
    image = texture.array[0, :, :, int(name[-1])]
    left, top = (np.floor(c - 0.5).astype(int) for c in (x, y))
    columns, rows = (np.clip(np.stack([c, c + 1]), 0, n - 1) for c, n in ((left, 16), (top, 8)))
    wanted = [image[rows[j], columns[i]] for i, j in ((0, 1), (1, 1), (1, 0), (0, 0))]
    assert same(executed(name)["out"], np.stack(wanted, axis=1))


def test_channels_that_a_texel_lacks_are_zero():
    one, two = (executed(f"plane_{what}")["out"] for what in ("missing_channels", "two_of_four_channels"))
    assert not one[:, 1:].any()
    assert not two[:, 2:].any()
    assert one[:, 0].any()
    assert two[:, 1].any()


def test_integers_name_texels():
    texture, x, y = cases()["plane_by_integers"].arguments
    assert same(executed("plane_by_integers")["out"], texture.array[0, y, x, 0])
    texture, x, y = cases()["probe_integers_border"].arguments
    inside = (x >= 0) & (x < 16) & (y >= 0) & (y < 8)
    wanted = np.where(inside, texture.array[0, np.clip(y, 0, 7), np.clip(x, 0, 15), 0], 0)
    assert same(executed("probe_integers_border")["out"], wanted.astype(np.float32))


def test_an_image_is_resized():
    image = cases()["resize"].arguments[0]
    centres = [((x + 0.5) / 32, (y + 0.5) / 24) for y in range(24) for x in range(32)]
    places = [[float(np.float32(u)), float(np.float32(v))] for u, v in centres]
    wanted, slacks = ([ask(image, place) for place in places] for ask in (value, slack))
    assert near(executed("resize")["out"], wanted, slacks)


@pytest.mark.parametrize(("mode", "padding"), [("clamp", "edge"), ("border", "constant")])
def test_an_image_is_convolved(mode, padding):
    image = cases()[f"convolve_{mode}"].arguments[0].array[0, :, :, 0]
    padded, weights = np.pad(image, 1, mode=padding).astype(np.float64), (0.25, 0.5, 0.25)
    wanted = sum(weights[i] * weights[j] * padded[j : j + 24, i : i + 32] for i in range(3) for j in range(3))
    assert same(executed(f"convolve_{mode}")["out"], wanted.ravel().astype(np.float32))


def test_a_volume_is_cut():
    volume = cases()["slice"].arguments[0]
    wanted = [
        value(volume, [x * 0.25 + 0.5, y * 0.5 + 0.5, x * 0.125 + y * 0.125 + 0.5])
        for y in range(24)
        for x in range(32)
    ]
    assert same(executed("slice")["out"], np.array(wanted)[:, 0].astype(np.float32))


def test_a_texture_may_be_chosen_by_each_thread():
    first, second, which = cases()["by_handle"].arguments
    column = np.arange(256) % 8
    rows = [texture.array[0, 1, column, 0] for texture in (first, second)]
    assert same(executed("by_handle")["out"], np.where(which == 0, *rows))


def test_extents_are_answered():
    assert executed("sizes")["out"][:6].tolist() == [16, 8, 0, 32, 8, 4]


def test_surfaces_are_copied():
    found = executed("surface_copy")
    plane = cases()["surface_copy"].arguments[0].array
    assert same(found["out"], plane.ravel())
    assert same(found["surface 0"], plane)
    assert same(found["surface 1"], 2 * plane[:, :, ::-1])
    found, colours = executed("surface_colours"), cases()["surface_colours"].arguments[0].array
    assert np.array_equal(found["out"], colours.reshape(256, 4))
    assert np.array_equal(found["surface 1"], colours[..., ::-1])


def test_surfaces_clamp_or_give_zeros_beyond_their_edges():
    surface, x, y = cases()["surface_clamped"].arguments
    plane = surface.array[0, :, :, 0]
    assert same(executed("surface_clamped")["out"], plane[np.clip(y, 0, 7), np.clip(x, 0, 31)])
    surface, _, x, y = cases()["surface_zeros"].arguments
    found = executed("surface_zeros")
    inside = (x >= 0) & (x < 32) & (y >= 0) & (y < 8)
    values = np.where(inside, surface.array[0, np.where(inside, y, 0), np.where(inside, x, 0), 0], 0)
    assert 0 < inside.sum() < 256
    assert same(found["out"], values.astype(np.float32))
    wanted = np.zeros((8, 32), np.float32)
    wanted[y[inside], x[inside]] = values[inside] + np.float32(1)
    assert same(found["surface 1"][0, :, :, 0], wanted)


def test_surfaces_have_depth_layers_and_lines():
    numbers = np.arange(256, dtype=np.float32).reshape(4, 8, 8, 1)
    assert same(executed("surface_volume")["surface 0"], 1000 + numbers)
    layers = cases()["surface_layers"].arguments[0].array
    assert same(executed("surface_layers")["surface 0"], layers * layers)
    line = cases()["surface_line"].arguments[0].array
    assert same(executed("surface_line")["surface 0"], np.roll(line, 1, axis=3))
    pieces = cases()["surface_pieces"].arguments[0].array
    assert np.array_equal(executed("surface_pieces")["out"], pieces.ravel().view(np.uint32))


def test_surfaces_are_added_to():
    x = cases()["surface_sums"].arguments[1]
    wanted = np.bincount(x, weights=np.arange(1, 257), minlength=32).astype(np.uint32)
    assert np.array_equal(executed("surface_sums")["surface 0"][0, 0, :, 0], wanted)


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
    handles = bind_surface(memory, content, texels), bind_texture(memory, content, texels, Sampling())
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
        bind_texture(memory, image, Texels("2d", (32, 2, 1), "f32"), Sampling())


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
    handle = bind_texture(memory, line, Texels("1d", (8, 1, 1), "f32", 1, True), Sampling())
    launch(load_program(ptx, "k"), (1, 1, 1), (1, 1, 1), [out, handle], memory)
    assert out.array()[0] == 7
