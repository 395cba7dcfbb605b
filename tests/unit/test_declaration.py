# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Declared operations: what is kept of a declaration, what is refused, and what its problems then do."""

from pathlib import Path

import numpy as np
import pytest

from gpuprof.errors import HeaderError
from gpuprof.operation import ArrayDeclaration, Check, OptionDeclaration, ScalarDeclaration, Work
from gpuprof.problems.check import compare
from gpuprof.problems.declaration import load_operation
from gpuprof.problems.formulas import ExpressionError
from gpuprof.problems.problem import Problem
from gpuprof.problems.references import Pointer

DECLARATIONS = Path(__file__).parent / "declarations"
SOFTEN = (DECLARATIONS / "soften.toml").read_text()


@pytest.fixture
def read(tmp_path):
    """Read a declaration with some pieces replaced."""

    def load(*edits: tuple[str, str]):
        text = SOFTEN
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "operation.toml"
        path.write_text(text)
        return load_operation(path)

    return load


def test_everything_declared_is_kept(read):
    operation = read()
    assert (operation.name, operation.title) == ("soften", "y = s x + y, counted")
    assert operation.help == "Something of everything."
    assert (operation.dimensions, operation.default_sizes) == (("rows", "columns"), "8x16,32")
    assert operation.arrays == {
        "x": ArrayDeclaration(("rows", "columns + 1"), "in", "real"),
        "y": ArrayDeclaration(("rows", "columns"), "inout", "f64"),
        "count": ArrayDeclaration(("1",), "out", "i32"),
    }
    assert operation.scalars == {
        "s": ScalarDeclaration("real", 3.0, 1.0, "A factor."),
        "n": ScalarDeclaration("u32", 4294967295.0, None, ""),
    }
    assert operation.options == {
        "result": OptionDeclaration({"all": "", "some": "some of it"}, "some", "all")
    }
    assert operation.inputs == {"x": "normal(0, 1)", "y": "uniform(-1, 1)"}
    assert operation.work == Work("2 * rows * columns + n", "real_bytes * rows * columns", "flops")
    assert operation.checks["y"] == Check(
        "s * x[:, 1:] + y", "abs(y)", "4 * u * sqrt(columns)", "tiny * rows"
    )
    assert operation.checks["count"] == Check("sum(x > 0)", "", "0", "0")
    assert operation.argument_names == ("rows", "columns", "s", "n", "x", "y", "count")


PLAIN = (DECLARATIONS / "twice.toml").read_text()


