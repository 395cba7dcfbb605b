# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The devices that `--device` names, and the backend of each. Imports a backend only when it is chosen."""

import re
import subprocess
import sys
from contextlib import suppress

from gpuprof.backends.base import Backend, CompileOnlyBackend
from gpuprof.devices.device import Device
from gpuprof.errors import BackendUnavailable, InputError, did_you_mean
from gpuprof.options import RunOptions
from gpuprof.statistics import SamplingBudget

#: Architecture that stands in where there is no GPU and none is named.
_DEFAULT_ARCH = "sm_90"


def named_devices(selector: str) -> tuple[str, ...]:
    """What `--device` names, one by one, each as `open_backend` takes it.

    Raises:
        InputError: A list names something twice, or mixes what measures with what executes.
        BackendUnavailable: There is no GPU where `all` are meant.
    """
    if selector.strip() == "all":
        from gpuprof.backends.gpu.driver import device_count

        if not (count := device_count()):
            fix = "Check nvidia-smi and CUDA_VISIBLE_DEVICES."
            raise BackendUnavailable("The driver shows no GPU.", fix=fix)
        return tuple(map(str, range(count)))
    named = tuple(part.strip() for part in selector.split(","))
    if len(named) == 1:
        return named
    twice = [name for name in dict.fromkeys(named) if named.count(name) > 1]
    if twice:
        raise InputError(f"--device {selector} names {twice[0]} twice.", fix="Name each device once.")
    loose = [name for name in named if name in ("", "auto", "all")]
    if loose:
        what = repr(loose[0]) if loose[0] else "nothing between two commas"
        raise InputError(
            f"--device {selector}: {what} cannot be in a list.",
            fix="List GPUs as 0,1, or simulated cards as sim:h200,sim:a100.",
        )
    if len({"gpu" if name.isdecimal() else name.partition(":")[0] for name in named}) > 1:
        raise InputError(
            f"--device {selector} mixes GPUs with devices that measure no time.",
            fix="Make two runs: a ladder has times or counts.",
        )
    return named


def open_backend(options: RunOptions, libraries: tuple[str, ...] = ()) -> tuple[Backend, str | None]:
    """Open a backend: `auto`, a GPU's number, `sim` or `sim:CARD`, or `none` to compile only.

    Returns:
        The backend, and one sentence on why it is not the obvious one; None when it is.
    """
    selector, arch = options.device, options.arch
    if re.fullmatch("[0-9]{1,3}", selector):
        if arch:
            raise InputError(
                "--arch does not go with a real GPU, whose architecture is known.", fix="Drop it."
            )
        return _open_gpu(int(selector), options, libraries), None
    kind, _, card = selector.partition(":")
    if kind == "none":
        device = _card(card, arch)
        backend = CompileOnlyBackend(device, "only compilation was asked for")
        return backend, f"Nothing ran: only compilation for {device.arch} was asked for."
    if kind == "sim":
        return open_executor(_card(card, arch), options), None
    if selector != "auto":
        raise InputError(f"--device {selector} is not a device.", fix=_instead_of(selector))
    if arch:
        return open_executor(_card("", arch), options), None
    try:
        return _open_gpu(0, options, libraries), None
    except BackendUnavailable as error:
        device = _card("", None)
        return open_executor(device, options), error.what


def gpu_ahead(selector: str, arch: str | None) -> Device | None:
    """The GPU that `open_backend` would open, which is known sooner; None where there is none."""
    if arch or not re.fullmatch("auto|[0-9]{1,3}", selector):
        return None
    from gpuprof.backends.gpu.backend import unmeasured_device

    with suppress(BackendUnavailable):
        return unmeasured_device(int(selector) if selector.isdecimal() else 0)
    return None


def _instead_of(selector: str) -> str:
    """What to write instead of a selector that has none of the forms."""
    from gpuprof.devices.cards import load_card

    if named := re.fullmatch(r"(?:cuda|gpu|nvidia)(?:[: _-]?([0-9]{1,3}))?", selector, re.IGNORECASE):
        return f"Did you mean {int(named[1] or 0)}? A GPU is its number, as `gpuprof devices` lists it."
    with suppress(InputError):
        load_card(selector)
        return f"Did you mean sim:{selector}, which executes on the CPU as that card would?"
    usual = "Use auto, all, sim, sim:CARD, none, or a GPU's number as `gpuprof devices` lists it."
    return did_you_mean(selector, ("auto", "all", "sim", "none"), usual)


def named_arch(selector: str, arch: str | None) -> str:
    """The architecture of what `--device` names, the first of several, without opening it in this process."""
    name = named_devices(selector)[0]
    kind, _, card = name.partition(":")
    if arch or kind in ("sim", "none"):
        return _card(card, arch).arch
    ordinal = int(name) if name.isdecimal() else 0
    code = f"from gpuprof.backends.gpu.driver import query_device as query; print(query({ordinal}).arch)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or _DEFAULT_ARCH


def _card(name: str, arch: str | None) -> Device:
    """The card that a run without a GPU stands for."""
    from gpuprof.devices.cards import device_for_arch, load_card

    if name and arch:
        raise InputError(f"Both a card ({name}) and --arch {arch} were named.", fix="Drop one of them.")
    return load_card(name) if name else device_for_arch(arch or _DEFAULT_ARCH)


def _open_gpu(ordinal: int, options: RunOptions, libraries: tuple[str, ...]) -> Backend:
    from gpuprof.backends.gpu.backend import GpuBackend

    budget = SamplingBudget(seconds=options.seconds_per_case)
    return GpuBackend(ordinal, options.seed, budget, libraries, options.flush)


def open_executor(device: Device, options: RunOptions) -> Backend:
    """The executor, standing for a device."""
    from gpuprof.backends.sim.backend import SimBackend

    return SimBackend(device, options)
