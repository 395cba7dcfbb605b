# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Sizes, blocks, kernels and references as a user types them, and the plan that follows from them."""

import math
import re
import tomllib
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_support import Gemm, ladder
from unit_support import build_request, write_transpose_kernel

from gpuprof.commands.texts import choose_kernels, choose_references, parse_blocks
from gpuprof.devices.cards import load_card
from gpuprof.errors import BackendUnavailable, InputError
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.kernel import Ladder
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.measure.case import Case
from gpuprof.measure.execute import measure_case
from gpuprof.measure.request import Selection, check_memory, make_request, plan_cases
from gpuprof.options import read_sim_blocks
from gpuprof.problems.declaration import read_operation
from gpuprof.problems.sizes import parse_sizes
from gpuprof.records import replace
from gpuprof.tables import TableReader

GEMM = ("M", "N", "K")
TRANSPOSE = ("nx", "ny")


def sizes(text, names=GEMM):
    return parse_sizes(text, names)


def request(op, kernels=(), sizes="64", block=None, dtype="f32", **scalars):
    return build_request(shipped_ladder(op), list(kernels), False, sizes, block, dtype, scalars=scalars)


@pytest.mark.parametrize(
    ("read", "made"),
    [
        (lambda: sizes("512X1024x256"), ((512, 1024, 256),)),
        (lambda: sizes(" 128 , 256 "), ((128,) * 3, (256,) * 3)),
        (lambda: sizes("4096,0128"), ((4096,) * 3, (128,) * 3)),
        (lambda: sizes("2048,1024x4096", TRANSPOSE), ((2048, 2048), (1024, 4096))),
        (lambda: parse_blocks("8x32,16X16,256"), ((8, 32, 1), (16, 16, 1), (256, 1, 1))),
        (lambda: parse_blocks("8x8x16"), ((8, 8, 16),)),
        (lambda: parse_blocks(" 8x32 , 8x32x1"), ((8, 32, 1), (8, 32, 1))),
    ],
)
def test_good_sizes_and_blocks(read, made):
    assert read() == made


NO_SIZE = ("12x", "x12", "12xx3", "1k", "12.5", "1e3", "+5", "1_000", "12 34", "١٢", "128;256", "12O")
AT_LEAST_1, MOST = "A size is at least 1.", "a block holds at most 1,024."


@pytest.mark.parametrize(
    ("read", "what", "fix"),
    [
        (lambda: sizes("-5"), "--sizes '-5' is negative.", AT_LEAST_1),
        (lambda: sizes("64x-1x64"), "--sizes '64x-1x64' is negative.", AT_LEAST_1),
        *(
            (partial(sizes, text), f"--sizes {text!r} is not a size.", "Write 4096 or MxNxK, as numbers.")
            for text in NO_SIZE
        ),
        (lambda: sizes("abc", ("n",)), "--sizes 'abc' is not a size.", "Write a number, such as 4096."),
        (
            lambda: sizes("abc", TRANSPOSE),
            "--sizes 'abc' is not a size.",
            "Write 4096 or <nx>x<ny>, as numbers.",
        ),
        (lambda: sizes("1x2"), "--sizes '1x2' has 2 extents; this problem has 3: MxNxK.", "Write one number"),
        *(
            (partial(sizes, text), f"--sizes {text!r} has an empty entry.", "Separate entries by single")
            for text in ("", "128,", "128,,256")
        ),
        (lambda: request("gemm", sizes="0"), "Size 0 has a zero extent.", AT_LEAST_1),
        (lambda: request("gemm", sizes="64x0x64"), "Size 64x0x64 has a zero extent.", AT_LEAST_1),
        (lambda: request("gemm", sizes="2147418113"), "Size 2147418113 is too large.", "Extents go up to 21"),
        *(
            (partial(parse_blocks, text), f"--block {text!r} is not a block.", "Write XxY in threads")
            for text in ("2x2x2x2", "-8x32", "8x", "8*32", "8 x 32")
        ),
        (lambda: parse_blocks("8x32,"), "--block '8x32,' has an empty entry.", "Separate entries by single"),
        (
            lambda: request("gemm", block="1025"),
            f"Block 1025x1 has 1,025 threads; {MOST}",
            "Choose a smaller",
        ),
        (lambda: request("gemm", block="8x8x32"), f"Block 8x8x32 has 2,048 threads; {MOST}", "Choose a"),
        (lambda: request("gemm", block="8x32x0"), "Block 8x32x0 is empty.", "Each extent is at least 1."),
    ],
)
def test_bad_sizes_and_blocks_say_what_and_how(read, what, fix):
    with pytest.raises(InputError) as caught:
        read()
    assert caught.value.what == what
    assert caught.value.fix.startswith(fix)


