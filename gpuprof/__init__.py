# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""gpuprof: measure, execute and explain CUDA kernels.

    run = gpuprof.profile("gemm", kernels=["naive", "smem_tiled"], sizes=[128, 1024])
    run.show()
    assert run.case("smem_tiled", size="1024").counters.global_load_efficiency_pct > 90

Names are loaded when they are first used, so that the command line starts fast.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuprof.api.comparing import ComparedCase, Comparison, Fleet, compare, fleet
    from gpuprof.api.measured_run import Figures, NotMeasured, load
    from gpuprof.api.measured_run import MeasuredCase as Case
    from gpuprof.api.measured_run import MeasuredRun as Run
    from gpuprof.api.measuring import Interrupted, operations, profile
    from gpuprof.api.searching import Search, tune
    from gpuprof.comparison.outliers import Outlier
    from gpuprof.errors import BackendUnavailable, GpuprofError, HeaderError, InputError, ResultsError
    from gpuprof.kernels.paths import Source
    from gpuprof.measure.run import Progress

__version__ = "0.1.0"

_ERRORS = ("BackendUnavailable", "GpuprofError", "HeaderError", "InputError", "ResultsError")
#: The public names, and where each one is; behind a colon, what it is called there.
_PLACES = {
    **dict.fromkeys(("profile", "operations", "Interrupted"), "gpuprof.api.measuring"),
    **dict.fromkeys(("compare", "Comparison", "ComparedCase", "fleet", "Fleet"), "gpuprof.api.comparing"),
    **dict.fromkeys(("tune", "Search"), "gpuprof.api.searching"),
    **dict.fromkeys(("Figures", "NotMeasured", "load"), "gpuprof.api.measured_run"),
    "Run": "gpuprof.api.measured_run:MeasuredRun",
    "Case": "gpuprof.api.measured_run:MeasuredCase",
    "Outlier": "gpuprof.comparison.outliers",
    "Progress": "gpuprof.measure.run",
    "Source": "gpuprof.kernels.paths",
    **dict.fromkeys(_ERRORS, "gpuprof.errors"),
}

__all__ = [
    "BackendUnavailable",
    "Case",
    "ComparedCase",
    "Comparison",
    "Figures",
    "Fleet",
    "GpuprofError",
    "HeaderError",
    "InputError",
    "Interrupted",
    "NotMeasured",
    "Outlier",
    "Progress",
    "ResultsError",
    "Run",
    "Search",
    "Source",
    "__version__",
    "compare",
    "fleet",
    "load",
    "operations",
    "profile",
    "tune",
]


def __getattr__(name: str) -> Any:
    """A public name, from where it is defined."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if _PLACES[name] != "gpuprof.errors":
        from gpuprof import requirements

        requirements.check()
    module, _, there = _PLACES[name].partition(":")
    return getattr(import_module(module), there or name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
