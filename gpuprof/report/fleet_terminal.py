# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet in the terminal: how many cards, those that are not like the others, and by what."""

from typing import TextIO

from gpuprof.comparison.fleet import Fleet
from gpuprof.report.fleet_text import case_rows, cautions, far, kind_facts, labels, where, why
from gpuprof.report.terminal import Writer

#: Outliers, failures and cases that are named; the page names all.
_MOST_CARDS, _MOST_CASES = 30, 12


def print_fleet(fleet: Fleet, *, file: TextIO, width: int | None = None, color: bool | None = None) -> None:
    """Print a fleet.

    Args:
        fleet: What to show.
        file: Where to.
        width: Columns to fill; the terminal's, or 140 in a pipe, when None.
        color: Whether to use colour; only on a terminal when None.
    """
    writer = Writer(file, width, color)
    writer.title(fleet.headline)
    for caution in cautions(fleet):
        writer.wrapped("!", caution, "yellow")
    for kind in fleet.kinds:
        writer.gap()
        writer.title(kind.name)
        writer.wrapped(" ", kind_facts(kind), "dim")
        for finding in kind.findings[:_MOST_CARDS]:
            confirmed = finding.outlier.confirmed
            mark = ("x" if writer.ascii else "✗") if confirmed else "?"
            said = labels(finding)
            card = f"{finding.card.title} ({said})" if said else finding.card.title
            writer.wrapped(
                mark, f"{card}: {where(finding)}; {why(finding)}", "red" if confirmed else "yellow"
            )
        if len(kind.findings) > _MOST_CARDS:
            writer.wrapped(" ", f"{len(kind.findings) - _MOST_CARDS} more", "dim")
        for key, groups in kind.labels.items():
            told = [
                f"{group.value or 'without'} {far(group.change)}"
                for group in groups
                if group.change is not None and abs(group.change) >= (kind.judged.threshold or 1.0)
            ]
            if told:
                writer.wrapped("!", f"by {key}: {', '.join(told)} (median of its cards)", "yellow")
        rows = sorted(case_rows(kind), key=lambda row: -max(row.changes.values()))
        for row in rows[:_MOST_CASES]:
            text = f"{row.series.name}: {row.time}, spread {row.spread}, at most {row.slowest}"
            writer.wrapped(" ", text, "dim")
        if len(rows) > _MOST_CASES:
            writer.wrapped(" ", f"{len(rows) - _MOST_CASES} more cases spread less far", "dim")
    for card, case, reason in fleet.failures[:_MOST_CARDS]:
        writer.wrapped("x" if writer.ascii else "✗", f"{card}: {case} failed: {reason}", "red")
    if len(fleet.failures) > _MOST_CARDS:
        writer.wrapped(" ", f"{len(fleet.failures) - _MOST_CARDS} more failed", "dim")
