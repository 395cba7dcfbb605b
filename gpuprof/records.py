# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Records with other values in some fields."""

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

if TYPE_CHECKING:
    from dataclasses import replace as replace  # type checkers hold its names and types against the fields
else:

    def replace(record: Any, /, **fields: Any) -> Any:
        """A copy of a struct or a dataclass with these values."""
        return (structs if isinstance(record, Struct) else dataclasses).replace(record, **fields)
