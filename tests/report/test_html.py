# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The HTML, Markdown and notebook reports: self-contained, safe with hostile texts, whole without scripts."""

import base64
import hashlib
import json
import re
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_reader import PageReader, expanded
from synthetic_runs import HOSTILE, RUNS, counted_run, sim_run
from wide_run import wide_run

from gpuprof.analysis.status import status_of
from gpuprof.api.comparing import compare, fleet
from gpuprof.api.measured_run import MeasuredRun
from gpuprof.comparison.cautions import cautions
from gpuprof.reading import parse_run
from gpuprof.records import replace
from gpuprof.report.document_page import render_notebook
from gpuprof.report.html import render_html
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report
from gpuprof.report.source import header_lines, line_count, listing
from gpuprof.results import Run

ALL = pytest.mark.parametrize("name", RUNS)


@cache
def page_of(name: str) -> str:
    return render_html(RUNS[name]())


@cache
def reader_of(name: str) -> PageReader:
    return PageReader(page_of(name))


@ALL
def test_the_data_block_reads_back_as_the_run(name: str) -> None:
    document = json.loads(reader_of(name).data_block())
    assert parse_run(document["run"], name) == RUNS[name]()


@pytest.mark.parametrize("name", sorted(set(RUNS) - {"hostile"}))
def test_every_caution_kernel_and_reason_is_told(name: str) -> None:
    run, text = RUNS[name](), " ".join(reader_of(name).text.split())
    for caution in cautions(run):
        assert all(part in text for part in (caution.title, caution.detail, caution.fix))
    for case in run.cases:
        assert case.kernel in text
        assert status_of(run, case).usable or (case.reason or "") in text
    # Of a size without an answer the reasons are in sight.
    unanswered = text.count(" ran correctly") + text.count("nothing ran: ")
    assert page_of(name).count('<details class="all-cases" open>') == unanswered
    # What a block takes, and how many of it an SM holds, in figures.
    counted = any(case.occupancy and case.resources for case in run.cases)
    assert ("warps; an SM holds 64 warps" in text) == counted


@ALL
def test_nothing_is_fetched(name: str) -> None:
    reader = reader_of(name)
    assert [*reader.attributes("src"), *reader.attributes("srcset")] == []
    links = [tag for _, tag in reader.tags if "href" in tag and not tag["href"].startswith("#")]
    assert [link for link in links if not link["href"].startswith(("https://", "http://"))] == []
    style = re.search(r"<style>(.*?)</style>", page_of(name), re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in reader.tags}
    # No attribute runs a script, and no word is explained by hovering only.
    attributes = {attribute for _, tag in reader.tags for attribute in tag}
    assert not [name for name in attributes if name.startswith("on") or name == "title"]


