# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Clocks, temperature and throttle reasons, read through NVML."""

from typing import Any

from gpuprof.errors import foreign
from gpuprof.results import ClockState

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


class ClockReader:
    """Reads one GPU's state; `reason` says why it cannot, when it cannot."""

    def __init__(self, pci_bus_id: str) -> None:
        self.reason: str | None = None
        self.driver_version: str | None = None
        self._nvml: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
            version = pynvml.nvmlSystemGetDriverVersion()
            self.driver_version = version if isinstance(version, str) else version.decode()
            self._nvml = pynvml
        except Exception as error:  # NVML's absence, in any form, must not stop a measurement.
            self.reason = f"NVML cannot be used: {foreign(error)}"

    def read(self) -> ClockState | None:
        """The present state, or None when NVML cannot be used."""
        nvml = self._nvml
        if nvml is None:
            return None
        bits = self._value(nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        power_mw = self._value(nvml.nvmlDeviceGetPowerUsage)
        return ClockState(
            sm_mhz=self._value(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            memory_mhz=self._value(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
            temperature_c=self._value(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            power_w=None if power_mw is None else power_mw / 1e3,
            throttle_reasons=throttle_reasons(bits or 0),
        )

    def _value(self, query: Any, *arguments: Any) -> int | None:
        """One NVML figure; a virtual GPU may not offer all of them."""
        try:
            return int(query(self._handle, *arguments))
        except self._nvml.NVMLError:
            return None
