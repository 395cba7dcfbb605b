# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Headers and operations as nobody would write them: read, or refused with one sentence that says where."""

import re
from pathlib import Path

import pytest
from cuda_sources import kernel_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_support import MINIMAL

from gpuprof.errors import HeaderError
from gpuprof.kernels.header import read_kernels
from gpuprof.kernels.shipped import KERNEL_ROOT
from gpuprof.problems.declaration import load_operation

PATH = Path("mine.cu")
#: One sentence: the file, a line of it where the complaint is of one, and no line break.
SENTENCE = re.compile(r"mine\.(?:cu|toml)(?::(?P<line>[0-9]+))?[: ][^\n]*\.")
MANY = settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)

WHOLE = kernel_file("row_sum")
HEADERS = [WHOLE, MINIMAL["gemm"], *(path.read_text() for path in sorted(KERNEL_ROOT.glob("gemm/b*.cu")))]
OPERATIONS = [path.read_text() for path in sorted(KERNEL_ROOT.glob("*/operation.toml"))]
#: What stands for a value: of every type, of every size, and what steers a terminal or a page.
VALUES = st.one_of(
    st.sampled_from(
        [
            *('""', '"x"', "0", "-1", "1e400", "nan", "inf", "true", "[]", "[[]]", "{}", "[{}]", "[1, 'a']"),
            *('["x"]', "9" * 400, '"' + "(" * 400 + '"', '"' + "x + " * 200 + '1"', '"__import__(1)"'),
            *("1979-05-27", '"""\nx\n"""', "{ a = { b = 1 } }", '"\\u0000"', '"\\u202e<b>\\u001b[31m"'),
        ]
    ),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=8).map(lambda text: "'" + re.sub(r"['\n\r\x00-\x1f\x7f]", "", text) + "'"),
)
KEYS = st.sampled_from(
    ["title", "block", "grid", "x", "y", "role", "shape", "a.b", "'q'", "launch", "choose", "id"]
)


@st.composite
def damaged(draw, sources):
    """A file with a few of its lines changed, doubled, cut or gone."""
    lines = draw(st.sampled_from(sources)).split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, min(len(lines) - 1, 60)))
        match draw(
            st.sampled_from(["value", "value", "value", "gone", "double", "cut", "key", "table", "text"])
        ):
            case "value" if "=" in lines[at]:
                lines[at] = lines[at].split("=", 1)[0] + "= " + draw(VALUES)
            case "gone":
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, 10))]
            case "key":
                lines.insert(at, f"{draw(KEYS)} = {draw(VALUES)}")
            case "table":
                lines.insert(
                    at, draw(st.sampled_from(["[x]", "[launch]", "[[require]]", "[[x.y]]", "[", "[]"]))
                )
            case _:
                lines[at] += draw(st.text(max_size=5).filter(lambda text: "\r" not in text))
        lines = lines or [""]
    return "\n".join(lines)


def check(sentence, text):
    match = SENTENCE.fullmatch(sentence)
    assert match, sentence
    if match["line"]:
        assert 1 <= int(match["line"]) <= text.count("\n") + 1


@pytest.mark.deep
@MANY
@given(damaged(HEADERS))
def test_a_damaged_header_is_read_or_refused_in_one_sentence(text):
    try:
        read_kernels(text, PATH)
    except HeaderError as error:
        check(error.what, text)


@pytest.mark.deep
@MANY
@given(text=damaged(OPERATIONS))
def test_a_damaged_operation_is_read_or_refused_in_one_sentence(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    try:
        load_operation(path)
    except HeaderError as error:
        check(error.what.removeprefix(f"{folder}/").replace("Cannot read the operation ", ""), text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("block = [32, 8]", "block = [0]", "launch.block must be one to three positive integers"),
        ("any_block = true", "any_block = 1", "launch.any_block must be true or false"),
        ("rung = 10", "rung = 'x'", "rung must be a number"),
        ("default = 2.0", "default = 'x'", "scalars.scale.default must be a number"),
        ('value = "scale', 'value = "scales', "check.y.value uses 'scales'"),
        ("x = { shape", "x = { shapes", "the header lacks arrays.x.shape"),
        ('flops = "rows', 'flops = "row', "work.flops uses 'row'"),
        ('grid = ["cdiv(rows', 'grid = ["cdiv(row', "the expression 'cdiv(row, block_y)' uses 'row'"),
        (
            'condition = "columns %',
            'condition = "colum %',
            "the expression 'colum % WIDTH == 0' uses 'colum'",
        ),
        ("WIDTH = 32", "WIDTH = 3.5", "parameters.WIDTH must name an integer"),
        ("parameters = { WIDTH = 16 }", "parameters = { WIDE = 16 }", "parameters.WIDE is not a parameter"),
        ("rate = ", "rates = ", "unknown field work.rates"),
        ("aliases = ", "alias = ", "unknown field alias"),
        ('bytes = "(rows', 'byte = "(rows', "the header lacks work.bytes"),
        ('id = "row_sum_16"', 'id = "row sum"', "id must be a name of letters"),
    ],
)
def test_the_line_is_that_of_the_field(old, new, words):
    assert WHOLE.count(old) == 1
    text = WHOLE.replace(old, new)
    with pytest.raises(HeaderError) as caught:
        read_kernels(text, PATH)
    assert words in caught.value.what
    line = text[: text.index("[work]" if "work.bytes" in words else new)].count("\n") + 1
    assert caught.value.what.startswith(f"mine.cu:{line}: ")
