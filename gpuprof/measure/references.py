# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The references a ladder can be compared with: which there are, and what a results file says of them."""

from dataclasses import dataclass

from gpuprof.errors import InputError
from gpuprof.results import KernelRecord


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference.

    Args:
        id: Its name in a results file.
        op: The problem it solves.
        title: What it is.
        idea: What to know about it.
        on_host: True when it runs on the CPU.
        result: `copy` when it only copies.
    """

    id: str
    op: str
    title: str
    idea: str
    on_host: bool = False
    result: str | None = None

    @property
    def record(self) -> KernelRecord:
        """The reference as a results file keeps it: a kernel without source."""
        return KernelRecord(
            id=self.id,
            op=self.op,
            title=self.title,
            rung=10_000.0,
            idea=self.idea,
            change="",
            bottleneck="",
            study="",
            aliases=(),
            reference="",
            source="",
            source_hash="",
            file_name="",
            is_reference=True,
        )


REFERENCES = (
    Reference(
        "cublas",
        "gemm",
        "cuBLAS GEMM",
        "The vendor's library. SGEMM in FP32 on CUDA cores, without TF32; DGEMM on FP64 tensor cores where"
        " the card has them.",
    ),
    Reference(
        "numpy",
        "gemm",
        "NumPy on the CPU",
        "numpy.matmul on the host, on all its cores: the whole call, as a user would wait for it.",
        on_host=True,
    ),
    Reference(
        "cublas_geam",
        "transpose",
        "cuBLAS geam",
        "The vendor's library: an out-of-place transpose by cublasSgeam or cublasDgeam.",
    ),
    Reference(
        "device_copy",
        "transpose",
        "Device-to-device copy",
        "The driver's copy of the same bytes, without transposing: the ceiling of any transpose.",
        result="copy",
    ),
)


def choose_references(op: str, text: str) -> tuple[Reference, ...]:
    """The references that `--reference` names.

    Args:
        op: The problem.
        text: `vendor`, `cpu`, `all` or `none`, or a list of them.

    Raises:
        InputError: A word is none of these.
    """
    words = [word.strip().lower() for word in text.split(",")]
    for word in words:
        if word not in ("vendor", "cpu", "all", "none"):
            raise InputError(f"--reference {word!r} is no reference.", fix="Choose vendor, cpu, all or none.")
    return tuple(
        reference
        for reference in REFERENCES
        if reference.op == op and ("all" in words or ("cpu" if reference.on_host else "vendor") in words)
    )
