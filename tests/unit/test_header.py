# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernel headers: the smallest one that works, every way to get one wrong, and the shipped ladders."""

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from each import each
from problem_support import find_kernel, ladder, problem_for, shipped_kernels
from unit_support import MINIMAL, build_request, parse_kernel, write_transpose_kernel

from gpuprof.devices.cards import load_card
from gpuprof.errors import CaseSkipped, ExitCode, HeaderError
from gpuprof.kernels import catalog, shipped
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.header import minimal_header, read_kernels
from gpuprof.kernels.kernel import Requirement
from gpuprof.kernels.shape import configure
from gpuprof.kernels.shipped import KERNEL_ROOT, shipped_operation
from gpuprof.measure.request import plan_cases
from gpuprof.records import replace
from gpuprof.results import PublishedFigure

PATH = Path("kernels/mine.cu")
SHIPPED = shipped_kernels()

#: Ids and published names of Studies A and E, and the block each runs with.
STUDIES = {
    "gemm": {
        "naive": ("gemmOnGPU2D", (32, 32, 1)),
        "smem_panel": ("gemmOnGPU2DShareMem", (32, 32, 1)),
        "smem_tiled": ("gemmOnGPU2DShareMemV2", (32, 32, 1)),
        "reg_2x1": ("gemmOnGPU2DRegMem", (32, 16, 1)),
    },
    "transpose": {
        "copy_row": ("copyRow", (16, 16, 1)),
        "copy_col": ("copyCol", (16, 16, 1)),
        "naive_row": ("transposeNaiveRow", (16, 16, 1)),
        "naive_col": ("transposeNaiveCol", (16, 16, 1)),
        "unroll4_row": ("transposeUnroll4Row", (16, 16, 1)),
        "unroll4_col": ("transposeUnroll4Col", (16, 16, 1)),
        "diagonal_row": ("transposeDiagonalRow", (16, 16, 1)),
        "diagonal_col": ("transposeDiagonalCol", (16, 16, 1)),
    },
}


def header(extra="", launch="", op="gemm", **replaced):
    """A minimal header with lines added, and lines that start with a key replaced."""
    lines = MINIMAL[op].splitlines()
    for key, line in replaced.items():
        (position,) = (i for i, text in enumerate(lines) if text.startswith(f"{key} ="))
        lines[position] = line
    top = lines.index("[launch]")
    return "\n".join([*lines[:top], extra, *lines[top:-1], launch, lines[-1], ""])


def said(error):
    """An error's sentence with the file in front, without the line in it."""
    assert re.match(rf"{re.escape(str(PATH))}:[0-9]+: ", error.what)
    return re.sub(":[0-9]+: ", ": ", error.what, count=1)


def refusal(source, asked=None):
    with pytest.raises(HeaderError) as caught:
        parse_kernel(source, PATH, asked)
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    return caught.value


def test_a_list_of_values_belongs_to_the_candidates():
    assert refusal(header(extra="parameters = { TILE = [8, 16] }")).fix.endswith(
        "[candidates]: TILE = [8, 16]."
    )


def test_minimal_header_gets_defaults():
    kernel = parse_kernel(MINIMAL["gemm"] + "body", PATH)
    assert (kernel.id, kernel.entries[0], kernel.operation, kernel.title) == ("mine", "mine", "gemm", "Mine")
    assert kernel.block == (32, 32, 1)
    assert kernel.launches[0].grid == ("cdiv(N, block_x)", "cdiv(M, block_y)", "1")
    assert kernel.launches[0].dynamic_shared_bytes == "0"
    assert not kernel.any_block
    assert (kernel.dtypes, kernel.options, kernel.aliases) == (("f32",), {}, ())
    assert (kernel.parameters, kernel.constants) == ({}, {})
    assert (kernel.requirements, kernel.published, kernel.compile_options) == ((), (), ())
    assert (kernel.moves, kernel.after, kernel.poison_inout) == ({}, "", True)
    assert parse_kernel(header(title=""), PATH).title == "mine"
    assert parse_kernel(header(op="transpose", problem=""), PATH, "transpose").operation == "transpose"
    assert all(kernel.rung > shipped.rung for shipped in SHIPPED)