@ALL
def test_the_policy_allows_exactly_the_scripts_of_the_page(name: str) -> None:
    reader = reader_of(name)
    (policy,) = [
        tag["content"] for _, tag in reader.tags if tag.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none';")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    scripts = [text for attributes, text in reader.scripts if "type" not in attributes]
    if reader.charts():
        scripts.append(reader.block("gpuprof-plotly"))
    assert {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts} == allowed
    assert "unsafe-inline" not in re.search(r"script-src[^;]*", policy)[0]  # type: ignore[index]


@ALL
def test_every_inner_link_has_a_target_and_ids_are_distinct(name: str) -> None:
    reader = reader_of(name)
    ids = reader.attributes("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in reader.attributes("href") if link.startswith("#")} <= set(ids)
    assert set(reader.attributes("data-chart")) == set(reader.charts())


@ALL
def test_tables_have_captions_and_headings_do_not_skip_levels(name: str) -> None:
    tags = [tag for tag, _ in reader_of(name).tags]
    assert tags.count("table") == tags.count("caption")
    assert not re.search(r"<th[^>]*></th>", expanded(page_of(name)))
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_hostile_strings_add_no_element() -> None:
    reader = reader_of("hostile")
    assert "img" not in [tag for tag, _ in reader.tags]
    assert "\u202e" not in page_of("hostile")
    assert "\x1b" not in page_of("hostile")
    assert len(reader.scripts) == 5


#: What a line calls the times in it where they are bounds; a kernel's row stands under such a heading.
BOUNDS = re.compile(
    r"[Cc]annot be faster than|not timed; lower bounds|"
    r"would (?:need|allow)| up to |vs |^Against |^\| (?:naive|smem_tiled) |"
    r" / 132 SMs / | GB/s\.$|^\| (?:Shared memory and L1|FMA f32|Barriers|DRAM|L2) \| \| "
    r"|s · (?:FMA|shared/L1|DRAM|L2|issue|launch)$|\bat least \S+ \S+"
)


def is_taken_for_a_time(line: str) -> bool:
    """Whether a line holds a time that nothing says to be a bound."""
    return bool(re.search(r"\d (?:ns|µs|ms|s)\b", line)) and not BOUNDS.search(line)


@pytest.mark.parametrize("name", ["sim", "compiled"])
def test_without_a_gpu_no_time_is_shown(name: str) -> None:
    assert [line for line in reader_of(name).text.splitlines() if is_taken_for_a_time(line)] == []
    assert "FLOP/s" not in reader_of(name).text.split("Environment")[1].split("compute peak")[0]
    choices = [choice for chart in reader_of(name).charts().values() for choice in chart["choices"]]
    assert not {"time", "rate"} & {choice.get("key") for choice in choices}


@ALL
def test_each_word_and_each_reason_is_explained_once(name: str) -> None:
    reader = reader_of(name)
    mentions = {tag["href"] for _, tag in reader.tags if tag.get("class") in ("term", "missing")}
    defined = [found for found in reader.attributes("id") if re.match(r"term-|reason-\d", found)]
    assert {mention[1:] for mention in mentions} <= set(defined)
    assert len(defined) == len(set(defined))
    assert "A counter that gpuprof does not describe" not in reader.text.split("\nGlossary\n")[-1]


@pytest.mark.deep
def test_sixty_kernels_stay_below_the_size_that_opens_anywhere() -> None:
    page = render_html(wide_run())
    assert len(page.encode()) < 5_000_000
    charts = PageReader(page).charts().values()
    (scaling,) = [chart for chart in charts if chart["title"].startswith("Rate over size")]
    assert sum(series["shown"] for series in scaling["choices"][0]["series"]) == 7


def changed(run: Run, place: str, text: str) -> Run:
    """The run with a text in one place."""
    case, kernel = run.cases[0], run.kernels[0]
    if place == "source":
        return replace(run, kernels=(replace(kernel, source=text), *run.kernels[1:]))
    if place == "device":
        return replace(run, devices=(replace(run.device, name=text),))
    case = replace(case, log=text) if place == "log" else replace(case, outcome="failed", reason=text)
    return replace(run, cases=(case, *run.cases[1:]))


MARKUP = st.text(
    alphabet=st.sampled_from(list("<>/&\"'!-=()scriptimg \n\u202e\u2028\x1b;:{}%#")), max_size=60
)


@pytest.mark.parametrize("place", ["reason", "source", "device", "log"])
@settings(max_examples=10, deadline=None)
@given(text=MARKUP)
def test_no_text_adds_an_element_or_changes_the_data(place: str, text: str) -> None:
    allowed = {tag for tag, _ in reader_of("sim").tags} | {tag for tag, _ in reader_of("all_failed").tags}
    run = changed(sim_run(), place, text)
    reader = PageReader(render_html(run))
    assert {tag for tag, _ in reader.tags} <= allowed
    assert len(reader.scripts) in (3, 5)
    assert parse_run(json.loads(reader.data_block())["run"], "page") == run


@given(st.text(alphabet=st.sampled_from(list("/*\"'\\\n #abc01<>&\t")), max_size=120))
def test_a_listing_keeps_every_line_and_character(source: str) -> None:
    shown = listing(source, "k", (0, line_count(source)))
    assert shown.code.unescape() == source.removesuffix("\n")
    assert shown.numbers.split("\n") == [str(number) for number in range(1, line_count(source) + 1)]


def test_source_lines_are_numbered_as_in_the_file() -> None:
    source, case = sim_run().kernels[0].source, sim_run().cases[0]
    first = header_lines(source)
    shown = listing(source, "k", (first, line_count(source)), case)
    assert shown.first == first + 1
    sectors = next(text for label, _, text in shown.counts if label == "Sectors / request")
    lines = str(sectors).split("\n")
    assert [number for number, text in enumerate(lines, first + 1) if text] == [18, 20]
    # A column that no line has anything in is left out.
    assert [label for label, *_ in shown.counts] == ["Sectors / request", "Share of sectors"]


@pytest.mark.parametrize("name", RUNS)
def test_every_row_has_as_many_cells_as_its_head_and_every_case_a_row(name: str) -> None:
    run, tables = RUNS[name](), re.findall(r"(?:^\|.*\n)+", shown(name), re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    assert sum(len(table.splitlines()) - 2 for table in tables) == len(run.cases)


def shown(name: str) -> str:
    return markdown_of(run_report(RUNS[name]()))


def test_a_case_without_figures_has_its_reason_below() -> None:
    text = shown("gemm")
    assert re.search(r"^\| `smem_panel` \|.* ○ over limit (\| – )+", text, re.MULTILINE)
    assert "over limit: The block needs 1,048,576 bytes" in text


def test_a_remark_of_several_cases_is_told_once() -> None:
    run = RUNS["gemm"]()
    cases = [replace(case, remarks=("Its times are odd",)) for case in run.cases]
    (line,) = (
        row for row in markdown_of(run_report(replace(run, cases=cases))).split("\n") if "are odd" in row
    )
    sizes = {
        case.kernel: ", ".join(c.problem.label for c in reversed(cases) if c.kernel == case.kernel)
        for case in cases
    }
    assert all(f"{kernel} {held}" in line.replace("\\", "") for kernel, held in sizes.items())


def test_hostile_strings_stay_text() -> None:
    text = shown("hostile")
    assert "<img" not in text
    assert "&lt;img src=x" in text


ONLY = {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}


def notebook_of(run: Run) -> PageReader:
    return PageReader(render_notebook(run_report(run)))


def test_a_long_run_is_cut_and_says_so() -> None:
    run = wide_run(kernels=20)
    page = notebook_of(run)
    assert f"{len(run.cases) - 100} more cases are in the whole report" in page.text
    assert [tag for tag, _ in page.tags].count("tr") == 101


def test_hostile_texts_stay_text() -> None:
    run = RUNS["hostile"]()
    page = notebook_of(run)
    escaped = HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c").replace("\x1b", "\\u001b")
    assert escaped in page.text
    operation = replace(next(iter(run.operations.values())), title=HOSTILE)
    named = replace(run, operations=dict.fromkeys(run.operations, operation))
    assert notebook_of(named).tags == page.tags


@pytest.mark.parametrize("name", ["gemm", "transpose", "referenced", "hostile"])
def test_a_comparison_shows_itself_as_a_run_does(name: str) -> None:
    run = MeasuredRun(RUNS[name]())
    comparison = compare(run, run)
    page = PageReader(comparison._repr_html_())
    assert {tag for tag, _ in page.tags} <= ONLY
    assert {key for _, attributes in page.tags for key in attributes} <= {"style"}
    kernels = {case.kernel for case in comparison.cases if not case.new.is_reference} - {HOSTILE}
    assert all(kernel in page.text for kernel in kernels)
    assert PageReader(fleet([run])._repr_html_()).tags


def test_a_measured_case_has_its_share_of_the_bound() -> None:
    (case,) = MeasuredRun(counted_run()).find(kernel="reg_2x1")
    assert case.bound_by == "l1"
    assert 92 < case.pct_of_bound < 94
    assert case.pct_of_bound == pytest.approx(100 * case.bound_us / case.median_us)
