# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Where files go, how they are written, and what is said of them; and the browser that shows one."""

import os
import secrets
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Self

from msgspec import Struct

from gpuprof import signals, timeline
from gpuprof.console import hand_over, say, tell
from gpuprof.errors import PATH_ERRORS, GpuprofError, InputError, OutputError, nearest_file
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_writable, same_file, unwritable, write_file
from gpuprof.options import OutputOptions
from gpuprof.results import Run, dumps
from gpuprof.store import ResultsFile, write_run

#: What stands for standard output where a file may be named.
STANDARD_OUTPUT = Path("-")
#: Where runs go that name no place, below the working directory, and the link to the newest of them.
RUNS = Path("gpuprof-results")
LATEST = RUNS / "latest"


class Outputs(Struct):
    """Where files go, by their kind; the kind that standard output takes, in place of the answer, if any."""

    files: dict[str, Path]
    printed: str = ""
    force: bool = False

    @classmethod
    def of(cls, named: Mapping[str, Path], force: bool) -> Self:
        """Those of some names, of which one may be that of standard output."""
        printed = [kind for kind, path in named.items() if path == STANDARD_OUTPUT]
        if len(printed) > 1:
            raise InputError("Two things cannot both go to standard output.", fix="Give one of them a file.")
        files = {kind: path for kind, path in named.items() if path != STANDARD_OUTPUT}
        return cls(files, "".join(printed), force)

    @classmethod
    def wanted(cls, output: OutputOptions) -> Self:
        """Those that options name."""
        kinds = ("html", "json", "csv", "markdown", "junit")
        return cls.of({kind: path for kind in kinds if (path := getattr(output, kind))}, output.force)

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Refuse what cannot be written, before any work is done."""
        paths = list(self.files.values())
        for number, path in enumerate(paths):
            for other in (*inputs, *paths[:number]):
                if same_file(path, other):
                    raise InputError(f"{path} is named twice.", fix="Give every file a name of its own.")
        for kind, path in self.files.items():
            self._check_file(kind, path)

    def _check_file(self, _: str, path: Path) -> None:
        """A page of gpuprof's may be replaced, and an empty file: a CI system prepares such a file."""
        check_writable(path, self.force or _may_be_replaced(path))

    def write(self, **texts: Callable[[], str]) -> None:
        """Write or print those that are wanted, and name the files."""
        for kind, text in texts.items():
            if kind == self.printed:
                hand_over(text())
            elif kind in self.files:
                write_file(self.files[kind], text())
        print_written(*self.files.values(), aside=bool(self.printed))


class RunOutputs(Outputs):
    """Where the files of a run go, results and report always: to a folder of its own where none is named."""

    is_named: bool = True
    resumes: bool = False

    @classmethod
    def of_run(cls, output: OutputOptions, name: str) -> Self:
        """`-o`, else the folder of the one file that is named, else one of that name.

        A lone `--json` or `--html` puts the other one beside it.
        """
        outputs, resume = cls.wanted(output), output.resume
        json, html = (outputs.files.pop(kind, None) for kind in ("json", "html"))
        if resume is not None and (output.output or json or output.force):
            raise InputError(
                "--resume names the run, and where its files are: -o, --json and --force do not go with it.",
                fix="Leave them out.",
            )
        if resume is not None and resume.is_dir():
            json, html = resume / RESULTS_NAME, html or resume / REPORT_NAME
        json = json or resume
        named = json or html
        folder = output.output or (named.parent if named else RUNS / name)
        outputs.files = {
            "json": json or folder / (f"{html.stem}.json" if html else RESULTS_NAME),
            "html": html or folder / (f"{json.stem}.html" if json else REPORT_NAME),
            **outputs.files,
        }
        outputs.is_named = bool(output.output or named)
        outputs.resumes = resume is not None
        return outputs

    @property
    def json(self) -> Path:
        return self.files["json"]

    @property
    def html(self) -> Path:
        return self.files["html"]

    def _check_file(self, kind: str, path: Path) -> None:
        if self.resumes and kind == "json":
            if not path.is_file():
                raise InputError(
                    f"There is no run to resume: {path} does not exist.",
                    fix=nearest_file(path) or "Begin one with -o.",
                )
        elif self.resumes or kind == "csv":
            Outputs._check_file(self, kind, path)
        else:
            # What stands where nothing was named is another run's: this one moves on.
            check_writable(path, self.force or not self.is_named, "Name another place with -o.")

    def move(self, folder: Path) -> None:
        """Put results and report into another folder."""
        self.files |= {kind: folder / self.files[kind].name for kind in ("json", "html")}

    def open(self, run: Run) -> ResultsFile:
        """Claim the results file; a run that names no place gets a directory of its own."""
        wanted = directory = self.json.parent
        for number in () if self.is_named else count(2):
            try:
                directory.mkdir(parents=True)
                self.move(directory)
                break
            except FileExistsError:  # another run of this second
                directory = wanted.with_name(f"{wanted.name}-{number}")
            except OSError as error:
                raise unwritable(directory, error, "Name another place with -o.") from error
        return ResultsFile(self.json, run, replace=self.force)

    def write_beside(self, run: Run) -> list[Path]:
        """Write what goes beside the results file, and print what standard output takes; all files' names."""
        with timeline.span("page"):
            _write_report(run, self.json, self.html, aside=bool(self.printed))
        if not self.is_named:
            _link_latest(self.json.parent)
        if "csv" in self.files:
            write_file(self.files["csv"], text_of(run, "csv"))
        if self.printed:
            hand_over(text_of(run, self.printed))
        return list(self.files.values())


def text_of(run: Run, kind: str) -> str:
    """A run as one of the files that can be asked for: `json`, `html` or `csv`."""
    if kind == "json":
        return dumps(run)
    if kind == "html":
        from gpuprof.report.html import render_html

        return render_html(run)
    from gpuprof.report.comma_separated import render_csv

    return render_csv(run)


def _write_report(run: Run, results: Path, page: Path, *, aside: bool = False) -> None:
    """Render a run whose results file is written, and see to it that both stand there at the end."""
    text = text_of(run, "html")
    signals.postpone()
    try:
        write_file(page, text)
    except GpuprofError as error:
        print_written(results, aside=aside)
        fix = f"{error.fix.removesuffix('.')}: gpuprof report {results} -o FILE"
        raise OutputError(error.what, fix=fix) from error
    if not results.exists():  # its folder was removed while the page was rendered
        write_run(run, results)


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


def _link_latest(directory: Path) -> None:
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
