# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What NVML tells of a GPU: its clocks while it measures, and what disturbs measurements on it.

A GPU is named by the driver's PCI bus id, whatever the visible-device order is.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from gpuprof.errors import foreign
from gpuprof.results import ClockState, Condition, ConditionState
from gpuprof.text import listed

_IDLE = 0x0001
#: Share of a moment, in percent, from which on somebody else uses the GPU.
_BUSY_PCT = 10
_GIB = 2**30

#: NVML's clocks-event bits (nvmlClocksEventReasons) by the words a report uses.
_REASONS = {
    0x0002: "application clocks",
    0x0004: "software power cap",
    0x0008: "hardware slowdown",
    0x0010: "sync boost",
    0x0020: "software thermal slowdown",
    0x0040: "hardware thermal slowdown",
    0x0080: "hardware power brake",
    0x0100: "display clocks",
}
#: Reasons under which a sample says nothing about the kernel. A power cap is not one: it is a card's normal
#: state at full load.
DISTURBING = frozenset(
    {
        "hardware slowdown",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "hardware power brake",
    }
)


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """The reasons that NVML's bits stand for, in the words of a report."""
    return tuple(text for bit, text in _REASONS.items() if bits & bit)


class _NoAnswer(Exception):
    """NVML does not tell, as of virtual GPUs."""


class _Asked:
    """NVML's answers about one GPU."""

    def __init__(self, pci_bus_id: str) -> None:
        import pynvml

        pynvml.nvmlInit()
        self.nvml: Any = pynvml
        self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())

    def __call__(self, query: str, *arguments: Any) -> Any:
        try:
            return getattr(self.nvml, query)(self._handle, *arguments)
        except (self.nvml.NVMLError, AttributeError) as error:
            raise _NoAnswer from error

    def or_none(self, query: str, *arguments: Any) -> Any:
        with suppress(_NoAnswer):
            return self(query, *arguments)
        return None


class ClockReader:
    """Reads one GPU's state; `reason` says why it cannot, when it cannot."""

    def __init__(self, pci_bus_id: str) -> None:
        self.reason: str | None = None
        self.driver_version: str | None = None
        self._ask: _Asked | None = None
        try:
            ask = _Asked(pci_bus_id)
            version = ask.nvml.nvmlSystemGetDriverVersion()
            self.driver_version = version if isinstance(version, str) else version.decode()
            self._ask = ask
        except Exception as error:  # NVML's absence, in any form, must not stop a measurement.
            self.reason = f"NVML cannot be used: {foreign(error)}"

    def read(self) -> ClockState | None:
        """The present state, or None when NVML cannot be used."""
        ask = self._ask
        if ask is None:
            return None
        bits = ask.or_none("nvmlDeviceGetCurrentClocksThrottleReasons")
        power_mw = ask.or_none("nvmlDeviceGetPowerUsage")
        return ClockState(
            sm_mhz=ask.or_none("nvmlDeviceGetClockInfo", ask.nvml.NVML_CLOCK_SM),
            memory_mhz=ask.or_none("nvmlDeviceGetClockInfo", ask.nvml.NVML_CLOCK_MEM),
            temperature_c=ask.or_none("nvmlDeviceGetTemperature", ask.nvml.NVML_TEMPERATURE_GPU),
            power_w=None if power_mw is None else power_mw / 1e3,
            throttle_reasons=throttle_reasons(bits or 0),
        )


def conditions(pci_bus_id: str) -> Iterator[Condition]:
    """What is worth knowing of a GPU's state, as far as NVML tells it."""
    try:
        asked = _Asked(pci_bus_id)
    except Exception as error:  # NVML's absence takes many forms
        fix = "Throttling and other processes go unnoticed without it."
        yield Condition("clocks (NVML)", "absent", f"NVML cannot be used: {foreign(error)}", fix)
        return
    for title, look in (
        ("clocks", _clocks),
        ("power", _power),
        ("compute mode", _compute_mode),
        ("other processes", _processes),
        ("load", _load),
        ("persistence", _persistence),
        ("memory errors", _errors),
        ("MIG", _slices),
    ):
        with suppress(_NoAnswer):
            if found := look(asked):
                yield Condition(title, *found)


