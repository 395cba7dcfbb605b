# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Finding a kernel by what a user types, and headers that choose one by size and device."""

import math
import random
import re
from pathlib import Path

import pytest
from problem_support import Gemm, find_kernel, ladder
from unit_support import DEVICE, load_kernel, named_kernel, parse_kernel, write_transpose_kernel

from gpuprof.devices.cards import cards, load_card
from gpuprof.errors import CaseSkipped, ExitCode, HeaderError, InputError
from gpuprof.kernels import shape
from gpuprof.kernels.catalog import check_ladder, shipped_ladder
from gpuprof.kernels.header import entry_in_header
from gpuprof.kernels.shape import check_block, configure
from gpuprof.kernels.shipped import shipped_names
from gpuprof.measure.case import Case, credited, resolve, unmeasured
from gpuprof.measure.request import Selection, make_request, plan_cases
from gpuprof.records import replace
from gpuprof.results import Choice, SourceLine

PATH = Path("kernels/mine.cu")


def chooser(*choices, extra="", op="gemm", below=""):
    """A header-only file with (kernel, condition) pairs."""
    entries = "\n".join(f"[[choose]]\nkernel = '{kernel}'\nwhen = '{when}'" for kernel, when in choices)
    return f'/*gpuprof\ntitle = "Mine"\nproblem = "{op}"\n{extra}\n{entries}\n*/\n{below}'


def write(directory, *choices, **fields):
    path = directory / "mine.cu"
    path.write_text(chooser(*choices, **fields))
    return path


def choose(kernel, problem, device):
    """What a kernel picks among those of its ladder."""
    return shape.choose(kernel, ladder(kernel.operation), problem, device)


def refusal(source):
    with pytest.raises(HeaderError) as caught:
        parse_kernel(source, PATH)
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert caught.value.what.startswith(str(PATH))
    return caught.value.what


# The header.


def test_choices_are_read_in_their_order():
    kernel = parse_kernel(chooser(("naive", "M < 64"), ("reg_8x8", "1"), below="// no code\n"), PATH)
    assert kernel.choices == (Choice("naive", "M < 64"), Choice("reg_8x8", "1"))
    assert (kernel.id, kernel.title, kernel.options) == ("mine", "Mine", {})
    assert (kernel.launches, kernel.dtypes, kernel.parameters) == ((), (), {})


def test_a_choice_of_several_kernels_is_one_of_each_in_their_order():
    extra = (
        "choose = [{ kernel = ['streamk', 'naive'], when = 'M > 8', because = 'Measured.', least = 'BM' }]"
    )
    kernel = parse_kernel(chooser(extra=extra), PATH)
    assert kernel.choices == tuple(Choice(name, "M > 8", "Measured.", "BM") for name in ("streamk", "naive"))


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("arguments", 'arguments = ["M"]'),
        ("launch", 'launch = { block = [32], grid = ["1"] }'),
        ("entry", 'entry = "mine"'),
        ("parameters", "parameters = { TILE = 32 }"),
        ("tensor_maps", 'tensor_maps = { A_map = { array = "A", box = ["16", "16"] } }'),
        ("require", 'require = [{ condition = "1", because = "x" }]'),
        ("dtypes", 'dtypes = ["f32"]'),
        ("compile_options", 'compile_options = ["--use_fast_math"]'),
        ("constants", "constants = { TILE = 32 }"),
        ("variants", 'variants = [{ id = "one" }]'),
        ("moves", 'moves = { barriers = "falls" }'),
        ("after", 'after = "naive"'),
    ],
)
def test_what_the_chosen_kernel_brings_is_refused_by_name(field, line):
    what = refusal(chooser(("naive", "1"), extra=line))
    end = f": {field} does not go with choose: the chosen kernel brings its own."
    assert re.fullmatch(rf"{re.escape(str(PATH))}:[0-9]+{re.escape(end)}", what)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("choose = []", "choose must name at least one kernel."),
        ("choose = 'naive'", "choose must be a list, not 'naive'."),
        ("choose = ['naive']", "choose must be a list of tables"),
        ("choose = [{ kernel = 'naive' }]", "the header lacks choose.when."),
        ("choose = [{ when = '1' }]", "the header lacks choose.kernel."),
        ("choose = [{ kernel = 1, when = '1' }]", "choose.kernel must be a string, not 1."),
        ("choose = [{ kernel = [], when = '1' }]", "choose.kernel must name a kernel"),
        ("choose = [{ kernel = [1], when = '1' }]", "choose.kernel must be a list of strings, not [1]."),
        ("choose = [{ kernel = 'naive', when = 1 }]", "choose.when must be a string, not 1."),
        ("choose = [{ kernel = 'naive', when = '1', least = 'TN *' }]", "'TN *' is not an expression"),
        ("choose = [{ kernel = 'naive', when = '1', if = '2' }]", "an unknown field choose.if."),
        *(
            (
                f"choose = [{{ kernel = 'naive', when = '{name} < 4' }}]",
                f"uses '{name}'; known are K, M, N, arch",
            )
            for name in ("block_x", "threads", "TM", "nx", "clock")
        ),
    ],
)
def test_malformed_choice_is_refused(extra, words):
    assert words in refusal(chooser(extra=extra))


