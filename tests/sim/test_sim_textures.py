# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Arrays as textures and surfaces: from a header and from Python, right, wrong and impossible."""

import numpy as np
import pytest
import texture_sources

import gpuprof

pytestmark = pytest.mark.deep

SIM = "sim:h200"
LEFT_OUT = "this counter leaves out what goes through the kernel's textures or surfaces"


@pytest.mark.parametrize("name", ["doubled", "in_place", "grey"])
def test_a_call_is_right(name):
    case = getattr(texture_sources, name)(SIM)
    assert case.ok, case.reason


def test_what_goes_through_textures_is_not_counted_as_loads():
    case = texture_sources.doubled(SIM)
    for name in ("global_load_requests", "global_store_sectors"):
        with pytest.raises(gpuprof.NotMeasured, match=LEFT_OUT):
            getattr(case.counters, name)
    stores = texture_sources.grey(SIM).counters
    assert stores.global_store_requests == 48 * 4


def test_linear_memory_is_read_both_ways():
    case = texture_sources.near(SIM)
    assert case.ok, case.reason


def test_a_header_says_it_too(tmp_path):
    case = texture_sources.blur(SIM, tmp_path)
    assert case.ok, case.reason


def test_texels_that_nobody_wrote_are_told():
    body = "if (x != 7) surf2Dwrite(2 * tex2D<float>(image, x + 0.5f, y + 0.5f), out, 4 * x, y);"
    case = texture_sources.doubled(SIM, body)
    assert case.outcome == "incorrect"
    assert "out[0, 7]" in case.reason
    assert "never written" in case.reason


def test_a_surface_of_an_input_may_not_be_written():
    case = texture_sources.call(
        "cudaSurfaceObject_t image, float *out",
        "surf2Dwrite(1.0f, image, 4 * x, y); out[y * 104 + x] = 1;",
        {"image": texture_sources.IMAGE, "out": None},
        {"out": np.ones_like(texture_sources.IMAGE)},
        surfaces={"image": {}},
        device=SIM,
    )
    assert case.outcome == "failed"
    assert "writes image, which is read-only" in case.reason


def test_a_texture_that_is_passed_as_an_array_is_told():
    case = texture_sources.call(
        "cudaTextureObject_t image, float *out",
        "out[y * 104 + x] = tex2D<float>(image, x, y);",
        {"image": texture_sources.IMAGE, "out": None},
        {"out": texture_sources.IMAGE},
        device=SIM,
    )
    assert case.outcome == "failed"
    assert "argument 1 of k is `cudaTextureObject_t image`" in case.reason
    assert "Say how they are read, in a table each: [textures.image]." in case.reason


def test_an_array_that_is_passed_as_a_texture_is_told():
    case = texture_sources.call(
        "const float *image, float *out",
        "out[y * 104 + x] = image[y * 104 + x];",
        {"image": texture_sources.IMAGE, "out": None},
        {"out": texture_sources.IMAGE},
        textures={"image": {}},
        device=SIM,
    )
    assert case.outcome == "failed"
    assert "and image is a texture, cudaTextureObject_t" in case.reason


def test_a_view_of_an_array_has_no_value():
    with pytest.raises(gpuprof.InputError, match="look is a view of image, and has a value too"):
        texture_sources.call(
            "cudaTextureObject_t look, float *out",
            "",
            {"look": 1, "image": texture_sources.IMAGE, "out": None},
            {"out": texture_sources.IMAGE},
            textures={"look": {"array": "image"}},
            device=SIM,
        )


def test_textures_do_not_go_with_a_header():
    with pytest.raises(gpuprof.InputError, match="textures does not go with a header"):
        gpuprof.profile("transpose", textures={"in": {}}, device=SIM)
