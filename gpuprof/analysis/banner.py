# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a caution is."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["bad", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Banner:
    """One caution: `bad` when a figure must not be used, `warning` when it may be off, `note` for context.

    The detail says what was measured, against which threshold, and of which cases.
    """

    code: str
    level: Level
    title: str
    detail: str
    fix: str = ""
