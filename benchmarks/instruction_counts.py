# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Record how many instructions a card executes, by pipe and by opcode, with the machine code that ran.

Usage: python benchmarks/instruction_counts.py [--part shipped|public] [--ncu PATH] [-o FILE]

The shipped kernels and samples run at a size that fits their tiles and at one that fits nothing, the kernels
of tests/executor/public_style as their files say. tests/executor/test_instruction_counts.py holds gpuprof's
own counts against the file; since another NVRTC makes other code, the file keeps the code of this one.
"""

import argparse
import hashlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from accuracy_cases import ROOT, Shipped, shipped_cases
from asking import Card, compile_file, counted, profiled
from recording import answer_cases

sys.path[:0] = [str(ROOT / "tests" / "executor" / name) for name in ("public_style", "differential")]

from answers_file import save_answers  # noqa: E402
from launch_case import LaunchCase  # noqa: E402
from public_kernels import public_kernels  # noqa: E402

from gpuprof.counters import COUNTERS, OPCODES, PIPES  # noqa: E402
from gpuprof.kernels.entries import function_name  # noqa: E402
from gpuprof.kernels.shape import OneLaunch  # noqa: E402
from gpuprof.ncu.read import ProfiledLaunch  # noqa: E402

OUTPUT = ROOT / "tests" / "executor" / "machine_code" / "instructions-h200.json.xz"
#: Of the two, that counts what the table does not: the halves of the FMA pipe, and what was issued.
_MORE = tuple(
    f"smsp__inst_{event}.sum"
    for event in ("issued", "executed_pipe_fmaheavy", "executed_pipe_fmalite", "executed_pipe_fma_type_fp16")
)
_NAMES = ("warp_instructions", *(f"pipe_{pipe}_instructions" for pipe in PIPES))
_METRICS = (*dict.fromkeys(metric for name in _NAMES for metric in COUNTERS[name].metrics), *_MORE, OPCODES)
_TOGETHER = 40
_LIMIT_S = 480.0


class Record:
    """What is written: machine code by digest, and what was counted by case.

    Args:
        output: The file.
        about: The card and the versions.
    """

    def __init__(self, output: Path, about: dict[str, str]) -> None:
        self.output = output
        self.about = about
        self.answers: dict[str, dict[str, Any]] = {}

    def code(self, ptx: str, cubin: bytes) -> str:
        """Keep a compiled file, and return the name that it is kept under."""
        name = f"code {hashlib.sha256(cubin).hexdigest()[:16]}"
        self.answers[name] = {"ptx": ptx, "cubin": cubin.hex()}
        return name

    def save(self) -> None:
        """Write what there is so far."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        save_answers(self.output, self.about, self.answers)


def record_public(record: Record, ncu: str | None, limit_s: float) -> None:
    """Profile the public kernels on the first GPU."""
    began, cases = time.monotonic(), public_kernels()
    files: dict[tuple[str, tuple[str, ...]], list[LaunchCase]] = {}
    for case in cases.values():
        files.setdefault((case.source, case.options), []).append(case)
    arch, left = record.about["arch"], [*cases]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(scratch)

        def made(source: str, options: tuple[str, ...], group: list[LaunchCase]) -> str:
            file = compile_file(f"{group[0].name}.cu", source, arch, options)
            for case in group:
                (folder / f"{case.name}.cubin").write_bytes(file.cubin)
            return record.code(file.ptx, file.cubin)

        jobs = [pool.submit(made, *key, group) for key, group in files.items()]
        for job, group in zip(jobs, files.values(), strict=True):
            for case in group:
                record.answers[f"public {case.name}"] = {"key": case.key, "code": job.result()}
        once = [sys.executable, __file__, "--once", "--work", str(folder)]
        for first in range(0, len(left), _TOGETHER):
            seconds = limit_s - (time.monotonic() - began)
            if seconds < 0:
                print(f"no time left for {len(left) - first} public kernels", flush=True)
                break
            for launch in profiled([*once, *left[first : first + _TOGETHER]], _METRICS, ncu, seconds):
                cells = launch.cells
                parts = (cells[OPCODES].parts if OPCODES in cells else None) or {}
                record.answers[f"public {launch.kernel}"] |= {
                    "counters": counted(launch, [name for name in _METRICS if name != OPCODES]),
                    "opcodes": dict(parts),
                }
            record.save()
            done = sum("counters" in answer for answer in record.answers.values())
            print(f"{time.monotonic() - began:5.0f} s  {done} counted", flush=True)


