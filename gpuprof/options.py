# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The one table of options: every field of these classes is one, with its default and what it is for.

The command line, the keywords of `gpuprof.profile` and `tune`, `[tool.gpuprof]`, the request that opens a
worker, and the reference in docs are made of it: a new option is a field here, and a place that asks for its
value.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from msgspec import Struct

from gpuprof.errors import InputError
from gpuprof.problems.dtypes import RUN_TYPES
from gpuprof.problems.sizes import NUMBER
from gpuprof.records import replace

#: An environment variable of this beginning is a label too, in small letters: GPUPROF_LABEL_RACK is `rack`.
VARIABLES = "GPUPROF_LABEL_"
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_LONGEST_VALUE = 200


def read_labels(
    given: Mapping[str, str] | Sequence[str] | None, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The labels of a run: a program's mapping, or texts `KEY=VALUE` over what the environment holds.

    Raises:
        InputError: One has no key or no value, or cannot be kept in a results file.
    """
    labels: dict[str, str] = {}
    if isinstance(given, Mapping):
        labels = dict(given)
    else:
        for name, value in sorted(environment.items()):
            if name.startswith(VARIABLES) and value:
                labels[name.removeprefix(VARIABLES).lower()] = value
        for text in given or ():
            key, sign, value = text.partition("=")
            if not sign or not value:
                raise InputError(
                    f"--label {text} is not a label.", fix="Write --label KEY=VALUE, e.g. rack=r12."
                )
            labels[key.strip()] = value.strip()
    for key, value in labels.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise InputError(
                f"{key!r} is not a key of a label.",
                fix="A key has at most 32 small letters, digits, - and _, and begins with a letter.",
            )
        if not isinstance(value, str) or not value or len(value) > _LONGEST_VALUE or not value.isprintable():
            raise InputError(
                f"The label {key} has a value that cannot be kept.",
                fix=f"A value is one line of at most {_LONGEST_VALUE} characters.",
            )
    return labels


SELECT, DEVICE, MEASURE = "Select", "Device", "Measure"
GATE, OUTPUT, COUNT = "Gate", "Output", "Nsight Compute"
#: The groups of `--help`, in its order.
GROUPS = (SELECT, DEVICE, MEASURE, GATE, OUTPUT, COUNT)
#: `gpuprof OPERATION` and `run` are a program's `profile`; `compare` measures with `--against`.
COMMANDS = ("profile", "compare", "tune", "report", "fleet")
_MEASURED, _GATED, _COMPARED = ("profile", "tune"), ("profile", "compare"), ("compare", "fleet")
_MEASURING = ("profile", "compare", "tune")
_PROFILE, _TUNE = ("profile",), ("tune",)


class Option(Struct, frozen=True):
    """One option: its default, its text in `--help`, and what stands there for its value.

    Args:
        among: The words that it takes, where it takes no others.
        either: Whether `--no-…` switches it off.
        told: Its text where a program gives other values than a command line.
        read: Makes the field's value of what was typed, or of what a program gave.
        decides: How its value is told, where a run with another one has other figures; else None.
    """

    default: Any
    help: str
    metavar: str | None = None
    flag: str = ""
    short: str | None = None
    group: str = ""
    within: tuple[float, float] | None = None
    among: tuple[str, ...] = ()
    either: bool = False
    told: str = ""
    typed: Any = None
    given: Any = None
    read: Callable[[Any], Any] = lambda given: given
    decides: Callable[[Any], str] | None = None
    of: tuple[str, ...] = _MEASURING
    name: str = ""
    kind: Any = None
    owner: type | None = None

    @property
    def long(self) -> str:
        return self.flag or f"--{self.name.rstrip('_').replace('_', '-')}"


def option(default: Any, help: str, metavar: str | None = None, flag: str = "", **more: Any) -> Any:
    """A field that is an option."""
    return field(default=default, metadata={"option": Option(default, help, metavar, flag, **more)})


def read_devices(given: str | int | Sequence[str | int]) -> str:
    """One or several devices as `--device` names them.

    Raises:
        InputError: The list is empty.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        return str(given)
    if not given:
        raise InputError("There is no device in the list.", fix='Name one, or leave device out for "auto".')
    return ",".join(map(str, given))


def _switch(value: bool) -> str:
    return str(value).lower()


def read_sim_blocks(given: str | int | None) -> int | None:
    """Blocks that the executor runs: 0 for `all`, None for a choice by size.

    Raises:
        InputError: It is neither `all` nor a positive number.
    """
    if given is None:
        return None
    if given == "all":
        return 0
    if not re.fullmatch(NUMBER, str(given)) or int(given) == 0:
        raise InputError(f"--sim-blocks {given!r} is not a number of blocks.", fix="Write all, or 1 or more.")
    return int(given)


_KERNEL = (
    "Run only these kernels: ids or published names as `gpuprof list` shows them, patterns as 'col_*', or"
    " kernel files; with parameters as reg_8x8:BK=16, or 'reg_8x8:BK=8|16' for a case each."
)
_ALL = "All rungs of the ladder (the default without --kernel); other shapes run when they are named."
_DTYPE = "Element type of a run; auto: f32, or what the kernels are written for."
_TYPES = ("auto", *RUN_TYPES)
#: What `--reference` takes.
REFERENCES = ("vendor", "cpu", "all", "none")
_REFERENCE = "On a GPU: what to measure beside the kernels; cpu is NumPy."


_AGAINST = "Measure the kernels as they are and as they were at a git revision, in turns, and compare."


@dataclass(frozen=True)
class SelectOptions:
    """What to run, as it is typed."""

    against: str | None = option(None, _AGAINST, "REVISION", of=("compare",))
    kernel: list[str] | None = option(None, _KERNEL, "ID[:P=V][,…]", short="-k")
    everything: bool = option(False, _ALL, flag="--all", of=_PROFILE)
    include: list[Path] | None = option(
        None, "A folder of headers that your own kernels include.", "DIR", short="-I"
    )
    define: list[str] | None = option(None, "A macro for your own kernels.", "NAME[=VALUE]", short="-D")
    sizes: str | None = option(None, "Problem sizes.", "N|NxM[,…]")
    block: str | None = option(None, "Block or list of blocks, e.g. 8x32 or 8x32,16x16.", "XxY[,…]")
    dtype: str = option("auto", _DTYPE, "|".join(_TYPES))
    set_: list[str] | None = option(
        None, "A number that the operation takes besides its sizes.", "NAME=VALUE"
    )
    reference: str = option("vendor", _REFERENCE, "|".join(REFERENCES), of=_MEASURED)


_DEVICE = (
    "auto: the first GPU, else sim; N: that GPU; all; sim, sim:CARD: run on the CPU; none: compile only."
    " Several as 0,1 or sim:h200,sim:a100."
)
_DEVICE_TOLD = (
    '`"auto"`: the first GPU, else `"sim"`; a GPU\'s number; `"all"`; `"sim"` or `"sim:CARD"`: run on the'
    ' CPU; `"none"`: compile only. Several as a list, `[0, 1]` or `["sim:h200", "sim:a100"]`: each measures'
    " every case."
)
_CLUSTER = (
    "Measure on the workers of a Dask cluster: on every GPU they offer, or with --device sim on their CPUs."
)
_CLUSTER_TOLD = (
    'Address of a Dask cluster, or `"local:N"`, whose workers measure: on each GPU that they offer, or with'
    ' `device="sim"` on their CPUs.'
)
_TIMEOUT = "Longest one case may take; without a GPU, of CPU time."
_COMPILE = "Longest that compiling one case may take, before its --timeout."
_SIM_BLOCKS = "Blocks that sim runs of each grid.  [default: all when small]"
_SIM_BLOCKS_TOLD = 'Blocks that the executor runs of each grid, or `"all"`; chosen by size when None.'
_POISON = (
    "Whether a kernel is wrong that reads what it must not, such as C where beta is 0; else it is measured"
    " with a remark."
)
_FLUSHES = ("read", "write")
_FLUSH = "On a GPU: flush L2 by reading, or by writing as do_bench and NVBench do, which leaves dirty lines."
_CHECK_COMPILER = (
    "On a GPU: run what each ptxas at hand makes of a kernel's PTX, and hold it against the executor."
)
_EXPLAIN = (
    "Run a case that fails, hangs or is wrong on the executor too, for 20 s at most, to say line and thread."
)
_ROUNDS = "On a GPU: measure every case in N fresh processes, for gpuprof compare; 16 detect a change of 2 %."
_ROUNDS_TOLD = (
    "How often a GPU measures every case, each time in a fresh process, for `compare`: 16 tell 2 %. They"
    " share `seconds_per_case`."
)
_LABELS = "What gpuprof fleet groups by, e.g. host=node7; GPUPROF_LABEL_KEY in the environment too."
_LABELS_TOLD = "What `fleet` groups by, such as a host or a rack; those of `GPUPROF_LABEL_*` where None."


@dataclass(frozen=True)
class RunOptions:
    """How to run, apart from what; a worker gets all of it. A program's arrays lie in `given_arrays`."""

    device: str = option(
        "auto",
        _DEVICE,
        "auto|N|all|sim|none",
        group=DEVICE,
        read=read_devices,
        given=str | int | Sequence[str | int],
        told=_DEVICE_TOLD,
    )
    cluster: str | None = option(
        None, _CLUSTER, "ADDRESS|local:N", group=DEVICE, told=_CLUSTER_TOLD, of=_MEASURED
    )
    arch: str | None = option(None, "Without a GPU: the architecture to stand in for.", "sm_XX", group=DEVICE)
    seed: int = option(0, "Seed of the random inputs.", "N", within=(0, 2**32 - 1), decides=str)
    timeout_s: float = option(60.0, _TIMEOUT, "SECONDS", "--timeout", within=(1, 86_400))
    compile_timeout_s: float = option(120.0, _COMPILE, "SECONDS", "--compile-timeout", within=(1, 86_400))
    seconds_per_case: float = option(
        0.25,
        "Kernel time to spend sampling one case.",
        "SECONDS",
        "--seconds",
        within=(0.01, 3600),
        decides=repr,
    )
    sim_blocks: int | None = option(
        None,
        _SIM_BLOCKS,
        "all|N",
        typed=str | None,
        given=str | int | None,
        read=read_sim_blocks,
        told=_SIM_BLOCKS_TOLD,
        decides=lambda blocks: "" if blocks is None else str(blocks or "all"),
    )
    flush: str = option("read", _FLUSH, "|".join(_FLUSHES), among=_FLUSHES, decides=str)
    lines: bool = option(
        True,
        "On a GPU, count with sim too: bounds, and counts by source line.",
        either=True,
        decides=_switch,
        of=_GATED,
    )
    poison_inout: bool = option(True, _POISON, either=True, decides=_switch)
    explain: bool = option(True, _EXPLAIN, either=True)
    check_compiler: bool = option(False, _CHECK_COMPILER, of=_PROFILE)
    rounds: int = option(1, _ROUNDS, "N", within=(1, 200), told=_ROUNDS_TOLD, decides=str)
    labels: Mapping[str, str] | None = option(
        None,
        _LABELS,
        "KEY=VALUE",
        "--label",
        typed=list[str] | None,
        read=read_labels,
        told=_LABELS_TOLD,
        of=_PROFILE,
    )
    given_arrays: str = ""


#: How a run goes of which nothing is said.
USUAL = RunOptions()
_FAIL_ON = "End with status 1 where a case meets this, e.g. 'spill_bytes > 0'; may be repeated."
_OUTLIER = "End with status 1 where a card is an outlier or a case failed on one."
_STRICT = "End with status 3 where a gate or a verdict stays uncertain."


@dataclass(frozen=True)
class GateOptions:
    """What a run is held against."""

    fail_on: list[str] | None = option(None, _FAIL_ON, "GATE", of=(*_GATED, "report"))
    fail_on_outlier: bool = option(False, _OUTLIER, of=("fleet",))
    strict: bool = option(False, _STRICT, of=(*_GATED, "report"))


_TABLE = "Print every row, with all columns that fit."
_MARKDOWN = "Write Markdown tables; - prints them instead."
_CSV = "Write the figures as CSV too, a row a case; - prints them."


@dataclass(frozen=True)
class OutputOptions:
    """Where what was learnt goes."""

    output: Path | None = option(
        None, "Directory for results.json and report.html.", "DIR", short="-o", of=(*_MEASURING, "report")
    )
    resume: Path | None = option(None, "Go on with the run in there that was stopped.", "DIR", of=_PROFILE)
    json: Path | None = option(None, "Results file; - prints it too.", "FILE|-", of=(*_GATED, "fleet"))
    html: Path | None = option(None, "Report file; - prints it too.", "FILE|-", of=(*_GATED, "fleet"))
    csv: Path | None = option(None, _CSV, "FILE|-", of=("profile", "report"))
    markdown: Path | None = option(None, _MARKDOWN, "FILE|-", of=_COMPARED)
    junit: Path | None = option(None, "Write a JUnit file; - prints it instead.", "FILE|-", of=("compare",))
    open_: bool = option(False, "Open the report in a browser.", of=(*_MEASURED, "report"))
    force: bool = option(False, "Replace existing files.", of=COMMANDS)
    quiet: bool = option(False, "No progress and no answer.", short="-q", of=COMMANDS)
    table: bool = option(False, _TABLE, of=("profile", "report"))


_CLOCKS = "Clocks while ncu profiles: as they are, or base."


@dataclass(frozen=True)
class CounterOptions:
    """How Nsight Compute counts."""

    ncu: bool = option(False, "Then profile each kernel with Nsight Compute.", of=_PROFILE)
    ncu_set: str | None = option(None, "Metrics of one of ncu's sets too, e.g. full.", "SET", of=_PROFILE)
    ncu_clocks: str = option("none", _CLOCKS, "none|base", of=_PROFILE)
    ncu_path: str | None = option(None, "The ncu to use.", "FILE", of=_PROFILE)


_VALUES = "Values to try besides those that headers declare: BM=32|64|128."
_BUDGET = "Points to time at each size, or a time budget: 40, 90s or 40,90s."
_WRITE = (
    "Put the best values into the kernel's file and show what changed; where sizes differ, those that lose"
    " least."
)


@dataclass(frozen=True)
class TuneOptions:
    """What a search tries, how long, and what becomes of what it found."""

    values: list[str] | None = option(None, _VALUES, "P=V|V[,…]", group=SELECT, of=_TUNE)
    budget: str = option("20", _BUDGET, "N|SECONDSs", of=_TUNE)
    write: bool = option(False, _WRITE, group=OUTPUT, of=_TUNE)


@dataclass(frozen=True)
class Given:
    """A command line, read; `argv` with what a project's file added."""

    select: SelectOptions = SelectOptions()
    run: RunOptions = RunOptions()
    gate: GateOptions = GateOptions()
    output: OutputOptions = OutputOptions()
    count: CounterOptions = CounterOptions()
    tune: TuneOptions = TuneOptions()
    argv: tuple[str, ...] = ()


#: Each class with its group of `--help`, where an option names none.
_OWNERS = {
    SelectOptions: SELECT,
    RunOptions: MEASURE,
    GateOptions: GATE,
    OutputOptions: OUTPUT,
    CounterOptions: COUNT,
    TuneOptions: MEASURE,
}
#: What is otherwise for some commands.
_OTHERWISE: dict[str, dict[str, dict[str, Any]]] = {
    "compare": {
        "rounds": {"default": 16, "help": "With --against: rounds of each version."},
        "seconds_per_case": {"default": 1.0},
        "output": {"help": "With --against: where both results files go."},
        "json": {"help": "Write every verdict as JSON; - prints it instead."},
        "html": {"help": "Write the page; - prints it instead."},
        "force": {"help": "Compare although it misleads, and overwrite existing files."},
    },
    "tune": {
        "rounds": {
            "default": 10,
            "help": "Rounds that decide between the closest points at the end.",
            "told": "",
        },
        "explain": {"default": False},
        "sizes": {"help": "Problem sizes, each searched for itself.  [default: the operation's]"},
    },
    "report": {
        "output": {
            "help": "The report or its folder, - to print it; beside the results by default.",
            "metavar": "FILE",
        },
        "csv": {"help": "The figures as CSV, a row a case (- prints them); no page without -o."},
        "force": {"help": "Overwrite a file that is not a report."},
    },
    "fleet": {
        "json": {"help": "Write everything as JSON; - prints it instead."},
        "html": {"help": "Write the page; - prints it instead."},
    },
}


@cache
def options_of(command: str) -> Mapping[str, Option]:
    """A command's options by their names, as `--help` shows them."""
    found = {}
    for owner, group in _OWNERS.items():
        hints = get_type_hints(owner)
        for each in fields(owner):
            row: Option | None = each.metadata.get("option")
            if row is not None and command in row.of:
                known = {"name": each.name, "kind": hints[each.name], "owner": owner}
                changes = _OTHERWISE.get(command, {}).get(each.name, {})
                found[each.name] = replace(row, **{"group": row.group or group, **known, **changes})
    return found


def keywords_of(command: str) -> Mapping[str, Option]:
    """What a program gives to `profile` or `tune` by the names of options: how to run."""
    return {name: row for name, row in options_of(command).items() if row.owner is RunOptions}


def run_options(command: str, given: Mapping[str, Any]) -> RunOptions:
    """How to run, of what was typed or what a program gave; a command's defaults for the rest.

    Raises:
        InputError: A value makes no sense.
    """
    rows = keywords_of(command)
    return RunOptions(**{name: _value(row, given.get(name, row.default)) for name, row in rows.items()})


def _value(row: Option, given: Any) -> Any:
    value = row.read(given)
    if row.among and value not in row.among:
        raise InputError(f"{row.long} is {value!r}.", fix=f"Give {' or '.join(row.among)}.")
    if row.within is not None and (value is not None or row.default is not None):
        number = isinstance(value, int if row.kind is int else (int, float)) and not isinstance(value, bool)
        least, most = row.within
        if not number or not least <= value <= most:
            what = "a whole number" if row.kind is int else "a number"
            raise InputError(f"{row.long} is {value!r}.", fix=f"Give {what} from {least} to {most:,}.")
    return value


def decisive(options: RunOptions) -> dict[str, str]:
    """The values of options with which a run's figures would be others, by their long names."""
    rows = keywords_of("profile").values()
    return {
        row.long.removeprefix("--"): row.decides(getattr(options, row.name)) for row in rows if row.decides
    }


def only_measuring(command: str) -> list[Option]:
    """Options without effect where nothing is measured."""
    return [
        row
        for row in options_of(command).values()
        if row.owner is not GateOptions
        and row.name not in ("against", "force", "quiet")
        and "FILE" not in (row.metavar or "")
    ]
