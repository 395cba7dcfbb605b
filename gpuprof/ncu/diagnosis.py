# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What keeps Nsight Compute from counting, told apart by its own words, each with its fix."""

import re

from gpuprof.errors import ToolError

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


def diagnose(output: str) -> NcuError | None:
    """What Nsight Compute's output says of every launch on this machine, or None."""
    return _find(_KNOWN, output)


def diagnose_launch(output: str) -> NcuError | None:
    """The known cause for which one launch could not be profiled, or None."""
    return _find(_KNOWN + _OF_ONE_LAUNCH, output)


def _find(known: tuple[tuple[str, str, str], ...], output: str) -> NcuError | None:
    for pattern, what, fix in known:
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
