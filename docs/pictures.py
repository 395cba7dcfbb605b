# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Take the pictures of the documentation: what commands show in a terminal, and pages in a browser.

Usage: python docs/pictures.py

The pages are of the results files of the samples; they need Playwright and an installed Chromium.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "docs" / "screens"
WIDTH = 80
#: Web fonts, which a reader's machine would fetch: any monospaced font will do.
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_CURSOR = re.compile(r"\x1b\[\?25[lh]")


GPUPROF = str(Path(sys.executable).with_name("gpuprof"))
#: Commands to type, by the name of their picture. A file of the samples is shown as the run that measured it.
COMMANDS = {
    "terminal-sim": "gpuprof transpose -k naive_row,smem_tile,smem_padded --sizes 512 --device sim:h200",
    "terminal-gpu": "gpuprof report samples/gemm-h200.json",
}


@dataclass(frozen=True)
class Screen:
    """A picture of a page.

    Args:
        path: Where it goes.
        page: The name of the page.
        size: Of the window.
        options: Of the browser: colours, a phone's pixels.
        part: CSS selector of what stands at the top of the window, within a folded part that its first word
            names; the page's top when empty.
    """

    path: Path
    page: str
    size: tuple[int, int] = (1400, 900)
    options: tuple[tuple[str, Any], ...] = ()
    part: str = ""


#: Commands that write the pages.
PAGES = {
    "gemm": "report samples/gemm-h200.json -o {page}",
    "transpose": "report samples/transpose-h200.json -o {page}",
    "compare": "compare samples/transpose-h200.json samples/transpose-sizes-h200.json --html {page}",
}
_KERNEL = "#kernel-smem_padded"
SCREENSHOTS = (
    Screen(ROOT / "samples" / "report.png", "gemm", (1400, 1250)),
    Screen(SCREENS / "light.png", "gemm"),
    Screen(SCREENS / "dark.png", "gemm", options=(("color_scheme", "dark"),)),
    Screen(SCREENS / "phone.png", "gemm", (390, 844)),
    Screen(SCREENS / "kernel.png", "transpose", (1200, 760), part=_KERNEL),
    Screen(SCREENS / "source.png", "transpose", (1400, 700), part=f"{_KERNEL} .source:has(.counts)"),
    Screen(SCREENS / "compare.png", "compare", (1200, 900)),
)


def typed(command: str) -> str:
    """What a command writes to a terminal, with its control sequences."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "samples").mkdir()
        for sample in (ROOT / "samples").glob("*.json"):
            Path(folder, "samples", sample.name).symlink_to(sample)
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(folder)
            os.environ.update(COLUMNS=str(WIDTH), TERM="xterm-256color")
            for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
                os.environ.pop(name, None)
            os.execv(GPUPROF, shlex.split(command))
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the program has closed its side
                break
            if not part:
                break
            parts.append(part)
        os.waitpid(pid, 0)
    return b"".join(parts).decode()


def left(written: str) -> list[str]:
    """The lines that are left on the screen: progress is written over."""
    lines: list[str] = []
    for line in _CURSOR.sub("", written).replace("\r\n", "\n").split("\n"):
        kept = line.rpartition("\x1b[2K")[2] if "\x1b[2K" in line else line
        if "\x1b[1A" in line and lines:
            lines.pop()
        lines.append(kept.lstrip("\r"))
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def record(name: str, command: str) -> None:
    """Type a command and write its picture."""
    console = Console(width=WIDTH, record=True, file=StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    for line in left(typed(command)):
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="gpuprof", unique_id=name)
    (SCREENS / f"{name}.svg").write_text(_FONTS.sub("", svg), encoding="utf-8")


def take_screenshots() -> None:
    """Render the pages and take every picture of them."""
    sys.path.insert(0, str(ROOT / "tests"))
    from chromium import browser

    with tempfile.TemporaryDirectory() as folder, browser() as opened:
        for page, words in PAGES.items():
            arguments = shlex.split(words.format(page=f"{folder}/{page}.html"))
            subprocess.run([GPUPROF, *arguments, "--quiet"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            for screen in (screen for screen in SCREENSHOTS if screen.page == page):
                size = {"width": screen.size[0], "height": screen.size[1]}
                context = opened.new_context(viewport=size, **dict(screen.options))
                shown = context.new_page()
                shown.goto(f"file://{folder}/{page}.html")
                if screen.part:
                    shown.evaluate(f"document.querySelector('{screen.part.split()[0]}').open = true")
                    shown.wait_for_timeout(1000)
                    shown.locator(screen.part).first.evaluate(
                        "each => scrollTo(0, each.getBoundingClientRect().top + scrollY - 60)"
                    )
                shown.wait_for_timeout(500)
                shown.screenshot(path=str(screen.path))
                context.close()


if __name__ == "__main__":
    for name, command in COMMANDS.items():
        record(name, command)
    take_screenshots()
