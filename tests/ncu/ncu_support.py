# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for ncu that plays a scenario, and tables in the form of its raw page.

Everything made here is synthetic: it follows the documented form and holds no measurement.
"""

import csv
import io
import stat
import sys
from pathlib import Path

from hurried_clock import hang

from gpuprof.counters import OF_NCU, OPCODES

FIXTURES = Path(__file__).parent / "fixtures"

_UNITS = {"%": "%", "GB/s": "byte/second", "bytes": "byte", "us": "ns", "cycles/instruction": "inst"}
_FAKE_NCU = f"""#!{sys.executable}
import sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from ncu_support import play
play(sys.argv[1:], Path({{plan!r}}))
"""


def transpose_cases(*names: str) -> list:
    """Cases of 64x64 with indices that are not their positions."""
    # What loads the executor, which each process that stands in for ncu would load too.
    from problem_support import find_kernel, problem_for

    from gpuprof.measure.case import Case

    kernels = [find_kernel("transpose", name) for name in names]
    return [
        (10 + number, Case.of(kernel, problem_for(kernel, 64, 64))) for number, kernel in enumerate(kernels)
    ]


def table(launches: list[dict[str, object]], cells: dict[str, str] | None = None) -> str:
    """A raw page in CSV: one row per launch with `kernel`, `block` and `grid`."""
    names = list(dict.fromkeys(name for row in OF_NCU for name in row.metrics[:1]))
    units = {row.metrics[0]: _UNITS.get(row.unit, "") for row in OF_NCU}
    keys = ["ID", "Process ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*keys, *names])
    writer.writerow([""] * len(keys) + [units[name] for name in names])
    for number, launch in enumerate(launches):
        values = {OPCODES: "1,200 (BAR: 200; IADD3: 1,000)", **(cells or {})}
        fixed = [number, 7, launch["kernel"], 1, 13, launch["block"], launch["grid"], 0, "9.0"]
        writer.writerow([*fixed, *(values.get(name, f"{1000 + number:,}") for name in names)])
    return out.getvalue()


def install(directory: Path, plan: str) -> str:
    """A program that behaves as ncu would; `plan` names what goes wrong, as words for `play`."""
    directory.mkdir(parents=True, exist_ok=True)
    plan_path = directory / "plan"
    plan_path.write_text(plan)
    program = directory / "ncu"
    program.write_text(_FAKE_NCU.format(plan=str(plan_path)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def _row(kernel: str, block: tuple[int, int, int], grid: tuple[int, int, int]) -> dict[str, object]:
    """A launch of a report: a tuple is printed as ncu prints an extent."""
    return {"kernel": kernel, "block": str(tuple(block)), "grid": str(tuple(grid))}


def play(arguments: list[str], plan_path: Path) -> None:
    """What the stand-in does; it plays the profiled process too.

    A plan is words: `dies:N` and `hangs:N` end the process at case N, `refuses:N` skips it, `gap` loses the
    second profile, `wrong` swaps names, `says:FILE` prints a fixture and profiles nothing. `asks:SIGNAL:N`
    sends a signal to the run at case N, `taken:N` has ncu killed there for once, and `targets` runs what it
    would run.
    """
    import json
    import os
    import signal
    import subprocess
    import time

    plan = dict(word.partition(":")[::2] for word in plan_path.read_text().split())
    if "--version" in arguments:
        print(f"NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {plan.get('version', '2025.3.1.0')}")
        return
    if "--import" in arguments:
        launches = json.loads(Path(arguments[arguments.index("--import") + 1]).read_text())
        print("==PROF== synthetic")
        print(table(launches), end="")
        return
    if "says" in plan:
        print((FIXTURES / plan["says"]).read_text())
        sys.exit(1)

    from gpuprof.ncu.journal import JournalEvent, JournalWriter, Launched, attempts, read_job, read_journal
    from gpuprof.ncu.metrics import CopyMetrics

    report = Path(arguments[arguments.index("--export") + 1])
    job = read_job(Path(arguments[-1]))
    if "targets" in plan:
        subprocess.run([sys.executable, *arguments[-3:]], check=False)
        made = [attempt.launched for attempt in attempts(read_journal(Path(job.journal))) if attempt.done]
        report.write_text(json.dumps([_row(one.entry, one.block, one.grid) for one in made]))
        return
    run = os.getppid()
    child = os.fork()  # the profiled process
    if child:
        os.waitpid(child, 0)
        made = [attempt.launched for attempt in attempts(read_journal(Path(job.journal))) if attempt.done]
        if not report.exists() and "asks" in plan:
            report.write_text(json.dumps([_row(one.entry, one.block, one.grid) for one in made]))
        return
    journal = JournalWriter(Path(job.journal))
    journal.write(JournalEvent("opened", pid=os.getpid(), run=job.run))
    launches = []
    for index, case in job.cases:
        name = str(index)
        journal.write(JournalEvent("started", index))
        if plan.get("refuses") == name:
            journal.write(JournalEvent("refused", index, reason="refused."))
            continue
        launched = Launched(case.name, (16, 16, 1), (4, 4, 1), CopyMetrics())
        journal.write(JournalEvent("launching", index, launched=launched))
        asked, _, when = plan.get("asks", "").partition(":")
        if when == name:
            os.kill(run, getattr(signal, asked))
            time.sleep(0.2 if asked == "SIGKILL" else 60)  # then it is ended, or notices that nobody waits
            os._exit(1)
        if plan.get("taken") == name:
            plan_path.write_text("")
            os.kill(os.getppid(), signal.SIGKILL)
            os._exit(1)
        if plan.get("dies") == name:
            print(f'==ERROR== LaunchFailed\n==ERROR== Failed to profile "{case.name}" in process 1')
            report.write_text(json.dumps(launches))
            os._exit(9)
        if plan.get("hangs") == name:
            report.write_text(json.dumps(launches))
            hang(plan_path.with_name("hangs"))
        journal.write(JournalEvent("done", index))
        kernel = "other" if "wrong" in plan else case.name
        launches.append(_row(kernel, launched.block, launched.grid))
    if "gap" in plan and len(launches) > 1:
        del launches[1]
    report.write_text(json.dumps(launches))
    os._exit(0)
