# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a fleet keeps of one run: of each card what is told of it, and a few numbers a case."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpuprof.analysis.figure import Subject
from gpuprof.analysis.figures import FIGURES
from gpuprof.analysis.kinds import on_host
from gpuprof.comparison.causes import Card, facts_of
from gpuprof.comparison.compared import name_on_any_device
from gpuprof.comparison.judging import times_of
from gpuprof.results import Measurement, Run


class CaseDigest(NamedTuple):
    """One case on one card: a tuple, since a fleet has tens of thousands.

    Args:
        key: The same for the same case of the same source, and hashable.
        name: What tells it from others.
        kernel: Id of its kernel.
        part: What binds it, in words; empty where that is not known, or was told of an earlier run.
        rounds_us: The median of each round in microseconds; none where it has no time.
        failure: Why it failed; empty where it did not.
    """

    key: tuple[Any, ...]
    name: str
    kernel: str
    part: str
    rounds_us: tuple[float, ...]
    failure: str


@dataclass(frozen=True, slots=True)
class CardDigest:
    """One card of a run.

    Args:
        number: Its number among the run's devices.
        host: The machine that the run says it is in; may be empty.
        card: What is told of it; its title is still to be found.
        cases: Those that it measured.
    """

    number: int
    host: str
    card: Card
    cases: tuple[CaseDigest, ...]


@dataclass(frozen=True, slots=True)
class RunDigest:
    """One run.

    Args:
        file: Where it is kept.
        labels: What the user said of where it ran.
        devices: How many it ran on.
        cards: Those that measured something; empty where nothing was measured on a GPU.
        is_gpu: Whether it was measured on a GPU at all.
    """

    file: str
    labels: Mapping[str, str]
    devices: int
    cards: tuple[CardDigest, ...]
    is_gpu: bool


class Digester:
    """Takes runs down to that, one after the other.

    What binds a case is worked out once, for the first run where it is known: it is no matter of the card.
    """

    def __init__(self) -> None:
        self._told: set[tuple[Any, ...]] = set()

    def digest(self, run: Run, file: str) -> RunDigest:
        """What a fleet keeps of a run.

        Args:
            run: A run on one GPU or several.
            file: Its file.
        """
        is_gpu = run.backend == "gpu"
        host_side = {record.id for record in run.kernels if record.on_host}
        cards = []
        for number, device in enumerate(run.devices if is_gpu else ()):
            cases = [
                case
                for case in run.cases
                if case.device == number and not (case.kernel in host_side and on_host(run, case))
            ]
            if cases:
                facts = facts_of(run, number, cases, "", file)
                own = tuple(self._case(run, device.name, case) for case in cases)
                cards.append(CardDigest(number, run.place(number).host, facts, own))
        return RunDigest(file, dict(run.labels), len(run.devices), tuple(cards), is_gpu)

    def _case(self, run: Run, model: str, case: Measurement) -> CaseDigest:
        launch = case.block if case.has_launch and not case.chosen else None
        params = () if case.chosen else tuple(sorted(case.params.items()))
        key = (case.problem.key, case.kernel, launch, params, case.source_hash)
        part = ""
        if (model, key) not in self._told:
            part = str(FIGURES["bound_by"].read(Subject(run, case)).value or "")
            if part:
                self._told.add((model, key))
        times = tuple(times_of(case).medians_us)
        failed = not times and case.outcome not in ("ok", "skipped")
        failure = (case.reason or f"it ended as {case.outcome}") if failed else ""
        return CaseDigest(key, name_on_any_device(case), case.kernel, part, times, failure)
