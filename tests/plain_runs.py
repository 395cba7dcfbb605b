# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run of which only what a test is about must be said."""

from collections.abc import Sequence

from gpuprof.devices.cards import load_card
from gpuprof.kernels.shipped import shipped_names, shipped_operation
from gpuprof.records import replace
from gpuprof.results import SCHEMA_VERSION, KernelRecord, Measurement, Run, Tool


def plain_run(kernels: Sequence[KernelRecord], cases: Sequence[Measurement] = (), **fields: object) -> Run:
    """A whole run of shipped operations on an H200, but for the fields."""
    run = Run(
        schema_version=SCHEMA_VERSION,
        tool=Tool("gpuprof", "0.1.0"),
        created_utc="2026-01-02T03:04:05Z",
        argv=("gpuprof", "gemm", "--all", "--sizes", "128,4096"),
        environment={},
        devices=(load_card("h200"),),
        backend="gpu",
        backend_reason=None,
        complete=True,
        seed=0,
        operations={name: shipped_operation(name) for name in shipped_names()},
        kernels=tuple(kernels),
        cases=tuple(cases),
    )
    return replace(run, **fields)  # type: ignore[arg-type]
