# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a caution is."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["bad", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Banner:
    """One caution.

    Args:
        level: `bad` when a figure must not be used, `warning` when it may be off, `note` for context.
        detail: Measured against threshold, and which cases.
        fix: What to do; empty when there is nothing to do.
    """

    code: str
    level: Level
    title: str
    detail: str
    fix: str = ""
