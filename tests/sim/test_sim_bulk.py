# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A shipped kernel that uses the copy engine, executed."""

import pytest
from typer.testing import CliRunner

from gpuprof.cli import app
from gpuprof.reading import read_run


@pytest.mark.parametrize("size", [128, 300])
def test_the_shipped_bulk_transpose(size, tmp_path):
    arguments = f"transpose --kernel bulk_tile --device sim:h200 --sizes {size} --quiet -o"
    result = CliRunner().invoke(app, [*arguments.split(), str(tmp_path)])
    assert result.exit_code == 0, result.output
    (case,) = read_run(tmp_path / "results.json").cases
    assert case.outcome == "ok"
    assert case.verification.checked_elements == size * size
    loads, stores = (case.counters[f"global_{kind}_requests"] for kind in ("load", "store"))
    assert (loads.value, loads.reason) == (None, "no counter sees what the kernel's bulk copies move")
    assert stores.value > 0
