# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Records with other values in some fields, whichever kind of class they are of."""

import dataclasses
from typing import Any, TypeVar

from msgspec import Struct, structs

Record = TypeVar("Record")


def replace(record: Record, **fields: Any) -> Record:
    """A copy with these values."""
    return (structs if isinstance(record, Struct) else dataclasses).replace(record, **fields)  # type: ignore[type-var]
