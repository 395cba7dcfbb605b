# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters and factors at the ends of their ranges, and kernels on every element type."""

import pytest
from cuda_sources import kernel_file, write_kernel_file
from problem_support import Gemm, find_kernel, ladder, measured, measured_file, problem_for

from gpuprof.records import replace

pytestmark = pytest.mark.deep

#: M, N, K: multiples of no tile, and whole tiles only.
RAGGED, EVEN = (131, 67, 45), (128, 256, 64)
#: Kernel, parameters, and the block where it follows them; tune's tests try those that declare candidates.
ALLOWED = [
    ("smem_tiled_16", {"BS": 8}, (8, 8, 1)),
    ("smem_tiled_16", {"BS": 32}, (32, 32, 1)),
    ("float4_4x4", {"BS": 8}, (8, 8, 1)),
    ("float4_4x4", {"BS": 32}, (32, 32, 1)),
    ("col_smem", {"TILE": 16}, (16, 16, 1)),
    ("col_smem_1d", {"TILE": 16}, (256, 1, 1)),
    ("col_smem_noconflict", {"TILE": 16}, (256, 1, 1)),
    ("col_4x1", {"TILE": 16}, (64, 1, 1)),
    ("col_4x1_float4", {"TILE": 16}, (64, 1, 1)),
]
SQUARE = "has one thread for each element of a square tile"
LINE = f"{SQUARE}: TILE must be 16 or 32, and the block TILE*TILE threads"
OUTPUTS = "has one thread for 4x4 elements"
FOURS = "has one thread for four rows of a square tile: TILE must be 16 or 32, and the block TILE*TILE/4"
REGISTERS = "needs TN 8 or 16, and BK 8, 16 or, with TN=8, 32"
#: Kernel of a product, what its header rules out, and how the sentence goes on after the id.
REFUSED = [
    ("smem_tiled_16", {"BS": 8}, f"{SQUARE}: the block must be BS x BS"),
    ("float4_4x4", {"BS": 8}, f"{OUTPUTS} of a square tile: the block must be BS x BS"),
    ("float4_multi", {"BS": 32}, f"{OUTPUTS} of each tile: BS must be 8 or 16, and the block BS x BS"),
    ("col_smem", {"TILE": 16}, f"{SQUARE}: the block must be TILE x TILE"),
    ("col_smem_1d", {"TILE": -32}, LINE),
    ("col_smem_noconflict", {"TILE": 16}, LINE),
    ("col_4x1", {"TILE": -32}, f"{FOURS} threads"),
    ("col_4x1_float4", {"TILE": 16}, f"{FOURS} threads"),
    ("col_4x4", {"BK": 8}, "needs BK 16 or 32"),
    ("col_8x8", {"BK": 12}, "needs BK 8 or 16"),
    ("col_8x8_warp", {"BK": 32}, "needs BK 8 or 16"),
    ("col_8x8_prefetch", {"BK": 0}, "needs BK 8 or 16"),
    ("col_8x8_double", {"BK": 4}, "needs BK 8 or 16"),
    ("reg_8x8", {"BK": 12}, REGISTERS),
    ("reg_8x8", {"BK": 32, "TN": 16}, REGISTERS),
    ("dmma", {"STAGES": 2}, "three STAGES or more"),
    ("dmma", {"DEPTH": 16}, "two DEPTH or more"),
    ("dmma", {"DEPTH": 12}, "DEPTH 4, 8 or 16"),
    ("dmma", {"WN": 8}, "a multiple of 16 rows and 16 columns"),
    ("dmma", {"WN": 64}, "at most 2048"),
    ("dmma", {"BM": 64, "WM": 64, "WN": 64, "BN": 128, "PANEL": 0}, "at most 2048"),
    ("dmma", {"PANEL": 0}, "one tile row or more"),
    ("dmma", {"BM": 32, "BN": 128, "WM": 32, "WN": 64}, "copies whole rows by all threads"),
    *((name, {}, f"{name} is for ") for name in ("few_rows", "realigned")),
]
#: The same of others, at sizes that are large for them, with a block where that is ruled out.
REFUSED_LARGE = [
    ("reduce", "sequential", {"BLOCK": 96}, None, "BLOCK must be a power of two, 64 to 1024"),
    ("reduce", "interleaved", {"BLOCK": 64}, None, "too few for this many elements and this BLOCK"),
    ("reduce", "shuffles", {"BLOCK": 100}, None, "needs a BLOCK of whole warps"),
    ("reduce", "last_block", {"LOADS": 0}, None, "LOADS of at least 1"),
    ("softmax", "online", {}, (100, 1, 1), "a one-dimensional block of whole warps"),
    ("softmax", "block_row", {}, (32, 8, 1), "a one-dimensional block"),
    ("softmax", "registers", {"VECTORS": 1}, None, "room for 4 * VECTORS columns a thread"),
    ("softmax", "smem_row", {}, None, "which is too small for this many columns"),
    ("softmax", "warp_row", {}, None, "room for 128 * VECTORS columns"),
]


def label(name, params):
    return "-".join([name, *(f"{parameter}={value}" for parameter, value in params.items())])


def measure(name, params, block, *size):
    """Measure a kernel on the executor, with parameters and a block that replace its header's."""
    kernel = replace(find_kernel("gemm", name), any_block=True)
    return measured(kernel, problem_for(kernel, *size, alpha=-1.5, beta=0.75), block, params, assembled=True)


