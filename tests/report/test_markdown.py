# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The Markdown report: whole tables, and nothing in a text can break out of its cell."""

import re

import pytest
import snapshot
from synthetic_runs import RUNS, hostile_run

from gpuprof.report.markdown import render_markdown


@pytest.mark.parametrize("name", RUNS)
def test_snapshot(name: str) -> None:
    snapshot.check(f"markdown-{name}.md", render_markdown(RUNS[name]()))


@pytest.mark.parametrize("name", RUNS)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", render_markdown(RUNS[name]()), re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def test_hostile_strings_stay_text() -> None:
    text = render_markdown(hostile_run())
    assert "<img" not in text
    assert "&lt;img src=x" in text
