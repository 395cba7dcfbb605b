# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: its fixture, its options, and what the report of a failing test shows."""

import importlib.metadata
import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest

import gpuprof
from gpuprof.pytest_plugin import GpuprofFixture

pytestmark = pytest.mark.deep

pytest_plugins = ["pytester"]

ROOT = Path(gpuprof.__file__).parent.parent
#: Its workers are forks that load nothing, and read no machine code but for a test of modelled times.
KERNEL = (
    f"import sys\nsys.path.append({str(ROOT / 'tests')!r})"
    + '''
import numpy as np
import pytest
from command_server import MAY_FORK, fork_workers, read_no_machine_code

if MAY_FORK:
    fork_workers()

SOURCE = """
extern "C" __global__ void scale(int n, float a, const float *x, float *y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i * STRIDE % n];
}
"""

def measure(gpuprof, stride=1, **more):
    x = np.arange(1024, dtype=np.float32)
    return gpuprof.profile(
        gpuprof.Source(SOURCE, "scale"),
        args={"n": 1024, "a": 2.0, "x": x, "y": None},
        expect={"y": 2 * x[np.arange(1024) * stride % 1024]},
        grid="cdiv(n, block_x)",
        block=256,
        params={"STRIDE": stride},
        **more,
    )
'''
)


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs pytest in a process of its own, with this plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "120")

    def run(tests, *options, modelled=False):
        pytester.makepyfile(test_kernels=KERNEL + "read_no_machine_code()\n" * (not modelled) + tests)
        return pytester.runpytest_subprocess("-p", "gpuprof.pytest_plugin", *options)

    return run


def test_plain_asserts_pass_on_the_executor(session):
    result = session(
        """
def test_scale(gpuprof):
    run = measure(gpuprof)
    case = run.case("scale")
    assert case.ok
    assert case.counters.global_load_efficiency_pct > 90
    assert case.figures.registers_per_thread < 64
    assert run.device == "NVIDIA GeForce RTX 4090"
    with pytest.raises(gpuprof.NotMeasured, match="without a GPU"):
        case.median_us > 1
    assert gpuprof.load(next(gpuprof.folder.glob("*.json"))).cases[0].ok
""",
        "--gpuprof-device=sim:rtx4090",
    )
    result.assert_outcomes(passed=1)


#: A modelled time with its interval, and a bound.
TIMES = r"\S+ µs \(\S+?(?: µs)?–\S+ µs\) \S+ ns"


def test_a_failing_test_shows_rows_and_reasons(session):
    result = session(
        """
def test_stride(gpuprof):
    assert measure(gpuprof, stride=33).cases[0].counters.global_load_efficiency_pct > 90

def test_right(gpuprof):
    case = measure(gpuprof, stride=1).cases[0]
    assert not case.ok, "so that it fails"

def test_nothing_measured(gpuprof):
    assert not gpuprof.device

def test_wrong(gpuprof):
    x = np.ones(64, np.float32)
    run = gpuprof.profile(
        gpuprof.Source(SOURCE, "scale"), args={"n": 64, "a": 2.0, "x": x, "y": None}, expect={"y": x},
        grid=1, block=64, params={"STRIDE": 1},
    )
    assert run.cases[0].ok
""",
        "--gpuprof-device=sim",
        modelled=True,
    )
    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    sections = text.split("- gpuprof -")
    assert len(sections) == 4
    strided, right, _ = (" ".join(section.split("____")[0].split()) for section in sections[1:])
    assert re.search(rf"scale ✓ ok {TIMES} too few blocks 4\.50× 12\.5 %", strided)
    assert "scale 1024 256x1 STRIDE=33: too few blocks as modelled; cannot be faster than" in strided
    assert re.search(rf"scale ✓ ok {TIMES} too few blocks 1\.00× 100 %", right)
    assert "STRIDE=33" not in right
    result.stdout.fnmatch_lines(["E*assert 12.5 > 90*", "E*figures of scale 1024*"])
    result.stdout.fnmatch_lines(
        ["E*<scale 64 64x1 STRIDE=1: incorrect: All 64 elements*", "* scale 64 incorrect: All 64 elements*"]
    )


def test_a_run_of_a_wider_fixture_is_shown_with_every_test_that_got_it(session):
    result = session(
        """
@pytest.fixture(scope="module")
def run(gpuprof):
    return measure(gpuprof)

@pytest.fixture
def case(run):
    return run.cases[0]

def test_first(run):
    assert not run.cases[0].ok

def test_second(case):
    assert not case.ok

def test_third():
    assert False

@pytest.fixture
def broken(gpuprof):
    measure(gpuprof)
    return measure(gpuprof, device="sim:nothing")

def test_error(broken):
    pass
""",
        "--gpuprof-device=sim",
    )
    result.assert_outcomes(failed=3, errors=1)
    assert result.stdout.str().count("- gpuprof -") == 3
    result.stdout.fnmatch_lines(["E*nothing*", "*- gpuprof -*"])


