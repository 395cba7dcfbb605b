# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Runs of float32 arithmetic by machine code: what they compute, and what may run before and after them."""

import numpy as np
import pytest
from executor_harness import compile_cuda, run_cuda

from gpuprof.executor import GlobalMemory, launch, load_program
from gpuprof.executor.arithmetic import exact
from gpuprof.executor.arithmetic.float_player import player
from gpuprof.executor.arithmetic.float_runs import Tape
from gpuprof.executor.steps import fusion

pytestmark = pytest.mark.skipif(player() is None, reason="llvmlite or the CPU instruction is missing")

SHAPES = [(3, 2, 32), (1, 2, 32), (3, 1, 32), (3, 2, 1), (1, 1, 32), (1, 1, 1)]
PORTABLE = {"fma": exact.fma32, "add": np.add, "sub": np.subtract, "mul": np.multiply}


def random_source(rng, shape):
    """An array of that shape: contiguous, or one element of vectors, or a broadcast view."""
    layout = rng.integers(3)
    if layout == 0:
        return rng.standard_normal(shape, dtype=np.float32)
    if layout == 1:
        return rng.standard_normal((*shape, 4), dtype=np.float32)[..., int(rng.integers(4))]
    return np.broadcast_to(rng.standard_normal((1, 1, shape[2]), dtype=np.float32), shape)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint32)


@pytest.mark.parametrize("seed", range(40))
def test_a_tape_computes_what_its_instructions_do(seed):
    rng = np.random.default_rng(seed)
    tape, sources, values = Tape(), [], []
    for _ in range(int(rng.integers(1, 6))):
        sources.append(random_source(rng, SHAPES[rng.integers(len(SHAPES))]))
        values.append((tape.source(), sources[-1]))
    for _ in range(int(rng.integers(1, 60))):
        name = list(PORTABLE)[rng.integers(4)]
        chosen = [values[i] for i in rng.integers(0, len(values), 3 if name == "fma" else 2)]
        number = tape.compute(name, [number for number, _ in chosen])
        with np.errstate(all="ignore"):
            values.append((number, PORTABLE[name](*(value for _, value in chosen))))
    wanted = [values[i] for i in rng.integers(0, len(values), 5)]
    for number, _ in wanted:
        tape.target(number)
    got = tape.compiled().play(player(), sources)
    for result, (_, value) in zip(got, wanted, strict=True):
        assert result.shape == value.shape
        nan = np.isnan(value)
        np.testing.assert_array_equal(bits(result)[~nan], bits(value)[~nan])
        assert np.isnan(result[nan]).all()


def test_a_nan_that_is_computed_is_that_of_the_gpu_and_one_that_is_moved_keeps_its_bits():
    given = np.full((1, 1, 32), 0xFFC01234, np.uint32).view(np.float32)
    tape = Tape()
    nan = tape.source()
    tape.target(tape.compute("mul", [nan, nan]))
    tape.target(nan)
    computed, moved = tape.compiled().play(player(), [given])
    assert (bits(computed) == 0x7FFFFFFF).all()
    assert (bits(moved) == 0xFFC01234).all()


def test_rows_are_used_again():
    tape = Tape()
    total = tape.source()
    for _ in range(100):
        total = tape.compute("add", [total, tape.source()])
    tape.target(total)
    compiled = tape.compiled()
    assert compiled.rows <= 3
    (result,) = compiled.play(player(), [np.full((1, 1, 32), i, np.float32) for i in range(101)])
    assert (result == 5050).all()


def test_what_nobody_asks_for_is_not_computed():
    tape = Tape()
    one, other = tape.source(), tape.source()
    tape.compute("mul", [one, other])
    tape.target(tape.compute("add", [one, one]))
    assert len(tape.compiled().words) == 3


INTERLEAVED = """extern "C" __global__ void k(float *x, float *out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    float a = x[t], b = x[t + 32], c = 0.5f;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        c = c * a + b;
        s[t] = c;             // stores between the sums, of values that they make
        __syncwarp();
        b = s[t ^ 1] + a * c; // and loads whose values they take
        __syncwarp();
        if (i == n)           // and a branch that parts the lanes
            if (t % 3 == 0)
                a = b * c - a;
        a = a - b;
    }
    out[t] = a;
    out[t + 32] = b * c + a;
}"""


def test_loads_stores_and_branches_between_sums_see_them_in_order(monkeypatch):
    x = np.random.default_rng(1).uniform(-0.5, 0.5, 64).astype(np.float32)
    results = []
    for machine in (player(), None):
        monkeypatch.setattr(fusion, "player", lambda machine=machine: machine)
        buffers, result = run_cuda(INTERLEAVED, x, np.zeros(64, np.float32), scalars=(3,))
        results.append((bits(buffers[1].array()), result.counters, result.lines))
    assert np.isfinite(results[0][0].view(np.float32)).all()
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1:] == results[1][1:]


def test_a_register_written_twice_in_a_run_has_the_last_value():
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .f32 %f<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    mov.f32 %f1, 0f40000000;
    add.f32 %f2, %f1, %f1;
    mov.f32 %f1, %f2;
    fma.rn.f32 %f2, %f1, %f1, %f2;
    mul.f32 %f3, %f2, %f1;
    mov.f32 %f2, %f1;
    st.global.v2.f32 [%rd1], {%f3, %f2};
    ret;
}"""
    memory = GlobalMemory()
    out = memory.allocate(np.zeros(2, np.float32), "out")
    launch(load_program(ptx, "k"), (1, 1, 1), (1, 1, 1), [out], memory)
    assert out.array().tolist() == [80.0, 4.0]


def test_a_program_whose_sums_all_run_together_has_one_step_for_them():
    source = """extern "C" __global__ void k(float *x) {
    float v = x[threadIdx.x];
#pragma unroll
    for (int i = 0; i < 50; ++i) v = v * v + 1.25f;
    x[threadIdx.x] = v;
}"""
    program = load_program(compile_cuda(source)[0], "k")
    assert max(len(block.steps) for block in program.blocks) < 20
