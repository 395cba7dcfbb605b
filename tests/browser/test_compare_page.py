# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison in a browser: no scripts, nothing wider than a phone, axe."""

import pytest
from page_checks import LOOKS, OVERFLOW, serious

pytestmark = [
    pytest.mark.deep,
    pytest.mark.parametrize("name", ["compared", "compared-sim", "compared-hostile"]),
]


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_serious(visit, name, look):
    page = visit(name, **LOOKS[look])
    page.locator("details").evaluate_all("(parts) => parts.forEach((part) => { part.open = true; })")
    assert serious(page) == []


@pytest.mark.parametrize("look", ["light", "phone"])
def test_nothing_is_wider_than_the_window(visit, name, look):
    page = visit(name, **LOOKS[look])
    assert page.evaluate(OVERFLOW) == 0
    page.locator("details").evaluate_all("(parts) => parts.forEach((part) => { part.open = true; })")
    assert page.evaluate(OVERFLOW) == 0
    scrolled = (
        "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    )
    assert look != "phone" or page.evaluate(scrolled) == 0


def test_the_verdict_is_printed(visit, name):
    page = visit(name)
    page.emulate_media(media="print")
    assert page.locator("section:first-of-type h2").first.is_visible()
    assert page.locator("table").first.is_visible()


def test_a_kernel_in_the_table_leads_to_its_open_card(visit, name):
    page = visit(name, java_script_enabled=False)
    links = page.locator("table.told a")
    if name != "compared":  # nothing is to be said of it but its rows
        assert links.count() == 0
        return
    target = links.last.get_attribute("href")
    links.last.click()
    assert page.locator(f"{target}").is_visible()
