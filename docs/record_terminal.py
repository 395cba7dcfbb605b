# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Record what commands show in a terminal, as pictures of the documentation.

Usage: python docs/record_terminal.py
"""

import os
import pty
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "docs" / "screens"
WIDTH = 100
#: Web fonts, which a reader's machine would fetch: any monospaced font will do.
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_CURSOR = re.compile(r"\x1b\[\?25[lh]")


@dataclass(frozen=True)
class Recording:
    """A picture of a terminal.

    Args:
        name: Of the file, without its ending.
        command: What the picture says was typed.
        program: What is run instead of it, in a new folder; the command itself where it is empty.
    """

    name: str
    command: str
    program: tuple[str, ...] = ()


def _shown(sample: str) -> tuple[str, ...]:
    """What prints a run of the samples as the command that measured it did."""
    program = "import gpuprof, sys; gpuprof.load(sys.argv[1]).show()"
    return sys.executable, "-c", program, str(ROOT / "samples" / f"{sample}.json")


RECORDINGS = (
    Recording(
        "terminal-sim",
        "gpuprof transpose -k naive_row,smem_tile,smem_padded --sizes 512 --device sim:h200",
    ),
    Recording("terminal-gpu", "gpuprof transpose", _shown("transpose-h200")),
)


def typed(program: tuple[str, ...]) -> str:
    """What a program writes to a terminal, with its control sequences."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(folder)
            os.environ.update(COLUMNS=str(WIDTH), TERM="xterm-256color")
            for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
                os.environ.pop(name, None)
            os.execvp(program[0], program)
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the program has closed its side
                break
            if not part:
                break
            parts.append(part)
        os.waitpid(pid, 0)
    return b"".join(parts).decode()


def left(written: str) -> list[str]:
    """The lines that are left on the screen: progress is written over."""
    lines: list[str] = []
    for line in _CURSOR.sub("", written).replace("\r\n", "\n").split("\n"):
        kept = line.rpartition("\x1b[2K")[2] if "\x1b[2K" in line else line
        if "\x1b[1A" in line and lines:
            lines.pop()
        lines.append(kept.lstrip("\r"))
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def record(recording: Recording) -> None:
    """Run it and write its picture."""
    gpuprof = str(Path(sys.executable).with_name("gpuprof"))
    words = shlex.split(recording.command)
    written = typed(recording.program or (gpuprof, *words[1:]))
    console = Console(width=WIDTH, record=True, file=StringIO(), force_terminal=True)
    console.print(Text(f"$ {recording.command}", style="bold"), soft_wrap=True)
    for line in left(written):
        console.print(Text.from_ansi(line), soft_wrap=True)
    path = SCREENS / f"{recording.name}.svg"
    svg = console.export_svg(title=words[0], unique_id=recording.name)
    path.write_text(_FONTS.sub("", svg), encoding="utf-8")


if __name__ == "__main__":
    for each in RECORDINGS:
        record(each)
