# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How long a user waits for the first answer: commands as they are typed, from start to the last file.

    python benchmarks/first_answer.py                      # the rows that need no GPU
    python benchmarks/first_answer.py --gpu                # those that do
    python benchmarks/first_answer.py --gpu title one      # some of them
    python benchmarks/first_answer.py --json FILE --timelines FOLDER

Every command runs in a folder of its own under an empty compile cache, and, where the row says so, once more
under the cache that it has filled. A small one runs before all of them: there is bytecode of what is loaded,
as pip makes it. The parts come from the trace that `GPUPROF_TIMELINE` asks for (`gpuprof/timeline.py`):
moments are seconds since the command was started, parts the seconds in which at least one process did that,
and behind the stroke the processor time that its threads took, which a busy machine hardly changes. `cpu` is
that of all processes. `--timelines` keeps the traces, which https://ui.perfetto.dev shows.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_TITLE = "gemm --all --sizes 128,4096"
_MANY = (
    "64,96,128,131,160,192,256,257,320,384,448,500,512,576,640,704,768,800,896,1000,1021,1024,1152,1280,1400,"
    "1500,1536,1800,1920,2000,2048,2304,2560,3000,3072,3333,4000,4096,5000,6144,7777,8192"
)
#: Commands by name; those that measure times have `--gpu`, and run on device 0.
WITHOUT_GPU = {"title": f"{_TITLE} --device sim:h200"}
WITH_GPU = {
    "title": f"{_TITLE} --device 0",
    "one": "gemm -k naive --sizes 4096 --device 0",
    "six": "gemm -k naive,smem_tiled,reg_8x8,float4_4x4,by_size --sizes 4096 --device 0",
    "blocks": "transpose --block 8x32 --device 0",
    "sizes": f"gemm -k by_size --sizes {_MANY} --device 0",
}
#: Parts of a trace, in the order of a run. In a worker, `case` holds what stands behind it but for `count`.
PARTS = (
    *(
        "open",
        "worker",
        "context",
        "libraries",
        "rates",
        "compile",
        "case",
        "wait",
        "arrays",
        "inputs",
        "reference",
    ),
    *("other inputs", "verify", "time", "verify again", "decode", "execute", "count"),
    *("results file", "table", "page"),
)


@dataclass
class Row:
    """One command, run once.

    Args:
        name: Of the row.
        command: As a user types it.
        cache: Whether its compile cache was `empty` or `filled`.
        status: With which it ended.
        cpu_s: Processor time of all its processes.
        moments_s: When something was there, since its start: `begun` (Python is up and the command begins),
            `opened` (the device is), `first` (the first case has ended), `cases` (all have), `shown` (the
            first line of the table), `all` (its end).
        parts_s: For each part the time in which at least one process was at it.
        cpu_parts_s: Processor time of the threads that did it, those that they waited for left out.
    """

    name: str
    command: str
    cache: str
    status: int = 0
    cpu_s: float = 0.0
    moments_s: dict[str, float] = field(default_factory=dict)
    parts_s: dict[str, float] = field(default_factory=dict)
    cpu_parts_s: dict[str, float] = field(default_factory=dict)


def run(
    name: str, command: str, folder: Path, cache: str, timeline: Path, most_s: float | None = None
) -> Row:
    """Run a command as a user would, and see what happened when.

    Args:
        name: Of the row.
        command: What follows `gpuprof`.
        folder: The working directory; its `cache` is the home of caches.
        cache: What to say of it.
        timeline: Where its trace is written.
        most_s: When it is interrupted, as by Ctrl-C.
    """
    row = Row(name, command, cache)
    environment = {
        **os.environ,
        **{"GPUPROF_TIMELINE": str(timeline), "XDG_CACHE_HOME": str(folder / "cache")},
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), *_own_path()])),
    }
    for variable in ("GPUPROF_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(variable, None)
    before = _cpu_s()
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuprof", *command.split()],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=(folder / "stderr.txt").open("w"),
        text=True,
    )
    watchdog = threading.Timer(most_s or threading.TIMEOUT_MAX, process.send_signal, [signal.SIGINT])
    watchdog.daemon = True
    watchdog.start()
    assert process.stdout is not None
    for _ in process.stdout:
        row.moments_s.setdefault("shown", time.monotonic() - started)
    row.status = process.wait()
    watchdog.cancel()
    row.moments_s["all"] = time.monotonic() - started
    row.cpu_s = _cpu_s() - before
    _read(timeline, row, started)
    row.moments_s = dict(sorted(row.moments_s.items(), key=lambda moment: moment[1]))
    if row.status:
        sys.stderr.write((folder / "stderr.txt").read_text(encoding="utf-8")[-2000:])
    return row


