# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every file and command of the page "Bring your kernel", and what `gpuprof new` writes."""

import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Event

import pytest
from compile_support import compile_source
from problem_support import executor
from processes import ran
from unit_support import DEVICE, gpuprof

from gpuprof.backends.compiling import compile_kernel
from gpuprof.commands import new
from gpuprof.commands.new import write_starting_point
from gpuprof.commands.own_header import with_own_header
from gpuprof.errors import InputError
from gpuprof.kernels.catalog import load_kernels, shipped_ladder
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.shape import configure
from gpuprof.kernels.shipped import KERNEL_ROOT, shipped_names
from gpuprof.kernels.starting_point import starting_point
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.problems.declaration import load_operation
from gpuprof.problems.problem import Problem
from gpuprof.toolchain.nvrtc import compiler_options

pytestmark = pytest.mark.deep

SAXPY = """
name = "saxpy"
title = "y = a x + y"
help = "Nothing */ ends the header"
dimensions = ["n"]
default_sizes = "1024"

[arrays.x]
shape = ["n"]

[arrays.half]
shape = ["n"]
dtype = "f16"

[arrays.index]
shape = ["n", "3"]
dtype = "i64"

[arrays.y]
shape = [SHAPE]
role = "inout"

[scalars.a]
help = "The */ factor,\\non two lines"

[scalars.count]
type = "u32"

[work]
bytes = "3 * n * real_bytes"

[check]
y = "y"
equal = true
"""


def own_operation(folder, shape='"n"'):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "operation.toml").write_text(SAXPY.replace("SHAPE", shape))
    return folder


#: Ragged sizes by how many there are; the last of attention is what its heads have.
EXTENTS = {1: (61,), 2: (61, 62), 3: (61, 62, 63), 4: (2, 3, 61, 64)}


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        *((name, "mine") for name in shipped_names()),
        *(("transpose", stem) for stem in ("my-kernel", "in", "real")),
    ],
)
def test_starting_point_of_every_shipped_operation_is_right(tmp_path, name, stem):
    path = tmp_path / f"{stem}.cu"
    write_starting_point(name, path, force=False)
    (kernel,) = load_kernels(path).kernels
    operation = shipped_ladder(name).operation
    assert (kernel.id, kernel.operation) == (stem, name)
    for dtype in kernel.dtypes if stem == "mine" else ("f32",):
        problem = Problem.of(operation, EXTENTS[len(operation.dimensions)], dtype)
        measurement, _ = measure_case(Case.of(kernel, problem), *executor())
        assert measurement.outcome == "ok", measurement.reason


def test_command_line_writes_a_file_and_says_what_to_type_next(tmp_path):
    process = gpuprof("new", "transpose", "my kernel.cu", cwd=tmp_path, status=0)
    assert process.stdout.splitlines() == ["Wrote my kernel.cu", "Next: gpuprof transpose -k 'my kernel.cu'"]
    again = gpuprof("new", "transpose", "my kernel.cu", cwd=tmp_path, status=2)
    assert "exists already" in again.stderr
    assert "--force" in again.stderr
    assert gpuprof("new", "gemm", "my kernel.cu", "--force", cwd=tmp_path).returncode == 0
    assert 'operation = "gemm"' in (tmp_path / "my kernel.cu").read_text()


