# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decoded programs, kept from one case to the next: a kernel has the same PTX at every size."""

from gpuprof.executor import Program, load_program

#: Characters of PTX whose programs are kept: all of a ladder. A program takes some forty times that memory.
_KEPT_CHARACTERS = 4 << 20

_Key = tuple[str, str, bool, bool]


class Programs:
    """The programs used last."""

    def __init__(self) -> None:
        self._programs: dict[_Key, Program] = {}
        self._characters = 0

    def load(self, ptx: str, entry: str, *, follow_undefined: bool, with_skeleton: bool = False) -> Program:
        """Return the program of one kernel of a PTX text; see `load_program`.

        Raises:
            UnsupportedInstruction: As for `load_program`.
        """
        key = ptx, entry, follow_undefined, with_skeleton
        program = self._programs.pop(key, None)
        if program is None:
            program = load_program(ptx, entry, follow_undefined=follow_undefined, with_skeleton=with_skeleton)
            self._characters += len(ptx)
        self._programs[key] = program  # at the end: what comes first was not used for longest
        while self._characters > _KEPT_CHARACTERS and len(self._programs) > 1:
            oldest = next(iter(self._programs))
            del self._programs[oldest]
            self._characters -= len(oldest[0])
        return program
