# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof doctor`: what works here, what is missing, and what to do about it."""

import textwrap

from gpuprof import signals
from gpuprof.commands.checks import Check, checks
from gpuprof.console import say_lines
from gpuprof.errors import ExitCode
from gpuprof.text import one_line

_MARKS = {"ok": "ok     ", "absent": "without", "broken": "BROKEN "}


def examine(device_ordinal: int) -> ExitCode:
    """Print every check as it is made.

    Args:
        device_ordinal: The GPU to try Nsight Compute on.

    Returns:
        `ENVIRONMENT` when something is broken; a part that gpuprof does without is no failure.
    """
    signals.postpone()
    broken = False
    for check in checks(device_ordinal):
        broken = broken or check.state == "broken"
        say_lines(_lines(check))
        signals.check()
    return ExitCode.ENVIRONMENT if broken else ExitCode.OK


def _lines(check: Check) -> str:
    lines = [f"{_MARKS[check.state]}  {one_line(check.name)}: {one_line(check.text.rstrip('.'))}"]
    lines += textwrap.wrap(check.fix, 100, initial_indent=" " * 11, subsequent_indent=" " * 11)
    return "\n".join(lines)
