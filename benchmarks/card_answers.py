# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine every rule of tests/executor/rules, and write down what it answers.

Usage: python benchmarks/card_answers.py [--only TEXT …] [--ncu [PATH]] [-o FILE]

Needs Python 3.11, NumPy and cuda-bindings with NVRTC; of gpuprof nothing that needs more. Files are compiled
side by side for the card's architecture. Cases that should end well share one process; after a fault a new
one goes on with the rest, because a fault spoils a context. Risky cases have a process each. What has not
ended after a few seconds is a hang. The answers of cases that are not asked again are kept.

--only asks the cases whose name or chapter contains a text. --ncu profiles the cases whose accesses are worth
counting, once each, and puts their counters beside the answers.
"""

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

RULES = Path(__file__).parents[1] / "tests" / "executor" / "rules"
sys.path.insert(0, str(RULES))

from asking import Card, answer_here, asked_elsewhere, compile_file, counted, profiled  # noqa: E402
from rules_corpus import POISON, Case, cases, sources  # noqa: E402

#: Launches of a case; elements that differ between them are no answer.
_LAUNCHES = 3
_AT_ONCE = 4
_NCU_S = 400.0
_METRICS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__inst_executed_op_ldgsts.sum",
    "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum",
)


def ask(card: Card, case: Case, folder: Path, launches: int) -> dict:
    """Run a case; see the file's docstring for what comes of it."""
    function = card.function(folder / f"{case.file}.cubin", case.kernel, case.shared)
    poison = bytes([POISON]) * (case.count * case.dtype.itemsize)
    addresses = [card.array(poison), *(card.array(content) for content in case.inputs)]
    values = [ctypes.c_void_p(address) for address in addresses]
    seen = []
    for _ in range(launches):
        card.fill(addresses[0], poison)
        card.launch(function, case.grid, case.block, case.shared, values, cooperative=case.cooperative)
        seen.append(card.content(addresses[0], np.empty(case.count, case.dtype)))
    answer = {"outcome": "ok", "out": seen[0].tobytes().hex()}
    if varies := np.flatnonzero([np.any(column != column[0]) for column in np.array(seen).T]).tolist():
        answer["varies"] = varies
    for address in addresses:
        card.free(address)
    return answer


def command(folder: Path, *options: str) -> list[str]:
    """Return what starts a process that answers the cases named after it."""
    return [sys.executable, __file__, *options, "--work", str(folder)]


def counters(folder: Path, ncu: str, names: list[str]) -> dict[str, dict[str, float]]:
    """Return what Nsight Compute counts of one launch of each case."""
    launches = profiled([*command(folder, "--once"), *names], _METRICS, ncu, _NCU_S)
    by_kernel = {launch.kernel: counted(launch, _METRICS) for launch in launches}
    return {name: by_kernel[cases()[name].kernel] for name in names if cases()[name].kernel in by_kernel}


def main() -> None:
    """Compile, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", default=[""], help="ask cases whose name or chapter contains a text"
    )
    parser.add_argument(
        "--ncu", nargs="?", const="ncu", help="profile the cases whose accesses are worth counting"
    )
    parser.add_argument("-o", "--output", type=Path, help="instead of tests/executor/rules/answers-CARD.json")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        card, (folder, *names) = Card(), options.work
        launches = 1 if options.once else _LAUNCHES
        answer_here(names, lambda name: ask(card, cases()[name], Path(folder), launches))
        return
    began = time.monotonic()
    about = Card().describe()
    wanted = [
        c for c in cases().values() if any(text in c.name or text in c.chapter for text in options.only)
    ]
    output = (
        options.output
        or RULES / f"answers-{about['card'].removeprefix('NVIDIA ').replace(' ', '-').lower()}.json"
    )
    answers = json.loads(output.read_text())["answers"] if output.exists() else {}
    told: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(scratch)
        files = {case.file for case in wanted}
        jobs = [pool.submit(compile_file, name, sources()[name], about["arch"]) for name in sorted(files)]
        logs = {}
        for file in (job.result() for job in jobs):
            (folder / f"{file.name}.cubin").write_bytes(file.cubin)
            if not file.cubin:
                logs[file.name] = file.log
                print(f"{file.name} was refused:\n{file.log}", file=sys.stderr)
        print(f"{len(files)} files compiled after {time.monotonic() - began:.0f} s", flush=True)
        for case in wanted:
            if case.file in logs:
                told[case.name] = {"outcome": "refused", "error": logs[case.file], "at": "compile"}
        runnable = [case for case in wanted if case.file not in logs]
        plain = [case.name for case in runnable if not case.risky]
        told |= asked_elsewhere(command(folder), plain)
        print(f"{len(plain)} plain cases asked after {time.monotonic() - began:.0f} s", flush=True)
        risky = [case.name for case in runnable if case.risky]
        with ThreadPoolExecutor(_AT_ONCE) as processes:
            for found in processes.map(lambda name: asked_elsewhere(command(folder), [name]), risky):
                told |= found
        print(f"{len(risky)} risky cases asked after {time.monotonic() - began:.0f} s", flush=True)
        if options.ncu:
            counted = [case.name for case in runnable if case.counted and told[case.name]["outcome"] == "ok"]
            for name, found in counters(folder, options.ncu, counted).items():
                told[name]["counters"] = found
    for name, answer in told.items():
        answers[name] = {"key": cases()[name].key, **answer}
    kept = {name: answers[name] for name in sorted(answers) if name in cases()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in kept.items())
    output.write_text(f'{{"about": {json.dumps(about)},\n"answers": {{\n{lines}\n}}}}\n')
    outcomes = [answer["outcome"] for answer in told.values()]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in sorted(set(outcomes)))
    print(f"Wrote {output}: {counts}; {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
