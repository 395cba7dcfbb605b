# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Labels: what a user says of where a run is measured, so that many runs can be told apart later.

gpuprof names neither the machine nor its user by itself: results files are shown to others.
"""

import os
import re
from collections.abc import Mapping, Sequence

from gpuprof.errors import InputError

#: An environment variable of this beginning is a label too, in small letters: GPUPROF_LABEL_RACK is `rack`.
VARIABLES = "GPUPROF_LABEL_"
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_LONGEST_VALUE = 200


def labels_of(given: Sequence[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The labels of a run: those of the environment, and over them those of the command line.

    Args:
        given: Each as `KEY=VALUE`.
        environment: Where the variables stand.

    Raises:
        InputError: One has no key or no value, or is too long.
    """
    found = {
        name.removeprefix(VARIABLES).lower(): value
        for name, value in sorted(environment.items())
        if name.startswith(VARIABLES) and value
    }
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not value:
            raise InputError(f"--label {text} is not a label.", fix="Write --label KEY=VALUE, e.g. rack=r12.")
        found[key.strip()] = value.strip()
    return checked_labels(found)


def read_labels(given: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    """The labels of a run: as a program gives them, or typed ones over those of the environment.

    Raises:
        InputError: One cannot be one.
    """
    return checked_labels(given) if isinstance(given, Mapping) else labels_of(given or ())


def checked_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels that a results file can hold.

    Raises:
        InputError: A key or a value cannot be one.
    """
    for key, value in labels.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise InputError(
                f"{key!r} is not a key of a label.",
                fix="A key has at most 32 small letters, digits, - and _, and begins with a letter.",
            )
        if not isinstance(value, str) or not value or len(value) > _LONGEST_VALUE or not value.isprintable():
            raise InputError(
                f"The label {key} has a value that cannot be kept.",
                fix=f"A value is one line of at most {_LONGEST_VALUE} characters.",
            )
    return dict(labels)
