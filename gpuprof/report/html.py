# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The HTML report: one self-contained file that opens anywhere and fetches nothing."""

import base64
import functools
import hashlib
import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.glossary import Glossary
from gpuprof.analysis.status import status_of
from gpuprof.report.agreement_text import agreement_headline, format_difference
from gpuprof.report.cells import block_phrase, format_block
from gpuprof.report.charts import SWEEP_LABELS, parameter_text, sweep_text
from gpuprof.report.fragments import Fragments
from gpuprof.report.ladder_table import remarks
from gpuprof.report.page import build_page
from gpuprof.report.profile_table import PROFILE_COLUMNS
from gpuprof.report.shortened import shortened
from gpuprof.report.text import bound, finalize
from gpuprof.results import Run
from gpuprof.schema import to_json

_SCRIPTS = ("charts.js", "page.js", "tables.js", "highlight.js", "lazy.js", "glossary.js")


def render_html(run: Run) -> str:
    """A run as one HTML document.

    The document holds the run's whole data as one JSON block (`run`, readable as a results file, and
    `charts`), Plotly once, and tables that need no script. Its content security policy allows only the
    scripts whose hashes it names, and no network at all.

    Args:
        run: What to show; nothing is measured or changed.

    Returns:
        The document's text.
    """
    whole, run = run, shortened(run)
    page = build_page(run)
    fragments = Fragments(Glossary())
    scripts = [_plotly() if page.charts else "", "\n".join(_asset(name) for name in _SCRIPTS)]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            run=run,
            glossary=fragments.glossary,
            term=fragments.term,
            not_measured=fragments.not_measured,
            cell=fragments.cell,
            cells=fragments.cells,
            sortable_cells=fragments.sortable_cells,
            policy=_policy(scripts),
            style=Markup(_asset("style.css")),
            dark=Markup(_asset("dark.css")),
            scripts=[Markup(script) for script in scripts if script],
            data=_data_block({"run": to_json(whole), "charts": page.charts}),
        )
    )


@functools.cache
def _environment() -> Environment:
    """The templates with all that they call; kept, because compiling them takes longer than filling them."""
    environment = Environment(
        loader=PackageLoader("gpuprof.report"),
        autoescape=True,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals.update(
        status_of=status_of,
        remarks=remarks,
        agreement_headline=agreement_headline,
        format_difference=format_difference,
        format_block=format_block,
        block_phrase=block_phrase,
        profile_columns=PROFILE_COLUMNS,
        sweep_labels=SWEEP_LABELS,
        sweep_text=sweep_text,
        parameter_text=parameter_text,
        count=numbers.count,
        bound=bound,
        exact=numbers.exact,
        percent=numbers.percent,
        significant=numbers.significant,
        time_us=numbers.time_us,
    )
    return environment


@functools.cache
def _asset(name: str) -> str:
    return files("gpuprof.report").joinpath("templates", name).read_text(encoding="utf-8")


@functools.cache
def _plotly() -> str:
    # Importing Plotly takes longer than anything else here, so that only a report with charts pays for it.
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _policy(scripts: list[str]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
        if script
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def _data_block(document: dict[str, Any]) -> Markup:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