def test_every_field_is_read():
    text = header(
        extra='rung = 15\nidea = "i"\nchange = "c"\nbottleneck = "b"\nstudy = "Z"\nreference = "r"\n'
        'aliases = ["one", "two"]\nlayout = "col"\ndtypes = ["f64", "f32"]\nentry = "other"\n'
        'compile_options = ["--use_fast_math"]\nafter = "naive"\npoison_inout = false\n'
        'moves = { shared_load_wavefronts = "falls", registers_per_thread = "rises", barriers = "stays" }\n'
        "parameters = { TILE = 32 }\n"
        'require = [{ condition = "M % TILE == 0", because = "M must fit" }]\n'
        'published = [{ size = "128", time_ms = 2, note = "n" }, { size = "4096" }]',
        launch='any_block = true\ncooperative = true\ndynamic_shared_bytes = "TILE * real_bytes"',
    )
    kernel = parse_kernel(text, PATH)
    assert kernel.rung == 15.0
    assert (kernel.idea, kernel.change, kernel.bottleneck) == ("i", "c", "b")
    assert (kernel.study.name, kernel.reference) == ("Z", "r")
    assert (kernel.aliases, kernel.options) == (("one", "two"), {"layout": "col"})
    assert kernel.dtypes == ("f64", "f32")
    assert (kernel.entries[0], kernel.compile_options) == ("other", ("--use_fast_math",))
    assert (kernel.after, kernel.poison_inout) == ("naive", False)
    assert kernel.moves == {
        "shared_load_wavefronts": "falls",
        "registers_per_thread": "rises",
        "barriers": "stays",
    }
    assert kernel.parameters == {"TILE": 32}
    assert kernel.requirements == (Requirement("M % TILE == 0", "M must fit"),)
    assert kernel.published == (PublishedFigure("128", 2.0, "n"), PublishedFigure("4096", None, ""))
    assert kernel.any_block
    assert kernel.launches[0].cooperative
    assert kernel.launches[0].dynamic_shared_bytes == "TILE * real_bytes"


@pytest.mark.parametrize("source", ["", "int main() {}", "/* plain */", "// gpuprof", "/*gpuprofile */"])
def test_missing_header_says_what_to_start_the_file_with_or_the_command_that_writes_one(source):
    error = refusal(source, "transpose")
    assert error.what == refusal(source).what == f"{PATH} has no /*gpuprof … */ header at its top."
    assert error.fix == minimal_header(shipped_operation("transpose"))
    assert f"gpuprof new {PATH} START.cu" in refusal(source).fix


def test_only_comments_stand_above_a_header():
    licence = "/*\n * Copyright\n */\n// and a word\n"
    assert parse_kernel(licence + MINIMAL["gemm"], PATH).title == parse_kernel(MINIMAL["gemm"], PATH).title
    assert (
        refusal(f"{licence}int x;\n" + MINIMAL["gemm"]).what
        == f"{PATH}:6: the header stands below code: move it up."
    )
    for begin in ("/* gpuprof", "/**gpuprof", "/*\ngpuprof"):
        text = f"{licence}{MINIMAL['gemm'].replace('/*gpuprof', begin)}"
        assert refusal(text).what == f"{PATH}:5: the header must begin with /*gpuprof."


def test_header_without_an_end_is_told_so_where_it_starts():
    error = refusal("// one\n/*gpuprof\ntitle='x'\n__global__ void mine() {}", "transpose")
    assert error.what == f"{PATH}:2: the header that starts here has no end."
    assert "Write */" in error.fix


@pytest.mark.parametrize(
    ("text", "line", "told", "fix"),
    [
        ('title = "x', 3, "Illegal character '\\n'", 'title = "x\n            ^'),
        ("id = x", 3, "Invalid value", "id = x\n       ^ Write a number, true, false, or text in quotes."),
        ("title", 3, "Expected '=' after a key in a key/value pair", "title\n       ^"),
        ("title = 1\ntitle = 2\nid = 3", 4, "Cannot overwrite a value", "title = 2\n           ^"),
        (f"title = {'9' * 5000}", 2, "Exceeds the limit", ""),
    ],
)
def test_broken_toml_names_the_line_and_shows_where(text, line, told, fix):
    error = refusal(f"// one\n/*gpuprof\n{text}\n*/")
    assert error.what.startswith(f"{PATH}:{line}: the header is not TOML: {told}")
    assert error.fix == fix


