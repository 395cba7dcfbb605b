# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The compiler's options that a kernel file may ask for: those that only decide over its own code.

NVRTC also writes files (`--create-pch`, `--time`, `--fdevice-time-trace`), reads them (`-I`, `--pre-include`)
and passes options on (`--ptxas-options`). A kernel file may come from anybody, so that what is not known here
is refused, spelt as it may be.
"""

import re
from collections.abc import Sequence

_NAME = r"[A-Za-z_]\w*"
_BOOL = "=(?:true|false)"
_NUMBERS = r"=\d{1,6}(?:,\d{1,6}){0,99}"
#: Long names, behind one dash or two, by what may follow.
_LONG = {
    "": (
        *("use_fast_math", "extra-device-vectorization", "restrict", "device-as-default-execution-space"),
        *("default-device", "device-int128", "device-float128", "device-debug", "generate-line-info"),
        *("lineinfo", "disable-warnings", "Wreorder", "display-error-number", "err-no"),
        *("no-display-error-number", "no-err-no"),
    ),
    _BOOL: (
        *("ftz", "prec-div", "prec-sqrt", "fmad", "builtin-move-forward", "builtin-initializer-list"),
        *("brief-diagnostics", "brief-diag", "modify-stack-limit", "device-stack-protector"),
    ),
    _NUMBERS: ("diag-suppress", "diag-warn", "diag-error"),
    r"=\d{1,3}": ("maxrregcount",),
    r"=c\+\+\d\d": ("std",),
    "=on": ("dopt",),
    "=inline": ("optimization-info", "opt-info"),
    "=reorder": ("Werror", "warning-as-error"),
}
_ALLOWED = re.compile(
    "|".join(
        (
            *(f"--?(?:{'|'.join(map(re.escape, names))}){value}" for value, names in _LONG.items()),
            rf"(?:-D ?|--define-macro=){_NAME}(?:=[^\r\n\0]*)?",
            rf"(?:-U ?|--undefine-macro=){_NAME}",
            "-[Gw]",
        )
    ),
    re.ASCII,
)
#: Those whose value may be the next entry of the list, and what joins the two.
_SEPARATE = {
    **dict.fromkeys(("-D", "-U"), ""),
    **dict.fromkeys(("--define-macro", "--undefine-macro", "--maxrregcount", "-maxrregcount"), "="),
}
#: For the message: what the allowed ones are for.
ALLOWED_TEXT = (
    "A header may set macros (-D, -U), mathematics (--use_fast_math, --ftz, --prec-div, --prec-sqrt, --fmad),"
    " --maxrregcount=N, --std=c++NN, -G, -lineinfo, --restrict, --extra-device-vectorization,"
    " -default-device and which warnings show. Others may read or write files; folders of"
    " headers are typed: -I DIR."
)


def refused_option(options: Sequence[str]) -> str | None:
    """The first of joined options that a kernel file may not ask for; None where all are fine."""
    return next((option for option in options if _ALLOWED.fullmatch(option) is None), None)


def joined(options: Sequence[str]) -> tuple[str, ...]:
    """Options, each with its value where that is an entry of its own."""
    entries = iter(options)
    return tuple(
        option if (joint := _SEPARATE.get(option)) is None else option + joint + next(entries, "")
        for option in entries
    )