@pytest.mark.parametrize("parse", [sizes, parse_blocks, read_sim_blocks])
def test_absurdly_long_number_is_refused(parse):
    with pytest.raises(InputError):
        parse("9" * 5000)


@given(st.text(alphabet="0123456789xX,- .", max_size=12))
def test_any_text_gives_usable_sizes_and_blocks_or_a_refusal(text):
    for option in ("sizes", "block"):
        try:
            made = request("gemm", **{"kernels": ["naive"], option: text})
        except InputError:
            continue
        assert all(len(size) == 3 and 1 <= min(size) <= max(size) <= 2147418112 for size in made.sizes)
        assert all(min(block) >= 1 and math.prod(block) <= 1024 for block in made.blocks)
        assert len(made.sizes) == len(set(made.sizes)) >= 1
        assert len(made.blocks) == len(set(made.blocks))


def chosen(operation, texts, everything=False, dtype="f32"):
    """The kernels that a command line chooses."""
    shipped = shipped_ladder(operation)
    selections = make_request(
        shipped,
        choose_kernels(shipped, texts, everything),
        [(8, 8, 8)[: len(shipped.operation.dimensions)]],
        dtype=dtype,
    ).selections
    assert all(selection.params == ({},) for selection in selections)
    return tuple(selection.kernel for selection in selections)


@pytest.mark.parametrize("pattern", ["naive*", "NAIVE*", "[n]aive*"])
def test_a_pattern_names_every_kernel_that_it_fits(pattern):
    assert [kernel.id for kernel in chosen("gemm", [pattern])] == ["naive", "naive_x_rows"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["none*"], r"no gemm kernel 'none\*'"),
        *((names, r"--kernel .* has an empty entry") for names in ([""], ["naive,"], [","], ["naive", " "])),
    ],
)
def test_what_names_no_kernel_is_refused(names, words):
    with pytest.raises(InputError, match=words):
        chosen("gemm", names)


def test_a_file_that_is_called_like_a_kernel_hides_it_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("naive", "mine.cuh"):  # as a compiled program of it may be
        (tmp_path / name).touch()
    assert [kernel.id for kernel in chosen("gemm", ["naive"])] == ["naive"]
    with pytest.raises(InputError, match=r"mine\.cuh is no kernel file"):
        chosen("gemm", ["mine.cuh"])


def test_two_files_of_one_name_are_refused_not_dropped(tmp_path):
    paths = []
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        paths.append(str(write_transpose_kernel(tmp_path / directory, "mine", rung=len(paths))))
    with pytest.raises(InputError) as caught:
        chosen("transpose", paths)
    assert caught.value.what == f"{paths[0]} and {paths[1]} have one id, 'mine'."
    assert caught.value.fix == "Rename one of the files."


def test_block_that_a_named_kernel_cannot_take_is_refused():
    with pytest.raises(InputError, match="reg_2x1 runs with block 32x16 only, not 16x16"):
        request("gemm", ["naive", "reg_2x1"], block="32x16,16x16")


def test_block_that_no_kernel_can_take_is_refused():
    kernels = tuple(kernel for kernel in ladder("gemm") if kernel.id == "reg_2x1")
    with pytest.raises(InputError, match="reg_2x1 runs with block"):
        make_request(
            Ladder(shipped_operation("gemm"), kernels), sizes=[(8, 8, 8)], blocks=[(16, 16, 1), (32, 16, 1)]
        )


@pytest.mark.parametrize("names", [[], ["online", "copy"]])
def test_type_that_no_kernel_is_written_for_is_refused(names):
    refusal = "None of these softmax kernels is written for f16, but for f32 and f64."
    with pytest.raises(InputError, match=refusal):
        request("softmax", names, "8x8", dtype="f16")


