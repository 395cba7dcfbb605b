# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Launches as host code writes them, read as formulas of what the kernel takes."""

import pytest

from gpuprof.cuda_source.host_launch import HostLaunch, UnreadableError

FILE = r"""
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))
#define TILE 32
#define SHARE(what, of) (((what) - 1) / (of) + 1)
constexpr int pairs(const int many) { return SHARE(many, 2); }
constexpr int THREADS = 128;
static inline int div_up(int a, int b) { return (a + b - 1) / b; }
template <int N> __global__ void k(float *x, int w, int h) {}
void outer() { int rows = 7; }
namespace tiles { const int BIG = 512; }
auto pick(int w) { return w > 8 ? k<8> : k<16>; }
HOST {
  float *d_x; cudaMalloc((void **)&d_x, BYTES);
  CODE
}
"""
BYTES = {"float": 4, "int": 4, "double": 8}


def launch_of(code, host="int main(int argc, char **argv)", nbytes="4"):
    source = FILE.replace("HOST", host).replace("BYTES", nbytes).replace("CODE", code)
    return HostLaunch(source, "k", BYTES.get, {1: "w", 2: "h"}, ["N"], {"x", "w", "h", "N"})


def told(question, *given):
    try:
        return question(*given)
    except UnreadableError:
        return None


@pytest.mark.parametrize(
    ("code", "grid", "block", "shared"),
    [
        ("k<3><<<(W + 255) / 256, 256>>>(d_x, W, H);", ["cdiv(w, 256)"], ["256"], "0"),
        (
            "int threads = 256, blocks = (W - 1 + threads) / threads;"
            " k<<<blocks, threads, 2 * threads * sizeof(float)>>>(d_x, W, H);",
            ["cdiv(w, 256)"],
            ["256"],
            "2048",
        ),
        (
            "dim3 grid(CEIL_DIV(W, TILE), div_up(H, TILE)), block(TILE, 8);"
            " k<<<grid, block, block.x * block.y * sizeof(double), stream>>>(d_x, W, H);",
            ["cdiv(w, 32)", "cdiv(h, 32)"],
            ["32", "8"],
            "2048",
        ),
        ("k<<<SHARE(W, 4), pairs(16), 4 * pairs(TILE)>>>(d_x, W, H);", ["cdiv(w, 4)"], ["8"], "64"),
        (
            "dim3 grid = dim3(W >> 1, 1, H), block; block.x = 8u; block.y = 1 << 2;"
            " k<<<grid, block, 0>>>(d_x, (int)W, H);",
            ["w // 2", "1", "h"],
            ["8", "4"],
            "0",
        ),
        (
            "k<<<std::min<int>((W + 255) >> 8, 1024), dim3{16, 16}>>>(d_x, W, H);",
            ["min(cdiv(w, 256), 1024)"],
            ["16", "16"],
            "0",
        ),
        (
            "k<<<dim3((W - 1) / 64 + 1, H / 2 + 1), 64>>>(d_x, W, H);",
            ["cdiv(w, 64)", "h // 2 + 1"],
            ["64"],
            "0",
        ),
        ("k << <at::ceil_div(W, 4), THREADS >> > (d_x, W, H);", ["cdiv(w, 4)"], ["128"], "0"),
        ("k<<<(int)ceil((float)W / THREADS), THREADS>>>(d_x, W, H);", ["cdiv(w, 128)"], ["128"], "0"),
        (
            "void *args[] = {&d_x, (void *)&W, &H};"
            " cudaLaunchCooperativeKernel((void *)k<3>, 2 * p.multiProcessorCount, dim3(64), args, 16, 0);",
            ["2 * sm_count"],
            ["64"],
            "16",
        ),
        (
            "constexpr int SIDE{8}; k<SIDE><<<ceil_div<int64_t>(W, SIDE), SIDE * SIDE>>>(d_x, W, H);",
            ["cdiv(w, N)"],
            ["N * N"],
            "0",
        ),
        (
            "fp_k picked = pick(W); picked<<<tiles::BIG, THREADS>>>(d_x, W, H);",
            ["512"],
            ["128"],
            "0",
        ),
        ("auto p = &k<(3)>; p<<<divRndUp(W, 8), int(8), 4>>>(d_x, W, H);", ["cdiv(w, 8)"], ["8"], "4"),
        (
            "k<(2 * 4)><<<ceil((double(W) / double(H)) / 8.0), 8>>>(d_x, W, H);",
            ["cdiv(w, h * 8)"],
            ["8"],
            "0",
        ),
        (
            "cudaLaunchConfig_t c = {0}; c.gridDim = dim3(W / 8 + 1, H); c.blockDim = 64; c.stream = s;"
            " cudaLaunchKernelEx(&c, k<3>, d_x, W, H);",
            ["w // 8 + 1", "h"],
            ["64"],
            "0",
        ),
        ("int t = (THREADS < 256) ? 64 : 32; k<<<THREADS == 1 ? W : H, t>>>(d_x, W, H);", ["h"], ["64"], "0"),
        # What the text does not tell:
        ("auto p = &other; p<<<1, 1, 1>>>(d_x, W, H);", None, None, None),
        ("k<<<(W + 7) / 8, W, f(H)>>>(d_x, W, W);", None, None, None),
        ("int n = 1; n *= 2; k<<<n, 2 * n, n++>>>(d_x, W, H);", None, None, None),
        ("int n = 1; if (W) n = 2; k<<<n, m, a ? 1 : 2>>>(d_x, W, H);", None, None, None),
        ("int n = n; occupancy(&m); int m = 1; k<<<n, m, 1 / 0>>>(d_x, W, H);", None, None, None),
        ("other<<<1, 1, 1>>>(d_x, W, H);", None, None, None),
        ("k<<<1.5, 1if, ((>>>(d_x);", None, None, None),
        ("k<<<-W, +W, !W>>>();", None, None, None),
    ],
)
def test_launch_is_read_as_the_host_writes_it(code, grid, block, shared):
    launch = launch_of(code)
    assert [told(launch.extents, 0), told(launch.extents, 1), told(launch.shared_bytes)] == [
        grid,
        block,
        shared,
    ]
    assert not launch.free
    if grid is None:
        assert told(launch.shape, 2, 4) is None


