# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a page keeps compressed: gzip in base 85, which a browser inflates and gpuprof reads back."""

import base64
import gzip
import re
import zlib
from typing import Any

from gpuprof.files import encoded
from gpuprof.schema import loads

#: The element with the run's data: an object whose `run` is a whole results file.
RUN_BLOCK = "gpuprof-data"
#: What a page may unpack to: ten times the largest known run. Parsed it takes up to twenty times that.
_MOST_BYTES = 64 << 20
#: Base 85 is a 15th shorter than base 64. Of its letters, `<` alone means something in a script element.
_TO_PAGE, _FROM_PAGE = str.maketrans("<", ","), str.maketrans(",", "<")
_BLOCK = re.compile(rf'<script type="application/gzip" id="{RUN_BLOCK}">([^<]*)</script>')


def packed(text: str) -> str:
    """A text compressed, in letters that a script element holds as they are; always the same ones."""
    letters = base64.b85encode(gzip.compress(encoded(text), 6, mtime=0)).decode("ascii")
    return letters.translate(_TO_PAGE)


def unpacked(letters: str) -> str:
    """The text again."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(base64.b85decode(letters.translate(_FROM_PAGE)), _MOST_BYTES)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"its data block is damaged ({error})") from error
    if not inflater.eof:
        raise ValueError("its data block is cut off or too long")
    return data.decode()


def is_page(text: str) -> bool:
    """Whether a text is HTML: no results file begins so."""
    return text.lstrip()[:15].lower() == "<!doctype html>"


def run_of_page(text: str) -> Any:
    """The results document that a page holds."""
    found = _BLOCK.search(text)
    if not found:
        raise ValueError("it has no data block")
    document = loads(unpacked(found[1]))
    if not isinstance(document, dict) or "run" not in document:
        raise ValueError("its data block holds no run")
    return document["run"]
