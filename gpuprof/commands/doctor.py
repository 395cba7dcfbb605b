# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof doctor`: what works here, what is missing, and what to do about it."""

import textwrap

from gpuprof.errors import ExitCode
from gpuprof.ncu.doctor import Check, checks

_MARKS = {"ok": "ok     ", "absent": "without", "broken": "BROKEN "}


def examine(device_ordinal: int) -> ExitCode:
    """Print every check as it is made.

    Args:
        device_ordinal: The GPU to try Nsight Compute on.

    Returns:
        `ENVIRONMENT` when something is broken; a part that gpuprof does without is no failure.
    """
    broken = False
    for check in checks(device_ordinal):
        broken = broken or check.state == "broken"
        print(_lines(check), flush=True)
    return ExitCode.ENVIRONMENT if broken else ExitCode.OK


def _lines(check: Check) -> str:
    lines = [f"{_MARKS[check.state]}  {check.name}: {check.text.rstrip('.')}"]
    lines += textwrap.wrap(check.fix, 100, initial_indent=" " * 11, subsequent_indent=" " * 11)
    return "\n".join(lines)
