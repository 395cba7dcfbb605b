# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random command lines, and damaged results files: no traceback, no hang, only documented statuses.

    python benchmarks/fuzz.py --commands 1000 --files 1000 --seed 1

Everything follows from the seed. Each command line is a process of its own, most of them forks of this one,
which has loaded gpuprof; where a locale or Python's own start matters, the interpreter starts from nothing.
What is found wrong is printed so that it can be repeated, and the status is then 1.
"""

import argparse
import json
import os
import random
import re
import resource
import runpy
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]
_SAMPLES = ("transpose-h200.json", "softmax-h200.json")
#: Longest that a command line may take: many times what any of these needs on a busy machine.
PATIENCE_S = 120.0
#: Memory of one process: a number in a file must not decide how much is taken.
_MEMORY_BYTES = 6 << 30
_STATUS = re.compile(r"^\| (\d+) \|", re.MULTILINE)
_SIGNS_OF_A_FAULT = ("Traceback (most recent call last)", "Exception ignored", "Fatal Python error")

#: What a stream of a command line is: kept, full, closed, or a pipe that nobody reads.
_STREAMS = ("kept", "kept", "kept", "kept", "full", "closed", "broken")
_FOLDERS = ("fresh", "fresh", "fresh", "deleted", "read-only", "/proc")
_ENVIRONMENTS: tuple[dict[str, str], ...] = (
    {},
    {"LC_ALL": "C"},
    {"LC_ALL": "tr_TR.UTF-8"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    {"LC_ALL": "nonsense"},
    {"PYTHONIOENCODING": "ascii"},
    {"COLUMNS": "1"},
    {"COLUMNS": "7", "LINES": "1"},
    {"COLUMNS": "-5"},
    {"COLUMNS": "99999999"},
    {"COLUMNS": "wide"},
    {"NO_COLOR": "1"},
    {"FORCE_COLOR": "1", "TERM": "dumb"},
    {"TERM": ""},
    {"HOME": "/nowhere"},
    {"TMPDIR": "/nowhere"},
    {"XDG_CACHE_HOME": "/dev/null"},
    {"PATH": ""},
)
_ODD_WORDS = (
    *(
        "",
        " ",
        "-",
        "--",
        "---",
        "-k",
        "--=",
        "=",
        "--sizes=",
        "\n",
        "\t",
        "\x1b[31m",
        "'",
        '"',
        "$(true)",
        "%s%n",
    ),
    *(
        "ß",
        "İ",
        "ı",
        "日本",
        "🙂",
        "e\u0301",
        "\u202eabc",
        "a" * 5000,
        "../" * 40,
        "/",
        "/dev/null",
        "/dev/full",
        ".",
    ),
    *(
        "0",
        "-1",
        "1e400",
        "nan",
        "inf",
        "9" * 400,
        "1.5",
        "0x10",
        "1_000",
        "\u0661\u0662",
        "NaN",
        "1e-400",
        "²",
    ),
    *(
        os.fsdecode(b"caf\xe9"),
        os.fsdecode(b"\xff\xfe"),
        "gemm",
        "naive",
        "None",
        "True",
        "{}",
        "[]",
        "*",
        "~",
        "@x",
    ),
)
_SIZES = ("16", "33", "16x8", "8x8x8", "0", "-4", "16,16", ",", "x", "1x", "16x", "4" * 30, "16;8", "1x1x1x1")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "-k": (
        "naive",
        "naive_row",
        "naive,",
        "naive:BM=3",
        "naive:BM=",
        "reg_8x8:BK=8|16",
        "nothing",
        "mine.cu",
        ":",
    ),
    "--sizes": _SIZES,
    "--block": ("16x16", "8x8x8", "0x1", "1025", "x", "32x32,", "16x16,16x16"),
    "--dtype": ("f32", "f64", "f16", "bf16", "f8", "F32", "i32"),
    "--set": ("alpha=2", "alpha=", "=2", "alpha=nan", "gamma=1", "alpha=1e400", "alpha=2=3"),
    "--device": (
        "none",
        "none",
        "none",
        "sim",
        "sim:h200",
        "sim:rtx4090",
        "sim:",
        "sim:nothing",
        "99",
        "-1",
        "all",
    ),
    "--arch": ("sm_90", "sm_0", "sm_", "90", "sm_999", "compute_90"),
    "--seed": ("0", "1", "-1", "9" * 30, "x"),
    "--timeout": ("5", "0", "-1", "nan", "inf", "1e-9"),
    "--seconds": ("0.1", "0", "nan", "-3"),
    "--sim-blocks": ("all", "1", "0", "-1", "9" * 25),
    "--reference": ("none", "all", "vendor", "nobody"),
    "--rounds": ("1", "0", "999999999999", "x"),
    "--fail-on": ("spill_bytes > 0", "median_us >", "", "1 < 2 < 3", "(" * 200, "x and", "9" * 500 + " > 1"),
    "--include": (".", "/nowhere", ""),
    "--define": ("A", "A=1", "=", "1A=2", "A=" + "b" * 3000),
    "-o": ("out", ".", "/", "/dev/full", "/dev/null", "", "-", "a/b/c/d", "out\n", "results.json", "/proc/x"),
    "--json": ("r.json", "-", "/dev/full", ""),
    "--html": ("r.html", "-", "/nowhere/r.html"),
    "--csv": ("-", "r.csv", "/dev/full", ""),
}
_MEASURING = ("gemm", "transpose", "reduce", "softmax", "run")
_FLAGS = (
    "--all",
    "--force",
    "--quiet",
    "--explain",
    "--no-explain",
    "--lines",
    "--strict",
    "--no-poison-inout",
    "--help",
)


@dataclass(frozen=True)
class CommandLine:
    """One command line and what surrounds it.

    Args:
        arguments: Its words.
        output: What standard output is.
        errors: What standard error is.
        folder: Where it runs: a fresh folder, one that is gone, one that cannot be written to, or a path.
        environment: Variables that differ.
        from_nothing: Whether the interpreter starts for it.
    """

    arguments: tuple[str, ...]
    output: str = "kept"
    errors: str = "kept"
    folder: str = "fresh"
    environment: dict[str, str] = field(default_factory=dict)
    from_nothing: bool = False


@dataclass(frozen=True)
class Ended:
    """How a command line ended: its status, None after `PATIENCE_S`; what it printed; how long it took."""

    status: int | None
    printed: str
    seconds: float


def documented() -> frozenset[int]:
    """The statuses that docs/exit-status.md names."""
    text = (ROOT / "docs" / "exit-status.md").read_text()
    return frozenset(int(row) for row in re.findall(r"^\|\s*(\d+)\s*\|", text, re.MULTILINE))


def fault_of(ended: Ended) -> str:
    """What is wrong with how a command line ended; empty where nothing is."""
    if ended.status is None:
        return f"no end after {PATIENCE_S:g} s"
    if ended.status not in documented():
        return f"status {ended.status}"
    return next((sign for sign in _SIGNS_OF_A_FAULT if sign in ended.printed), "")


def command_lines(seed: int, numbers: range, files: tuple[str, ...]) -> Iterator[CommandLine]:
    """Random command lines.

    Args:
        seed: Decides all.
        numbers: Which.
        files: Paths of results files that are whole.
    """
    for number in numbers:
        rng = random.Random(f"{seed} {number}")
        environment = dict(rng.choice(_ENVIRONMENTS)) if rng.random() < 0.5 else {}
        arguments = _bounded(_damaged(rng, _words(rng, files)))
        if rng.random() < 0.04:
            arguments, environment = [], {**environment, **_completion(rng, arguments)}
        starts = any(name.startswith(("LC_", "PYTHON")) for name in environment) or rng.random() < 0.03
        yield CommandLine(
            tuple(word.replace("\0", "") for word in arguments),
            rng.choice(_STREAMS),
            rng.choice(_STREAMS),
            rng.choice(_FOLDERS),
            environment,
            starts,
        )


def _words(rng: random.Random, files: tuple[str, ...]) -> list[str]:
    """The words of a command that may be right."""

    def file() -> str:
        return rng.choice(
            (*files, *files, *files, "nothing.json", ".", "/dev/null", *rng.sample(_ODD_WORDS, 2))
        )

    command = rng.choice(
        ("measure", "measure", "report", "report", "compare", "import", "new", "others", "others")
    )
    if command == "measure":
        words = [rng.choice(_MEASURING)]
        words += ["."] if words == ["run"] and rng.random() < 0.5 else []
        first = "naive_row" if words[0] == "transpose" else "naive"
        chosen = {"-k": first, "--sizes": "16", "--device": "none", "--timeout": "5"}
        for name in rng.sample(sorted(_OPTIONS), rng.randrange(5)):
            chosen[name] = rng.choice(_OPTIONS[name])
        for name, value in chosen.items():
            words += [name, value]
        return words + rng.sample(_FLAGS[1:], rng.randrange(3))
    if command == "report":
        words = ["report", *(file() for _ in range(rng.choice((0, 1, 1, 1, 2))))]
        words += rng.choice(
            ([], ["-o", rng.choice(_OPTIONS["-o"])], ["--markdown"], ["--csv", rng.choice(_OPTIONS["--csv"])])
        )
        return words + rng.choice(([], ["--force"], ["--fail-on", rng.choice(_OPTIONS["--fail-on"])]))
    if command == "compare":
        words = ["compare", file(), file(), *([file()] if rng.random() < 0.2 else [])]
        words += rng.choice(
            ([], ["--force"], ["--json"], ["--markdown"], ["--strict"], ["--against", "HEAD~1"])
        )
        return words + rng.choice(([], ["--fail-on", rng.choice(_OPTIONS["--fail-on"])]))
    if command == "import":
        return [
            "import",
            rng.choice(("x.ncu-rep", "/dev/null", file())),
            file(),
            *rng.choice(([], ["-o", "new.json"])),
        ]
    if command == "new":
        return [
            "new",
            rng.choice(("gemm", "softmax", ".", "nothing", "")),
            rng.choice(("my.cu", "my", "/x.cu", "", "a/b.cu")),
        ]
    return rng.choice(
        (
            *(["list"], ["list", "gemm"], ["list", "--json"], ["list", rng.choice(_ODD_WORDS)], ["devices"]),
            *(["devices", "--json"], ["devices", "--measure"], ["doctor"], ["doctor", "--device", "9" * 20]),
            *(["--version"], ["--help"], [rng.choice(("gemm", "report", "compare")), "--help"], []),
            *(
                ["--show-completion", rng.choice(("bash", "zsh", "fish", "nothing"))],
                ["compare"],
                ["tune"],
                ["fleet"],
            ),
        )
    )


def _damaged(rng: random.Random, words: list[str]) -> list[str]:
    """Words with some left out, repeated, cut, moved, or odd ones between."""
    words = list(words)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
        place = rng.randrange(len(words) + 1)
        match rng.randrange(6):
            case 0 if words:
                del words[place % len(words)]
            case 1 if words:
                words.insert(place, rng.choice(words))
            case 2 if words:
                word = words[place % len(words)]
                words[place % len(words)] = word[: rng.randrange(len(word) + 1)]
            case 3:
                words.insert(place, rng.choice(_ODD_WORDS))
            case 4 if words:
                words[place % len(words)] = rng.choice(_ODD_WORDS)
            case _:
                name = rng.choice(sorted(_OPTIONS))
                words += [name, rng.choice((*_OPTIONS[name], *rng.sample(_ODD_WORDS, 2)))]
    return words


def _bounded(words: list[str]) -> list[str]:
    """Words that measure little: what would run a ladder at its usual sizes compiles one kernel."""
    measures = next((word for word in words if word in _MEASURING), None)
    if measures is None or {"-k", "--sizes"} <= set(words):
        return words
    return [*words, "-k", "naive_row" if measures == "transpose" else "naive", "--device", "none"]


def _completion(rng: random.Random, words: list[str]) -> dict[str, str]:
    """What a shell sets to have a command line completed."""
    return {
        "_GPUPROF_COMPLETE": rng.choice(
            ("complete_bash", "complete_zsh", "complete_fish", "source_bash", "x")
        ),
        "COMP_WORDS": " ".join(["gpuprof", *words]).replace("\0", "").encode("utf-8", "replace").decode(),
        "COMP_CWORD": rng.choice(("0", "1", str(len(words)), "99", "-1")),
        "_TYPER_COMPLETE_ARGS": "gpuprof " + " ".join(words).encode("utf-8", "replace").decode(),
    }


def damaged_files(seed: int, numbers: range, folder: Path) -> Iterator[tuple[Path, CommandLine]]:
    """Results files with damage, and a command line for each that reads it.

    Args:
        seed: Decides all.
        numbers: Which.
        folder: Where they are written, one after the other.
    """
    whole = [small(ROOT / "samples" / name) for name in _SAMPLES]
    good = folder / "good.json"
    good.write_text(json.dumps(whole[0]))
    for number in numbers:
        rng = random.Random(f"{seed} file {number}")
        text = damaged_text(rng, json.dumps(rng.choice(whole)))
        path = folder / "damaged.json"
        path.write_bytes(text)
        made = ["-o", str(folder / "made.html"), "--force"]
        yield (
            path,
            CommandLine(
                tuple(
                    rng.choice(
                        (
                            ["report", str(path), *made],
                            ["report", str(path), *made, "--csv", "-"],
                            ["report", str(path), "--markdown"],
                            ["report", str(path), str(good), *made],
                            ["compare", str(path), str(good)],
                            ["compare", str(good), str(path), "--force"],
                            ["compare", str(path), str(path), "--json", "--force"],
                            ["import", str(good), str(path)],
                            ["report", str(path), "--markdown", "--fail-on", "median_us > 1"],
                        )
                    )
                )
            ),
        )


def small(path: Path) -> dict[str, object]:
    """A results file cut to a few cases, so that one change in it counts."""
    document = json.loads(path.read_text())
    document["cases"] = document["cases"][:3]
    for case in document["cases"]:
        for timing in (case.get("timing") or {}).values():
            for samples in (timing or {}).get("rounds_us") or []:
                del samples[4:]
        case["lines"] = (case.get("lines") or [])[:2] or None
    used = {case["kernel"] for case in document["cases"]}
    document["kernels"] = [
        {**record, "source": record["source"][:300]} for record in document["kernels"] if record["id"] in used
    ]
    return document


_ODD_VALUES = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        1e308,
        -1e308,
        1e-320,
        2**63,
        2**64,
        10**40,
        10**4000,
        0.1,
        [],
        {},
        [[]],
        [None],
    ),
    *("", "x", "NaN", "ok", "gpu", "\ud800", "\x00", "<script>", "a" * 100_000, "\u202e", {"": {}}, {"a": 1}),
    *(float("nan"), float("inf"), float("-inf")),
)


def damaged_text(rng: random.Random, text: str) -> bytes:
    """A JSON text with random damage."""
    match rng.randrange(8):
        case 0:  # bytes
            raw = bytearray(text.encode())
            for _ in range(rng.choice((1, 1, 3, 40))):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            return bytes(raw)
        case 1:
            return text.encode()[: rng.randrange(len(text))]
        case 2:  # depth
            depth = rng.choice((50, 900, 100_000))
            opening = rng.choice(("[", '{"a":'))
            nested = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
            return text.replace('"cases": [', f'"cases": [{nested}, ', 1).encode()
        case 3:  # keys twice
            keys = re.findall(r'"\w+": ', text)
            key = rng.choice(keys)
            return text.replace(
                key, key + rng.choice(("0, ", "null, ", '"x", ', "[], ")) + key, rng.choice((1, 5))
            ).encode()
        case _:
            document = json.loads(text)
            for _ in range(rng.choice((1, 1, 2, 5))):
                _change(rng, document)
            return json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def _change(rng: random.Random, document: object) -> None:
    """Change one value of a document, somewhere: leave it out, replace it, exchange it or repeat it."""
    place: object = document
    while True:
        keys = (
            list(place)
            if isinstance(place, dict)
            else list(range(len(place)))
            if isinstance(place, list)
            else []
        )
        if not keys:
            return
        key = rng.choice(keys)
        inner = place[key]  # type: ignore[index]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            place = inner
            continue
        match rng.randrange(5):
            case 0:
                del place[key]  # type: ignore[attr-defined]
            case 1 if isinstance(place, dict):
                place[rng.choice(("", "x", "\u0000", "a" * 9999))] = place.pop(key)
            case 2 if isinstance(inner, int | float) and abs(inner) < 1e200:
                place[key] = rng.choice((-inner, inner * 1e30, inner + 0.5, 0, 10**18))  # type: ignore[index]
            case 3:
                place[key] = place[rng.choice(keys)]  # type: ignore[index]
            case _:
                place[key] = rng.choice(_ODD_VALUES)  # type: ignore[index]
        return


def load() -> None:
    """Import what most command lines need, so that forks have it."""
    import gpuprof.commands.profile
    import gpuprof.report.html  # noqa: F401
    from gpuprof.cli import app  # noqa: F401


def run(line: CommandLine, scratch: Path) -> Ended:
    """Run a command line in a process of its own, and in a folder that is made for it."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    home = Path(tempfile.mkdtemp(dir=scratch))
    start = time.monotonic()
    printed = scratch / "printed"
    with open(printed, "wb") as file:
        child = os.fork()
        if not child:
            try:
                _become(line, folder, home, file.fileno())
            finally:
                os._exit(99)
        status = _wait(child, start + PATIENCE_S)
    seconds = time.monotonic() - start
    for made in (folder, home):
        if made.exists():
            made.chmod(stat.S_IRWXU)
            shutil.rmtree(made, ignore_errors=True)
    return Ended(status, printed.read_text("utf-8", "replace"), seconds)


