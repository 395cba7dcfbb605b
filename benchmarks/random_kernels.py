# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random kernels, on a card and on the executor: the same bits, the same counts.

Usage: python benchmarks/random_kernels.py record [--first SEED] [--kernels N] [--limit S] [--ncu PATH]
           [-o FILE]
       python benchmarks/random_kernels.py compare FILE [--only SEED …]
       python benchmarks/random_kernels.py keep FILE [--kernels N]

`record` asks the card in this machine; it needs Python 3.11, NumPy, cuda-bindings with NVRTC and Nsight
Compute. `compare` runs the same kernels on the executor, from the PTX that was recorded, and exits with 1
where a result is not the card's, or a counter is not and nobody knows why. `keep` writes the answers to the
first kernels where the tests find them.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from recording import answer_cases, record

from against_card import compared, counts_of_card, execute, reason_of, wrong_bits  # isort: skip
from answers_file import load_answers, save_answers  # isort: skip
from kernel_generator import random_kernel  # isort: skip

from gpuprof.errors import CaseFailure

_KERNELS = 600
#: How many of them the tests run.
_KEPT = 60
_LIMIT_S = 480.0
_HERE = Path(__file__).parent
KEPT = _HERE.parent / "tests" / "executor" / "differential"
SUMMARY = KEPT / "random-summary.json"


def seed_of(name: str) -> int:
    """Return the seed of a kernel by its name."""
    return int(name.removeprefix("random_"))


def judged(name: str, answer: dict) -> tuple[str, list[str], list[tuple[str, float, float, bool]]]:
    """Return a kernel's name, what is wrong with its results, and its counters."""
    case = random_kernel(seed_of(name))
    if answer["key"] != case.key:
        return name, ["the generator has changed since the card was asked"], []
    if answer["outcome"] != "ok":
        return name, [f"the card: {answer['outcome']} {answer.get('error', '')}"], []
    try:
        ours = execute(case, answer["ptx"])
    except CaseFailure as why:
        return name, [f"{type(why).__name__}: {why}"], []
    wrong = wrong_bits(case, ours, answer)
    counters = compared(ours.counters, counts_of_card(answer)) if "counters" in answer else []
    return name, [wrong] if wrong else [], [(c.name, c.ours, c.theirs, c.equal) for c in counters]


def compare(path: Path, only: list[int]) -> int:
    """Hold the executor against a file, and print what differs; return the exit status.

    Of a whole file, the sums are kept for the page of the executor's accuracy.
    """
    began = time.monotonic()
    told = load_answers(path)
    answers = {name: a for name, a in told["answers"].items() if not only or seed_of(name) in only}
    wrong, asked, same, explained = [], Counter(), Counter(), Counter()
    differing = defaultdict(list)
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        for name, complaints, counters in processes.map(judged, answers, answers.values(), chunksize=4):
            wrong += [f"{name}: {text}" for text in complaints]
            for counter, ours, theirs, equal in counters:
                asked[counter] += bool(ours or theirs)
                same[counter] += bool(equal and (ours or theirs))
                if not equal:
                    why = reason_of(name, counter)
                    explained.update([why] if why else [])
                    differing[counter].append(f"{name}: {ours:g}, the card {theirs:g}; {why or 'why?'}")
    about = told["about"]
    print(f"{len(answers)} kernels against {about['card']}, NVRTC {about['nvrtc']};", end=" ")
    print(f"{len(wrong)} with other results; {time.monotonic() - began:.0f} s")
    for line in wrong:
        print(f"  {line}")
    for counter, count in asked.items():
        print(f"{counter}: equal for {same[counter]} of {count} kernels that have any")
        for line in differing[counter]:
            print(f"  {line}")
    if not only:
        summary = {
            "kernels": len(answers),
            "same_results": len(answers) - len(wrong),
            "counters": {name: [count, same[name]] for name, count in asked.items() if count},
            "explained": explained,
        }
        SUMMARY.write_text(json.dumps(summary, indent=1) + "\n")
    unexplained = sum(map(len, differing.values())) - explained.total()
    return 1 if wrong or unexplained else 0


def keep(path: Path, kernels: int) -> None:
    """Write the first kernels' answers for the tests."""
    told = load_answers(path)
    card = told["about"]["card"].removeprefix("NVIDIA ").replace(" ", "-").lower()
    names = sorted(told["answers"])[:kernels]
    output = KEPT / f"random-{card}.json.xz"
    save_answers(output, told["about"], {name: told["answers"][name] for name in names})
    print(f"Wrote {output}: {len(names)} kernels, {output.stat().st_size:,} bytes")


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("record", "compare", "keep"), nargs="?", default="compare")
    parser.add_argument("file", type=Path, nargs="?", help="recorded answers")
    parser.add_argument("--kernels", type=int, help=f"to record, {_KERNELS}, or to keep, {_KEPT}")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="record from this seed on")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, metavar="S", help="profile no longer")
    parser.add_argument("--only", type=int, nargs="*", default=[], metavar="SEED", help="compare these only")
    parser.add_argument("--ncu", help="path of Nsight Compute")
    parser.add_argument("-o", "--output", type=Path, default=Path("random-kernels.json.xz"))
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        folder, *names = options.work
        cases = {name: random_kernel(seed_of(name)) for name in names}
        answer_cases(Path(folder), cases, names, once=options.once)
    elif options.mode == "record":
        seeds = range(options.first, options.first + (options.kernels or _KERNELS))
        cases = {case.name: case for case in map(random_kernel, seeds)}
        record(Path(__file__), cases, options.output, options.ncu, options.limit)
    elif options.file is None:
        parser.error(f"{options.mode} needs a file of recorded answers")
    elif options.mode == "keep":
        keep(options.file, options.kernels or _KEPT)
    else:
        sys.exit(compare(options.file, options.only))


if __name__ == "__main__":
    main()