def test_results_are_kept_by_the_names_of_tests(session, pytester):
    tests = """
@pytest.mark.parametrize("stride", [1, 33])
def test_scale(gpuprof, stride):
    measure(gpuprof, stride)

def test_twice(gpuprof):
    measure(gpuprof)
    measure(gpuprof, save="mine.json")
    measure(gpuprof)
"""
    # The second session replaces what the first one wrote.
    for options, passed in (([], 3), (["-k", "twice"], 1)):
        result = session(tests, "--gpuprof-device=none", "--gpuprof-results=kept", *options)
        assert result.parseoutcomes()["passed"] == passed
        Path(pytester.path / "mine.json").unlink()
    names = sorted(path.name for path in (pytester.path / "kept").iterdir())
    twice = [name for name in names if "twice" in name]
    assert twice == ["test_kernels.py-test_twice-2.json", "test_kernels.py-test_twice.json"]
    assert len(names) == 4
    strides = [json.loads((pytester.path / "kept" / name).read_text()) for name in names if "scale" in name]
    assert sorted(document["cases"][0]["params"]["STRIDE"] for document in strides) == [1, 33]


def test_several_processes_take_turns_and_report(session, pytester):
    pytest.importorskip("xdist")
    result = session(
        """
@pytest.mark.parametrize("stride", [1, 33])
def test_scale(gpuprof, stride):
    assert measure(gpuprof, stride).cases[0].counters.global_load_efficiency_pct > 90
""",
        *("-p", "xdist.plugin", "-n", "2", "--gpuprof-results=kept"),
    )
    result.assert_outcomes(passed=1, failed=1)
    assert result.stdout.str().count("- gpuprof -") == 1
    assert len(list((pytester.path / "kept").iterdir())) == 2


def test_a_mistake_in_a_call_is_told_at_the_tests_own_line(session):
    tests = """
def test_device(gpuprof):
    measure(gpuprof, device="sim:h20")

def test_name(gpuprof):
    measure(gpuprof).case("scal")

def test_base(gpuprof):
    gpuprof.compare("baseline.json", measure(gpuprof))

def test_time(gpuprof):
    assert measure(gpuprof).case("scale").figures.median_us < 10
"""
    text = session(tests).stdout.str()
    for told in (
        "InputError: gpuprof's table has no card 'h20'. The nearest: h200",
        "InputError: No case fits kernel='scal'. There are cases of scale.",
        "ResultsError: Cannot read baseline.json: No such file or directory.",
        "NotMeasured: median_us of scale is not known",
        'measure(gpuprof, device="sim:h20")',
    ):
        assert told in text
    assert str(ROOT / "gpuprof") not in text
    assert str(ROOT / "gpuprof") in session(tests, "--full-trace", "-k", "device").stdout.str()


def test_starting_pytest_loads_nothing_heavy(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(
        """
import sys

def pytest_unconfigure():
    heavy = {"numpy", "rich", "jinja2", "plotly", "typer", "cuda"} & sys.modules.keys()
    print("loaded:", sorted(heavy | {name for name in sys.modules if name.startswith("gpuprof.")}))
"""
    )
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_subprocess("-p", "gpuprof.pytest_plugin", "-s")
    result.stdout.fnmatch_lines(["loaded: ?'gpuprof.pytest_plugin'?"])


def test_the_package_declares_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"gpuprof": "gpuprof.pytest_plugin"}
    entry = importlib.metadata.EntryPoint("gpuprof", "gpuprof.pytest_plugin", "pytest11")
    assert entry.load().GpuprofFixture is GpuprofFixture


def test_the_fixture_has_the_names_of_the_package(pytestconfig, tmp_path):
    class Config:
        stash = pytestconfig.stash

        def getoption(self, name):
            return "sim"

    fixture = GpuprofFixture(Config(), tmp_path, None)
    for name in gpuprof.__all__:
        # These two leave something behind for a test that fails.
        if name not in ("profile", "compare"):
            assert getattr(fixture, name) is getattr(gpuprof, name)
    assert {"profile", "compare"} < set(gpuprof.__all__)
    assert [*inspect.signature(fixture.compare).parameters] == [
        *inspect.signature(gpuprof.compare).parameters
    ]
    with pytest.raises(AttributeError, match="profil"):
        _ = fixture.profil


def test_a_failing_test_shows_what_was_compared(session):
    result = session(
        """
def test_compared(gpuprof):
    base, new = measure(gpuprof), measure(gpuprof, 32)
    comparison = gpuprof.compare(base, new)
    assert comparison.verdict == "same"
""",
        "--gpuprof-device",
        "sim:h200",
        modelled=True,
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "- gpuprof compare -" in text
    assert "new against base: 1 uncertain" in text
    assert "STRIDE 1 → 32" in text
