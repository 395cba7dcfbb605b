# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Record what the card in this machine makes of launches: the bits that they leave, and what they count."""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from asking import Card, answer_here, asked_elsewhere, compile_file, counted, profiled

from answers_file import save_answers  # isort: skip
from launch_case import LaunchCase  # isort: skip

from gpuprof.counters import OF_NCU, OPCODES

#: Launches of a case; what differs between them is no answer.
_LAUNCHES = 3
#: Launches profiled by one process, so that one that fails costs few.
_PROFILED_TOGETHER = 50
#: The table's metrics of what the executor counts too, and two kinds of atomics that it has no row for.
METRICS = (
    *dict.fromkeys(name for row in OF_NCU if row.executor for name in row.metrics),
    *(
        f"l1tex__t_{event}_pipe_lsu_mem_global_op_{kind}.sum"
        for kind in ("red", "atom")
        for event in ("requests", "sectors")
    ),
)
#: Counting opcodes changes the code, and with it what copies that read nothing do to shared memory: these are
#: counted again by themselves.
_COPIES = tuple(
    name for row in OF_NCU if row.executor and row.name.startswith("async_copy_") for name in row.metrics
)
#: Opcodes worth keeping: memory, barriers, and multiply-adds.
_KEPT_OPCODES = ("LD", "ST", "ATOM", "RED", "BAR", "FFMA", "DFMA")


def answer_cases(folder: Path, cases: dict[str, LaunchCase], names: Sequence[str], *, once: bool) -> None:
    """What a process that a script starts of itself does: answer the cases named."""
    card = Card()
    answer_here(names, lambda name: card.ask(cases[name], folder / f"{name}.cubin", 1 if once else _LAUNCHES))


def record(script: Path, cases: dict[str, LaunchCase], output: Path, ncu: str | None, limit_s: float) -> None:
    """Compile, run and profile every case, and write the answers as they come.

    Args:
        script: Answers the cases named after `--work FOLDER`, once each after `--once`.
        cases: By name.
        output: The file to write.
        ncu: Where Nsight Compute is; None to look for it.
        limit_s: No further process is profiled after so many seconds.
    """
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", flush=True)

    about = Card().describe()
    answers: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(scratch)
        # Kernels of one file are compiled once.
        together: dict[tuple[str, tuple[str, ...]], list[LaunchCase]] = {}
        for case in cases.values():
            together.setdefault((case.source, case.options), []).append(case)
        jobs = [
            pool.submit(compile_file, f"{group[0].name}.cu", source, about["arch"], options)
            for (source, options), group in together.items()
        ]
        for job, group in zip(jobs, together.values(), strict=True):
            file = job.result()
            if not file.cubin:
                print(f"{file.name} was refused:\n{file.log}", file=sys.stderr)
                continue
            for case in group:
                (folder / f"{case.name}.cubin").write_bytes(file.cubin)
                answers[case.name] = {"key": case.key, "ptx": file.ptx}
        tell(f"{len(answers)} of {len(cases)} kernels compiled")
        command = [sys.executable, str(script)]
        for name, answer in asked_elsewhere([*command, "--work", str(folder)], answers).items():
            answers[name] |= answer
        right = [name for name, answer in answers.items() if answer["outcome"] == "ok"]
        varying = [name for name in right if "varies" in answers[name]]
        tell(f"{len(right)} ended well; not the same in every launch: {', '.join(varying) or 'none'}")
        save_answers(output, about, answers)
        for first in range(0, len(right), _PROFILED_TOGETHER):
            left = limit_s - (time.monotonic() - began)
            if left < 0:
                tell(f"no time left to profile {len(right) - first} kernels")
                break
            names = right[first : first + _PROFILED_TOGETHER]
            once = [*command, "--once", "--work", str(folder)]
            for launch in profiled([*once, *names], METRICS, ncu, left):
                answer = answers[launch.kernel]
                answer["counters"] = counted(launch, [name for name in METRICS if name != OPCODES])
                parts = (launch.cells[OPCODES].parts if OPCODES in launch.cells else None) or {}
                answer["opcodes"] = {k: n for k, n in parts.items() if k.startswith(_KEPT_OPCODES)}
            copying = [name for name in names if any(map(answers[name].get("counters", {}).get, _COPIES))]
            left = limit_s - (time.monotonic() - began)
            for launch in profiled([*once, *copying], _COPIES, ncu, left) if copying and left > 0 else ():
                answers[launch.kernel]["counters"] |= counted(launch, _COPIES)
            save_answers(output, about, answers)
            tell(f"{sum('counters' in answer for answer in answers.values())} profiled")
    tell(f"wrote {output}, {output.stat().st_size:,} bytes")
