# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Results files that nobody measured: refused with one sentence, or shown; never a crash, never a stall."""

import copy
import io
import json
from pathlib import Path

import pytest
from each import each
from hurried_clock import soon
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_reader import expanded
from unit_support import DEVICE, busy_runs

from gpuprof import page_data
from gpuprof.analysis.counts import MOST_FOREIGN
from gpuprof.errors import InputError, ResultsError
from gpuprof.executor.program.parsing import parse as parse_ptx
from gpuprof.ncu.importing import match_launches
from gpuprof.ncu.read import ProfiledLaunch
from gpuprof.ncu.tool import diagnose
from gpuprof.reading import parse_run, read_run
from gpuprof.records import replace
from gpuprof.report import html
from gpuprof.report.html import render_html
from gpuprof.report.markdown import markdown_of
from gpuprof.report.run_text import run_report
from gpuprof.report.source import difference, header_lines, line_count, listing
from gpuprof.report.terminal import print_document
from gpuprof.results import Counter, dumps
from gpuprof.toolchain.nvrtc import _SPILLS

pytestmark = pytest.mark.deep

SAMPLES = Path(__file__).parents[2] / "samples"
VERSION_1 = Path(__file__).parent / "version1"
FIXTURES = Path(__file__).parents[1] / "report" / "fixtures"
LONG = 2_000_000


@pytest.fixture(scope="module", autouse=True)
def without_plotly():
    """Its megabytes have no part in what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "_plotly", lambda: ("", ""))
        yield


def render(run):
    """A run as every renderer shows it."""
    texts = [render_html(run), markdown_of(run_report(run))]
    for width in (40, 200):
        file = io.StringIO()
        print_document(run_report(run), file=file, width=width, color=True)
        texts.append(file.getvalue())
    return texts


def import_counters(run):
    """Give each case of a run a launch that looks like its own."""
    launches = [ProfiledLaunch(case.kernel, case.block, case.grid or (1, 1, 1), None) for case in run.cases]
    try:
        match_launches(run, launches, Path("x.ncu-rep"))
    except InputError:
        return


# Values.

FEW = settings(max_examples=6, suppress_health_check=list(HealthCheck), deadline=None)
SOME = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


@FEW
@given(busy_runs())
def test_any_run_full_of_figures_can_be_shown(run):
    render(run)
    import_counters(run)


def small(path):
    """A results file cut to a few cases, so that one change in it counts."""
    document = json.loads(path.read_text())
    document["cases"] = document["cases"][:2] + document["cases"][-2:]
    for case in document["cases"]:
        if case["timing"]:
            case["timing"]["cold"]["samples_us"] = case["timing"]["cold"]["samples_us"][:3]
        case["lines"] = (case["lines"] or [])[:2] or None
    used = {case["kernel"] for case in document["cases"]}
    document["kernels"] = [
        {**record, "source": record["source"][:300]} for record in document["kernels"] if record["id"] in used
    ]
    return document


#: Of version 1, as they were written.
OLD = [
    small(path)
    for path in (
        VERSION_1 / "transpose-h200.json",
        VERSION_1 / "transpose-blocks-h200.json",
        VERSION_1 / "gemm-h200.json",
        FIXTURES / "gemm-counted.json",
    )
]
#: The same as they would be written today.
NEW = [json.loads(dumps(parse_run(document, "r.json"))) for document in OLD]
DOCUMENTS = [*NEW, *OLD]


def places(value, path=()):
    """Where a document's values stand."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


PLACES = [[path for path in places(document) if path] for document in DOCUMENTS]
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, -3, 2**31 - 1, 2**31, 2**63, 10**200, 5e-324, 1e-18, 1e18, 1e30, 1.7e308]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), NUMBERS, st.text(max_size=5), st.sampled_from(["ok", "sim", "numpy"])
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@st.composite
def damaged(draw):
    """A results file with some of its values replaced, most by something of the same type."""
    index = draw(st.integers(0, len(DOCUMENTS) - 1))
    document = copy.deepcopy(DOCUMENTS[index])
    document["backend"] = draw(st.sampled_from(["gpu", "gpu", "sim", "none"]))
    for path in draw(st.lists(st.sampled_from(PLACES[index]), min_size=1, max_size=3)):
        holder = document
        for key in path[:-1]:
            holder = holder[key] if isinstance(holder, (dict, list)) and _has(holder, key) else {}
        if _has(holder, path[-1]):
            alike = isinstance(holder[path[-1]], (int, float)) and draw(st.integers(0, 4))
            holder[path[-1]] = draw(NUMBERS if alike else ANYTHING)
    return document


def _has(holder, key):
    if isinstance(holder, list):
        return isinstance(key, int) and key < len(holder)
    return isinstance(holder, dict) and key in holder


def _parsed(document):
    try:
        return parse_run(json.loads(json.dumps(document)), "r.json"), ""
    except ResultsError as error:
        return None, error.what


@SOME
@given(damaged())
def test_damaged_document_is_refused_or_shown(document):
    run, complaint = _parsed(document)
    if run is None:
        assert complaint.startswith("r.json ")
        assert len(complaint) < 1000
        return
    render(run)
    import_counters(run)
    assert parse_run(json.loads(dumps(run)), "r.json") == run


def changed(document, place, value):
    """A copy with another value at a place."""
    document = copy.deepcopy(document)
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return document


