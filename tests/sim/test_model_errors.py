# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The benchmark that holds modelled times against measured ones follows the executor's interfaces."""

import csv
import importlib
from pathlib import Path


def test_a_case_is_counted_kept_and_predicted_for_both_cards(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    model_errors = importlib.import_module("model_errors")
    monkeypatch.setattr(model_errors, "SIZES", (1024,))
    assert model_errors._count(tmp_path, 0).startswith("gemm-naive-1024: ")
    assert model_errors._count(tmp_path, 0) == ""  # it is counted once
    model_errors.predict(tmp_path, tmp_path / "predictions.csv")
    with (tmp_path / "predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["card"] for row in rows] == ["h200", "h100"]
    for row in rows:
        assert 0 < float(row["low_us"]) < float(row["modelled_us"]) < float(row["high_us"])
