# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The planted kernels: what each does wrong, and the lines and words that its explanation must have.

A file in `planted` says it itself: its name begins with what a device shows, `// expect:` names the cause and
words of the explanation, and `// <- here` marks the line, or each of several that are as right.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "planted"
#: The size that is asked for; smaller ones may show the same.
SIZE = "75x140"
#: How a case ends on a device, by what it shows.
OUTCOMES = {"fault": "failed", "hang": "timeout", "wrong": "incorrect"}


@dataclass(frozen=True)
class Planted:
    name: str
    cause: str
    words: str
    lines: frozenset[int]

    @property
    def symptom(self):
        return self.name.partition("_")[0]


def read_planted(path):
    lines = path.read_text().splitlines()
    (expect,) = (line.partition("// expect: ")[2] for line in lines if "// expect: " in line)
    cause, _, words = expect.partition(": ")
    marked = frozenset(number for number, line in enumerate(lines, 1) if "// <- here" in line)
    return Planted(path.stem, cause, words, marked)


PLANTED = tuple(read_planted(path) for path in sorted(FOLDER.glob("*.cu")))


def check_explanation(explanation, planted):
    """Hold an explanation, as data, against what was planted."""
    assert (explanation["cause"], explanation["is_another"]) == (planted.cause, False), explanation
    assert explanation["line"] in planted.lines, explanation
    assert planted.words in explanation["text"]
    if explanation["thread"] is not None:
        x, y, z = explanation["thread"]
        assert f"thread ({x}, {y}, {z}) of block" in explanation["text"]


def check_row(case, planted):
    """Hold a case of a results file against what was planted: the row says what explains it, too."""
    assert case["outcome"] == OUTCOMES[planted.symptom], case["reason"]
    explanation = case["explanation"]
    assert explanation is not None, case["reason"]
    check_explanation(explanation, planted)
    assert case["explanation_reason"] is None
    assert f"{planted.cause.capitalize()}: {explanation['text']} (found by the executor" in case["reason"]
