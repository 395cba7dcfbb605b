# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Find Nsight Compute's command line and ask its version."""

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gpuprof import signals
from gpuprof.ncu.diagnosis import NcuError

#: Where NVIDIA's installers put it, besides the search path.
_PLACES = (
    ("/usr/local/cuda/bin", "ncu"),
    ("/usr/local", "cuda-*/bin/ncu"),
    ("/opt/nvidia/nsight-compute", "*/ncu"),
)
#: How soon a wait notices that the command has been asked to end.
_POLL_S = 0.1
#: The first version whose raw page names the instances of a metric.
_OLDEST = (2022, 1)
_INSTALL = (
    "Install it (it comes with the CUDA toolkit, or as the package nsight-compute), or name it with"
    " --ncu-path or GPUPROF_NCU."
)


@dataclass(frozen=True)
class Ncu:
    """One installed Nsight Compute."""

    path: str

    @cached_property
    def version(self) -> str:
        try:
            done = run_to_end([self.path, "--version"], 60.0)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NcuError(f"{self.path} does not start: {error}.", fix=_INSTALL) from error
        match = re.search(r"Version (\d{1,9})\.(\d{1,9})([.\d]{0,99})", done.stdout)
        if match is None:
            raise NcuError(f"{self.path} is broken or not Nsight Compute: it tells no version.", fix=_INSTALL)
        if (int(match[1]), int(match[2])) < _OLDEST:
            raise NcuError(
                f"Nsight Compute {match[1]}.{match[2]} is too old for gpuprof.",
                fix=f"Install {_OLDEST[0]}.{_OLDEST[1]} or newer.",
            )
        return f"{match[1]}.{match[2]}{match[3]}"


def find_ncu(chosen: str | None = None) -> Ncu:
    """The Nsight Compute to use: the one named, else GPUPROF_NCU, the search path, NVIDIA's directories.

    Raises:
        NcuError: There is none, or the named one cannot be run.
    """
    named = chosen or os.environ.get("GPUPROF_NCU")
    if named:
        path = shutil.which(named)
        if path is None:
            raise NcuError(f"{named} is not a program that can be run.", fix=_INSTALL)
        return Ncu(path)
    path = shutil.which("ncu")
    if path:
        return Ncu(path)
    found = [entry for place, pattern in _PLACES for entry in Path(place).glob(pattern)]
    usable = [entry for entry in found if os.access(entry, os.X_OK) and entry.is_file()]
    if not usable:
        raise NcuError("Nsight Compute (ncu) was not found.", fix=_INSTALL)
    return Ncu(str(max(usable, key=lambda entry: [int(part) for part in re.findall(r"\d+", str(entry))])))


def run_to_end(command: list[str], timeout_s: float) -> "subprocess.CompletedProcess[str]":
    """What a program of Nsight Compute's prints, unless the command is asked to end before it does.

    Raises:
        OSError: It cannot be started.
        TimeoutExpired: It did not end in time; it has been killed.
        KeyboardInterrupt: The command was asked to end; the program has been killed.
    """
    deadline = time.monotonic() + timeout_s
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},  # another locale may swap the point and the comma
    ) as process:
        try:
            while True:
                signals.check()
                try:
                    output, errors = process.communicate(timeout=_POLL_S)
                except subprocess.TimeoutExpired as error:
                    if time.monotonic() > deadline:
                        raise subprocess.TimeoutExpired(command, timeout_s) from error
                else:
                    return subprocess.CompletedProcess(command, process.returncode, output, errors)
        except BaseException:
            process.kill()
            raise
