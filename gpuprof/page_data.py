# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a page keeps compressed: gzip in base64, which a browser inflates and gpuprof reads back.

Earlier pages kept their data as plain JSON; they are read too.
"""

import base64
import binascii
import gzip
import json
import re
import zlib
from typing import Any

#: The element with the run's data: an object whose `run` is a whole results file.
RUN_BLOCK = "gpuprof-data"
#: No run is so large; what pretends to be is made to fill the memory.
_MOST_BYTES = 2**31
_BLOCK = re.compile(rf'<script type="application/(json|gzip)" id="{RUN_BLOCK}">([^<]*)</script>')


def packed(text: str) -> str:
    """A text compressed and in letters that need no escape in HTML; the same text always gives the same."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def unpacked(letters: str) -> str:
    """The text again.

    Raises:
        ValueError: It was not made by `packed`, or is far too long.
    """
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(base64.b64decode(letters, validate=True), _MOST_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"its data block is damaged ({error})") from error
    if not inflater.eof:
        raise ValueError("its data block is cut off or too long")
    return data.decode()


def is_page(text: str) -> bool:
    """Whether a text is HTML: no results file begins so."""
    return text.lstrip()[:15].lower() == "<!doctype html>"


def run_of_page(text: str) -> Any:
    """The results document that a page holds.

    Raises:
        ValueError: It holds none, or not a whole one.
    """
    found = _BLOCK.search(text)
    if not found:
        raise ValueError("it has no data block")
    kind, block = found.groups()
    document = json.loads(unpacked(block) if kind == "gzip" else block)
    if not isinstance(document, dict) or "run" not in document:
        raise ValueError("its data block holds no run")
    return document["run"]