@pytest.mark.parametrize(
    ("source", "completed"),
    [
        (
            "__global__ void mine(const int n, float a, float *x, float *const y, bool on, short by)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + by * y[i]; }",
            {'value = ""': 'value = "a * x + y"'},
        ),
        (
            "template <typename T, int STEP> __global__ void shifted(uint8_t *to, const T *__restrict__ from,"
            " size_t rows, unsigned int columns) { int x = blockIdx.x * blockDim.x + threadIdx.x,"
            " y = blockIdx.y * blockDim.y + threadIdx.y;"
            " if (y < rows && x < columns) to[y * columns + x] = from[y * columns + x] > STEP; }",
            {'value = ""': 'value = "where(from_ > 16, 1, 0)"'},
        ),
        (
            "enum Mode { PLAIN, SCALED }; template <class T> __global__ void mine(const T *__restrict x,"
            " const int n, T *__restrict y, Mode mode) { int i = threadIdx.x + blockIdx.x * blockDim.x;"
            " if (i < n && mode == PLAIN) y[i] = x[i]; } template <class T> __global__ void mine(T *x) {}",
            {'value = ""': 'value = "x"'},
        ),
        (
            "typedef enum { ONE, TWO } count_t; namespace ops { enum class Mode : int { ADD, MUL = 3, };"
            " template <typename T, Mode M, count_t COUNT = TWO>"
            " __global__ void mine(T *y, const T *x, int, int n = 64)"
            " { int i = threadIdx.x + blockIdx.x * blockDim.x; if (i >= n) return;"
            " if constexpr (M == Mode::MUL && COUNT == TWO) y[i] = 3 * x[i]; }"
            " template <class T, Mode WHICH> void run(T *y, T *x, int n)"
            " { mine<T, WHICH><<<(n + 63) / 64, 64>>>(y, x, 0, n); }"
            " void all(double *y, double *x, int n) { run<double, Mode::MUL>(y, x, n); } }",
            {'value = ""': 'value = "3 * x"', '["unnamed2", "n"]': '["n"]', '"unnamed2", ': '"1", '},
        ),
        (
            "__global__ void reset() {}"
            " template <int THREADS, int STEP = 3, typename T = short, bool ON = true>"
            " __global__ void __launch_bounds__(THREADS) scaled(T *y, const T *x, int n)"
            " { static_assert(THREADS == 64 && STEP == 3 && sizeof(T) == 8 && ON == 1);"
            " int i = blockIdx.x * THREADS + threadIdx.x; if (i < n) y[i] = STEP * x[i]; }"
            " void run() { scaled<64, 3, double><<<1, 64>>>(y, x, n); }",
            {'value = ""': 'value = "3 * x"'},
        ),
        (
            "template <int, class, class, const bool ON> __global__ void mine(float *y, int n)"
            " { for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2; }",
            {'value = ""': 'value = "2 * ones(n)"', '"cdiv(n, block_x)"': '"1"'},
        ),
        (
            "template <class T> struct Doubled { __device__ T operator()(T x) const { return 2 * x; } };"
            " template <typename T, class F> __global__ void filled(T *y, int nx, int ny, int nz, F f)"
            " { int z = blockIdx.z * blockDim.z + threadIdx.z, y0 = blockIdx.y * blockDim.y + threadIdx.y,"
            " x = blockIdx.x * blockDim.x + threadIdx.x;"
            " if (x < nx && y0 < ny && z < nz) y[(z * ny + y0) * nx + x] = f(x); }"
            " template __global__ void filled<int, Doubled<int>>(int *, int, int, int, Doubled<int>);",
            {'value = ""': 'value = "2 * arange(nx) + zeros((nz, ny, nx))"', '"0"]': '"{0 as u8}"]'},
        ),
        (
            "#define WIDTH 61\n__global__ void turned(float *y, const float *x)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;"
            " if (max(i, j) < WIDTH) y[j * WIDTH + i] = x[i * WIDTH + j]; }",
            {'value = ""': 'value = "transpose(x)"'},
        ),
        (
            "#define THREADS (2 * 32)\n#define REAL float\n"
            "template <int SIZE> __global__ void summed(float *of, const float *x, int columns)"
            " { extern __shared__ float part[]; part[threadIdx.x] = 0;"
            " for (int i = threadIdx.x; i < columns; i += SIZE)"
            " part[threadIdx.x] += x[blockIdx.x * columns + i];"
            " __syncthreads(); if (threadIdx.x == 0) { float sum = 0; for (int i = 0; i < SIZE; i++)"
            " sum += part[i]; of[blockIdx.x] = sum; } }"
            " void run(int rows, int columns) { const int threads = THREADS; float *of, *x;"
            " cudaMalloc(&of, rows * sizeof(REAL)); cudaMalloc(&x, sizeof(float) * rows * columns);"
            " summed<THREADS><<<rows, threads, threads * sizeof(float)>>>(of, x, columns); }",
            {'value = ""': 'value = "sum(x, axis=1)", magnitude = "sum(abs(x), axis=1)"'},
        ),
        (
            "template <int N> struct Weights { float by[N]; int n; };"
            " __global__ void mine(float *y, Weights<2> w)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < w.n) y[i] = w.by[i % 2]; }",
            {'value = ""': 'value = "where(arange(n) % 2 == 0, by0, by1)"', "[scalars]": "[scalars]"},
        ),
        (
            "#include <cuda_fp16.h>\n#define TAPS 3\n"
            "struct Grid { int nx, ny; float scale; long long step; };"
            " __constant__ float taps[2 * TAPS - 5]; __constant__ float shift;"
            " typedef half number; __global__ void scaled(const float *x, const int *at, number *y, Grid g)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y; if (i >= g.nx) return;"
            " y[j * g.nx + i] = __float2half(taps[0] * g.scale * x[j * g.nx + at[i] * g.step] + shift); }"
            " int main() { Grid g{64, 4, 2, 1}; float *x; half *y; int *at;"
            " cudaMalloc(&x, g.ny * g.nx * sizeof(float)); cudaMalloc(&y, g.nx * g.ny * sizeof(half));"
            " cudaMalloc(&at, g.nx * sizeof(int));"
            " scaled<<<dim3((g.nx + 31) / 32, g.ny), 32>>>(x, at, y, g); }",
            {
                '"ny", "step"]': '"ny"]',
                "step as i64": "1 as i64",
                "integers(0, 100)": "integers(0, nx)",
                'value = ""': 'value = "take(taps * scale * x, at, axis=1) + shift"',
            },
        ),
        (
            "struct Place { float a; float b; }; __constant__ __device__ Place places[2];"
            " struct Other { int a; double b; }; __constant__ Other other;"
            " __constant__ float4 more[1]; __global__ void placed(float *y, int n)"
            " { int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;"
            " if (i < n) y[i] = places[1].a + more[0].w + i + other.a; }",
            {
                'value = ""': 'value = "places[1, 0] + more[0, 3] + arange(n)"',
                "launch; TODO: other": "launch",
                '"4 * u"': '"8 * u"',
            },
        ),
        (
            "__global__ void doubled(float **rows, int count, int n)"
            " { int row = blockIdx.x; if (row >= count) return;"
            " for (int i = threadIdx.x; i < n; i += blockDim.x) rows[row][i] *= 2; }",
            {'role = "out"': 'role = "inout"', 'value = ""': 'value = "2 * rows_data"'},
        ),
        (
            "template <typename T> struct Twice { __device__ T operator()(T x) const { return 2 * x; } };"
            " template <int threads, template <typename> class Op> __global__ void mine(float *y, int n)"
            " { int i = blockIdx.x * threads + threadIdx.x; if (i < n) y[i] = Op<float>()(3); }"
            " void run(float *y, int n) { const int threads = 64;"
            " mine<threads, Twice><<<(n + threads - 1) / threads, threads>>>(y, n); }",
            {'value = ""': 'value = "6 * ones(n)"'},
        ),
        (
            "#include <cooperative_groups.h>\n__global__ void turned(float *x, float *y, int n)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x; float last = i < n ? x[n - 1 - i] : 0;"
            " cooperative_groups::this_grid().sync(); if (i < n) y[i] = last; }",
            {'value = ""': 'value = "flip(x)"'},
        ),
        (
            "#include <cuda.h>\n#include <cuda/ptx>\nnamespace ptx = cuda::ptx;\n"
            "__global__ void mine(const __grid_constant__ CUtensorMap map, float *y, int n)"
            " { alignas(128) __shared__ float x[64]; __shared__ uint64_t bar; if (threadIdx.x == 0)"
            " { ptx::mbarrier_init(&bar, 1); ptx::fence_proxy_async();"
            " int32_t at[1] = {(int)blockIdx.x * 64};"
            " ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, x, &map, at, &bar);"
            " ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar,"
            " 256); }"
            " __syncthreads(); while (!ptx::mbarrier_try_wait_parity(&bar, 0));"
            " int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = x[threadIdx.x]; }"
            " void run(CUtensorMap map, float *y, int n) { mine<<<(n + 63) / 64, 64>>>(map, y, n); }",
            {'value = ""': 'value = "map_data"', 'box = ["1"]': 'box = ["64"]'},
        ),
        (
            "#define RUN(STEPS, BY) if (steps == STEPS) mine<STEPS, BY><<<n, STEPS>>>(x, n);\n"
            "template <int STEPS, int BY> __global__ void mine(float *x, int n)"
            " { if (threadIdx.x == STEPS - 1) x[blockIdx.x] = STEPS * BY; }\n"
            "void run(float *x, int n, int steps) { RUN(7, -1) RUN(9, 3) }",
            {'value = ""': 'value = "-7 * ones(n)"'},
        ),
        (
            "#define SCALED(T, NAME) __global__ void NAME##_k(const T *x, T *y, int n) \\\n"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = blockDim.x * x[i]; }\n"
            "#define RUN(NAME, THREADS, ...) NAME<<<(n + THREADS - 1) / THREADS, THREADS>>>(__VA_ARGS__)\n"
            "SCALED(double, twice)\nSCALED(float, mine)\n"
            "void run(float *x, float *y, int n) { RUN(twice_k, 32, x, y, n); RUN(mine_k, 64, x, y, n); }",
            {'value = ""': 'value = "32 * x"', 'dtype = "f64"': 'dtype = "f64"'},
        ),
        (
            "template <class T, class N = int> class Image { public: using Row = T *; N w = 0; N h;"
            " static constexpr int depth = 8; T *pixels;"
            " __device__ T *row(int y) const { return pixels + y * w; } }; struct Pair { float a; float b; };"
            " static __device__ int seen[2];"
            " __global__ void mine(Image<float> to, Image<float> from, const Pair *by)"
            " { int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
            " if (x == 0 && y == 0) seen[0] = seen[1] = 7; if (x >= from.w || y >= from.h) return;"
            " to.row(y)[x] = by[x].a * from.pixels[y * from.w + x] + by[x].b; }"
            " void run(Image a, Image b, Pair *c) { cudaMalloc(&b.pixels, b.h * b.w * sizeof(float));"
            " cudaMalloc(&a.pixels, b.h * b.w * sizeof(float)); cudaMalloc(&c, b.w * sizeof(Pair));"
            " mine<<<dim3((b.w + 15) / 16, (b.h + 15) / 16), dim3(16, 16)>>>(a, b, c); }",
            {
                '["to_w", "to_h", "from_w", "from_h"]': '["from_w", "from_h"]',
                "{to_w, to_h,": "{from_w, from_h,",
                'to_pixels = { value = ""': 'to_pixels = { value = "by[:, 0] * from_pixels + by[:, 1]"',
                'seen = { value = ""': 'seen = { value = "7 + zeros(2)"',
                '"4 * u" }': '"4 * u", magnitude = "2" }',
            },
        ),
        (
            "#include <torch/types.h>\n__global__ void mine(at::PackedTensorAccessor64<float, 1> y,"
            " const torch::PackedTensorAccessor32<int64_t, 2, torch::RestrictPtrTraits> x)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " if (i < y.size(0)) y[i] = x[i % x.size(0)][x.size(1) - 1]; }",
            {'value = ""': 'value = "x[arange(y_0) % x_0, -1]"'},
        ),
        (
            "template <typename T> concept Small = sizeof(T) < 8;"
            " template <typename T> __global__ void mine(T *y, int n)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = Small<T> ? 1 : blockDim.x; }"
            " void run(double *y, int n)"
            " { constexpr int THREADS{64}; limit(mine<double>); mine<<<n / THREADS + 1, THREADS>>>(y, n); }",
            {'value = ""': 'value = "64 * ones(n)"', 'dtype = "f64"': 'dtype = "f64"'},
        ),
        (
            "template <class T> struct Shared { __device__ T *held()"
            " { extern __shared__ T words[]; return words; } };\n"
            "template <int THREADS, typename IdType> __global__ void turned(const int x[THREADS * (1 + 1)],"
            " int *y, IdType n) { int i = threadIdx.x; Shared<int>().held()[i] = x[i % n]; __syncthreads();"
            " if (i < n) y[i] = Shared<int>().held()[n - 1 - i]; }"
            " void run(int *x, int *y, int n) { auto kernel = pick(n);"
            " kernel<<<1, std::min(128, n), 512>>>(x, y, n); }"
            " Picked pick(int n) { return turned<(32 * 4), Offset>; }",
            {'value = ""': 'value = "flip(x)"'},
        ),
        (
            "__global__ void scaled(float *y, const float *x, uint2 extent, float2 factors)"
            " { uint i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;"
            " if (i < extent.x && j < extent.y) y[j * extent.x + i] = x[j * extent.x + i] * factors.y; }",
            {'value = ""': 'value = "x * factors_y"'},
        ),
        (
            "using uchar = unsigned char; __global__ void paired(const uchar *x, float2 *y, int h, int w)"
            " { int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y; if (i >= w) return;"
            " y[j * w + i] = make_float2(x[j * w + i], 1); }"
            " __global__ void other(float *x) { x[threadIdx.y] = 0; }",
            {
                'value = ""': 'value = "reshape(pad(ravel(x), 0), (h, w, 1)) * (1 - arange(2)) + arange(2)"',
            },
        ),
    ],
)
def test_a_kernel_without_a_header_gets_one_that_only_a_formula_is_missing_in(
    tmp_path, capsys, source, completed
):
    bare, path = tmp_path / "bare.cu", tmp_path / "mine.cu"
    bare.write_text(f"{source}\nint main() {{}}\n")
    write_starting_point(str(bare), path, force=False)
    assert capsys.readouterr().out.endswith(f"gpuprof run {path}\n")
    text = path.read_text()
    for told, meant in completed.items():
        text = text.replace(told, meant)
    path.write_text(text)
    ladder = ladder_of([path])
    problem = Problem.of(ladder.operation, (61, 62, 3)[: len(ladder.operation.dimensions)])
    case = Case.of(ladder.kernels[0], problem)
    measurement, _ = measure_case(case, *executor())
    assert measurement.outcome == "ok", measurement.reason
    with pytest.raises(InputError, match="has a header"):
        write_starting_point(str(path), bare, force=True)


