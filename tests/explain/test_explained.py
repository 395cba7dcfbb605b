# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the executor says of cases that fail, hang or are wrong: which line, thread, and wait."""

import re
from pathlib import Path

import pytest
from cuda_sources import either, kernel_table, line_of
from planted_kernels import FOLDER, PLANTED, SIZE, check_explanation

import gpuprof
from gpuprof.kernels.paths import Source, ladder_of
from gpuprof.measure import explain
from gpuprof.schema import to_json

pytestmark = pytest.mark.deep

SIZES = tuple(map(int, SIZE.split("x")))
BY_NAME = {planted.name: planted for planted in PLANTED}


@pytest.fixture(scope="module")
def ladder():
    return ladder_of([FOLDER])


def changed(ladder, name, new_name, *replacements):
    """A ladder with one kernel: a planted one of which some text is another."""
    text = ladder.find(name).source.replace(name, new_name)
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return ladder_of([Source(text, new_name)], ladder.operation)


def test_as_many_are_planted_as_are_promised():
    symptoms = [planted.symptom for planted in PLANTED]
    assert symptoms.count("fault") + symptoms.count("hang") >= 20
    assert symptoms.count("wrong") >= 10
    assert all(planted.lines for planted in PLANTED)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_kernel_is_explained(ladder, explained, planted):
    explanation, why_not = explained(ladder, planted.name, SIZES, planted.symptom)
    assert explanation is not None, why_not
    check_explanation(to_json(explanation), planted)
    assert why_not == ""
    if planted.symptom != "hang":
        assert tuple(explanation.sizes.values()) == SIZES


def test_a_hang_is_looked_for_where_it_is_cheap(ladder, explained):
    explanation, _ = explained(ladder, "hang_flag", SIZES, "hang")
    assert explanation.sizes == {"rows": 43, "columns": 44}


@pytest.mark.parametrize("size", [(4099, 4100), (128, 131072)])
@pytest.mark.parametrize("name", ["fault_one_thread", "wrong_later", "wrong_input"])
def test_a_large_case_is_explained_at_a_smaller_size_of_its_kind(ladder, explained, name, size):
    explanation, _ = explained(ladder, name, size, BY_NAME[name].symptom)
    check_explanation(to_json(explanation), BY_NAME[name])
    found = tuple(explanation.sizes.values())
    assert found < size
    assert [extent % 32 for extent in found] == [extent % 32 for extent in size]


