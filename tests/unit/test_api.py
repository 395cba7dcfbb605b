# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""gpuprof as a package: what programs call, with values, on the executor."""

import inspect
import re
import subprocess
import sys
import tempfile
import webbrowser
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from each import each

import gpuprof
from gpuprof.analysis.numbers import time_us
from gpuprof.measure.run import Progress

#: Without hardware counters.
MEASURED = Path(__file__).parent / "version1" / "gemm-h200.json"
NAMES = [name for name in gpuprof.__all__ if name != "__version__"]


@pytest.fixture(scope="module")
def run():
    kernels = {"naive": {}, "reg_8x8": {"BK": [8, 16, 8]}}
    return gpuprof.profile("gemm", kernels=kernels, sizes="32,48x32x16", device="sim:H200")


@pytest.fixture(scope="module")
def measured():
    return gpuprof.load(MEASURED)


@each(name=NAMES)
def test_public_names_are_there_and_documented(name):
    assert getattr(gpuprof, name).__doc__
    assert name in dir(gpuprof)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="profil"):
        _ = gpuprof.profil


def test_importing_gpuprof_loads_nothing_heavy():
    code = "import sys, gpuprof; print([m for m in ('numpy', 'typer', 'cuda', 'plotly') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_profile_has_a_case_for_each_kernel_size_and_parameter(run):
    assert [(case.kernel, case.size, dict(case.params)) for case in run.cases] == [
        ("naive", "32", {}),
        ("reg_8x8", "32", {"BK": 8, "TN": 8}),
        ("reg_8x8", "32", {"BK": 16, "TN": 8}),
        ("naive", "48x32x16", {}),
        ("reg_8x8", "48x32x16", {"BK": 8, "TN": 8}),
        ("reg_8x8", "48x32x16", {"BK": 16, "TN": 8}),
    ]
    assert run.backend == "sim"
    assert run.device == "NVIDIA H200"
    assert run.cases[3].sizes == {"M": 48, "N": 32, "K": 16}
    assert all(case.ok and not case.reason and case.dtype == "f32" for case in run.cases)
    assert len(run) == 6


def test_figures_are_read_by_attribute_and_by_key(run):
    case = run.case("naive", size="32")
    # Every thread of the one block reads a row of A and a column of B: 32 warps, 32 steps, 2 loads each.
    assert case.counters.global_load_requests == 32 * 32 * 2
    assert case.counters["global_load_requests"] == 2048
    assert case.figures.block_threads == 1024
    assert case.grid == (1, 1, 1)
    assert case.block == (32, 32, 1)
    assert "global_load_requests" in case.counters
    assert "block_threads" not in case.counters
    assert "global_load_requests" in dir(case.counters)
    assert dict(case.counters)["global_load_requests"] == 2048
    assert len(case.counters) == len(list(case.counters)) > 10


def test_a_figure_that_was_not_measured_says_why(run):
    case = run.case("naive", size="32")
    with pytest.raises(gpuprof.NotMeasured, match="median_us of naive is not known: executed without a GPU"):
        _ = case.median_us
    assert case.figures.get("median_us") is None
    assert case.figures.get("median_us", 7) == 7
    assert "median_us" not in case.figures
    assert "without a GPU" in case.figures.why_not("median_us")
    assert case.figures.why_not("block_threads") == ""


def test_an_unknown_figure_is_named(run):
    case = run.cases[0]
    with pytest.raises(AttributeError, match=r"no figure 'load_efficiency'\. Did you mean global_load_eff"):
        _ = case.counters.load_efficiency
    with pytest.raises(KeyError):
        case.figures.get("load_efficiency")


def test_rows_are_plain_values(run):
    rows = run.to_dicts()
    assert len(rows) == 6
    assert rows[1]["params"] == {"BK": 8, "TN": 8}
    assert rows[1]["M"] == 32
    assert rows[0]["outcome"] == "ok"
    assert rows[0]["global_load_requests"] == 2048
    assert "median_us" not in rows[0]


def test_cases_are_found_by_what_they_are(run, measured):
    assert len(run.find(kernel="reg_8x8", size="32")) == 2
    naive = run.find(kernel="naive", size=32)
    assert naive == run.find(kernel="naive", size=(32, 32, 32), block=naive[0].block[:2]) != ()
    assert naive == run.find(kernel="naive", size=np.int64(32))
    with pytest.raises(gpuprof.InputError, match=r"has outcome='incorect'\. Did you mean incorrect\?"):
        run.find(outcome="incorect")  # none would be found, and a test that wants none would pass
    assert run.find(ok=False) == ()
    assert len(run.find(params={"BK": 16})) == 2
    assert run.find(params={"BK": 16, "TN": 4}) == ()
    with pytest.raises(gpuprof.InputError, match=r"2 cases fit kernel='reg_8x8', size='32'\."):
        run.case("reg_8x8", size="32")
    with pytest.raises(gpuprof.InputError, match=r"No case fits kernel='nave'\. There are cases of"):
        run.case("nave")
    assert measured.case("cublas", size="4096").is_reference
    assert repr(run.cases[0].figures).endswith(" figures of naive 32>")