@pytest.mark.parametrize(("name", "params", "block"), ALLOWED, ids=[label(*case[:2]) for case in ALLOWED])
def test_other_parameters_give_the_same_product(name, params, block):
    values = ALLOWED.index((name, params, block))
    size = EVEN if values and ALLOWED[values - 1][0] == name else RAGGED
    measurement = measure(name, params, block, *size)
    assert measurement.outcome == "ok", measurement.reason
    assert measurement.verification.checked_elements == size[0] * size[1]
    assert measurement.params == {**find_kernel("gemm", name).parameters, **params}
    assert measurement.resources.spill_bytes == 0


@pytest.mark.parametrize(
    ("operation", "name", "params", "block", "sentence"),
    [*(("gemm", name, params, None, sentence) for name, params, sentence in REFUSED), *REFUSED_LARGE],
)
def test_what_the_header_rules_out_is_skipped_with_its_sentence(operation, name, params, block, sentence):
    kernel = find_kernel(operation, name)
    size = {"gemm": (64, 64, 64), "reduce": (2**24 + 1,), "softmax": (1, 60_000)}[operation]
    problem = problem_for(kernel, *size, dtype=kernel.dtypes[0] if name == "dmma" else "f32")
    measurement = measured(kernel, problem, block, params)
    assert measurement.outcome == "skipped"
    assert measurement.reason.startswith(f"{name} ")
    assert sentence in measurement.reason


def test_every_parameter_of_the_studies_is_tried_with_another_value():
    tried = {(name, parameter) for name, params, _ in ALLOWED for parameter in params}
    declared = {
        (kernel.id, parameter)
        for kernel in ladder("gemm")
        if kernel.study.name in ("B", "C", "D") and not kernel.candidates
        for parameter in kernel.parameters
    }
    assert declared <= tried


F32 = [1e-45, 1e-42, 1e-38, 3e38, -3.4e38]
F64 = [5e-324, 1e-310, 1.7e308, -1.7e308]


@pytest.mark.parametrize(
    ("kernel", "dtype", "alpha"),
    [
        *(("naive", "f32", alpha) for alpha in F32),
        *(("naive", "f64", alpha) for alpha in F64),
        *(("splitk_8x32", "f32", alpha) for alpha in F32),
    ],
)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_right_kernel_stays_right(kernel, dtype, alpha, beta):
    measurement = measured(find_kernel("gemm", kernel), Gemm(40, 36, 48, dtype, "row", alpha, beta))
    assert measurement.outcome == "ok", measurement.reason


@pytest.mark.parametrize("alpha", [1e-38, 3e38])
def test_wrong_kernel_stays_wrong(alpha):
    source = find_kernel("gemm", "naive").source.replace("alpha *", "-alpha *")
    assert "-alpha *" in source
    negated = replace(find_kernel("gemm", "naive"), id="negated", source=source)
    assert measured(negated, Gemm(40, 36, 48, alpha=alpha)).outcome == "incorrect"


#: Two elements a thread; `{two}` is the packed type and `{pair}` makes one of a number.
AXPY_PAIRS = """extern "C" __global__ void axpy(int n, real a, const real *x, real *y)
{{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i + 1 < n)
        (({two} *)y)[i] = __hfma2({pair}(a), ((const {two} *)x)[i], (({two} *)y)[i]);
    else if (2 * i < n)
        y[2 * i] = __hfma(a, x[2 * i], y[2 * i]);
}}
"""
PAIRS = {"f16": ("__half2", "__half2half2"), "bf16": ("__nv_bfloat162", "__bfloat162bfloat162")}


def of_file(folder, name, *change, dtype=None, sizes=""):
    return measured_file(write_kernel_file(folder, name, *change), sizes, dtype)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_one_source_serves_every_type(tmp_path, dtype):
    case = of_file(tmp_path, "axpy", dtype=dtype)
    assert case.outcome == "ok", case.reason
    assert case.verification.max_rel_error > 0


@pytest.mark.parametrize("dtype", PAIRS)
def test_packed_arithmetic(tmp_path, dtype):
    two, pair = PAIRS[dtype]
    whole = kernel_file("axpy")
    code = whole[whole.index('extern "C"') :]
    case = of_file(tmp_path, "axpy", code, AXPY_PAIRS.format(two=two, pair=pair), dtype=dtype, sizes="999")
    assert case.outcome == "ok", case.reason


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_in_a_wider_type_are_held_to_its_rounding(tmp_path, dtype):
    case = of_file(tmp_path, "stencil", dtype=dtype)
    assert case.outcome == "ok", case.reason
    # Of what is allowed, most is the one rounding to the output's type.
    assert case.verification.bound == 8 * 2.0**-24
    # A kernel that keeps its sums in halves is off by more than that.
    in_halves = (";\n    sum +=", ";\n    sum = float(real(sum));\n    sum +=")
    narrow = of_file(tmp_path, "stencil", *in_halves, dtype=dtype)
    assert narrow.outcome == "incorrect"


def test_arrays_of_types_of_their_own(tmp_path):
    case = of_file(tmp_path, "quantize")
    assert case.outcome == "ok", case.reason
    assert case.verification.checked_elements == 3 * 700


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ("^ 255;", "^ 127;", "bits"),
        ("(127, __float2int_rn", "(126, __float2int_rn", "q"),
        ("<< 40)", "<< 40) + 2", "kept"),
    ],
)
def test_a_wrong_integer_is_told_in_full(tmp_path, old, new, output):
    case = of_file(tmp_path, "quantize", old, new)
    assert case.outcome == "incorrect"
    assert f"{output}[" in case.reason
