# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the devices are that `--device` and `--cluster` name."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuprof.measure.side_by_side import Site, sites_here


@dataclass(frozen=True, slots=True)
class Sites:
    """The devices of a run before they are opened.

    Args:
        sites: Each of them.
        may_lack: Whether one that cannot be opened is left out, as long as another one can: nobody named it.
        close: Gives back what was taken to reach them.
    """

    sites: tuple[Site, ...]
    may_lack: bool = False
    close: Callable[[], None] = lambda: None


def sites_of(device: str, cluster: str | None) -> Sites:
    """The devices that two options name.

    Args:
        device: As `--device`.
        cluster: As `--cluster`; None for this machine.

    Raises:
        InputError: They name none, or make no sense together.
        BackendUnavailable: There is no GPU where all are meant, or no such cluster.
    """
    if cluster is None:
        return Sites(sites_here(device), may_lack=device.strip() == "all")
    from gpuprof.measure.cluster.offer import sites_in

    return sites_in(cluster, device)