def _wait(child: int, until: float) -> int | None:
    """The status of a process; None when it does not end, and then it is gone with all that it started."""
    pause = 0.002
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _become(line: CommandLine, folder: Path, home: Path, printed: int) -> None:
    """Be a command line."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(
        {"HOME": str(home), "GPUPROF_CACHE_DIR": str(home), "PYTHONPATH": str(ROOT), **line.environment}
    )
    os.chdir(folder if not line.folder.startswith("/") else line.folder)
    if line.folder == "deleted":
        shutil.rmtree(folder)
    elif line.folder == "read-only":
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, kind in ((1, line.output), (2, line.errors)):
        match kind:
            case "full":
                os.dup2(os.open("/dev/full", os.O_WRONLY), stream)
            case "closed":
                os.close(stream)
            case "broken":
                reading, writing = os.pipe()
                os.dup2(writing, stream)
                os.close(reading)
                os.close(writing)
            case _:
                os.dup2(printed, stream)
    if line.from_nothing:
        os.execv(sys.executable, [sys.executable, "-m", "gpuprof", *map(os.fsencode, line.arguments)])
    sys.stdin = None  # type: ignore[assignment]
    sys.stdout = _stream(1)
    sys.stderr = _stream(2)
    sys.argv = ["gpuprof", *line.arguments]
    try:
        runpy.run_module("gpuprof", run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        import traceback

        os.write(printed, traceback.format_exc().encode("utf-8", "backslashreplace"))
        status = 1
    os._exit(status & 0xFF)


def _stream(number: int):  # type: ignore[no-untyped-def]
    """A standard stream as Python opens it; None where it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    return open(
        number, "w", encoding="utf-8", errors="backslashreplace" if number == 2 else "strict", closefd=False
    )


