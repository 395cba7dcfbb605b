# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Write the tables of the README and of docs/measured-h200.md from the results files beside this script.

Usage: python samples/update_readme.py
"""

import re
from pathlib import Path

from gpuprof.report.markdown import render_markdown
from gpuprof.results import read_run

SAMPLES = Path(__file__).parent
PAGES = (SAMPLES.parent / "README.md", SAMPLES.parent / "docs" / "measured-h200.md")
_BLOCK = re.compile(r"(<!-- (?P<name>[\w-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def updated(page: str) -> str:
    """A page's text with every marked block made anew from the results file of its name."""

    def table(match: re.Match[str]) -> str:
        run = read_run(SAMPLES / f"{match['name']}.json")
        return f"{match[1]}\n{render_markdown(run).strip()}\n\n{match[3]}"

    return _BLOCK.sub(table, page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