@each(
    changes=[
        (("cases", 0, "problem", "ny"), "64"),
        (("cases", 0, "problem", "op"), "fft"),
        (("cases", 0, "problem", "result"), "moved"),
        (("cases", 0, "problem"), []),
        (("cases", 0), None),
        (("cases",), 3),
        (("kernels", 0), 3),
        (("device",), None),
        (("cases", 0, "timing", "cold"), {"median_us": 1.0}),
    ]
)
def test_nonsense_of_version_1_is_refused(changes):
    with pytest.raises(ResultsError, match="does not match the results schema"):
        parse_run(changed(OLD[0], *changes), "r.json")


# Long texts.


@pytest.fixture(scope="module")
def sample():
    """What was measured of the transposes."""
    return read_run(SAMPLES / "transpose-h200.json")


def with_case(run, **changed):
    return replace(run, cases=(replace(run.cases[0], **changed), *run.cases[1:]))


def with_record(run, **changed):
    return replace(run, kernels=(replace(run.kernels[0], **changed), *run.kernels[1:]))


TEXT = "word " * (LONG // 5)


@pytest.mark.parametrize(
    "change",
    [
        lambda run: with_case(run, outcome="failed", reason=TEXT),
        lambda run: with_case(
            run, counters_reason=TEXT, timing_reason=TEXT, log=TEXT, compile_options=(TEXT,)
        ),
        lambda run: with_case(run, params={TEXT: 1}, chosen=TEXT, kernel=TEXT),
        lambda run: with_case(run, counters={TEXT: Counter(None, TEXT, "ncu", TEXT, TEXT)}),
        lambda run: with_record(run, title=TEXT, idea=TEXT, study=TEXT, aliases=(TEXT,), reference=TEXT),
        lambda run: with_record(run, after=TEXT, file_name=TEXT, source="/*gpuprof" + TEXT),
        lambda run: replace(
            run, argv=(TEXT,), environment={TEXT: TEXT}, devices=(replace(DEVICE, name=TEXT),)
        ),
    ],
)
def test_long_text_is_shown_cut_and_kept_whole_in_the_data(sample, change):
    run = change(sample)
    with soon():
        page, markdown, *terminal = render(run)
    assert "more characters" in expanded(page)
    shown = page.partition('id="gpuprof-data">')[0]
    assert len(shown) < LONG
    assert len(markdown) + sum(map(len, terminal)) < 100_000
    assert page_data.run_of_page(page) == json.loads(dumps(run))


# The least that a quadratic pattern takes for so many characters is 15 seconds; what is linear takes one.

MANY = 100_000
SECONDS = 6

PIECES = [
    *("/*gpuprof", "/*gpuprof ", "/*", "//", "//\n", "*/", '"', '\\"', '"\\', "1", "0xf", "1.", "f"),
    *("\n", " ", "#", "# ", "'", "\t#x", "int ", "[ 1 ", "{", "(", "int a;", "void f() {}"),
    *("template <", "namespace a {", "a<", "__global__ ", "__global__ void k("),
    *("__global__ void k() {}", "#define K __global__\n", '#include "a"\n'),
    *('R"(', "std::vector<int> v = {};"),
]


@pytest.mark.parametrize("begin", ["", '"', "0x", "1", "/*gpuprof\n", "// x\n/*gpuprof\n*/"])
def test_source_is_shown_in_linear_time(begin):
    for piece in PIECES:
        text = begin + piece * (MANY // len(piece)) + "g"
        with soon(SECONDS):
            listing(text, "k", (0, line_count(text)))
        with soon(SECONDS):
            header_lines(text)


@pytest.mark.parametrize("piece", ["[ 1 ", "[ 1, ", "[\n 1", "[ 1\n ", "[", " ", '"[ 1'])
def test_results_file_is_written_in_linear_time_and_no_text_in_it_is_touched(sample, piece):
    text = piece * (MANY // len(piece))
    for held in (text, f"{text}]", f"[   1   ]{text}"):
        run = with_record(replace(sample, cases=sample.cases[:1]), source=held)
        with soon(SECONDS):
            assert parse_run(json.loads(dumps(run)), "r.json") == run


def test_output_of_tools_is_searched_in_linear_time():
    with soon(SECONDS):
        assert diagnose("lock GPU clock " * (MANY // 15), of_launch=True) is None
        assert _SPILLS.search("1" * MANY + " bytes spill stores, ") is None
        assert not parse_ptx("/*" * (MANY // 2)).functions


def test_sources_that_are_too_long_to_compare_are_not_compared():
    many = "\n".join(f"x{index % 97}" for index in range(300_000))
    with soon():
        assert difference(many, many + "\ny") == "not compared: more than 2,000 lines"
    assert difference("a\nb\n", "a\nc\n").endswith("\n<del>-b</del>\n<ins>+c</ins>")


def test_foreign_counters_get_no_more_columns_than_a_table_holds(sample):
    cases = tuple(
        replace(case, counters={f"x{index}_{n}": Counter(4321.0, "u", "sim") for n in range(500)})
        for index, case in enumerate(sample.cases)
    )
    with soon():
        page = render_html(replace(sample, cases=cases))
    for number, kernel in enumerate(expanded(page).split('<details class="block kernel"')[1:]):
        assert kernel.count("4,321") <= MOST_FOREIGN, number
