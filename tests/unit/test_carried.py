# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Included files travel with their kernel, by names that NVRTC finds; what cannot be is one sentence."""

from pathlib import Path

import pytest
from unit_support import DEVICE, gpuprof

from gpuprof.backends.compiling import compile_kernel
from gpuprof.errors import HeaderError, InputError
from gpuprof.kernels import carried
from gpuprof.kernels.carried import carried_files
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.header import WHOLE_HEADER
from gpuprof.kernels.preprocessing import parse_preprocessing
from gpuprof.kernels.shape import configure
from gpuprof.measure.case import Case
from gpuprof.measure.protocol import Measure, decode, encode
from gpuprof.problems.problem import Problem

BODY = "\n{includes}\n__global__ void k(int n, const float *x, float *y) {{ *(int *)y = {use}; }}\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def kernel_file(folder, includes, use="1", fields=""):
    header = WHOLE_HEADER.replace("[arrays]", f"{fields}\n[arrays]")
    return write(folder / "k.cu", header + BODY.format(includes=includes, use=use))


def compiled_ptx(kernel, operation):
    """The PTX of a kernel that has travelled to where none of its files are."""
    problem = Problem.of(operation, (64,))
    sent = decode(encode(Measure(Case.of(kernel, problem)))).case.kernel
    assert sent == kernel
    shape = configure(sent, problem, sent.block, {}, DEVICE)
    (function,) = compile_kernel(shape, "sm_80").values()
    return function.ptx


def ptx_of(path, tmp_path, monkeypatch, command=None):
    file = load_kernels(path, None, *([command] if command else []))
    away = tmp_path / "away"
    away.mkdir(exist_ok=True)
    monkeypatch.chdir(away)
    return compiled_ptx(file.kernels[0], file.operation)


