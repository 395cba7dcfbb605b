# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a program asks of functions of Triton, with a stand-in for its compiler: NVRTC, called as Triton is.

tests/sim/test_sim_triton.py has the same with Triton itself.
"""

import faulthandler
import os
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from compile_support import compile_source

import gpuprof
from gpuprof.api.calling import GivenCall
from gpuprof.api.triton_kernels import triton_request
from gpuprof.options import RunOptions
from gpuprof.toolchain.function_compilers import JitCall, compile_calls
from gpuprof.toolchain.nvrtc import compiler_options

#: `scale` is a constant where it is 1, as Triton has it; two hidden pointers follow, the first of scratch.
SOURCE = """extern "C" __global__ void scaled(
    float *out, const float *x, int n, {scale} char *scratch, char *profile) {{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    scratch[blockIdx.x] = 1;
    for (; i < min(n, (blockIdx.x + 1) * BLOCK); i += blockDim.x)
        out[i] = {value} * x[i] + (profile != nullptr);
}}
"""
X = np.arange(1000, dtype=np.float32)


class JITFunction:
    """What is asked of Triton's own."""

    __module__ = "triton.runtime.jit"

    def __init__(self, fn, *constants):
        self.fn = fn
        names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        defaults = dict(zip(reversed(names), reversed(fn.__defaults__ or ()), strict=False))
        self.params = [
            SimpleNamespace(
                name=name,
                is_constexpr=name in constants,
                has_default=name in defaults,
                default=defaults.get(name),
            )
            for name in names
        ]
        self.device_caches = {}
        self.src = "def scaled(): ..."

    def warmup(self, out, x, n, scale, BLOCK, grid, num_warps=4, num_ctas=1):
        if BLOCK == 13:
            raise ValueError("at 2:8:\ndef scaled(…):\n    BLOCK\n    ^\nBLOCK must be even")
        if BLOCK == 14:
            faulthandler.disable()  # nobody is to read of it in the output of tests
            os.abort()
        assert (out.dtype, x.dtype) == ("float32", "float32")
        constant = scale == 1
        source = SOURCE.format(scale="" if constant else "float scale,", value="1" if constant else "scale")
        made = compile_source(source, "k.cu", "scaled", compiler_options("sm_90", [("BLOCK", str(BLOCK))]))
        signature = {"out": "*fp32", "x": "*fp32", "n": "i32", "scale": "fp32", "BLOCK": "constexpr"}
        return SimpleNamespace(
            asm={"ptx": made.ptx, "cubin": made.cubin},
            src=SimpleNamespace(signature={**signature, "scale": "constexpr" if constant else "fp32"}),
            metadata=SimpleNamespace(
                **{"name": "scaled", "num_warps": num_warps, "num_ctas": num_ctas, "shared": 0},
                **{"global_scratch_size": 1, "profile_scratch_size": 0},
            ),
        )


class Tuned:
    """An autotuner, or heuristics, around a function."""

    __module__ = "triton.runtime.autotuner"

    def __init__(self, fn, **held):
        self.fn = fn
        self.__dict__.update(held)


class OwnTuner(Tuned):
    """One that a library derives from Triton's."""

    __module__ = "library.tuning"


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    target = ModuleType("triton.backends.compiler")
    target.GPUTarget = lambda *about: about
    driver = ModuleType("triton.runtime.driver")
    driver.driver = SimpleNamespace(set_active=lambda active: None)
    for module in (*map(ModuleType, ("triton", "triton.backends", "triton.runtime")), target, driver):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def scaled(out, x, n, scale, BLOCK):
    """The body is Triton's affair."""


FUNCTION = JITFunction(scaled, "BLOCK")