@pytest.mark.parametrize(
    ("field", "where", "fix"),
    [
        ("problem", "operation", 'Write:\noperation = "my_copy"'),
        ("arguments", "arguments", 'Write:\narguments = ["M", "N", "K", "alpha", "beta", "A", "B", "C"]'),
        ("block", "launch.block", "Write under [launch]:\nblock = [32, 8]"),
        ("grid", "launch.grid", 'Write under [launch]:\ngrid = ["cdiv(N, block_x)", "cdiv(M, block_y)"]'),
    ],
)
def test_missing_field_is_named_with_the_lines_to_add(field, where, fix):
    error = refusal(header(**{field: ""}))
    assert said(error) == f"{PATH}: the header lacks {where}."
    assert error.fix == fix


def test_a_header_that_says_nothing_is_shown_a_whole_one():
    assert refusal("/*gpuprof\n*/\n").fix.startswith("Start the file with:\n/*gpuprof\n")


@pytest.mark.parametrize(("field", "written"), [("arguments =", "argument"), ("block =", "blok")])
def test_missing_field_that_is_there_with_a_typo_is_proposed(field, written):
    error = refusal(MINIMAL["gemm"].replace(field, f"{written} =", 1))
    assert error.fix == f"It has {written}: did you mean {field.split()[0]}?"


def test_field_of_the_header_that_stands_in_a_table_is_told_where_it_belongs():
    error = refusal(MINIMAL["gemm"].replace("*/", "rung = 3\n*/", 1))
    assert said(error) == f"{PATH}: the header has an unknown field launch.rung."
    assert error.fix.startswith("launch takes any_block, block, ")
    assert error.fix.endswith("; fields of the header itself stand above its first [table].")


