# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine what its copy engine and its less usual products do, beside the executor.

Usage: python benchmarks/copy_engine_answers.py [--ncu [PATH]] [-o FILE]

Needs what card_answers.py needs, and a card of compute capability 9.0. The launches stand in
tests/executor/copy_engine, tests/executor/warpgroups and tests/executor/tensor_cores/more_products.py. The
file gets, for each launch, which elements came out otherwise than on the executor, or which of both faulted,
and Nsight Compute's counters of it; what differs is printed. A fault costs the process that launched, and
nothing else.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

EXECUTOR = Path(__file__).parents[1] / "tests" / "executor"
sys.path[:0] = [
    *(str(EXECUTOR / name) for name in ("", "copy_engine", "warpgroups", "tensor_cores")),
    str(Path(__file__).parent),
]

import copy_runs  # noqa: E402
import more_runs  # noqa: E402
import wgmma_runs  # noqa: E402
from asking import Card, counted, profiled  # noqa: E402
from card_process import CardProcess, CardTrouble  # noqa: E402
from copy_corpus import cases  # noqa: E402
from more_products import more_products  # noqa: E402
from wgmma_corpus import products  # noqa: E402

from gpuprof.executor import KernelFault  # noqa: E402

_CORPORA = ((copy_runs, cases), (wgmma_runs, products), (more_runs, more_products))
#: Longest that counting may take.
_NCU_S = 500
#: Differences that are written down, of each launch.
_SHOWN = 16
_METRICS = (
    "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",
    "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_red.sum",
    "smsp__inst_executed_pipe_uniform.sum",
    "smsp__inst_executed.sum",
    "smsp__inst_executed_pipe_tensor.sum",
    "smsp__inst_executed_pipe_tensor_op_hmma.sum",
    "smsp__inst_executed_pipe_tensor_op_gmma.sum",
    "smsp__inst_executed_pipe_tensor_op_imma.sum",
    "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "sm__ops_path_tensor_src_fp16.sum",
    "sm__ops_path_tensor_src_fp16_dst_fp16.sum",
    "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
    "sm__ops_path_tensor_src_int8.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
)


def differences(here: np.ndarray, there: np.ndarray, before: np.ndarray) -> dict[str, object]:
    """Return how many elements differ, and the first of them in hexadecimal: executor, card, and before."""
    flat = [np.ascontiguousarray(part).reshape(-1) for part in (here, there, before)]
    places = np.flatnonzero(flat[0] != flat[1])
    digits = 2 * flat[0].itemsize
    shown = [[int(i), *(f"{int(part[i]):0{digits}x}" for part in flat)] for i in places[:_SHOWN]]
    return {"differ": len(places), "of": flat[0].size, "first": shown}


def compared(card: CardProcess, runs: ModuleType, case: Any) -> dict[str, object]:
    """Run a case on both sides; return what differs in each array, or which side faulted and how."""
    faults = {}
    try:
        there = card.run(case)
    except CardTrouble as why:
        faults["card"] = str(why)
    try:
        here = runs.executed(case)
    except KernelFault as why:
        faults["executor"] = str(why)
    if faults:
        return {"faults": faults}
    if runs is copy_runs:
        sides = zip(("data", "words"), here, there, (case.data, case.words), strict=True)
        kind = f"u{case.item_bytes}"
        return {
            name: differences(*(array.view(np.uint8).view(kind) for array in side)) for name, *side in sides
        }
    before = wgmma_runs.arrays_of(case)[3] if runs is wgmma_runs else case.by_lane(case.matrices()[2])
    return {"words": differences(here[0], there, before)}


def asked(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Launch everything once; yield each launch's name and what came out otherwise."""
    for runs, corpus in _CORPORA:
        with CardProcess(runs.CardRuns, folder) as card:
            for name, case in corpus().items():
                yield name, compared(card, runs, case)


def launched(folder: Path, names: Iterable[str]) -> None:
    """Launch cases in this process, which Nsight Compute counts."""
    wanted = set(names)
    for runs, corpus in _CORPORA:
        card = runs.CardRuns(folder)
        for name, case in corpus().items():
            if name in wanted:
                card.run(case)


def main() -> None:
    """Ask, count, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ncu", nargs="?", const="ncu", help="count each launch that ends well")
    parser.add_argument("-o", "--output", type=Path, default=Path("copy-engine.json"))
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.work:
            launched(Path(scratch), options.work)
            return
        about = Card().describe()
        answers = dict(asked(Path(scratch)))
    if options.ncu:
        well = [name for name, answer in answers.items() if "faults" not in answer]
        for launch in profiled([sys.executable, __file__, "--work", *well], _METRICS, options.ncu, _NCU_S):
            if launch.kernel in answers:
                found = counted(launch, _METRICS)
                answers[launch.kernel]["counters"] = {name: count for name, count in found.items() if count}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    options.output.write_text(f'{{"about": {json.dumps(about)},\n"answers": {{\n{lines}\n}}}}\n')
    wrong = 0
    for name, answer in answers.items():
        if len(faults := answer.get("faults", {})) == 1:
            wrong += 1
            print(f"{name}: a fault of the {next(iter(faults))} alone: {next(iter(faults.values()))}")
        for part in ("data", "words"):
            told = answer.get(part)
            if told and told["differ"]:
                wrong += 1
                print(f"{name}, {part}: {told['differ']} of {told['of']} differ; {told['first'][:4]}")
    print(f"Wrote {options.output}: {len(answers)} launches, {wrong} of them came out otherwise")


if __name__ == "__main__":
    main()