def test_a_compiler_that_takes_long_is_told_of(tmp_path, monkeypatch):
    told, bare = Event(), tmp_path / "bare.cu"
    bare.write_text("")
    monkeypatch.setattr(new, "_PATIENCE_S", 0)
    monkeypatch.setattr(new, "tell", lambda text: told.set())
    monkeypatch.setattr(new, "with_own_header", lambda *given: str(told.wait(60)))
    write_starting_point(str(bare), tmp_path / "mine.cu", force=False)
    assert (tmp_path / "mine.cu").read_text() == "True"


def test_of_several_kernels_it_takes_the_one_called_like_the_new_file(tmp_path, capsys):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sizes.h").write_text("#define THREADS 32\ntypedef unsigned count_t;\n")
    kernels = (
        f"__global__ void {name}(float *x, count_t n) {{ if (threadIdx.x < n) x[threadIdx.x] = ONE; }}"
        f" void run_{name}(float *x, count_t n) {{ {name}<<<1, {threads}>>>(x, n); }}\n"
        for name, threads in (("first", "THREADS"), ("second", "2 * THREADS"))
    )
    bare, path = tmp_path / "bare.cu", tmp_path / "second.cu"
    bare.write_text(f'#include "sizes.h"\n{"".join(kernels)}')
    write_starting_point(str(bare), path, force=False)
    assert "# TODO: bare.cu does not compile" in path.read_text()
    write_starting_point(str(bare), path, force=True, include=[tmp_path / "own"], define=["ONE=1"])
    assert capsys.readouterr().out.endswith(f"gpuprof run {path} -I{tmp_path / 'own'} -DONE=1\n")
    text = path.read_text()
    assert "TODO" not in text.partition("[arrays]")[0]
    assert 'entry = "second"\ndimensions = ["n"]' in text
    assert "block = [64]" in text
    (tmp_path / "user.cu").write_text('#include "bare.cu"\n')
    with pytest.raises(InputError, match="has no __global__ function") as refused:
        write_starting_point(str(tmp_path / "user.cu"), path, force=True)
    assert refused.value.fix == "Name bare.cu, which it includes."


