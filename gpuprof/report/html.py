# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The HTML report: one self-contained file that opens anywhere and fetches nothing."""

import base64
import functools
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from gpuprof import page_data
from gpuprof.analysis import numbers
from gpuprof.analysis.glossary import Glossary
from gpuprof.report.bound_picture import note
from gpuprof.report.document_page import assets, linked, templates
from gpuprof.report.page import build_page
from gpuprof.report.pieces import ReportPieces
from gpuprof.report.plotly_part import plotly_part
from gpuprof.report.shortened import shortened
from gpuprof.results import Run
from gpuprof.schema import to_text

#: The element that holds all parts, compressed: for each kind of piece a list with every part's.
PARTS_BLOCK = "gpuprof-parts"
#: Stands between the pieces of a part. Those of one kind are compressed beside each other, in half the bytes.
_BETWEEN = "<!--kind-->"
_SCRIPTS = ("charts.js", "page.js", "tables.js", "highlight.js", "lazy.js", "glossary.js")


def render_html(run: Run) -> str:
    """A run as one HTML document.

    The charts are drawn in it, and every table needs no script. It holds the run's whole data (readable as a
    results file), the charts' other drawings and Plotly, each compressed: its script inflates what a reader
    asks for. Its content security policy allows only the scripts whose hashes it names, Plotly's among them,
    and no network at all.
    """
    shown = shortened(run)
    with ThreadPoolExecutor(1) as beside:
        # Compressing takes as long as half of the page, and holds no lock while it does.
        plotly = beside.submit(_plotly)
        data = beside.submit(page_data.packed, _json({"run": run}))
        page = build_page(shown)
        charts = {view.key: view.data for view in page.charts.values()}
        block = data.result()
        # Without a chart its absence is no error.
        packed_plotly, plotly_hash = plotly.result() if charts else ("", "")
    script = assets(*_SCRIPTS)
    pieces, parts = ReportPieces(Glossary(shown)), _Parts()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            run=shown,
            glossary=pieces.glossary,
            term=pieces.term,
            parts=parts,
            parts_block=PARTS_BLOCK,
            content=pieces.content,
            table=pieces.table,
            policy=_policy([_hash(script), *([plotly_hash] if charts else [])]),
            style=assets("style.css", "charts.css"),
            dark=assets("dark.css"),
            script=script,
            blocks={
                page_data.RUN_BLOCK: block,
                **(
                    {"gpuprof-charts": page_data.packed(_json(charts)), "gpuprof-plotly": packed_plotly}
                    if charts
                    else {}
                ),
            },
        )
    )


class _Parts:
    """Parts of a page that weigh much and are opened seldom: kept compressed, built where they are opened."""

    def __init__(self) -> None:
        self._held: list[str] = []

    def keep(self, content: str) -> Markup:
        """Put a part aside, HTML without parts of its own; what stands in its place names it."""
        self._held.append(str(content))
        return Markup(f'<div class="kept" data-kept="{len(self._held) - 1}"></div>')

    def packed(self) -> Markup:
        """All parts kept so far, for the element `PARTS_BLOCK`."""
        kinds = list(zip_longest(*(part.split(_BETWEEN) for part in self._held), fillvalue=""))
        return Markup(page_data.packed(json.dumps(kinds, separators=(",", ":"), ensure_ascii=False)))


def prepare() -> None:
    """Make ready, in any thread, what every page takes."""
    _environment().get_template("report.html.j2")
    _plotly()


@functools.cache
def _environment() -> Environment:
    """The templates with all that they call; kept, because compiling them takes longer than filling them."""
    environment = templates()
    environment.filters.update(linked=linked, time_us=numbers.time_us, percent=numbers.percent)
    environment.globals.update(bound=numbers.bound, note=note)
    return environment


@functools.cache
def _plotly() -> tuple[str, str]:
    """Plotly compressed, as far as charts need it, and the hash by which a page allows it."""
    # Importing Plotly takes longer than anything else here, so that only a report pays for it.
    from plotly.offline import get_plotlyjs

    text = plotly_part(str(get_plotlyjs()))
    return page_data.packed(text), _hash(text)


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _policy(hashes: list[str]) -> str:
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def _json(document: dict[str, Any]) -> str:
    return to_text(document, separators=(",", ":"))
