# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel that ran with several blocks or sets of parameters, as small multiples."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES
from gpuprof.analysis.groups import Group, kernel_record
from gpuprof.analysis.kinds import is_reference
from gpuprof.analysis.models import too_near
from gpuprof.analysis.status import status_of
from gpuprof.results import Measurement, Run

#: By backend, figures that tell parameters apart; the first that differs is shown.
_TELLING = {
    "gpu": ("median_us",),
    "sim": ("model_us", "sector_ratio", "shared_wavefronts_per_step", "theoretical_occupancy_pct"),
    "none": ("theoretical_occupancy_pct", "registers_per_thread"),
}
#: Counts within this share are alike.
_ALIKE = 1e-3

#: Names of a block's extents among those of parameters.
_EXTENTS = ("block.x", "block.y", "block.z")

Params = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ParameterPoint:
    """One block, or one set of parameters: the best case with it, and the figure that is compared."""

    case: Measurement
    value: float | None
    is_best: bool = False
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """All values of the first two parameters, those of the others fixed. None is a set that did not run."""

    fixed: Params
    points: tuple[tuple[ParameterPoint | None, ...], ...]


@dataclass(frozen=True, slots=True)
class ParameterSweep:
    """All blocks, or all sets of parameters, of one kernel at one size.

    `names` are parameters in the header's order, or extents of the block; the default holds the header's
    values, of these and of others that differ from it. A panel stands for each combination of what is neither
    x nor y.
    """

    kernel: str
    size: str
    metric: str
    names: tuple[str, ...]
    default: Params
    xs: tuple[int, ...]
    ys: tuple[int, ...]
    panels: tuple[Panel, ...]

    @property
    def is_of_blocks(self) -> bool:
        """Whether blocks were varied, and not parameters."""
        return self.names[0] in _EXTENTS

    @property
    def figure(self) -> Figure:
        """The figure that is compared."""
        return FIGURES[self.metric]

    @property
    def points(self) -> tuple[ParameterPoint, ...]:
        """Every set that ran."""
        return tuple(
            point for panel in self.panels for row in panel.points for point in row if point is not None
        )

    @property
    def best(self) -> tuple[ParameterPoint, ...]:
        """The best sets: one, or all that share the best count."""
        return tuple(point for point in self.points if point.is_best)

    @property
    def default_point(self) -> ParameterPoint | None:
        """The header's set; None where it did not run."""
        return next((point for point in self.points if point.is_default), None)


def build_parameter_sweeps(run: Run, group: Group) -> tuple[ParameterSweep, ...]:
    """Every kernel of a group that ran with several blocks or sets of parameters, at each of its sizes."""
    cases = [case for size in group.sizes for case in size.cases]
    sweeps = []
    for kernel in dict.fromkeys(case.kernel for case in cases):
        own = [case for case in cases if case.kernel == kernel]
        if is_reference(run, own[0]) or any(case.chosen for case in own):
            continue
        names, metric = varying(own), _metric(run, own)
        for size in group.sizes:
            held = [case for case in size.cases if case.kernel == kernel]
            if names and held:
                default = kernel_record(run, kernel).parameters
                sweeps.append(_sweep(run, size.label, held, metric, names, default))
            if blocks := _varying_blocks(held):
                sweeps.append(_sweep(run, size.label, held, metric, blocks, {}))
    return tuple(sweeps)


def varying(cases: list[Measurement]) -> tuple[str, ...]:
    """Parameters of which a kernel's cases have several values; of one that chooses others, none."""
    if any(case.chosen for case in cases):
        return ()
    names = [name for name in cases[0].params if all(name in case.params for case in cases)]
    return tuple(name for name in names if len({case.params[name] for case in cases}) > 1)


def _varying_blocks(cases: list[Measurement]) -> tuple[str, ...]:
    """Extents of the block that vary; none where each set of parameters ran with one block only."""
    sets = {tuple(case.params.items()): case.block for case in cases}
    if len(sets) > 1 and all(sets[tuple(case.params.items())] == case.block for case in cases):
        return ()
    return tuple(name for name in _EXTENTS if len({_value_of(case, name) for case in cases}) > 1)


def _value_of(case: Measurement, name: str) -> int:
    return case.block[_EXTENTS.index(name)] if name in _EXTENTS else case.params[name]


def _metric(run: Run, cases: list[Measurement]) -> str:
    known = [
        (key, [value for case in cases if (value := _value(run, case, key)) is not None])
        for key in _TELLING[run.backend]
    ]
    for key, values in known:
        if values and max(values) - min(values) > _ALIKE * abs(max(values)):
            return key
    return next((key for key, values in known if values), known[0][0])


def _value(run: Run, case: Measurement, metric: str) -> float | None:
    return FIGURES[metric].value(Subject(run, case)) if status_of(run, case).usable else None


def _sweep(
    run: Run, size: str, cases: list[Measurement], metric: str, names: tuple[str, ...], default: Params
) -> ParameterSweep:
    best: dict[tuple[int, ...], ParameterPoint] = {}
    sign = 1.0 if FIGURES[metric].better == "lower" else -1.0
    for case in cases:
        value = _value(run, case, metric)
        key = tuple(_value_of(case, name) for name in names)
        older = best.get(key)
        if older is None or older.value is None or (value is not None and sign * value < sign * older.value):
            alike = bool(default) and all(case.params.get(name) == value for name, value in default.items())
            best[key] = ParameterPoint(case, value, is_default=alike)
    best = _with_best(best, sign, metric)
    columns = [sorted({key[place] for key in best}) for place in range(len(names))]
    xs, ys, rest = columns[0], columns[1] if len(names) > 1 else [], columns[2:]
    heads: list[tuple[int, ...]] = [(y,) for y in ys] or [()]
    panels = []
    for others in product(*rest):
        rows = tuple(tuple(best.get((x, *y, *others)) for x in xs) for y in heads)
        if any(point for row in rows for point in row):
            panels.append(Panel(dict(zip(names[2:], others, strict=True)), rows))
    return ParameterSweep(
        cases[0].kernel,
        size,
        metric,
        names,
        _told_default(cases, names, default),
        tuple(xs),
        tuple(ys),
        tuple(panels),
    )


def _with_best(
    points: dict[tuple[int, ...], ParameterPoint], sign: float, metric: str
) -> dict[tuple[int, ...], ParameterPoint]:
    """The points with the best marked: of times one, of counts all alike, of modelled times all too near."""
    values = [sign * point.value for point in points.values() if point.value is not None]
    if not values:
        return points
    top = min(values)
    slack = 0.0 if metric == "median_us" else _ALIKE * abs(top)
    least = next(
        (point.case.model for point in points.values() if metric == "model_us" and point.value == top), None
    )

    def is_best(point: ParameterPoint) -> bool:
        if least and point.value is not None and point.case.model:
            return too_near(least, point.case.model)
        return point.value is not None and sign * point.value <= top + slack

    return {key: replace(point, is_best=is_best(point)) for key, point in points.items()}


def _told_default(cases: list[Measurement], names: tuple[str, ...], default: Params) -> Params:
    """The default, without parameters that every case has as the header says."""
    return {
        name: value
        for name, value in default.items()
        if name in names or any(case.params.get(name) != value for case in cases)
    }
