# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet: cards from results files, outliers with what else differs, every way to show it."""

import json
import random
import re
from math import exp

import jsonschema
import pytest
from compared_runs import HOSTILE, in_rounds, runs
from json_schemas import json_schema
from unit_support import gpuprof as command

import gpuprof
from gpuprof.comparison.comparison_document import dumps as dumped
from gpuprof.comparison.fleet import FleetBuilder, FleetDocument
from gpuprof.errors import ExitCode, InputError
from gpuprof.records import replace
from gpuprof.report.fleet_text import cautions, fleet_page, fleet_report
from gpuprof.report.markdown import markdown_of
from gpuprof.results import Clocks, Tool, dumps
from gpuprof.schema import from_json

CARDS = 24


def card(number, *, factor=1.0, rounds=5, clock=1980, slow_case="", **fields):
    """One card's run of the GEMM ladder, times made longer so that they count as long ones."""
    rng = random.Random(number)
    own = factor * exp(rng.gauss(0, 0.001))
    whole = runs.gemm_run()
    cases = []
    for case in whole.cases:
        if case.timing is not None and case.timing.cold is not None:
            by = own * 100 * (1.2 if case.kernel == slow_case else 1.0)
            case = in_rounds(case, rounds, spread=0.001, factor=by, seed=number)
            if case.clocks is not None:
                state = replace(case.clocks.after, sm_mhz=clock, throttle_reasons=())
                case = replace(case, clocks=Clocks(state, state))
        cases.append(case)
    given = {"labels": {"host": f"node{number:02}", "rack": f"r{number % 3}"}, **fields}
    return replace(whole, cases=tuple(cases), **given)


def fleet_of(cards):
    builder = FleetBuilder(Tool("gpuprof", "1"))
    for number, run in enumerate(cards):
        builder.add(run, f"{number}.json")
    return builder.fleet()


def healthy(**fields):
    return [card(number, **fields) for number in range(CARDS)]


@pytest.fixture(scope="module")
def with_outlier():
    """Card 7 is 3 % slower at a clock that is 3 % lower."""
    return fleet_of(
        [card(n, factor=1.03 if n == 7 else 1.0, clock=1920 if n == 7 else 1980) for n in range(CARDS)]
    )


def test_outlier_has_its_card_its_distance_and_its_cause(with_outlier):
    (found,) = with_outlier.confirmed
    assert found.card == "node07"
    assert found.change == pytest.approx(0.03, abs=0.005)
    assert "slower over its" in found.where
    assert found.why == "SM clock 1,920 MHz where others have 1,980"


def test_slow_case_of_one_round_is_no_outlier():
    cards = [card(n, rounds=1, slow_case="naive" if n == 4 else "") for n in range(CARDS)]
    fleet = fleet_of(cards)
    assert fleet.confirmed == ()
    (found,) = fleet.suspects
    assert found.card == "node04"
    assert "measure again with --rounds" in found.why
    assert "1 with a slow case" in fleet.headline


def test_other_software_is_marked_and_named_beside_the_outlier():
    odd = {
        "environment": {**runs.gemm_run().environment, "driver": "999.1"},
        "tool": Tool("gpuprof", "0.0.7"),
    }
    fleet = fleet_of([card(n, factor=1.03, **odd) if n == 3 else card(n) for n in range(CARDS)])
    (found,) = fleet.confirmed
    assert any(cause.startswith("driver 999.1 where most have") for cause in found.causes)
    assert fleet.found.versions.keys() == {"driver", "gpuprof"}
    assert any("several versions of gpuprof" in caution for caution in cautions(fleet))


def test_other_models_are_judged_apart():
    other = replace(runs.gemm_run().device, name="Other card")
    fleet = fleet_of([*healthy(), *(card(n + 50, factor=2.0, devices=(other,)) for n in range(CARDS))])
    assert [kind.name for kind in fleet.found.kinds] == [runs.gemm_run().device.name, "Other card"]
    assert fleet.confirmed == ()


def test_other_source_of_a_kernel_is_judged_apart():
    def edited(run):
        cases = [
            replace(case, source_hash="f" * 64) if case.kernel == "naive" else case for case in run.cases
        ]
        return replace(run, cases=tuple(cases))

    fleet = fleet_of([*healthy(), *(edited(card(n + 50, factor=1.0)) for n in range(3))])
    assert fleet.sources == ("naive",)
    assert any(
        "naive" in series.name and "(ffffffff)" in series.name for series in fleet.found.kinds[0].cases
    )


def test_files_of_one_card_are_its_rounds():
    same = [card(7, rounds=2, factor=factor, labels={"card": "c"}) for factor in (1.0, 1.0, 1.2)]
    (one,), (all_,) = (fleet_of(files).found.kinds for files in (same[:1], same))
    assert (all_.cards, all_.cases[0].cards) == (1, 1)
    # Four rounds of six are not slow.
    assert all_.cases[0].median_us == pytest.approx(one.cases[0].median_us, rel=0.01)


def test_one_label_for_unlike_cards_is_refused():
    other = replace(runs.gemm_run().device, name="Other card")
    with pytest.raises(InputError, match="two models: NVIDIA H200 and Other card"):
        fleet_of([card(0, labels={"card": "a"}), card(1, labels={"card": "a"}, devices=(other,))])


