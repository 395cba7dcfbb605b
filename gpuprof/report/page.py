# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The whole report as data for the template: what is shown, in which order, under which anchors."""

import shlex
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from gpuprof.analysis import numbers
from gpuprof.analysis.answer import Answer, answer_of
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import SizeLadder, build_ladder
from gpuprof.analysis.limits import rate_sources
from gpuprof.analysis.roofline import build_roofline
from gpuprof.analysis.status import Banner, Level
from gpuprof.comparison.cautions import cautions
from gpuprof.comparison.fleet import cards_of
from gpuprof.comparison.matching import SURROUNDINGS
from gpuprof.report.case_table import case_table
from gpuprof.report.charts import (
    Chart,
    drawings,
    ladder_chart,
    roofline_chart,
    scaling_chart,
    telling_kernels,
)
from gpuprof.report.device_facts import device_facts, names_text, rates_table
from gpuprof.report.document import Cell, Column, Content, Row, Section, Sentence, Table
from gpuprof.report.fleet_text import kind_of_cards
from gpuprof.report.kernel_section import BoundPicture, KernelSection, anchors_of, kernel_sections, picture_of
from gpuprof.report.ladder_table import steps_table
from gpuprof.report.run_text import answer_content, overview, reasons
from gpuprof.report.tuned_text import search_content, sweep_content
from gpuprof.results import BackendName, Run
from gpuprof.text import listed

#: Sizes of which each has a tile; more are rows of a table.
_MOST_TILES = 4
#: Between what ran and the device's name.
WHERE: dict[BackendName, str] = {
    "gpu": "on",
    "sim": "executed without a GPU, as",
    "none": "compiled for",
}


class SizeView(Struct, frozen=True):
    """One size's ladder; bounds and steps are the rung's that the answer names, `code` its source's place."""

    label: str
    anchor: str
    ladder: SizeLadder
    answer: Answer
    bounds: BoundPicture | None
    code: str
    steps: Table | None
    chart: Chart | None
    cases: Table
    reasons: tuple[Sentence, ...]


class GroupView(Struct, frozen=True):
    """One problem family: its ladders and the charts across sizes, blocks and parameters.

    Of too many sizes for tiles, `overview` is a table of their answers.
    """

    group: Group
    sizes: tuple[SizeView, ...]
    opened: int
    overview: tuple[Content, ...]
    scaling_chart: Chart | None
    roofline_chart: Chart | None
    parameters: tuple[Content, ...]

    @property
    def has_more(self) -> bool:
        """Whether anything is shown across its sizes and shapes."""
        return bool(self.scaling_chart or self.roofline_chart or self.parameters)


class Page(Struct, frozen=True):
    """Everything the template shows; what `charts` hold goes into a block of the page's too."""

    title: str
    date: str
    environment: tuple[Table, ...]
    banners: tuple[Banner, ...]
    caution: str
    groups: tuple[GroupView, ...]
    kernels: tuple[KernelSection, ...]
    cards: tuple[Content, ...]
    anchors: dict[str, str]
    charts: dict[str, Chart]
    search: tuple[Content, ...]


def build_page(run: Run) -> Page:
    """Analyse a run and lay out its report."""
    charts: dict[str, Chart] = {}
    anchors = anchors_of(run)
    told, fleet = cautions(run), cards_of(run)
    views = tuple(
        _group_view(run, group, f"group-{index}", anchors, charts)
        for index, group in enumerate(groups(run), 1)
    )
    ladders = [size.ladder for view in views for size in reversed(view.sizes)]
    names = dict.fromkeys(view.group.operation.title for view in views)
    return Page(
        title=f"{' and '.join(names) or 'Empty run'} {WHERE[run.backend]} {names_text(run)}",
        date=run.created_utc.replace("T", " ").replace("Z", " UTC"),
        environment=tuple(_environment(run)),
        banners=told,
        caution=_counted(told),
        groups=views,
        kernels=kernel_sections(run, ladders, anchors),
        cards=tuple(
            Section(kind.name, tuple(kind_of_cards(fleet, kind)))
            for kind in (fleet.found.kinds if fleet else ())
            if fleet and kind.cards > 1
        ),
        anchors=anchors,
        charts=charts,
        search=tuple(search_content(run)),
    )


