# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as the public writes them, on a card and on the executor: one row each, equal or with a reason.

The table is appended to the file that GPUPROF_PUBLIC_STYLE_TABLE names, in Markdown: each process its part.
"""

import os
from pathlib import Path

import pytest
from public_corpus import executed, families, on_device

HEADINGS = ("kernel", "expected on the card", "card", "executor", "why they differ")


@pytest.fixture(scope="module")
def table():
    """Rows of all families; in the end they are written where the user wants them."""
    rows = [HEADINGS, ("---",) * len(HEADINGS)]
    yield rows
    if wanted := os.environ.get("GPUPROF_PUBLIC_STYLE_TABLE"):
        with Path(wanted).open("a") as file:
            file.writelines(f"| {' | '.join(row)} |\n" for row in rows)


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_card_and_executor_agree_or_a_reason_is_known(gpu_count, table, family):
    complaints = []
    here = {row.kernel.id: row for row in executed(family)}
    for row in on_device(family, 0):
        other = here[row.kernel.id]
        outcomes = row.found.outcome, other.found.outcome
        why = (
            ""
            if len({*outcomes}) == 1
            else row.why_not_known or other.why_not_known or other.found.reason or ""
        )
        table.append(
            (f"{family.name}/{row.kernel.id}", row.expected.outcome, *outcomes, why.replace("|", "/"))
        )
        complaints += [each.complaint for each in (row, other) if each.complaint]
    assert not complaints, "\n".join(complaints)
