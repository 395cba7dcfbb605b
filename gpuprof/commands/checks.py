# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Check everything that gpuprof uses, and say what to do about each thing that is missing."""

import platform
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gpuprof.commands.cluster_checks import cluster_checks
from gpuprof.commands.doctor_check import DoctorCheck, State
from gpuprof.commands.host_checks import host_checks
from gpuprof.errors import GpuprofError
from gpuprof.ncu.diagnosis import DCGM_FIX, PERMISSION_FIX

#: Linux capability bits that let a process read the counters.
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_DCGM = {"nv-hostengine", "dcgm-exporter"}
_PARAMETERS = Path("/proc/driver/nvidia/params")


#: A kernel whose sectors are known beforehand.
_TRIAL = """/*gpuprof
operation = "trial_copy"
dimensions = ["n"]
arguments = ["n", "x", "y"]
[arrays]
x.shape = ["n"]
y = { shape = ["n"], role = "out" }
[work]
bytes = "2 * n * real_bytes"
[check]
y = "x"
equal = true
[launch]
block = [256]
grid = ["cdiv(n, block_x)"]
*/
extern "C" __global__ void trial(int n, const real *x, real *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}
"""
_TRIAL_ELEMENTS = 1 << 16


def checks(device_ordinal: int, cluster: str | None = None) -> Iterator[DoctorCheck]:
    """Every check, one at a time, since some take seconds."""
    yield DoctorCheck(
        "Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    yield from _packages()
    yield from host_checks()
    if cluster is not None:
        yield from cluster_checks(cluster)
    yield _guard("Compiler (NVRTC)", _nvrtc, "broken")
    yield _cuda_headers()
    gpu = _guard("GPU", _gpus, "absent")
    yield gpu
    if gpu.state == "ok":
        yield from _states()
    ncu = _guard("Nsight Compute", _ncu, "absent")
    yield ncu
    if gpu.state != "ok":
        yield DoctorCheck(
            "Hardware counters", "absent", "no GPU to count on", "Use --device sim for exact counts."
        )
        return
    yield _permission()
    yield _other_profilers()
    if ncu.state == "ok":
        yield _guard("Hardware counters", lambda: _trial(device_ordinal), "broken")


def _guard(name: str, look: Callable[[], str], state: State) -> DoctorCheck:
    try:
        return DoctorCheck(name, "ok", look())
    except GpuprofError as error:
        return DoctorCheck(name, state, error.what, error.fix)


def _packages() -> Iterator[DoctorCheck]:
    """What pip must have installed: each package that is missing or too old, else all in one."""
    from gpuprof.requirements import required, unmet

    for lacking in unmet():
        state: State = "broken" if lacking.needed else "absent"
        yield DoctorCheck(f"Package {lacking.name}", state, lacking.text, lacking.fix)
    if not required():
        text = "gpuprof is not installed by pip: what it requires cannot be looked up"
        yield DoctorCheck("Packages", "absent", text, "In gpuprof's checkout run: pip install .")
    elif not unmet():
        yield DoctorCheck("Packages", "ok", f"all {len(required())} that gpuprof requires are new enough")


def _nvrtc() -> str:
    from gpuprof.toolchain.nvrtc import nvrtc_version, supported_archs

    archs = supported_archs()
    return f"{'.'.join(map(str, nvrtc_version()))}, for sm_{min(archs)} to sm_{max(archs)}"


def _cuda_headers() -> DoctorCheck:
    """Which of CUDA's headers kernels may include."""
    from gpuprof.toolchain.cuda_headers import HEADERS_FIX, find_cuda_headers
    from gpuprof.toolchain.nvrtc import nvrtc_version

    name = "CUDA's headers"
    try:
        found = find_cuda_headers(nvrtc_version()[0])
    except GpuprofError:
        return DoctorCheck(name, "absent", "of no use without the compiler")
    if not found.directories:
        text = "none found: kernels that include cuda_fp16.h, cooperative_groups.h … cannot be compiled"
        return DoctorCheck(name, "absent", text, HEADERS_FIX)
    where = f"{' and '.join(found.versions) or 'found'}, in {' and '.join(map(str, found.directories))}"
    if found.missing:
        return DoctorCheck(name, "absent", f"{where}; not found: {' and '.join(found.missing)}", HEADERS_FIX)
    return DoctorCheck(name, "ok", where)


def _gpus() -> str:
    from gpuprof.backends.gpu.query import device_count, driver_versions, query_device
    from gpuprof.errors import BackendUnavailable

    found = [query_device(ordinal) for ordinal in range(device_count())]
    if not found:
        raise BackendUnavailable("The driver shows no GPU.", fix="Check nvidia-smi and CUDA_VISIBLE_DEVICES.")
    names = ", ".join(f"{number}: {device.name} ({device.arch})" for number, device in enumerate(found))
    return f"{names}; the driver supports CUDA {driver_versions()['cuda_driver_api']}"


def _states() -> Iterator[DoctorCheck]:
    """What NVML says of every GPU, and whose driver it is."""
    from gpuprof.backends.gpu.nvml import conditions
    from gpuprof.backends.gpu.query import device_count, pci_bus_id

    for ordinal in range(device_count()):
        for found in conditions(pci_bus_id(ordinal)):
            yield DoctorCheck(f"GPU {ordinal}, {found.title}", found.state, found.text, found.fix)


def _ncu() -> str:
    from gpuprof.ncu.find import find_ncu

    ncu = find_ncu()
    return f"{ncu.version} ({ncu.path})"


def _permission() -> DoctorCheck:
    """Whether this user may read the counters, from the driver's own setting and this process' rights."""
    name = "Permission to count"
    parameters = _text(_PARAMETERS)
    if "RmProfilingAdminOnly: 0" in parameters:
        return DoctorCheck(name, "ok", "every user may read the counters")
    capabilities = _effective_capabilities(_text(Path("/proc/self/status")))
    if capabilities >> _CAP_SYS_ADMIN & 1 or capabilities >> _CAP_PERFMON & 1:
        return DoctorCheck(name, "ok", "this process may read the counters (CAP_SYS_ADMIN or CAP_PERFMON)")
    if "RmProfilingAdminOnly: 1" in parameters:
        return DoctorCheck(name, "broken", "only administrators may read the counters", PERMISSION_FIX)
    return DoctorCheck(name, "absent", "the driver does not say who may read the counters", PERMISSION_FIX)


def _effective_capabilities(status: str) -> int:
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _other_profilers() -> DoctorCheck:
    running = {_text(path).strip() for path in Path("/proc").glob("[0-9]*/comm")} & _DCGM
    if running:
        text = f"{' and '.join(sorted(running))} runs here and may hold the counters"
        return DoctorCheck("Other profilers", "absent", text, DCGM_FIX)
    return DoctorCheck("Other profilers", "ok", "no DCGM in sight")


def _trial(device_ordinal: int) -> str:
    """Profile one tiny launch, and hold its count against what it must be."""
    from gpuprof.kernels.catalog import shipped_operation
    from gpuprof.kernels.header import read_kernels
    from gpuprof.measure.case import Case
    from gpuprof.ncu.diagnosis import NcuError
    from gpuprof.ncu.invocation import NcuOptions
    from gpuprof.ncu.profile import collect
    from gpuprof.problems.problem import Problem

    file = read_kernels(_TRIAL, Path("trial.cu"), shipped_operation)
    case = Case.of(file.kernels[0], Problem.of(file.operation, (_TRIAL_ELEMENTS,)))
    with tempfile.TemporaryDirectory(prefix="gpuprof-doctor-") as scratch:
        outcome = collect(
            [(0, case)],
            device_ordinal=device_ordinal,
            seed=0,
            options=NcuOptions(timeout_s=120.0),
            report_path=Path(scratch, "trial.ncu-rep"),
            progress=lambda case: None,
        )
    if outcome.problem is not None:
        raise outcome.problem
    sectors = outcome.profiles[0].counters["global_load_sectors"]
    if sectors.value != _TRIAL_ELEMENTS * 4 // 32:
        raise NcuError(f"A trial launch was not counted: {sectors.reason or sectors.value}.")
    return "a trial launch was counted exactly"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
