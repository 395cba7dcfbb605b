# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One answer of `gpuprof doctor`."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "absent", "disturbs", "broken"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One thing that was looked at.

    Args:
        name: What.
        state: `absent` is a part that gpuprof does without, `disturbs` makes times untrue or unsteady, and
            `broken` needs mending.
        text: What was found.
        fix: What to do.
    """

    name: str
    state: State
    text: str
    fix: str = ""
