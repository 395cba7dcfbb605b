# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where runs go that name no place, and the link that leads to the newest of them."""

import os
import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gpuprof.errors import InputError
from gpuprof.files import RESULTS_NAME

#: Below the working directory.
RUNS = Path("gpuprof-results")
LATEST = RUNS / "latest"


def directory_of(operation: str, started: datetime) -> Path:
    """The directory of a run that names none, unless another run of this second has it."""
    return RUNS / f"{operation}-{started:%Y%m%d-%H%M%S}"


def link_latest(directory: Path) -> None:
    """Let `gpuprof-results/latest` lead to a run's directory; where that cannot be, there is no link.

    A file or folder of the user's under that name stays what it is.
    """
    if LATEST.exists() and not LATEST.is_symlink():
        return
    temporary = RUNS / f".latest-{secrets.token_hex(8)}"
    with suppress(OSError):
        temporary.symlink_to(directory.name, target_is_directory=True)
        try:
            os.replace(temporary, LATEST)
        except OSError:
            temporary.unlink(missing_ok=True)


def latest_results() -> Path:
    """The results file of the newest run that named no place.

    Raises:
        InputError: There is none below the working directory.
    """
    path = LATEST / RESULTS_NAME
    if not path.is_file():
        raise InputError(
            f"No run is named, and there is none at {path}.",
            fix="Name a RESULTS.json that gpuprof wrote, or measure first.",
        )
    return path
