# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The doctor's answers where there is no GPU."""

from pathlib import Path

from gpuprof.backends.gpu import query
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.commands import checks
from gpuprof.commands import doctor as command
from gpuprof.devices.cards import load_card
from gpuprof.errors import BackendUnavailable, ExitCode
from gpuprof.kernels.catalog import shipped_operation
from gpuprof.kernels.header import read_kernels
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.problem import Problem


def test_without_a_gpu_nothing_is_broken(monkeypatch, capsys):
    def none():
        raise BackendUnavailable("No driver.", fix="Install one.")

    monkeypatch.setattr(query, "device_count", none)
    assert command.examine(0) == ExitCode.OK
    text = capsys.readouterr().out
    assert "without  GPU: No driver" in text
    assert "Install one." in text
    assert "--device sim" in text


def test_broken_parts_give_a_status(monkeypatch, capsys):
    monkeypatch.setattr(
        command, "checks", lambda ordinal: iter([checks.Check("X", "broken", "gone.", "Mend.")])
    )
    assert command.examine(0) == ExitCode.ENVIRONMENT
    assert capsys.readouterr().out == "BROKEN   X: gone\n           Mend.\n"


def test_the_trial_launch_counts_what_the_doctor_expects():
    """On the executor, which counts as a GPU would."""
    file = read_kernels(checks._TRIAL, Path("trial.cu"), shipped_operation)
    case = Case.of(file.kernels[0], Problem.of(file.operation, (checks._TRIAL_ELEMENTS,)))
    backend = SimBackend(load_card("h200"), 0)
    measurement, _ = measure_case(case, backend, Compiler(backend.compile_arch))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.counters["global_load_sectors"].value == checks._TRIAL_ELEMENTS * 4 // 32


def test_permission_is_read_from_the_driver_and_the_capabilities(monkeypatch):
    texts = {}
    monkeypatch.setattr(checks, "_text", lambda path: texts.get(path.name, ""))
    assert checks._permission().state == "absent"
    texts["params"] = "RmProfilingAdminOnly: 1\n"
    check = checks._permission()
    assert check.state == "broken"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in check.fix
    texts["status"] = "CapEff:\t0000000000200000\n"
    assert checks._permission().state == "ok"
    texts["status"] = "CapEff:\t0000000000000000\n"
    texts["params"] = "RmProfilingAdminOnly: 0\n"
    assert checks._permission().state == "ok"
