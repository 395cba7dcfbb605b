# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof doctor`: what works here, what is missing, and what to do about it."""

import json
import os
import platform
import shutil
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuprof import __version__, signals
from gpuprof.analysis.numbers import plural
from gpuprof.console import hand_over, say_lines
from gpuprof.errors import ExitCode, GpuprofError
from gpuprof.machine import available_memory_bytes, gib, usable_cores
from gpuprof.private_folder import PrivateFolder
from gpuprof.records import replace
from gpuprof.results import Condition, ConditionState
from gpuprof.text import one_line
from gpuprof.toolchain.cache import cache_directory

if TYPE_CHECKING:
    from gpuprof.measure.cluster.connection import Connection, Member

_MARKS = {"ok": "ok      ", "absent": "without ", "disturbs": "disturbs", "broken": "BROKEN  "}
#: What stands under a mark: the rest of what was found, and what to do.
_INDENT = " " * 10
#: Columns of the longest line of words, and of the shortest that is still worth a line.
_WIDEST, _NARROWEST = 110, 30
#: A copy whose sectors are known beforehand.
_TRIAL = """
extern "C" __global__ void trial(int n, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}
"""
_TRIAL_ELEMENTS = 1 << 16
_GIB, _MIB = 2**30, 2**20
#: The executor holds a problem's arrays, their references, and what a batch of blocks is doing.
_LITTLE_MEMORY = 2 * _GIB
_LITTLE_ROOM = 100 * _MIB


def examine(device_ordinal: int, cluster: str | None = None, *, as_json: bool = False) -> ExitCode:
    """Print every check as it is made, or all as one JSON document; only what is broken is a failure."""
    signals.postpone()
    made: list[Condition] = []
    for check in checks(device_ordinal, cluster):
        made.append(check)
        if not as_json:
            say_lines(_lines(check))
        signals.check()
    broken = any(check.state == "broken" for check in made)
    if as_json:
        checks_made = [
            {"name": check.title, "state": check.state, "text": check.text, "fix": check.fix}
            for check in made
        ]
        document = {"usable": not broken, "checks": checks_made}
        hand_over(json.dumps(document, indent=1) + "\n")
    return ExitCode.CASES_FAILED if broken else ExitCode.OK


def _lines(check: Condition) -> str:
    found = f"{_MARKS[check.state]}  {one_line(check.title)}: {one_line(check.text.rstrip('.'))}"
    return "\n".join((*_wrapped(found, ""), *_wrapped(one_line(check.fix), _INDENT)))


