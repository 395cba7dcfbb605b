# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Programs that tests start and wait for."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def ran(command: Any, *, status: int | None = None, **more: Any) -> "subprocess.CompletedProcess[Any]":
    """A program that has ended, with one status if any is given: with what it said as text."""
    usual = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    done = subprocess.run(command, **{**usual, **more})
    assert status in (None, done.returncode), done.stderr or done.stdout
    return done


def git(folder: Path, *arguments: str) -> str:
    """What git says in a folder."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return str(ran(["git", *identity, *arguments], cwd=folder, check=True).stdout)


def make_repository(folder: Path) -> None:
    """A repository of what a folder holds, committed."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")


def wait_for(condition: Callable[[], object], seconds: float = 60.0, pause: float = 0.01) -> None:
    """Until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(pause)


def running() -> dict[int, tuple[int, int]]:
    """Parent and group of each process that has not ended."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if state != "Z":
                found[int(folder.name)] = int(parent), int(group)
    return found


def workers_of(*parents: int) -> list[int]:
    """gpuprof's worker processes of some processes."""
    found = []
    for pid, (parent, _) in running().items():
        with suppress(OSError):
            if parent in parents and "gpuprof.measure.worker" in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found