def _own_path() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)


def _cpu_s() -> float:
    """Processor time of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def events(timeline: Path) -> list[dict[str, Any]]:
    """The events of a trace, whose array has no end."""
    if not timeline.is_file():
        return []
    text = timeline.read_text(encoding="utf-8").rstrip().rstrip(",")
    found: list[dict[str, Any]] = json.loads(text + "]")
    return found


def _read(timeline: Path, row: Row, started: float) -> None:
    """Take moments and parts out of a trace."""
    spans: dict[str, list[tuple[float, float]]] = {}
    worked: dict[str, float] = defaultdict(float)
    for event in events(timeline):
        begin = event["ts"] / 1e6 - started
        worked[event["name"]] += event["tdur"] / 1e6
        spans.setdefault(event["name"], []).append((begin, begin + event["dur"] / 1e6))
    for moment, part, of in (("begun", "command", 0), ("opened", "open", 1)):
        if part in spans:
            row.moments_s[moment] = min(span[of] for span in spans[part])
    if cases := spans.get("case"):
        row.moments_s["first"] = min(end for _, end in cases)
        row.moments_s["cases"] = max(end for _, end in cases)
    for part in PARTS:
        if part in spans:
            row.parts_s[part] = covered(spans[part])
            row.cpu_parts_s[part] = worked[part]


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of several spans lasted."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown: moments, then parts."""
    moments = ("begun", "opened", "first", "cases", "shown", "all")
    lines = [
        f"| command | cache | {' | '.join(moments)} | cpu |",
        f"|:--|:--|{'--:|' * (len(moments) + 1)}",
        *(
            f"| {row.name} | {row.cache} | {' | '.join(_s(row.moments_s.get(one)) for one in moments)} "
            f"| {_s(row.cpu_s)} |"
            for row in rows
        ),
        "",
    ]
    for row in rows:
        parts = ", ".join(
            f"{part} {_s(seconds)}/{_s(row.cpu_parts_s[part])}" for part, seconds in row.parts_s.items()
        )
        ended = f" (ended with status {row.status})" if row.status else ""
        lines.append(f"- {row.name}, {row.cache} cache{ended}: `gpuprof {row.command}`: {parts}")
    return "\n".join(lines)


def _s(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def main() -> None:
    """Run the rows and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="*", help="names of rows; all by default")
    parser.add_argument("--gpu", action="store_true", help="the rows that measure times, on device 0")
    parser.add_argument("--again", action="store_true", help="each once more, with the cache that it filled")
    parser.add_argument("--most", type=float, metavar="SECONDS", help="interrupt a command after so long")
    parser.add_argument("--json", type=Path, help="write the rows to a file, too")
    parser.add_argument("--timelines", type=Path, help="keep the traces in this folder")
    options = parser.parse_args()
    known = WITH_GPU if options.gpu else WITHOUT_GPU
    if unknown := set(options.rows) - known.keys():
        parser.error(f"no row {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    rows: list[Row] = []
    small = f"gemm -k naive --sizes 32 --device {0 if options.gpu else 'sim:h200'}"
    with tempfile.TemporaryDirectory() as temporary:
        run("", small, Path(temporary), "empty", Path(temporary, "timeline.json"))
        for name in dict.fromkeys(options.rows or known):
            folder = Path(temporary, name)
            folder.mkdir()
            for cache in ("empty", "filled") if options.again else ("empty",):
                timeline = folder / f"{cache}.json"
                rows.append(run(name, known[name], folder, cache, timeline, options.most))
                sys.stderr.write(f"{name}, {cache} cache: {rows[-1].moments_s['all']:.1f} s\n")
                if options.timelines and timeline.is_file():
                    options.timelines.mkdir(parents=True, exist_ok=True)
                    shutil.copy(timeline, options.timelines / f"{name}-{cache}.json")
    sys.stdout.write(f"{table(rows)}\n")
    if options.json:
        about = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.platform()}
        content = {**about, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
