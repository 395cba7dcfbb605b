# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The report's colours: text keeps WCAG AA contrast on every surface it stands on, in both themes."""

import re
from importlib.resources import files

import pytest

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


@pytest.mark.parametrize(("text", "surface"), TEXT_ON)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_enough_contrast(theme: dict[str, str], text: str, surface: str) -> None:
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
