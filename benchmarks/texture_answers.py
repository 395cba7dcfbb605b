# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine what its textures give, and write that down for the executor's tests.

Usage: python benchmarks/texture_answers.py [--ncu [PATH]] [-o FOLDER]

Needs what card_answers.py needs. The kernels and what they read stand in tests/executor/textures; the answers
go there, bits in one file, descriptions and Nsight Compute's counters in another. Cases whose name starts
with `probe` ask what CUDA's documentation leaves open: their bits are what a rule has to give.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

TEXTURES = Path(__file__).parents[1] / "tests" / "executor" / "textures"
sys.path[:0] = [str(TEXTURES), str(Path(__file__).parent)]

from asking import Card, compile_file, counted, profiled  # noqa: E402
from on_card import ask  # noqa: E402
from texture_corpus import SOURCE, cases  # noqa: E402

from gpuprof.backends.gpu.context import GpuContext, LoadedModule  # noqa: E402
from gpuprof.errors import CaseFailure  # noqa: E402

#: Longest that counting may take.
_NCU_S = 300
_METRICS = (
    "smsp__inst_executed_op_texture.sum",
    "smsp__inst_executed_op_surface_ld.sum",
    "smsp__inst_executed_op_surface_st.sum",
    "smsp__inst_executed_op_surface_red.sum",
    "smsp__inst_executed_op_surface_atom.sum",
    "smsp__inst_executed_pipe_tex.sum",
    "l1tex__t_requests_pipe_tex.sum",
    "l1tex__t_requests_pipe_tex_mem_texture.sum",
    "l1tex__t_requests_pipe_tex_mem_surface.sum",
    "l1tex__t_requests_pipe_tex_mem_surface_op_ld.sum",
    "l1tex__t_requests_pipe_tex_mem_surface_op_st.sum",
    "l1tex__t_sectors_pipe_tex_mem_texture.sum",
    "l1tex__t_sectors_pipe_tex_mem_surface_op_ld.sum",
    "l1tex__t_sectors_pipe_tex_mem_surface_op_st.sum",
    "l1tex__texin_requests.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
)


def answers(cubin: bytes, names: list[str]) -> dict[str, Any]:
    """Launch every case once.

    Returns:
        By case and array, what it holds; for a case that the card refused, the driver's sentence.
    """
    context = GpuContext(0)
    module = LoadedModule(cubin, "textures")
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = ask(context, module, cases()[name])
        except CaseFailure as failure:
            found[name] = str(failure)
            if failure.fatal:
                print(f"{name} spoilt the context: {failure}", file=sys.stderr)
                break
    return found


def counters(cubin: Path, ncu: str) -> dict[str, dict[str, int]]:
    """Return what Nsight Compute counts of one launch of each case that is worth it; 0 is left out."""
    names = {case.kernel: name for name, case in cases().items() if case.counted}
    command = [sys.executable, __file__, "--work", str(cubin), *names.values()]
    return {
        names[launch.kernel]: {
            metric: int(count) for metric, count in counted(launch, _METRICS).items() if count
        }
        for launch in profiled(command, _METRICS, ncu, _NCU_S)
        if launch.kernel in names
    }


def main() -> None:
    """Compile, ask, count, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ncu", nargs="?", const="ncu", help="count one launch of some cases")
    parser.add_argument("-o", "--output", type=Path, default=TEXTURES, help="folder to write to")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        cubin, *names = options.work
        answers(Path(cubin).read_bytes(), names)
        return
    about = Card().describe()
    compiled = compile_file("textures.cu", SOURCE, about["arch"])
    if not compiled.cubin:
        sys.exit(f"textures.cu was refused:\n{compiled.log}")
    found = answers(compiled.cubin, list(cases()))
    refused = {name: told for name, told in found.items() if isinstance(told, str)}
    arrays = {
        f"{name}/{array}": content
        for name, told in found.items()
        if name not in refused
        for array, content in told.items()
    }
    counts: dict[str, dict[str, int]] = {}
    if options.ncu:
        with tempfile.TemporaryDirectory() as scratch:
            cubin = Path(scratch, "textures.cubin")
            cubin.write_bytes(compiled.cubin)
            counts = counters(cubin, options.ncu)
    card = about["card"].removeprefix("NVIDIA ").replace(" ", "-").lower()
    np.savez_compressed(options.output / f"answers-{card}.npz", **arrays)
    told = {"about": about, "refused": refused, "counters": counts}
    (options.output / f"counters-{card}.json").write_text(json.dumps(told, indent=1) + "\n")
    print(f"Wrote answers-{card}.npz and counters-{card}.json:", end=" ")
    print(f"{len(found) - len(refused)} cases, {len(refused)} refused, {len(counts)} counted")


if __name__ == "__main__":
    main()
