# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel file from anybody: what it asks of the compiler, what it includes, and how much of it there is."""

import json
from pathlib import Path

import pytest

from gpuprof.errors import HeaderError
from gpuprof.kernels.catalog import load_kernels

HEADER = """/*gpuprof
title = "Mine"
operation = "transpose"
arguments = ["nx", "ny", "in", "out"]
entry = "mine"
{fields}
[launch]
block = [16, 16]
grid = ["cdiv(nx, block_x)", "cdiv(ny, block_y)"]
*/
"""
CODE = 'extern "C" __global__ void mine(int nx, int ny, const float *in, float *out) { out[0] = in[0]; }\n'


def kernel_of(folder, fields="", code=CODE):
    """A kernel file that stands in a folder, read."""
    path = Path(folder, "mine.cu")
    path.write_text(HEADER.format(fields=fields) + code)
    return load_kernels(path).kernels[0]


def with_options(folder, options):
    return kernel_of(folder, f"compile_options = {json.dumps(options)}")


@pytest.mark.parametrize(
    "options",
    [
        *(["--create-pch=victim"], ["-pch"], ["--use-pch=x"], ["--pch-dir=/tmp"], ["--pch-verbose=true"]),
        *(
            ["--time=victim"],
            ["-time=victim"],
            ["--fdevice-time-trace=victim"],
            ["-fdevice-time-trace=victim"],
        ),
        *(["-I/etc"], ["-I", "/etc"], ["-I /etc"], ["--include-path=/etc"], ["-include=/etc/passwd"]),
        *(["-include", "/etc/passwd"], ["--pre-include=/etc/passwd"], ["-preinclude=x"]),
        *(["--ptxas-options=-O0"], ["-Xptxas", "-O0"], ["-Xptxas=--options-file"], ["@options"]),
        *(["-D", "--create-pch=victim"], ["-DX=1\n--time=victim"], ["-DX=1", "--time=victim"], ["-D"]),
        *(["--ftz=true --time=victim"], ["--ftz=true\n"], ["--std=c++17=--time"], ["-U"], [""], ["--"]),
        *(["--CREATE-PCH=victim"], ["---use_fast_math"], ["--gpu-architecture=sm_80"], ["-dlto"]),
        *(["--maxrregcount"], ["--maxrregcount", "--time=victim"], ["--maxrregcount=٣"]),
    ],
    ids=repr,
)
def test_a_header_asks_nothing_of_the_compiler_that_could_touch_files(tmp_path, options):
    with pytest.raises(HeaderError, match=r"compile_options holds .*no kernel file may ask") as caught:
        with_options(tmp_path, options)
    assert "mine.cu:" in caught.value.what
    assert "A header may set macros" in caught.value.fix


def test_the_older_name_of_the_field_is_no_way_around(tmp_path):
    with pytest.raises(HeaderError, match="options holds '--time=victim'"):
        kernel_of(tmp_path, 'options = ["--time=victim"]')


@pytest.mark.parametrize(
    "options",
    [
        *(["--use_fast_math"], ["-use_fast_math"], ["-ftz=true", "--prec-div=false"], ["--fmad=false"]),
        *(["-DX"], ["-DX=a b"], ["-D X=1"], ["-D", "X=1"], ["--define-macro=X=1"], ["-UX"], ["-U", "X"]),
        *(["--maxrregcount=64"], ["--maxrregcount", "64"], ["-G"], ["-lineinfo"], ["--std=c++20"], ["-w"]),
        *(["-restrict"], ["-extra-device-vectorization"], ["-default-device"], ["--diag-suppress=177,550"]),
    ],
    ids=repr,
)
def test_a_header_may_say_how_its_own_code_is_compiled(tmp_path, options):
    assert with_options(tmp_path, options).compile_options == tuple(options)
