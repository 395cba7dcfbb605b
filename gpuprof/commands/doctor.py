# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof doctor`: what works here, what is missing, and what to do about it."""

import json
import shutil
import textwrap
from dataclasses import asdict

from gpuprof import signals
from gpuprof.commands.checks import checks
from gpuprof.commands.doctor_check import DoctorCheck
from gpuprof.console import hand_over, say_lines
from gpuprof.errors import ExitCode
from gpuprof.text import one_line

_MARKS = {"ok": "ok      ", "absent": "without ", "disturbs": "disturbs", "broken": "BROKEN  "}
#: What stands under a mark: the rest of what was found, and what to do.
_INDENT = " " * 10
#: Columns of the longest line of words, and of the shortest that is still worth a line.
_WIDEST, _NARROWEST = 110, 30


def examine(device_ordinal: int, cluster: str | None = None, *, as_json: bool = False) -> ExitCode:
    """Print every check as it is made, or all of them as one JSON document.

    Returns:
        `CASES_FAILED` when something is broken; what gpuprof does without, or only disturbs, is no failure.
    """
    signals.postpone()
    made: list[DoctorCheck] = []
    for check in checks(device_ordinal, cluster):
        made.append(check)
        if not as_json:
            say_lines(_lines(check))
        signals.check()
    broken = any(check.state == "broken" for check in made)
    if as_json:
        document = {"usable": not broken, "checks": [asdict(check) for check in made]}
        hand_over(json.dumps(document, indent=1) + "\n")
    return ExitCode.CASES_FAILED if broken else ExitCode.OK


def _lines(check: DoctorCheck) -> str:
    found = f"{_MARKS[check.state]}  {one_line(check.name)}: {one_line(check.text.rstrip('.'))}"
    return "\n".join((*_wrapped(found, ""), *_wrapped(one_line(check.fix), _INDENT)))


def _wrapped(text: str, indent: str) -> list[str]:
    """A sentence within the terminal's width; paths stay whole."""
    width = min(_WIDEST, max(_NARROWEST, shutil.get_terminal_size((_WIDEST, 24)).columns))
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
