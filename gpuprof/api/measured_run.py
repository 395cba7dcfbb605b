# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as Python programs see it: cases, their figures and counters as plain values."""

import sys
import webbrowser
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from gpuprof.analysis.actions import actions_of
from gpuprof.analysis.answer import Answer, answer_of
from gpuprof.analysis.counts import held as counted
from gpuprof.analysis.figures import FIGURES, Figure, Subject, counter_figure
from gpuprof.analysis.groups import SizeSlice, groups
from gpuprof.analysis.ladder import Rung, build_ladder, rungs_of
from gpuprof.analysis.limiter import limiter_of
from gpuprof.analysis.limits import limits_of
from gpuprof.analysis.numbers import time_us
from gpuprof.analysis.status import status_of
from gpuprof.api.finding import CaseFinder, ShownAsTables, told
from gpuprof.api.keywords import public
from gpuprof.commands.output import has_browser
from gpuprof.errors import GpuprofError, InputError, ToolError, did_you_mean
from gpuprof.files import REPORT_NAME, RESULTS_NAME, check_writable, replace_text
from gpuprof.reading import read_run
from gpuprof.results import Outcome
from gpuprof.schema import to_json
from gpuprof.store import write_run
from gpuprof.text import Extent, format_extent

if TYPE_CHECKING:
    from gpuprof.report.document import Document
    from gpuprof.results import Bound, Explanation, Measurement, Model
    from gpuprof.results import Run as Record


class NotMeasured(GpuprofError, LookupError):
    """A figure that a case does not have; the text says why."""