@pytest.mark.parametrize(
    ("nbytes", "shape"),
    [
        ("W * H * sizeof(float)", ["w", "h"]),
        ("sizeof(float) * (W + 1)", ["w + 1"]),
        ("2 * H * sizeof(double)", ["h", "4"]),
        ("256 * sizeof(int)", ["256"]),
        ("W", None),
        ("W * sizeof(Thing)", None),
    ],
)
def test_array_has_the_extents_that_it_is_allocated_with(nbytes, shape):
    assert told(launch_of("k<<<1, 1>>>(d_x, W, H);", nbytes=nbytes).shape, 0, 4) == shape


def test_array_of_a_launcher_has_the_extents_that_its_caller_allocates():
    main = "main(int deep) { float *A; cudaMalloc(&A, NBYTES * sizeof(float)); run(1, A, cols, 2, rows); }\n"
    main += "void run("
    shapes = {"rows * cols": ["h", "w"], "cols * 8": None, "other * cols": None, "cols * deep": ["w", "deep"]}
    for nbytes, shape in shapes.items():
        host = f"int {main.replace('NBYTES', nbytes)}int m, float *x, int W, int one, int H)"
        launch = launch_of("k<<<1, 1>>>(reinterpret_cast<float *>(x), W, H);", host)
        assert told(launch.shape, 0, 4) == shape
        assert launch.free == ["deep"] * ("deep" in nbytes)


def test_what_the_command_line_may_change_is_a_size_that_has_a_default():
    code = "int n = 1 << 10, b = 0; if (argc > 1) n = atoi(argv[1]); b = 64; k<<<n / b, b>>>(d_x, W, H);"
    launch, alone = (
        launch_of(code),
        HostLaunch(FILE.replace("HOST", "int main()").replace("CODE", code), "k", BYTES.get),
    )
    assert (launch.extents(0), launch.extents(1), launch.free) == (["n // 64"], ["64"], ["n"])
    assert alone.extents(0) == ["16"]


def test_a_size_that_the_kernel_is_not_told_is_named_as_its_launcher_does():
    launch = launch_of("auto batch = y.size(0); dim3 g(batch, 2); k<<<g, 1>>>(d_x, W, H);")
    assert (launch.extents(0), launch.free) == (["batch", "2"], ["batch"])
    launch = launch_of("k<<<rows * h, THREADS>>>(d_x, W, 3);", "void run(float *d_x, int rows, int W, int h)")
    with pytest.raises(UnreadableError):  # h is something else in the kernel
        launch.extents(0)
    launch = launch_of("k<<<rows, THREADS>>>(d_x, W, 3);", "void run(float *d_x, int rows, int W)")
    assert (launch.extents(0), launch.free, launch.argument(2)) == (["rows"], ["rows"], "3")
    # A macro is given ROWS, not the launcher.
    host = "#define ROWS 64\nvoid run(float SHAPED(x, ROWS, W), int W)"
    assert launch_of("k<<<ROWS / 8, THREADS>>>(d_x, W, 3);", host).extents(0) == ["8"]


def test_a_float_is_what_the_launch_gives_as_a_number_or_a_variable_of_one():
    numbers = {
        "2.0f": 2.0,
        "-.5": -0.5,
        "(float)3": 3.0,
        "1e-5f": 1e-5,
        "alpha": 0.25,
        "1.f / n": None,
        "x[0]": None,
    }
    for given, number in numbers.items():
        launch = launch_of(f"const float alpha = 0.25f; k<<<1, 1>>>(d_x, W, H, {given});")
        assert told(launch.number, 3) == number, given
    assert told(launch.number, 4) is None


