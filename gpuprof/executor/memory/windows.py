# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where addresses start: of shared memory in its own space, of shared and local memory among generic ones."""

SHARED_WINDOW = 0x7F00_0000_0000
LOCAL_WINDOW = 0x7E00_0000_0000
CONSTANT_WINDOW = 0x7D00_0000_0000
#: Of functions: nothing is read or written there.
FUNCTION_WINDOW = 0x7C00_0000_0000
WINDOW_BYTES = 1 << 32
#: Room for the constant memory of a module; each has its own.
CONSTANT_BYTES = 1 << 24

#: From this architecture on, the first bytes of a block's shared memory belong to the system, and the
#: kernel's own start behind them: ptxas writes 0x400 into the machine code, whatever alignment is asked for.
_FIRST_WITH_RESERVED = 90
_RESERVED_BYTES = 0x400
#: How many of them the system uses, as an H200 tells.
_RESERVED_USED = 0x120

#: From this bit on, an address of shared memory holds the rank that its block has in the cluster.
RANK_SHIFT = 24


def shared_start(architecture: int) -> int:
    """Return the address of the first byte of a kernel's own shared memory: for `sm_90` that is number 90."""
    return _RESERVED_BYTES if architecture >= _FIRST_WITH_RESERVED else 0


def reserved_shared_end(architecture: int) -> int:
    """Return the address behind what the system uses of a block's shared memory."""
    return _RESERVED_USED if architecture >= _FIRST_WITH_RESERVED else 0