def test_kernel_beside_an_operation_is_told_how_its_folder_runs(tmp_path):
    (tmp_path / "operation.toml").touch()
    with pytest.raises(HeaderError) as caught:
        parse_kernel(header(problem=""), tmp_path / "mine.cu")
    assert caught.value.what.endswith("the header lacks operation.")
    assert caught.value.fix.endswith(f": gpuprof run {tmp_path} -k mine")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (header(title="title = 3"), "title must be a string, not 3"),
        (header(problem='problem = "fft"'), "problem is 'fft': there is no operation 'fft'"),
        (header(problem="problem = ['gemm']"), "problem must be a string"),
        (header(arguments='arguments = ["M", "D"]'), "arguments names 'D', not one of M, N, K, alpha,"),
        (header(op="transpose", arguments='arguments = ["A"]'), "arguments names 'A', not one of nx, ny,"),
        (header(arguments="arguments = [1.5]"), "arguments must be a list of integers and formulas"),
        (header(arguments='arguments = "M"'), "arguments must be a list"),
        (header(extra='rung = "1"'), "rung must be a number, not '1'"),
        (header(extra="rung = true"), "rung must be a number, not True"),
        (header(extra="rung = nan"), "rung"),
        (header(extra="aliases = 'x'"), "aliases must be a list"),
        (header(extra="layout = 'diagonal'"), "layout is 'diagonal', not one of row, col"),
        (header(extra="dtypes = ['f32', 'f8']"), "dtypes has 'f8', not one of f32, f64, f16, bf16"),
        (header(extra="dtypes = []"), "dtypes"),
        (header(extra="entry = 'a-b'"), "entry must name a function, such as sgemm, or an instance such as"),
        (header(extra="entry = ''"), "entry must name a function"),
        (header(extra="result = 'copie'", op="transpose"), "result is 'copie', not one of transpose, copy"),
        (header(extra="result = 'copy'"), "the header has an unknown field result"),
        (header(extra=f"rung = 1{'0' * 400}"), "rung must be a number"),
        (header(extra="compile_options = [3]"), "compile_options must be a list of strings"),
        (header(extra="after = 'mine'"), "after is 'mine', this kernel itself"),
        (header(extra="moves = 'falls'"), "moves must be a table"),
        (header(extra="moves = { shared_wavefronts = 'falls' }"), "moves names 'shared_wavefronts', not"),
        (header(extra="moves = { barriers = 'drops' }"), "moves.barriers is 'drops', not one of falls,"),
        (header(extra="moves = { barriers = ['falls'] }"), "moves.barriers is ['falls'], not one of falls,"),
        (header(extra="parameters = 3"), "parameters must be a table"),
        (header(extra="parameters = { TILE = 'x' }"), "parameters.TILE must name an integer, not 'x'"),
        (
            header(extra="parameters = { TILE = [8, 16] }"),
            "parameters.TILE must name an integer, not [8, 16]",
        ),
        (header(extra="parameters = { TILE = true }"), "parameters.TILE must name an integer, not True"),
        (header(extra="parameters = { 'T-ILE' = 3 }"), "parameters.T-ILE must be a name of letters"),
        (header(extra="parameters = { BM = 9223372036854775808 }"), "parameters.BM must name an integer"),
        (header(extra="require = 'M > 3'"), "require must be a list"),
        (header(extra="[variants.small]"), "variants must be a list of tables: [[variants]] begins each"),
        (header(extra="require = [3]"), "require"),
        (header(extra="require = [{ condition = 'M > 3' }]"), "the header lacks require.because"),
        (header(extra="require = [{ because = 'x' }]"), "the header lacks require.condition"),
        (header(extra="require = [{ condition = 3, because = 'x' }]"), "require.condition must be a string"),
        (header(extra="published = [{ time_ms = 3 }]"), "the header lacks published.size"),
        (header(extra="published = [{ size = '1', time_ms = 'x' }]"), "published.time_ms must be a number"),
        (header(extra="published = [{ size = '1', time_ms = nan }]"), "published.time_ms"),
        (header(extra="published = [{ size = '1', time_ms = -1.0 }]"), "published.time_ms is -1.0: expected"),
        (header(block="block = 32"), "launch.block must be a list"),
        *(
            (header(block=f"block = {block}"), "launch.block must be one to three positive integers")
            for block in ("[]", "[1, 2, 3, 4]", "[0, 32]", "[-1, 32]", "[2147483648]", "[1.5]", "[true, 32]")
        ),
        (header(grid="grid = []"), "launch.grid must be one to three integers or formulas"),
        (header(grid="grid = ['1', '1', '1', '1']"), "launch.grid must be one to three integers or formulas"),
        (header(grid="grid = [true]"), "launch.grid must be a list of integers and formulas"),
        (header(launch="any_block = 1"), "launch.any_block must be true or false, not 1"),
        (header(extra="poison_inout = 'no'"), "poison_inout must be true or false, not 'no'"),
        *((header(grid=f'grid = ["{text}"]'), "") for text in ("M +", "M / 2", "__import__('os')")),
        (header(grid='grid = ["cdiv(Q, block_x)"]'), "uses 'Q'; known are K, M, N, arch, block_x, block_y"),
        (header(launch='dynamic_shared_bytes = "Q"'), "uses 'Q'; known are K, M, N, arch, block_x, block_y"),
        (header(extra="require = [{ condition = 'Q > 1', because = 'x' }]"), "uses 'Q'; known are K, M, N,"),
        *(
            (source, f"the header has an unknown field {field}.")
            for source, field in (
                (header(extra="blok = 3"), "blok"),
                (header(launch="shared = 3"), "launch.shared"),
                (header(extra="require = [{ condition = '1', because = 'x', why = 'y' }]"), "require.why"),
                (header(extra="published = [{ size = '1', ms = 3 }]"), "published.ms"),
            )
        ),
        (
            header(launch="dynamic_shared_bytes = true"),
            "launch.dynamic_shared_bytes must be a string, not True",
        ),
        (
            header(launch="dynamic_shared_bytes = 'M / 2'"),
            "'M / 2' is not allowed in a formula of whole numbers: + - * // % **, comparisons",
        ),
        (
            header(launch="dynamic_shared_bytes = '1.5'"),
            "max; an argument with a fraction is one of [scalars]",
        ),
    ],
)
def test_wrong_field_names_the_file_and_the_field(source, words):
    error = refusal(source)
    assert said(error).startswith(f"{PATH}: ")
    assert words in error.what


