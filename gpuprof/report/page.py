# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The whole report as data for the template: what is shown, in which order, under which anchors."""

import shlex
from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gpuprof.analysis import numbers
from gpuprof.analysis.agreement import CaseAgreement, agreements
from gpuprof.analysis.answer import Answer, answer_of
from gpuprof.analysis.banner import Banner, Level
from gpuprof.analysis.banners import banners
from gpuprof.analysis.between_cards import Kind, kinds_of_cards
from gpuprof.analysis.blocks import Sweep, build_sweeps
from gpuprof.analysis.card_banners import signed_percent
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import Ladder, Rung, build_ladder
from gpuprof.analysis.limits import rate_sources
from gpuprof.analysis.modes import MODES
from gpuprof.analysis.parameters import ParameterSweep, build_parameter_sweeps
from gpuprof.analysis.roofline import Roofline, build_roofline
from gpuprof.analysis.scaling import Series, build_scaling
from gpuprof.analysis.status import status_of
from gpuprof.report.blocks_text import block_sentence
from gpuprof.report.bound_picture import BoundPicture, picture_of
from gpuprof.report.charts import (
    ChartView,
    chart_view,
    ladder_chart,
    parameter_chart,
    roofline_chart,
    scaling_chart,
    sweep_chart,
    telling_kernels,
)
from gpuprof.report.device_facts import RateRow, device_facts, devices_text, names_text, rate_rows
from gpuprof.report.document import Table
from gpuprof.report.figures_table import FiguresTable, figures_table
from gpuprof.report.kernel_section import KernelSection, anchors_of, kernel_sections
from gpuprof.report.ladder_table import RungColumn, rung_columns, steps_table
from gpuprof.report.parameters_text import sweep_sentence
from gpuprof.report.profile_table import ProfileRow, profile_rows
from gpuprof.report.svg.drawings import drawings
from gpuprof.report.tuned_section import TunedView, tuned_views
from gpuprof.results import Run


@dataclass(frozen=True, slots=True)
class SizeView:
    """One size's ladder.

    Args:
        anchor: Id of its panel.
        common: Cautions that concern most rows, each with how many.
        tags: Those that concern single rows, by kernel.
        winner: The rung that the answer names.
        bounds: Its bounds; None without exact counts.
        code: Where its source stands; empty without one.
        steps: What each step to it gained.
    """

    label: str
    anchor: str
    common: tuple[tuple[str, Banner], ...]
    tags: Mapping[str, tuple[Banner, ...]]
    ladder: Ladder
    columns: tuple[RungColumn, ...]
    answer: Answer
    winner: Rung | None
    bounds: BoundPicture | None
    code: str
    steps: Table | None
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
    short: str
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

    @property
    def has_more(self) -> bool:
        """Whether anything is shown across its sizes and shapes."""
        return bool(self.scaling_chart or self.roofline_chart or self.sweeps or self.parameters)


@dataclass(frozen=True, slots=True)
class KindView:
    """Cards of one kind: a sentence, and a row of texts for each card, its label first."""

    sentence: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the template shows; what `charts` hold goes into a block of the page's too."""

    title: str
    mode: str
    date: str
    environment: tuple[tuple[str, str], ...]
    rates: tuple[tuple[str, tuple[RateRow, ...]], ...]
    rate_sources: tuple[tuple[str, str], ...]
    banners: tuple[Banner, ...]
    caution: str
    groups: tuple[GroupView, ...]
    agreements: tuple[CaseAgreement, ...]
    figures: FiguresTable
    kernels: tuple[KernelSection, ...]
    kinds: tuple[KindView, ...]
    anchors: dict[str, str]
    charts: dict[str, ChartView]
    tuned: tuple[TunedView, ...] = ()


def build_page(run: Run) -> Page:
    """Analyse a run and lay out its report."""
    charts: dict[str, ChartView] = {}
    anchors = anchors_of(run)
    cautions = banners(run)
    held = groups(run)
    views = tuple(
        _group_view(run, group, f"group-{index}", anchors, charts, cautions)
        for index, group in enumerate(held, 1)
    )
    ladders = [size.ladder for view in views for size in view.sizes]
    names = dict.fromkeys(view.group.operation.title for view in views)
    return Page(
        title=f"{' and '.join(names) or 'Empty run'} {MODES[run.backend].where} {names_text(run)}",
        mode=MODES[run.backend].ran,
        date=run.created_utc.replace("T", " ").replace("Z", " UTC"),
        environment=_environment(run),
        rates=tuple(
            (run.device_label(number), rate_rows(device))
            for number, device in enumerate(run.devices)
            if device.measured_rates
        ),
        rate_sources=rate_sources(run),
        banners=cautions,
        caution=_counted(cautions),
        groups=views,
        agreements=agreements(run),
        figures=figures_table(run, ladders, anchors),
        kernels=kernel_sections(run, ladders, anchors),
        kinds=tuple(map(_kind_view, kinds_of_cards(run))),
        anchors=anchors,
        charts=charts,
        tuned=tuned_views(run),
    )


