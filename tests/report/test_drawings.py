# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The drawings: whole XML, every length that of its figure, and colours of enough contrast in both themes."""

import re
from functools import cache
from importlib.resources import files
from math import log10
from pathlib import Path
from xml.etree import ElementTree

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from page_reader import PageReader
from synthetic_runs import RUNS, gemm_run
from wide_run import wide_run

from gpuprof.analysis.groups import groups
from gpuprof.analysis.ladder import build_ladder
from gpuprof.analysis.speed import rate, rate_at
from gpuprof.reading import read_run
from gpuprof.report.charts import drawings
from gpuprof.report.html import render_html
from gpuprof.report.page import Page, build_page
from gpuprof.report.svg.drawing import Scale, element
from gpuprof.results import dumps

SAMPLES = Path(__file__).parents[2] / "samples"

Element = ElementTree.Element


@cache
def page_of(name: str) -> Page:
    return build_page(RUNS[name]())


def parsed(markup: str) -> Element:
    """A drawing as a tree; it may be several elements side by side."""
    return ElementTree.fromstring(f"<all>{markup}</all>")


def of_class(tree: Element, name: str) -> list[Element]:
    return [item for item in tree.iter() if name in item.get("class", "").split()]


def percent(item: Element, key: str) -> float:
    text = item.attrib[key]
    assert text.endswith("%")
    return float(text[:-1])


def words(item: Element) -> str:
    return "".join(item.itertext())


#: Elements of drawings: text, shapes, lists and tables.
TAGS = "all div p ol li a b i span table caption thead tbody tr th td"
TAGS += " svg rect line path text title desc defs marker"


@pytest.mark.parametrize("name", RUNS)
def test_every_drawing_is_whole_xml_without_a_script(name: str) -> None:
    page = page_of(name)
    found = [drawing for view in page.charts.values() for drawing in drawings(view)]
    for drawing in found:
        elements = list(parsed(drawing).iter())
        assert {item.tag for item in elements} <= set(TAGS.split())
        assert not [key for item in elements for key in item.attrib if key.startswith("on")]
    assert found or name in ("empty", "all_failed", "compiled")


def test_a_hostile_name_stays_text() -> None:
    name = '<b onload="x">&\u202e'
    tree = parsed(element("p", name, title=name))
    assert tree[0].text == tree[0].get("title") == '<b onload="x">&\\u202e'


class TestBars:
    """The ladder at 4096: one bar a rung, each as long as its rate."""

    run = gemm_run()
    group = groups(run)[0]
    ladder = build_ladder(run, group.sizes[-1])
    # The fastest first; what has no time stands last.
    rungs = sorted(ladder.rungs, key=lambda rung: rung.speed.median_us if rung.speed else float("inf"))
    view = next(view for view in build_page(run).charts.values() if view["kind"] == "bars")

    def rows(self, choice: int = 0) -> list[Element]:
        return list(parsed(drawings(self.view)[choice]).iter("li"))

    def test_each_rung_is_a_link_to_its_kernel_with_its_figures(self) -> None:
        rows = self.rows()
        assert [row[0].get("href") for row in rows] == [f"#kernel-{rung.kernel.id}" for rung in self.rungs]
        by_name = {words(row[0][0]): words(row) for row in rows}
        assert by_name["reg_2x1"].startswith("reg_2x113.9 TFLOP/s · 9.91 ms · 20.7 % of peak · ")
        assert by_name["smem_panel"].startswith("smem_panel○ over limit: The block needs 1,048,576 bytes")

    def test_lengths_are_rates_and_whiskers_percentiles(self) -> None:
        ends, values = [], []
        for row, rung in zip(self.rows(), self.rungs, strict=True):
            if rung.speed is None:
                assert not list(row.iter("rect"))
                continue
            (drawing,) = row.iter("svg")
            end = float(drawing.get("style", "").removeprefix("--end:"))
            (bar,) = drawing.iter("rect")
            across = next(line for line in of_class(row, "whisker") if line.get("y1") == "50%")
            ends += [end * percent(bar, "width"), *(end * percent(across, x) for x in ("x1", "x2"))]
            problem, cold = rung.case.problem, rung.speed.timing
            values.append(rate(rung.speed, True))
            values += [rate_at(problem, us, True) for us in (cold.p95_us, cold.p05_us)]
        unit = max(ends[::3]) / max(values[::3])
        assert ends == pytest.approx([unit * value for value in values], abs=0.02)

    def test_of_many_the_slower_are_folded_but_neither_library_nor_first_rung(self) -> None:
        page = build_page(wide_run(kernels=20))
        view = [view for view in page.charts.values() if view["kind"] == "bars"][-1]
        ladder = page.groups[0].sizes[-1].ladder
        shown = [row["name"] for row in view["rows"] if not row["folded"]]
        assert len(view["rows"]) == len(ladder.rungs) > len(shown) <= 13
        assert {ladder.rungs[0].kernel.id, ladder.fastest} <= set(shown)
        assert {rung.kernel.id for rung in ladder.rungs if rung.is_reference} <= set(shown)
        folded = [
            item for item in parsed(view["drawings"][0]).iter("li") if "folded" in item.get("class", "")
        ]
        assert len(folded) == len(view["rows"]) - len(shown)

    def test_a_mark_is_the_measured_time_beyond_the_bound(self) -> None:
        view = page_of("counted").charts["chart-1"]
        place = [metric["key"] for metric in view["choices"]].index("bound")
        rows = [row for row in parsed(drawings(view)[place]).iter("li") if list(row.iter("rect"))]
        bars = [bar for bar in view["choices"][place]["bars"] if bar]
        for row, bar in zip(rows, bars, strict=True):
            (rect,), (mark,) = row.iter("rect"), of_class(row, "mark")
            ratio = percent(rect, "width") / percent(mark, "x1")
            assert ratio == pytest.approx(bar["value"] / bar["mark"], rel=1e-3)


