# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor's counts beside Nsight Compute's: record a card's, and write docs/executor-accuracy.md.

Usage: python benchmarks/executor_accuracy.py record [--part shipped|public] [--only PATTERN] [--ncu PATH]
       python benchmarks/executor_accuracy.py page

`record` launches every case under Nsight Compute on the card in this machine: the shipped kernels and samples
at three sizes each, and the kernels of tests/executor/public_style. With `--only` the shipped ones are those
of that name, such as "splitk_*", and what was recorded of the others stays. `page` runs the same on the
executor and writes the page and its data; it exits with 1 where a difference has no reason in
tests/executor/differential/known_differences.toml.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

from accuracy_cases import RECORDED, ROOT, Shipped, recorded, shipped_cases
from accuracy_page import page
from accuracy_rows import executed_public, executed_shipped
from recording import answer_cases, record

from gpuprof.backends.compiling import compile_kernel
from gpuprof.devices.cards import load_card
from gpuprof.errors import GpuprofError
from gpuprof.measure.case import configured
from gpuprof.ncu.metrics import has_async_copies

sys.path.insert(0, str(ROOT / "tests" / "executor" / "public_style"))

from public_kernels import public_kernels

PAGE = ROOT / "docs" / "executor-accuracy.md"
DATA = ROOT / "docs" / "data" / "executor-accuracy.csv"
PUBLIC = ROOT / "tests" / "executor" / "public_style" / "answers-h200.json.xz"
_LIMIT_S = 480.0
_AT_ONCE = 60


def record_shipped(ncu: str | None, only: str = "*") -> None:
    """Profile shipped kernels on the first GPU, new ones first, and write what was counted as it comes.

    What there is no time for stays as it was recorded before.
    """
    # Only here: the product's own profiling opens the GPU.
    from asking import Card

    from gpuprof.counters import OF_EXECUTOR
    from gpuprof.ncu.collecting import Collector
    from gpuprof.ncu.invocation import NcuOptions

    began = time.monotonic()
    about, cases = Card().describe(), [one for one in shipped_cases() if fnmatch(one.case.name, only)]
    known = {one.key for one in shipped_cases()}
    rows: dict[str, dict] = {key: row for key, row in recorded()["rows"].items() if key in known}
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        list(processes.map(_compiled, cases, [about["arch"]] * len(cases)))
    cases.sort(key=lambda one: (one.key in rows, _copies(one)))
    groups = [[*group] for _, group in groupby(cases, _copies)]
    chunks = [group[at : at + _AT_ONCE] for group in groups for at in range(0, len(group), _AT_ONCE)]
    for number, chosen in enumerate(chunks):
        if time.monotonic() - began > _LIMIT_S:
            print(f"no time left for {sum(map(len, chunks[number:]))} cases", flush=True)
            break
        with tempfile.TemporaryDirectory() as scratch:
            outcome = Collector(
                cases={index: one.case for index, one in enumerate(chosen)},
                device_ordinal=0,
                seed=0,
                options=NcuOptions(path=ncu),
                report_path=Path(scratch, "accuracy.ncu-rep"),
                progress=lambda case: None,
            ).collect()
        for index, profile in outcome.profiles.items():
            counters = {
                row.name: profile.counters[row.name].value
                for row in OF_EXECUTOR.values()
                if row.name in profile.counters and profile.counters[row.name].value is not None
            }
            rows[chosen[index].key] = {"reason": profile.reason} if profile.reason else {"counters": counters}
        about["ncu"] = outcome.version or ""
        _write(about, rows)
        print(f"{time.monotonic() - began:5.0f} s  {number + 1} of {len(chunks)} parts", flush=True)
    print(f"Wrote {RECORDED}")


def _copies(one: Shipped) -> bool:
    """Whether opcodes, by which barriers are counted, are left out of a recording that it is part of."""
    assert one.case.kernel is not None
    return has_async_copies(one.case.kernel)


def _compiled(one: Shipped, arch: str) -> None:
    """Leave a case's machine code in the cache: the process that ncu profiles would compile one by one."""
    with suppress(GpuprofError):
        compile_kernel(configured(one.case, load_card("h200")), arch)


def _write(about: dict[str, str], rows: dict[str, dict]) -> None:
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
    RECORDED.write_text(f'{{"about": {json.dumps(about)},\n"rows": {{\n{lines}\n}}}}\n')


def write_page() -> int:
    """Execute every case that was recorded and write the page; return the exit status."""
    began = time.monotonic()
    counted = recorded()["rows"]
    cases: list[Shipped] = [one for one in shipped_cases() if "counters" in counted.get(one.key, {})]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        shipped = [*processes.map(executed_shipped, cases, [counted[one.key] for one in cases])]
        public = [*processes.map(executed_public, public_kernels(), chunksize=4)]
    text, data, unexplained = page(shipped, [row for row in public if row is not None])
    PAGE.write_text(text)
    DATA.write_text(data)
    print(f"Wrote {PAGE} and {DATA}; {time.monotonic() - began:.0f} s")
    print(f"{unexplained} differences without a reason")
    return 1 if unexplained else 0


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("record", "page"), nargs="?", default="page")
    parser.add_argument("--part", choices=("shipped", "public"), help="record only these")
    parser.add_argument("--only", default="*", help="record only shipped kernels of this name")
    parser.add_argument("--ncu", help="path of Nsight Compute")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        folder, *names = options.work
        answer_cases(Path(folder), public_kernels(), names, once=options.once)
    elif options.mode == "record":
        if options.part != "shipped":
            record(Path(__file__), public_kernels(), PUBLIC, options.ncu, _LIMIT_S)
        if options.part != "public":
            record_shipped(options.ncu, options.only)
    else:
        sys.exit(write_page())


if __name__ == "__main__":
    main()
