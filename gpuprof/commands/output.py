# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where files go, how they are written, and what is said of them; and the browser that shows one."""

import os
import secrets
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpuprof import signals
from gpuprof.console import hand_over, say, tell
from gpuprof.errors import PATH_ERRORS, InputError, OutputError, reason
from gpuprof.files import RESULTS_NAME, check_writable, replace_text, same_file
from gpuprof.options import OutputOptions
from gpuprof.results import Run, dumps
from gpuprof.store import write_run

#: What stands for standard output where a file may be named.
STANDARD_OUTPUT = Path("-")
#: Where runs go that name no place, below the working directory, and the link to the newest of them.
RUNS = Path("gpuprof-results")
LATEST = RUNS / "latest"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that options name by their kind, one of which may be standard output."""

    named: Mapping[str, Path]
    force: bool = False

    @classmethod
    def of(cls, named: Mapping[str, Path], force: bool) -> "Outputs":
        """Those of some names, of which one may be that of standard output."""
        if list(named.values()).count(STANDARD_OUTPUT) > 1:
            raise InputError("Two things cannot both go to standard output.", fix="Give one of them a file.")
        return cls(named, force)

    @classmethod
    def wanted(cls, output: OutputOptions) -> "Outputs":
        """Those that options name."""
        kinds = ("html", "json", "csv", "markdown", "junit")
        return cls.of({kind: path for kind in kinds if (path := getattr(output, kind))}, output.force)

    @property
    def paths(self) -> list[Path]:
        return [path for path in self.named.values() if path != STANDARD_OUTPUT]

    @property
    def printed(self) -> str:
        """The kind that standard output takes, in place of what the terminal shows; empty for none."""
        return next((kind for kind, path in self.named.items() if path == STANDARD_OUTPUT), "")

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Refuse what cannot be written, before any work is done."""
        for number, path in enumerate(self.paths):
            for other in (*inputs, *self.paths[:number]):
                if same_file(path, other):
                    raise InputError(f"{path} is named twice.", fix="Give every file a name of its own.")
            check_output(path, self.force)

    def write(self, **texts: Callable[[], str]) -> None:
        """Write or print those that are wanted, and name the files."""
        for kind, text in texts.items():
            if kind == self.printed:
                hand_over(text())
            elif kind in self.named:
                write_file(self.named[kind], text())
        print_written(*self.paths, aside=bool(self.printed))


def text_of(run: Run, kind: str) -> str:
    """A run as one of the files that can be asked for: `json`, `html` or `csv`."""
    if kind == "json":
        return dumps(run)
    if kind == "html":
        from gpuprof.report.html import render_html

        return render_html(run)
    from gpuprof.report.comma_separated import render_csv

    return render_csv(run)


def write_report_beside(run: Run, results: Path, page: Path, *, aside: bool = False) -> None:
    """Render a run whose results file is written, and see to it that both stand there at the end."""
    text = text_of(run, "html")
    signals.postpone()
    try:
        write_file(page, text)
    except InputError as error:
        print_written(results, aside=aside)
        raise OutputError(error.what, fix=f"Make room, then: gpuprof report {results}") from error
    if not results.exists():  # its folder was removed while the page was rendered
        write_run(run, results)


def write_file(path: Path, text: str) -> None:
    """Write a file whole."""
    try:
        replace_text(path, text)
    except PATH_ERRORS as error:
        raise InputError(f"Cannot write {path}: {reason(error)}.", fix="Name another path.") from error


def check_output(path: Path, force: bool) -> None:
    """Refuse a path before any work is done; a page of gpuprof's may be replaced, and an empty file.

    A CI system prepares such a file.
    """
    check_writable(path, force or _may_be_replaced(path))


def _may_be_replaced(path: Path) -> bool:
    try:
        if not path.is_file():  # a pipe that nobody writes to would hold us up
            return False
        with path.open("rb") as file:
            head = file.read(4096)
    except PATH_ERRORS:
        return False
    return not head or b'<meta name="generator" content="gpuprof ' in head


def print_written(*paths: Path, aside: bool = False) -> None:
    """Name files on standard output, one a line; on standard error where the other one holds a file."""
    for path in paths:
        (tell if aside else say)(f"Wrote {path}")


def link_latest(directory: Path) -> None:
    """Let `gpuprof-results/latest` lead to a run's directory; where that cannot be, there is no link.

    A file or folder of the user's under that name stays what it is.
    """
    if LATEST.exists() and not LATEST.is_symlink():
        return
    temporary = RUNS / f".latest-{secrets.token_hex(8)}"
    with suppress(OSError):
        temporary.symlink_to(directory.name, target_is_directory=True)
        try:
            os.replace(temporary, LATEST)
        except OSError:
            temporary.unlink(missing_ok=True)


def latest_results() -> Path:
    """The results file of the newest run that named no place."""
    path = LATEST / RESULTS_NAME
    if not path.is_file():
        raise InputError(
            f"No run is named, and there is none at {path}.",
            fix="Name a RESULTS.json that gpuprof wrote, or measure first.",
        )
    return path


def has_browser() -> bool:
    """Whether a browser would open a window: one for the terminal would take it from the program."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_report(path: Path) -> None:
    """Open a report, or say that there is no browser; the report is written either way."""
    opened = False
    with suppress(webbrowser.Error):
        opened = has_browser() and webbrowser.open(path.absolute().as_uri())
    if not opened:
        tell(f"There is no browser here: copy {path} to where there is one; it needs no other file.")
