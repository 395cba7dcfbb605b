# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What gpuprof does on a GPU, on one that is emulated: every step but the times is real."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from cheat_corpus import FOLDER as CHEATS
from cheat_corpus import cheats
from cuda_sources import FOLDER, kernel_file
from processes import ran
from unit_support import gpuprof

from gpuprof.reading import read_run
from gpuprof.report.run_text import run_title

pytestmark = pytest.mark.deep

SITE = Path(__file__).parent / "site"
#: Kernels by name: what each does, its outcome, and a part of the reason.
KERNELS = {
    "a_right": ("if (i < n) y[i] = 2 * x[i];", "ok", ""),
    "b_off_by_one": ("if (i < n) y[i] = 2 * x[i] + (i == 77);", "incorrect", "1 of 1000"),
    "c_leaves_out": ("if (i < n - 5) y[i] = 2 * x[i];", "incorrect", "never written"),
    "d_past_the_end": ("if (i < n + 1) y[i] = 2 * x[min(i, n - 1)];", "incorrect", "past the end of y"),
    "e_writes_input": ("if (i < n) { y[i] = 2 * x[i]; x[i] = 0; }", "incorrect", "one of its inputs"),
    "e_writes_what_is_there": ("volatile float *at = x; if (i < n) y[i] = 2 * (at[i] = at[i]);", "ok", ""),
    "f_wild": ("if (i < n) y[i + (1 << 28)] = 2 * x[i];", "failed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "g_right_again": ("if (i < n) y[i] = 2 * x[i];", "ok", ""),
    "h_first_launch_only": (
        "if (i < n && launches < 8 * 128) y[i] = 2 * x[i]; atomicAdd(&launches, 1);",
        "incorrect",
        "Right in its first launch, wrong in a later one",
    ),
}


def doubling(name, body="if (i < n) y[i] = 2 * x[i];"):
    """A kernel of the operation `double`."""
    return kernel_file("double", "NAME", name).replace("BODY", body)


def declare_double(folder):
    shutil.copy(FOLDER / "double" / "operation.toml", folder)


def command(folder, *arguments, **environment):
    """Run a command line where the driver is the emulated one."""
    quick = ("--seconds", "0.01", "--reference", "none")
    site = str(SITE)
    if "GPUPROF_TIMELINE" in environment:  # which is read while modules are loaded
        environment["PYTHONPATH"], site = os.pathsep.join((site, *sys.path)), ""
    process = gpuprof(*arguments, *quick, cwd=folder, environment=environment, site=site)
    assert "Traceback" not in process.stderr, process.stderr
    return process


def emulated(folder, *arguments, **environment):
    """Run it, and read what it wrote."""
    process = command(folder, *arguments, "--no-lines", "--json", "r.json", "-q", **environment)
    return process, read_run(folder / "r.json")


def test_a_ladder_is_verified_and_timed(tmp_path):
    trace = tmp_path / "trace.json"
    command = ("gemm", "-k", "naive,smem_tiled", "--sizes", "24x40x32", "--device", "0")
    fresh = {"GPUPROF_CACHE_DIR": str(tmp_path / "cache"), "GPUPROF_TIMELINE": str(trace)}
    process, run = emulated(tmp_path, *command, **fresh)
    assert process.returncode == 0, process.stderr
    assert run.backend == "gpu"
    for case in run.cases:
        assert case.outcome == "ok", case.reason
        assert case.verification.checked_elements == 24 * 40
        assert case.timing.cold.median_us > case.event_floor_us > 0
        # Its events are a microsecond apart with nothing between them.
        assert case.event_pair_us == pytest.approx(1.0, abs=0.2)
        assert case.timing.warm is not None
    # Each source of the measuring side is compiled once, while the device opens.
    events = json.loads(trace.read_text(encoding="utf-8").rstrip().rstrip(",") + "]")
    compiled = [event for event in events if event["name"] == "compile" and ".cu" in event["args"]["of"]]
    assert sorted(event["args"]["of"] for event in compiled) == [
        "device_code.cu f32",
        "rates.cu",
        "reference.cu f32",
        "tensor_rates.cu",
    ]
    assert all(event["tid"] != event["pid"] for event in compiled)


def test_what_is_wrong_is_a_row_and_the_next_case_is_clean(tmp_path):
    folder = tmp_path / "double"
    folder.mkdir()
    declare_double(folder)
    for name, (body, _, _) in KERNELS.items():
        (folder / f"{name}.cu").write_text(doubling(name, body))
    process, run = emulated(tmp_path, "run", "double", "--device", "0", "--no-explain")
    assert process.returncode == 1, process.stderr
    assert [case.kernel for case in run.cases] == list(KERNELS)
    for case in run.cases:
        _, outcome, reason = KERNELS[case.kernel]
        assert (case.outcome, reason in (case.reason or "")) == (outcome, True), (case.kernel, case.reason)
        assert (case.timing is None) == (outcome != "ok")


#: What many elements show, or times, caches, shared memory that outlasts a launch, threads that run at once.
ON_A_CARD_ONLY = {
    *("small_sizes_only", "looks_at_the_ends"),
    *("by_the_clock", "held_in_l2", "kept_in_shared", "races"),
}


def test_cheats_get_the_verdicts_of_a_gpu(tmp_path):
    process, run = emulated(
        *(tmp_path, "run", CHEATS, "--device", "0", "--no-explain", "--sizes", "20x40", "-k"),
        ",".join(cheat.kernel.id for cheat in cheats() if cheat.kernel.id not in ON_A_CARD_ONLY),
    )
    assert process.returncode == 1, process.stderr
    verdicts = {cheat.kernel.id: cheat.verdicts["gpu"] for cheat in cheats()}
    for case in run.cases:
        verdict = verdicts[case.kernel]
        assert verdict.fits(case) or (case.outcome, verdict.outcome) == ("ok", "honest"), case.reason


@pytest.mark.parametrize(("loading", "flush"), [("EAGER", "read"), ("LAZY", "read"), ("LAZY", "write")])
def test_nothing_waits_behind_a_closed_gate_whatever_a_module_brings(tmp_path, loading, flush):
    shutil.copytree(FOLDER / "double", tmp_path, dirs_exist_ok=True)
    process, run = emulated(
        *(tmp_path, "run", ".", "--device", "0", "--no-explain", "--timeout", "60", "--flush", flush),
        **{"CUDA_MODULE_LOADING": loading, "EMULATED_BLOCKED": str(tmp_path / "blocked")},
    )
    assert process.returncode == 0, process.stderr
    assert [(case.kernel, case.outcome, case.reason) for case in run.cases] == [
        ("headers", "ok", None),
        ("variables", "ok", None),
    ]
    assert not (tmp_path / "blocked").exists()
    assert run_title(run).endswith("L2 cold" if flush == "read" else "L2 flushed by writing")
    assert run.cases[0].remarks == ()
    assert [remark[:14] for remark in run.cases[1].remarks] == ["Launched again"]


@pytest.mark.parametrize("blocking", ["doubled", "cuMemsetD8Async"])
def test_gate_that_something_waits_behind_opens_by_itself(tmp_path, blocking):
    """Once: the case is measured without it then, and the next one with it."""
    declare_double(tmp_path)
    own = '[workspace.own]\nshape = ["n"]\n'
    source = doubling("doubled").replace("*/", own + "*/", 1)
    source = source.replace('"y"]', '"y", "own"]').replace("real *y)", "real *y, real *own)")
    (tmp_path / "doubled.cu").write_text(source)
    (tmp_path / "next.cu").write_text(doubling("next_one"))
    process, run = emulated(
        *(tmp_path, "run", ".", "--device", "0", "--no-explain", "--timeout", "60"),
        **{"EMULATED_BLOCKING": blocking, "EMULATED_BLOCKED": str(tmp_path / "blocked")},
    )
    assert process.returncode == 0, process.stderr
    assert [case.outcome for case in run.cases] == ["ok", "ok"]
    assert [any("gaps" in remark for remark in case.remarks) for case in run.cases] == [True, False]
    assert len((tmp_path / "blocked").read_text().splitlines()) == 1


def test_a_device_that_is_not_there_is_told(tmp_path):
    what = ("transpose", "--sizes", "32", "--device", "2")
    process = command(tmp_path, *what, EMULATED_GPUS="2")
    assert process.returncode != 0
    assert "the driver shows 2" in process.stderr


def test_a_device_that_dies_takes_a_case(tmp_path):
    """Each worker that opens it meets the same end: no row is missing, and each says what happened."""
    _, run = emulated(
        tmp_path, "transpose", "-k", "naive_row", "--sizes", "32", "--device", "0", EMULATED_DEATH="0:880"
    )
    (case,) = run.cases
    assert case.outcome == "failed"
    assert "CUDA_ERROR_ECC_UNCORRECTABLE" in case.reason


def test_two_gpus_are_searched_side_by_side(tmp_path):
    source = doubling("doubled")
    source = source.replace("block = [128]", "block = [128]\nany_block = true")
    source = source.replace("*/", "[candidates]\nblock = [[64]]\n*/", 1)
    declare_double(tmp_path)
    (tmp_path / "doubled.cu").write_text(source, encoding="utf-8")
    options = ("--device", "all", "--rounds", "1", "-o", "found")
    process = command(tmp_path, "tune", ".", *options, EMULATED_GPUS="2")
    assert process.returncode == 0, process.stderr
    run = read_run(tmp_path / "found" / "results.json")
    assert [place.selector for place in run.places] == ["0", "1"]
    assert [(tuned.device, tuned.by, tuned.evaluated) for tuned in run.tuning.sizes] == [
        (0, "time", 2),
        (1, "time", 2),
    ]
    for tuned in run.tuning.sizes:
        assert tuned.ties
        assert f"(GPU {tuned.device}): best is block" in process.stdout
    assert {case.device for case in run.cases if case.timing} == {0, 1}


@pytest.mark.parametrize(
    ("source", "change", "outcome", "words"),
    [
        (
            "compaction",
            ("] = x[i]", "] = max(x[i], 3)"),
            "incorrect",
            "of y, in whatever order, are wrong: 3",
        ),
        ("pairs", ("", ""), "ok", ""),
        ("addresses", ("", ""), "ok", ""),
        ("addresses", ("if (threadIdx.x == 0)", "if (threadIdx.x == 0 && row)"), "incorrect", "sums[0]"),
        ("structs", ("", ""), "ok", ""),
        ("symbols", ("", ""), "ok", ""),
        ("symbols", ("int64_t count", "float count"), "ok", ""),
        ("symbols", ("w[3]", "w[2]"), "failed", "symbol w cannot be set: weights has 12 bytes, and w 8"),
    ],
)
def test_what_a_header_says_of_results_and_variables(tmp_path, source, change, outcome, words):
    text = kernel_file(source, *change)
    (tmp_path / "k.cu").write_text(text)
    sizes = ("--sizes", "4096") if 'dimensions = ["n"]' in text else ()
    _, run = emulated(tmp_path, "run", "k.cu", "--no-explain", *sizes)
    (case,) = run.cases
    assert case.outcome == outcome, case.reason
    assert words in (case.reason or "")


HERE = Path(__file__).parent


def test_what_a_kernel_keeps_where_nobody_clears_shows():
    """By its time with inputs that it has not seen; in the flush's memory by what it left there."""
    paths = (str(HERE / "site"), str(HERE.parent), *sys.path)
    process = ran(
        [sys.executable, str(HERE / "emulated_stores.py")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.returncode == 0, process.stderr
    keeps, honest, flush = process.stdout.splitlines()
    assert keeps.startswith("spare True incorrect Right in its first launch, wrong in a later one")
    assert "inputs that it had not seen" in keeps
    assert honest == "spare False ok None"
    assert "incorrect" in flush
    assert "memory that it was not given" in flush