def test_times_and_places_on_the_ladder_come_from_a_file(measured):
    case = measured.case("smem_tiled", size="4096")
    record = next(
        each for each in measured.record.cases if each.kernel == "smem_tiled" and each.problem.label == "4096"
    )
    assert case.median_us == record.timing.cold.median_us
    below = measured.case("smem_panel", size="4096")
    assert not below.ok
    assert case.figures.gain == pytest.approx(measured.case("naive", size="4096").median_us / case.median_us)
    assert repr(case) == f"<smem_tiled 4096 32x32: {time_us(case.median_us)}>"
    assert "smem_panel 4096 32x32: " in repr(below)
    assert below.reason in repr(below)


def test_a_run_shows_itself(run, capsys, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert repr(run) == "<gpuprof run: gemm on NVIDIA H200 (sim), 6 of 6 cases ok>"
    assert run.show() is None
    assert "reg_8x8" in capsys.readouterr().out
    assert "`reg_8x8`" in run.to_markdown()
    assert run.to_json()["schema_version"] == 2


def test_a_run_opens_in_a_browser_where_there_is_one(run, capsys, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setenv("BROWSER", "any")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", opened.append)
    path = run.show()
    assert opened == [path.as_uri()]
    assert path.is_relative_to(tmp_path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not capsys.readouterr().out
    assert run.show(browser=False) is None
    assert "reg_8x8" in capsys.readouterr().out


def test_a_desktop_without_a_browser_prints(run, capsys, monkeypatch):
    def none():
        raise webbrowser.Error

    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "get", none)
    assert run.show() is None
    assert "reg_8x8" in capsys.readouterr().out


def test_a_case_says_why(run, measured):
    assert measured.case("smem_tiled", size="4096").why[0].startswith("vs naive: ")
    failed = measured.case("smem_panel", size="4096")
    assert failed.why == (failed.reason,)
    both = (run.case("reg_8x8", size="32", params={"BK": depth}) for depth in (8, 16))
    second = min(both, key=lambda case: case.model.median_us)  # that one stands for the rung
    assert second.run is run
    assert second.why[0].startswith("vs naive: ")
    assert second.why[1].startswith("too few blocks as modelled; cannot be faster than ")
    assert any(line.startswith("line ") for line in second.why)


def test_a_cases_bounds_are_values(run, measured):
    case = run.case("reg_8x8", size="32", params={"BK": 16})
    assert case.bound_by is not None
    highest = case.bounds[case.bound_by]
    assert case.bound_us == highest.least_us == max(bound.least_us for bound in case.bounds.values())
    assert " GHz" in case.bounds["l1"].formula
    assert case.bounds["l1"].source
    with pytest.raises(gpuprof.NotMeasured, match="without a GPU"):
        assert case.pct_of_bound > 70
    assert case.figures.get("pct_of_bound") is None
    timed = measured.case("smem_tiled", size="4096")
    assert timed.bound_by is None
    with pytest.raises(gpuprof.NotMeasured, match="exact counts are missing"):
        assert timed.bound_us > 0


def test_a_saved_run_is_read_back(run, tmp_path):
    path = run.save(tmp_path / "out")
    assert gpuprof.load(path).record == run.record
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(gpuprof.InputError, match=r"exists already\. Name another path, or add force=True"):
        run.save(tmp_path / "out")
    for call in (gpuprof.load, lambda one: gpuprof.compare(run, one), lambda one: gpuprof.fleet([one])):
        with pytest.raises(gpuprof.InputError, match=r"is \[?<naive 32 32x32: ok>\]?\. Give .*str . Path"):
            call(run.cases[0])
    run.save(tmp_path / "out", force=True)
    assert run.save(tmp_path / "named.json") == tmp_path / "named.json"
    assert (tmp_path / "named.html").exists()


@each(
    case=[
        ({"device": "sim,sim"}, "device sim,sim names sim twice."),
        ({"device": "none"}, 'device="none" only compiles, .* Use device="sim" where'),
        ({"device": "sim", "save": "/proc/there/is.json"}, "Name another path with save."),
    ]
)
def test_errors_name_keywords_instead_of_options(case):
    given, told = case
    with pytest.raises(gpuprof.InputError, match=told):
        gpuprof.tune("transpose", sizes=32, **given)


def test_folders_of_headers_are_included(tmp_path):
    (tmp_path / "own.cuh").write_text("#define SCALE 3\n")
    text = '#include "own.cuh"\n__global__ void k(float *y) { y[threadIdx.x] = SCALE * threadIdx.x; }'
    call = {"args": {"y": None}, "expect": {"y": 3 * np.arange(4, dtype=np.float32)}, "grid": 1, "block": 4}
    run = gpuprof.profile(gpuprof.Source(text, "k"), include=str(tmp_path), device="sim", **call)
    assert run.cases[0].ok
    with pytest.raises(gpuprof.InputError, match="include 'nowhere' is no folder"):
        gpuprof.profile(gpuprof.Source(text, "k"), include=["nowhere"], **call)


def test_cases_are_in_the_file_as_soon_as_they_are_done(tmp_path):
    path = tmp_path / "kept.json"
    seen = []

    class Watcher(Progress):
        def finished(self, measurement):
            seen.append(len(gpuprof.load(path)))

    run = gpuprof.profile(
        "transpose", kernels="copy_row", sizes=[8, 16], device="none", save=path, progress=Watcher()
    )
    assert seen == [1, 2]
    assert gpuprof.load(path).record == run.record
    with pytest.raises(gpuprof.InputError, match="exists"):
        gpuprof.profile("transpose", kernels="copy_row", sizes=8, device="none", save=path)


def test_ctrl_c_hands_over_what_was_measured():
    class Impatient(Progress):
        def finished(self, measurement):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gpuprof.profile(
            "transpose", kernels=["copy_row", "naive_row"], sizes=8, device="none", progress=Impatient()
        )
    assert isinstance(caught.value, gpuprof.Interrupted)
    assert [case.kernel for case in caught.value.run.cases] == ["copy_row"]


@each(
    function=[
        *(gpuprof.profile, gpuprof.tune, gpuprof.compare, gpuprof.fleet, gpuprof.load, gpuprof.Source),
        *(gpuprof.Run.best, gpuprof.Run.save, gpuprof.Run.show, gpuprof.Comparison.hold, gpuprof.Search.best),
    ]
)
def test_a_value_of_another_type_is_no_error_within(function):
    parameters = inspect.signature(function).parameters
    required = {name: "gemm" for name, one in parameters.items() if one.default is one.empty}
    for name in parameters:
        if name == "self":
            continue
        wrong, gates = object(), name == "gates"
        with pytest.raises(gpuprof.InputError, match=name if name != "what" else "is no kernel"):
            function(*[None, wrong] * gates, **{} if gates else {**required, name: wrong})


@each(
    case=[
        ({"sizes": np.int64(32), "kernels": {"reg_8x8": {"BK": np.int64(8)}}}, ""),
        ({"params": {"BK": 8.0}, "kernels": "reg_8x8"}, "params is {'BK': 8.0}. Give Mapping"),
        ({"rounds": True}, "rounds is True"),
        ({"sizes": [None]}, "sizes is [None]. Give "),
    ]
)
def test_numbers_are_of_any_kind_and_items_are_held_too(case):
    given, message = case
    with pytest.raises(gpuprof.InputError, match=re.escape(message)) if message else nullcontext():
        gpuprof.profile("gemm", **{"sizes": 8, "device": "none", **given})


@each(
    wrong=[
        ({"what": "gem"}, "Did you mean gemm"),
        ({"what": "gemm", "kernels": "nope"}, "no gemm kernel 'nope'"),
        ({"what": "gemm", "kernels": {"naive": {"BK": 8}}}, "naive has no parameter 'BK'"),
        ({"what": "gemm", "sizes": 0}, "Size 0 has a zero extent"),
        ({"what": "gemm", "sizes": -4}, "negative"),
        ({"what": "gemm", "sizes": []}, "sizes .. has an empty entry"),
        ({"what": "gemm", "sizes": "64x"}, "sizes '64x' is not a size"),
        ({"what": "gemm", "sizes": (1, 2)}, "2 extents; this problem has 3"),
        ({"what": "gemm", "block": (64, 64)}, "4,096 threads"),
        ({"what": "gemm", "block": (0, 64)}, "empty"),
        ({"what": "gemm", "block": (1, 1, 1, 1)}, "not a block"),
        ({"what": "gemm", "dtype": "f8"}, "'f8' is not a type"),
        ({"what": "gemm", "scalars": {"gamma": 1}}, "no scalar 'gamma'"),
        ({"what": "gemm", "scalars": {"alpha": float("nan")}}, "alpha = nan is not a finite number"),
        ({"what": "gemm", "references": ["cublas"]}, "'cublas' is not a reference"),
        ({"what": "nowhere.cu"}, "nowhere.cu"),
        ({"what": "nowhere"}, "no operation .nowhere., and no folder or kernel file of that name"),
        ({"what": [], "sizes": 8}, "nothing to run"),
    ]
)
def test_what_makes_no_sense_is_said(wrong):
    arguments, message = wrong
    with pytest.raises(gpuprof.InputError, match=message):
        gpuprof.profile(**{"sizes": 8, "device": "none", **arguments})
