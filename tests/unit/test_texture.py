# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures, surfaces and tensor maps in a kernel's header, and what no card takes."""

from pathlib import Path

import pytest
from problem_support import Gemm
from unit_support import DEVICE, MINIMAL, parse_kernel

from gpuprof.errors import CaseSkipped, HeaderError, InputError
from gpuprof.kernels.shape import configure
from gpuprof.kernels.tensor_map import TensorMap, TensorMapSpec
from gpuprof.kernels.texture import clash_among, make_texture, read_textures, texture_specs
from gpuprof.problems.problem import ArraySpec
from gpuprof.records import replace
from gpuprof.tables import TableReader
from gpuprof.texture_units import Sampling, Texels

#: Arrays, with their numbers of extents.
ARRAYS = {"line": 1, "image": 2, "volume": 3, "many": 4}


def read(**tables):
    return read_textures(TableReader(tables, "mine.cu"), ARRAYS)


def complaint(table="textures", name="image", **fields) -> str:
    with pytest.raises(HeaderError) as caught:
        read(**{table: {name: fields}})
    return str(caught.value)


def test_everything_can_be_said():
    fields = {
        "array": "volume",
        "kind": "1d_layered",
        "channels": 4,
        "filter": "linear",
        "address": ["border", "wrap"],
        "normalized": True,
        "read": "normalized",
        "border": [1, 0.5],
    }
    spec = read(textures={"look": fields})["look"]
    assert (spec.array, spec.kind, spec.channels, spec.linear) == ("volume", "1d_layered", 4, False)
    assert spec.sampling == Sampling(
        "linear", ("border", "wrap", "clamp"), True, "normalized", (1, 0.5, 0, 0)
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"fliter": "linear"}, "textures.image.fliter is no field of textures; those are array, kind"),
        ({"filter": "cubic"}, "textures.image.filter is 'cubic', not one of point, linear"),
        ({"array": "other"}, "is 'other', not one of line, image, volume, many"),
        ({"array": "line"}, "is 'line', and image is an array too"),
        ({"channels": 3}, "is 3, not one of 1, 2, 4"),
        ({"kind": "3d"}, "is '3d', of 3 extents; image has 2"),
        ({"kind": "2d", "channels": 2}, "is '2d', of 2 extents and the channels; image has 2"),
        ({"address": "wrap"}, "which needs coordinates from 0 to 1. Say normalized = true."),
        ({"address": ["clamp", "around"]}, "must be one to three of clamp, border, wrap, mirror"),
        ({"address": "border", "border": [1, 2, 3, 4, 5]}, "must be up to 4 numbers"),
        ({"border": [1]}, "is for edges whose address is 'border'"),
        ({"memory": "shared"}, "is 'shared', not one of array, linear"),
        ({"name": "volume", "memory": "linear"}, "is 'linear', which 3d textures cannot be in"),
        ({"name": "line", "memory": "linear", "filter": "linear"}, "does not go with one extent of linear"),
        ({"name": "many"}, "is '', not one of 1d"),
        ({"table": "surfaces", "filter": "linear"}, "is no field of surfaces; those are array, kind,"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, words):
    assert words in complaint(**fields)


def test_a_name_is_one_thing():
    with pytest.raises(HeaderError, match="it is a texture already"):
        read(textures={"image": {}}, surfaces={"image": {}})


def test_a_copy_and_its_original_do_not_go_together():
    found = read(textures={"look": {"array": "image"}})
    assert "image is passed as an array and as the texture look" in clash_among(found, ["look", "image"])
    assert not clash_among(found, ["look", "line"])
    near = read(textures={"look": {"array": "image", "memory": "linear"}})
    assert not clash_among(near, ["look", "image"])
    both = read(
        textures={"a": {"array": "volume"}}, surfaces={"b": {"array": "volume", "kind": "2d_layered"}}
    )
    assert "a and b see volume differently" in clash_among(both, ["a", "b"])
    with pytest.raises(InputError, match="A and b see volume differently"):
        texture_specs({"a": {"array": "volume"}}, {"b": {"array": "volume", "kind": "2d_layered"}}, ARRAYS)


def made(shape: tuple[int, ...], dtype: str = "f32", **fields) -> Texels:
    spec = read(
        textures={"look": {"array": {1: "line", 2: "image", 3: "volume", 4: "many"}[len(shape)], **fields}}
    )
    return make_texture("look", spec["look"], ArraySpec("image", shape, dtype)).texels


