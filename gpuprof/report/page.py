# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The whole report as data for the template: what is shown, in which order, under which anchors."""

import shlex
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gpuprof.analysis.agreement import CaseAgreement, agreements
from gpuprof.analysis.banners import Banner, banners
from gpuprof.analysis.blocks import Sweep, build_sweeps
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import Ladder, build_ladder
from gpuprof.analysis.limits import rate_sources
from gpuprof.analysis.modes import MODES
from gpuprof.analysis.parameters import ParameterSweep, build_parameter_sweeps
from gpuprof.analysis.roofline import Roofline, build_roofline
from gpuprof.analysis.scaling import Series, build_scaling
from gpuprof.report.blocks_text import block_sentence
from gpuprof.report.charts import (
    ChartView,
    chart_view,
    ladder_chart,
    parameter_chart,
    roofline_chart,
    scaling_chart,
    sweep_chart,
)
from gpuprof.report.device_facts import RateRow, device_facts, rate_rows
from gpuprof.report.figures_table import FiguresTable, figures_table
from gpuprof.report.kernel_section import KernelSection, anchors_of, kernel_sections
from gpuprof.report.ladder_table import RungColumn, headline, rung_columns
from gpuprof.report.parameters_text import sweep_sentence
from gpuprof.report.profile_table import ProfileRow, profile_rows
from gpuprof.report.svg.drawings import drawings
from gpuprof.results import Run


@dataclass(frozen=True, slots=True)
class SizeView:
    """One size's ladder."""

    label: str
    ladder: Ladder
    columns: tuple[RungColumn, ...]
    headline: str
    chart: ChartView | None
    profile: tuple[ProfileRow, ...]


@dataclass(frozen=True, slots=True)
class SweepView:
    """One heat map."""

    sweep: Sweep
    sentence: str
    table: Markup


@dataclass(frozen=True, slots=True)
class ParametersView:
    """All sets of parameters of one kernel: sizes, each with its sentence, its panels and their charts."""

    kernel: str
    sizes: tuple[tuple[ParameterSweep, str, tuple[Markup, ...]], ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """One problem family: its ladders and the charts across sizes and blocks."""

    title: str
    scalars: str
    group: Group
    sizes: tuple[SizeView, ...]
    opened: int
    scaling: tuple[Series, ...]
    scaling_chart: ChartView | None
    roofline: Roofline | None
    roofline_chart: ChartView | None
    sweeps: tuple[SweepView, ...]
    opened_sweep: int
    parameters: tuple[ParametersView, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the template shows; what `charts` hold goes into a block of the page's too."""

    title: str
    mode: str
    facts: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    rates: tuple[tuple[str, tuple[RateRow, ...]], ...]
    rate_sources: tuple[tuple[str, str], ...]
    banners: tuple[Banner, ...]
    groups: tuple[GroupView, ...]
    agreements: tuple[CaseAgreement, ...]
    figures: FiguresTable
    kernels: tuple[KernelSection, ...]
    anchors: dict[str, str]
    charts: dict[str, ChartView]


def build_page(run: Run) -> Page:
    """Analyse a run and lay out its report."""
    charts: dict[str, ChartView] = {}
    anchors = anchors_of(run)
    views = tuple(_group_view(run, group, anchors, charts) for group in groups(run))
    ladders = [size.ladder for view in views for size in view.sizes]
    names = dict.fromkeys(view.group.operation.title for view in views)
    return Page(
        title=f"{' and '.join(names) or 'Empty run'} {MODES[run.backend].where} {run.device.name}",
        mode=MODES[run.backend].ran,
        facts=_facts(run),
        environment=_environment(run),
        rates=tuple((device.name, rate_rows(device)) for device in run.devices if device.measured_rates),
        rate_sources=rate_sources(run),
        banners=banners(run),
        groups=views,
        agreements=agreements(run),
        figures=figures_table(run, ladders, anchors),
        kernels=kernel_sections(run, ladders, anchors),
        anchors=anchors,
        charts=charts,
    )


def _group_view(run: Run, group: Group, anchors: dict[str, str], charts: dict[str, ChartView]) -> GroupView:
    def add(chart: Any) -> ChartView:
        key = f"chart-{len(charts) + 1}"
        charts[key] = chart_view(key, chart)
        return charts[key]

    sizes = []
    for size in group.sizes:
        ladder = build_ladder(run, size)
        chart = ladder_chart(run, group, ladder, anchors)
        sizes.append(
            SizeView(
                label=size.label,
                ladder=ladder,
                columns=rung_columns(run, group, ladder),
                headline=headline(run, group, ladder),
                chart=add(chart) if chart["metrics"] else None,
                profile=profile_rows(run, ladder),
            )
        )
    opened = max(range(len(sizes)), key=lambda index: (_has_bars(sizes[index].ladder), index))
    sweeps = build_sweeps(run, group)
    scaling = build_scaling(run, group)
    roofline = build_roofline(run, group)
    return GroupView(
        title=group.title,
        scalars=group.scalars,
        group=group,
        sizes=tuple(sizes),
        opened=opened,
        scaling=scaling,
        scaling_chart=add(scaling_chart(group, scaling, anchors)) if scaling else None,
        roofline=roofline,
        roofline_chart=add(roofline_chart(group, roofline, anchors)) if roofline else None,
        sweeps=tuple(
            SweepView(sweep, block_sentence(run, sweep), drawings(sweep_chart(sweep))[0]) for sweep in sweeps
        ),
        opened_sweep=_most_telling(sweeps, sizes[opened]),
        parameters=_parameters(run, group),
    )


def _parameters(run: Run, group: Group) -> tuple[ParametersView, ...]:
    sweeps = build_parameter_sweeps(run, group)
    return tuple(
        ParametersView(
            kernel,
            tuple(
                (
                    sweep,
                    sweep_sentence(run, sweep),
                    tuple(drawings(parameter_chart(sweep, panel))[0] for panel in sweep.panels),
                )
                for sweep in sweeps
                if sweep.kernel == kernel
            ),
        )
        for kernel in dict.fromkeys(sweep.kernel for sweep in sweeps)
    )


def _most_telling(sweeps: tuple[Sweep, ...], size: SizeView) -> int:
    """The sweep of the fastest kernel at the size shown first, if there is one."""
    wanted = (size.ladder.fastest, size.label)
    return next((index for index, sweep in enumerate(sweeps) if (sweep.kernel, sweep.size) == wanted), 0)


def _has_bars(ladder: Ladder) -> bool:
    """True when a ladder has any speed: the largest such size is the one opened first."""
    return any(rung.speed is not None for rung in ladder.rungs)


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    facts = [
        ("Device", f"{run.device.name}, {run.device.arch}"),
        ("Mode", MODES[run.backend].ran),
        ("Date", run.created_utc.replace("T", " ").replace("Z", " UTC")),
        ("gpuprof", run.tool.version),
    ]
    for name, label in (("driver", "Driver"), ("nvrtc", "NVRTC")):
        found = [value for key, value in run.environment.items() if key.lower() == name]
        found += [value for key, value in run.environment.items() if key.lower().startswith(f"{name}_")]
        facts += [(label, value) for value in found[:1]]
    named = run.argv and run.argv[0].endswith("gpuprof")
    facts.append(("Command", shlex.join(run.argv if named else ("gpuprof", *run.argv))))
    return tuple(facts)


def _environment(run: Run) -> tuple[tuple[str, str], ...]:
    return (*device_facts(run.device), *run.environment.items(), ("seed", str(run.seed)))
