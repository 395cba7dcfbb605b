# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces in a kernel's header, and what no card takes."""

from dataclasses import replace

import pytest

from gpuprof.errors import CaseSkipped, HeaderError, InputError
from gpuprof.kernels.texture import clash_among, make_texture, read_textures, texture_specs
from gpuprof.problems.problem import ArraySpec
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
        ((70000, 7), "f32", {}, "a 2d texture in a CUDA array has at most 131072 x 65536 x 1"),
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
