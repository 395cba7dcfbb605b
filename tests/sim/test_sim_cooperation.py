# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Blocks that wait for each other cannot be sampled."""

import pytest
from problem_support import Gemm, find_kernel

from gpuprof.backends.sim.backend import SimBackend
from gpuprof.devices.cards import load_card
from gpuprof.errors import CaseSkipped
from gpuprof.kernels.shape import configure
from gpuprof.toolchain.nvrtc import compile_source, compiler_options


def test_no_sample_of_blocks_that_wait_for_each_other():
    kernel, card = find_kernel("gemm", "streamk_8x16"), load_card("h200")
    problem = Gemm(1024, 1024, 1024)
    shape = configure(kernel, problem, kernel.launch.block, {}, card)
    assert shape.launches[0].cooperative
    options = compiler_options("sm_90", shape.defines, kernel.compile_options)
    compiled = compile_source(kernel.source, kernel.file_name, kernel.entry, options)
    with pytest.raises(CaseSkipped, match="blocks wait for each other"):
        SimBackend(card, seed=0).run(kernel, problem, shape, {kernel.entry: compiled})