def test_roofs_and_points_lie_on_logarithmic_axes() -> None:
    view = next(view for view in page_of("gemm").charts.values() if view["title"].startswith("Roofline"))
    for choice, level in enumerate(view["choices"]):
        tree = parsed(drawings(view)[choice])
        marks = [item for item in of_class(tree, "mark") if "swatch" not in item.get("class", "")]
        shown = [item for item in level["series"] if item["shown"]]
        assert len(marks) == len(shown) <= 7
        placed = [
            (percent(mark, "x"), percent(mark, "y"), log10(item["x"][-1]), log10(item["y"][-1]))
            for mark, item in zip(marks, shown, strict=True)
        ]
        roof = next(item for item in of_class(tree, "roof") if item.tag == "path")
        start, knee = (
            tuple(map(float, pair.split())) for pair in re.findall(r"[\d.]+ [\d.]+", roof.get("d") or "")[:2]
        )
        # The slope is a bandwidth: on logarithmic axes it rises as much as it runs, in decades.
        across, up = knee[0] - start[0], start[1] - knee[1]
        (x, y, x_log, y_log), *others = placed
        for x2, y2, x2_log, y2_log in others:
            if x2_log != x_log:
                decade = (x2 - x) / (x2_log - x_log)
                height = -(y2 - y) / (y2_log - y_log)
                assert up / across == pytest.approx(height / decade, rel=0.02)


class TestScale:
    @given(st.floats(1e-6, 1e9), st.floats(1.001, 1e6), st.integers(2, 12), st.booleans())
    def test_marked_values_are_few_ascending_and_on_the_axis(
        self, low: float, factor: float, most: int, logarithmic: bool
    ) -> None:
        scale = Scale(low if logarithmic else 0.0, low * factor, logarithmic)
        ticks = scale.ticks(most)
        assert len(ticks) <= most + 1
        assert list(ticks) == sorted(set(ticks))
        assert all(-1e-6 <= scale.share(value) <= 1 + 1e-6 for value in ticks)
        assert len(ticks) >= 2 or logarithmic

    def test_ends(self) -> None:
        assert [Scale(0, 50).share(value) for value in (0, 25, 50)] == [0, 0.5, 1]
        assert [Scale(1, 100, True).share(value) for value in (0.1, 1, 10, 100)] == [0, 0, 0.5, 1]
        assert Scale(0, 54.9).ticks(6) == (0, 10, 20, 30, 40, 50)
        assert Scale(0.5, 6000, True).ticks(6) == (1, 10, 100, 1000)


@pytest.mark.deep
def test_what_the_main_command_draws_is_light() -> None:
    run = read_run(SAMPLES / "gemm-h200.json")
    reader = PageReader(render_html(run))
    blocks = {attributes["id"]: len(text) for attributes, text in reader.scripts if "id" in attributes}
    assert blocks["gpuprof-plotly"] < 600_000
    assert blocks["gpuprof-data"] < 0.15 * len(dumps(run))
    assert blocks["gpuprof-charts"] < 80_000
    assert sum(len(view["drawings"][0]) for view in build_page(run).charts.values()) < 80_000


TEMPLATES = files("gpuprof.report") / "templates"
AA = 4.5
#: WCAG's least contrast of what is no text.
GRAPHICS = 3.0
#: Custom properties that are no colours, and the one that a class sets to a colour.
LENGTHS = {"share", "names", "room", "short-room", "end", "gap", "left", "series"}
TEXT_ON = [
    (text, surface)
    for text in ("ink", "soft", "faint", "accent-strong", "good", "bad", "warning")
    for surface in ("page", "surface", "sunken")
]
TEXT_ON += [("ink", f"{name}-tint") for name in ("accent", "bad", "warning")]
TEXT_ON += [("soft", f"{name}-tint") for name in ("accent", "bad", "warning")]
TEXT_ON += [("accent-strong", "accent-tint"), ("good", "accent-tint"), ("bad", "accent-tint")]
TEXT_ON += [("bad", "bad-tint"), ("warning", "warning-tint")]
TEXT_ON += [
    (f"token-{kind}", surface)
    for kind in ("comment", "keyword", "type", "number", "builtin")
    for surface in ("sunken", "warning-tint")
]


def colours(name: str) -> dict[str, str]:
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))


LIGHT = colours("style.css") | colours("charts.css")
DARK = colours("dark.css")


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@each(theme=[LIGHT, DARK], on=TEXT_ON)
def test_text_has_enough_contrast(theme: dict[str, str], on: tuple[str, str]) -> None:
    text, surface = on
    assert contrast(theme[text], theme[surface]) >= AA


def test_both_themes_define_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_bars_and_lines_stand_out_from_the_surface(theme: dict[str, str]) -> None:
    drawn = ["accent", "accent-strong", "bad", *(f"series-{number}" for number in range(1, 9))]
    assert [name for name in drawn if contrast(theme[name], theme["surface"]) < GRAPHICS] == []


def test_scripts_and_styles_use_only_colours_that_exist() -> None:
    scripts = (TEMPLATES / "charts.js").read_text(encoding="utf-8")
    used = set(re.findall(r'colour\("([\w-]+)"\)', scripts))
    styles = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("style.css", "charts.css"))
    used |= set(re.findall(r"var\(--([\w-]+)\)", styles)) - LENGTHS
    assert used <= LIGHT.keys()