def _kind_view(kind: Kind) -> KindView:
    rows = []
    for card in kind.cards:
        why = "; ".join(card.causes) or ("no reading tells why" if card.is_outlier else "")
        off = [signed_percent(share) for share in (card.slower, card.least, card.most)]
        chance = f"± {numbers.percent(100 * card.uncertainty)}"
        rows.append((card.label, *off, chance, f"off: {why}" if card.is_outlier else "within its kind"))
    return KindView(kind.sentence, tuple(rows))


def _counted(cautions: tuple[Banner, ...]) -> str:
    """For example `1 error, 2 warnings and 3 notes`."""
    tally = Tally(banner.level for banner in cautions)
    words: dict[Level, str] = {"bad": "error", "warning": "warning", "note": "note"}
    parts = [
        f"{tally[level]} {word}{'' if tally[level] == 1 else 's'}"
        for level, word in words.items()
        if tally[level]
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _tagged(
    run: Run, ladder: Ladder, cautions: tuple[Banner, ...]
) -> tuple[tuple[tuple[str, Banner], ...], dict[str, tuple[Banner, ...]]]:
    """Cautions that concern most of a ladder's rows, with how many, and those of single rows, by kernel.

    A note that stands beside more than half of the rows would hide the warnings that stand beside a few.
    """
    own = [rung for rung in ladder.rungs if not rung.is_reference and status_of(run, rung.case).usable]
    common: list[tuple[str, Banner]] = []
    tags: dict[str, tuple[Banner, ...]] = {}
    for banner in cautions:
        cases = {id(case) for case in banner.cases} if banner.tag else set()
        found = [rung for rung in ladder.rungs if id(rung.case) in cases]
        count = sum(id(rung.case) in cases for rung in own)
        if len(own) > 1 and count == len(own):
            common.append(("Every row", banner))
        elif len(own) > 1 and banner.level == "note" and 2 * count > len(own):
            common.append((f"{count} of {len(own)} rows", banner))
        else:
            for rung in found:
                tags[rung.kernel.id] = (*tags.get(rung.kernel.id, ()), banner)
    return tuple(common), tags


def _group_view(
    run: Run,
    group: Group,
    anchor: str,
    anchors: dict[str, str],
    charts: dict[str, ChartView],
    cautions: tuple[Banner, ...],
) -> GroupView:
    def add(chart: Any) -> ChartView:
        key = f"chart-{len(charts) + 1}"
        charts[key] = chart_view(key, chart)
        return charts[key]

    sizes = []
    for index, size in enumerate(group.sizes, 1):
        ladder = build_ladder(run, size)
        common, tags = _tagged(run, ladder, cautions)
        chart = ladder_chart(run, group, ladder, anchors)
        answer = answer_of(run, ladder)
        winner = ladder.rung(answer.kernel) if answer.kernel else None
        sizes.append(
            SizeView(
                label=size.label,
                anchor=f"{anchor}-size-{index}",
                common=common,
                tags=tags,
                ladder=ladder,
                columns=rung_columns(run, group, ladder),
                answer=answer,
                winner=winner,
                bounds=picture_of(ladder, winner) if winner else None,
                code=anchors[winner.case.ran] if winner and winner.case.ran in anchors else "",
                steps=steps_table(ladder, winner, anchors) if winner else None,
                chart=add(chart) if chart["choices"] else None,
                profile=profile_rows(run, ladder),
            )
        )
    opened = max(range(len(sizes)), key=lambda index: (_has_bars(sizes[index].ladder), index))
    # A search looks at few points of many: its own section shows them better than maps full of holes.
    sweeps = () if run.tuning else build_sweeps(run, group)
    scaling = build_scaling(run, group)
    roofline = build_roofline(run, group)
    return GroupView(
        title=group.title,
        short=group.operation.title,
        scalars=group.scalars,
        group=group,
        sizes=tuple(sizes),
        opened=opened,
        scaling=scaling,
        scaling_chart=add(scaling_chart(group, scaling, anchors)) if scaling else None,
        roofline=roofline,
        roofline_chart=add(
            roofline_chart(group, roofline, anchors, telling_kernels(sizes[-1].ladder, sizes[-1].winner))
        )
        if roofline
        else None,
        sweeps=tuple(
            SweepView(sweep, block_sentence(run, sweep), drawings(sweep_chart(sweep))[0]) for sweep in sweeps
        ),
        opened_sweep=_most_telling(sweeps, sizes[opened]),
        parameters=() if run.tuning else _parameters(run, group),
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


def _environment(run: Run) -> tuple[tuple[str, str], ...]:
    named = run.argv and run.argv[0].endswith("gpuprof")
    asked = (
        ("Command", shlex.join(run.argv if named else ("gpuprof", *run.argv))),
        ("Devices" if len(run.devices) > 1 else "Device", devices_text(run)),
    )
    return (*asked, *_surroundings(run), ("seed", str(run.seed)))


def _surroundings(run: Run) -> tuple[tuple[str, str], ...]:
    if len(run.devices) == 1:
        return (*device_facts(run.device), *run.environment.items())
    facts: list[tuple[str, str]] = []
    for number, device in enumerate(run.devices):
        label = run.device_label(number)
        own = (*device_facts(device), *run.place(number).environment.items())
        facts += [(f"{label}: {name}", text) for name, text in own]
    return (*facts, *run.environment.items())
