# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""An installed Chromium without a window, driven by Playwright, which brings none of its own here."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find() -> str | None:
    """The path of a browser: that of GPUPROF_CHROMIUM, else an installed one; None where there is none."""
    return os.environ.get("GPUPROF_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser() -> Iterator[Any]:
    """Playwright's browser, ended at the end.

    Raises:
        ModuleNotFoundError: Playwright is not installed.
        FileNotFoundError: No Chromium is.
    """
    from playwright.sync_api import sync_playwright

    path = find()
    if path is None:
        raise FileNotFoundError("no Chromium is installed, and GPUPROF_CHROMIUM names none")
    with sync_playwright() as held:
        opened = held.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()