VARIANTS = header(
    extra="""entry = "one"
parameters = { TILE = 8 }
define = { FAST = 1, SLOW = 2 }
[[variants]]
id = "plain"
[[variants]]
id = "wide"
entry = "two<TILE, real>"
arguments = ["M", "N", "A", "B", "C"]
dtypes = ["f32", "f64"]
parameters = { TILE = 16 }
define = { FAST = 3, OTHER = true }
launch = { block = [64], grid = ["cdiv(M, TILE)"], any_block = true }
require = [{ condition = "M % TILE == 0", because = "{id} needs whole tiles" }]
[[variants]]
id = "tall"
launch = { block = [8, 128] }"""
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('entry = "two<TILE, real>"', 'entry = "two<"', "entry must name a function"),
        ('["M", "N", "A", "B", "C"]', '["M", "Q"]', "arguments names 'Q'"),
        ('dtypes = ["f32", "f64"]', 'dtypes = ["f8"]', "dtypes has 'f8'"),
        ("FAST = 3", "TILE = 3", "define.TILE is a parameter of this file"),
        ("block = [64]", "block = [0]", "launch.block must be one to three positive"),
        ("any_block = true", "any_blocks = true", "unknown field variants.launch.any_blocks"),
        ("cdiv(M, TILE)", "cdiv(M, TILES)", "uses 'TILES'"),
        ('condition = "M % TILE == 0"', 'condition = "Q"', "uses 'Q'"),
        # And where else it stands.
        ("block = [64]", 'block = ["TILE", 4]', "A block of formulas stands in [[launches]]"),
        ("parameters = { TILE = 8 }\n", "", "is not a parameter of this file. Name it with its default"),
        ("parameters = { TILE = 16 }", "parameters = { T = 1 }", "those are TILE. Name it with its default"),
    ],
)
def test_faulty_variant_is_named(old, new, words):
    assert VARIANTS.count(old) == 1
    error = refusal(VARIANTS.replace(old, new))
    assert words in f"{error.what} {error.fix}"


@pytest.mark.parametrize("left", ["block = [32, 8]", 'grid = ["cdiv(M, 32)"]'])
def test_what_the_launch_of_a_file_leaves_out_each_variant_says(left):
    said = {"block": "block = [32, 8]", "grid": 'grid = ["cdiv(M, 32)"]'}
    kept = next(line for line in said.values() if line != left)
    source = header(
        extra='entry = "one"',
        launch=f"""[[variants]]
id = "whole"
launch = {{ {left} }}
[[variants]]
id = "bare"
""",
        **{name: line if line == kept else "" for name, line in said.items()},
    )
    error = refusal(source)
    assert error.what.endswith(f"the header lacks variants.launch.{left.partition(' ')[0]}.")
    ladder = read_kernels(source.replace('"bare"', f'"bare"\nlaunch = {{ {left} }}'), PATH)
    for kernel in ladder.kernels:
        (launch,) = kernel.launches
        assert (launch.block, launch.grid) == (("32", "8", "1"), ("cdiv(M, 32)", "1", "1"))


# The shipped ladders.


@pytest.mark.parametrize("op", STUDIES)
def test_studies_are_complete_and_stand_in_their_order(op):
    kernels = {kernel.id: kernel for kernel in ladder(op)}
    for name, (alias, block) in STUDIES[op].items():
        assert alias in kernels[name].aliases
        assert kernels[name].block == block
    assert [name for name in kernels if name in STUDIES[op]] == list(STUDIES[op])


@pytest.mark.parametrize("op", STUDIES)
def test_every_file_holds_a_kernel_named_like_it_or_variants_that_begin_so(op):
    files = sorted(path.name for path in (KERNEL_ROOT / op).glob("*.cu"))
    held = {name: [kernel.id for kernel in ladder(op) if kernel.file_name == name] for name in files}
    assert sum(map(len, held.values())) == len(ladder(op))
    for name, ids in held.items():
        stem = name.removesuffix(".cu")
        assert ids == [stem] or (len(ids) > 1 and all(f"{one}_".startswith(f"{stem}_") for one in ids)), name


@pytest.mark.parametrize("op", STUDIES)
def test_rungs_are_strictly_ordered_and_names_unique_in_any_case(op):
    rungs = [kernel.rung for kernel in ladder(op)]
    assert all(low < high for low, high in pairwise(rungs))
    names = [name.lower() for kernel in ladder(op) for name in (kernel.id, *kernel.aliases)]
    assert len(names) == len(set(names))


@each(kernel=SHIPPED)
def test_shipped_kernel_says_what_a_report_shows(kernel):
    assert kernel in ladder(kernel.operation)
    assert all((kernel.title, kernel.idea, kernel.change, kernel.bottleneck))
    included = re.findall(r'^#include "(\w+\.cuh?)"', kernel.source, re.MULTILINE)
    folders = (KERNEL_ROOT / kernel.operation, KERNEL_ROOT / "shared")
    files = [next(p for f in folders if (p := f / name).is_file()).read_text("utf-8") for name in included]
    assert all(f"{entry}(" in "".join([kernel.source, *files]) for entry in kernel.entries)
    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    assert threads <= 1024
    assert kernel.source.startswith("// SPDX-FileCopyrightText: The gpuprof developers\n")