class _Found(NamedTuple):
    """A condition without its title."""

    state: ConditionState
    text: str
    fix: str = ""


def _clocks(ask: _Asked) -> _Found:
    now = ask("nvmlDeviceGetClockInfo", ask.nvml.NVML_CLOCK_SM)
    most = ask("nvmlDeviceGetMaxClockInfo", ask.nvml.NVML_CLOCK_SM)
    bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    held = sorted(DISTURBING & {*throttle_reasons(bits)})
    clock = f"SM at {now:,} of {most:,} MHz"
    if held:
        return _Found(
            "disturbs", f"{clock}: {' and '.join(held)}", "Let it cool, and check its power supply."
        )
    if bits & _IDLE and now < most:
        text = f"{clock} while idle: not locked, so that they rise with the load"
        return _Found("ok", text, "For the steadiest times lock them: nvidia-smi --lock-gpu-clocks.")
    return _Found("ok", clock + (" while idle: locked" if bits & _IDLE else ""))


def _power(ask: _Asked) -> _Found:
    limit = ask("nvmlDeviceGetEnforcedPowerLimit")
    usual = ask("nvmlDeviceGetPowerManagementDefaultLimit")
    text = f"at most {limit / 1e3:,.0f} W, of {usual / 1e3:,.0f} W by default"
    if limit < usual:
        return _Found(
            "disturbs", text, "Large kernels will run below the boost clock: nvidia-smi --power-limit."
        )
    return _Found("ok", text)


def _compute_mode(ask: _Asked) -> _Found:
    mode = ask("nvmlDeviceGetComputeMode")
    if mode == ask.nvml.NVML_COMPUTEMODE_PROHIBITED:
        return _Found("broken", "no process may compute", "nvidia-smi --compute-mode DEFAULT.")
    if mode == ask.nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
        return _Found("ok", "one process at a time")
    return _Found("ok", "any process may compute")


def _processes(ask: _Asked) -> _Found:
    running = ask("nvmlDeviceGetComputeRunningProcesses")
    others = [process for process in running if process.pid != os.getpid()]
    if not others:
        return _Found("ok", "none computes")
    shown = listed([f"process {each.pid}{_memory(each.usedGpuMemory)}" for each in others], 3)
    return _Found("disturbs", shown, "Their kernels and ours slow each other: measure without them.")


def _load(ask: _Asked) -> _Found:
    """How busy the GPU is: a container may hide whose kernels run, but not that they do."""
    rates = ask("nvmlDeviceGetUtilizationRates")
    if rates.gpu >= _BUSY_PCT:
        text = f"kernels of other processes ran in {rates.gpu} % of the last moment"
        return _Found("disturbs", text, "Their kernels and ours slow each other: measure without them.")
    return _Found("ok", "idle")


def _memory(used: int | None) -> str:
    return "" if used is None else f" ({used / _GIB:.1f} GiB)"


def _persistence(ask: _Asked) -> _Found:
    mode = ask("nvmlDeviceGetPersistenceMode")
    if mode:
        return _Found("ok", "on")
    return _Found(
        "ok", "off: each run waits while the driver wakes the GPU", "nvidia-smi --persistence-mode=1."
    )


def _errors(ask: _Asked) -> _Found:
    modes = ask("nvmlDeviceGetEccMode")
    if not modes[0]:
        return _Found("ok", "ECC is off: rates of memory are above those of other cards with it")
    wrong = ask.or_none(
        "nvmlDeviceGetTotalEccErrors",
        ask.nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        ask.nvml.NVML_VOLATILE_ECC,
    )
    if wrong:
        text = f"ECC is on; {wrong:,} uncorrected since the driver started"
        return _Found("broken", text, "Restart the GPU; if they come back, have it replaced.")
    return _Found("ok", "ECC is on; none uncorrected")


def _slices(ask: _Asked) -> _Found | None:
    modes = ask("nvmlDeviceGetMigMode")
    if not modes[0]:
        return None
    text = "on: a slice has fewer SMs and less bandwidth than the card whose rates it is compared with"
    return _Found("disturbs", text, "Where the whole card is meant: nvidia-smi --multi-instance-gpu 0.")
