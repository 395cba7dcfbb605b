# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where the devices are that `--device` and `--cluster` name."""

from gpuprof.measure.side_by_side import Sites, sites_here


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