def test_rack_of_slow_cards_is_named():
    fleet = fleet_of([card(n, factor=1.03 if n % 3 == 1 else 1.0) for n in range(CARDS)])
    text = markdown_of(fleet_report(fleet))
    assert "by host" not in text  # every card has one of its own
    assert "by rack: r1 " in text
    assert "slower (8)" in text


def test_many_that_lie_apart_are_called_a_group():
    fleet = fleet_of([card(n, factor=1.05 if n % 4 == 1 else 1.0) for n in range(CARDS)])
    assert any("a group of their own" in caution for caution in cautions(fleet))


def test_case_that_failed_on_one_card_is_told():
    broken = card(2)
    cases = [
        replace(case, outcome="failed", reason="It trapped.", timing=None) if case.kernel == "naive" else case
        for case in broken.cases
    ]
    fleet = fleet_of([card(0), card(1), replace(broken, cases=tuple(cases))])
    assert {(failed.card, failed.reason) for failed in fleet.found.failures} == {("node02", "It trapped.")}


def test_nothing_measured_on_a_gpu_is_no_fleet():
    with pytest.raises(InputError, match="nothing in it was measured on a GPU"):
        fleet_of([runs.sim_run()])


def test_document_keeps_its_schema(with_outlier):
    text = dumped(with_outlier.found)
    jsonschema.validate(json.loads(text), json_schema(FleetDocument))
    assert from_json(FleetDocument, json.loads(text)) == with_outlier.found


def test_hostile_labels_and_reasons_stay_text():
    cards = [card(n, factor=1.05 if n == 3 else 1.0, labels={"host": f"{HOSTILE}{n}"}) for n in range(CARDS)]
    fleet = fleet_of(cards)
    assert len(fleet.confirmed) == 1
    assert "<img" not in fleet_page(fleet)
    assert "<img" not in markdown_of(fleet_report(fleet))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results files of 21 cards, the last of them slow, and a file that is something else."""
    held = tmp_path_factory.mktemp("fleet")
    for number in range(21):
        path = held / f"node{number:02}" / "results.json"
        path.parent.mkdir()
        path.write_text(dumps(card(number, factor=1.04 if number == 20 else 1.0)), encoding="utf-8")
    (held / "notes.json").write_text("{}", encoding="utf-8")
    return held


class TestCommand:
    def test_folder_and_pattern_say_the_same(self, folder):
        of_folder = command("fleet", folder, cwd=folder)
        assert of_folder.returncode == ExitCode.OK
        assert "21 cards, 1 outlier" in of_folder.stdout
        said = " ".join(of_folder.stdout.split())
        assert re.search(r"node20 rack r2 [34]\.\d % slower over its \d+ cases", said)
        assert f"left out: {folder / 'notes.json'}" in said
        assert "it has no schema_version" in said
        assert "schema_version." not in said
        of_pattern = command("fleet", "*/results.json", cwd=folder)
        assert "21 cards, 1 outlier" in of_pattern.stdout

    def test_outlier_fails_where_that_is_asked_for(self, folder):
        assert command("fleet", folder, "--fail-on-outlier", cwd=folder).returncode == ExitCode.CASES_FAILED
        one = folder / "node00" / "results.json"
        assert command("fleet", one, "--fail-on-outlier", cwd=folder).returncode == ExitCode.OK

    def test_files_are_written_and_named(self, folder, tmp_path):
        paths = {kind: tmp_path / f"fleet.{kind}" for kind in ("html", "json", "markdown")}
        options = [text for kind, path in paths.items() for text in (f"--{kind}", str(path))]
        ended = command("fleet", folder, "-q", *options, cwd=tmp_path)
        assert [f"Wrote {path}" for path in paths.values()] == ended.stdout.splitlines()
        assert "node20" in paths["markdown"].read_text(encoding="utf-8")
        again = command("fleet", folder, "-q", *options, cwd=tmp_path)
        assert again.returncode == ExitCode.BAD_INPUT

    def test_one_card_has_no_table_of_cases(self, folder):
        ended = command("fleet", "node00/results.json", "--markdown", "-", cwd=folder)
        assert "a single card has nothing to be compared with" in ended.stdout
        assert "<details>" not in ended.stdout

    @pytest.mark.parametrize("name", ["missing.json", "notes.json", "empty"])
    def test_what_holds_no_results_is_refused(self, folder, name):
        (folder / "empty").mkdir(exist_ok=True)
        ended = command("fleet", folder / name, cwd=folder)
        assert ended.returncode == ExitCode.BAD_INPUT
        assert name in ended.stderr


class TestPython:
    def test_outliers_are_plain_values(self):
        found = gpuprof.fleet(gpuprof.Run(card(n, factor=0.95 if n == 5 else 1.0)) for n in range(CARDS))
        (outlier,) = found.outliers
        assert (found.cards, outlier.card, outlier.labels["rack"]) == (CARDS, "node05", "r2")
        assert outlier.change == pytest.approx(-0.05, abs=0.01)
        assert "faster over its" in outlier.sentence
        assert found.suspects == ()
        assert found.to_dict()["kinds"][0]["outliers"][0]["card"] == "node05"

    def test_one_run_is_no_list(self):
        with pytest.raises(InputError, match="Give Iterable"):
            gpuprof.fleet("results.json")