def test_code_below_a_header_that_chooses_is_refused():
    assert "would never run" in refusal(chooser(("naive", "1"), below="int x; // y\n"))


# A file of one's own.


def test_file_of_ones_own_may_choose_among_shipped_kernels(tmp_path):
    kernel = named_kernel("gemm", write(tmp_path, ("naive", "1")))
    assert choose(kernel, Gemm(8, 8, 8), DEVICE) == find_kernel("gemm", "naive")


def test_what_chooses_computes_as_its_choices_of_the_type_do():
    gemm = shipped_ladder("gemm")
    by_size = gemm.find("by_size")
    assert gemm.of_type(by_size, "f32").options == {}
    of_bytes = gemm.of_type(by_size, "e4m3")
    assert of_bytes.options == {"layout": "tn"}
    chosen = choose(of_bytes, Gemm(120, 120, 120, "e4m3", "tn"), load_card("h200"))
    assert chosen == find_kernel("gemm", "e4m3_gathered")  # rows that the copy engine does not take
    (case,) = plan_cases(make_request(gemm, [Selection(by_size)], [(128, 128, 128)], dtype="e4m3"))
    assert dict(case.problem.options) == {"layout": "tn"}


NAIVE = "choose = [{ kernel = 'naive', when = 'M < 8' }, { kernel = 'col_8x8', when = '1' }]"
ROWS = "choose = [{ kernel = 'naive_row', when = 'nx < 8' }, { kernel = 'copy_row', when = '1' }]"
LEAST = "choose = [{ kernel = ['reg_8x8', 'naive'], when = '1', least = 'TN' }]"


@pytest.mark.parametrize(
    ("choice", "fields", "words"),
    [
        ("nave", {}, r"choose\.kernel is 'nave', not one of .*naive, "),
        ("gemmOnGPU2D", {}, r"choose\.kernel is 'gemmOnGPU2D', not one of "),
        ("mine", {}, r"choose\.kernel is 'mine', not one of "),
        ("naive_row", {}, r"choose\.kernel is 'naive_row', not one of "),
        ("col_8x8", {"extra": NAIVE}, r"choose\.kernel is 'col_8x8', whose layout is another one\."),
        ("naive", {"extra": "layout = 'col'\n" + NAIVE}, r"'naive', whose layout is another one\."),
        ("copy_row", {"op": "transpose", "extra": ROWS}, r"'copy_row', whose result is another one\."),
        ("naive", {"extra": LEAST}, r"choose\.kernel is 'naive', which has no constant 'TN'\."),
    ],
)
def test_choice_that_cannot_stand_in_is_refused(tmp_path, choice, fields, words):
    path = write(tmp_path, *([] if "extra" in fields else [(choice, "1")]), **fields)
    with pytest.raises(HeaderError, match=words):
        named_kernel(fields.get("op", "gemm"), path)


# The choice.


FIRST = (
    ("splitk_8x32", "arch >= 80 and M * N <= 256 * sm_count"),
    ("reg_8x8", "K % 4 == 0 and real_bytes == 4"),
    ("naive", "1"),
)
ABLE = (("streamk", "1"), ("reg_8x8", "1"), ("naive", "1"))
TURING, H200, T4 = replace(DEVICE, compute_capability="7.5"), load_card("h200"), load_card("t4")


