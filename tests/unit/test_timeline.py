# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The trace of a command: what ran when, in which process."""

import json
import os
import subprocess
import sys


def _gpuprof(folder, *arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "gpuprof", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_trace_holds_what_command_and_worker_did(tmp_path):
    command = ("transpose", "-k", "naive_row", "--sizes", "32", "--device", "sim", "-o", "run")
    done = _gpuprof(tmp_path, *command, GPUPROF_TIMELINE=str(tmp_path / "trace.json"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "trace.json").read_text(encoding="utf-8")
    events = {event["name"]: event for event in json.loads(text.rstrip().rstrip(",") + "]")}
    assert {"command", "open", "case", "compile", "execute", "table", "page"} <= events.keys()
    command, case, execute, page = (events[name] for name in ("command", "case", "execute", "page"))
    assert command["pid"] == case["pid"] != execute["pid"]
    for inner, outer in ((case, command), (execute, case), (page, command)):
        assert outer["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert execute["tdur"] > 0
    assert execute["args"] == {"of": "naive_row"}


def test_a_trace_replaces_no_file(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    done = _gpuprof(tmp_path, "list", GPUPROF_TIMELINE=str(tmp_path / "mine.txt"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "GPUPROF_TIMELINE" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"
