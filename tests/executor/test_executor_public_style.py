# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels in the manner of public suites: they leave the bits that a card left, and count what it counted.

The cards' answers are recorded by `benchmarks/executor_accuracy.py`; why some differ stands in
`differential/known_differences.toml`.
"""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "public_style"
sys.path.append(str(FOLDER))

from public_kernels import public_kernels  # noqa: E402  (it finds the rooms beside it)

from against_card import compared, counts_of_card, execute, reason_of, wrong_bits  # noqa: E402  # isort: skip
from answers_file import load_answers  # noqa: E402  # isort: skip

pytestmark = pytest.mark.deep

ANSWERS = {path.name: load_answers(path)["answers"] for path in sorted(FOLDER.glob("answers-*.json.xz"))}


#: What approximate functions give is not to the last bit what a card's give.
APPROXIMATE = {"attention_row", "bilateral", "black_scholes", "gelu_tanh", "layer_norm", "nbody_tiles"}
APPROXIMATE |= {"rms_norm_warp", "softmax_row"}


def test_there_are_many():
    assert len(public_kernels()) >= 60


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in ANSWERS for name in ANSWERS[file]])
def test_what_a_card_left_and_counted(file, name):
    case, answer = public_kernels()[name], ANSWERS[file][name]
    assert answer["key"] == case.key, "the kernel has changed since: ask the card again"
    ours = execute(case, answer["ptx"])
    assert bool(wrong_bits(case, ours, answer)) == (name in APPROXIMATE)
    counters = compared(ours.counters, counts_of_card(answer))
    assert len(counters) > 10
    unexplained = [c for c in counters if not c.equal and reason_of(name, c.name) is None]
    assert not unexplained