def launch_beside(outside, code, host="int main()"):
    """The launch of a kernel in a file with other definitions."""
    source = f"{outside}\n__global__ void k(float *x, int w) {{}}\n{host} {{ {code} }}"
    return HostLaunch(source, "k", BYTES.get, {1: "w"}, [], {"x", "w"})


@pytest.mark.parametrize(
    ("outside", "code", "grid"),
    [
        ("#define min(a, b) ((a) < (b) ? (a) : (b))", "k<<<min(W / 4, 64), 1>>>(x, W);", "min(w // 4, 64)"),
        ("int max(int a, int b) { return a > b ? a : b; }", "k<<<max(W, 64), 1>>>(x, W);", "max(w, 64)"),
        ("int per(int n, int b = 256) { return n / b; }", "k<<<per(W, 64), 1>>>(x, W);", "w // 64"),
        ("int per(int n, int b = 256) { return n / b; }", "k<<<per(W), 1>>>(x, W);", None),
        ("#define PER(n) ((n) / 8)", "k<<<PER(W, 4), 1>>>(x, W);", None),
        ("#define PER(n) ((n) / 8)\n#undef PER\n#define PER(n) ((n) / 4)", "k<<<PER(W), 1>>>(x, W);", None),
        (
            "#ifdef SMALL\nint per(int n) { return n / 8; }\n#else\nint per(int n) { return n / 4; }\n#endif",
            "k<<<per(W), 1>>>(x, W);",
            None,
        ),
        (
            "#ifdef SMALL\nint per(int n) { return n / 8; }\n#else\nint per(int n) { return n  / 8;}\n#endif",
            "k<<<per(W), 1>>>(x, W);",
            "w // 8",
        ),
        (
            "namespace a { int per(int n) { return n / 8; } }\nnamespace b { int per(int n) { return n; } }",
            "k<<<b::per(W), 1>>>(x, W);",
            None,
        ),
        (
            "int per(float n) { return n / 8; } int per(int n) { if (n < 8) return 1; return n / 4; }",
            "k<<<per(W), 1>>>(x, W);",
            None,
        ),
        ("template <int T = 8> int per(int n) { return n / T; } int T = 4;", "k<<<per(W), 1>>>(x, W);", None),
        ("int T = 64; int per(int n) { return int(n) / T; }", "k<<<per(W), T>>>(x, W);", "w // 64"),
        ("int T = 0; void count() { T += 8; }", "k<<<T, 64>>>(x, W);", None),
        ("int T = 64; int per(int n) { return n / T; }", "int T = 128; k<<<per(W), T>>>(x, W);", None),
        ("int T = 64; int per(int n) { return n / T; }", "int a, T(128); k<<<per(W), T>>>(x, W);", None),
    ],
)
def test_a_call_is_read_only_where_one_definition_fits(outside, code, grid):
    assert told(launch_beside(outside, code).extents, 0) == (grid and [grid])


def test_what_a_function_uses_is_not_what_its_caller_is_given():
    outside = "int T = 64; int per(int n) { return n / T; }"
    launch = launch_beside(outside, "k<<<per(W), 1>>>(x, W);", "void run(float *x, int W, int T)")
    assert told(launch.extents, 0) is None


@pytest.mark.parametrize("used", ["A{1}(x) + A{1}(x)", "A{1}((x) + (x))"])
def test_definitions_that_double_at_each_step_are_refused(used):
    def chain(steps):
        macros = "".join(f"#define A{one}(x) {used.format(one, one + 1)}\n" for one in range(steps))
        launch = launch_beside(f"{macros}#define A{steps}(x) (x)\n", "k<<<A0(W), 1>>>(x, W);")
        return told(launch.extents, 0)

    assert (chain(2), chain(25)) == (["w + w + (w + w)"], None)


def test_variables_that_double_at_each_step_are_refused():
    variables = "".join(f"int b{one} = b{one - 1} + b{one - 1}; " for one in range(1, 25))
    assert told(launch_beside("", f"int b0 = W; {variables} k<<<b24, 1>>>(x, W);").extents, 0) is None


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("Config cfg; cfg.alpha = 7.f; float alpha = 2.f;", 2.0),
        ("cfg.alpha = 7.f;", None),
        ("cfg->alpha = 7.f;", None),
        ("float alpha(3.5f);", 3.5),
        ("const double alpha{-3.5};", -3.5),
        ("float alpha = 1.f; std::cin >> n >> alpha;", None),
        ("float alpha = 1.f; file >> alpha;", None),
        ("float alpha = (int)2.7f;", None),
        ("int alpha = 2.7;", None),
        ("int alpha = -2;", -2.0),
        ("float alpha = 010;", None),
        ("float alpha = 0.5f; int beta = 2; float gamma = 1.5f;", 0.5),
    ],
)
def test_a_float_is_read_only_as_the_file_gives_it(code, number):
    assert told(launch_beside("", f"{code} k<<<1, 1>>>(x, W, alpha);").number, 2) == number
