# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every drawing of a chart: one for each choice that its reader has."""

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from gpuprof.report.svg.bar_rows import bar_rows
from gpuprof.report.svg.curves import curves
from gpuprof.report.svg.heat_table import bar_table, heat_table

_KINDS: dict[str, Callable[[dict[str, Any], int], Markup]] = {
    "bars": bar_rows,
    "lines": curves,
    "matrix": lambda chart, _: heat_table(chart),
    "row": lambda chart, _: bar_table(chart),
}


def drawings(chart: dict[str, Any]) -> tuple[Markup, ...]:
    """The drawings of a chart that `charts` made; the first is the one shown."""
    draw = _KINDS[chart["kind"]]
    return tuple(draw(chart, choice) for choice in range(len(chart.get("choices", [None]))))
