# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Write what the documentation takes from the code and the samples: tables, studies, the schemas.

Usage: python docs/update.py
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from gpuprof.comparison.document import ComparisonDocument
from gpuprof.json_schema import json_schema
from gpuprof.kernels.catalog import shipped_ladder, shipped_names
from gpuprof.kernels.kernel import Kernel
from gpuprof.reading import read_run
from gpuprof.report.markdown import render_markdown
from gpuprof.results import Run

DOCS = Path(__file__).parent
ROOT = DOCS.parent
#: Pages with blocks that stand for a results file of the samples.
PAGES = (ROOT / "README.md", DOCS / "measured-h200.md")
_BLOCK = re.compile(r"(<!-- (?P<name>[\w-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """A page's text with every marked block made anew from the results file of its name."""

    def table(match: re.Match[str]) -> str:
        run = read_run(ROOT / "samples" / f"{match['name']}.json")
        return f"{match[1]}\n{render_markdown(run).strip()}\n\n{match[3]}"

    return _BLOCK.sub(table, page)


def studies() -> str:
    """The page that says where the ladders' kernels were published."""
    parts = [
        "# The studies",
        "Kernels of the shipped ladders were published; what their authors reported, on their own GPUs, "
        "stands in the reports as context, never as a target. The code here is written anew from their ideas."
        " Made by `python docs/update.py` from the ladders' `studies.toml` and headers.",
    ]
    for name in shipped_names():
        ladder = shipped_ladder(name)
        parts.append(f"## {ladder.operation.title}")
        for study in dict.fromkeys(kernel.study for kernel in ladder.kernels if kernel.study.citation):
            link = f" <{study.url}>" if study.url else ""
            parts.append(f"**Study {study.name}.** {study.citation}{link}")
            rows = [_row(kernel) for kernel in ladder.kernels if kernel.study == study]
            parts.append("\n".join(("| Kernel | Published as | |", "|:--|:--|:--|", *rows)))
    return "\n\n".join(parts) + "\n"


def _row(kernel: Kernel) -> str:
    aliases = ", ".join(f"`{alias}`" for alias in kernel.aliases)
    return f"| `{kernel.id}` | {aliases or '–'} | {kernel.title} |"


def generated() -> Iterator[tuple[Path, str]]:
    """Every file that this script writes, with its text."""
    for page in PAGES:
        yield page, with_tables(page.read_text(encoding="utf-8"))
    yield DOCS / "studies.md", studies()
    for name, kind in (("results", Run), ("compare", ComparisonDocument)):
        schema = json.dumps(json_schema(kind), indent=1, ensure_ascii=False)
        yield DOCS / f"{name}.schema.json", f"{schema}\n"


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text, encoding="utf-8")