def _wrapped(text: str, indent: str) -> list[str]:
    """A sentence within the terminal's width; paths stay whole."""
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size((_WIDEST, 24)).columns))
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def checks(device_ordinal: int, cluster: str | None = None) -> Iterator[Condition]:
    """Every check, one at a time, since some take seconds."""
    yield Condition(
        "Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    yield from _packages()
    yield from host_checks()
    if cluster is not None:
        yield from cluster_checks(cluster)
    yield _guard("Compiler (NVRTC)", _nvrtc, "broken")
    yield _cuda_headers()
    yield _ptxas()
    gpu = _guard("GPU", _gpus, "absent")
    yield gpu
    if gpu.state == "ok":
        yield from _states()
    ncu = _guard("Nsight Compute", _ncu, "absent")
    yield ncu
    if gpu.state != "ok":
        yield Condition(
            "Hardware counters", "absent", "no GPU to count on", "Use --device sim for exact counts."
        )
    elif ncu.state == "ok":
        yield _guard("Hardware counters", lambda: _trial(device_ordinal), "broken")


def _guard(name: str, look: Callable[[], str], state: ConditionState) -> Condition:
    try:
        return Condition(name, "ok", look())
    except GpuprofError as error:
        return Condition(name, state, error.what, error.fix)


def _packages() -> Iterator[Condition]:
    """What pip must have installed: each package that is missing or too old, else all in one."""
    from gpuprof.requirements import required, unmet

    for lacking in unmet():
        state: ConditionState = "broken" if lacking.needed else "absent"
        yield Condition(f"Package {lacking.name}", state, lacking.text, lacking.fix)
    if not required():
        text = "gpuprof is not installed by pip: what it requires cannot be looked up"
        yield Condition("Packages", "absent", text, "In gpuprof's checkout run: pip install .")
    elif not unmet():
        yield Condition("Packages", "ok", f"all {len(required())} that gpuprof requires are new enough")


def _nvrtc() -> str:
    from gpuprof.toolchain.nvrtc import nvrtc_version, supported_archs

    archs = supported_archs()
    return f"{'.'.join(map(str, nvrtc_version()))}, for sm_{min(archs)} to sm_{max(archs)}"


def _cuda_headers() -> Condition:
    from gpuprof.toolchain.cuda_headers import HEADERS_FIX, find_cuda_headers
    from gpuprof.toolchain.nvrtc import nvrtc_version

    name = "CUDA's headers"
    try:
        found = find_cuda_headers(nvrtc_version()[0])
    except GpuprofError:
        return Condition(name, "absent", "of no use without the compiler")
    if not found.directories:
        text = "none found: kernels that include cuda_fp16.h, cooperative_groups.h … cannot be compiled"
        return Condition(name, "absent", text, HEADERS_FIX)
    where = f"{' and '.join(found.versions) or 'found'}, in {' and '.join(map(str, found.directories))}"
    if found.missing:
        return Condition(name, "absent", f"{where}; not found: {' and '.join(found.missing)}", HEADERS_FIX)
    return Condition(name, "ok", where)


def _ptxas() -> Condition:
    """What makes machine code of kernels that come as PTX."""
    from gpuprof.toolchain.assembling import PTXAS_FIX, found_ptxas

    name, found = "Assembler (ptxas)", found_ptxas()
    if not found:
        text = "none found: kernels that come as PTX are executed, and a GPU's driver links them"
        return Condition(name, "absent", text, f"Install it with: {PTXAS_FIX}")
    return Condition(
        name, "ok", ", ".join(f"{'.'.join(map(str, release))} ({path})" for path, release in found)
    )


def _gpus() -> str:
    from gpuprof.backends.gpu.driver import device_count, driver_versions, query_device
    from gpuprof.errors import BackendUnavailable

    found = [query_device(ordinal) for ordinal in range(device_count())]
    if not found:
        raise BackendUnavailable("The driver shows no GPU.", fix="Check nvidia-smi and CUDA_VISIBLE_DEVICES.")
    names = ", ".join(f"{number}: {device.name} ({device.arch})" for number, device in enumerate(found))
    return f"{names}; the driver supports CUDA {driver_versions()['cuda_driver_api']}"


def _states() -> Iterator[Condition]:
    """What NVML says of every GPU, and whose driver it is."""
    from gpuprof.backends.gpu.driver import device_count, pci_bus_id
    from gpuprof.backends.gpu.nvml import conditions

    for ordinal in range(device_count()):
        for found in conditions(pci_bus_id(ordinal)):
            yield replace(found, title=f"GPU {ordinal}, {found.title}")


def _ncu() -> str:
    from gpuprof.ncu.tool import find_ncu

    ncu = find_ncu()
    return f"{ncu.version} ({ncu.path})"


def _trial(device_ordinal: int) -> str:
    """Profile one tiny launch, and hold its count against what it must be."""
    from gpuprof.kernels.header import WHOLE_HEADER, read_kernels
    from gpuprof.measure.case import Case
    from gpuprof.ncu.collecting import Collector
    from gpuprof.ncu.invocation import NcuOptions
    from gpuprof.ncu.tool import NcuError
    from gpuprof.problems.problem import Problem

    file = read_kernels(WHOLE_HEADER + _TRIAL, Path("trial.cu"))
    case = Case.of(file.kernels[0], Problem.of(file.operation, (_TRIAL_ELEMENTS,)))
    with tempfile.TemporaryDirectory(prefix="gpuprof-doctor-") as scratch:
        outcome = Collector(
            cases={0: case},
            device_ordinal=device_ordinal,
            seed=0,
            options=NcuOptions(timeout_s=120.0),
            report_path=Path(scratch, "trial.ncu-rep"),
            progress=lambda case: None,
        ).collect()
    if outcome.problem is not None:
        raise outcome.problem
    sectors = outcome.profiles[0].counters["global_load_sectors"]
    if sectors.value != _TRIAL_ELEMENTS * 4 // 32:
        raise NcuError(f"A trial launch was not counted: {sectors.reason or sectors.value}.")
    return "a trial launch was counted exactly"


def host_checks() -> Iterator[Condition]:
    """Cores, memory, and the folders that are written to."""
    cores, all_cores = usable_cores(), os.cpu_count() or 1
    text = f"{cores} of {all_cores}" if cores < all_cores else f"{cores}"
    limited = ": limited by affinity or a control group" if cores < all_cores else ""
    yield Condition("Cores", "ok", text + limited)
    memory = available_memory_bytes()
    text = f"{gib(memory)} available"
    if memory < _LITTLE_MEMORY:
        fix = "Sizes of some thousands need 2 GiB: free some, or raise the container's limit."
        yield Condition("Memory", "disturbs", text, fix)
    else:
        yield Condition("Memory", "ok", text)
    yield _folder("Temporary files", Path(tempfile.gettempdir()), "TMPDIR")
    cache = cache_directory()
    if cache is None:
        fix = "Set GPUPROF_CACHE_DIR, or kernels are compiled anew each time."
        yield Condition("Compile cache", "absent", "there is no home folder", fix)
    else:
        yield _cache(cache)


def _cache(folder: Path) -> Condition:
    """Whether compiled kernels can be kept, where nobody else can write."""
    if folder.is_dir():
        try:
            PrivateFolder(folder).close()
        except OSError as error:
            fix = f"Until then kernels are compiled anew each time. Make it yours alone: chmod go-w {folder}"
            return Condition("Compile cache", "disturbs", f"{folder}: {error.strerror or error}", fix)
    return _folder("Compile cache", folder, "GPUPROF_CACHE_DIR")


def _folder(name: str, folder: Path, variable: str) -> Condition:
    """Whether a file can be written to a folder, or to the nearest one above it that exists."""
    present = next(path for path in (folder, *folder.parents) if path.exists())
    fix = f"Name another folder in {variable}."
    try:
        with tempfile.NamedTemporaryFile(dir=present) as trial:
            trial.write(b"\0")
        room = shutil.disk_usage(present).free
    except OSError as error:
        return Condition(name, "broken", f"{folder} cannot be written: {error.strerror or error}", fix)
    if room < _LITTLE_ROOM:
        return Condition(name, "disturbs", f"{folder} has {room / _MIB:.0f} MiB left", fix)
    return Condition(name, "ok", f"{folder}, {gib(room)} free")


def cluster_checks(address: str) -> Iterator[Condition]:
    """Every check of a cluster that `--cluster` would use."""
    from gpuprof.measure.cluster.connection import connect
    from gpuprof.measure.side_by_side import OFFER_FIX

    name = "Cluster"
    try:
        connection = connect(address, gpus=False)
    except GpuprofError as error:
        yield Condition(name, "broken", error.what, error.fix)
        return
    try:
        members = connection.members()
        if not members:
            fix = "Start some: dask worker ADDRESS --resources GPU=1."
            yield Condition(name, "broken", f"{address} answers, and has no workers", fix)
            return
        hosts = len({member.host for member in members})
        text = f"{address} answers: {plural(len(members), 'worker')} on {plural(hosts, 'machine')}"
        yield Condition(name, "ok", text)
        yield from _software(connection, members)
        gpus = sum(member.gpus for member in members)
        offered = f"{gpus} offered" if gpus else "no worker offers one"
        yield Condition("Cluster, GPUs", "ok" if gpus else "absent", offered, "" if gpus else OFFER_FIX)
    finally:
        connection.close()


def _software(connection: "Connection", members: "list[Member]") -> Iterator[Condition]:
    from gpuprof.measure.side_by_side import checked_software

    try:
        held = checked_software(connection.software(), members)
    except GpuprofError as error:
        yield Condition("Cluster, gpuprof", "broken", error.what, error.fix)
        return
    yield Condition("Cluster, gpuprof", "ok", f"{__version__} everywhere")
    for what in ("python", "nvrtc", "numpy", "cuda-bindings"):
        count = Counter(found.get(what, "none") for found in held.values())
        if len(count) > 1:
            text = ", ".join(f"{version} on {number}" for version, number in count.most_common())
            fix = "Install the same everywhere: otherwise times and counts may differ."
            yield Condition(f"Cluster, {what}", "disturbs", text, fix)
