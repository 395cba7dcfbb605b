# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Each card executes the PTX of its own architecture, up to the newest that the executor knows."""

import re

import pytest
from problem_support import Transpose, find_kernel

from gpuprof.backends.sim import executed as module
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case


@pytest.mark.parametrize(
    ("card", "compiled", "executed"),
    [
        ("t4", "sm_75", "sm_75"),
        ("rtx4090", "sm_89", "sm_89"),
        ("h200", "sm_90", "sm_90"),
        ("b200", "sm_100", "sm_90"),
        ("rtx5090", "sm_120", "sm_90"),
    ],
)
def test_card_compiles_for_itself_and_executes_what_is_known(monkeypatch, card, compiled, executed):
    targets = []

    def load(ptx, entry, **options):
        targets.append(re.search(r"\.target (\w+)", ptx)[1])
        return load_program(ptx, entry, **options)

    load_program = module.load_program
    monkeypatch.setattr(module, "load_program", load)
    backend = SimBackend(load_card(card), 0, models=False)
    assert backend.compile_arch == compiled
    assert backend.environment == {"executed_ptx": executed}
    case = Case.of(find_kernel("transpose", "naive_col"), Transpose(64, 32))
    measurement, _ = measure_case(case, backend, Compiler(backend.compile_arch))
    assert measurement.outcome == "ok", measurement.reason
    assert targets == [executed]
