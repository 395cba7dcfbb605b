# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A document as a notebook shows it: tables without scripts, in the colours of the page around them."""

from gpuprof.report.document import Document
from gpuprof.report.filling import templates

#: Rows that a table shows; a whole report shows all of them.
_MOST_ROWS = 100


def render_notebook(document: Document) -> str:
    """A document as a fragment of HTML: no script, no style sheet, every text escaped."""
    template = templates().get_template("notebook.html.j2")
    return template.render(document=document, kind_of=lambda item: type(item).__name__, most=_MOST_ROWS)
