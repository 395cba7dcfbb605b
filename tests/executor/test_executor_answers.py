# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random kernels, and those in the manner of public suites: they leave and count what cards left and counted.

`differential/kernel_generator.py` writes the random ones, of which `benchmarks/random_kernels.py` asks a card
many more than are kept here; `benchmarks/executor_accuracy.py` records what a card answers of the others. Why
some differ stands in `differential/known_differences.toml`.
"""

import sys
from pathlib import Path

import pytest
from executor_harness import compile_cuda

HERE = Path(__file__).parent
sys.path += [str(HERE / name) for name in ("differential", "public_style")]

from against_card import compared, counts_of_card, execute, reason_of, wrong_bits  # noqa: E402
from answers_file import load_answers, save_answers  # noqa: E402
from kernel_generator import random_kernel  # noqa: E402
from public_kernels import public_kernels  # noqa: E402

pytestmark = pytest.mark.deep

ANSWERS = {
    f"{path.parent.name}/{path.name}": load_answers(path)["answers"]
    for pattern in ("differential/random-*.json.xz", "public_style/answers-*.json.xz")
    for path in sorted(HERE.glob(pattern))
}
#: What approximate functions give is not to the last bit what a card's give.
APPROXIMATE = {"attention_row", "bilateral", "black_scholes", "gelu_tanh", "layer_norm", "nbody_tiles"}
APPROXIMATE |= {"rms_norm_warp", "softmax_row"}


def test_there_are_many():
    assert len(public_kernels()) >= 60


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in ANSWERS for name in ANSWERS[file]])
def test_what_a_card_left_and_counted(file, name):
    number = name.removeprefix("random_")
    case = public_kernels()[name] if number == name else random_kernel(int(number))
    answer = ANSWERS[file][name]
    assert answer["key"] == case.key, "it has changed since: ask the card again"
    ours = execute(case, answer["ptx"])
    assert bool(wrong_bits(case, ours, answer)) == (name in APPROXIMATE)
    counters = compared(ours.counters, counts_of_card(answer))
    assert len(counters) > 10
    assert not {c.name for c in counters if not c.equal and reason_of(name, c.name) is None}


def test_a_difference_is_noticed(tmp_path):
    case = random_kernel(3)
    ours = execute(case, compile_cuda(case.source, case.options))
    changed = [array.copy() for array in ours.arrays]
    changed[3][1] ^= 4
    path = tmp_path / "answers.json.xz"
    for arrays, expected in ((ours.arrays, ""), (changed, "array 3: 1 of")):
        pairs = zip(arrays, case.arrays, strict=True)
        bits = [None if a.tobytes() == b.tobytes() else a.tobytes().hex() for a, b in pairs]
        save_answers(path, {"card": "none"}, {case.name: {"arrays": bits}})
        assert (
            wrong_bits(case, ours, load_answers(path)["answers"][case.name])[: len("array 3: 1 of")]
            == expected
        )
    counted = {name: value for name, value in ours.counters.items() if value is not None}
    assert all(counter.equal for counter in compared(ours.counters, counted))
    one_more = counted | {"global_load_sectors": counted["global_load_sectors"] + 1}
    assert [c.name for c in compared(ours.counters, one_more) if not c.equal] == ["global_load_sectors"]