# What a kernel that chooses moves depends on its choice: the format has no word for that.
@each(kernel=[one for one in SHIPPED if not one.choices])
def test_shipped_kernel_says_what_its_step_moves(kernel):
    study = [other for other in ladder(kernel.operation) if kernel.study.name and other.study == kernel.study]
    first = next(other for other in ladder(kernel.operation) if {*other.dtypes} & {*kernel.dtypes})
    assert kernel.moves or kernel in (first, *study[:1])
    assert bool(kernel.after) == bool(kernel.moves)


@pytest.fixture
def kernel_root(tmp_path, monkeypatch):
    """A copy of the ladders that a test may add to."""
    root = tmp_path / "kernels"
    for op in STUDIES:
        shutil.copytree(KERNEL_ROOT / op, root / op)
    for module in (catalog, shipped):
        monkeypatch.setattr(module, "KERNEL_ROOT", root)
    shipped_ladder.cache_clear()
    shipped_operation.cache_clear()
    yield root
    shipped_ladder.cache_clear()
    shipped_operation.cache_clear()


def test_one_new_file_is_all_a_new_kernel_takes(kernel_root):
    write_transpose_kernel(kernel_root / "transpose", "brand_new", rung=35)
    ids = [kernel.id for kernel in ladder("transpose")]
    assert ids.index("naive_row") + 1 == ids.index("brand_new") == ids.index("naive_col") - 1
    assert find_kernel("transpose", "Brand_New").title == "brand_new"
    request = build_request(shipped_ladder("transpose"), [], True, "64", None, "f32")
    assert [case.name for case in plan_cases(request)] == ids


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('after = "naive"', ": after of other is 'naive', not one of bulk_tile, copy_col, "),
        ('aliases = ["COPYROW"]', r"other\.cu and .*copy_row\.cu both use the name 'COPYROW'\."),
    ],
)
def test_a_name_that_does_not_fit_the_ladder_is_refused(kernel_root, line, words):
    path = kernel_root / "transpose" / "other.cu"
    path.write_text(MINIMAL["transpose"].replace('title = "Mine"', f'title = "x"\n{line}'))
    with pytest.raises(HeaderError, match=words):
        ladder("transpose")


def test_choice_of_a_kernel_that_chooses_is_refused(kernel_root):
    for name, chosen in (("first", "second"), ("second", "naive_row")):
        path = kernel_root / "transpose" / f"{name}.cu"
        entry = f'[[choose]]\nkernel = "{chosen}"\nwhen = "1"'
        path.write_text(f'/*gpuprof\ntitle = "x"\nproblem = "transpose"\n{entry}\n*/\n')
    with pytest.raises(HeaderError, match=r"first\.cu: choose\.kernel is 'second', which chooses "):
        ladder("transpose")
    (kernel_root / "transpose" / "first.cu").unlink()
    assert any(kernel.id == "second" for kernel in ladder("transpose"))


def test_a_constant_may_follow_from_the_problem():
    device = load_card("h200")
    kernel = parse_kernel(
        header(extra="constants = { TILE = 4, TWICE = '2 * TILE', DEPTH = '2 * cdiv(K, TWICE) - 1' }"), PATH
    )
    assert (kernel.constants, list(kernel.derived)) == ({"TILE": 4}, ["TWICE", "DEPTH"])
    kernel = replace(kernel, source=f"{kernel.source} DEPTH", requirements=(Requirement("DEPTH == 3", "no"),))
    shape = configure(kernel, problem_for(kernel, 8, 8, 10), kernel.block, {}, device)
    assert dict(shape.defines)["DEPTH"] == "3"
    with pytest.raises(CaseSkipped, match="no"):
        configure(kernel, problem_for(kernel, 8, 8, 17), kernel.block, {}, device)
    for constant, complaint in (
        ("DEPTH = 'Z'", "uses 'Z'"),
        ("DEPTH = 'LATER', LATER = 'K'", "uses 'LATER'"),
        ("M = 'K'", "something else"),
        ("'a b' = 'K'", "as C takes it"),
    ):
        assert complaint in refusal(header(extra=f"constants = {{ {constant} }}")).what
