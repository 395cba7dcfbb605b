# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""NumPy, loaded when something is computed: to plan a run, as every command line does, takes none."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _Later:
        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    #: Types of elements stand in quoted annotations only, as they would load it.
    np, NDArray = _Later(), list

__all__ = ["NDArray", "np"]
