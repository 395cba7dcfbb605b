# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What `gpuprof doctor` says of a cluster: whether it answers, who works there, and with what."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gpuprof import __version__
from gpuprof.commands.doctor_check import DoctorCheck
from gpuprof.errors import GpuprofError

if TYPE_CHECKING:
    from gpuprof.measure.cluster.connection import Connection, Member

#: Names that a list of workers shows before it only counts.
_SHOWN = 3


def cluster_checks(address: str) -> Iterator[DoctorCheck]:
    """Every check of a cluster that `--cluster` would use."""
    from gpuprof.measure.cluster.local import connect
    from gpuprof.measure.sites import OFFER_FIX

    name = "Cluster"
    try:
        connection = connect(address, gpus=False)
    except GpuprofError as error:
        yield DoctorCheck(name, "broken", error.what, error.fix)
        return
    try:
        members = connection.members()
        if not members:
            fix = "Start some: dask worker ADDRESS --resources GPU=1."
            yield DoctorCheck(name, "broken", f"{address} answers, and has no workers", fix)
            return
        hosts = len({member.host for member in members})
        workers = f"{len(members)} worker{'' if len(members) == 1 else 's'}"
        yield DoctorCheck(
            name, "ok", f"{address} answers: {workers} on {hosts} machine{'' if hosts == 1 else 's'}"
        )
        yield from _software(connection, members)
        gpus = sum(member.gpus for member in members)
        offered = f"{gpus} offered" if gpus else "no worker offers one"
        yield DoctorCheck("Cluster, GPUs", "ok" if gpus else "absent", offered, "" if gpus else OFFER_FIX)
    finally:
        connection.close()


def _software(connection: "Connection", members: "list[Member]") -> Iterator[DoctorCheck]:
    from gpuprof.measure.sites import SAME_FIX

    answers = connection.software()
    mute: dict[str, str] = {}
    held: dict[str, Mapping[str, str]] = {}
    for member in members:
        answer = answers.get(member.address, "it does not answer")
        if isinstance(answer, str):
            mute[member.name] = answer
        else:
            held[member.name] = answer
    if mute:
        first = next(iter(mute))
        yield DoctorCheck("Cluster, gpuprof", "broken", f"{_some(list(mute))}: {mute[first]}", SAME_FIX)
    other = [name for name, found in held.items() if found["gpuprof"] != __version__]
    if other:
        text = f"{_some(other)}: {held[other[0]]['gpuprof']}, and this is {__version__}"
        yield DoctorCheck("Cluster, gpuprof", "broken", text, SAME_FIX)
    elif held and not mute:
        yield DoctorCheck("Cluster, gpuprof", "ok", f"{__version__} everywhere")
    for what in ("python", "nvrtc", "numpy", "cuda-bindings"):
        count = Counter(found.get(what, "none") for found in held.values())
        if len(count) > 1:
            text = ", ".join(f"{version} on {number}" for version, number in count.most_common())
            fix = "Install the same everywhere: otherwise times and counts may differ."
            yield DoctorCheck(f"Cluster, {what}", "disturbs", text, fix)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