@pytest.mark.parametrize(
    ("choices", "problem", "device", "chosen"),
    [
        (FIRST, Gemm(64, 64 * 5, 64), DEVICE, "splitk_8x32"),
        (FIRST, Gemm(64, 64 * 6, 64), DEVICE, "reg_8x8"),
        (FIRST, Gemm(64, 64 * 6, 64), replace(DEVICE, sm_count=96), "splitk_8x32"),
        (FIRST, Gemm(64, 64, 64), TURING, "reg_8x8"),
        (FIRST, Gemm(64, 64, 63), TURING, "naive"),
        (FIRST, Gemm(64, 64, 64, "f64"), TURING, "naive"),
        # Where one cannot run the next one stands in.
        (ABLE, Gemm(64, 64, 64), H200, "streamk"),
        (ABLE, Gemm(64, 64, 63), H200, "reg_8x8"),  # its rows start anywhere
        (ABLE, Gemm(64, 64, 64), T4, "reg_8x8"),  # no copy engine
        (ABLE, Gemm(64, 64, 64, "f64"), H200, "naive"),
    ],
)
def test_first_kernel_that_can_run_and_whose_condition_holds_is_chosen(choices, problem, device, chosen):
    assert choose(parse_kernel(chooser(*choices), PATH), problem, device).id == chosen


@pytest.mark.parametrize(
    ("names", "device", "chosen"),
    [
        ("'streamk', 'reg_8x8', 'splitk_16x32', 'splitk_8x32'", H200, "splitk_16x32"),  # the first of equals
        ("'streamk', 'reg_8x8', 'splitk_8x32'", TURING, "reg_8x8"),
        ("'streamk'", TURING, "naive"),
    ],
)
def test_of_several_that_can_run_the_one_with_the_least_of_a_formula_is_chosen(names, device, chosen):
    extra = (
        f"choose = [{{ kernel = [{names}], when = '1', least = '2 * TN // 1' }},"
        " { kernel = 'reg_8x16_pipelined', when = '1', least = '1000' }, { kernel = 'naive', when = '1' }]"
    )
    assert choose(parse_kernel(chooser(extra=extra), PATH), Gemm(64, 64, 64), device).id == chosen


@pytest.mark.parametrize(
    ("choices", "problem", "words"),
    [
        ([("naive", "M < 8")], Gemm(8, 8, 8), "mine names no kernel for this size on this device."),
        ([("streamk", "1"), ("realigned", "M > 8")], Gemm(8, 8, 7), "streamk copies 16 bytes at a time"),
        ([("naive", "M // (N - 8)")], Gemm(8, 8, 8), "mine cannot be evaluated for this size: .* by zero"),
    ],
)
def test_where_none_is_left_the_case_is_skipped(choices, problem, words):
    with pytest.raises(CaseSkipped, match=words):
        choose(parse_kernel(chooser(*choices), PATH), problem, H200)


def test_block_is_not_the_users_to_choose():
    with pytest.raises(InputError) as caught:
        check_block(parse_kernel(chooser(("naive", "1")), PATH), (1, 1, 1))
    assert caught.value.what == "mine chooses its block itself: that of the kernel it picks for each size."
    assert caught.value.fix == "Leave out --block for this kernel."


# The case.


def case_of(kernel, **fields):
    alternatives = ladder("gemm") if kernel.choices else ()
    return Case.of(kernel, Gemm(64, 64, 64), alternatives=alternatives, **fields)


def test_case_that_chooses_runs_as_the_chosen_kernels(tmp_path):
    kernel, chosen = (named_kernel("gemm", write(tmp_path, ("reg_2x1", "1"))), find_kernel("gemm", "reg_2x1"))
    assert resolve(case_of(kernel), DEVICE) == (case_of(chosen), chosen)


def test_parameters_of_a_kernel_that_chooses_are_refused(tmp_path):
    kernel = named_kernel("gemm", write(tmp_path, ("splitk_8x32", "1")))
    with pytest.raises(CaseSkipped, match="mine takes no parameters: what it chooses, here splitk_8x32, has"):
        resolve(case_of(kernel, params={"TM": 4}), DEVICE)