def test_clusters_that_a_launch_has_are_to_do(tmp_path):
    kernel = "__global__ void swapped(float *y) { y[threadIdx.x ^ 1] = 1; }"
    launch = "one.val.clusterDim.x = 4\n/2; one.val.clusterDim.y = 1; cudaLaunchKernelEx(&c, swapped, y);"
    text = with_own_header(tmp_path / "swapped.cu", f"{kernel}\nvoid run(float *y) {{ {launch} }}\n")
    assert "# TODO: __cluster_dims__(4 /2, 1) before swapped, as the launch has it." in text


def test_a_texture_is_an_array_of_the_texels_that_the_kernel_reads():
    source = (
        "__global__ void k(cudaTextureObject_t image, float4 *y, int w) {"
        " if (threadIdx.x < w) y[threadIdx.x] = tex2D<float4>(image, threadIdx.x, 0); }"
    )
    text = with_own_header(Path("k.cu"), source)
    assert 'arguments = ["image", "y", "w"]' in text
    assert 'image = { shape = ["w", "4"], dtype = "f32" }\n' in text
    assert "[textures.image]" in text
    assert "\nchannels = 4\n" in text


def test_size_of_the_standard_library_is_one():
    text = with_own_header(Path("k.cu"), "__global__ void k(float *x, std::size_t count) { x[count] = 0; }")
    assert 'dimensions = ["count"]' in text