def test_what_is_left_out_has_its_default(tmp_path):
    (tmp_path / "operation.toml").write_text(PLAIN)
    operation = load_operation(tmp_path / "operation.toml")
    assert (operation.title, operation.help, operation.coded) == ("twice", "", "")
    assert operation.default_sizes == "1024"
    assert (operation.scalars, operation.options, operation.references) == ({}, {}, ())
    assert operation.work == Work("0", "3 * n * real_bytes", "bytes")
    # What stands beside the outputs holds for all of them.
    assert operation.checks == {"y": Check("2 * x", "", "u", "0"), "z": Check("x", "", "u", "0")}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "soften"', 'name = "soft en"', "name must be a name of letters"),
        ('["rows", "columns"]\ndefault', "[]\ndefault", "dimensions must name at least one size"),
        ('["rows", "columns"]\ndefault', '["rows", "columns", "2d"]\ndefault', "names '2d', which is not a"),
        ('["rows", "columns"]\ndefault', '["rows", "rows"]\ndefault', "names 'rows', which something else"),
        ('["rows", "columns"]\ndefault', '["rows", "x"]\ndefault', "names 'x', which something else"),
        ('["rows", "columns"]\ndefault', '["rows", "threads"]\ndefault', "'threads', which formulas use"),
        ("scalars.s]", "scalars.u]", "names 'u', which formulas use"),
        ('"8x16,32"', '"8x16x2"', "default_sizes '8x16x2' has 3 extents; this problem has 2:"),
        ('dtype = "f64"', 'dtype = "f80"', r"arrays\.y\.dtype is 'f80', not one of real, result, sum, f32"),
        ('["rows", "columns"]\nrole', "[]\nrole", r"arrays\.y\.shape must be one to five formulas"),
        ('["rows", "columns"]\nrole', '["1", "1", "1", "1", "1", "1"]\nrole', "one to five formulas"),
        ('["rows", "columns"]\nrole', '["rows", "depth"]\nrole', r"arrays\.y\.shape uses 'depth'; known"),
        ('["rows", "columns"]\nrole', '["rows", "s"]\nrole', r"arrays\.y\.shape uses 's'"),
        ('role = "inout"', 'role = "output"', r"arrays\.y\.role is 'output', not one of in, out, inout"),
        ("default = 4294967295", "default = 4294967296", r"scalars\.n\.default is .*which no u32 holds"),
        ("default = 4294967295", "default = -1", r"scalars\.n\.default is -1, which no u32 holds"),
        ("default = 4294967295", "default = 0.5", r"scalars\.n\.default is 0\.5, which no u32 holds"),
        ('type = "u32"', 'type = "u8"', r"scalars\.n\.type is 'u8', not one of real, sum, f16, bf16, f32"),
        ('{ all = "", some = "some of it" }', "{}", r"options\.result\.values must be a table of words"),
        ('{ all = "", some = "some of it" }', "{ all = 1, some = 2 }", "values must be a table of words"),
        ('default = "some"', 'default = "none"', r"options\.result\.default is 'none', not one of all, some"),
        ('ceiling = "all"', 'ceiling = "none"', r"options\.result\.ceiling is 'none', not one of all, some"),
        ('x = "normal(0, 1)"', 'x = "normal(0)"', r"inputs\.x is not valid content: 'normal\(0\)' must be"),
        ('x = "normal(0, 1)"', 'count = "zeros"', r"inputs\.count is not an array that kernels read; those"),
        ('flops = "2 * rows * columns + n"', 'flops = "rows * depth"', r"work\.flops uses 'depth'"),
        ('flops = "2 * rows * columns + n"', 'flops = " 0 "', r"work\.flops is 0, and the operation rated"),
        ('"real_bytes * rows * columns"', '"real_bytes * u"', r"work\.bytes uses 'u'"),
        ('"real_bytes * rows * columns"', '"rows *"', r"work\.bytes is not a formula"),
        ('"real_bytes * rows * columns"', '" "', r"work\.bytes is not a formula: .* it is empty"),
        ('rate = "flops"', 'rate = "time"', r"work\.rate is 'time', not one of flops, bytes"),
        ("equal = true", 'equal = true\nrelative = "u"', r"check\.count\.equal leaves no room for relative"),
        ("equal = true", 'equal = true\nabsolute = "1"', r"check\.count\.equal leaves no room for relative"),
        (
            'absolute = "tiny * rows"\nrelative = "4 * u * sqrt(columns)"',
            "",
            r"check\.y\.relative is missing",
        ),
        ('"tiny * rows"', '"tiny * x"', r"check\.y\.absolute uses 'x'; known are columns, n, rows, s,"),
        ('"sum(x > 0)"', '"sum(count)"', r"check\.count\.value uses 'count'; known are columns, n, rows,"),
        ('"abs(y)"', '"abs(w)"', r"check\.y\.magnitude uses 'w'"),
        ("[check.count]", "[check.x]", r"check\.count\.value"),
        ("equal = true", "equal = true\n[check.x]\nvalue = 'x'", r"check\.x is not an output; those are y,"),
        ('help = "Something', 'hlep = "Something', r"unknown field hlep\..*Did you mean help"),
        ('help = "A factor."', 'hint = "A factor."', r"unknown field scalars\.s\.hint"),
        ("[work]", "[[references]]\nid = 'r'\ntitle = 'R'\n[work]", "references need code of gpuprof's own"),
        ('help = "Something', 'coded = "fft"\nhelp = "Something', "coded is 'fft', not one of gemm,"),
        ('help = "Something', 'coded = "gemm"\nhelp = "Something', "'gemm', whose dimensions are M, N, K"),
    ],
)
def test_faulty_declaration_is_refused_by_field(read, old, new, complaint):
    with pytest.raises(HeaderError, match=complaint):
        read((old, new))


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ('"sum(x > 0)"', '""', "Write one; known are columns, n, rows, s, x, y."),
        ('"sum(x > 0)"', '"count"', 'Where kernels read what count held before, its role is "inout".'),
    ],
)
def test_formula_of_a_check_that_cannot_be_names_its_fix(read, old, new, fix):
    with pytest.raises(HeaderError) as caught:
        read((old, new))
    assert caught.value.fix == fix


