# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The page of a fleet in a browser: axe, a phone's width, keyboard."""

import pytest
from page_checks import LOOKS, OVERFLOW, serious

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_serious_and_nothing_too_wide(visit, look):
    page = visit("fleet", **LOOKS[look])
    assert page.evaluate(OVERFLOW) == 0
    page.locator("details").evaluate_all("(parts) => parts.forEach((part) => { part.open = true; })")
    assert serious(page) == []
    assert page.evaluate(OVERFLOW) == 0


def test_the_outlier_is_in_the_first_screen_of_a_phone(visit):
    page = visit("fleet", **LOOKS["phone"])
    answer = page.locator("tr", has_text="node7").first
    assert answer.bounding_box()["y"] < 500


def test_contents_lead_to_every_part(visit):
    page = visit("fleet", java_script_enabled=False)
    for link in page.locator("nav.contents a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
