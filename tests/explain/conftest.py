# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs of the planted kernels on a false GPU, and on the executor as the device."""

import json
import os
import sys
from pathlib import Path

import pytest
from processes import ran

from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler
from gpuprof.measure.explain import explain_case
from gpuprof.measure.protocol import Explain
from gpuprof.problems.problem import Problem

BROKEN_DEVICE = Path(__file__).with_name("broken_device.py")
UNIT = Path(__file__).parent.parent / "unit"
sys.path.insert(0, str(UNIT))  # for fake_worker


@pytest.fixture(scope="session")
def run_broken(tmp_path_factory):
    """Runs the command line with a GPU that is broken; gives its rows by kernel, and what it printed."""

    def run(*arguments):
        results = tmp_path_factory.mktemp("broken") / "results.json"
        path = os.pathsep.join((str(UNIT), str(BROKEN_DEVICE.parent), os.environ.get("PYTHONPATH", "")))
        process = ran(
            [sys.executable, str(BROKEN_DEVICE), *arguments, "--device", "0", "--json", str(results)],
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.returncode == 1, process.stderr
        document = json.loads(results.read_text())
        assert document["complete"]
        return {case["kernel"]: case for case in document["cases"]}, process.stdout

    return run


@pytest.fixture(scope="session")
def explained():
    """Explains a kernel as the worker does that is asked to: its explanation, and why there is none."""
    backend = SimBackend(load_card("h200"), models=False)
    compiler = Compiler(backend.device.arch)

    def explain(ladder, name, sizes, symptom, **question):
        case = Case.of(ladder.find(name), Problem.of(ladder.operation, sizes))
        return explain_case(Explain(case, symptom, 60.0, **question), backend, compiler)

    return explain
