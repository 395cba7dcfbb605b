# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Showing a report in a browser, where there is one."""

import os
import sys
import webbrowser
from pathlib import Path

from gpuprof.console import tell


def has_browser() -> bool:
    """Whether a browser would open a window: one for the terminal would take it from the program."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_report(path: Path) -> None:
    """Open a report, or say that there is no browser; the report is written either way."""
    if not (has_browser() and _opened(path)):
        tell(f"There is no browser here: copy {path} to where there is one; it needs no other file.")


def _opened(path: Path) -> bool:
    try:
        return webbrowser.open(path.absolute().as_uri())
    except webbrowser.Error:
        return False
