# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""No figure stands on a page with more digits than anybody measured."""

import re
from pathlib import Path

import pytest
from page_reader import PageReader, expanded
from synthetic_runs import RUNS

from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.report.html import render_html
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report
from gpuprof.results import Run

pytestmark = pytest.mark.deep

SAMPLES = {path.name: path for path in (Path(__file__).parents[2] / "samples").glob("*-h200.json")}
#: A number with a decimal point; versions have more points, and names letters.
NUMBER = re.compile(r"(?<![\w.:/])\d[\d,]*\.\d+(?![\w.]*\w)")
MOST_DIGITS = 5
#: What others wrote, and is shown as they wrote it: sources, differences between them, compilers' words.
VERBATIM = re.compile(
    r'<table class="source".*?</table>|<pre.*?</pre>|<code>.*?</code>|<style.*?</style>', re.DOTALL
)
DRAWN = re.compile(r"<(text|title|desc)[^>]*>([^<]*)</")


#: Cases of a sample, from its first to its last: the others have figures of the same kinds.
MOST_CASES = 12


def run_of(name: str) -> Run:
    run = read_run(SAMPLES[name]) if name in SAMPLES else RUNS[name]()
    return replace(run, cases=run.cases[:: 1 + len(run.cases) // MOST_CASES])


def too_long(text: str) -> list[str]:
    """Numbers of a text with more digits than are shown of a figure."""
    found = NUMBER.findall(text)
    return [number for number in found if len(re.sub("[,.]", "", number).lstrip("0")) > MOST_DIGITS]


@pytest.mark.parametrize("name", [*SAMPLES, *RUNS])
def test_no_figure_on_a_page_or_in_markdown_is_longer_than_five_digits(name: str) -> None:
    run = run_of(name)
    assert too_long(markdown_of(run_report(run))) == []
    page = VERBATIM.sub("", expanded(render_html(run)))
    reader = PageReader(page)
    assert too_long(reader.text) == []
    assert too_long(" | ".join(reader.attributes("title") + reader.attributes("aria-label"))) == []
    assert too_long(" | ".join(text for _, text in DRAWN.findall(page))) == []


def test_such_a_figure_would_be_found() -> None:
    assert too_long("of 79.50819672131148 %, +0.036 %, 134,217,728 and 1,234.56 but 12.345 at 580.95.05") == [
        "79.50819672131148",
        "1,234.56",
    ]
