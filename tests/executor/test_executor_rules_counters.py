# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the accesses of rules cost: the executor counts what Nsight Compute counted on cards."""

import numpy as np
import pytest
from test_executor_rules import ANSWERS, cases, modules

from gpuprof.counters import COUNTERS
from gpuprof.executor import GlobalMemory, LaunchResult, launch, load_program

pytestmark = pytest.mark.deep

#: The executor's counters, by the metrics that they stand for.
COUNTED = {
    metric: row.name
    for row in COUNTERS.values()
    if row.executor
    for metric in row.metrics
    if metric.endswith(".sum")
}
#: Of kernels that also copy asynchronously, these metrics count the copies too.
PLAIN_ONLY = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
}

#: What the L1 cache does not count by addresses, as the other metric of the same counter is: it serves each
#: lane of such a load a sector of its own.
NOT_BY_ADDRESS = {("load_mmio_relaxed_sys_global", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")}


def asked() -> list:
    """Every counted case that a card answered as it stands, with the card."""
    return [
        pytest.param(case, answer["counters"], id=f"{card}-{name}")
        for card, told in ANSWERS.items()
        for name, case in cases().items()
        if (answer := told["answers"].get(name)) and answer["key"] == case.key and "counters" in answer
    ]


def counts(case) -> LaunchResult:
    shared, texts = modules(case.file)
    memory = GlobalMemory()
    out = memory.allocate(np.zeros(case.count, case.dtype), "out")
    inputs = [memory.allocate(np.frombuffer(content, np.uint8), "input") for content in case.inputs]
    program = load_program(shared + texts[case.kernel], case.kernel)
    return launch(program, case.grid, case.block, [out, *inputs], memory, case.shared)


@pytest.mark.parametrize(("case", "told"), asked())
def test_what_accesses_cost(case, told):
    result = counts(case)
    shown = set(COUNTED.values()) - result.hidden.keys()
    copies = bool(result.counters["async_copy_shared_wavefronts"])
    compared = {
        metric: (result.counters[COUNTED[metric]], value)
        for metric, value in told.items()
        if COUNTED.get(metric) in shown and not (copies and metric in PLAIN_ONLY)
        if (case.name, metric) not in NOT_BY_ADDRESS
    }
    assert len(compared) >= 4
    assert not {metric: pair for metric, pair in compared.items() if pair[0] != pair[1]}
