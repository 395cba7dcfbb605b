# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The doctor's answers where there is no GPU."""

from gpuprof.backends.gpu import query
from gpuprof.commands import doctor as command
from gpuprof.errors import BackendUnavailable, ExitCode
from gpuprof.ncu import doctor


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
        command, "checks", lambda ordinal: iter([doctor.Check("X", "broken", "gone.", "Mend.")])
    )
    assert command.examine(0) == ExitCode.ENVIRONMENT
    assert capsys.readouterr().out == "BROKEN   X: gone\n           Mend.\n"


def test_permission_is_read_from_the_driver_and_the_capabilities(monkeypatch):
    texts = {}
    monkeypatch.setattr(doctor, "_text", lambda path: texts.get(path.name, ""))
    assert doctor._permission().state == "absent"
    texts["params"] = "RmProfilingAdminOnly: 1\n"
    check = doctor._permission()
    assert check.state == "broken"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in check.fix
    texts["status"] = "CapEff:\t0000000000200000\n"
    assert doctor._permission().state == "ok"
    texts["status"] = "CapEff:\t0000000000000000\n"
    texts["params"] = "RmProfilingAdminOnly: 0\n"
    assert doctor._permission().state == "ok"
