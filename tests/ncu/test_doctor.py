# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The doctor's answers where there is no GPU."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuprof.backends.gpu import driver
from gpuprof.backends.gpu.nvml import conditions
from gpuprof.backends.sim.backend import SimBackend
from gpuprof.commands import doctor
from gpuprof.devices.cards import load_card
from gpuprof.errors import BackendUnavailable, ExitCode
from gpuprof.kernels.header import WHOLE_HEADER, read_kernels
from gpuprof.measure.case import Case
from gpuprof.measure.execute import Compiler, measure_case
from gpuprof.problems.problem import Problem
from gpuprof.results import Condition


def test_without_a_gpu_nothing_is_broken(monkeypatch, capsys):
    def none():
        raise BackendUnavailable("No driver.", fix="Install one.")

    monkeypatch.setattr(driver, "device_count", none)
    assert doctor.examine(0) == ExitCode.OK
    text = capsys.readouterr().out
    assert "without   GPU: No driver" in text
    assert "Install one." in text
    assert "--device sim" in text


def test_broken_parts_give_a_status(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "checks", lambda *_: iter([Condition("X", "broken", "gone.", "Mend.")]))
    assert doctor.examine(0) == ExitCode.CASES_FAILED == 1
    assert capsys.readouterr().out == "BROKEN    X: gone\n          Mend.\n"
    assert doctor.examine(0, as_json=True) == ExitCode.CASES_FAILED
    assert json.loads(capsys.readouterr().out) == {
        "usable": False,
        "checks": [{"name": "X", "state": "broken", "text": "gone.", "fix": "Mend."}],
    }


def test_what_disturbs_is_no_failure(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "checks", lambda *_: iter([Condition("X", "disturbs", "slow")]))
    assert doctor.examine(0) == ExitCode.OK
    assert capsys.readouterr().out == "disturbs  X: slow\n"


def test_the_trial_launch_counts_what_the_doctor_expects():
    """On the executor, which counts as a GPU would."""
    file = read_kernels(WHOLE_HEADER + doctor._TRIAL, Path("trial.cu"))
    case = Case.of(file.kernels[0], Problem.of(file.operation, (doctor._TRIAL_ELEMENTS,)))
    backend = SimBackend(load_card("h200"))
    measurement, _ = measure_case(case, backend, Compiler(backend.device.arch))
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.counters["global_load_sectors"].value == doctor._TRIAL_ELEMENTS * 4 // 32


@pytest.mark.parametrize(("columns", "most"), [("40", 40), ("10", 30), ("500", 110)])
def test_lines_fit_the_terminal(monkeypatch, columns, most):
    monkeypatch.setenv("COLUMNS", columns)
    text = "kernels that include cuda_fp16.h cannot be compiled here " * 3
    path = f"/a/long/{'x' * 200}"
    lines = doctor._lines(Condition("CUDA's headers", "absent", text, f"{text}in {path}")).split("\n")
    assert lines[0].startswith("without   CUDA's headers:")
    assert all(line.startswith(" " * 10) for line in lines[1:])
    assert all(len(line) <= most for line in lines[:-1])
    assert lines[-1].strip() == path  # it stays whole


class Nvml:
    """Answers as NVML does; what is not in `answers` is not offered."""

    NVMLError = ValueError
    NVML_CLOCK_SM = "sm"
    NVML_COMPUTEMODE_PROHIBITED, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 2, 3
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0

    def __init__(self, **answers):
        self.answers = answers

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByPciBusId(self, name):
        assert name == b"0000:1B:00.0"
        return "handle"

    def __getattr__(self, query):
        def answer(handle, *arguments):
            assert handle == "handle"
            if query.removeprefix("nvmlDeviceGet") not in self.answers:
                raise self.NVMLError("not supported")
            return self.answers[query.removeprefix("nvmlDeviceGet")]

        return answer