def record_shipped(record: Record, ncu: str | None, limit_s: float) -> None:
    """Profile the shipped kernels on the first GPU, ladder by ladder."""
    began = time.monotonic()
    cases = [*_first_and_last(shipped_cases())]
    for ladder in dict.fromkeys(one.ladder for one in cases):
        if time.monotonic() - began > limit_s:
            print(f"no time left for {ladder}", flush=True)
            continue
        _record_ladder(record, [one for one in cases if one.ladder == ladder], ncu)
        record.save()
        done = sum("counters" in answer for answer in record.answers.values())
        print(f"{time.monotonic() - began:5.0f} s  {ladder}: {done} counted in all", flush=True)


def _first_and_last(cases: Iterable[Shipped]) -> list[Shipped]:
    """Leave out the larger of the two sizes that fit tiles."""
    of_kernel: dict[tuple[str, str], list[Shipped]] = {}
    for one in cases:
        of_kernel.setdefault((one.ladder, one.case.name), []).append(one)
    return [one for held in of_kernel.values() for one in (*held[:1], *held[1:][-1:])]


def _record_ladder(record: Record, cases: list[Shipped], ncu: str | None) -> None:
    from gpuprof.backends.compiling import compile_kernel
    from gpuprof.devices.cards import device_for_arch
    from gpuprof.kernels.shape import configure
    from gpuprof.ncu.collecting import Collector
    from gpuprof.ncu.invocation import NcuOptions
    from gpuprof.ncu.read import read_report
    from gpuprof.ncu.tool import find_ncu

    arch = record.about["arch"]
    with tempfile.TemporaryDirectory() as scratch:
        outcome = Collector(
            cases=dict([*enumerate(one.case for one in cases)]),
            device_ordinal=0,
            seed=0,
            options=NcuOptions(path=ncu),
            report_path=Path(scratch, "instructions.ncu-rep"),
            progress=lambda case: None,
        ).collect()
        made = [launch for report in outcome.reports for launch in read_report(report, find_ncu(ncu))]
    record.about["ncu"] = outcome.version or ""
    for index, profile in sorted(outcome.profiles.items()):
        one = cases[index]
        if profile.reason:
            record.answers[one.key] = {"reason": profile.reason}
            continue
        case = one.case
        shape = configure(case.kernel, case.problem, case.block, case.params, device_for_arch(arch))
        compiled = compile_kernel(shape, arch)
        first = compiled[shape.launches[0].entry]
        record.answers[one.key] = {
            "code": record.code(first.ptx, first.cubin),
            "counters": {
                name: profile.counters[name].value
                for name in _NAMES
                if name in profile.counters and profile.counters[name].value is not None
            },
            "opcodes": _opcodes(made, shape.launches),
        }


def _opcodes(made: list[ProfiledLaunch], launches: Iterable[OneLaunch]) -> Mapping[str, float]:
    """Take a case's launches from the front of a report, and add up what they executed, by opcode."""
    total: Counter[str] = Counter()
    for one in launches:
        # A launch that brought no profile may be missing: then the case has none by opcode.
        if not made or function_name(made[0].kernel) != function_name(one.entry):
            return {}
        cell = made.pop(0).cells.get(OPCODES)
        total.update((cell.parts if cell else None) or {})
    return dict(total)


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("shipped", "public"), help="record only these")
    parser.add_argument("--ncu", help="path of Nsight Compute")
    parser.add_argument("-o", dest="output", type=Path, default=OUTPUT)
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        folder, *names = options.work
        answer_cases(Path(folder), public_kernels(), names, once=options.once)
        return
    began = time.monotonic()
    record = Record(options.output, Card().describe())
    if options.part != "shipped":
        record_public(record, options.ncu, _LIMIT_S)
    if options.part != "public":
        record_shipped(record, options.ncu, _LIMIT_S - (time.monotonic() - began))
    print(f"Wrote {options.output}, {options.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
