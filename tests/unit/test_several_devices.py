# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run on several devices: each measures every case, and one that dies takes only its own."""

import io
import re
from functools import partial

import pytest
from fake_runs import Watcher, runner

from gpuprof.analysis.groups import groups
from gpuprof.backends.select import named_devices
from gpuprof.comparison.cautions import cautions
from gpuprof.comparison.matching import match
from gpuprof.errors import BackendUnavailable, InputError
from gpuprof.records import replace
from gpuprof.report.comma_separated import render_csv
from gpuprof.report.html import render_html
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report
from gpuprof.report.terminal import print_document

pytestmark = pytest.mark.deep


@pytest.fixture
def run_kernels(tmp_path, monkeypatch):
    """Measures kernels that do as named on stand-ins for GPUs; gives the run and its watcher."""
    monkeypatch.setenv("FAKE_WORKER_UNPLUGGED", str(tmp_path / "unplugged"))
    return partial(runner(tmp_path, monkeypatch), device="0,1")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two kernels on two GPUs."""
    with pytest.MonkeyPatch.context() as patch:
        return runner(tmp_path_factory.mktemp("two"), patch)("a", "b", device="0,1")


def test_each_gpu_measures_every_case_in_its_own_process(two):
    run, watcher = two
    assert [(case.device, case.kernel) for case in run.cases] == [
        (0, "k0_a"),
        (0, "k1_b"),
        (1, "k0_a"),
        (1, "k1_b"),
    ]
    assert [case.outcome for case in run.cases] == ["ok"] * 4
    assert run.complete
    assert watcher.workers == 2
    assert watcher.announced == 4
    assert sorted(watcher.finished_cases) == [(case.device, case.kernel) for case in run.cases]
    assert [place.selector for place in run.places] == ["0", "1"]
    assert [place.bus_id for place in run.places] == ["0000:00:00.0", "0000:01:00.0"]
    labels = tuple(map(run.device_label, (0, 1)))
    assert [label.rpartition(" (")[2] for label in labels] == ["GPU 0)", "GPU 1)"]
    assert watcher.told.device_labels == labels


def test_gpu_that_dies_takes_only_its_rows(run_kernels):
    run, _ = run_kernels("a", "unplugs1", "b")
    first, second = ([case for case in run.cases if case.device == number] for number in (0, 1))
    assert [case.outcome for case in first] == ["ok"] * 3
    assert [case.outcome for case in second] == ["ok", "failed", "failed"]
    assert "fallen off the bus" in second[2].reason
    assert run.places[0].lost is None
    assert "fallen off the bus" in run.places[1].lost
    (banner,) = (banner for banner in cautions(run) if banner.code == "lost_device")
    assert "GPU 1" in banner.title


def test_only_gpu_that_dies_ends_the_run(run_kernels):
    with pytest.raises(BackendUnavailable, match="fallen off the bus"):
        run_kernels("unplugs1", "b", device="1")


def test_rounds_are_measured_on_every_gpu_and_outlast_one_of_them(run_kernels):
    run, watcher = run_kernels("a", "b", rounds=3)
    assert [len(case.timing.cold.rounds_us) for case in run.cases] == [3] * 4
    assert watcher.announced == 12
    assert watcher.workers == 6


def test_slower_gpu_is_named_with_what_its_driver_says(run_kernels, monkeypatch):
    monkeypatch.setenv("FAKE_WORKER_SLOWER_1", "0.1")
    run, _ = run_kernels("a", "b", "c")
    (banner,) = (banner for banner in cautions(run) if banner.code == "card_outlier")
    assert "GPU 1" in banner.title
    assert "slower" in banner.title
    how_slow = r"10(\.0*)? % slower over its 3 cases.*: load: kernels of other processes ran in 97 %"
    assert re.search(how_slow, banner.detail)


def test_gpus_that_agree_are_said_to_agree(two):
    run, _ = two
    codes = [banner.code for banner in cautions(run)]
    assert "cards" in codes
    assert "card_outlier" not in codes


def test_interrupted_run_keeps_what_every_gpu_measured(run_kernels, monkeypatch):
    from gpuprof import signals

    def stop(done):
        if done == 3:
            monkeypatch.setattr(signals._requests, "count", 1)

    run, watcher = run_kernels("a", "b", "c", "d", watcher=Watcher(stop))
    assert not run.complete
    assert 3 <= len(run.cases) < 8
    assert len(watcher.finished_cases) == len(run.cases)


def test_every_renderer_shows_a_ladder_a_card(two):
    run, _ = two
    labels = [run.device_label(number) for number in (0, 1)]
    assert [group.device_label for group in groups(run)] == labels
    for width in (60, None):
        text = io.StringIO()
        print_document(run_report(run), file=text, width=width)
        lines = text.getvalue().splitlines()
        assert max(map(len, lines)) <= (width or 140)
        shown = " ".join(" ".join(lines).split())
        assert all(label in shown for label in labels)
    markdown, csv, page = markdown_of(run_report(run)), render_csv(run), render_html(run)
    for label in labels:
        assert label in markdown
        assert label in csv
        assert label in page


def test_cases_of_two_runs_are_matched_card_by_card(two):
    run, _ = two
    pairs = match(run, run)
    assert all(pair.base is pair.new for pair in pairs)
    assert len(pairs) == 4
    alone = replace(run, devices=run.devices[:1], places=run.places[:1], cases=run.cases[:2])
    pairs = match(alone, run)
    assert [pair.base is not None for pair in pairs] == [True, True, False, False]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("auto", ("auto",)),
        ("3", ("3",)),
        ("0,1", ("0", "1")),
        ("sim:h200, sim:a100", ("sim:h200", "sim:a100")),
        ("sim", ("sim",)),
        ("none:h200,none:a100", ("none:h200", "none:a100")),
    ],
)
def test_devices_that_an_option_names(selector, names):
    assert named_devices(selector) == names


def test_all_are_those_that_the_driver_shows(monkeypatch):
    monkeypatch.setattr("gpuprof.backends.gpu.driver.device_count", lambda: 3)
    assert named_devices("all") == ("0", "1", "2")
    monkeypatch.setattr("gpuprof.backends.gpu.driver.device_count", lambda: 0)
    with pytest.raises(BackendUnavailable, match="shows no GPU"):
        named_devices("all")


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        ("0,0", "names 0 twice"),
        ("sim:h200,sim:h200", "names sim:h200 twice"),
        ("0,sim:h200", "mixes GPUs"),
        ("sim:h200,none:h200", "mixes GPUs"),
        ("0,all", "'all' cannot be in a list"),
        ("auto,0", "'auto' cannot be in a list"),
        ("0,", "nothing between two commas"),
    ],
)
def test_list_that_makes_no_sense_is_refused(selector, complaint):
    with pytest.raises(InputError, match=complaint):
        named_devices(selector)
