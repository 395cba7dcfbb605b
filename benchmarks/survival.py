# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kill runs at random moments, go on with each of them, and count what was lost, left behind or repeated.

    python benchmarks/survival.py            # 50 moments of each kind of kill
    python benchmarks/survival.py --moments 5 --go-on-with 1 --seed 1

A run is the executor's, so that no GPU is needed: two kernels at eight sizes. A moment is drawn as a row,
from before the first to after the last, and a time after it: other work on the machine changes neither.
"""

import argparse
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path

from gpuprof.errors import ResultsError
from gpuprof.reading import read_run
from gpuprof.results import Measurement

#: What is killed, and by which signal.
KINDS = {
    "Ctrl-C": (signal.SIGINT, "run"),
    "SIGTERM": (signal.SIGTERM, "run"),
    "SIGHUP": (signal.SIGHUP, "run"),
    "SIGKILL": (signal.SIGKILL, "run"),
    "SIGKILL of a worker": (signal.SIGKILL, "worker"),
}
SIZES = tuple(range(32, 288, 32))
KERNELS = ("copy_row", "naive_row")
CASES = len(SIZES) * len(KERNELS)
COMMAND = (
    *("-m", "gpuprof", "transpose", "-k", ",".join(KERNELS), "--sizes", ",".join(map(str, SIZES))),
    *("--device", "sim:h200"),
)
#: Each run has one core: those side by side do not wait for each other.
_CORES = cycle(sorted(os.sched_getaffinity(0)))
#: With which the processes of one run are told from all others.
_MARK = "GPUPROF_SURVIVAL"
#: How long what was told to end may take to be gone.
_GONE_S = 3.0
_DONE = re.compile(r"^\[\d+/\d+\] (\S+) (\S+) \S+: ok", re.MULTILINE)

Row = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill a run.

    Args:
        rows: After it has said that so many rows are done.
        after_s: So long after that.
    """

    rows: int
    after_s: float

    @classmethod
    def drawn(cls, numbers: random.Random, start_s: float) -> "Moment":
        """A random one.

        Args:
            numbers: Where chance comes from.
            start_s: How long a run takes until its first row.
        """
        rows = numbers.randint(0, CASES)
        return cls(rows, numbers.uniform(0, start_s if rows == 0 else 0.2))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run that was killed, and of the run that went on with it.

    Args:
        moment: When it was killed.
        status: Its exit status.
        told: Rows that it said were done.
        lost: Those of them that its file does not hold.
        readable: Whether its file could be read, where it had begun one.
        left: Processes that outlived it.
        repeated: Rows that were measured again though the file held them.
        changed: Rows that the file held and that are others now.
        whole: Whether the run that went on ended well with every row; None where none went on.
        errors: What both said.
    """

    moment: "Moment"
    status: int
    told: int
    lost: int
    readable: bool
    left: int
    errors: str
    repeated: int = 0
    changed: int = 0
    whole: bool | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing is amiss."""
        amiss = self.lost or self.left or self.repeated or self.changed or "Traceback" in self.errors
        return self.readable and self.whole is not False and not amiss


def start_s(folder: Path) -> float:
    """How long a run takes until its first row; the compile cache is full then.

    Raises:
        RuntimeError: A run fails.
    """
    process, _ = _start(folder, "-o", "cold")
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors)
    begin = time.monotonic()
    process, _ = _start(folder, "-o", "warm")
    _read_rows(process, 1)
    took = time.monotonic() - begin
    process.communicate()
    return took


def kill(kind: str, moment: Moment, folder: Path, *, go_on: bool) -> Outcome:
    """Kill one run.

    Args:
        kind: One of `KINDS`.
        moment: When to kill it.
        folder: Where it runs: an empty folder.
        go_on: Whether to go on with it then.
    """
    number, victim = KINDS[kind]
    process, mark = _start(folder, "-o", "out")
    errors = _read_rows(process, moment.rows)
    time.sleep(moment.after_s)
    _kill(process, mark, number, victim)
    errors += process.communicate()[1]
    told = _rows_told(errors)
    left = _left_behind(mark)
    results = folder / "out" / "results.json"
    held: dict[Row, Measurement] = {}
    readable = True
    if results.exists():
        try:
            held = {_row(case): case for case in read_run(results).cases if not case.lost}
        except ResultsError as error:
            readable, errors = False, f"{errors}\n{error}"
    outcome = Outcome(
        moment,
        process.returncode,
        told=len(told),
        lost=sum(row not in held for row in told),
        readable=readable,
        left=left,
        errors=errors,
    )
    return _gone_on_with(outcome, folder, held) if go_on else outcome


