# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as Markdown, for the summary of a CI job or a table in a README."""

import re

from gpuprof.analysis.banners import banners
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import Ladder, build_ladder
from gpuprof.analysis.status import status_of
from gpuprof.report.ladder_table import explanation, headline, rung_columns
from gpuprof.report.text import group_title, visible
from gpuprof.results import Run

_MODES = {
    "gpu": "measured on a GPU",
    "sim": "executed without a GPU, not timed",
    "none": "compiled only, not run",
}
_LEVELS = {"bad": "✗", "warning": "⚠", "note": "ℹ"}
_SPECIAL = re.compile(r"([\\`*_\[\]|~])")


def render_markdown(run: Run) -> str:
    """One table per problem and size, with the run's cautions above.

    Args:
        run: What to show.

    Returns:
        Markdown text, ending in a newline; what was not measured says so.
    """
    device = f"**{_text(f'{run.device.name} ({run.device.arch})')}**"
    parts = [
        ", ".join((device, _MODES[run.backend], _text(run.created_utc), f"gpuprof {_text(run.tool.version)}"))
    ]
    cautions = []
    for banner in banners(run):
        advice = _text(f"{banner.detail} {banner.fix}".strip())
        cautions.append(f"> {_LEVELS[banner.level]} **{_text(banner.title)}.** {advice}")
    if cautions:
        parts.append("\n>\n".join(cautions))
    for group in groups(run):
        for size in group.sizes:
            parts.append(_section(run, group, build_ladder(run, size)))
    return "\n\n".join(parts) + "\n"


def _section(run: Run, group: Group, ladder: Ladder) -> str:
    columns = rung_columns(run, group, ladder)
    lines = [
        f"### {_text(group_title(group.op, group.dtype, group.layouts))}, {_text(ladder.size.label)}",
        "",
        "| Kernel | Outcome | " + " | ".join(_text(column.label) for column in columns) + " | Why |",
        "|:--|:--|:--|" + "--:|" * (len(columns) - 1) + ":--|",
    ]
    for rung in ladder.rungs:
        status = status_of(run, rung.case)
        cells = [column.read(rung) for column in columns]
        texts = ["not measured" if cell.text is None else _text(cell.text) for cell in cells]
        name = f"**{_code(rung.kernel.id)}**" if rung.is_fastest else _code(rung.kernel.id)
        if rung.is_reference:
            name += " (reference)"
        why = _text("; ".join(explanation(run, rung)))
        lines.append(f"| {name} | {status.symbol} {status.word} | {' | '.join(texts)} | {why} |")
    sentence = headline(run, group, ladder)
    if sentence:
        lines += ["", _text(sentence)]
    return "\n".join(lines)


def _text(text: str) -> str:
    """Text that Markdown shows as it is, on one line, with nothing of it read as HTML."""
    flat = " ".join(visible(text).split())
    return _SPECIAL.sub(r"\\\1", flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _code(text: str) -> str:
    """A kernel's id as code; one that code cannot hold is shown as text."""
    return f"`{text}`" if re.fullmatch(r"[A-Za-z0-9_.:/-]+", text) else _text(text)
