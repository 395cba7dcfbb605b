# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A report holds its results: compressed today, as plain JSON in earlier pages; both are read again."""

import base64
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuprof import page_data
from gpuprof.errors import ResultsError
from gpuprof.reading import read_run
from gpuprof.report.html import render_html
from gpuprof.results import dumps

SAMPLE = Path(__file__).parents[2] / "samples" / "transpose-blocks-h200.json"


@given(st.text())
def test_what_is_packed_comes_back_in_letters_that_a_script_element_holds(text):
    letters = page_data.packed(text)
    assert page_data.unpacked(letters) == text
    assert "<" not in letters
    assert page_data.packed(text) == letters


def test_a_report_is_read_like_its_results(tmp_path):
    run = read_run(SAMPLE)
    page = tmp_path / "report.html"
    page.write_text(render_html(run), encoding="utf-8")
    assert read_run(page) == run


def test_a_page_of_an_earlier_gpuprof_is_read_too(tmp_path):
    run = read_run(SAMPLE)
    data = json.dumps({"run": json.loads(dumps(run)), "charts": {}}).replace("<", "\\u003c")
    page = tmp_path / "report.html"
    page.write_text(
        f'\n<!DOCTYPE html>\n<body><script type="application/json" id="gpuprof-data">{data}</script>',
        encoding="utf-8",
    )
    assert read_run(page) == run


def block(letters: str, kind: str = "gzip") -> str:
    return f'<!DOCTYPE html><script type="application/{kind}" id="gpuprof-data">{letters}</script>'


def in_letters(data: bytes) -> str:
    return base64.b85encode(data).decode().replace("<", ",")


BOMB = in_letters(zlib.compress(b"0" * 5000, wbits=31))


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<!doctype html><p>a page of somebody else's</p>", "it has no data block"),
        (block("[[[[["), "its data block is damaged"),
        (block(page_data.packed("{}")[:-8]), "its data block is"),
        (block(in_letters(b"not gzip")), "its data block is damaged"),
        (block(page_data.packed("[1]")), "its data block holds no run"),
        (block(page_data.packed("{")), "holds no results of gpuprof"),
        (block("{}", "json"), "its data block holds no run"),
        (block(page_data.packed("[" * 100_000)), "holds no results of gpuprof"),
        (block(page_data.packed('{"run": 1}')), "it has no schema_version"),
        (block(BOMB), "its data block is cut off or too long"),
    ],
)
def test_pages_that_hold_no_run_say_so(tmp_path, monkeypatch, page, words):
    monkeypatch.setattr(page_data, "_MOST_BYTES", 4000 if BOMB in page else 2**20)
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(ResultsError, match=words):
        read_run(path)
