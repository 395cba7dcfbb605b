# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kill runs at random moments, go on with each of them, and count what was lost, left behind or repeated.

    python benchmarks/survival.py            # 50 moments of each kind of kill
    python benchmarks/survival.py --moments 5 --go-on-with 1 --seed 1
    python benchmarks/survival.py --what gpus --by SIGKILL "SIGKILL of a worker"

A run is the executor's, so that no GPU is needed: two kernels at eight sizes. With `--what` it is one on two
emulated GPUs, on a Dask cluster of two workers, on an emulated GPU with a stand-in for Nsight Compute, or a
search on the executor. A moment is drawn as a row, from before the first to after the last, and a time after
it: other work on the machine changes neither. A search does not say its rows: those count as said that its
file holds.
"""

import argparse
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path

from gpuprof.errors import ExitCode, ResultsError
from gpuprof.ncu.outcome import is_profiled, lacks_counters
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import Measurement

ROOT = Path(__file__).parents[1]
#: What is killed, by which signal, and which statuses the run may end with then.
KINDS = {
    "Ctrl-C": (signal.SIGINT, "run", (130, 0)),
    "SIGTERM": (signal.SIGTERM, "run", (143, 0)),
    "SIGHUP": (signal.SIGHUP, "run", (129, 0)),
    "SIGKILL": (signal.SIGKILL, "run", (-9, 0)),
    "SIGKILL of a worker": (signal.SIGKILL, "worker", (0,)),
}
#: What else happens to a run, which goes on by itself, and the statuses that it may end with.
FAULTS = {
    "a full disk": (ExitCode.ENVIRONMENT, 0),
    "a removed folder": (0,),
    "a damaged cache": (0,),
    "a second run in the folder": (0,),
}
KERNELS = ("copy_row", "naive_row")
_SIZES = tuple(range(32, 288, 32))
_QUICK = ("--seconds", "0.01", "--no-lines", "--no-explain", "--reference", "none")
_EMULATED = {"PYTHONPATH": os.pathsep.join((str(ROOT / "tests" / "emulated" / "site"), *sys.path))}


@dataclass(frozen=True, slots=True)
class Setup:
    """What runs.

    Args:
        options: Of the command line, besides kernels and sizes.
        sizes: Edges of the matrices.
        devices: How many measure each case.
        environment: Variables that it needs.
        gone_s: How long what was told to end may take to be gone.
        each: Rows at one size on one device.
        searches: Whether it is a search, of the kernel of the tests of searching.
    """

    options: tuple[str, ...]
    sizes: tuple[int, ...] = _SIZES
    devices: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    gone_s: float = 3.0
    each: int = len(KERNELS)
    searches: bool = False

    @property
    def cases(self) -> int:
        """How many rows it has in the end."""
        return len(self.sizes) * self.each * self.devices

    @property
    def counts(self) -> bool:
        """Whether Nsight Compute counts afterwards."""
        return "--ncu" in self.options

    @property
    def command(self) -> tuple[str, ...]:
        """Its command line."""
        sizes = ",".join(map(str, self.sizes))
        what = ("tune", "scale.cu") if self.searches else ("transpose", "-k", ",".join(KERNELS))
        return ("-m", "gpuprof", *what, "--sizes", sizes, *self.options)


SETUPS = {
    "executor": Setup(("--device", "sim:h200")),
    "gpus": Setup(
        ("--device", "all", *_QUICK), (32, 64), devices=2, environment={**_EMULATED, "EMULATED_GPUS": "2"}
    ),
    "cluster": Setup(("--device", "sim:h200", "--cluster", "local:2"), gone_s=15.0),
    "ncu": Setup(("--device", "0", "--ncu", *_QUICK), (32, 64, 96), environment=_EMULATED, gone_s=15.0),
    "tune": Setup(("--device", "sim:h200", "--budget", "20"), (512, 1024, 2048), each=5, searches=True),
}
#: Each run has one core: those side by side do not wait for each other.
_CORES = cycle(sorted(os.sched_getaffinity(0)))
#: With which the processes of one run are told from all others.
_MARK = "GPUPROF_SURVIVAL"
_DONE = re.compile(r"^\[\d+/\d+\] (\S+) (\S+)(?: on (.+?))? \d+x\d+: ok", re.MULTILINE)
_PROFILED = re.compile(r"^ncu: (\S+) (\S+) ", re.MULTILINE)
_KNOWN = re.compile(r"^Continuing .*: (\d+) points? (?:is|are) known", re.MULTILINE)

#: Kernel, size, and the device where there are several.
Row = tuple[str, str, str]


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
    def drawn(cls, numbers: random.Random, start_s: float, setup: Setup = SETUPS["executor"]) -> "Moment":
        """A random one.

        Args:
            numbers: Where chance comes from.
            start_s: How long a run takes until its first row.
            setup: What runs.
        """
        rows = numbers.randint(0, setup.cases * (2 if setup.counts else 1))
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
        ended_as_it_should: Whether the status is one that this may have.
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
    ended_as_it_should: bool = True

    @property
    def is_clean(self) -> bool:
        """Whether nothing is amiss."""
        amiss = self.lost or self.left or self.repeated or self.changed or "Traceback" in self.errors
        return self.readable and self.ended_as_it_should and self.whole is not False and not amiss


def start_s(folder: Path, setup: Setup) -> float:
    """How long a run takes until its first row; the compile cache is full then.

    Raises:
        RuntimeError: A run fails.
    """
    process, _ = _start(setup, folder, "-o", "cold")
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors)
    begin = time.monotonic()
    process, _ = _start(setup, folder, "-o", "warm")
    _wait_for_rows(setup, process, folder / "warm" / "results.json", 1)
    took = time.monotonic() - begin
    process.communicate()
    return took


def kill(
    kind: str, moment: Moment, folder: Path, *, go_on: bool, setup: Setup = SETUPS["executor"]
) -> Outcome:
    """Kill one run, or do something else to it.

    Args:
        kind: One of `KINDS` or `FAULTS`.
        moment: When.
        folder: Where it runs: an empty folder.
        go_on: Whether to go on with it then.
        setup: What runs.
    """
    with _made_ready(kind, folder, setup) as environment:
        process, mark = _start(setup, folder, "-o", "out", **environment)
        results = folder / "out" / "results.json"
        errors = _wait_for_rows(setup, process, results, moment.rows)
        time.sleep(moment.after_s)
        told = list(_held(results)) if setup.searches else []
        if kind in KINDS:
            number, victim, allowed = KINDS[kind]
            _kill(process, mark, number, victim)
        else:
            allowed = FAULTS[kind]
            if process.poll() is None:  # what ended before can lose its files to anybody
                errors += _FAULTS[kind](setup, folder)
        errors += process.communicate()[1]
        told = told or _rows_told(errors)
        left = _left_behind(mark, setup.gone_s)
        readable = True
        try:
            held = _held(results)
        except ResultsError as error:
            held, readable, errors = {}, False, f"{errors}\n{error}"
    ends = kind in FAULTS or KINDS[kind][1] == "worker"
    outcome = Outcome(
        moment,
        process.returncode,
        told=len(told),
        lost=sum(row not in held for row in told) + (setup.cases - len(held) if ends else 0),
        readable=readable,
        left=left,
        errors=errors,
        ended_as_it_should=process.returncode in allowed,
    )
    return _gone_on_with(outcome, folder, held, setup) if go_on and kind in KINDS else outcome


def _held(results: Path) -> dict[Row, Measurement]:
    if not results.exists():
        return {}
    run = read_run(results)
    labels = ["" if len(run.devices) == 1 else run.device_label(each) for each in range(len(run.devices))]
    return {
        (_named(case, run.tuning is not None), case.problem.label, labels[case.device]): case
        for case in run.cases
        if not case.lost
    }


def _named(case: Measurement, is_point: bool) -> str:
    """What a row is called; the points of a search are of one kernel."""
    return f"{case.kernel} {dict(case.params)} {case.block}" if is_point else case.kernel


def _gone_on_with(outcome: Outcome, folder: Path, held: dict[Row, Measurement], setup: Setup) -> Outcome:
    results = folder / "out" / "results.json"
    again = ("--resume", "out") if results.exists() and not setup.searches else ("-o", "out")
    process, mark = _start(setup, folder, *again)
    _, errors = process.communicate()
    run = read_run(results)
    now = _held(results)
    all_right = len(run.cases) == setup.cases and all(case.outcome == "ok" for case in run.cases)
    if setup.counts:
        all_right = all_right and not lacks_counters(run)
    known = _KNOWN.search(errors)
    forgotten = len(held) - (int(known[1]) if known else 0) if setup.searches else 0
    counted = {row[:2] for row, case in held.items() if is_profiled(case)}
    return replace(
        outcome,
        left=outcome.left + _left_behind(mark, setup.gone_s),
        repeated=sum(row in held for row in _rows_told(errors))
        + sum(row in counted for row in _PROFILED.findall(errors))
        + forgotten,
        changed=sum(
            now.get(row) != case for row, case in held.items() if not setup.counts or row[:2] in counted
        ),
        whole=not process.returncode and run.complete and all_right,
        errors=f"{outcome.errors}\n{errors}",
    )


@contextmanager
def _made_ready(kind: str, folder: Path, setup: Setup) -> Iterator[dict[str, str]]:
    """What a fault needs before the run begins, and the environment that the run needs for it."""
    if kind == "a damaged cache":
        environment = {"GPUPROF_CACHE_DIR": str(folder / "cache")}
        process, _ = _start(replace(setup, sizes=setup.sizes[:1]), folder, "-o", "first", **environment)
        process.communicate()
        yield environment
    elif kind == "a full disk":
        (folder / "out").mkdir()
        (folder / "temporary").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder / "out")], check=True)
        try:
            yield {"TMPDIR": str(folder / "temporary")}
        finally:
            subprocess.run(["umount", "--lazy", str(folder / "out")], check=True)
    else:
        yield {}


def _fill_disk(_setup: Setup, folder: Path) -> str:
    with (folder / "out" / "filling").open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    continue
    return ""


def _remove_folder(_setup: Setup, folder: Path) -> str:
    shutil.rmtree(folder / "out", ignore_errors=True)
    return ""


def _damage_cache(_setup: Setup, folder: Path) -> str:
    """Change every entry: cut it, or put other bytes in its middle."""
    for path in (folder / "cache").iterdir():
        with suppress(OSError):
            content = bytearray(path.read_bytes())
            place = random.randrange(len(content) + 1)
            content[place:] = content[place + 40 :] if random.random() < 0.5 else random.randbytes(100)
            path.write_bytes(content)
    return ""


def _run_beside(setup: Setup, folder: Path) -> str:
    """Begin another run there, and go on with it: both are refused, or find it whole."""
    if not (folder / "out" / "results.json").exists():
        return ""
    said = ""
    for options, allowed in ((("-o", "out"), (2,)), (("--resume", "out"), (2, 0))):
        rival, _ = _start(setup, folder, *options)
        errors = rival.communicate()[1]
        if rival.returncode not in allowed or _DONE.search(errors):
            said += f"Traceback: {options} ended with {rival.returncode}: {errors}"
    return said


_FAULTS: dict[str, Callable[[Setup, Path], str]] = {
    "a full disk": _fill_disk,
    "a removed folder": _remove_folder,
    "a damaged cache": _damage_cache,
    "a second run in the folder": _run_beside,
}


def table(outcomes: dict[str, list[Outcome]], cases: int = SETUPS["executor"].cases) -> str:
    """A row a kind, as Markdown."""
    lines = [
        "| killed by | moments | between two rows | rows lost | files unreadable | processes left"
        " | other statuses | gone on with, to the end | rows measured again |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, found in outcomes.items():
        done = sorted(outcome.told for outcome in found)
        gone_on = [outcome for outcome in found if outcome.whole is not None]
        between = sum(0 < told < cases for told in done)
        cells = (
            len(found),
            between,
            sum(outcome.lost for outcome in found),
            sum(not outcome.readable for outcome in found),
            sum(outcome.left for outcome in found),
            sum(not outcome.ended_as_it_should for outcome in found),
            f"{sum(bool(outcome.whole) for outcome in gone_on)} of {len(gone_on)}",
            sum(outcome.repeated + outcome.changed for outcome in gone_on),
        )
        lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _start(
    setup: Setup, folder: Path, *options: str, **environment: str
) -> tuple["subprocess.Popen[str]", str]:
    mark = secrets.token_hex(8)
    if setup.searches:
        (folder / "scale.cu").write_text(_searched_kernel(), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, *setup.command, *options],
        cwd=folder,
        env={**os.environ, **setup.environment, **environment, _MARK: mark},
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


def _wait_for_rows(setup: Setup, process: "subprocess.Popen[str]", results: Path, rows: int) -> str:
    """Wait until so many rows are done; what the run has said by then, as far as it was read."""
    if not setup.searches:
        return _read_rows(process, rows)
    while len(_held(results)) < rows and process.poll() is None:
        time.sleep(0.01)
    return ""


def _read_rows(process: "subprocess.Popen[str]", rows: int) -> str:
    """What a run says until so many rows are done."""
    assert process.stderr is not None
    said = ""
    while len(_rows_told(said)) + len(_PROFILED.findall(said)) < rows and (line := process.stderr.readline()):
        said += line
    return said


def _kill(process: "subprocess.Popen[str]", mark: str, number: int, victim: str) -> None:
    if victim == "run":
        process.send_signal(number)
        return
    workers = [pid for pid in _alive(mark) if pid != process.pid and not _keeps_books(pid)]
    if workers:
        try:
            os.kill(random.choice(workers), number)
        except ProcessLookupError:
            return


def _keeps_books(pid: int) -> bool:
    """Whether a process is Python's own that frees what others leave; it says itself that it was killed."""
    with suppress(OSError):
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _left_behind(mark: str, gone_s: float) -> int:
    """How many processes of a run are there when they should be gone; they are ended."""
    deadline = time.monotonic() + gone_s
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
    return [(kernel, size, device) for kernel, size, device in _DONE.findall(text)]


