# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Reports in an installed Chromium; every test here is skipped, with the reason, where there is none."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The runs that all tests of reports share.
sys.path.append(str(Path(__file__).parents[1] / "report"))

# Runs to compare put the others in reach.
sys.path.append(str(Path(__file__).parents[1] / "compare"))

from chromium import browser
from compared_runs import ladder
from synthetic_runs import counted_run, gemm_run, hostile_run, sim_run, transpose_run, tuned_run
from wide_run import wide_run

from gpuprof.comparison.compared import compare_runs
from gpuprof.comparison.fleet import FleetBuilder
from gpuprof.reading import read_run
from gpuprof.report.compared_text import comparison_page
from gpuprof.report.fleet_text import fleet_page
from gpuprof.report.html import render_html
from gpuprof.results import Run, Tool

SAMPLES = Path(__file__).parents[2] / "samples"
REPORTS = {
    "ladder": lambda: read_run(SAMPLES / "gemm-h200.json"),
    "sizes": lambda: read_run(SAMPLES / "gemm-e4m3-by-size-h100.json"),
    "gemm": gemm_run,
    "counted": counted_run,
    "sim": sim_run,
    "transpose": transpose_run,
    "tuned": tuned_run,
    "hostile": hostile_run,
    "wide": wide_run,
}


def _compared(base: Run, new: Run) -> str:
    return comparison_page([(compare_runs(base, new, force=True), [])], Tool("gpuprof", "1"))


def _fleet() -> str:
    builder = FleetBuilder(Tool("gpuprof", "1"))
    for number in range(30):
        factors = {"naive": 1.1, "smem_tiled": 1.1} if number == 7 else {}
        labels = {"host": f"node{number}", "rack": f"r{number % 4}"}
        builder.add(ladder(seed=number, factors=factors, labels=labels), f"{number}.json")
    builder.add(hostile_run(), "hostile.json")
    return fleet_page(builder.fleet())


#: Pages that are no reports.
PAGES = {
    "compared": lambda: _compared(ladder(), ladder(seed=1, factors={"naive": 1.1, "smem_tiled": 0.9})),
    "compared-sim": lambda: _compared(sim_run(), sim_run()),
    "fleet": _fleet,
    "compared-hostile": lambda: _compared(hostile_run(), hostile_run()),
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """A browser without a window."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    try:
        with browser() as opened:
            yield opened
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Where a report lies; it is rendered when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def of(name: str) -> str:
        path = folder / f"{name}.html"
        if not path.exists():
            text = PAGES[name]() if name in PAGES else render_html(REPORTS[name]())
            path.write_text(text, encoding="utf-8")
        return path.as_uri()

    return of


@pytest.fixture(scope="session")
def look(chromium: object) -> Callable[..., tuple[object, list[str]]]:
    """The page of a way to look, whose process is slow to start, and what it asked for or complained of."""
    kept: dict[object, tuple[object, list[str]]] = {}

    def page_of(**options: object) -> tuple[object, list[str]]:
        key = tuple(options.items())
        if key not in kept:
            page, heard = chromium.new_context(**options).new_page(), []
            page.on("request", lambda request: heard.append(request.url))
            page.on("console", lambda message: heard.append(message.text))
            page.on("pageerror", lambda error: heard.append(str(error)))
            page.on("dialog", lambda dialog: heard.append(dialog.message))
            kept[key] = page, heard
        return kept[key]

    return page_of


@pytest.fixture
def visit(look: Callable[..., tuple[object, list[str]]], address: Callable[[str], str]) -> Iterator[object]:
    """Opens a report; in the end no page may have asked for anything or complained of anything."""
    heard: dict[int, list[str]] = {}

    def opened(
        name: str,
        *,
        size: tuple[int, int] = (1400, 900),
        at: str = "",
        color_scheme: str = "light",
        **options: object,
    ) -> object:
        page, said = look(**options)
        page.goto("about:blank")  # from one place of a report to another nothing would be loaded
        page.emulate_media(media="null", color_scheme=color_scheme)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if id(page) not in heard:
            said.clear()  # what came after the end of another test
            heard[id(page)] = said
        page.goto(address(name) + at)
        said.remove(address(name))
        return page

    yield opened
    assert [words for said in heard.values() for words in said] == []