def main() -> int:
    """Run all, and tell what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commands", type=int, default=0)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number to begin with: to repeat one alone")
    asked = parser.parse_args()
    load()
    found = 0
    statuses: Counter[str] = Counter()
    slowest = Ended(0, "", 0.0)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        files = tuple(str(ROOT / "samples" / sample) for sample in _SAMPLES)
        lines: list[Iterator[CommandLine]] = [
            command_lines(asked.seed, range(asked.first, asked.first + asked.commands), files)
        ]
        lines.append(
            line
            for _, line in damaged_files(asked.seed, range(asked.first, asked.first + asked.files), scratch)
        )
        for kind, each in zip(("command", "file"), lines, strict=True):
            for number, line in enumerate(each, asked.first):
                ended = run(line, scratch)
                statuses[f"{kind} {ended.status}"] += 1
                slowest = max(slowest, ended, key=lambda one: one.seconds)
                if fault := fault_of(ended):
                    found += 1
                    print(
                        f"{kind} {number} of seed {asked.seed}: {fault}\n  {line!r}\n{ended.printed[-1500:]}",
                        flush=True,
                    )
                    if kind == "file" and found <= 20:
                        shutil.copy(scratch / "damaged.json", f"damaged-{asked.seed}-{number}.json")
    print(", ".join(f"{count} x {name}" for name, count in sorted(statuses.items())))
    print(f"slowest {slowest.seconds:.1f} s; {found} faults")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
