# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""CUDA's own headers on this machine: an installed toolkit's, or those of the extra `headers`."""

import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

#: What to do where there are none.
HEADERS_FIX = (
    "Set CUDA_HOME to an installed toolkit, or in gpuprof's checkout run: pip install '.[headers]'"
    " (the packages nvidia-cuda-runtime, nvidia-cuda-crt and nvidia-cuda-cccl)."
)
#: The toolkit of a machine where nothing names another one.
USUAL_TOOLKIT = Path("/usr/local/cuda")
#: How NVIDIA's headers are called, as far as they are for device code.
_FOR_DEVICE = re.compile(
    r"(?:cuda|cub|thrust|cooperative_groups|crt|nv)/"
    r"|(?:cuda_(?:awbar|bf16|device|egl|fp\d|gl|occup|pipe|profiler|runtime|stdint|surface|texture|vdpau)\w*"
    r"|cooperative_groups|mma|math_constants|cuComplex|sm_\d+_\w+|library_types)\.h(?:pp)?\Z"
)
#: Of NVIDIA too, in packages of their own.
_OTHER_PACKAGES = {"curand": "nvidia-curand", "cutlass/": "nvidia-cutlass", "cute/": "nvidia-cutlass"}
#: One header of each part that may be installed by itself, and what the part is for.
_PARTS = {
    "cuda_fp16.h": "the runtime's (cuda_fp16.h, cooperative_groups.h, mma.h)",
    "crt/mma.h": "the compiler's (crt)",
    "cuda/std/version": "CUDA's C++ library (cuda/std, cub)",
}
_VERSIONS = (
    ("cuda_runtime_api.h", re.compile(r"#define\s+CUDART_VERSION\s+(\d+)"), 1000, 10),
    ("cuda/std/__cccl/version.h", re.compile(r"#define\s+CCCL_VERSION\s+(\d+)"), 1_000_000, 1000),
)
#: The versions stand near the top of long files.
_TOP_CHARACTERS = 200_000


class CudaHeaders(Struct, frozen=True):
    """Where CUDA's headers are."""

    directories: tuple[Path, ...]
    missing: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(f"--include-path={directory}" for directory in self.directories)


def is_for_device(name: str) -> bool:
    """Whether a name is one of CUDA's headers for device code."""
    return _FOR_DEVICE.match(name) is not None


def package_of(name: str) -> str:
    """The package of NVIDIA's that a header comes with that is not of CUDA's own; empty if it is of none."""
    return next((package for prefix, package in _OTHER_PACKAGES.items() if name.startswith(prefix)), "")


def find_cuda_headers(cuda_major: int) -> CudaHeaders:
    """Look for CUDA's headers.

    A toolkit that `CUDA_HOME` or `CUDA_PATH` names comes first, then the packages, then the toolkit of the
    `nvcc` on the path, then `/usr/local/cuda`.

    Args:
        cuda_major: NVRTC's; packages of the same major version come before others.
    """
    found: list[Path] = []
    missing = []
    places = list(dict.fromkeys(_places(cuda_major)))
    for header, part in _PARTS.items():
        place = next((place for place in places if is_file(place / header)), None)
        if place is None:
            missing.append(part)
        elif place not in found:
            found.append(place)
    return CudaHeaders(tuple(found), tuple(missing), tuple(filter(None, map(_version, found))))


def _places(cuda_major: int) -> Iterator[Path]:
    for root in named_toolkits():
        yield from _of_toolkit(root)
    yield from _of_packages(cuda_major)
    if nvcc := shutil.which("nvcc"):
        yield from _of_toolkit(Path(os.path.realpath(nvcc)).parent.parent)
    yield from _of_toolkit(USUAL_TOOLKIT)


def named_toolkits() -> list[Path]:
    """Toolkits that the environment names; an empty variable names none."""
    named = map(os.environ.get, ("CUDA_HOME", "CUDA_PATH"))
    return [Path(root) for root in named if root]


def _of_toolkit(root: Path) -> Iterator[Path]:
    for include in (root / "include", root / "targets" / f"{os.uname().machine}-linux" / "include"):
        # Debian's toolkit shares /usr/include with the host's headers, which are not for the device.
        if include != Path("/usr/include"):
            yield from (include, include / "cccl")


def _of_packages(cuda_major: int) -> Iterator[Path]:
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folders = sorted(Path(place).glob("cu[0-9]*"), key=lambda path: path.name != f"cu{cuda_major}")
        folders += [Path(place, name) for name in ("cuda_runtime", "cuda_cccl", "cuda_nvcc", "curand")]
        for folder in folders:
            yield from (folder / "include", folder / "include" / "cccl")


def is_file(path: Path) -> bool:
    """Whether a file can be reached there."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@cache
def _version(directory: Path) -> str:
    """What the headers of a directory say that they are; empty where they do not."""
    for (name, pattern, major, minor), word in zip(_VERSIONS, ("CUDA", "CCCL"), strict=True):
        try:
            with (directory / name).open(encoding="utf-8", errors="replace") as file:
                match = pattern.search(file.read(_TOP_CHARACTERS))
        except (OSError, ValueError):
            continue
        if match is not None:
            number = int(match[1])
            return f"{word} {number // major}.{number % major // minor}"
    return ""