#: Files beside the kernel, what it includes, and what then comes to 1234.
FOUND = {
    "beside the kernel and beside them": (
        {
            "a.h": '#pragma once\n#include "deep/b.h"\n#include "./c.h"\n',
            "deep/b.h": '#pragma once\n#include "../c.h"\n  #  include "b2.h" // beside it\n',
            "deep/b2.h": "#define B2 1000\n",
            "c.h": "#ifndef C\n#define C 234\n#endif\n",
        },
        '#include "a.h"\n#include "./deep/../deep/b.h"',
        "B2 + C",
    ),
    "of one name in several folders": (
        {
            "config.h": "#define MINE 1000\n",
            "one/all.h": '#include "config.h"\n',
            "one/config.h": "#define ONE 200\n",
            "two/all.h": '#include "config.h"\n',
            "two/config.h": "#define TWO 34\n",
        },
        '#include "config.h"\n#include "one/all.h"\n#include "two/all.h"',
        "MINE + ONE + TWO",
    ),
    "as the build finds them with -I .": (
        {
            "lib/all.h": '#include "lib/deep/one.h"\n#include <lib/two.h>\n',
            "lib/deep/one.h": "#define ONE 1200\n",
            "lib/two.h": "#define TWO 34\n",
        },
        '#include "lib/all.h"',
        "ONE + TWO",
    ),
    "named by macros": (
        {"inner.h": '#define INNER "deep.h"\n#include INNER\n', "deep.h": "#define DEEP 1234\n"},
        '#define NAME "inner.h"\n#include NAME',
        "DEEP",
    ),
    "in angle brackets beside it, but for what compilers bring": (
        {"mine.cuh": "#define MINE 1000\n", "mine.h": "#define LESS 234\n", "math.h": "#error read\n"},
        "#include <mine.cuh>\n#include <mine.h>\n#include <math.h>",
        "MINE + LESS",
    ),
    "with code for the host": (
        {
            "helper.h": "#pragma once\n#include <iostream>\n"
            "void check(cudaError_t e) { std::cerr << e; }\n#define H 1234\n"
        },
        '#include "helper.h"\nvoid run() { check(cudaGetLastError()); }',
        "H",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_files_are_found_wherever_the_kernel_travels(tmp_path, monkeypatch, name):
    files, includes, use = FOUND[name]
    for file, text in files.items():
        write(tmp_path / "home" / file, text)
    path = kernel_file(tmp_path / "home", includes, use)
    assert "1234" in ptx_of(path, tmp_path, monkeypatch)


def test_folders_of_the_command_line_come_before_the_headers_and_after_the_files_own(tmp_path, monkeypatch):
    home, first = tmp_path / "home", tmp_path / "first"
    second = home / "second"
    write(home / "mine.h", "#define MINE 1000\n")
    write(first / "mine.h", "#error not this one")
    for number, folder in ((200, first), (500, second)):
        write(folder / "lib" / "number.h", f"#define NUMBER {number}\n")
    write(second / "only.h", "#include <lib/number.h>\n#define ONLY 34\n")
    includes = '#include "mine.h"\n#include <lib/number.h>\n#include <only.h>'
    path = kernel_file(home, includes, "MINE + NUMBER + ONLY", 'include = ["second"]')
    command = parse_preprocessing([first], [])
    assert "1234" in ptx_of(path, tmp_path, monkeypatch, command)
    assert "1534" in ptx_of(path, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ("define = { NUMBER = 1234 }", []),
        ('define = { NUMBER = "HALF * 2", HALF = "(600 + 17)" }', []),
        ("define = { NUMBER = 5 }", ["NUMBER=1234"]),
        ("", ["NUMBER=1234"]),
        ("parameters = { WIDTH = 1000 }", ["NUMBER=WIDTH + 234"]),
        ("define = { FLAG = true }", ["NUMBER=1233 + FLAG"]),
        ("", ["FLAG", "NUMBER=1233 + FLAG"]),
    ],
)
def test_macros_of_the_header_and_the_command_line(tmp_path, monkeypatch, fields, given):
    path = kernel_file(tmp_path / "home", "", "NUMBER", fields)
    assert "1234" in ptx_of(path, tmp_path, monkeypatch, parse_preprocessing([], given))


@pytest.mark.parametrize(
    ("fields", "given", "words"),
    [
        ("parameters = { NUMBER = 1 }", ["NUMBER=2"], "NUMBER is a parameter of the header"),
        ("constants = { NUMBER = 1 }", ["NUMBER"], "NUMBER is a parameter of the header"),
        ("", ["real=int"], "real is a macro of gpuprof's own"),
        ("parameters = { A = 1 }\ndefine = { A = 2 }", [], "A is a parameter of the header"),
        *(("", [text], f"{text!r} is no definition") for text in ("", "=1", "3=1", "A B=1", "A=1\n2")),
        ('include = "folder"', [], "include must be a list"),
        ('include = ["absent"]', [], "absent', which is no folder"),
        ('include = ["k.cu"]', [], "k.cu', which is no folder"),
        ("define = 3", [], "define must be a table"),
        ("define = { A = 1.5 }", [], "define.A must be an integer, a line of text or true, not 1.5"),
        ("define = { A = false }", [], "define.A must be an integer"),
        ('define = { A = "1\\n2" }', [], "define.A must be an integer, a line of text"),
        ('define = { "A B" = 1 }', [], "define names 'A B', which is not the name of a macro"),
        ("define = { real = 1 }", [], "define.real is a macro of gpuprof's own"),
        ("define = { BLOCK_X = 1 }", [], "define.BLOCK_X is a macro of gpuprof's own"),
        ("parameters.A = 1\nvariants = [{ id = 'v', define.A = 2 }]", [], "variants.define.A is a parameter"),
    ],
)
def test_includes_and_macros_that_cannot_be_are_refused(tmp_path, fields, given, words):
    path = kernel_file(tmp_path, "", "1", fields)
    with pytest.raises(InputError) as caught:
        load_kernels(path, None, parse_preprocessing([], given))
    assert words in caught.value.what


def test_folder_that_cannot_be_searched(tmp_path):
    for folder in (tmp_path / "absent", Path("x\0y"), write(tmp_path / "file", "")):
        with pytest.raises(InputError, match="is no folder"):
            parse_preprocessing([folder], [])
    write(tmp_path / "host" / "stdio.h", "")
    with pytest.raises(InputError, match="holds the host's headers"):
        parse_preprocessing([tmp_path / "host"], [])


def test_files_too_large_to_travel_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(carried, "MOST_BYTES", 1 << 20)
    write(tmp_path / "a.h", "x" * (1 << 20) + "\n")
    with pytest.raises(HeaderError, match=r"k.cu includes more than 1 MiB of files\."):
        carried_files('#include "a.h"', tmp_path / "k.cu", ())


def test_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "latin.h").write_bytes("// größe\n#define N 3".encode("latin-1"))
    assert [*carried_files('#include "latin.h"', tmp_path / "k.cu", ()).values()] == ["// gr��e\n#define N 3"]
    (tmp_path / "a.h").write_text("#define N 3", encoding="utf-16")
    with pytest.raises(HeaderError, match=r"k.cu includes .*a.h, which cannot be read: it is not UTF-8 text"):
        carried_files('#include "a.h"', tmp_path / "k.cu", ())


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        ("#define BM 64", "BM", 1),
        ("\nconstexpr int BM = 64;", "BM", 2),
        ("void f() {\n  const unsigned BM(64);\n}", "BM", 2),
        ("__global__ void other(int BM) {}", "BM", 1),
        ("template <int BM> __global__ void k() {}", None, 0),
        ("#ifndef BM\n#define BM 64\n#endif", None, 0),
        ("#if !defined(BM)\n#define BM 64\n#endif", None, 0),
        ("// #define BM 64\n/* int BM = 3; */ int x = BM;", None, 0),
        ("int MYBM = 3; return BM;", None, 0),
    ],
)
def test_parameter_that_the_source_gives_a_value_itself_is_refused(tmp_path, source, name, line):
    path = kernel_file(tmp_path, source, "1", "parameters = { BM = 4 }")
    if name is None:
        assert load_kernels(path).kernels[0].parameters == {"BM": 4}
        return
    before = path.read_text()[: path.read_text().index(source)].count("\n")
    with pytest.raises(
        HeaderError, match=rf"parameters\.{name} is given a value on line {before + line} of the"
    ):
        load_kernels(path)


def test_include_and_define_on_the_command_line_are_for_own_kernels(tmp_path):
    process = gpuprof("transpose", "-k", "naive_row", "-D", "A=1", "--device", "none", cwd=tmp_path, status=2)
    assert process.stderr.splitlines() == [
        "gpuprof: -I and -D are for kernels of your own.",
        "  Name one with -k FILE.cu.",
    ]
    write(tmp_path / "inc" / "n.h", "#define N_OF_FILE 3\n#define BLOCK_X 14\n")
    kernel_file(tmp_path, "#include <n.h>", "N_OF_FILE + N_GIVEN + BLOCK_X")
    options = ("--device", "none", "--sizes", "64", "-q")
    process = gpuprof("run", "k.cu", "-I", "inc", "-D", "N_GIVEN=2", *options, cwd=tmp_path, status=0)
    process = gpuprof("run", "k.cu", "-D", "N_GIVEN=2", *options, "-o", "o", cwd=tmp_path, status=1)