def test_work_that_is_missing_is_proposed_from_the_arrays(read):
    with pytest.raises(HeaderError) as caught:
        read(
            ("[work]", ""),
            ('flops = "2 * rows * columns + n"', ""),
            ('rate = "flops"', ""),
            ('bytes = "real_bytes * rows * columns"', ""),
        )
    assert "lacks work.bytes" in caught.value.what
    proposed = "rows * (columns + 1) * real_bytes + rows * columns * 8 * 2 + 1 * 4"
    assert caught.value.fix == f'Write under [work]:\nbytes = "{proposed}"'


def test_operation_without_an_output_has_nothing_to_check(read):
    with pytest.raises(HeaderError, match="arrays have nothing to check: none is out or inout"):
        read(('role = "inout"', 'role = "in"'), ('role = "out"', 'role = "in"'))


def test_integers_are_equal_unless_something_else_is_said(read):
    assert read(("equal = true", "")).checks["count"] == Check("sum(x > 0)", "", "0", "0")


@pytest.mark.parametrize(("given", "held"), [('"2"', "2"), ("2", "2"), ("0.5", "0.5"), ("1e-7", "1e-07")])
def test_a_number_is_a_formula_too(read, given, held):
    loose = read(("equal = true", f"absolute = {given}")).checks["count"]
    assert (loose.relative, loose.absolute) == ("0", held)


CODED = (DECLARATIONS / "product.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("arrays.A", "arrays.D", "'gemm', whose arrays are A, B, C"),
        ("scalars.alpha", "scalars.gamma", "'gemm', whose scalars are alpha, beta"),
        ("options.layout", "options.order", "'gemm', whose options are layout"),
        ('{ layout = "col" }', "{ layout = 1 }", r"references\.options must be a table of words"),
        ('id = "r", ', "", r"lacks references\.id"),
    ],
)
def test_code_is_for_the_names_that_it_knows(tmp_path, old, new, complaint):
    path = tmp_path / "operation.toml"
    path.write_text(CODED)
    operation = load_operation(path)
    (reference,) = operation.references
    assert (reference.id, reference.title, reference.idea, reference.library) == ("r", "R", "I", "l")
    assert (reference.on_host, reference.options) == (True, {"layout": "col"})
    assert operation.checks["C"].value == ""
    path.write_text(CODED.replace(old, new))
    with pytest.raises(HeaderError, match=complaint):
        load_operation(path)


def test_a_magnitude_spreads_over_rows_and_what_is_rounded_right_passes(tmp_path):
    (path := tmp_path / "operation.toml").write_text(
        'name = "half"\ndimensions = ["n"]\n[arrays]\nx = { shape = ["n", "8"] }\n'
        'y = { shape = ["n", "8"], role = "out", dtype = "f16" }\n[work]\nbytes = "n"\n'
        '[check.y]\nvalue = "x / 2 ** 20"\nrelative = "u"\nmagnitude = "max(abs(x), axis=1, keepdims=True)"\n'
    )
    problem = Problem.of(load_operation(path), (3,))
    inputs = problem.inputs(0)
    expected = problem.reference(inputs)["y"]
    largest = np.abs(inputs["x"].reshape(3, 8)).max(axis=1)
    assert expected.magnitude.tolist() == np.repeat(largest, 8).tolist()
    rounded = expected.values.astype(np.float16)
    assert not compare(rounded, expected.values, np.abs(expected.values), problem.bound("y")).wrong.any()
    exact = path.read_text().replace('relative = "u"', 'relative = "0"')
    # Of a square, neither rows nor columns by their number alone.
    path.write_text(path.read_text().replace(", keepdims=True", ""))
    problem = Problem.of(load_operation(path), (8,))
    with pytest.raises(ExpressionError, match=r"of shape \(8,\); y has the shape \(8, 8\)"):
        problem.reference(problem.inputs(0))
    path.write_text(exact)
    assert Problem.of(load_operation(path), (8,)).bound("y").absolute == 0


FRACTIONS = "gives fractions, and count holds integers"
COUNT, SUM, SHAPE = '"sum(x > 0)"', '"s * x[:, 1:] + y"', '["rows", "columns"]\nrole'


