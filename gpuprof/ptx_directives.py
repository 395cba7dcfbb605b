# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a PTX text says of itself by directives: its target, its kernels, and how these may be launched."""

import re

_TARGET = re.compile(r"^[ \t]*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_LIMIT = re.compile(r"\.(maxntid|reqntid|reqnctapercluster)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def target_of_ptx(ptx: str) -> tuple[int, str] | None:
    """Return the architecture, 90 for `sm_90`, and the letter of one whose own instructions it uses."""
    found = _TARGET.search(ptx)
    return (int(found[1]), found[2]) if found else None


def ptx_entries(ptx: str) -> tuple[str, ...]:
    """The kernels that a PTX text defines."""
    return tuple(_ENTRY.findall(ptx))


def launch_limits(header: str) -> dict[str, tuple[int, int, int]]:
    """Return what stands between a kernel's parameters and its body, by the name of the directive."""
    return {name: (int(x), int(y or 1), int(z or 1)) for name, x, y, z in _LIMIT.findall(header)}
