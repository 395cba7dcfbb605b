# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What every page is held to in a browser."""

import pytest

PHONE = (390, 844)
#: How readers look at a page.
LOOKS = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": {"size": PHONE, "has_touch": True}}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def serious(page, *, colours=True):
    """What axe finds serious or critical in a page as it is shown, with the first places of each.

    Args:
        page: Playwright's.
        colours: Whether contrasts are looked at, which takes a minute of a large page.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"resultTypes": ["violations"]}
    if not colours:
        options["rules"] = {"color-contrast": {"enabled": False}}
    found = axe.run(page, options=options).response["violations"]
    return [
        (item["id"], [node["html"][:120] for node in item["nodes"][:3]])
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
