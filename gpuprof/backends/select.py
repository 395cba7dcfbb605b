# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Open the backend that `--device` names. Imports a backend only when it is chosen."""

from gpuprof.backends.base import Backend
from gpuprof.errors import BackendUnavailable, InputError
from gpuprof.measure.statistics import Budget

#: Architecture that stands in where there is no GPU and none is named.
_DEFAULT_ARCH = "sm_90"


def open_backend(selector: str, arch: str | None, seed: int, budget: Budget) -> tuple[Backend, str | None]:
    """Open a backend.

    Args:
        selector: `auto`, a device number, or `none` to compile without running.
        arch: Architecture for a run without a GPU, as `sm_86`.
        seed: Of the problems' random inputs.
        budget: When a timed case has enough samples.

    Returns:
        The backend, and one sentence on why it was chosen, when it is not the obvious one.

    Raises:
        InputError: The selector has none of these forms.
        BackendUnavailable: The named GPU cannot be used.
    """
    if selector.isdecimal():
        if arch:
            raise InputError(
                "--arch does not go with a real GPU, whose architecture is known.", fix="Drop it."
            )
        return _open_gpu(int(selector), seed, budget), None
    if selector == "none" or selector.startswith("none:"):
        return _open_none(selector, arch, "only compilation was asked for"), None
    if selector != "auto":
        raise InputError(
            f"--device {selector} is not a device.",
            fix="Use auto, none, or a GPU's number as `gpuprof devices` lists it.",
        )
    if arch:
        return _open_none("none", arch, f"--arch {arch} names an architecture, not a GPU"), None
    try:
        return _open_gpu(0, seed, budget), None
    except BackendUnavailable as error:
        backend = _open_none("none", None, "there is no usable GPU here")
        return backend, f"Nothing ran: {error.what} Kernels were compiled for {backend.device.arch} only."


def _open_gpu(ordinal: int, seed: int, budget: Budget) -> Backend:
    from gpuprof.backends.gpu.backend import GpuBackend

    return GpuBackend(ordinal, seed, budget)


def _open_none(selector: str, arch: str | None, reason: str) -> Backend:
    from gpuprof.backends.compile_only import CompileOnlyBackend
    from gpuprof.devices.table import device_for_arch, load_card

    _, _, card = selector.partition(":")
    device = load_card(card) if card else device_for_arch(arch or _DEFAULT_ARCH)
    return CompileOnlyBackend(device, reason)