def test_what_only_the_case_itself_shows_is_found_by_the_block_that_writes_there(ladder, explained):
    late = changed(ladder, "wrong_value", "wrong_late", ("row == 3 && column == 7", "i == 30000000"))
    element = 30_000_000
    explanation, _ = explained(late, "wrong_late", (5001, 6001), "wrong", output="y", element=element)
    assert explanation.sizes == {"rows": 5001, "columns": 6001}
    assert (explanation.line, explanation.offset) == (17, 4 * element)
    assert explanation.block == (element % 6001 // 32, element // 6001 // 4, 0)
    assert f"stores 5 to y[{element // 6001}, {element % 6001}]" in explanation.text


def test_a_fault_of_the_last_block_only_is_found(ladder, explained):
    there = ("row == 3 && column == 7 ? 5", "i == 30011000 ? x[i << 5]")
    late = changed(ladder, "wrong_value", "fault_late", there)
    explanation, _ = explained(late, "fault_late", (5001, 6001), "fault")
    assert (explanation.cause, explanation.line, explanation.sizes["rows"]) == ("illegal address", 17, 5001)
    assert explanation.array == "x"


@pytest.mark.parametrize(
    ("symptom", "words"),
    [
        ("fault", "The executor finds nothing wrong with it at size 75x140: "),
        ("wrong", "The executor finds nothing wrong with it at size 75x140: "),
        ("hang", "The executor finds nothing wrong with it, which may only be slow, at size 43x44"),
    ],
)
def test_a_kernel_that_is_right_there_is_said_to_be(ladder, explained, symptom, words):
    right = changed(ladder, "wrong_value", "right", ("row == 3 && column == 7 ? 5 : ", ""))
    explanation, why_not = explained(right, "right", SIZES, symptom)
    assert explanation is None
    assert why_not.startswith(words)


def test_another_fault_than_the_devices_is_called_so(ladder, explained):
    explanation, _ = explained(ladder, "wrong_value", SIZES, "fault")
    assert explanation.is_another
    sentence = explanation.sentence(None)
    assert sentence.startswith("Another fault comes first: wrong store: line 17, thread (7, 3, 0)")


def test_what_is_not_modelled_is_named(ladder, explained):
    strange = changed(
        *(ladder, "wrong_value", "fault_strange"),
        ("y[i] =", 'asm volatile("isspacep.cluster.foo p, %0;" :: "l"(x));\n    y[i] ='),
    )
    explanation, why_not = explained(strange, "fault_strange", SIZES, "fault")
    assert explanation is None
    assert why_not.startswith("The executor cannot tell why: ")


def test_nothing_is_said_to_be_right_that_did_not_run(ladder, explained, monkeypatch):
    right = changed(ladder, "wrong_value", "right", ("row == 3 && column == 7 ? 5 : ", ""))
    monkeypatch.setattr(explain, "smaller_cases", lambda *_: [])
    monkeypatch.setattr(explain, "_MOST_BYTES", 1)
    explanation, why_not = explained(right, "right", SIZES, "wrong")
    assert explanation is None
    assert why_not.startswith("The executor cannot tell why: ")


def test_what_the_executor_finds_in_its_own_run_is_traced():
    wrong = ["wrong_value", "wrong_left_out", "wrong_tail", "wrong_factor"]
    faults = ["fault_one_thread", "fault_misaligned_load", "fault_trap", "wrong_input"]
    run = gpuprof.profile(FOLDER, kernels=[*wrong, *faults], sizes=SIZES, device="sim:h200")
    for name in wrong:
        case = run.case(name)
        check_explanation(to_json(case.explanation), BY_NAME[name])
        assert BY_NAME[name].words in case.reason
        assert "found by the executor" not in case.reason
    for name in faults:
        case = run.case(name)
        assert case.outcome == "failed"
        assert (case.explanation.cause, case.explanation.line) == (BY_NAME[name].cause, *BY_NAME[name].lines)
        assert case.explanation.block is not None
        assert case.explanation.thread is not None


def test_explaining_can_be_turned_off():
    options = {"kernels": "wrong_value", "sizes": SIZES, "device": "sim:h200"}
    on, off = (gpuprof.profile(FOLDER, **options, explain=explain).case() for explain in (True, False))
    assert off.explanation is None
    assert off.record.explanation_reason == "explaining was turned off"
    assert on.reason == f"{off.reason} {on.explanation.sentence(None)}"


def test_of_a_sampled_run_the_same_blocks_are_traced():
    case = gpuprof.profile(
        FOLDER, kernels="wrong_factor", sizes=(500, 500), sim_blocks=4, device="sim:h200"
    ).case()
    assert (case.explanation.cause, case.explanation.line) == ("wrong store", 17)
    assert "checked elements" in case.reason


HANGS = kernel_table(Path(__file__).parent / "hangs.cu")


def sources(number, name):
    """A hung kernel, and its right twin."""
    kinds = {f"hung{number}": True, f"right{number}": False}
    return [
        Source(either(HANGS[name].text, first=hangs).replace("hung", kind), kind)
        for kind, hangs in kinds.items()
    ]


TWINS = {name: sources(number, name) for number, name in enumerate(HANGS)}


def words_of(name):
    """What is to be said, with the numbers of lines."""
    source = TWINS[name][0].text
    return [
        re.sub(r"@(\d)", lambda found: str(line_of(source, f"// {found[1]}")), one)
        for one in HANGS[name].told["words"]
    ]


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_says_what_every_warp_waits_for(name, explained):
    hung, right = TWINS[name]
    explanation, why_not = explained(ladder_of([hung]), hung.name, (256,), "hang")
    assert explanation is not None, why_not
    for one in words_of(name):
        assert one in explanation.text
    explanation, _ = explained(ladder_of([right]), right.name, (256,), "hang")
    assert explanation is None


def test_the_executor_says_it_of_itself():
    kinds = ("a named barrier with too few", "an arrival too few", "a lock that stays taken")
    run = gpuprof.profile([one for name in kinds for one in TWINS[name]], device="sim", timeout_s=20)
    for name in kinds:
        hung, right = (run.case(one.name) for one in TWINS[name])
        for one in words_of(name):
            assert one in hung.reason, name
        assert right.outcome == "ok", name
