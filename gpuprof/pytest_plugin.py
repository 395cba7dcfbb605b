# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: a fixture that measures kernels, and its rows in the report of a test that fails.

pytest loads this module at every start where gpuprof is installed: everything else waits until it is used.
"""

import io
import os
import re
import shutil
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gpuprof.api.comparing import Comparison, RunOrFile
    from gpuprof.api.measured_run import MeasuredRun
    from gpuprof.report.document import Document

#: Columns of a table in a report that no terminal shows.
_COLUMNS = 100
_measured: "pytest.StashKey[list[MeasuredRun]]" = pytest.StashKey()
_compared: "pytest.StashKey[list[Comparison]]" = pytest.StashKey()
_running: pytest.StashKey[pytest.Item] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the fixture."""
    group = parser.getgroup("gpuprof", "kernels measured by gpuprof")
    group.addoption(
        "--gpuprof-device",
        default="auto",
        metavar="auto|N|all|sim|none",
        help="Where the fixture gpuprof measures: auto, the first GPU or else the executor; a GPU's number;"
        " all of them; sim or sim:CARD, the executor; none, compile only; several with commas.",
    )
    group.addoption(
        "--gpuprof-results",
        type=Path,
        metavar="DIR",
        help="Keep the results file of every measurement here; else they go to pytest's temporary folder.",
    )
    group.addoption(
        "--gpuprof-no-explain",
        action="store_true",
        help="Do not run cases that fail, hang or are wrong again on the executor, to say line and thread.",
    )


class GpuprofFixture:
    """What the fixture `gpuprof` gives: the package's names, with the run's device and place for results.

    Measurements of several pytest processes take turns with the file `lock`.
    """

    def __init__(self, config: pytest.Config, folder: Path, lock: Path | None) -> None:
        self.device: str = config.getoption("--gpuprof-device")
        self.folder = folder
        self._config = config
        self._lock = lock
        self._taken: dict[str, int] = {}

    def profile(self, what: Any, **options: Any) -> "MeasuredRun":
        """As `gpuprof.profile`, with the command line's device, counters on a GPU too, and a saved file."""
        import gpuprof

        options.setdefault("device", self.device)
        named = options["device"]
        devices = [str(named)] if isinstance(named, (str, int)) else [*map(str, named)]
        options.setdefault("lines", True)
        options.setdefault("explain", not self._config.getoption("--gpuprof-no-explain"))
        if "save" not in options:
            options["save"] = self._next_file()
        with _turn(None if all(name.startswith(("sim", "none")) for name in devices) else self._lock):
            run = gpuprof.profile(what, **options)
        item = self._config.stash.get(_running, None)
        if item is not None:
            item.stash.setdefault(_measured, []).append(run)
        return run

    def compare(self, base: "RunOrFile", new: "RunOrFile", *, force: bool = False) -> "Comparison":
        """As `gpuprof.compare`; a test that fails shows what came of it."""
        import gpuprof

        comparison = gpuprof.compare(base, new, force=force)
        item = self._config.stash.get(_running, None)
        if item is not None:
            item.stash.setdefault(_compared, []).append(comparison)
        return comparison

    def _next_file(self) -> Path:
        """A results file named by the test; that of an earlier session makes room."""
        item = self._config.stash.get(_running, None)
        node = item.nodeid if item is not None else "session"
        name = re.sub(r"[^\w.-]+", "-", node).strip("-")[:120]
        if "[" in node or len(node) > 120:  # parameters that differ in what a file's name cannot hold
            name += f"-{zlib.crc32(node.encode()):08x}"
        self._taken[name] = self._taken.get(name, 0) + 1
        number = f"-{self._taken[name]}" if self._taken[name] > 1 else ""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}{number}.json"
        path.unlink(missing_ok=True)
        return path

    def __getattr__(self, name: str) -> Any:
        """Every other name is the package's: within a test the fixture hides it."""
        import gpuprof

        return getattr(gpuprof, name)


@contextmanager
def _turn(lock: Path | None) -> Iterator[None]:
    """Wait until no other process of this session measures on the GPU: it would disturb the times."""
    if lock is None:
        yield
        return
    import fcntl

    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def gpuprof(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GpuprofFixture:
    """Measure kernels: `gpuprof.profile(…)`, as the package's, with the device of the command line."""
    folder = request.config.getoption("--gpuprof-results") or tmp_path_factory.mktemp("gpuprof")
    several = os.environ.get("PYTEST_XDIST_WORKER") is not None
    lock = tmp_path_factory.getbasetemp().parent / "gpuprof.lock" if several else None
    return GpuprofFixture(request.config, Path(folder), lock)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which test runs: what is measured from now on belongs to it."""
    item.config.stash[_running] = item


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was measured to the report of a test that fails."""
    if call.excinfo is not None and not item.config.getoption("fulltrace"):
        _leave_out_own_lines(call.excinfo)
    report = yield
    if report.failed and call.when in ("setup", "call"):
        runs = list(_runs_of(item))
        if runs:
            report.sections.append(("gpuprof", "\n".join(map(_described, runs))))
        if comparisons := item.stash.get(_compared, []):
            from gpuprof.report.compared_text import comparison_report

            verdicts = (_printed(comparison_report(one.record)) for one in comparisons)
            report.sections.append(("gpuprof compare", "\n".join(verdicts)))
    return report


def _leave_out_own_lines(found: pytest.ExceptionInfo[BaseException]) -> None:
    """Of a mistake that gpuprof says in a sentence, show where the test made it."""
    errors = sys.modules.get("gpuprof.errors")
    if errors is not None and isinstance(found.value, errors.GpuprofError):
        package, last = Path(__file__).parent, found.tb
        while after := last.tb_next:
            if Path(after.tb_frame.f_code.co_filename).is_relative_to(package):
                last.tb_next = found.value.__cause__ = None
            else:
                last = after


def _runs_of(item: pytest.Item) -> "Iterator[MeasuredRun]":
    """Runs of a test: those that it measured, and those that its fixtures gave it."""
    module = sys.modules.get("gpuprof.api.measured_run")
    if module is None:  # then nobody has made a run
        return
    seen: set[int] = set()
    for value in (*item.stash.get(_measured, []), *getattr(item, "funcargs", {}).values()):
        run = value.run if isinstance(value, module.MeasuredCase) else value
        if isinstance(run, module.MeasuredRun) and id(run) not in seen:
            seen.add(id(run))
            yield run


def _described(run: "MeasuredRun") -> str:
    """A run's table, and why each of its cases stands where it stands."""
    from gpuprof.report.case_table import format_block
    from gpuprof.report.run_text import run_report
    from gpuprof.text import one_line

    lines = [_printed(run_report(run.record))]
    for case in run.cases:
        if case.ok and case.why:
            title = one_line(f"{case.kernel} {case.size} {format_block(case.record)}")
            lines.append(f"{title}: {'; '.join(case.why)}")
    return "\n".join(lines)


def _printed(document: "Document") -> str:
    """A document as the terminal shows it."""
    from gpuprof.report.terminal import print_document

    text = io.StringIO()
    width = shutil.get_terminal_size((_COLUMNS, 24)).columns
    print_document(document, file=text, width=width, color=False)
    return text.getvalue().rstrip()
