# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where addresses start: of shared memory in its own space, of shared and local memory among generic ones."""

SHARED_WINDOW = 0x7F00_0000_0000
LOCAL_WINDOW = 0x7E00_0000_0000
WINDOW_BYTES = 1 << 32

#: From this architecture on, the first bytes of a block's shared memory belong to the system, and the
#: kernel's own start behind them: ptxas writes 0x400 into the machine code, whatever alignment is asked for.
_FIRST_WITH_RESERVED = 90
_RESERVED_BYTES = 0x400


def shared_start(architecture: int) -> int:
    """Return the address of the first byte of a kernel's own shared memory.

    Args:
        architecture: The number of the PTX's target: 90 for `sm_90`.
    """
    return _RESERVED_BYTES if architecture >= _FIRST_WITH_RESERVED else 0