def _counted(cautions: tuple[Banner, ...]) -> str:
    """For example `1 error, 2 warnings and 3 notes`."""
    tally = Tally(banner.level for banner in cautions)
    words: dict[Level, str] = {"bad": "error", "warning": "warning", "note": "note"}
    counted = {word: tally[level] for level, word in words.items() if tally[level]}
    return listed([numbers.plural(count, word) for word, count in counted.items()])


def _group_view(
    run: Run,
    group: Group,
    anchor: str,
    anchors: dict[str, str],
    charts: dict[str, Chart],
) -> GroupView:
    def add(chart: Chart) -> Chart:
        key = f"chart-{len(charts) + 1}"
        charts[key] = {**chart, "id": key, "drawings": drawings(chart)}
        return charts[key]

    sizes = []
    # The largest size stands first, and the largest with any speed is opened.
    for index, size in enumerate(reversed(group.sizes), 1):
        ladder = build_ladder(run, size)
        chart = ladder_chart(run, group, ladder, anchors)
        answer = answer_of(run, ladder)
        winner = ladder.rung(answer.kernel) if answer.kernel else None
        sizes.append(
            SizeView(
                label=size.label,
                anchor=f"{anchor}-size-{index}",
                ladder=ladder,
                answer=answer,
                bounds=picture_of(winner, alone=False) if winner else None,
                code=anchors[winner.case.ran] if winner and winner.case.ran in anchors else "",
                steps=steps_table(run, ladder, winner, anchors) if winner else None,
                chart=add(chart) if chart["choices"] else None,
                cases=case_table(run, [ladder], anchors, f"Every case at {size.label}, {group.title}"),
                reasons=tuple(reasons(run, ((rung, case) for rung in ladder.rungs for case in rung.cases))),
            )
        )
        if index == 1:
            telling = telling_kernels(ladder, winner)
    fast = [index for index, size in enumerate(sizes) if any(rung.speed for rung in size.ladder.rungs)]
    scaling = scaling_chart(run, group, anchors, telling)
    roofline = build_roofline(run, group)
    return GroupView(
        group=group,
        sizes=tuple(sizes),
        opened=fast[0] if fast else 0,
        overview=tuple(
            overview(
                [answer_content(size.answer, size.label) for size in sizes],
                {size.label: size.anchor for size in sizes},
            )
            if len(sizes) > _MOST_TILES
            else ()
        ),
        scaling_chart=add(scaling) if scaling else None,
        roofline_chart=add(roofline_chart(run, group, roofline, anchors, telling)) if roofline else None,
        parameters=tuple(sweep_content(run, group, briefly=False)),
    )


def _environment(run: Run) -> Iterator[Table]:
    """What the figures depend on, and the rates of the devices with their sources."""
    named = run.argv and run.argv[0].endswith("gpuprof")
    facts = (
        ("Command", shlex.join(run.argv if named else ("gpuprof", *run.argv))),
        ("Devices" if len(run.devices) > 1 else "Device", names_text(run, archs=True)),
        *_surroundings(run),
        ("Seed of the inputs", str(run.seed)),
    )
    yield _pairs(facts, "What the figures depend on, as recorded when they were taken.")
    for number, device in enumerate(run.devices):
        if device.measured_rates:
            name = run.device_label(number)
            yield rates_table(device, f"What small kernels reached on {name}, beside rates at boost clock")
    if sources := rate_sources(run):
        yield _pairs(sources, "Where the rates of the bounds come from")


def _pairs(facts: Iterable[tuple[str, str]], caption: str) -> Table:
    columns = (Column("", right=False), Column("", right=False))
    return Table(columns, tuple(Row(tuple(map(Cell, fact))) for fact in facts), caption, headed=False)


def _surroundings(run: Run) -> tuple[tuple[str, str], ...]:
    if len(run.devices) == 1:
        return (*device_facts(run.device), *_named(run.environment))
    facts: list[tuple[str, str]] = []
    for number, device in enumerate(run.devices):
        label = run.device_label(number)
        own = (*device_facts(device), *_named(run.place(number).environment))
        facts += [(f"{label}: {name}", text) for name, text in own]
    return (*facts, *_named(run.environment))


def _named(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in environment.items():
        yield SURROUNDINGS.get(key, key), value
