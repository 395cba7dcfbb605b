# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Whether a case runs whole is a matter of its launch too, not of its problem alone."""

import pytest
from typer.testing import CliRunner

from gpuprof.cli import app
from gpuprof.reading import read_run

pytestmark = pytest.mark.deep

SOURCE = """/*gpuprof
title = "One block works"
problem = "transpose"
arguments = ["nx", "ny", "in", "out"]

[launch]
block = [256, 1]
grid = ["{blocks}"]
*/
extern "C" __global__ void one_block(int nx, int ny, const real *in, real *out)
{{
    if (blockIdx.x > 0)
        return;
    for (int i = threadIdx.x; i < nx * ny; i += 256)
        out[(size_t)(i % nx) * ny + i / nx] = in[i];
}}
"""


@pytest.mark.parametrize(("blocks", "executed"), [(2**31 - 1, 6), (2**28 // 256 + 1, 6), (1000, 1000)])
def test_grid_far_larger_than_its_problem_is_sampled(tmp_path, blocks, executed):
    (tmp_path / "one_block.cu").write_text(SOURCE.format(blocks=blocks))
    arguments = ["transpose", "-k", str(tmp_path / "one_block.cu"), "--sizes", "64", "--device", "sim:h200"]
    result = CliRunner().invoke(app, [*arguments, "--quiet", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (case,) = read_run(tmp_path / "results.json").cases
    assert case.outcome == "ok", case.reason
    stores = case.counters["global_store_requests"]
    assert (stores.sampled_blocks, stores.total_blocks) == (executed, blocks)
    assert stores.value == 64 * 64 // 32
    assert case.verification.checked_elements == 64 * 64