@pytest.mark.parametrize("shape", ['"n"', '"n", "2"', '"n // 2 + 1"', '"1"'])
def test_operation_without_kernels_gives_a_skeleton_that_compiles(tmp_path, shape):
    folder = own_operation(tmp_path / "saxpy", shape)
    write_starting_point(str(folder), folder / "first.cu", force=False)
    text = (folder / "first.cu").read_text()
    assert "TODO" in text
    (kernel,) = ladder_of([folder]).kernels
    problem = Problem.of(load_operation(folder / "operation.toml"), (100,))
    launch = configure(kernel, problem, kernel.block, {}, DEVICE)
    (function,) = compile_kernel(launch, "sm_80").values()
    assert function.registers_per_thread > 0
    assert "long long *index" in text
    assert "const __half *half" in text
    assert "unsigned count" in text


def test_operation_of_a_folder_starts_from_its_first_kernel(tmp_path, monkeypatch, capsys):
    shutil.copytree(KERNEL_ROOT / "transpose", tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    write_starting_point("mine", tmp_path / "mine" / "next.cu", force=False)
    assert capsys.readouterr().out.splitlines()[1] == "Next: gpuprof run mine -k next"
    assert "void next(" in (tmp_path / "mine" / "next.cu").read_text()
    write_starting_point("mine", tmp_path / "beside.cu", force=False)
    assert capsys.readouterr().out.splitlines()[1] == f"Next: gpuprof run mine -k {tmp_path}/beside.cu"


@pytest.mark.parametrize(
    ("what", "name", "words"),
    [
        ("gemmm", "a.cu", "There is no operation 'gemmm'"),
        (".", "a.cu", r"docs/operations\.md shows one"),
        ("gemm", "a.txt", "does not end in .cu"),
        ("gemm", "naive.cu", "The gemm ladder has a kernel called naive"),
        ("gemm", "gemmOnGPU2D.cu", "The gemm ladder has a kernel called gemmOnGPU2D"),
        (
            "mine.cu",
            "hello.cu",
            "There is no file mine.cu. What there is comes first: gpuprof new hello.cu mine.cu",
        ),
        ("gemm", "folder.cu", "is a directory"),
        ("gemm", "file/a.cu", "Cannot write"),
        ("mine.py", "a.cu", r"mine\.py is no folder and no kernel file"),
        ("empty.cuh", "a.cu", "empty.cuh has no __global__ function"),
        ("hello.cu", "a.cu", "hello.cu:2: hello writes to no array"),
        ("wide.cu", "a.cu", r"the kernel file wide\.cu: it is not UTF-8 text"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path, monkeypatch, what, name, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.cu").mkdir()
    (tmp_path / "wide.cu").write_text("// größe", encoding="utf-16")
    (tmp_path / "hello.cu").write_text('#include <cstdio>\n__global__ void hello() { printf("hello"); }\n')
    for empty in ("file", "empty.cuh", "mine.py"):
        (tmp_path / empty).write_text("")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=words):
        write_starting_point(what, Path(name), force=False)
    assert sorted(tmp_path.rglob("*")) == before


def test_file_of_the_folder_may_be_written_anew(tmp_path):
    folder = own_operation(tmp_path / "saxpy")
    for force in (False, True):
        write_starting_point(str(folder), folder / "first.cu", force=force)
    ladder = ladder_of([folder])
    assert "TODO" in starting_point(ladder.operation, None, "second")
    assert "void second(" in starting_point(ladder.operation, ladder, "second")


def test_file_without_a_header_is_told_one_of_the_operation_asked_for_that_can_be_pasted(tmp_path):
    source = "__global__ void bare(int rows, int columns, float scale, const float *x, float *y) {}\n"
    (tmp_path / "bare.cu").write_text(source)
    process = gpuprof("softmax", "-k", "bare.cu", "--device", "none", cwd=tmp_path, status=2)
    said, start, *header = process.stderr.splitlines()
    assert (said, start) == (
        "gpuprof: bare.cu has no /*gpuprof … */ header at its top.",
        "  Start the file with:",
    )
    (tmp_path / "bare.cu").write_text("\n".join([*header, source]))
    assert gpuprof("softmax", "-k", "bare.cu", "--device", "none", cwd=tmp_path).returncode == 0


def test_what_is_said_to_be_next_runs_while_the_folder_holds_no_kernel(tmp_path):
    own_operation(tmp_path / "saxpy")
    written = gpuprof("new", "saxpy", "first.cu", cwd=tmp_path)
    assert written.stdout.endswith("Next: gpuprof run saxpy -k first.cu\n")
    ran = gpuprof("run", "saxpy", "-k", "first.cu", "--device", "none", cwd=tmp_path, status=0)
    assert "[1/1] first 1024 256x1: compiled" in ran.stderr
    none = gpuprof("run", "saxpy", cwd=tmp_path, status=2)
    assert none.stderr == (
        "gpuprof: There is no saxpy kernel: no kernel file stands beside operation.toml.\n"
        "  Name one with -k; gpuprof new writes one to start from.\n"
    )
    unknown = gpuprof("run", "saxpy", "-k", "first", cwd=tmp_path)
    assert unknown.stderr.endswith(
        "There is none yet: -k takes the path of a .cu, .ptx or .cubin file too.\n"
    )


PAGE = (Path(__file__).parents[2] / "docs" / "bring-your-kernel.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {about.split()[1]: text for about, text in BLOCKS if about}
COMMANDS = [line for about, text in BLOCKS if not about for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    options = compiler_options("sm_90")
    made = compile_source(FILES["scale.cu"], "scale.cu", "scale", options)
    (tmp_path / "made.ptx").write_text(made.ptx)
    (tmp_path / "made.cubin").write_bytes(made.cubin)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, folder):
    done = gpuprof(*shlex.split(command)[1:], cwd=folder, status=0)
    assert "1 ok" in done.stderr or "1 compiled" in done.stderr


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".py")])
def test_program_runs(name, folder):
    needed = name.removeprefix("with_").removesuffix(".py")
    if needed != "text" and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    command = [sys.executable, "-W", "ignore", name]
    done = ran(command, cwd=folder, status=0)
    assert "ok" in done.stdout
