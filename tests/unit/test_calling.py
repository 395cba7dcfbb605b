# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels without a header, called from Python with arrays, or of a declared operation; on the executor."""

import os
import shutil
import sys
import tempfile
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
import unit_support
from each import each
from page_reader import expanded

import gpuprof

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("unread")]

AXPY = """
extern "C" __global__ void axpy(int n, float a, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
#: Every thread sums STEP elements.
SUMS = """
__device__ double unused;
extern "C" __global__ void sums(const double *x, int n, double *partial)
{
    extern __shared__ double kept[];
    const int begin = (blockIdx.x * blockDim.x + threadIdx.x) * STEP;
    kept[threadIdx.x] = 0;
    for (int i = begin; i < begin + STEP && i < n; ++i)
        kept[threadIdx.x] += x[i];
    if (begin < n)
        partial[begin / STEP] = kept[threadIdx.x];
}
"""
X = np.arange(1000, dtype=np.float32)


def axpy(**changed):
    given = {
        "what": gpuprof.Source(AXPY, "axpy"),
        "args": {"n": 1000, "a": 2.0, "x": X, "y": np.ones(1000, np.float32)},
        "expect": {"y": lambda values: values["a"] * values["x"] + values["y"]},
        "grid": "cdiv(n, block_x)",
        "block": 128,
        "device": "sim:h200",
        **changed,
    }
    return gpuprof.profile(**given)


def test_kernels_of_cupy_are_texts_with_its_options_and_headers(tmp_path, monkeypatch):
    cupy = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    headers = tmp_path / "_core" / "include" / "cupy"
    headers.mkdir(parents=True)
    (headers / "by.cuh").write_text("#define TWICE(x) (2 * (x))\n")
    kind = type("RawKernel", (), {"__module__": "cupy._core.raw"})
    raw = kind()
    raw.code = """#include <cupy/by.cuh>
        template <class T> __global__ void scale(T *y, const T *x, int n) {
            if (threadIdx.x < n) y[threadIdx.x] = TWICE(x[threadIdx.x]) + PLUS + MORE; }"""
    raw.name, raw.options = "scale<float>", ("-DPLUS=3", "--std=c++17")
    call = {"args": {"y": None, "x": X[:64], "n": 64}, "grid": 1, "block": 64, "device": "sim:h200"}
    call |= {"compile_options": ["-DMORE=1"], "expect": {"y": 2 * X[:64] + 4}}
    assert gpuprof.profile(raw, **call).case().outcome == "ok"
    other = kind()
    other.code, other.name, other.options = raw.code, "scale<float>", ()
    for several in ([raw, other], [raw, "scale.cu"]):
        with pytest.raises(gpuprof.InputError, match="of several kinds"):
            gpuprof.profile(several, **call)


@pytest.mark.parametrize(("y", "other", "outcome"), [([None, None], 1, "ok"), (None, 0, "incorrect")])
def test_a_list_of_arrays_is_an_array_of_their_addresses(y, other, outcome):
    code = """__global__ void twice(float *const *y, const float *const *x, int n) {
        y[blockIdx.x][threadIdx.x] = 2 * x[blockIdx.x ? OTHER : 0][threadIdx.x]; }"""
    parts = [X[:64], X[100:164]]
    run = gpuprof.profile(
        gpuprof.Source(code.replace("OTHER", str(other)), "twice"),
        args={"y": y, "x": parts, "n": 64},
        expect={"y": [2 * part for part in parts]},
        grid=2,
        block="n",
        device="sim:h200",
    )
    assert run.case().outcome == outcome
    with pytest.raises(gpuprof.InputError, match="y is a list of 2 arrays"):
        axpy(args={"n": 1000, "a": 2.0, "x": X, "y": [X, X]}, expect={"y": X})


@pytest.mark.parametrize("kind", ["__half", "__nv_bfloat16", "float"])
def test_a_number_of_16_bits_is_taken_as_one(kind):
    a = ml_dtypes.bfloat16(2.5) if "bf" in kind else np.float16(2.5)
    code = f"""#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void scaled(const float *x, {kind} a, float *y) {{
        y[threadIdx.x] = (float)a * x[threadIdx.x]; }}"""
    case = gpuprof.profile(
        gpuprof.Source(code, "scaled"),
        args={"x": X[:64], "a": a, "y": None},
        expect={"y": X[:64] * np.float32(2.5)},
        grid=1,
        block=64,
        device="sim:h200",
    ).case()
    assert case.outcome == "ok", case.reason


def test_zero_is_a_null_pointer_and_an_array_of_another_type_is_told_how_to_fit():
    code = """template <typename T> __global__ void scaled(const T *x, const T *bias, T *y) {
        int i = threadIdx.x;
        y[i] = 2 * x[i] + (bias ? bias[i] : 0); }"""
    call = {"args": {"x": X[:64], "bias": 0, "y": None}, "grid": 1, "block": 64, "device": "sim:h200"}
    source, values = gpuprof.Source(code, "scaled<float>"), 2.0 * X[:64]
    assert gpuprof.profile(source, expect={"y": values}, **call).case().outcome == "ok"
    case = gpuprof.profile(source, expect={"y": values.astype(np.float64)}, **call).case()
    assert "or expect, arrays of what it takes: y of float32" in case.reason
    call["args"]["bias"] = 1
    assert (
        "a pointer, and bias is a number"
        in gpuprof.profile(source, expect={"y": values}, **call).case().reason
    )


def test_arguments_say_what_a_kernel_takes_as_a_header_does():
    code = """struct Row { const float *x; int n; };
    __global__ void doubled(Row row, float *y, float two) {
        if (threadIdx.x < row.n)
            y[threadIdx.x] = two * row.x[threadIdx.x]; }"""
    call = {
        "args": {"x": X[:64], "y": None, "n": 50},
        "expect": {"y": 2 * X[4:54]},
        "grid": 1,
        "block": 64,
        "device": "sim:h200",
    }
    source = gpuprof.Source(code, "doubled")
    case = gpuprof.profile(source, **call, arguments=["{x + 4, n}", "y", "2"]).case()
    assert case.outcome == "ok", case.reason
    for wrong, told in {
        "{x, m}": "has no argument 'm'",
        "{x, 2 +}": r"argument '2 \+' cannot be used",
    }.items():
        with pytest.raises(gpuprof.InputError, match=told):
            gpuprof.profile(source, **call, arguments=[wrong, "y", "2"])


@pytest.mark.parametrize(
    ("kind", "scalars", "given", "words"),
    [
        ("float ", {"a": 1e300}, "a", "a 4-byte float, and a is a number of type double"),
        ("float ", {}, "1" + "0" * 46, "0 is more than 4 bytes of it hold"),
        ("float *", {}, "7", "a pointer, and 7 is a number"),
    ],
)
def test_a_number_that_a_parameter_does_not_hold_is_refused(kind, scalars, given, words):
    run = gpuprof.profile(
        gpuprof.Source(f"__global__ void set(float *y, {kind}a) {{ y[threadIdx.x] = (size_t)a; }}", "set"),
        args={"y": None, **scalars},
        expect={"y": X[:32]},
        arguments=["y", given],
        grid=1,
        block=32,
        device="sim:h200",
    )
    assert words in run.case().reason


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where arrays lie while they are measured."""
    place = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        yield place


