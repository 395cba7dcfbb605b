# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine what its tensor cores answer, and write that down for the executor's tests.

Usage: python benchmarks/tensor_core_answers.py [--ncu [PATH]] [--include FOLDER] [-o FOLDER]

Needs what card_answers.py needs, and the headers of a CUDA toolkit for the fragments of `wmma`. The kernels
and their operands stand in tests/executor/tensor_cores; the answers go there, bits in one file, descriptions
and Nsight Compute's counters in another.
"""

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

CORES = Path(__file__).parents[1] / "tests" / "executor" / "tensor_cores"
sys.path[:0] = [str(CORES), str(Path(__file__).parent)]

from asking import Card, compile_file, counted, profiled  # noqa: E402
from card_answers import ask as asked  # noqa: E402
from tensor_corpus import cases, sources  # noqa: E402

#: Longest that counting may take.
_NCU_S = 400
_METRICS = (
    "smsp__inst_executed_pipe_tensor.sum",
    "smsp__inst_executed_pipe_tensor_op_hmma.sum",
    "smsp__inst_executed_pipe_tensor_op_imma.sum",
    "smsp__inst_executed_pipe_tensor_op_dmma.sum",
    "sm__ops_path_tensor_src_fp16.sum",
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
    "sm__ops_path_tensor_src_fp64.sum",
    "sm__ops_path_tensor_src_int8.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "smsp__inst_executed_op_ldsm.sum",
    "smsp__inst_executed_op_shared_stsm.sum",
)


def ask(folder: Path) -> dict[str, np.ndarray]:
    """Launch every case once, and return the bits of its output."""
    card = Card()
    found = {}
    for name, case in cases().items():
        answer = asked(card, case, folder, 1)
        found[name] = np.frombuffer(bytes.fromhex(answer["out"]), dtype=np.uint32)
    return found


def main() -> None:
    """Compile, ask, count, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ncu", nargs="?", const="ncu", help="count one launch of each case")
    parser.add_argument("--include", default="/usr/local/cuda/include", help="where mma.h is")
    parser.add_argument("-o", "--output", type=Path, default=CORES, help="folder to write to")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        ask(options.work)
        return
    about = Card().describe()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(scratch)
        jobs = [
            pool.submit(compile_file, name, source, about["arch"], [f"-I{options.include}"])
            for name, source in sources().items()
        ]
        for file in (job.result() for job in jobs):
            if not file.cubin:
                sys.exit(f"{file.name} was refused:\n{file.log}")
            (folder / f"{file.name}.cubin").write_bytes(file.cubin)
        answers = ask(folder)
        counts: dict[str, dict[str, int]] = {}
        if options.ncu:
            asking = [sys.executable, __file__, "--work", scratch]
            for launch in profiled(asking, _METRICS, options.ncu, _NCU_S):
                if launch.kernel in cases():
                    found = counted(launch, _METRICS)
                    # What is not named was 0.
                    counts[launch.kernel] = {metric: int(count) for metric, count in found.items() if count}
    card = about["card"].removeprefix("NVIDIA ").replace(" ", "-").lower()
    np.savez_compressed(options.output / f"answers-{card}.npz", **answers)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(count)}" for name, count in counts.items())
    text = f'{{"about": {json.dumps(about)},\n"counters": {{\n{lines}\n}}}}\n'
    (options.output / f"counters-{card}.json").write_text(text)
    print(f"Wrote answers-{card}.npz and counters-{card}.json: {len(answers)} cases, {len(counts)} counted")


if __name__ == "__main__":
    main()
