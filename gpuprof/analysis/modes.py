# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a run's backend means for its figures, in the words that every renderer uses."""

from dataclasses import dataclass

from gpuprof.results import BackendName


@dataclass(frozen=True, slots=True)
class Mode:
    """How a run's kernels ran.

    Args:
        ran: For a heading: `measured on a GPU`.
        where: Between what ran and the device's name: `on`.
    """

    ran: str
    where: str


MODES: dict[BackendName, Mode] = {
    "gpu": Mode("measured on a GPU", "on"),
    "sim": Mode("executed without a GPU, not timed", "executed without a GPU, as"),
    "none": Mode("compiled only, not run", "compiled for"),
}
