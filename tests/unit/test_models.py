# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a modelled time may be said to tell: by the committed table of modelled and measured times."""

import csv
import math
from collections import defaultdict
from pathlib import Path

import pytest

from gpuprof.analysis.models import difference_error, modelled_text
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.shipped import shipped_names
from gpuprof.results import Model
from gpuprof.sm_model.modelled import _INTERVALS

DATA = Path(__file__).parents[2] / "docs" / "data"


def model(us: float, near: str = "card") -> Model:
    low, high = _INTERVALS[near]
    return Model(us, low * us, high * us)


def rows_of(table: str, card: str) -> list[dict[str, str]]:
    with (DATA / f"{table}.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["card"] == card]


def test_a_modelled_time_is_told_with_its_interval() -> None:
    assert modelled_text(model(20.0)) == "20 µs modelled (15–26 µs)"


@pytest.mark.parametrize("card", ["h200", "h100"])
def test_nine_of_ten_versions_of_a_kernel_differ_by_what_the_model_says(card: str) -> None:
    after = {(name, each.id): each.after for name in shipped_names() for each in shipped_ladder(name).kernels}
    rows: dict[tuple[str, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in rows_of("model-errors", card):
        times = float(row["modelled_us"]), float(row["measured_us"])
        rows[row["operation"], row["size"]][row["kernel"]] = times
    within = []
    for (operation, _), held in rows.items():
        for kernel, (modelled, measured) in held.items():
            if earlier := held.get(after[operation, kernel]):
                off = math.log(modelled / earlier[0]) - math.log(measured / earlier[1])
                within.append(abs(off) <= difference_error(model(modelled), model(earlier[0])))
    assert len(within) > 500
    assert sum(within) / len(within) >= 0.9


@pytest.mark.parametrize("card", ["h200", "h100"])
@pytest.mark.parametrize("of", ["model-errors", "model-public-errors"])
def test_nineteen_of_twenty_times_lie_inside_their_interval(of: str, card: str) -> None:
    rows = rows_of(of, card)
    inside = [float(row["low_us"]) <= float(row["measured_us"]) <= float(row["high_us"]) for row in rows]
    assert len(inside) > 40
    assert sum(inside) / len(inside) >= 0.95