@pytest.mark.parametrize(
    ("edits", "output", "found"),
    [
        ([(COUNT, '"sum(x) * 0 + 2.0"')], "count", [2]),  # whole, though a float
        ([(COUNT, '"sum(x > 100) == 0"')], "count", [1]),  # a truth value
        ([(COUNT, '"rows"')], "count", [2]),
        ([(COUNT, '"f32(3)"')], "count", [3]),
        ([(COUNT, '"rows / 4"'), ("equal = true", 'absolute = "1"')], "count", [0.5]),
        ([(COUNT, '"rows / 4"')], "count", FRACTIONS),
        ([(COUNT, '"2.0 ** 70"')], "count", FRACTIONS),
        ([(SUM, '"s"')], "y", [3.0] * 6),  # one number stands for every element
        ([(SUM, '"transpose(y)"')], "y", r"gives an array of shape \(3, 2\); y has the shape \(2, 3\)"),
        ([(SHAPE, '["rows", "columns - 3"]\nrole')], "y", r"y would have the shape \(2, 0\)"),
        ([('"tiny * rows"', '"-tiny"')], "y", "the error allowed in y would be negative"),
        ([('"4 * u * sqrt(columns)"', '"-u"')], "y", "the error allowed in y would be negative"),
    ],
)
def test_what_a_formula_gives_fits_its_output_or_is_refused(read, edits, output, found):
    problem = Problem.of(read(*edits), (2, 3))
    if isinstance(found, str):
        with pytest.raises(ExpressionError, match=found):
            _ = problem.reference(problem.inputs(0)), problem.bound(output)
        return
    expected = problem.reference(problem.inputs(0))[output].values
    assert expected.tolist() == found
    assert expected.dtype.kind == ("i" if isinstance(found[0], int) else "f")


BY_ROWS = (DECLARATIONS / "weighted.toml").read_text()


def by_rows(folder, old="", new=""):
    assert old in BY_ROWS
    (folder / "operation.toml").write_text(BY_ROWS.replace(old, new))
    (folder / "reference.cuh").write_text("code")
    (folder / "kernel.cu").write_text("code")
    return load_operation(folder / "operation.toml")


def test_a_reference_by_rows_is_that_of_the_whole_at_any_elements(tmp_path):
    problem = Problem.of(by_rows(tmp_path), (3, 50, 4), "f64")
    inputs = problem.inputs(0)
    a, b = (inputs[name].reshape(3, 50, 4) for name in "ab")
    whole = ((a + np.arange(50).reshape(-1, 1)) * b.sum(axis=1, keepdims=True)).ravel()
    found = problem.reference(inputs)["out"]
    assert np.array_equal(found.values, whole)
    assert np.array_equal(found.magnitude, abs(a).ravel())
    some = np.array([0, 3, 203, 205, 599])
    for place in (some, some[:1], np.arange(600)):
        at = problem.reference_at(inputs, "out", place)
        assert np.array_equal(at.values, whole[place])
        assert np.array_equal(at.magnitude, abs(a).ravel()[place])


def test_code_of_the_device_and_a_function_of_torch_get_what_is_declared(tmp_path):
    problem = Problem.of(by_rows(tmp_path), (3, 50, 4), "f64")
    reference = problem.device_reference()
    assert (reference.source, reference.entry, reference.block) == ("code", "reference", (64, 1, 1))
    assert reference.grid == (25, 3, 1)
    assert reference.arguments == (50, 1, *map(Pointer, ("a", "expected out", "magnitude out")))
    call = problem.library_call("one")
    assert (call.library, call.function, call.keywords) == ("torch", "one", {"flag": 1})
    assert call.arguments == (Pointer("b"), Pointer("a"))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('independent = ["batch"]', 'independent = ["rows"]', "check.independent must be dimensions"),
        ('independent = ["batch"]', "", "check.rows must be arrays"),
        ('rows = ["a"]', 'rows = ["z"]', "check.rows must be arrays"),
        ('"reference.cuh"', '"../reference.cuh"', "device_reference.source is"),
        ('"reference.cuh"', '"kernel.cu"', "device_reference.source is"),
        ('"reference.cuh"', '"nothing.cuh"', "which cannot be read"),
        ("[64]", "[0]", "device_reference.block must be"),
        ("cdiv(rows, 2)", "cdiv(rows, z)", "device_reference.grid uses 'z'"),
        ('"shift", "a"', '"shift", "z"', "device_reference.arguments names 'z'"),
        (', "magnitude out"', "", "lack 'magnitude out'"),
        ('"one"\narguments', '"_one"\narguments', "function is '_one', not one of torch.nn.functional"),
        ('["b", "a"]', '["b", "z"]', "arguments may hold a, b, out"),
        ('"torch"', '"cublas"', "references need code of gpuprof's own"),
    ],
)
def test_what_a_reference_cannot_be_is_refused(tmp_path, old, new, complaint):
    with pytest.raises(HeaderError) as caught:
        by_rows(tmp_path, old, new)
    assert complaint in str(caught.value)
