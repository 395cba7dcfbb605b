# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What this process may use of the machine: cores and memory, as the system and its control groups allow."""

import atexit
import ctypes
import gc
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMORY = Path("/proc/meminfo")
_EVENTS = Path("/proc/vmstat")
_OWN_PAGES = Path("/proc/self/statm")
_LOADED = Path("/proc/self/maps")
#: Lets NumPy's OpenBLAS begin with no thread but the caller's, if a user says nothing else. It makes one for
#: each core when it is loaded, and they wait for work by spinning: with 64 cores for 8 s of processor time.
ONE_THREAD = {"OPENBLAS_DEFAULT_NUM_THREADS": "1"}
#: The part of the available memory that one process may take: the rest is everybody else's.
_MOST_SHARE = 0.9
#: The limit that this process was started with.
_GIVEN_LIMIT = resource.getrlimit(resource.RLIMIT_DATA)[0]


def configure_interpreter() -> None:
    """Look for garbage less often: modules and decoded kernels are very many objects, and all of them stay.

    Looking at them again and again takes a sixth of what loading the modules does, and a tenth of executing.
    At the end they are left to the system. A thread that loads code lets others go on soon: they feed a
    device, or its compiler.
    """
    sys.setswitchinterval(5e-4)
    gc.set_threshold(200_000, 20, 20)
    atexit.register(gc.freeze)


def end_with_parent(parent: int) -> None:
    """Ask Linux to end this process with its parent, even while it waits inside the driver."""
    pr_set_pdeathsig = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def usable_cores() -> int:
    """Cores that this process may keep busy: its affinity, and its control groups' quotas of CPU time."""
    affinity = len(os.sched_getaffinity(0))
    quotas = [quota for group in _groups("cpu") if (quota := _cpu_quota(group)) is not None]
    return max(1, min([affinity, *(int(quota) for quota in quotas)]))


def compute_in_all_threads() -> None:
    """Let matrix products of NumPy's OpenBLAS, if it is that, take all cores, or as many as a user says."""
    if "OPENBLAS_NUM_THREADS" in os.environ:
        return
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    places = {line.split()[-1] for line in _text(_LOADED).splitlines() if "openblas" in line}
    for library in map(ctypes.CDLL, places):
        for name in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads"):
            if set_threads := getattr(library, name, None):
                set_threads(int(wanted) if wanted.isdecimal() else usable_cores())


def gib(nbytes: int) -> str:
    """An amount of memory as what is said of it has it."""
    return f"{nbytes / 2**30:,.1f} GiB"


def available_memory_bytes() -> int:
    """Memory that can be taken without swapping: what the system calls available, and control groups leave.

    Pages of the file cache count as available, because the kernel gives them up when asked.
    """
    rooms = [room for group in _groups("memory") if (room := _memory_room(group)) is not None]
    known = _entry(_MEMORY, "MemAvailable")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known is None else 1024 * known
    return max(0, min([free, *rooms]))


def most_memory_bytes() -> int:
    """Memory that a process which is to leave the others some may take."""
    return int(available_memory_bytes() * _MOST_SHARE)


def held_memory_bytes() -> int:
    """Memory that this process may write to, touched or not: what `limit_memory` bounds."""
    return int(_text(_OWN_PAGES).split()[5]) * os.sysconf("SC_PAGE_SIZE")


def limit_memory(most_bytes: int) -> None:
    """Let allocations fail that would give this process more memory than that, or than it was started with.

    What can be written counts, not addresses: allocators, and above all GPU drivers, reserve those in plenty.
    """
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    least = min((limit for limit in (_GIVEN_LIMIT, hard) if limit != resource.RLIM_INFINITY), default=None)
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes if least is None else min(most_bytes, least), hard))


@contextmanager
def memory_limited() -> Iterator[None]:
    """Within the block, no more memory is allocated than the machine can give.

    Raises:
        MemoryError: In the block, whatever would take more.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(held_memory_bytes() + most_memory_bytes())
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def memory_left_bytes() -> int:
    """Memory that this process may still take: what its limit leaves, if the machine has it."""
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    room = most_memory_bytes()
    return room if limit == resource.RLIM_INFINITY else max(0, min(room, limit - held_memory_bytes()))


def kills_for_memory() -> int:
    """How often the system has ended a process for want of memory, as far as it tells."""
    return _entry(_EVENTS, "oom_kill") or 0


def _entry(path: Path, *names: str) -> int | None:
    """The number beside one of these names, which stand a line each in a file; None where there is none."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return next((int(words[1]) for words in lines if words[0] in names), None)


def _groups(controller: str) -> Iterator[Path]:
    """The directories of this process's control groups that may limit something, innermost first.

    A container often sees its own group as the root, whatever its name outside: the root is always looked at.
    """
    for line in _text(_OWN_CGROUPS).splitlines():
        _number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names == "":  # version 2: one tree for all controllers
            root = _CGROUPS
        elif controller in names.split(","):
            root = _CGROUPS / controller
        else:
            continue
        inner = root / path.lstrip("/")
        yield from (group for group in (inner, *inner.parents) if group.is_relative_to(root))


def _cpu_quota(group: Path) -> float | None:
    """Cores' worth of time that a group may use, None without a limit."""
    quota, _, period = _text(group / "cpu.max").partition(" ")
    if not quota:
        quota, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max", -1 is below, or no such file
        return None
    return max(1.0, share) if share > 0 else None


def _memory_room(group: Path) -> int | None:
    """Bytes that a group may still take, None without a limit."""
    for limit_name, used_name in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            limit, used = int(_text(group / limit_name)), int(_text(group / used_name))
        except ValueError:  # "max", or no such file
            continue
        return limit - used + (_entry(group / "memory.stat", "inactive_file", "total_inactive_file") or 0)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