def _searched_kernel() -> str:
    sys.path.insert(0, str(ROOT / "tests"))
    from cuda_sources import kernel_file

    return kernel_file("scale", ", [2048, 1]")


def _stand_in(folder: Path) -> str:
    """A program in the place of ncu that runs what ncu would profile."""
    sys.path.insert(0, str(ROOT / "tests"))
    sys.path.insert(0, str(ROOT / "tests" / "ncu"))
    from ncu_support import install

    return install(folder / "bin", "targets")


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill runs, print the table; 1 where anything is amiss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--moments", type=int, default=50, help="moments of each kind (50)")
    parser.add_argument("--go-on-with", type=int, default=10, help="how many of each to go on with (10)")
    parser.add_argument("--what", choices=SETUPS, default="executor", help="what runs (executor)")
    parser.add_argument("--by", nargs="+", choices=(*KINDS, *FAULTS), help="what happens to it (each kill)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    parser.add_argument("--side-by-side", type=int, default=2, help="runs at once (2)")
    given = parser.parse_args(arguments)
    moments = random.Random(given.seed)
    outcomes: dict[str, list[Outcome]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="gpuprof-survival-") as scratch,
        ThreadPoolExecutor(given.side_by_side) as pool,
    ):
        setup = SETUPS[given.what]
        if setup.counts:
            os.environ["GPUPROF_NCU"] = _stand_in(Path(scratch))
        first_s = start_s(Path(scratch), setup)
        print(f"The first row takes {first_s:.1f} s.", file=sys.stderr, flush=True)

        def once(kind: str, moment: Moment, number: int) -> Outcome:
            folder = Path(tempfile.mkdtemp(dir=scratch))
            return kill(kind, moment, folder, go_on=number < given.go_on_with, setup=setup)

        for kind in given.by or KINDS:
            drawn = [Moment.drawn(moments, first_s, setup) for _ in range(given.moments)]
            outcomes[kind] = list(pool.map(partial(once, kind), drawn, range(given.moments)))
            for outcome in outcomes[kind]:
                if not outcome.is_clean:
                    print(repr(outcome), file=sys.stderr, flush=True)
            print(table({kind: outcomes[kind]}, setup.cases), file=sys.stderr, flush=True)
    print(table(outcomes, setup.cases))
    return int(not all(outcome.is_clean for found in outcomes.values() for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
