# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Open the backend that `--device` names. Imports a backend only when it is chosen."""

import re
from contextlib import suppress

from gpuprof.backends.base import Backend
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, InputError, did_you_mean
from gpuprof.statistics import Budget

#: Architecture that stands in where there is no GPU and none is named.
_DEFAULT_ARCH = "sm_90"


def open_backend(
    selector: str,
    arch: str | None,
    seed: int,
    budget: Budget,
    sim_blocks: int | None,
    libraries: tuple[str, ...] = (),
) -> tuple[Backend, str | None]:
    """Open a backend.

    Args:
        selector: `auto`, a device number, `sim` or `sim:CARD` for the executor, or `none` to compile only.
        arch: Architecture for a run without a GPU, as `sm_86`.
        seed: Of the problems' random inputs.
        budget: When a timed case has enough samples.
        sim_blocks: Blocks that the executor runs of each grid; 0 for all, None to choose by size.
        libraries: Those that will be measured on a GPU, for their versions to be recorded.

    Returns:
        The backend, and one sentence on why it is not the obvious one; None when it is.

    Raises:
        InputError: The selector has none of these forms.
        BackendUnavailable: The named GPU cannot be used.
    """
    if re.fullmatch("[0-9]{1,3}", selector):
        if arch:
            raise InputError(
                "--arch does not go with a real GPU, whose architecture is known.", fix="Drop it."
            )
        return _open_gpu(int(selector), seed, budget, libraries), None
    kind, _, card = selector.partition(":")
    if kind == "none":
        device = _card(card, arch)
        return _open_none(device), f"Nothing ran: only compilation for {device.arch} was asked for."
    if kind == "sim":
        return _open_sim(_card(card, arch), seed, sim_blocks), None
    if selector != "auto":
        raise InputError(f"--device {selector} is not a device.", fix=_instead_of(selector))
    if arch:
        return _open_sim(_card("", arch), seed, sim_blocks), None
    try:
        return _open_gpu(0, seed, budget, libraries), None
    except BackendUnavailable as error:
        device = _card("", None)
        return _open_sim(device, seed, sim_blocks), error.what


def _instead_of(selector: str) -> str:
    """What to write instead of a selector that has none of the forms."""
    from gpuprof.devices.cards import load_card

    with suppress(InputError):
        load_card(selector)
        return f"Did you mean sim:{selector}, which executes on the CPU as that card would?"
    usual = "Use auto, sim, sim:CARD, none, or a GPU's number as `gpuprof devices` lists it."
    return did_you_mean(selector, ("auto", "sim", "none"), usual)


def _card(name: str, arch: str | None) -> Device:
    """The card that a run without a GPU stands for."""
    from gpuprof.devices.cards import device_for_arch, load_card

    if name and arch:
        raise InputError(f"Both a card ({name}) and --arch {arch} were named.", fix="Drop one of them.")
    return load_card(name) if name else device_for_arch(arch or _DEFAULT_ARCH)


def _open_gpu(ordinal: int, seed: int, budget: Budget, libraries: tuple[str, ...]) -> Backend:
    from gpuprof.backends.gpu.backend import GpuBackend

    return GpuBackend(ordinal, seed, budget, libraries)


def _open_sim(device: Device, seed: int, blocks: int | None) -> Backend:
    from gpuprof.backends.sim.backend import SimBackend

    return SimBackend(device, seed, blocks)


def _open_none(device: Device) -> Backend:
    from gpuprof.backends.compile_only import CompileOnlyBackend

    return CompileOnlyBackend(device, "only compilation was asked for")