def by_block(meta):
    return (-(-meta["n"] // meta["BLOCK"]),)


def profiled(function=FUNCTION, scale=2.0, **given):
    how = {"constexprs": {"BLOCK": 256}, "grid": by_block, "device": "sim:h200", **given}
    args = {"out": None, "x": X, "n": 1000, "scale": scale, **how.pop("more", {})}
    return gpuprof.profile(function, args=args, expect={"out": scale * X}, **how)


def test_each_configuration_is_a_case_and_heuristics_add_to_it():
    configs = [
        SimpleNamespace(all_kwargs=lambda warps=warps: {"num_warps": warps, "num_stages": 3})
        for warps in (1, 2)
    ]
    heuristics = Tuned(FUNCTION, values={"BLOCK": lambda args: 32 * args["num_warps"]})
    without_stages = JITFunction.warmup

    def warmup(self, *args, num_stages, **given):
        assert num_stages == 3
        return without_stages(self, *args, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "warmup", warmup)
        run = profiled(OwnTuner(heuristics, configs=configs), constexprs={})
    found = [(case.ok, case.block[0], case.params["BLOCK"], case.grid[0]) for case in run.cases]
    assert found == [(True, 32, 32, 32), (True, 64, 64, 16)]


def test_a_grid_may_ask_for_what_a_function_says_itself():
    def scaled(out, x, n, scale=3.0, BLOCK=128):
        """As `kernel[grid]` calls a grid: with the values of all parameters."""

    call = {"args": {"out": None, "x": X, "n": 1000}, "expect": {"out": 3 * X}, "device": "sim:h200"}
    (case,) = gpuprof.profile(JITFunction(scaled, "BLOCK"), grid=by_block, **call).cases
    assert (case.outcome, case.grid[0], case.params["BLOCK"]) == ("ok", 8, 128)


def test_a_program_may_be_several_blocks():
    config = SimpleNamespace(all_kwargs=lambda: {"BLOCK": 128, "num_ctas": 2})
    (case,) = profiled(Tuned(FUNCTION, configs=[config]), constexprs={}).cases
    assert (case.outcome, case.grid) == ("ok", (16, 1, 1))


def test_an_option_may_be_a_parameter_too():
    def scaled(out, x, n, scale, BLOCK, num_warps):
        """As `num_stages` is in the softmax of Triton's tutorials."""

    for given in ({"constexprs": {"BLOCK": 256, "num_warps": 2}}, {"num_warps": 2}):
        run = profiled(JITFunction(scaled, "BLOCK", "num_warps"), **given)
        assert [(case.ok, case.block[0], case.params["num_warps"]) for case in run.cases] == [(True, 64, 2)]


@pytest.mark.parametrize(
    ("block", "told"), [(13, "BLOCK must be even"), (14, "Triton's process ended with status -6")]
)
def test_what_is_not_compiled_is_a_row_and_the_others_run(block, told):
    configs = [SimpleNamespace(all_kwargs=lambda size=size: {"BLOCK": size}) for size in (block, 128)]
    first, second = profiled(Tuned(FUNCTION, configs=configs), constexprs={}).record.cases
    assert (first.outcome, second.outcome) == ("failed", "ok")
    assert told in first.reason


def test_why_what_it_calls_is_not_compiled_is_told():
    def warmup(self, **given):
        raise ValueError("at 2:8:\n    smallest(x)\n    ^") from ValueError(
            "at 3:4:\n    x.bits\n    ^\nno bits"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "warmup", warmup)
        (case,) = profiled().cases
    assert case.reason.endswith(": no bits.")


def test_what_its_ptxas_refuses_is_told_without_the_command_that_would_show_it():
    def warmup(self, **given):
        raise RuntimeError(
            "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
            "ptxas-new /tmp/a.ptx, line 9; error   : Modifiers '.a' and '.b' exclude each other\n"
            "ptxas-new fatal   : Ptx assembly aborted due to errors\n\nRepro command: ptxas-new /tmp/a.ptx\n"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "warmup", warmup)
        (case,) = profiled().cases
    assert case.reason.endswith(": its ptxas refuses the PTX: Modifiers '.a' and '.b' exclude each other.")


def test_an_output_that_is_to_be_made_is_there_for_heuristics_and_grids():
    heuristics = Tuned(FUNCTION, values={"BLOCK": lambda args: 256 if args["out"] is not None else 13})
    (case,) = profiled(
        heuristics, constexprs={}, grid=lambda meta: -(-meta["out"].size // meta["BLOCK"])
    ).cases
    assert (case.outcome, case.params["BLOCK"], case.grid[0]) == ("ok", 256, 4)


class TensorDescriptor:
    """What is asked of Triton's own."""

    padding = "zero"

    def __init__(self, base):
        self.base, self.shape, self.strides, self.block_shape = base, [20, 30], [32, 1], [1, 1]


HELD = {"block_size": [8, 16], "swizzle": 2, "fp4_padded": False}
EXTENTS = ("20", "30", "32", "1")


@pytest.mark.parametrize(
    ("held", "taken", "error"),
    [
        # Where there is no copy engine: what it is made of, and whether it fills with NaN and rounds.
        (None, ("x", *EXTENTS, "0", "0", *EXTENTS, "n"), ""),
        ([HELD], ("x", *EXTENTS, "n"), ""),
        ([{**HELD, "fp4_padded": True}], (), "FP4"),
    ],
)
def test_a_descriptor_of_the_host_is_a_tensor_map_or_its_parts(held, taken, error, tmp_path):
    def scaled(x, n):
        """A configuration's hook says its box."""

    def warmup(self, x, n, grid, num_warps):
        assert (x.block_shape, x.base.dtype) == ([num_warps, 16], "float32")
        scratch = {"global_scratch_size": None, "profile_scratch_size": None}
        metadata = {"name": "scaled", "num_warps": num_warps, "shared": 0, "tensordesc_meta": held, **scratch}
        signature = {"x": "tensordesc<fp32[8,16]>", "n": "i32"}
        made = SimpleNamespace(src=SimpleNamespace(signature=signature), metadata=SimpleNamespace(**metadata))
        made.asm = {"ptx": "", "cubin": b""}
        return made

    def hook(nargs):
        nargs["x"].block_shape = [nargs["num_warps"], 16]

    config = SimpleNamespace(all_kwargs=lambda: {"num_warps": 8}, pre_hook=hook)
    described = TensorDescriptor(np.zeros((20, 32), np.float32))
    given = GivenCall({"x": described, "n": 20}, {"x": described.base}, {}, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "warmup", warmup)
        tuned = Tuned(JITFunction(scaled), configs=[config])
        (kernel,) = triton_request([tuned], 1, given, RunOptions(device="sim:h200")).kernels
    assert (kernel.launches[0].arguments, described.block_shape) == (taken, [1, 1])
    assert error in kernel.built.error
    assert bool(error) == bool(kernel.built.error)
    lists = {"box": ("16", "8"), "extents": ("30", "20"), "strides": ("32",)}
    for name, of in kernel.tensor_maps.items():
        assert (name, of.arrays, of.swizzle_bytes, of.fill) == ("x", ("x",), 64, "zero")
        assert of.lists == lists | dict.fromkeys(("steps", "start", "l2_promotion_bytes"), ())
    assert len(kernel.tensor_maps) == (held == [HELD])


def test_a_compiler_that_does_not_end_is_ended():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JITFunction, "warmup", lambda self, **given: __import__("time").sleep(60))
        (code,) = compile_calls([JitCall(FUNCTION, {}, {})], "sm_90", 0.2, 1)
    assert "took longer" in code.error


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"more": {"nn": 3}}, "no argument 'nn'"),
        ({"block": 3}, "block does not go with"),
        ({"grid": None}, "has no launch"),
        ({"constexprs": {}}, "given no BLOCK. Name it in constexprs"),
        ({"grid": "m"}, "unknown name 'm'"),
        ({"grid": "x"}, "grid has no value"),
        ({"grid": lambda meta: meta["m"]}, r"grid raises KeyError: 'm'\. It is given out, x, n, "),
        ({"params": {"BLOCK": 3}}, "params does not go with"),
        ({"scale": np.float64(2)}, "out is expected in float64, and no array in args is"),
    ],
)
def test_what_does_not_fit_is_refused(given, told):
    with pytest.raises(gpuprof.InputError, match=told):
        profiled(**given)


def test_what_its_configurations_say_is_not_said_twice():
    config = SimpleNamespace(all_kwargs=lambda: {"BLOCK": 128})
    with pytest.raises(gpuprof.InputError, match="BLOCK of scaled is in its configurations already"):
        profiled(Tuned(FUNCTION, configs=[config]))


def test_functions_are_not_searched_and_their_words_are_for_them_alone():
    with pytest.raises(gpuprof.InputError, match="is not searched"):
        gpuprof.tune(FUNCTION)
    with pytest.raises(gpuprof.InputError, match="num_warps does not go with"):
        gpuprof.profile("gemm", num_warps=4)
