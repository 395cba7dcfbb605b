# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How every page is filled: one way to escape, one place for style sheets and scripts."""

import functools
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuprof.report.text import finalize


def templates() -> Environment:
    """The templates: every text is escaped and made visible, and a misspelt name is an error."""
    return Environment(
        loader=PackageLoader("gpuprof.report"),
        autoescape=True,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


@functools.cache
def asset(name: str) -> str:
    """The text of a style sheet or a script."""
    return (files("gpuprof.report") / "templates" / name).read_text(encoding="utf-8")


def assets(*names: str) -> Markup:
    """Several of them, one after the other, as they stand in an element of a page."""
    return Markup("\n".join(map(asset, names)))