@pytest.mark.parametrize(("block", "rows"), [("32,32", "32x1"), ("32,8", "32x1,8x1")])
def test_block_that_is_typed_as_a_list_is_not_run_as_rows(block, rows):
    shape = block.replace(",", "x")
    with pytest.raises(InputError, match=re.escape(f"Write {shape} for one block of that shape, or {rows}.")):
        request("transpose", block=block)


def scaled(kind):
    """A ladder of an operation with one scalar of a type; its kernel is another's, and never compiled."""
    table = f"""
dimensions = ["n"]
default_sizes = "4"
arrays.y = {{ shape = ["n"], role = "out" }}
scalars.s = {{ type = "{kind}", default = 1 }}
work.bytes = "n"
check.y = {{ value = "s * arange(n)", equal = true }}
"""
    operation = read_operation(TableReader(tomllib.loads(table), "operation.toml"), "scaled")
    return Ladder(operation, (replace(ladder("transpose")[0], dtypes=("f16",)),))


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [
        ("u32", (0, 1, 2**32 - 1), (-1, 0.5, 2**32)),
        ("i32", (0, -1, 2**31 - 1, 1 - 2**31), (-0.5, 2**31)),
        ("f32", (0.5, -0.5, 3.4e38), (3.5e38, -3.5e38)),
        ("real", (0.5, -65504.0), (65505.0,)),
    ],
)
def test_scalar_is_a_number_that_its_type_holds(kind, fits, does_not):
    for value in fits:
        assert make_request(scaled(kind), scalars={"s": value}).scalars == {"s": value}
    for value in does_not:
        with pytest.raises(InputError, match=r"is not a number of type|is too large for"):
            make_request(scaled(kind), scalars={"s": value})


def test_plan_goes_size_by_size_then_rung_by_rung():
    cases = plan_cases(request("gemm", ["reg_2x1,naive"], "64,32x48x16", dtype="f64", alpha=2.0, beta=0.5))
    sizes = ("64", "32x48x16")
    planned = [(name, size) for size in sizes for name in ("naive", "reg_2x1")]
    assert [(case.name, case.problem.label) for case in cases] == planned
    assert cases[2].problem == Gemm(32, 48, 16, "f64", "row", 2.0, 0.5)
    assert [case.block for case in cases[:2]] == [(32, 32, 1), (32, 16, 1)]


def test_plan_runs_every_kernel_with_every_block_that_it_allows():
    cases = plan_cases(request("transpose", block="8x32,16x16"))
    blocks = {
        kernel.id: [case.block for case in cases if case.name == kernel.id] for kernel in ladder("transpose")
    }
    assert blocks["naive_col"] == [(8, 32, 1), (16, 16, 1)]
    for kernel in ladder("transpose"):
        if kernel.any_block:
            assert blocks[kernel.id] == [(8, 32, 1), (16, 16, 1)], kernel.id


def test_size_beyond_memory_names_needed_and_available():
    problems = [Gemm(64, 64, 64), Gemm(32768, 32768, 32768)]
    check_memory(problems, (1000, 24 * 2**30), 24 * 2**30)
    with pytest.raises(InputError) as caught:
        check_memory(problems, (1000, 36 * 2**30), 24 * 2**30)
    assert caught.value.what == (
        "Size 32768 needs 36.0 GiB of memory (12.0 GiB for its arrays, the rest to verify them);"
        " there are 24.0 GiB."
    )
    assert caught.value.fix == "Choose a smaller size."


def test_one_variant_of_a_file_is_named_behind_it(tmp_path):
    path = tmp_path / "sgemm.cu"
    head = 'operation = "gemm"\narguments = ["M", "N", "K", "A", "B", "C"]\n[parameters]\nBM = 8\n'
    launch = '[launch]\nblock = [32]\ngrid = ["1"]\n'
    variants = "".join(f'[[variants]]\nid = "{name}"\n' for name in ("plain", "tiled"))
    path.write_text(f"/*gpuprof\n{head}{launch}{variants}*/\n__global__ void sgemm() {{}}\n")
    shipped = shipped_ladder("gemm")

    def named(text):
        return [(one.kernel.id, one.params) for one in choose_kernels(shipped, [text], False)]

    assert named(f"{path}") == [("plain", ({},)), ("tiled", ({},))]
    assert named(f"{path}:tiled") == [("tiled", ({},))]
    assert named(f"{path}:tiled:BM=4|8") == [("tiled", ({"BM": 4}, {"BM": 8}))]
    with pytest.raises(InputError, match="There is no gemm kernel 'tilde'") as caught:
        named(f"{path}:tilde")
    assert caught.value.fix == "Did you mean tiled?"


