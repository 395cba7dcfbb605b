# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the devices are that `--device` and `--cluster` name.

A cluster offers a GPU with each worker that has one, or workers that execute.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuprof import __version__
from gpuprof.backends.select import named_devices
from gpuprof.errors import BackendUnavailable, InputError
from gpuprof.machine import usable_cores
from gpuprof.measure.process import HERE
from gpuprof.measure.protocol import Transport

if TYPE_CHECKING:
    from gpuprof.measure.cluster.connection import Connection, Member

#: What every worker with a GPU is started with.
OFFER_FIX = "Start its workers with --resources GPU=1, or execute on their CPUs: --device sim."
SAME_FIX = f"Install gpuprof {__version__} there, or run here what they have."


@dataclass(frozen=True, slots=True)
class CardSite:
    """A device to open, with a transport for each worker that may run at a time."""

    selector: str
    transports: tuple[Transport, ...]
    host: str = ""


#: The devices of a run before they are opened, and what lets go of them.
Sites = tuple[tuple[CardSite, ...], Callable[[], None]]


def sites_of(device: str, cluster: str | None) -> Sites:
    """The devices that `--device` names, on this machine or on a cluster."""
    if cluster is not None:
        return sites_in(cluster, device)
    names = named_devices(device)
    here = [(HERE,) if name.isdecimal() else (HERE,) * usable_cores() for name in names]
    return tuple(map(CardSite, names, here)), lambda: None


def sites_in(address: str, device: str) -> Sites:
    """The devices of a cluster.

    Raises:
        InputError: The two make no sense together, or a worker has another version of gpuprof.
        BackendUnavailable: Nobody answers there, or nobody offers a GPU.
        ToolError: Dask is not installed.
    """
    on_gpus = device.strip() in ("auto", "all")
    selectors = () if on_gpus else named_devices(device)
    if any(selector.isdecimal() for selector in selectors):
        raise InputError(
            f"--device {device} does not go with --cluster: workers offer their GPUs themselves.",
            fix="Leave --device out for all of them, or execute: --device sim.",
        )
    from gpuprof.measure.cluster.local import connect

    connection = connect(address, gpus=on_gpus)
    try:
        members = sorted(connection.members(), key=lambda member: (member.host, member.name))
        if not members:
            raise BackendUnavailable(
                f"The cluster at {address} has no workers.", fix="Start some: dask worker ADDRESS."
            )
        software = checked_software(connection.software(), members)
        # The machine's own name says more than the address under which it is reached.
        members = [replace(member, host=software[member.address]["host"]) for member in members]
        sites = _gpus(connection, members) if on_gpus else _executors(connection, members, selectors)
    except BaseException:
        connection.close()
        raise
    return sites, connection.close


def checked_software(
    answers: Mapping[str, Mapping[str, str] | str], members: "list[Member]"
) -> dict[str, Mapping[str, str]]:
    """What each worker has, by address, where all have this gpuprof: unlike versions measure unlike.

    Other differences, such as of drivers, stand in the results beside the device.

    Raises:
        InputError: A worker has another gpuprof.
        BackendUnavailable: A worker cannot tell what it has: it has no gpuprof, or a broken one.
    """
    found: dict[str, Mapping[str, str]] = {}
    for member in members:
        answer = answers.get(member.address, "it does not answer")
        if isinstance(answer, str):
            raise BackendUnavailable(f"The worker {member.name} cannot use gpuprof: {answer}.", fix=SAME_FIX)
        found[member.address] = answer
    others = [member for member in members if found[member.address]["gpuprof"] != __version__]
    if others:
        name, version = others[0].name, found[others[0].address]["gpuprof"]
        more = f"; {len(others) - 1} more have another, too" if len(others) > 1 else ""
        raise InputError(
            f"The worker {name} has gpuprof {version}, and this is {__version__}{more}.", fix=SAME_FIX
        )
    return found


def _gpus(connection: "Connection", members: "list[Member]") -> tuple[CardSite, ...]:
    """A site for each GPU that a worker offers, by the number that the worker's own driver gives it."""
    from gpuprof.measure.cluster.workers import WorkerSlot

    sites = tuple(
        CardSite(str(number), (WorkerSlot(connection, member, uses_gpu=True),), _where(member, members))
        for member in members
        for number in range(member.gpus)
    )
    if not sites:
        raise BackendUnavailable(
            f"No worker of the cluster at {connection.shown} offers a GPU.", fix=OFFER_FIX
        )
    return sites


def _where(member: "Member", members: "list[Member]") -> str:
    """A worker's machine, and its name where others share the machine."""
    host = member.host or member.name
    shared = sum(other.host == member.host for other in members) > 1
    return f"{host}, {member.name}" if shared and member.name != host else host


def _executors(
    connection: "Connection", members: "list[Member]", selectors: tuple[str, ...]
) -> tuple[CardSite, ...]:
    """A site for each simulated card, with its share of what the workers take at a time."""
    from gpuprof.measure.cluster.workers import WorkerSlot

    slots = [
        WorkerSlot(connection, member, uses_gpu=False)
        # One of each worker first: the first slot of a card opens before the others.
        for turn in range(max(member.threads for member in members))
        for member in members
        if turn < member.threads
    ]
    count = len(selectors)
    return tuple(
        CardSite(selector, tuple(slots[number::count]) or (slots[number % len(slots)],))
        for number, selector in enumerate(selectors)
    )
