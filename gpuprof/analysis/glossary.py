# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report's words mean, and why its gaps are gaps: one place each, which all their mentions link to.

A mention is a link, so that it works with a finger, a keyboard, and without scripts.
"""

import functools
import re
import tomllib
from importlib.resources import files

from gpuprof.analysis.figures import FIGURES, counter_figure
from gpuprof.bounds.parts import PARTS
from gpuprof.devices.measured import MEASURED_RATES
from gpuprof.results import Run

#: One definition: its id, its word, what that is, what it means; of a counter Nsight Compute's names of it.
GlossaryEntry = tuple[str, str, str, str, tuple[str, ...]]


class Glossary:
    """The words that one report mentions, gathered while it is written; a run tells its counters' metrics."""

    def __init__(self, run: Run | None = None) -> None:
        self._metrics: dict[str, dict[str, None]] = {}
        for case in run.cases if run else ():
            for name, counter in case.counters.items():
                if counter.metric:
                    self._metrics.setdefault(name, {})[counter.metric] = None
        self._used: dict[str, None] = {}
        self._reasons: dict[str, int] = {}

    def anchor(self, key: str) -> str:
        """The id that a mention of a word leads to; from then on the word is in `entries`.

        The key is that of a term, a figure, a counter, a part of the GPU (`part_KEY`) or a rate (`rate_KEY`).
        """
        self._used[key] = None
        return _anchor(key)

    def reason(self, text: str | None) -> str:
        """The id of the reason why something was not measured; from then on it is among `reasons`."""
        number = self._reasons.setdefault(text or "no reason was recorded", len(self._reasons) + 1)
        return f"reason-{number}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """In the order first given: the first one's id is `reason-1`."""
        return tuple(self._reasons)

    @property
    def entries(self) -> tuple[GlossaryEntry, ...]:
        """Every term, and the other words that were mentioned, by label."""
        found = [_defined(key, tuple(self._metrics.get(key, ()))) for key in {**_terms(), **self._used}]
        return tuple(sorted(found, key=lambda entry: (entry[1].lower(), entry[2])))


def _anchor(key: str) -> str:
    return f"term-{re.sub('[^A-Za-z0-9_]+', '-', key)}"


def _defined(key: str, metrics: tuple[str, ...]) -> GlossaryEntry:
    term = _terms().get(key)
    if term is not None:
        return _anchor(key), term["label"], "", term["meaning"], ()
    if key.startswith("part_"):
        name = key.removeprefix("part_")
        part = PARTS.get(name)
        label, meaning = (part.label, part.meaning) if part else (name, "")
        return _anchor(key), label, "bound", meaning, ()
    if key.startswith("rate_"):
        rate = MEASURED_RATES[key.removeprefix("rate_")]
        return _anchor(key), rate.label, "measured rate", rate.meaning, ()
    figure = FIGURES.get(key) or counter_figure(key)
    return _anchor(key), figure.label, figure.group, figure.meaning, metrics


@functools.cache
def _terms() -> dict[str, dict[str, str]]:
    text = files("gpuprof.analysis").joinpath("glossary.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
