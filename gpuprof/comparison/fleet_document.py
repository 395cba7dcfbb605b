# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A fleet as a JSON document with a version of its own; docs/fleet.schema.json is its schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from gpuprof.comparison.fleet import Finding, Fleet, Kind
from gpuprof.comparison.outliers import Deviation, spread_of
from gpuprof.quantities import Count, NonNegative, Positive
from gpuprof.results import Tool
from gpuprof.schema import to_json


@dataclass(frozen=True, slots=True)
class FleetCase:
    """One case on all cards that ran it.

    Args:
        name: Kernel, size, block and parameters.
        bound_by: What binds it; empty where that is not known.
        cards: How many ran it.
        median_us: The middle of their times.
        spread: Robust standard deviation between cards, as a share; null of one card.
    """

    name: str
    bound_by: str
    cards: Count
    median_us: Positive
    spread: NonNegative | None


@dataclass(frozen=True, slots=True)
class FleetOutlier:
    """A card that is not like the others.

    Args:
        card: What it is called.
        file: The results file that it was first met in.
        labels: Those of its run.
        confirmed: Whether it is more than a chance of one process.
        whole: Over all its cases, where it is a deviation there.
        parts: The parts of the GPU over whose cases it deviates.
        cases: The cases in which it does.
        causes: What else of it is unlike the others.
    """

    card: str
    file: str
    labels: Mapping[str, str]
    confirmed: bool
    whole: Deviation | None
    parts: tuple[Deviation, ...]
    cases: tuple[Deviation, ...]
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetKind:
    """All cards of one model.

    Args:
        changes: How far each card lies from the middle over all its cases: 0.02 is 2 % slower.
        threshold: From where on that is an outlier; null where nothing can be judged.
        spread: Standard deviation between cards; null likewise.
    """

    name: str
    cards: Count
    changes: Mapping[str, float]
    threshold: float | None
    spread: NonNegative | None
    outliers: tuple[FleetOutlier, ...]
    cases: tuple[FleetCase, ...]


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A case without a time on a card where others have one."""

    card: str
    case: str
    reason: str


@dataclass(frozen=True, slots=True)
class FleetDocument:
    """What `gpuprof fleet --json` writes.

    Args:
        cards: How many cards in all.
        versions: Software of several versions: how many cards have each.
        left_out: Files that say nothing of a fleet, with the reason.
    """

    schema_version: Literal[1]
    tool: Tool
    cards: Count
    kinds: tuple[FleetKind, ...]
    versions: Mapping[str, Mapping[str, Count]]
    failures: tuple[FailedCase, ...]
    left_out: Mapping[str, str]


def fleet_document(fleet: Fleet, tool: Tool) -> FleetDocument:
    """A fleet as data.

    Args:
        fleet: The fleet.
        tool: What judges.
    """
    return FleetDocument(
        1,
        tool,
        fleet.cards,
        tuple(map(_kind, fleet.kinds)),
        {mixture.what: mixture.cards for mixture in fleet.mixtures},
        tuple(FailedCase(*failure) for failure in fleet.failures),
        dict(fleet.left_out),
    )


def dumps_fleet(found: FleetDocument) -> str:
    """The document's text."""
    return json.dumps(to_json(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _kind(kind: Kind) -> FleetKind:
    judged = kind.judged
    cases = []
    for series in kind.series:
        times = [level.median_us for level in series.levels.values()]
        middle = median(times)
        spread = spread_of(time / middle for time in times) if len(times) > 1 else None
        cases.append(FleetCase(series.name, series.part, len(times), middle, spread))
    return FleetKind(
        kind.name,
        len(kind.cards),
        judged.changes,
        judged.threshold,
        judged.spread,
        tuple(map(_outlier, kind.findings)),
        tuple(cases),
    )


def _outlier(finding: Finding) -> FleetOutlier:
    outlier, card = finding.outlier, finding.card
    return FleetOutlier(
        card.title,
        card.file,
        card.labels,
        outlier.confirmed,
        outlier.whole,
        outlier.parts,
        outlier.cases,
        finding.causes,
    )
