# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The error tree and the exit codes of the command line.

Every error that a user can cause or meet derives from `GpuprofError`; its text says what went wrong,
where, and how to fix it. The command line catches that one class and prints the text without a
traceback. Anything else that escapes is a bug in gpuprof.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of every gpuprof command."""

    OK = 0
    #: The command ran; a kernel was incorrect, failed or timed out, or none could be measured.
    CASES_FAILED = 1
    #: The command line, a kernel file or an input file is at fault; nothing was measured.
    BAD_INPUT = 2
    #: A device, driver or compiler that the command needs is missing or broken.
    ENVIRONMENT = 3
    #: Stopped by Ctrl-C; what had been measured is on disk.
    INTERRUPTED = 130


class GpuprofError(Exception):
    """Base of every error shown to a user.

    Args:
        what: One sentence naming what went wrong and where.
        fix: One sentence telling how to mend it; empty when there is nothing to do.
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

    def __init__(self, what: str, *, log: str, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.log = log


class EnvironmentProblem(GpuprofError):
    """Something that gpuprof itself needs is not installed."""


class BackendUnavailable(GpuprofError):
    """No usable device: the driver library is absent, too old, or sees no GPU."""


class CaseFailure(GpuprofError):
    """One case could not run to its end; the run goes on with the next one.

    Args:
        what: The reason shown in the case's row.
        fatal: True when the device context is lost, so the worker process must be replaced.
        over_limit: True when the case simply asks for more than the device has.
    """

    def __init__(self, what: str, *, fatal: bool = False, over_limit: bool = False, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.fatal = fatal
        self.over_limit = over_limit


class CaseSkipped(GpuprofError):
    """A case that a kernel's declared constraints, or the device's limits, rule out before it runs."""