HEALTHY = {
    "ClockInfo": 345,
    "MaxClockInfo": 1980,
    "CurrentClocksThrottleReasons": 1,
    "EnforcedPowerLimit": 700_000,
    "PowerManagementDefaultLimit": 700_000,
    "ComputeMode": 0,
    "ComputeRunningProcesses": [],
    "PersistenceMode": 1,
    "EccMode": [1, 1],
    "TotalEccErrors": 0,
    "MigMode": [0, 0],
}


def looked_at(monkeypatch, **answers):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(**answers))
    return {found.title: found for found in conditions("0000:1B:00.0")}


def test_a_healthy_gpu_disturbs_nothing(monkeypatch):
    found = looked_at(monkeypatch, **HEALTHY)
    assert {check.state for check in found.values()} == {"ok"}
    assert [*found] == [
        *("clocks", "power", "compute mode", "other processes", "persistence", "memory errors")
    ]
    assert (
        found["clocks"].text
        == "SM at 345 of 1,980 MHz while idle: not locked, so that they rise with the load"
    )
    locked = looked_at(monkeypatch, **HEALTHY | {"ClockInfo": 1980})["clocks"]
    assert locked.text == "SM at 1,980 of 1,980 MHz while idle: locked"


@pytest.mark.parametrize(
    ("answers", "title", "state", "text"),
    [
        ({"CurrentClocksThrottleReasons": 0x60}, "clocks", "disturbs", "hardware thermal slowdown"),
        ({"EnforcedPowerLimit": 350_000}, "power", "disturbs", "at most 350 W, of 700 W by default"),
        ({"ComputeMode": 2}, "compute mode", "broken", "no process may compute"),
        ({"ComputeMode": 3}, "compute mode", "ok", "one process at a time"),
        ({"PersistenceMode": 0}, "persistence", "ok", "off"),
        ({"EccMode": [0, 0]}, "memory errors", "ok", "ECC is off"),
        ({"TotalEccErrors": 2}, "memory errors", "broken", "2 uncorrected since the driver started"),
        ({"MigMode": [1, 1]}, "MIG", "disturbs", "a slice has fewer SMs"),
    ],
)
def test_what_is_not_healthy_is_told(monkeypatch, answers, title, state, text):
    check = looked_at(monkeypatch, **HEALTHY | answers)[title]
    assert check.state == state
    assert text in check.text
    assert check.fix or state == "ok"


def test_other_processes_are_named_and_counted(monkeypatch):
    running = [SimpleNamespace(pid=10 + number, usedGpuMemory=number * 2**30 or None) for number in range(5)]
    check = looked_at(monkeypatch, **HEALTHY | {"ComputeRunningProcesses": running})["other processes"]
    assert check.state == "disturbs"
    assert check.text == "process 10, process 11 (1.0 GiB), process 12 (2.0 GiB) and 2 more"


def test_what_a_virtual_gpu_does_not_tell_is_left_out(monkeypatch):
    assert looked_at(monkeypatch) == {}


def test_without_nvml_that_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (found,) = conditions("x")
    assert (found.title, found.state) == ("clocks (NVML)", "absent")


def test_folders_and_memory_are_looked_at(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(tmp_path / "not" / "yet"))
    monkeypatch.setattr(doctor, "available_memory_bytes", lambda: 2**30)
    monkeypatch.setattr(doctor, "usable_cores", lambda: 1)
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 8)
    found = {check.title: check for check in doctor.host_checks()}
    assert found["Cores"].text == "1 of 8: limited by affinity or a control group"
    assert (found["Memory"].state, found["Memory"].text) == ("disturbs", "1.0 GiB available")
    assert found["Compile cache"].state == "ok"
    assert not (tmp_path / "not").exists()
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(file))
    check = {check.title: check for check in doctor.host_checks()}["Compile cache"]
    assert check.state == "broken"
    assert "GPUPROF_CACHE_DIR" in check.fix