def test_extents_are_those_of_the_array():
    assert made((7,)).extents == (7, 1, 1)
    assert made((5, 7)).extents == (7, 5, 1)
    assert made((3, 5, 7)).extents == (7, 5, 3)
    assert made((5, 7), kind="1d_layered").extents == (7, 1, 5)
    assert made((3, 5, 7), kind="2d_layered").extents == (7, 5, 3)
    assert made((12, 4, 4), kind="cube_layered").extents == (4, 4, 12)
    coloured = made((5, 7, 4), "u8", kind="2d", channels=4)
    assert (coloured.extents, coloured.texel_bytes, coloured.row_bytes) == ((7, 5, 1), 4, 28)
    assert made((3, 5, 7, 2), kind="3d", channels=2).extents == (7, 5, 3)


@pytest.mark.parametrize(
    ("shape", "dtype", "fields", "words"),
    [
        ((5, 7), "f64", {}, "image holds f64; texels are of f32, f16"),
        ((5, 7, 3), "u8", {"kind": "2d", "channels": 4}, "has 4 channels; the last extent of image is 3"),
        ((5, 7), "f32", {"read": "normalized"}, 'read = "normalized" is for i16, i8, u16, u8'),
        ((5, 7), "u8", {"filter": "linear"}, "which is filtered only as fractions"),
        ((5, 7), "u8", {"address": "border", "border": [1]}, "what lies beyond its edges is 0"),
        ((3, 5, 20000), "f32", {}, "a 3d texture in a CUDA array has at most 16384 x 16384 x 16384"),
        ((5, 7), "f32", {"memory": "linear"}, "start at multiples of 32 bytes; those of image are 28 bytes"),
        ((6, 4, 5), "f32", {"kind": "cube"}, "A cube has 6 square faces; image holds 6 of 5 x 4"),
    ],
)
def test_what_no_card_takes_is_a_skipped_case(shape, dtype, fields, words):
    with pytest.raises(CaseSkipped) as caught:
        made(shape, dtype, **fields)
    assert words in str(caught.value)


def test_linear_memory_may_be_read_in_place():
    texels = made((5, 8), memory="linear")
    assert texels.linear
    assert texels == replace(made((5, 8)), linear=True)


GOOD = 'array = "A"\nbox = ["BK", "128"]\nswizzle_bytes = 64'
BOX, CUBE = 'box = ["16", "4"]', Gemm(16, 16, 16)


def parse(table, op="gemm", extra=""):
    text = MINIMAL[op].replace("\n[launch]", f"\n{extra}\n[launch]", 1)
    text = text.replace('"A"' if op == "gemm" else '"in"', '"tiles"', 1)
    text = text.replace("*/", f"[tensor_maps.tiles]\n{table}\n[parameters]\nBK = 16\n*/", 1)
    return parse_kernel(text, Path("mine.cu"))


def maps_of(kernel, problem):
    return configure(kernel, problem, kernel.block, {}, DEVICE).tensor_maps


def test_header_declares_a_tensor_map():
    kernel = parse(GOOD)
    lists = dict.fromkeys(("extents", "strides", "steps", "start", "l2_promotion_bytes"), ())
    lists |= {"box": ("BK", "128")}
    assert kernel.tensor_maps == {"tiles": TensorMapSpec(("A",), lists, 64)}
    assert "tiles" in kernel.arguments


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (GOOD.replace('"A"', '"D"'), r"tensor_maps\.tiles\.array is 'D', not one of A, B, C"),
        (GOOD.replace('["BK", "128"]', "[]"), r"tensor_maps\.tiles\.box must be 1 to 5 expressions"),
        (GOOD.replace("64", "48"), r"tensor_maps\.tiles\.swizzle_bytes is 48, not one of 0, 32, 64, 128"),
        (GOOD + "\nstride = 3", r"unknown field tensor_maps\.tiles\.stride"),
        (GOOD + '\nextents = ["K"]', r"tensor_maps\.tiles\.extents must be 2 expressions, as box has 2"),
        (GOOD + '\nstrides = ["K", "M"]', r"tensor_maps\.tiles\.strides must be 1 expressions, as box has 2"),
        (GOOD + '\nsteps = ["2"]', r"tensor_maps\.tiles\.steps must be 2 expressions"),
        (GOOD + '\nfill = "one"', r"tensor_maps\.tiles\.fill is 'one', not one of zero, nan"),
        (GOOD + '\nstart = "Q"', r"'Q' uses 'Q'; known are "),
        ('box = ["16", "16"]', r"lacks tensor_maps\.tiles\.array"),
        (GOOD.replace('"A"', '["A", "D"]'), r"tensor_maps\.tiles\.array is 'D', not one of A, B, C"),
        (GOOD.replace('"A"', "[]"), r"tensor_maps\.tiles\.array is empty; it may hold A, B, C"),
    ],
)
def test_header_refuses(table, message):
    with pytest.raises(HeaderError, match=message):
        parse(table)


