# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The error tree and the exit codes of the command line.

Every error that a user can cause or meet derives from `GpuprofError`; its text says what went wrong,
where, and how to fix it. The command line catches that one class and prints the text without a
traceback. Anything else that escapes is a bug in gpuprof.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum
from pathlib import Path
from typing import Any

_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class ExitCode(IntEnum):
    """Exit status of every gpuprof command."""

    OK = 0
    #: The command ran; a kernel was incorrect, failed or timed out, or none could be measured. Of `doctor`:
    #: something is broken.
    CASES_FAILED = 1
    #: The command line, a kernel file or an input file is at fault; nothing was measured.
    BAD_INPUT = 2
    #: A device, driver or compiler that the command needs is missing or broken, or there is no room for what
    #: it writes.
    ENVIRONMENT = 3
    #: Stopped by SIGHUP; what had been measured is on disk.
    HUNG_UP = 129
    #: Stopped by Ctrl-C; what had been measured is on disk.
    INTERRUPTED = 130
    #: Stopped by SIGTERM; what had been measured is on disk.
    TERMINATED = 143


class GpuprofError(Exception):
    """Base of every error shown to a user.

    `what` is one sentence naming what went wrong and where, `fix` one that tells how to mend it, if anything
    can.
    """

    exit_code: ExitCode = ExitCode.ENVIRONMENT

    def __init__(self, what: str, *, fix: str = "") -> None:
        super().__init__(f"{what} {fix}".strip())
        self.what = what
        self.fix = fix


class InputError(GpuprofError):
    """A bad command-line value, an unusable path, or a file that gpuprof cannot read."""

    exit_code = ExitCode.BAD_INPUT


class HeaderError(InputError):
    """A kernel file whose `/*gpuprof … */` header is missing, malformed or inconsistent."""


class ResultsError(InputError):
    """A results file that is corrupt, truncated, or of a newer schema."""


class CompileError(GpuprofError):
    """NVRTC rejected a kernel; `log` holds the compiler's own text."""

    def __init__(self, what: str, *, log: str = "", fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.log = log


class ToolError(GpuprofError):
    """A package or a program that gpuprof calls is missing, or refuses to work."""


class OutputError(GpuprofError):
    """What was measured cannot be written where it was asked for; the text says where it is.

    `run` is what was measured, where whoever raises it holds it in memory.
    """

    run: Any = None


class BackendUnavailable(GpuprofError):
    """No usable device: the driver library is absent, too old, or sees no GPU."""


class CaseFailure(GpuprofError):
    """One case could not run to its end; the run goes on with the next one.

    `fatal` where the device context is lost, so that the worker process must be replaced; `over_limit` where
    the case simply asks for more than the device has.
    """

    def __init__(self, what: str, *, fatal: bool = False, over_limit: bool = False, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.fatal = fatal
        self.over_limit = over_limit


class CaseSkipped(GpuprofError):
    """A case that a kernel's declared constraints, or the device's limits, rule out before it runs."""


def refused_start(error: BaseException) -> ToolError | None:
    """What to say where the system allows no further process or thread; None of any other error."""
    if getattr(error, "errno", None) != errno.EAGAIN and "start new thread" not in str(error):
        return None
    return ToolError(
        "The system allows no further process or thread here.",
        fix="Raise the limit: ulimit -u, or that of the container.",
    )


def reason(error: Exception) -> str:
    """Why a file cannot be used, within a sentence: what the system says, or what ails it or its name."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    if isinstance(error, ValueError):
        return "its name holds a null character"
    return os.strerror(errno.ELOOP)  # pathlib's own RuntimeError


def foreign(error: object) -> str:
    """What somebody else's error says, within a sentence: on one line, no colours, without its full stop."""
    return " ".join(_COLOUR.sub("", str(error)).split()).rstrip(".") or type(error).__name__


def asked(what: str, function: Callable[[Any], Any], given: Mapping[str, Any]) -> Any:
    """What a function of the user's own makes of values by name."""
    try:
        return function(given)
    except Exception as error:
        raise InputError(
            f"The function for {what} raises {type(error).__name__}: {foreign(error)}.",
            fix=f"It is given {', '.join(given)}.",
        ) from error


#: What an operation on a path of a user's may raise, for `reason` to explain.
PATH_ERRORS = (OSError, ValueError, RuntimeError)


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", *, most: int = 3) -> str:
    """A question that names what begins with a word, else is spelled most like it, else holds it.

    Without any, another sentence.
    """
    # The dashes of options say nothing: with them short ones would all be alike.
    word, spellings = word.lower().lstrip("-"), {name.lower().lstrip("-"): name for name in known}
    holding = [name for name in spellings if word and word in name]
    begun = [name for name in holding if name.startswith(word)]
    near = begun or get_close_matches(word, spellings, n=most, cutoff=0.6) or holding
    *others, last = [spellings[name] for name in near[:most]] or [""]
    named = f"{', '.join(others)} or {last}" if others else last
    return f"Did you mean {named}?" if last else otherwise


def nearest_file(path: Path) -> str:
    """A question that names the file beside a missing one whose name is nearest; empty where none is near."""
    try:
        near = get_close_matches(path.name, (found.name for found in path.parent.iterdir()), n=1)
    except PATH_ERRORS:
        return ""
    return f"Did you mean {path.with_name(near[0])}?" if near and near[0] != path.name else ""
