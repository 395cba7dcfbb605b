# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What tests of kernels with mbarriers, the copy engine and clusters share."""

from pathlib import Path

import numpy as np

HELPERS, CLUSTER_HELPERS = (
    (Path(__file__).parent / f"{name}.cuh").read_text() for name in ("bulk", "cluster")
)


def cuda(body: str) -> str:
    return HELPERS + body


def clustered(body: str) -> str:
    """Return a source that may also use what clusters need."""
    return HELPERS + CLUSTER_HELPERS + body


#: Where a copy is started: a fault names the innermost line of the kernel's file.
LOAD = "cp.async.bulk.shared::cluster.global"
STORED = "cp.async.bulk.global.shared::cta"


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