class Figures(Mapping[str, Any]):
    """Named values of one case, as attributes or by key: `figures.median_us`, `figures["median_us"]`.

    A name is known or not, whether or not this case has the value: `get` gives None for one that was not
    measured, an attribute or a key raises `NotMeasured` with the reason, and iteration leaves it out.
    """

    def __init__(self, subject: Subject, known: Mapping[str, Figure]) -> None:
        self._subject = subject
        self._known = known

    def __getitem__(self, name: str) -> Any:
        """The value of a figure.

        Raises:
            KeyError: There is no figure of that name.
            NotMeasured: This case has none.
        """
        reading = self._known[name].read(self._subject)
        if reading.value is None:
            what = f"{name} of {self._subject.case.kernel} is not known: {reading.reason}."
            raise NotMeasured(what, fix=self._remedy(name))
        return reading.value

    def _remedy(self, name: str) -> str:
        """How a program gets a figure that it does not have."""
        uncounted = self._subject.run.backend == "gpu" and not counted(self._subject.case)
        groups_of_counts = ("Counters", FIGURES["sector_ratio"].group, FIGURES["bound_us"].group)
        if uncounted and self._known[name].group in groups_of_counts:
            return "profile(ncu=True) asks Nsight Compute for it, profile(lines=True) the executor."
        return ""

    def __getattr__(self, name: str) -> Any:
        """The same by attribute; an unknown name is an AttributeError."""
        if name.startswith("_") or name not in self._known:
            near = did_you_mean(
                name, self._known, f"There are {len(self._known)}; dir() lists those measured."
            )
            # Of its name alone Python would make a second such question.
            raise AttributeError(f"There is no figure {name!r}. {near}", obj=self)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a figure; `default` where this case has none.

        Raises:
            KeyError: There is no figure of that name.
        """
        value = self._known[name].read(self._subject).value
        return default if value is None else value

    def why_not(self, name: str) -> str:
        """Why a figure was not measured; empty where it was."""
        reading = self._known[name].read(self._subject)
        return reading.reason if reading.value is None else ""

    def __contains__(self, name: object) -> bool:
        """Whether this case has the figure."""
        return name in self._known and self.get(str(name)) is not None

    def __iter__(self) -> Iterator[str]:
        """Names of the figures that this case has."""
        return (name for name in self._known if self.get(name) is not None)

    def __len__(self) -> int:
        """How many figures this case has."""
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        """How many there are, and of what; `dict(figures)` has their values."""
        case = self._subject.case
        return f"<{len(self)} figures of {case.kernel} {case.problem.label}>"

    def __dir__(self) -> list[str]:
        """For completion: the figures that this case has, too."""
        return [*super().__dir__(), *self]


class MeasuredCase:
    """One kernel at one problem with one launch shape, and what came of it."""

    def __init__(self, run: "MeasuredRun", record: "Measurement") -> None:
        self.run = run
        #: Everything that the results file holds of it.
        self.record = record

    @property
    def device(self) -> str:
        """Name of its device; of several of one name also which of them."""
        return self.run.record.device_label(self.record.device)

    kernel: str = told("record.kernel", "Id of the kernel or of the reference.")
    sizes: Mapping[str, int] = told(
        "record.problem.sizes", "Extents of the problem by the names of its dimensions."
    )
    size: str = told("record.problem.label", "The same as users type it: `4096`, `512x1024x256`.")
    dtype: str = told("record.problem.dtype", "Element type of the run.")
    block: Extent = told("record.block", "Threads of a block in x, y and z.")
    grid: Extent | None = told(
        "record.grid", "Blocks in x, y and z; None when the case ended before its launch was worked out."
    )
    params: Mapping[str, int] = told("record.params", "Values of the kernel's parameters.")
    outcome: str = told("record.outcome", "`ok`, `incorrect`, `failed`, `skipped` or `timeout`.")

    @property
    def ok(self) -> bool:
        """Whether the kernel ran to its end and what it computed was right."""
        return self.record.outcome == "ok"

    @property
    def reason(self) -> str:
        """Why the outcome is not `ok`, in a sentence; else empty."""
        return self.record.reason or ""

    explanation: "Explanation | None" = told(
        "record.explanation",
        "Line, thread and array of what went wrong, as the executor saw it; None where it did not.",
    )

    @property
    def why(self) -> tuple[str, ...]:
        """Why the case stands where it stands.

        What moved since the rung below; then the part of the GPU that binds it, with its bound and its share
        of the measured time, the line of source that causes most of that, and what less of it would allow.
        Where exact counts are missing, what else its figures tell.
        """
        from gpuprof.report.ladder_table import explanation, limit_lines

        rung = self.run.rung_of(self.record)
        if rung is not None:
            return explanation(self.run.record, rung)
        if self.reason:
            return (self.reason,)
        subject = (self.run.record, self.record)
        return tuple(limit_lines(limits_of(*subject), limiter_of(*subject), actions_of(*subject)))

    model: "Model | None" = told(
        "record.model",
        """A modelled time with its interval, never a measured one: `case.model.median_us`.

        None where there is none; `case.record.model_reason` says why.
        """,
    )
    bounds: "Mapping[str, Bound]" = told(
        "record.bounds",
        """The least time that each part of the GPU needs, by the part: `case.bounds["l1"].least_us`.

        Each tells its formula and the source of its rate; empty where nothing was counted.
        """,
    )
    bound_by: str | None = told(
        "record.bound_by",
        "The part whose bound is highest, a key of `bounds`; None where exact counts are missing.",
    )
    bound_us: float = told(
        "figures.bound_us",
        """The highest bound: no launch can take less.

        Raises:
            NotMeasured: Exact counts are missing.
        """,
    )
    pct_of_bound: float = told(
        "figures.pct_of_bound",
        """That bound as a share of the measured time, in percent: 100 is all that the kernel's counts allow.

        Raises:
            NotMeasured: There is no time, as without a GPU, or exact counts are missing.
        """,
    )
    remarks: tuple[str, ...] = told("record.remarks", "What to read beside its figures, in sentences.")
    is_reference: bool = told(
        "record.is_reference", "Whether it is a library's or the host's implementation, to compare with."
    )
    median_us: float = told(
        "figures.median_us",
        """Median time of one launch with cold caches, in microseconds.

        Raises:
            NotMeasured: There is none, as without a GPU.
        """,
    )

    @cached_property
    def figures(self) -> Figures:
        """Every figure that a report shows of it, counters included."""
        return Figures(self._subject, _figures(self.record))

    @cached_property
    def counters(self) -> Figures:
        """Event counts of one launch, from Nsight Compute or the executor."""
        held = {**self.record.counters, **self.record.executor_counters}
        return Figures(self._subject, {**_COUNTERS, **{name: counter_figure(name) for name in held}})

    @property
    def _subject(self) -> Subject:
        return Subject(self.run.record, self.record, self.run.rung_of(self.record))

    def to_dict(self) -> dict[str, Any]:
        """One flat row: what it is, how it ended, and every figure that it has."""
        return {
            "kernel": self.kernel,
            "operation": self.record.problem.operation,
            "size": self.size,
            **self.sizes,
            "dtype": self.dtype,
            "block": format_extent(self.block),
            "params": dict(self.params),
            "outcome": self.outcome,
            "reason": self.reason,
            **self.figures,
        }

    def __repr__(self) -> str:
        """The row in short, with the reason where it is not ok."""
        params = "".join(f" {name}={value}" for name, value in self.params.items())
        time = self.figures.get("median_us")
        end = time_us(time) if time is not None else status_of(self.run.record, self.record).word
        why = f": {self.reason}" if self.reason else ""
        return f"<{self.kernel} {self.size} {format_extent(self.block)}{params}: {end}{why}>"


class MeasuredRun(CaseFinder[MeasuredCase], ShownAsTables):
    """What `profile` measured, or `load` read."""

    words: ClassVar = {"outcome": get_args(Outcome)}

    def __init__(self, record: "Record") -> None:
        self.record = record

    @cached_property
    def cases(self) -> tuple[MeasuredCase, ...]:
        """Every case: by device, by size, then in rung order, references last."""
        return tuple(MeasuredCase(self, record) for record in self.record.cases)

    backend: str = told(
        "record.backend", "What ran the kernels: `gpu`, `sim` for the executor on the CPU, or `none`."
    )
    device: str = told(
        "record.device.name",
        "Name of the GPU, or of the one that the executor stands in for; of several the first.",
    )

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of all devices that it ran on, as cases give theirs."""
        return self.record.device_labels

    @property
    def answer(self) -> str:
        """What the run says, a line for each size: the fastest kernel, its time, and what limits it."""
        from gpuprof.report.run_text import answer_content

        found = ((answer_content(answer, size.heading), answer) for size, answer, _ in self._answers)
        return "\n".join("; ".join((told.text.rstrip("."), *answer.cautions)) for told, answer in found)

    @public
    def best(self, size: str | int | None = None, device: str | None = None) -> MeasuredCase:
        """The kernel that the answer names: the fastest, as measured, else as modelled, else by bounds.

        Args:
            size: Of the sizes, as users type it; may be left out where there is one.
            device: Of the run's devices, as `devices` names it; may be left out where there is one.

        Raises:
            InputError: There are none or several of those.
            NotMeasured: No kernel has a time, a modelled one or a bound.
        """
        asked = {"size": None if size is None else str(size), "device": device}
        found = [
            (size, answer, case)
            for size, answer, case in self._answers
            if asked["size"] in (None, size.label) and device in (None, self.record.device_label(size.device))
        ]
        if len(found) != 1:
            wanted = ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None)
            names = ", ".join(dict.fromkeys(size.heading for size, _, _ in (found or self._answers)))
            raise InputError(
                f"There {'are several answers' if found else 'is no answer'}"
                f"{f' for {wanted}' if wanted else ''}: the run has {names or 'no case'}.",
                fix="Name size and device, or pick a case with find().",
            )
        ((_, answer, case),) = found
        if case is None:
            raise NotMeasured(f"No kernel is the best: {answer.lead}.")
        return case

    @cached_property
    def _answers(self) -> tuple[tuple[SizeSlice, Answer, MeasuredCase | None], ...]:
        """Each size, what is said of it, and the case that this is about."""
        cases = {id(case.record): case for case in self.cases}
        found = []
        for size in (size for group in groups(self.record) for size in group.sizes):
            ladder = build_ladder(self.record, size)
            answer = answer_of(self.record, ladder)
            named = cases[id(ladder.rung(answer.kernel).case)] if answer.kernel else None
            found.append((size, answer, named))
        return tuple(found)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` of `to_dicts`: one row a case; what was not measured is missing.

        Raises:
            ToolError: pandas is not installed; gpuprof does without.
        """
        try:
            import pandas
        except ImportError as error:
            fix = "pip install pandas, or use to_dicts() or to_csv()."
            raise ToolError(f"to_pandas needs pandas: {error}.", fix=fix) from error
        return pandas.DataFrame(self.to_dicts())

    def to_dicts(self) -> list[dict[str, Any]]:
        """One flat row a case, as a data frame takes them."""
        return [case.to_dict() for case in self.cases]

    def to_json(self) -> dict[str, Any]:
        """The results file's content."""
        document: dict[str, Any] = to_json(self.record)
        return document

    def to_csv(self) -> str:
        """One row a case, every figure in full with its unit in the heading, as `gpuprof report --csv`."""
        from gpuprof.report.comma_separated import render_csv

        return render_csv(self.record)

    def to_html(self) -> str:
        """The whole report as one self-contained page."""
        from gpuprof.report.html import render_html

        return render_html(self.record)

    @public
    def show(self, *, browser: bool | None = None) -> Path | None:
        """Open the report in a browser, or print the tables where there is none.

        Args:
            browser: Whether there is one; found out when None: it takes a desktop, or `BROWSER` in the
                environment.

        Returns:
            The report, a temporary file that the system clears away; None where the tables were printed.
        """
        if not (has_browser() if browser is None else browser):
            from gpuprof.report.run_text import show_run

            show_run(self.record, file=sys.stdout)
            return None
        report = Path(mkdtemp(prefix="gpuprof-report-")) / REPORT_NAME
        replace_text(report, self.to_html())
        webbrowser.open(report.as_uri())
        return report

    def _report(self) -> "Document":
        from gpuprof.report.run_text import run_report

        return run_report(self.record)

    @public
    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the results and their report.

        Args:
            path: A directory, which is made, for `results.json` and `report.html`; or the results file, whose
                name ends in .json, and the report goes beside it.
            force: Whether existing files may be replaced.

        Returns:
            The results file.

        Raises:
            InputError: They exist, or cannot be written.
        """
        named = Path(path)
        alone = named.suffix == ".json"
        results = named if alone else named / RESULTS_NAME
        report = named.with_suffix(".html") if alone else named / REPORT_NAME
        for file in (results, report):
            check_writable(file, force)
        write_run(self.record, results)
        replace_text(report, self.to_html())
        return results

    def rung_of(self, case: "Measurement") -> Rung | None:
        """The rung that a case stands for; None for one of several blocks that is not the fastest."""
        return self._rungs.get(id(case))

    @cached_property
    def _rungs(self) -> dict[int, Rung]:
        return rungs_of(self.record)

    def __repr__(self) -> str:
        """What ran where, and how many cases are ok."""
        ok = sum(case.ok for case in self.cases)
        operations = ", ".join(dict.fromkeys(case.record.problem.operation for case in self.cases))
        where = ", ".join(self.devices)
        return f"<gpuprof run: {operations} on {where} ({self.backend}), {ok} of {len(self)} cases ok>"


@public
def load(path: str | Path) -> MeasuredRun:
    """Read a results file.

    Raises:
        InputError: It is no path.
        ResultsError: It is no results file, or one of a newer version of gpuprof.
    """
    return MeasuredRun(read_run(Path(path)))


_COUNTERS = {name: figure for name, figure in FIGURES.items() if figure.group == "Counters"}


def _figures(case: "Measurement") -> Mapping[str, Figure]:
    """Every figure, counters without a description included."""
    held = (name for name in (*case.counters, *case.executor_counters) if name not in FIGURES)
    return {**FIGURES, **{name: counter_figure(name) for name in held}}