def _gone_on_with(outcome: Outcome, folder: Path, held: dict[Row, Measurement]) -> Outcome:
    results = folder / "out" / "results.json"
    process, mark = _start(folder, *(("--resume", "out") if results.exists() else ("-o", "out")))
    _, errors = process.communicate()
    run = read_run(results)
    now = {_row(case): case for case in run.cases}
    all_right = len(run.cases) == CASES and all(case.outcome == "ok" for case in run.cases)
    return replace(
        outcome,
        left=outcome.left + _left_behind(mark),
        repeated=sum(row in held for row in _rows_told(errors)),
        changed=sum(now.get(row) != case for row, case in held.items()),
        whole=not process.returncode and run.complete and all_right,
        errors=f"{outcome.errors}\n{errors}",
    )


def table(outcomes: dict[str, list[Outcome]]) -> str:
    """A row a kind, as Markdown."""
    lines = [
        "| killed by | moments | between two rows | rows lost | files unreadable | processes left"
        " | gone on with, to the end | rows measured again |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, found in outcomes.items():
        done = sorted(outcome.told for outcome in found)
        gone_on = [outcome for outcome in found if outcome.whole is not None]
        between = sum(0 < told < CASES for told in done)
        cells = (
            len(found),
            between,
            sum(outcome.lost for outcome in found),
            sum(not outcome.readable for outcome in found),
            sum(outcome.left for outcome in found),
            f"{sum(bool(outcome.whole) for outcome in gone_on)} of {len(gone_on)}",
            sum(outcome.repeated + outcome.changed for outcome in gone_on),
        )
        lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _start(folder: Path, *options: str) -> tuple["subprocess.Popen[str]", str]:
    mark = secrets.token_hex(8)
    process = subprocess.Popen(
        [sys.executable, *COMMAND, *options],
        cwd=folder,
        env={**os.environ, _MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(_prepare, next(_CORES)),
    )
    return process, mark


def _prepare(core: int) -> None:
    """In the child: one core, and signals as a terminal leaves them: a shell's background ignores some."""
    os.sched_setaffinity(0, {core})
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _read_rows(process: "subprocess.Popen[str]", rows: int) -> str:
    """What a run says until so many rows are done."""
    assert process.stderr is not None
    said = ""
    while len(_rows_told(said)) < rows and (line := process.stderr.readline()):
        said += line
    return said


def _kill(process: "subprocess.Popen[str]", mark: str, number: int, victim: str) -> None:
    if victim == "run":
        process.send_signal(number)
        return
    workers = [pid for pid in _alive(mark) if pid != process.pid]
    if workers:
        try:
            os.kill(random.choice(workers), number)
        except ProcessLookupError:
            return


def _left_behind(mark: str) -> int:
    """How many processes of a run are there when they should be gone; they are ended."""
    deadline = time.monotonic() + _GONE_S
    while (alive := _alive(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(alive)


def _alive(mark: str) -> list[int]:
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                found += [int(path.name)] if state != "Z" else []
        except OSError:
            continue
    return found


def _rows_told(text: str) -> list[Row]:
    return [(kernel, int(size)) for kernel, size in _DONE.findall(text)]


def _row(case: Measurement) -> Row:
    return case.kernel, int(case.problem.label)


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill runs, print the table; 1 where anything is amiss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--moments", type=int, default=50, help="moments of each kind (50)")
    parser.add_argument("--go-on-with", type=int, default=10, help="how many of each to go on with (10)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    parser.add_argument("--side-by-side", type=int, default=2, help="runs at once (2)")
    given = parser.parse_args(arguments)
    moments = random.Random(given.seed)
    outcomes: dict[str, list[Outcome]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="gpuprof-survival-") as scratch,
        ThreadPoolExecutor(given.side_by_side) as pool,
    ):
        first_s = start_s(Path(scratch))
        print(f"The first row takes {first_s:.1f} s.", file=sys.stderr, flush=True)

        def once(kind: str, moment: Moment, number: int) -> Outcome:
            folder = Path(tempfile.mkdtemp(dir=scratch))
            return kill(kind, moment, folder, go_on=number < given.go_on_with)

        for kind in KINDS:
            drawn = [Moment.drawn(moments, first_s) for _ in range(given.moments)]
            outcomes[kind] = list(pool.map(partial(once, kind), drawn, range(given.moments)))
            for outcome in outcomes[kind]:
                if not outcome.is_clean:
                    print(repr(outcome), file=sys.stderr, flush=True)
            print(table({kind: outcomes[kind]}), file=sys.stderr, flush=True)
    print(table(outcomes))
    return int(not all(outcome.is_clean for found in outcomes.values() for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
