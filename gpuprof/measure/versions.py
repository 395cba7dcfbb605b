# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The software of this process that decides the measured code."""

import platform
from importlib.metadata import PackageNotFoundError, version

from gpuprof.toolchain.nvrtc import nvrtc_version


def versions() -> dict[str, str]:
    """Versions by name; nothing that names the user or the machine."""
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "nvrtc": ".".join(map(str, nvrtc_version())),
    }
    for package in ("numpy", "cuda-bindings"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