@pytest.mark.parametrize(
    ("types", "dtype"),
    [([("f16",), ("f16", "bf16")], "f16"), ([("f16",), ("f32",)], "f32"), ([("f64",)], "f64")],
)
def test_without_a_type_a_run_has_the_one_its_kernels_are_written_for(types, dtype):
    ladder = shipped_ladder("transpose")
    kernels = tuple(replace(one, dtypes=each) for one, each in zip(ladder.kernels, types, strict=False))
    assert make_request(replace(ladder, kernels=kernels), dtype="auto").dtype == dtype
    assert make_request(ladder, [Selection(kernel) for kernel in kernels], dtype="auto").dtype == dtype


def test_a_kernel_takes_256_sets_of_parameters():
    def depths(*ranges):
        texts = ["reg_8x8:BK=" + "|".join(map(str, depths)) for depths in ranges]
        return choose_kernels(shipped_ladder("gemm"), texts, False)

    (selection,) = depths(range(256))
    assert len(selection.params) == 256
    with pytest.raises(InputError, match=r"would run with 257 sets of parameters \(257\); a run takes 256"):
        depths(range(257))
    halves = depths(range(1, 151), range(1000, 1150))
    with pytest.raises(InputError, match=r"would run with 300 sets of parameters; a run takes 256"):
        make_request(shipped_ladder("gemm"), halves, [(64, 64, 64)])


@pytest.mark.parametrize(
    ("op", "text", "ids"),
    [
        ("gemm", "vendor", ["cublas", "cublaslt", "cublaslt_tn"]),
        ("gemm", "cpu", ["numpy"]),
        ("gemm", "all", ["cublas", "cublaslt", "cublaslt_tn", "numpy"]),
        ("gemm", "none", []),
        ("transpose", "vendor", ["cublas_geam", "device_copy"]),
        ("transpose", "cpu", []),
    ],
)
def test_words_choose_references(op, text, ids):
    assert [reference.id for reference in choose_references(shipped_operation(op), text)] == ids


def test_unknown_word_is_refused():
    with pytest.raises(InputError, match="'cublass' is not a reference"):
        choose_references(shipped_operation("gemm"), "cublass")


@pytest.mark.parametrize(
    ("op", "dtype", "ids"),
    [
        ("gemm", "f32", ["cublas"]),
        ("gemm", "f64", ["cublas"]),
        ("gemm", "bf16", ["cublaslt"]),
        ("gemm", "float16", ["cublaslt"]),
        ("gemm", "tf32", ["cublaslt"]),
        ("gemm", "e4m3", ["cublaslt_tn"]),
        ("transpose", "f64", ["cublas_geam", "device_copy"]),
    ],
)
def test_each_reference_runs_in_its_types(op, dtype, ids):
    made = build_request(shipped_ladder(op), [], True, "64", None, dtype, references="vendor")
    assert [reference.id for reference in made.references] == ids


def test_references_come_last_at_each_size_and_only_where_there_is_a_gpu():
    request = build_request(
        shipped_ladder("gemm"), ["naive", "col_naive"], False, "64,128", None, "f32", references="all"
    )
    assert not any(case.is_reference for case in plan_cases(request))
    planned = [(case.name, case.problem.label) for case in plan_cases(request, references=True)]
    assert planned == [
        *(("naive", "64"), ("col_naive", "64"), ("cublas", "64"), ("numpy", "64")),
        *(("naive", "128"), ("col_naive", "128"), ("cublas", "128"), ("numpy", "128")),
    ]


class WithoutLibrary:
    device = load_card("h200")

    def run_reference(self, name, problem):
        raise BackendUnavailable("cuBLAS is not installed.", fix="Install it.")


def test_missing_library_is_one_skipped_row():
    case = Case("cublas", Gemm(8, 8, 8), (1, 1, 1))
    measurement, lost = measure_case(case, WithoutLibrary(), None)
    assert not lost
    assert measurement.outcome == "skipped"
    assert measurement.reason == "cuBLAS is not installed. Install it."
    assert measurement.is_reference