def test_measurement_keeps_the_id_of_the_kernel_that_chose(tmp_path):
    kernel, chosen = (
        named_kernel("gemm", write(tmp_path, ("splitk_8x32", "1"))),
        find_kernel("gemm", "splitk_8x32"),
    )
    case = case_of(kernel)
    measured = unmeasured(resolve(case, DEVICE)[0], chosen, "ok", None, "not asked for")
    assert credited(measured, case_of(chosen)) is measured
    named = credited(measured, case)
    assert (named.kernel, named.chosen, named.ran) == ("mine", "splitk_8x32", "splitk_8x32")
    assert (named.block, named.params) == ((256, 1, 1), chosen.parameters)
    assert (named.source_hash, named.has_launch) == (chosen.source_hash, True)
    assert named.lines_reason == "not asked for"
    counted = credited(replace(measured, lines=(SourceLine(3, {"barriers": 1}),), lines_reason=None), case)
    assert counted.lines is None
    assert counted.lines_reason == (
        "the counted lines are those of splitk_8x32: add --kernel splitk_8x32 to see them"
    )


# The choice that is shipped.


def sizes_of_every_shape(device):
    """Sizes (M, N, K) of every shape, most with a C of a few tiles for each SM, where choices change."""
    rng = random.Random(device.name)
    for _ in range(30):
        elements = device.sm_count * 2 ** rng.uniform(5, 17)
        wide = 2 ** rng.uniform(-1, 1) if rng.random() < 0.7 else 2 ** rng.uniform(-8, 8)
        m, n, k = math.sqrt(elements / wide), math.sqrt(elements * wide), 2 ** rng.uniform(4, 13)
        step = rng.choice((1, 1, 4, 64))
        yield tuple(step * max(1, round(extent / step)) for extent in (m, n, k))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("device", cards(), ids=lambda device: device.name)
def test_shipped_choice_fits_sizes_of_every_shape(device, dtype):
    kernel = find_kernel("gemm", "by_size")
    met = set()
    for m, n, k in sizes_of_every_shape(device):
        problem = replace(Gemm(m, n, k), dtype=dtype)
        chosen = choose(kernel, problem, device)
        shape = configure(chosen, problem, chosen.block, {}, device)
        assert shape.launches[0].dynamic_shared_bytes <= device.shared_bytes_per_block_optin, (
            chosen.id,
            problem,
        )
        met.add(chosen.id)
    assert len(met) >= (4 if device.capability >= (8, 0) and dtype == "f32" else 1)


@pytest.mark.parametrize(
    ("size", "dtype", "chosen"),
    [
        ((3, 11129, 31), "f32", "few_rows"),
        ((4001, 501, 36), "tf32", "short_k"),
        ((9858, 105, 5063), "tf32", "tf32_gathered"),
        ((4752, 176, 4656), "tf32", "tf32_64_beside"),
        ((915, 376, 9069), "bf16", "wgmma_packed"),
    ],
)
def test_a_kernel_of_two_types_is_chosen_by_the_rules_of_each(size, dtype, chosen):
    problem = replace(Gemm(*size), dtype=dtype)
    assert choose(find_kernel("gemm", "by_size"), problem, H200).id == chosen


@pytest.mark.parametrize(
    ("kernel", "dtype", "size", "blocks"),
    [
        (
            "tf32_64_beside",
            "tf32",
            (4752, 176, 4656),
            120,
        ),  # tiles in one wave, of the 30 clusters that run at once
        ("tf32_gathered", "tf32", (931, 77, 2901), 240),  # as many as SMs hold
        ("e4m3_gathered", "e4m3", (301, 303, 5003), 200),
        ("tf32_packed", "tf32", (9858, 105, 5063), 124),  # alone: a second one beside would have no columns
        ("wgmma_gathered", "bf16", (257, 257, 257), 75),  # but not more than have something to do
    ],
)
def test_a_grid_fills_the_card(kernel, dtype, size, blocks):
    one = find_kernel("gemm", kernel)
    launch = configure(one, replace(Gemm(*size), dtype=dtype), one.block, {}, H200).launches[0]
    assert math.prod(launch.grid) == blocks