@pytest.mark.parametrize(
    ("array", "problem", "extents"),
    [
        ("A", Gemm(12, 20, 36), (36, 12)),
        ("B", Gemm(12, 20, 36), (20, 36)),
        ("A", Gemm(12, 20, 36, layout="col"), (12, 36)),
    ],
)
def test_extents_are_those_of_the_stored_matrix(array, problem, extents):
    kernel = parse(GOOD.replace('"A"', f'"{array}"'), extra=f'layout = "{problem.options["layout"]}"')
    assert maps_of(kernel, problem) == (
        TensorMap("tiles", array, "f32", extents, (4 * extents[0],), (16, 128), 64),
    )


@pytest.mark.parametrize(
    ("table", "extents", "strides"),
    [
        ('box = ["16"]', (240,), ()),
        ('box = ["16", "1"]\nextents = ["K", "M / 2"]\nstrides = ["2 * K"]', (20, 6), (160,)),
        ('box = ["4", "1", "2", "1"]\nextents = ["4", "K / 4", "2", "6"]', (4, 5, 2, 6), (16, 80, 160)),
    ],
)
def test_an_array_may_be_seen_with_other_extents(table, extents, strides):
    kernel = parse(f'array = "A"\n{table}'.replace("/ ", "// "))
    (made,) = maps_of(kernel, Gemm(12, 8, 20))
    assert (made.extents, made.stride_bytes) == (extents, strides)


def test_a_map_says_what_is_left_out_filled_and_read_from_memory():
    table = 'array = "A"\nbox = ["16", "8"]\nsteps = ["1", "2"]\nfill = "nan"\nl2_promotion_bytes = "256"'
    (made,) = maps_of(parse(table), Gemm(12, 20, 36))
    assert made.steps == (1, 2)
    assert made.fills_nan
    assert made.l2_promotion_bytes == 256


#: Every fourth row of A from the second one on: it begins up to three elements before that row.
FOURTH = """array = "A"
box = ["16", "4"]
start = "K // 4 * 4"
extents = ["K + K % 4", "cdiv(M - 1, 4)"]
strides = ["4 * K"]"""


@pytest.mark.parametrize("k", [32, 33, 34, 35])
@pytest.mark.parametrize("m", [2, 5, 6, 9])
def test_a_map_may_begin_within_an_array(m, k):
    (made,) = maps_of(parse(FOURTH), Gemm(m, 20, k))
    assert made.start_bytes == k // 4 * 16
    # Its last element is that of the last such row.
    end = made.start_bytes + made.stride_bytes[0] * (made.extents[1] - 1) + 4 * made.extents[0]
    assert end == 4 * k * ((m - 2) // 4 * 4 + 2)


PACKED = """array = ["A", "packed"]
box = ["16", "4"]
extents = ["K", "M"]
strides = ["cdiv(K, 4) * 4"]
[workspace.packed]
shape = ["M", "cdiv(K, 4) * 4"]"""


def of_a(text):
    """A map of A, whose rows are 16 elements and in which BK is 16."""
    return f'array = "A"\n{text}'


@pytest.mark.parametrize(
    ("table", "problem", "message"),
    [
        (
            GOOD,
            Gemm(4, 8, 18),
            "tiles' of A cannot be made: rows are multiples of 16 bytes apart, below 2.40, not 72",
        ),
        (of_a('box = ["BK", "257"]'), CUBE, "a box is 1 to 256 elements along each dimension, not 16x257"),
        (
            GOOD.replace('"BK"', '"2 * BK"'),
            CUBE,
            "a row of the box is at most the swizzle's 64 bytes, not 128",
        ),
        (of_a('box = ["16", "4", "1"]'), CUBE, "The box of tiles has 3 dimensions and A has 2"),
        (of_a(f'{BOX}\nextents = ["K", "M + 1"]'), CUBE, "is number 271, counted from 0, and A has 256"),
        (of_a(f'{BOX}\nextents = ["K", "0"]'), CUBE, "extents are 1 to 2.32, not 16x0"),
        (of_a(f'{BOX}\nsteps = ["1", "9"]'), CUBE, "as many steps as extents, 1 to 8, not 1x9"),
        (of_a(f'{BOX}\nl2_promotion_bytes = "32"'), CUBE, "promotion of tiles is 32 bytes; it may be 0, 64"),
        (FOURTH.replace("K // 4 * 4", "K", 1), Gemm(6, 20, 33), "begins 132 bytes behind the first element"),
        (FOURTH.replace("4 * 4", "4 * 4 + 4", 1), Gemm(6, 20, 33), "201, counted from 0, and A has 198"),
        # Of several arrays the last one says why.
        (
            PACKED.replace('"cdiv(K, 4) * 4"]\n', '"K"]\n'),
            Gemm(12, 20, 35),
            "of packed cannot be made: .* not 140",
        ),
    ],
)
def test_what_the_copy_engine_cannot_do_is_skipped(table, problem, message):
    with pytest.raises(CaseSkipped, match=message):
        maps_of(parse(table), problem)
