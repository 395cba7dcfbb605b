# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute's command line: where it is, its version, what keeps it from counting and the fix."""

import os
import re
import shutil
import subprocess
import time
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from gpuprof import signals
from gpuprof.errors import ToolError
from gpuprof.toolchain.assembling import installed

PERMISSION_FIX = (
    "Run as root, or let every user count: put 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' into a"
    " file under /etc/modprobe.d and reload the driver. In a container add --cap-add=SYS_ADMIN"
    " (CAP_SYS_ADMIN) to its start."
)
DCGM_FIX = (
    "Pause DCGM while profiling (dcgmi profile --pause, later --resume), or stop its exporter and any other"
    " profiler on this machine."
)


class NcuError(ToolError):
    """Nsight Compute is missing, too old, not permitted, or wrote something that cannot be read."""


class NcuReadError(NcuError):
    """A report that is damaged, or not in the documented form."""


#: Words of Nsight Compute's messages, what they mean, and the fix; the first one found explains a failure.
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"ERR_NVGPUCTRPERM",
        "This user may not read the GPU's performance counters (ERR_NVGPUCTRPERM).",
        PERMISSION_FIX,
    ),
    (
        r"driver resource was unavailable",
        "Another tool holds the GPU's performance counters, most often DCGM.",
        DCGM_FIX,
    ),
    (
        r"driver is not compatible with Nsight Compute",
        "The NVIDIA driver is too old for this Nsight Compute.",
        "Update the driver, or point --ncu-path at the Nsight Compute of an older CUDA toolkit.",
    ),
    (
        r"LibraryNotLoaded|Failed to initialize the profiler",
        "Nsight Compute cannot load the driver's counter library.",
        "Use the Nsight Compute of the driver's CUDA release; in a container, start it with"
        " NVIDIA_DRIVER_CAPABILITIES=compute,utility or all.",
    ),
    (
        r"Windows Subsystem for Linux",
        "Nsight Compute cannot profile this GPU under this Windows Subsystem for Linux.",
        "Profile on native Linux, or update Windows and its driver.",
    ),
    (
        r"Profiling is not supported on (?:this )?device",
        "This Nsight Compute does not know this GPU.",
        "A newer GPU needs a newer Nsight Compute, one before Volta an older; ncu --list-chips names those it"
        " knows.",
    ),
    (
        r"nsight-compute-lock|InterprocessLock",
        "Nsight Compute cannot take its lock file: another user's ncu made it, or one is running.",
        "Wait for the other ncu to end, or set TMPDIR to a directory of your own.",
    ),
    (
        r"Cannot lock GPU clock|lock(?:ing)? (?:the )?GPU clock[^.\n]{0,200}fail",
        "Nsight Compute may not lock the GPU's clocks.",
        "Use --ncu-clocks none.",
    ),
)
#: The same for what concerns one launch and says nothing of the others.
_OF_ONE_LAUNCH: tuple[tuple[str, str, str], ...] = (
    (
        r"OutOfMemory|[Oo]ut of memory|Failed to (?:save|restore) memory",
        "There was no memory left to save what the kernel overwrites between replays.",
        "Choose a smaller --sizes for profiling.",
    ),
)


def diagnose(output: str, *, of_launch: bool = False) -> NcuError | None:
    """What Nsight Compute's output says of every launch on this machine, or also of one; None of others."""
    for pattern, what, fix in _KNOWN + _OF_ONE_LAUNCH * of_launch:
        if re.search(pattern, output):
            return NcuError(what, fix=fix)
    return None


def first_error(output: str) -> str | None:
    """Nsight Compute's first error in its own words, or None."""
    for line in output.splitlines():
        text = line.strip().removeprefix("==ERROR==").strip()
        if line.strip().startswith("==ERROR==") and text and not text.startswith("An error was reported by"):
            return text
    return None


#: Where NVIDIA's installers put it, besides where each of its programs may be.
_PLACES = (("/usr/local", "cuda-*/bin/ncu"), ("/opt/nvidia/nsight-compute", "*/ncu"))
#: How soon a wait notices that the command has been asked to end.
_POLL_S = 0.1
#: The first version whose raw page names the instances of a metric.
_OLDEST = (2022, 1)
_INSTALL = (
    "Install it (it comes with the CUDA toolkit, or as the package nsight-compute), or name it with"
    " --ncu-path or GPUPROF_NCU."
)


class Ncu(Struct, frozen=True, dict=True):
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
    """The Nsight Compute to use: the one named, else GPUPROF_NCU, the search path, toolkits, the newest.

    Raises:
        NcuError: There is none, or the named one cannot be run.
    """
    named = chosen or os.environ.get("GPUPROF_NCU")
    if named:
        path = shutil.which(named)
        if path is None:
            raise NcuError(f"{named} is not a program that can be run.", fix=_INSTALL)
        return Ncu(path)
    others = [entry for place, pattern in _PLACES for entry in Path(place).glob(pattern)]
    others.sort(key=lambda entry: [int(part) for part in re.findall(r"\d+", str(entry))], reverse=True)
    for entry in (*installed("ncu"), *others):
        if os.access(entry, os.X_OK) and entry.is_file():
            return Ncu(str(entry))
    raise NcuError("Nsight Compute (ncu) was not found.", fix=_INSTALL)


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
