# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Tensor cores: the executor computes and counts what an H200 does, bit for bit and event for event.

The kernels stand in `tensor_cores/`, with the card's answers and counters, which
`benchmarks/tensor_core_answers.py` writes on a machine with a GPU.
"""

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from each import each
from executor_harness import compile_cuda

from gpuprof.executor import GlobalMemory, LaunchResult, launch, load_program
from gpuprof.executor.program.ptx import Reg
from gpuprof.executor.steps.coding import Coder
from gpuprof.toolchain.cuda_headers import find_cuda_headers

CORES = Path(__file__).parent / "tensor_cores"
sys.path.insert(0, str(CORES))

from tensor_corpus import POISON, cases, products, sources  # noqa: E402

pytestmark = pytest.mark.deep

ANSWERS = np.load(CORES / "answers-h200.npz")
COUNTED = json.loads((CORES / "counters-h200.json").read_text())["counters"]
#: What Nsight Compute calls what the executor counts.
TENSOR = {
    "hmma_instructions": "smsp__inst_executed_pipe_tensor_op_hmma.sum",
    "imma_instructions": "smsp__inst_executed_pipe_tensor_op_imma.sum",
    "dmma_instructions": "smsp__inst_executed_pipe_tensor_op_dmma.sum",
    "tensor_f16_operations": "sm__ops_path_tensor_src_fp16.sum",
    "tensor_bf16_operations": "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    "tensor_tf32_operations": "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
    "tensor_f64_operations": "sm__ops_path_tensor_src_fp64.sum",
    "tensor_i8_operations": "sm__ops_path_tensor_src_int8.sum",
}
SHARED = {
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_load_bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
GLOBAL = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_load_sectors": "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum",
}
MOVES = [name for name, case in cases().items() if case.file == "moves.cu"]
FRAGMENTS = [name for name, case in cases().items() if case.file == "wmma.cu"]


def only(ptx: str, kernel: str) -> str:
    """Return a PTX text with one of its kernels: a hundred are read slowly."""
    head, *entries = ptx.split(".visible .entry ")
    return head + ".visible .entry " + next(text for text in entries if text.startswith(f"{kernel}("))


@functools.cache
def executed(name: str) -> tuple[np.ndarray, LaunchResult]:
    """Run a case; return the bits of its output and what was counted."""
    case = cases()[name]
    options = ()
    if case.file == "wmma.cu":
        options = find_cuda_headers(13).options
        if not options:
            pytest.skip("needs CUDA's headers")
    memory = GlobalMemory()
    arrays = [np.full(case.count * 4, POISON, np.uint8)]
    arrays += [np.frombuffer(content, np.uint8) for content in case.inputs]
    buffers = [memory.allocate(array, f"array {i}") for i, array in enumerate(arrays)]
    program = load_program(only(compile_cuda(sources()[case.file], options), case.kernel), case.kernel)
    assert not program.unmodelled
    result = launch(program, case.grid, case.block, buffers, memory)
    return buffers[0].array().view(np.uint32), result


def counts(name: str, names: dict[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the executor and the card count of a case: what each has none of is left out."""
    ours, cards = executed(name)[1].counters, COUNTED[name]
    return (
        {ours_name: ours[ours_name] for ours_name in names if ours[ours_name]},
        {ours_name: cards[metric] for ours_name, metric in names.items() if metric in cards},
    )


def test_every_case_has_an_answer():
    assert set(ANSWERS) == set(COUNTED) == set(cases())


@each(name=cases())
def test_bits_are_the_cards(name):
    ours, card = executed(name)[0], ANSWERS[name]
    wrong = np.flatnonzero(ours != card)
    first = [(int(i), hex(ours[i]), hex(card[i])) for i in wrong[:4]]
    assert not wrong.size, f"{wrong.size} of {card.size} words differ: {first}"


@pytest.mark.parametrize("name", products())
def test_bits_are_the_same_however_registers_lie_in_memory(name, monkeypatch):
    target = Coder.target

    def moving_target(coder, operand, item):
        write = target(coder, operand, item)
        if not isinstance(operand, Reg):
            return write
        slot = coder.slots.register(operand.name, item.line)

        def moving(batch, value, mask):
            write(batch, value, mask)
            batch.registers[slot] = np.asfortranarray(batch.registers[slot])

        return moving

    monkeypatch.setattr(Coder, "target", moving_target)
    assert (executed.__wrapped__(name)[0] == ANSWERS[name]).all()


@each(name=cases())
def test_tensor_instructions_are_those_of_the_card(name):
    ours, card = counts(name, TENSOR)
    assert ours == card
    assert bool(ours) == (name not in MOVES)


@each(name=MOVES)
def test_moves_of_tiles_take_the_cards_wavefronts(name):
    ours, card = counts(name, SHARED)
    assert ours == card


@each(name=FRAGMENTS)
def test_fragments_move_by_the_cards_accesses(name):
    ours, card = counts(name, SHARED | GLOBAL)
    assert ours == card
