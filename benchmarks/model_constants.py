# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measure what modelled times need to know of the card in this machine, and keep it.

Usage: python benchmarks/model_constants.py FILE

As `gpuprof devices --measure --json`, but written after each group: what fails costs no more than itself.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from gpuprof.backends.gpu.backend import GpuBackend
from gpuprof.statistics import SamplingBudget


def main(file: Path) -> None:
    """Measure and write."""
    began = time.monotonic()
    backend = GpuBackend(0, 0, SamplingBudget())
    device = backend.measured_device()
    kept: dict[str, Any] = {
        "name": device.name,
        "sm_clock_mhz": device.sm_clock_mhz,
        "environment": dict(backend.environment),
        "measured_rates": dict(device.measured_rates),
        "not_measured": {"rates": device.measured_rates_reason} if device.measured_rates_reason else {},
        "constants": {},
    }
    for group, found, reason in backend.model_constants():
        kept["constants"] |= found
        if reason:
            kept["not_measured"][group] = reason
        file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(f"{group}: {len(found)} in {time.monotonic() - began:.1f} s {reason}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