def test_a_narrow_c_has_tiles_of_fewer_columns():
    kernel, problem = find_kernel("gemm", "splitk_fit"), Gemm(6479, 75, 295)
    assert configure(kernel, problem, kernel.block, {}, H200).launches[0].grid[0] == 3
    assert choose(find_kernel("gemm", "by_size"), problem, H200).id == "splitk_fit"


def test_file_of_ones_own(tmp_path):
    path = write_transpose_kernel(tmp_path, "mine")
    kernel = named_kernel("transpose", path)
    assert (kernel.id, kernel.file_name, kernel.source) == ("mine", "mine.cu", path.read_text())
    assert kernel not in ladder("transpose")


@pytest.mark.parametrize(
    ("name", "operation", "words"),
    [
        ("mine", "gemm", "is a kernel of transpose, not of gemm."),
        ("naive_row", "transpose", "has the id of a shipped kernel, 'naive_row'."),
    ],
)
def test_file_that_does_not_fit_the_ladder_is_refused(tmp_path, name, operation, words):
    path = write_transpose_kernel(tmp_path, name)
    with pytest.raises(HeaderError) as caught:
        named_kernel(operation, path)
    assert caught.value.what == f"{path} {words}"


def test_an_entry_is_read_from_a_header_whatever_else_it_says():
    header = '/*gpuprof\nentry = "k<1>"\n[[variants]]\nid = "a"\nentry = "b"\n[[variants]]\nid = "c"\n*/'
    assert [entry_in_header(header, name) for name in ("a", "c", "d")] == ["b", "k<1>", "k<1>"]
    for text in ("", "/*gpuprof\n*/", "/*gpuprof\nentry = 3\nvariants = 4\n*/", "/*gpuprof\nentry = \n*/"):
        assert entry_in_header(text, "a") == ""


@pytest.mark.parametrize(
    "operation",
    [pytest.param(name, marks=[pytest.mark.deep] * (name == "gemm")) for name in shipped_names()],
)
def test_a_kernel_is_found_by_each_of_its_names_without_reading_the_others(operation):
    whole = shipped_ladder(operation)
    for kernel in whole.kernels:
        for name in (kernel.id, *kernel.aliases):
            part = shipped_ladder(operation, (name,))
            chosen = [whole.find(choice.kernel) for choice in kernel.choices]
            assert [part.find(other.id) for other in (kernel, *chosen)] == [kernel, *chosen]
            assert part.find(name) == part.find(name.upper()) == kernel
            assert kernel.choices or len(part.kernels) < len(whole.kernels)
    for other in ("nonsense", whole.kernels[0].id.upper()):  # what no file says so is looked for in all
        assert shipped_ladder(operation, (whole.kernels[0].id, other)) == whole


def test_no_file_is_read_but_that_of_a_name():
    assert [kernel.id for kernel in shipped_ladder("gemm", ("naive",)).kernels] == ["naive"]


def test_a_rung_starts_from_a_rung_so_that_a_whole_run_has_both():
    for name in shipped_names():
        shipped = shipped_ladder(name)
        rungs = {kernel.id for kernel in shipped.rungs}
        assert {kernel.after for kernel in shipped.rungs} <= {"", *rungs}
        assert {kernel.shape_of for kernel in shipped.kernels} <= {"", *rungs}


def test_a_shape_of_no_rung_is_refused(tmp_path):
    write_transpose_kernel(tmp_path, "rung")
    shape = write_transpose_kernel(tmp_path, "shape")
    shape.write_text(shape.read_text().replace('title = "shape"', 'title = "shape"\nshape_of = "rung"'))
    other = write_transpose_kernel(tmp_path, "other")
    other.write_text(other.read_text().replace('title = "other"', 'title = "other"\nshape_of = "shape"'))
    kernels = [load_kernel(tmp_path / f"{name}.cu") for name in ("rung", "shape", "other")]
    check_ladder(kernels[:2], "here")
    with pytest.raises(HeaderError, match="here: shape_of of other is 'shape', not one of rung"):
        check_ladder(kernels, "here")
