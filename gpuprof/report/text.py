# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Text from files made safe to show: nothing in it may steer a terminal or reorder what is read."""

import re
from typing import Any

from markupsafe import Markup

#: Control characters other than newline and tab, and the Unicode characters that reorder text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")

#: The space before a unit or an SI letter.
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGTPE]|%|[KMGT]iB|B|[nµm]?s|[MGT]B/s|[MGTP]FLOP/s|SMs)(?![\w-]))")

DTYPE_NAMES = {"f32": "float32", "f64": "float64"}
OP_NAMES = {"gemm": "GEMM", "transpose": "Transpose"}
LAYOUT_NAMES = {"row": "row-major", "col": "column-major"}


def visible(text: str) -> str:
    """The text with each steering character replaced by the escape that a string literal would use."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def finalize(value: Any) -> Any:
    """What a template shows for a value: text made visible, None as nothing."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def bound(text: str) -> str:
    """The text with each figure kept on one line with its unit."""
    return _UNIT.sub("\u00a0", text)


def group_title(op: str, dtype: str, layouts: tuple[str, ...]) -> str:
    """For example `GEMM, float32, row-major`; transposes have one layout, which goes without saying."""
    parts = [OP_NAMES.get(op, op), DTYPE_NAMES.get(dtype, dtype)]
    if op == "gemm":
        parts.append(" and ".join(LAYOUT_NAMES.get(layout, layout) for layout in layouts))
    return ", ".join(parts)
