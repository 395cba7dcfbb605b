# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The HTML report: one self-contained file that opens anywhere and fetches nothing."""

import base64
import functools
import hashlib
import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from gpuprof import page_data
from gpuprof.analysis import numbers
from gpuprof.analysis.glossary import Glossary
from gpuprof.report.document_page import ReportPieces, assets, linked, templates
from gpuprof.report.kernel_section import note, picture_of
from gpuprof.report.ladder_table import explanation, told_of
from gpuprof.report.page import build_page
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
        block = data.result()
        # Without a chart its absence is no error.
        packed_plotly, plotly_hash = plotly.result() if page.charts else ("", "")
    script = assets(*_SCRIPTS)
    hashes = [_hash(script), *([plotly_hash] if page.charts else [])]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
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
            policy=f"{policy} base-uri 'none'; form-action 'none'",
            style=assets("style.css", "charts.css"),
            dark=assets("dark.css"),
            script=script,
            blocks={
                page_data.RUN_BLOCK: block,
                **(
                    {"gpuprof-charts": page_data.packed(_json(page.charts)), "gpuprof-plotly": packed_plotly}
                    if page.charts
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
    environment = _environment()
    for name in environment.list_templates(["j2"]):  # a page includes nearly all
        environment.get_template(name)
    _plotly()


@functools.cache
def _environment() -> Environment:
    """The templates with all that they call; kept, because compiling them takes longer than filling them."""
    environment = templates()
    environment.filters.update(linked=linked, time_us=numbers.time_us, percent=numbers.percent)
    environment.globals.update(
        bound=numbers.bound,
        note=note,
        picture_of=picture_of,
        told_of=told_of,
        explanation=explanation,
        grouped=lambda choices: groupby(choices, attrgetter("when", "because")),
    )
    return environment


@functools.cache
def _plotly() -> tuple[str, str]:
    """Plotly compressed, as far as charts need it, and the hash by which a page allows it."""
    from plotly.offline import get_plotlyjs  # only a report pays for it

    text = plotly_part(str(get_plotlyjs()))
    return page_data.packed(text), _hash(text)


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _json(document: dict[str, Any]) -> str:
    return to_text(document, separators=(",", ":"))


#: A module as esbuild wraps it, `var NAME=WRAPPER((exports,module)=>{…});`, and backwards its call, `NAME()`.
#: Both begin with rare letters: to look behind or ahead of every other one takes longer than all the rest.
_MODULE = re.compile(r"var (?<=[;}]var )(?:[\w$]+,)*([\w$]+)=([\w$]+)\((?=\(|[\w$]+=>)")
_CALL = re.compile(r"\)\(([\w$]+)")
#: What the last module adds to the core, and how the kind of chart to add is known.
_REGISTERED = re.compile(r"\.register\(\[[\w$(),]*\]\)")
_BARS = 'moduleType:"trace",name:"bar"'
#: The function around it all, an argument: browsers read twice what does not stand in parentheses.
_AROUND = re.compile(r"(this, )(\(\) => \{.*\})(\)\);\s*)\Z", re.DOTALL)


def plotly_part(bundle: str) -> str:
    """Plotly's bundle without the modules that nobody calls when bars alone are registered: a quarter of it.

    A bundle of another build is returned as it is. Names of modules are unique in it.
    """
    found = [(match[1], match[2], match.start()) for match in _MODULE.finditer(bundle)]
    wrappers = [name for name, _ in Counter(wrapper for _, wrapper, _ in found).most_common(2)]
    starts, place = list[int](), dict[str, int]()
    for name, wrapper, start in found:
        # The functions of an ES module stand before its wrapper: it goes with the CommonJS module before.
        if wrapper == wrappers[0]:
            starts.append(start)
        if wrapper in wrappers and starts:
            place[name] = len(starts) - 1
    end = bundle.find("return ", starts[-1]) if starts else -1
    texts = [bundle[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=False)]
    bars = [name for name, index in place.items() if _BARS in texts[index]]
    if end < 0 or len(bars) != 1 or not _REGISTERED.search(texts[-1]):
        return bundle
    texts[-1] = _REGISTERED.sub(f".register([{bars[0]}()])", texts[-1])
    needed: set[int] = set()
    waiting = [len(texts) - 1]
    while waiting:
        index = waiting.pop()
        if index not in needed:
            needed.add(index)
            called = (name[::-1] for name in _CALL.findall(texts[index][::-1]))
            waiting.extend(place[name] for name in called if name in place)
    part = bundle[: starts[0]] + "".join(texts[index] for index in sorted(needed)) + bundle[end:]
    return _AROUND.sub(r"\1(\2)\3", part)