@pytest.fixture(scope="module")
def run(folder):
    return axpy(block=[128, (256, 1)], flops="2 * n")


def test_a_call_is_proved_and_counted_with_each_block(run, folder):
    assert [(case.kernel, case.size, case.block, case.grid, case.ok) for case in run.cases] == [
        ("axpy", "1000", (128, 1, 1), (8, 1, 1), True),
        ("axpy", "1000", (256, 1, 1), (4, 1, 1), True),
    ]
    case = run.cases[0]
    # 32 requests for 1000 floats, of x and of y.
    assert case.counters.global_load_requests == 64
    assert case.sizes == {"n": 1000}
    assert case.record.problem.scalars == {"a": 2.0}
    assert (case.record.problem.flops, case.record.problem.min_bytes) == (2000, 8000)
    assert list(folder.iterdir()) == []


def test_a_saved_call_is_rendered_like_any_other(run, tmp_path):
    path = run.save(tmp_path / "call.json")
    assert gpuprof.load(path).record == run.record
    assert "given sha256:" in path.read_text()
    process = unit_support.gpuprof("report", path.name, "-o", "again.html", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("axpy f32 as on NVIDIA H200")
    assert "blockIdx" in expanded((tmp_path / "again.html").read_text(encoding="utf-8"))


def test_a_wrong_result_is_a_row_with_the_element():
    case = axpy(expect={"y": X}).cases[0]
    assert (case.outcome, case.ok) == ("incorrect", False)
    assert "y[0] is 1, expected 0" in case.reason


def test_what_a_later_launch_alone_shows_is_explained():
    code = """__device__ int runs;
    __global__ void once(const float *x, float *y) {
        y[threadIdx.x] = runs ? 0 : x[threadIdx.x];
        __syncthreads();
        runs = 1; }"""
    call = {"args": {"x": X[1:65], "y": None}, "expect": {"y": X[1:65]}, "grid": 1, "block": 64}
    case = gpuprof.profile(gpuprof.Source(code, "once"), **call, device="sim:h200").case()
    assert case.reason.startswith("Right in its first launch, wrong in a later one")
    assert (case.explanation.line, case.explanation.repetition) == (3, 2)


def test_an_output_given_as_none_starts_poisoned():
    run = axpy(args={"n": 1000, "a": 2.0, "x": X, "y": None}, expect={"y": 2 * X})
    assert "y[0] is nan" in run.cases[0].reason


def test_a_kernel_that_writes_to_an_input_is_wrong():
    source = AXPY.replace("const float *x", "float *x").replace("y[i] =", "x[i] = y[i] =")
    case = axpy(what=gpuprof.Source(source, "axpy")).cases[0]
    assert not case.ok
    told = "of x, element 0 of 1000, which is read-only: an array that a kernel changes is named in expect"
    assert told in case.reason
    assert case.reason.endswith("(write to a read-only array).")


def test_launches_by_functions_and_formulas_of_parameters():
    x = np.linspace(0, 1, 1000)
    seen = []

    def grid(values):
        seen.append(dict(values))
        return -(-values["n"] // (values["STEP"] * values["block_x"]))

    def sums(**changed):
        given = {
            "args": {"x": x, "n": 1000, "partial": None},
            "block": "WIDTH * 2",
            "params": {"STEP": 10, "WIDTH": [16, 32]},
            "expect": {"partial": x.reshape(-1, 10).sum(1)},
            "dynamic_shared_bytes": lambda values: 8 * values["threads"],
            "device": "sim",
            **changed,
        }
        return gpuprof.profile(gpuprof.Source(SUMS, "sums"), **given)

    run = sums(grid=grid)
    assert [(dict(case.params), case.block[0], case.grid[0], case.ok) for case in run.cases] == [
        ({"STEP": 10, "WIDTH": 16}, 32, 4, True),
        ({"STEP": 10, "WIDTH": 32}, 64, 2, True),
    ]
    assert seen[0] == {
        "n": 1000,
        "STEP": 10,
        "WIDTH": 16,
        "block_x": 32,
        "block_y": 1,
        "block_z": 1,
        "threads": 32,
    }
    assert run.record.kernel("sums").parameters == {"STEP": 10, "WIDTH": 16}
    assert run.cases[0].figures.dynamic_shared_bytes == 256
    assert len(run.record.kernels) == 1
    as_text = sums(grid="cdiv(n, STEP * threads)", dynamic_shared_bytes="8 * threads")
    assert [case.grid for case in as_text.cases] == [case.grid for case in run.cases]


def test_several_files_are_rungs_of_one_call(tmp_path):
    path = tmp_path / "fused.cu"
    path.write_text(AXPY.replace("axpy", "any_name").replace("a * x[i] + y[i]", "fmaf(a, x[i], y[i])"))
    run = axpy(what=[gpuprof.Source(AXPY, "axpy"), path])
    assert [(case.kernel, case.ok) for case in run.cases] == [("axpy", True), ("fused", True)]


def test_an_access_across_the_end_of_an_array_is_told_as_that():
    pairs = AXPY.replace("a * x[i]", "a * ((const float2 *)x)[i / 2].x * ((const float2 *)x)[i / 2].y")
    args = {"n": 999, "a": 2.0, "x": X[:999], "y": X[:999]}
    case = axpy(what=gpuprof.Source(pairs, "axpy"), args=args).cases[0]
    assert case.explanation.text.endswith(
        "reads 8 bytes of x, element 998 of 999, and what lies behind its end; it depends on lines 4 and 5"
    )


def test_a_file_of_several_kernels_is_told_which():
    several = gpuprof.Source("__global__ void other() {}" + AXPY, "several")
    assert axpy(what=several, entry="axpy").cases[0].ok
    with pytest.raises(gpuprof.InputError, match=r"several holds 2 kernels: other, axpy\."):
        axpy(what=several)


def test_a_declared_operation_without_a_header():
    source = """
    extern "C" __global__ void mine(int ny, int nx, const real *in, real *out)
    {
        const int i = blockIdx.x * TILE + threadIdx.x;
        if (threadIdx.x < TILE && i < nx * ny)
            out[i % nx * ny + i / nx] = in[i];
    }
    """
    given = {
        "operation": "transpose",
        "arguments": ["ny", "nx", "in", "out"],
        "grid": "cdiv(nx * ny, TILE)",
        "block": 64,
        "params": {"TILE": [32, 64]},
        "device": "sim",
    }
    run = gpuprof.profile(gpuprof.Source(source, "mine"), sizes=[(20, 30), 16], dtype="f64", **given)
    assert [(case.size, case.params["TILE"], case.ok) for case in run.cases] == [
        ("20x30", 32, True),
        ("20x30", 64, True),
        ("16", 32, True),
        ("16", 64, True),
    ]
    usual = gpuprof.profile(gpuprof.Source(source, "mine"), sizes=16, **given)
    assert [(case.dtype, case.ok) for case in usual.cases] == [("f32", True)] * 2
    with pytest.raises(gpuprof.InputError, match="transpose has no argument 'N'"):
        gpuprof.profile(gpuprof.Source(source, "mine"), **{**given, "arguments": ["N"]})


def test_the_operation_of_a_header_that_names_none(tmp_path):
    source = """/*gpuprof
    arguments = ["nx", "ny", "in", "out"]
    [launch]
    block = [16, 16]
    grid = ["cdiv(nx, 16)", "cdiv(ny, 16)"]
    */
    extern "C" __global__ void mine(int nx, int ny, const real *in, real *out)
    {
        const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
        if (x < nx && y < ny)
            out[x * ny + y] = in[y * nx + x];
    }
    """
    text = gpuprof.Source(source, "mine")
    assert gpuprof.profile(text, operation="transpose", sizes=40, device="sim").cases[0].ok
    declaration = tmp_path / "operation.toml"
    shipped = os.path.join(os.path.dirname(gpuprof.__file__), "kernels", "transpose", "operation.toml")
    shutil.copy(shipped, declaration)
    for operation in (declaration, tmp_path):
        assert gpuprof.profile(text, operation=operation, sizes=8, device="none").cases[0].kernel == "mine"
    with pytest.raises(gpuprof.InputError, match="the header lacks"):
        gpuprof.profile(text, sizes=8, device="none")


def test_parameters_of_kernels_with_headers():
    run = gpuprof.profile("gemm", kernels=["reg_8x8"], params={"BK": [8, 16]}, sizes=16, device="none")
    assert [case.params["BK"] for case in run.cases] == [8, 16]
    run = gpuprof.profile("gemm", kernels="naive,reg_8x8:BK=8|16", sizes=16, device="none")
    assert [case.params.get("BK") for case in run.cases] == [None, 8, 16]
    with pytest.raises(gpuprof.InputError, match="has no parameter 'BK'"):
        gpuprof.profile("gemm", params={"BK": 8}, sizes=16, device="none")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"grid": None}, "A call has no launch"),
        ({"grid": None, "block": None}, "A call has no launch"),
        ({"expect": None}, "Nothing is expected of the kernel"),
        ({"args": None, "expect": None}, "Nothing says what the kernel computes"),
        ({"args": [1000, 2.0, X, X]}, r"args is \[1000, 2.0, .*\. Give Mapping\[str, Any\]"),
        ({"operation": "gemm"}, "operation does not go with args and expect"),
        ({"sizes": 4}, "sizes does not go with args and expect"),
        ({"what": ["a/same.cu", "b/same.cu"]}, "Cannot read the kernel file"),
        ({"grid": "cdiv(m, block_x)"}, r"grid 'cdiv\(m, block_x\)' cannot be .*unknown name 'm'"),
        ({"grid": lambda values: 1.5}, "grid 1.5 is neither a number nor a formula"),
        ({"grid": (1, 1, 1, 1)}, "has 4 extents"),
        ({"grid": lambda values: values["m"]}, r"for grid raises KeyError: 'm'\. It is given .*block_x"),
        ({"expect": {"y": lambda values: 1 // 0}}, "for y raises ZeroDivisionError"),
        (
            {"args": {"n": 3, "a": 2.0, "x": [1, 2, 3], "y": None}},
            r"x is a list of numbers\. Give numpy\.array",
        ),
        ({"what": print}, "print is no kernel. Name a file, or give a gpuprof.Source"),
        ({"what": "\n__global__ void f() {}"}, r"text stands for a path\. Give gpuprof\.Source"),
        ({"what": "mine.py"}, "mine.py is Python. Give the function in it"),
        ({"what": [b"x.cu"]}, "b'x.cu' is no kernel"),
        ({"grid": lambda values: "x +"}, r"grid 'x \+' cannot be used"),
        ({"block": 0}, "The block would be 0x1x1"),
        ({"block": "1 // 0"}, "The block has no value"),
        ({"block": []}, "There is no block in the list"),
        ({"params": {"n": 4}}, "'n' cannot be a parameter"),
        ({"params": {"P": []}}, "The parameter P has no value"),
        ({"params": {"P": 1.5}}, r"params is {'P': 1\.5}\. Give Mapping"),
        ({"params": {"P": range(300)}}, r"300 sets of parameters \(300\); a run takes 256"),
        ({"entry": "other"}, None),
    ],
)
def test_what_makes_no_sense_is_said(changed, message, folder):
    if message is None:
        case = axpy(**{"device": "none", **changed}).cases[0]
        assert (case.outcome, "other" in case.reason) == ("failed", True)
        return
    with pytest.raises(gpuprof.InputError, match=message):
        axpy(**{"device": "none", **changed})
    assert list(folder.iterdir()) == []


@each(shape=[(1000,), (10, 100)])
def test_an_output_of_which_none_is_expected_may_hold_anything(shape):
    source = """__global__ void twice(float *y, const float *x, int *count, float *scratch, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        scratch[atomicAdd(count, 1)] = x[i];
        y[i] = 2 * x[i];
    }"""
    x = np.arange(1000, dtype=np.float32)
    scratch = {"count": np.zeros(1, np.int32), "scratch": np.zeros(shape, np.float32)}
    for factor, outcome in ((2, "ok"), (3, "incorrect")):
        run = gpuprof.profile(
            gpuprof.Source(source, "twice"),
            args={"y": None, "x": x, **scratch, "n": 1000},
            expect={"count": None, "scratch": None, "y": factor * x},
            grid="cdiv(n, block_x)",
            block=256,
            device="sim:h200",
        )
        assert run.case().outcome == outcome, run.case().reason
