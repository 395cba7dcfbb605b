# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a reader meets in a browser, on pages of runs, comparisons and fleets: light, keyboard, no scripts."""

from itertools import pairwise

import pytest
from synthetic_runs import HOSTILE

from gpuprof.text import visible

PHONE = (390, 844)
#: How readers look at a page, and whether its colours alone are others than before, or all but them.
LOOKS = [({}, None), ({"color_scheme": "dark"}, True), ({"size": PHONE, "has_touch": True}, False)]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def serious(page, colours=None):
    """What axe finds serious or critical in a page as it is shown, with the first places of each.

    Args:
        page: Playwright's.
        colours: Whether contrasts alone are looked at, which take longest, or all else; all if None.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"resultTypes": ["violations"]}
    if colours:
        options["runOnly"] = ["color-contrast"]
    elif colours is not None:
        options["rules"] = {"color-contrast": {"enabled": False}}
    found = axe.run(page, options=options).response["violations"]
    return [
        (item["id"], [node["html"][:120] for node in item["nodes"][:3]])
        for item in found
        if item["impact"] in ("serious", "critical")
    ]


pytestmark = pytest.mark.deep

ELEMENTS = "document.querySelectorAll('*').length"
HEIGHT = "document.documentElement.scrollHeight"


def bottom(page, selector):
    box = page.locator(selector).first.bounding_box()
    return box["y"] + box["height"]


def open_part(page, selector):
    part = page.locator(selector).first
    part.locator(":scope > summary").click()
    part.locator(":scope > .kept").wait_for(state="detached")


def open_all(page):
    """Opens every part, cards that close each other included."""
    page.evaluate(
        """document.querySelectorAll("details").forEach((part) => {
          part.removeAttribute("name");
          part.open = true;
        })"""
    )
    page.locator(".kept").first.wait_for(state="detached")
    while page.locator(".kept").count():
        page.wait_for_timeout(20)


class TestFirstScreen:
    @pytest.mark.parametrize(
        ("name", "elements", "height"),
        [("wide", 25_000, 27_000), *((name, 6_000, 18_000) for name in ("ladder", "sim", "tuned"))],
    )
    def test_the_answer_and_the_ladder_are_in_it_and_all_is_short_and_printed(
        self, visit, name, elements, height
    ):
        page = visit(name)
        if name != "tuned":
            assert bottom(page, "#answer") < 560
            assert bottom(page, "h3:visible:has-text('Ladder at')") < 900
        assert page.evaluate(ELEMENTS) < elements
        assert page.evaluate(HEIGHT) < height
        page.emulate_media(media="print")
        bodies = """(parts) => parts.filter((part) => part.offsetHeight).map((part) => {
          const shown = [...part.children].filter((child) => child.offsetHeight);
          return shown.slice(1).some((child) => child.innerText.trim() || child.querySelector("svg"));
        })"""
        assert all(page.locator("section").evaluate_all(bodies))  # none is a heading alone
        if name == "ladder":
            assert page.locator(":is(button, input):visible").count() == 0
            assert page.locator(".cautions > summary").is_visible()
            assert page.locator(".chart:visible").count() > 1

    def test_the_answer_is_in_a_phones(self, visit):
        page = visit("ladder", size=PHONE)
        assert bottom(page, ".answers li >> nth=0") < 500
        assert bottom(page, ".cautions summary") < 844

    def test_the_first_stop_skips_to_the_answer_and_cautions_take_one_line_and_open_to_all(self, visit):
        page = visit("ladder")
        page.keyboard.press("Tab")
        skip = page.locator(".skip")
        assert skip.evaluate("(link) => link === document.activeElement")
        assert skip.bounding_box()["y"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == "#answer"
        assert page.locator(".cautions > summary").bounding_box()["height"] < 30
        assert page.locator(".banner:visible").count() == 0
        page.locator(".cautions > summary").click()
        assert page.locator(".banner:visible").count() == page.locator(".banner").count() > 1

    def test_a_size_in_the_answer_leads_to_its_ladder(self, visit):
        page = visit("ladder")
        assert page.locator("#group-1-size-2").is_hidden()
        page.locator(".answers .size").last.click()
        page.locator("#group-1-size-2").wait_for(state="visible")
        assert page.locator("#group-1-size-1").is_hidden()
        assert page.locator("#kernel-naive .brief").inner_text().startswith("4096: ")

    def test_many_sizes_are_a_table_and_a_list_to_choose_from(self, visit):
        page = visit("sizes")
        assert page.locator("#answer tbody tr:visible").count() == 24
        page.locator("#answer a[href='#group-1-size-3']").click()
        page.locator("#group-1-size-3").wait_for(state="visible")
        chooser = page.locator("#group-1 select")
        assert chooser.evaluate("list => list.selectedIndex") == 2
        chooser.select_option(index=5)
        assert page.locator(".panel:visible").get_attribute("id") == "group-1-size-6"
        assert serious(page) == []


class TestWeight:
    def test_a_card_holds_a_source_in_few_elements(self, visit):
        page = visit("ladder")
        before = page.evaluate(ELEMENTS)
        open_part(page, "#kernel-reg_8x16_async")
        assert page.locator("#kernel-reg_8x16_async .source .code pre").last.inner_text().count("\n") > 80
        assert page.evaluate(ELEMENTS) - before < 1200
        open_part(page, "#kernel-naive")
        assert page.locator("details.kernel[open]").count() == 1  # at a time

    def test_sources_are_coloured_without_an_element_a_token_in_linear_time(self, visit):
        page = visit("counted")
        open_part(page, "#kernel-naive")
        assert page.evaluate("CSS.highlights.get('token-keyword').size") > 5
        assert page.locator("#kernel-naive .source .code pre").last.locator("*").count() == 2
        for piece in ('"', "/*", "0x", "int ", "#", "1.e"):
            spent = page.evaluate(
                """(text) => {
                  const part = document.createElement("div");
                  part.innerHTML = '<div class="source"><div class="code"><pre></pre></div></div>';
                  part.querySelector("pre").textContent = text;
                  const start = performance.now();
                  gpuprof.highlight(part);
                  return performance.now() - start;
                }""",
                piece * (190_000 // len(piece)),
            )
            assert spent < 3000, piece


class TestShape:
    def test_nothing_is_wider_than_a_phone(self, visit):
        page = visit("counted", size=PHONE)
        assert page.evaluate(OVERFLOW) == 0
        for part in ("#kernel-reg_2x1", ".all-cases"):
            page.locator(part).locator("visible=true").first.locator(":scope > summary").click()
            assert page.evaluate(OVERFLOW) == 0, part

    def test_contents_stay_in_sight_and_lead_to_every_part(self, visit):
        page = visit("counted", size=PHONE)
        links = page.locator("nav.contents a")
        for index in range(links.count()):
            target = links.nth(index).get_attribute("href")
            links.nth(index).click()
            assert 0 <= page.locator("nav.contents").bounding_box()["y"] < 400
            assert page.locator(target).is_visible()
        assert page.evaluate("scrollY") > 0
        page.locator("nav.contents a[href='#top']").click()
        assert page.evaluate("scrollY") == 0

    def test_an_address_opens_what_hides_its_target(self, visit):
        page = visit("counted", at="#kernel-naive-L47")
        line = page.locator("#kernel-naive-L47")
        assert line.is_visible()
        assert 0 < line.bounding_box()["y"] < 900
        assert "sum += a[k]" in line.inner_text()

    def test_a_card_shows_what_matters_the_glossary_is_last_and_nothing_has_two_places(self, visit):
        page = visit("counted")
        open_part(page, "#kernel-smem_tiled")
        card = page.locator("#kernel-smem_tiled")
        assert card.locator("pre.diff").is_visible()
        assert card.locator(".bounds").first.is_visible()
        assert card.locator(".source").last.is_visible()
        assert card.locator(".formulas:visible, .more table:visible").count() == 0
        parts = page.locator("main > section").evaluate_all("(parts) => parts.map((part) => part.id)")
        assert parts == ["answer", "group-1", "kernels", "across-1", "environment", "glossary"]
        open_all(page)
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((held) => held.id)")
        assert len(ids) == len(set(ids))


class TestTables:
    def test_sorting_by_keyboard(self, visit):
        page = visit("counted")
        page.locator("#group-1-size-1 .all-cases > summary").click()
        table = page.locator("#group-1-size-1 table.sortable")
        names = "(rows) => rows.map((row) => row.querySelector('bdi').textContent)"
        before = table.locator("tbody tr").evaluate_all(names)
        table.get_by_role("button", name="Sort by time").focus()
        page.keyboard.press("Enter")
        assert table.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        after = table.locator("tbody tr").evaluate_all(names)
        assert after == ["reg_2x1", "smem_tiled", "naive", "smem_panel"]
        table.get_by_role("button", name="Sort by kernel").press("Enter")
        assert table.locator("tbody tr").evaluate_all(names) == before

    def test_filtering_one_size_filters_all(self, visit):
        page = visit("ladder")
        page.evaluate("document.querySelectorAll('.all-cases').forEach((part) => { part.open = true; })")
        rows = page.locator(".panel:visible table.ladder.sortable tbody th:visible")
        everything = rows.count()
        page.locator(".panel:visible .filter input").fill("splitk")
        assert rows.count() == 1
        assert page.locator(".panel:visible [role=status]").inner_text() == f"1 of {everything} rows"
        page.locator(".answers .size").last.click()
        page.locator("#group-1-size-2").wait_for(state="visible")
        assert rows.count() == 2  # by_size chose one
        page.locator(".panel:visible .filter input").fill("")
        assert rows.count() == everything > 20


class TestWords:
    def test_a_word_shows_its_definition_where_it_stands(self, visit):
        page = visit("counted", has_touch=True)
        page.locator("#group-1-size-1 .all-cases > summary").click()
        link = page.locator("#group-1-size-1 a.term:text-is('of peak')")
        box = page.get_by_role("dialog")
        for act in (link.click, link.tap, lambda: link.press("Enter")):
            act()
            assert "theoretical peak for this size" in box.inner_text()
            assert page.url.endswith(".html")
            page.keyboard.press("Escape")
            assert box.count() == 0
            assert page.evaluate("document.activeElement.textContent") == "of peak"

    def test_cards_open_by_keyboard_and_what_is_missing_says_why(self, visit):
        page = visit("gemm")
        page.locator("#kernel-naive > summary").focus()
        page.keyboard.press("Enter")
        assert page.locator("#kernel-naive .texts").is_visible()
        open_part(page, "#kernel-smem_panel")
        page.locator("#kernel-smem_panel .more > summary").click()
        page.locator("#kernel-smem_panel a.missing").first.click()
        assert page.get_by_role("dialog").inner_text() == (
            "Not measured\n\nfailed: a case gets a speed only when its result is correct"
        )


class TestKeyboard:
    def test_stops_follow_the_page_and_can_be_seen(self, visit):
        page = visit("gemm")
        seen = []
        for _ in range(30):
            page.keyboard.press("Tab")
            seen.append(
                page.evaluate(
                    """(() => {
                      const held = document.activeElement;
                      const ring = getComputedStyle(held);
                      return [held.getBoundingClientRect().top + scrollY, ring.outlineStyle];
                    })()"""
                )
            )
        tops = [top for top, _ in seen[1:]]  # the skip link stands above the page
        assert all(later >= earlier - 60 for earlier, later in pairwise(tops))
        assert {style for _, style in seen} <= {"solid", "auto"}


class TestAxe:
    @pytest.mark.parametrize(
        ("name", "options", "colours"),
        [
            *(("counted", *look) for look in LOOKS),
            ("gemm", {}, None),
            ("sim", {"color_scheme": "dark"}, None),
        ],
    )
    def test_nothing_serious(self, visit, name, options, colours):
        page = visit(name, **options)
        for part in (".cautions", "details.kernel"):
            open_part(page, part)
        assert serious(page, colours) == []


class TestHostileText:
    def test_names_titles_and_paths_stay_text(self, visit):
        page = visit("hostile")
        open_all(page)
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 5
        assert visible(HOSTILE) in page.locator("details.kernel h3").first.inner_text()
        assert visible(HOSTILE) in page.locator("details.kernel").first.inner_text()


class TestWithoutScripts:
    def test_answer_ladders_and_cards_are_there_and_a_word_leads_to_the_glossary(self, visit):
        page = visit("counted", java_script_enabled=False)
        assert page.locator(".tile").first.is_visible()
        page.locator("#group-1-size-1 .all-cases > summary").click()
        assert page.locator("#group-1-size-1 table.ladder tbody th").first.is_visible()
        assert page.locator(".sort, .filter, .needs-script:visible").count() == 0
        page.locator("#kernel-reg_2x1 > summary").click()
        card = page.locator("#kernel-reg_2x1")
        assert card.locator("dl.texts").is_visible()
        assert "Bound by Shared memory and L1" in card.inner_text()
        page.locator("#group-1-size-1 a.term:text-is('of peak')").click()
        assert page.url.endswith("#term-pct_of_limit")
        assert 0 <= page.locator("#term-pct_of_limit").bounding_box()["y"] < 900


@pytest.mark.parametrize("name", ["fleet", "compared", "compared-sim", "compared-hostile"])
def test_nothing_serious_nothing_too_wide_and_the_verdict_is_printed(visit, name):
    scrolled = (
        "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    )
    for options, colours in LOOKS:
        page = visit(name, **options)
        assert page.evaluate(OVERFLOW) == 0
        page.locator("details").evaluate_all("(parts) => parts.forEach((part) => { part.open = true; })")
        assert serious(page, colours) == []
        assert page.evaluate(OVERFLOW) == 0
        assert name == "fleet" or "size" not in options or page.evaluate(scrolled) == 0
        if name in ("compared-sim", "compared-hostile"):  # nothing is to be said of a kernel but its rows
            assert page.locator("table.told a").count() == 0
    page.emulate_media(media="print")
    assert page.locator("section:first-of-type h2").first.is_visible()
    assert page.locator("table").first.is_visible()


def test_the_outlier_is_in_the_first_screen_of_a_phone(visit):
    page = visit("fleet", size=PHONE, has_touch=True)
    answer = page.locator("tr", has_text="node7").first
    assert answer.bounding_box()["y"] < 500


def test_contents_lead_to_every_part(visit):
    page = visit("fleet", java_script_enabled=False)
    for link in page.locator("nav.contents a").all():
        assert page.locator(link.get_attribute("href")).count() == 1


def test_a_kernel_in_the_table_leads_to_its_open_card(visit):
    page = visit("compared", java_script_enabled=False)
    link = page.locator("table.told a").last
    target = link.get_attribute("href")
    link.click()
    assert page.locator(target).is_visible()
