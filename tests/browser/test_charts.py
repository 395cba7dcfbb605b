# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The charts in Chromium: drawn without scripts, readable at every width, closer under the page's policy."""

import pytest

pytestmark = pytest.mark.deep

WIDTHS = (390, 700, 1000, 1400)
#: How many drawings the chart with most of them has.
CHOICES = """
Math.max(1, ...[...document.querySelectorAll("[data-drawing]")].map((one) => Number(one.dataset.drawing) + 1))
"""
#: Opens what is closed, and what is closed in that.
OPENED = """
(async () => {
  for (let depth = 0; depth < 3; ++depth) {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    await new Promise((done) => setTimeout(done, 50));
  }
})()
"""
#: Texts of the drawings that stand on each other, or beyond their chart's sides.
TROUBLE = """
(() => {
  const found = [];
  for (const chart of document.querySelectorAll(".chart")) {
    const box = chart.getBoundingClientRect();
    if (!box.width) continue;
    const texts = [...chart.querySelectorAll("text, .track > span, .bar-rows b, .drawing p")]
      .map((item) => ({ item, box: item.getBoundingClientRect() })).filter((text) => text.box.width);
    texts.forEach((text, index) => {
      const words = text.item.textContent;
      if (text.box.left < box.left - 1 || text.box.right > box.right + 1) found.push(`beyond: ${words}`);
      for (const other of texts.slice(index + 1)) {
        const across = Math.min(text.box.right, other.box.right) - Math.max(text.box.left, other.box.left);
        const down = Math.min(text.box.bottom, other.box.bottom) - Math.max(text.box.top, other.box.top);
        if (across > 1 && down > 3) found.push(`${words} on ${other.item.textContent}`);
      }
    });
  }
  return found;
})()
"""


@pytest.mark.parametrize("name", ["gemm", "counted", "transpose", "tuned", "hostile"])
def test_no_text_stands_on_another_or_leaves_its_chart(visit, name):
    for width in WIDTHS if name == "gemm" else WIDTHS[::2]:
        page = visit(name, size=(width, 900))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"wider than {width} px"
        page.evaluate(OPENED)
        choices = page.evaluate(CHOICES)
        for choice in range(choices):
            page.evaluate(
                f"""(async () => {{
                  const buttons = [...document.querySelectorAll('[data-drawing="{choice}"]')];
                  buttons.forEach((button) => button.click());
                  while (buttons.some((button) => button.getAttribute("aria-pressed") !== "true")) await 0;
                  await new Promise((done) => setTimeout(done, 100));
                }})()"""
            )
            assert page.evaluate(TROUBLE) == [], f"{width} px, choice {choice}"


@pytest.mark.parametrize("dark", [False, True])
def test_charts_stand_without_scripts(visit, dark):
    theme = "dark" if dark else "light"
    page = visit("gemm", size=(1000, 900), color_scheme=theme, java_script_enabled=False)
    widths = (
        "[...document.querySelectorAll('.bar-rows rect')].map((bar) => bar.getBoundingClientRect().width)"
    )
    assert page.evaluate(f"{widths}.filter((width) => width > 1).length") > 5
    assert page.evaluate("getComputedStyle(document.querySelector('.closer-button')).display") == "none"
    fill = page.evaluate("getComputedStyle(document.querySelector('.bar-rows li:not([class]) rect')).fill")
    assert fill == ("rgb(95, 159, 216)" if dark else "rgb(91, 143, 196)")


def test_plotly_starts_unasked_under_the_pages_policy(visit):
    page = visit("gemm", size=(1000, 900))
    page.evaluate(
        "(async () => { while (!window.Plotly) await new Promise((next) => setTimeout(next, 50)); })()"
    )
    opened = page.evaluate(
        """(async () => {
          const charts = [...document.querySelectorAll(".chart")].filter((chart) => chart.offsetWidth);
          charts.forEach((chart) => chart.querySelector(".closer-button").click());
          const done = () => charts.every((chart) => chart.querySelector(".main-svg"));
          for (let wait = 0; wait < 400 && !done(); ++wait) await new Promise((next) => setTimeout(next, 50));
          return charts.map((chart) => [
            Boolean(chart.querySelector(".closer .main-svg")), chart.querySelector(".drawing").hidden,
            chart.querySelector(".closer-button").textContent,
          ]);
        })()"""
    )
    assert len(opened) == 3
    assert all(item == [True, True, "Back to the drawing"] for item in opened)
    back = page.evaluate(
        """(() => {
          const chart = document.querySelector(".chart:has(.main-svg)");
          chart.querySelector(".closer-button").click();
          return [chart.querySelector(".closer").hidden, chart.querySelector(".drawing").hidden];
        })()"""
    )
    assert back == [True, False]


def test_slower_bars_and_ladder_order_need_no_script(visit):
    for scripts in (True, False):
        page = visit("ladder", java_script_enabled=scripts)
        panel = page.locator("#group-1-size-1" if scripts else "#group-1-size-2")
        names = """(rows) => rows.filter((row) => row.offsetHeight).sort((a, b) => a.offsetTop - b.offsetTop)
          .map((row) => row.querySelector("b").textContent)"""
        rows = panel.locator(".bar-rows li")
        shown = rows.evaluate_all(names)
        assert len(shown) < 14
        assert {"naive", "cuBLAS"} <= set(shown)
        panel.locator(".all-rows").check()
        assert len(rows.evaluate_all(names)) == rows.count() > 20
        panel.locator(".all-rows").uncheck()
        panel.locator(".by-rung").check()
        assert rows.evaluate_all(names)[0] == "naive"


def test_a_closer_look_shows_every_row_and_leads_to_kernels(visit):
    page = visit("gemm", size=(1000, 900))
    chart = page.locator(".chart:visible").first
    drawn = chart.locator(".bar-rows b").all_inner_texts()
    said = chart.locator(".bar-rows .track > span").all_text_contents()
    chart.locator(".closer-button").click()
    chart.locator(".main-svg .bars").wait_for()
    assert chart.locator(".yaxislayer-above text").all_text_contents()[::-1] == drawn
    closer = chart.locator(".scatterlayer .text text").all_text_contents()
    assert [text.strip()[:40] for text in closer] == [text.strip()[:40] for text in said]
    chart.locator(".bars .point path").first.click(force=True)
    assert drawn[0] == "Vendor library"
    page.wait_for_url("**#kernel-cublas")


def test_a_closer_look_folds_the_rows_that_the_drawing_folds(visit):
    page = visit("ladder")
    chart = page.locator(".chart:has(.all-rows):visible").first
    drawn = chart.locator(".bar-rows li:visible b").all_inner_texts()
    chart.locator(".closer-button").click()
    names = chart.locator(".yaxislayer-above text")
    names.first.wait_for()
    assert names.all_text_contents()[::-1] == drawn
    chart.locator(".all-rows").check()
    page.wait_for_function(
        "([chart, few]) => chart.querySelectorAll('.yaxislayer-above text').length > few",
        arg=[chart.element_handle(), len(drawn)],
    )
    assert names.count() == chart.locator(".bar-rows li").count()


def test_bars_are_reached_by_keyboard_and_lead_to_their_kernel(visit):
    page = visit("gemm", size=(1000, 900))
    reached = page.evaluate(
        """[...document.querySelectorAll(".bar-rows a")].filter((link) => link.offsetWidth).map((link) => {
          link.focus();
          return document.activeElement === link && document.getElementById(link.hash.slice(1)) !== null;
        })"""
    )
    assert reached == [True] * 5
