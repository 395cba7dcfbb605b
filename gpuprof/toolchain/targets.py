# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which target a source needs: some instructions exist on one architecture only, and need its own target."""

import re
from collections.abc import Iterable

#: The architecture whose own instructions are known, and what of a source tells that it uses them.
_SPECIFIC = "sm_90"
_WORDS = re.compile(r"\bwgmma\s*\.|\bsetmaxnreg\s*\.")


def target_of(arch: str, texts: Iterable[str]) -> str:
    """The compiler's target for an architecture."""
    return f"{arch}a" if arch == _SPECIFIC and any(_WORDS.search(text) for text in texts) else arch


def architecture_of(target: str) -> str:
    """The architecture that a target compiles for."""
    return target.removesuffix("a")
