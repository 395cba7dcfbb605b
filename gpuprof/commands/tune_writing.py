# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune --write`: what a search found, put into kernel files, with the difference shown."""

import difflib
from collections.abc import Mapping
from pathlib import Path

from gpuprof.commands.output import write_file
from gpuprof.console import say_lines, tell
from gpuprof.errors import InputError
from gpuprof.files import check_writable
from gpuprof.kernels.catalog import check_choices, shipped_operation
from gpuprof.kernels.header import KernelFile, read_kernels
from gpuprof.kernels.kernel import Kernel
from gpuprof.results import Run, Tuned, TunedPoint
from gpuprof.tuning.chooser import Chosen, chooser_text
from gpuprof.tuning.rewriting import Variant, with_defaults, with_variants
from gpuprof.tuning.search_plan import Plan
from gpuprof.tuning.size_rules import Rule, Sample, rules_of
from gpuprof.tuning.space import Point, Space, point_of

#: Beside the kernels, in their folder.
CHOOSER = "{}_by_size.cu"


def check_sources(space: Space, sources: Mapping[str, Path]) -> None:
    """Refuse to write kernels that are not the user's, before anything is measured.

    Raises:
        InputError: One comes with gpuprof, or cannot be written.
    """
    for axes in space.axes:
        if axes.kernel.id not in sources:
            raise InputError(
                f"{axes.kernel.id} comes with gpuprof: --write does not change it.",
                fix="Copy its file, and tune the copy.",
            )
    for path in sources.values():
        check_writable(path, force=True)


def write_found(run: Run, plan: Plan, sources: Mapping[str, Path], *, force: bool) -> list[Path]:
    """Put the best point into the kernel's header, or write a kernel that chooses by size.

    Args:
        run: The finished search.
        plan: What was searched.
        sources: The file of each kernel.
        force: Whether an existing chooser may be replaced.

    Returns:
        The files that were written.

    Raises:
        InputError: A header cannot be edited so, or a file cannot be written; nothing was written then.
    """
    writing = _Writing(run, plan, sources)
    sizes = [tuned for tuned in (run.tuning.sizes if run.tuning else ()) if tuned.ties]
    if not sizes:
        tell("Nothing is written: no point was right.")
        return []
    if sizes[0].by == "bound":
        tell("Nothing was timed: what is written is best by its bound only.")
    common = writing.common(sizes)
    texts = writing.defaults(common) if common else writing.chooser(sizes, force=force)
    written = []
    for path, text in texts.items():
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != before:
            say_lines("".join(_difference(path, before, text)).rstrip("\n"))
            write_file(path, text)
            written.append(path)
    if not written:
        tell("The headers say so already: nothing is written.")
    return written


def _difference(path: Path, before: str, after: str) -> list[str]:
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(difflib.unified_diff(*lines, str(path), str(path), n=2))


class _Writing:
    """Texts of the files, before any is written."""

    def __init__(self, run: Run, plan: Plan, sources: Mapping[str, Path]) -> None:
        self._run = run
        self._operation = plan.request.operation
        self._sources = sources
        self._kernels = {axes.kernel.id: axes.kernel for axes in plan.space.axes}
        self._others = plan.request.ladder.kernels

    def point(self, tied: TunedPoint) -> Point:
        """The point of a record."""
        return point_of(tied, self._kernels[tied.kernel])

    def common(self, sizes: list[Tuned]) -> Point | None:
        """The point that is among the best at every size, where there is one kernel and one such point."""
        shared = list(map(self.point, sizes[0].ties))
        for tuned in sizes[1:]:
            here = set(map(self.point, tuned.ties))
            shared = [point for point in shared if point in here]
        if len(self._kernels) > 1 or not shared:
            return None
        default = next((point for point in shared if self._is_default(point)), None)
        return default or shared[0]

    def _is_default(self, point: Point) -> bool:
        kernel = self._kernels[point.kernel]
        return dict(point.params) == dict(kernel.parameters) and point.block == kernel.launch.block

    def _read(self, path: Path) -> "_Reader":
        return _Reader(path, self)

    def read(self, text: str, path: Path) -> KernelFile:
        """A kernel file's text."""
        return read_kernels(text, path, shipped_operation, self._operation)

    def defaults(self, point: Point) -> dict[Path, str]:
        """The kernel's file with the point as its default."""
        path = self._sources[point.kernel]
        source = path.read_text(encoding="utf-8")
        kernel = self._in_file(source, path, point.kernel)
        return {path: with_defaults(source, kernel, point, self._read(path))}

    def _in_file(self, source: str, path: Path, name: str) -> Kernel:
        """A kernel as its file says it, without what the command line adds."""
        return next(kernel for kernel in self.read(source, path).kernels if kernel.id == name)

    def chooser(self, sizes: list[Tuned], *, force: bool) -> dict[Path, str]:
        """Kernel files with an id for every point that is chosen somewhere, and the file that chooses."""
        samples = [Sample(tuned.problem.sizes, tuple(map(self.point, tuned.ties))) for tuned in sizes]
        rules = rules_of(samples)
        names: dict[Point, str] = {}
        for rule in rules:
            names.setdefault(rule.target, self._name(rule.target, names))
        texts: dict[Path, str] = {}
        for kernel_id in dict.fromkeys(point.kernel for point in names):
            path = self._sources[kernel_id]
            source = texts.get(path) or path.read_text(encoding="utf-8")
            new = [
                Variant(name, point)
                for point, name in names.items()
                if point.kernel == kernel_id and name != kernel_id
            ]
            kernel = self._in_file(source, path, kernel_id)
            texts[path] = with_variants(source, kernel, new, self._read(path)) if new else source
        chosen = {
            name: Chosen(name, self._kernels[point.kernel], dict(point.params), point.block)
            for point, name in names.items()
        }
        named = [Rule(rule.conditions, names[rule.target], rule.samples) for rule in rules]
        path = self._sources[next(iter(names)).kernel]
        target = path.with_name(CHOOSER.format(self._stem(path)))
        check_writable(target, force)
        text = chooser_text(named, chosen, self._operation.dimensions, self._run.device.name)
        made = self.read(text, target).kernels[0]
        read = [kernel for file, source in texts.items() for kernel in self.read(source, file).kernels]
        check_choices(made, [*read, *self._others])
        return {**texts, target: text}

    def _stem(self, path: Path) -> str:
        return path.stem if len(self._kernels) == 1 else self._operation.name

    def _name(self, point: Point, taken: Mapping[Point, str]) -> str:
        """The id of a point: its kernel's where it is the default, else with the values that differ."""
        if self._is_default(point):
            return point.kernel
        default = self._kernels[point.kernel]
        words = [
            f"{name.lower()}{value}".replace("-", "m")
            for name, value in point.params
            if value != default.parameters[name]
        ]
        if point.block != default.launch.block and not default.launches:
            words.append("x".join(str(extent) for extent in point.block))
        wanted = "_".join((point.kernel, *words))
        ids = {*taken.values(), *(kernel.id for kernel in self._others)}
        return next(name for name in (wanted, *(f"{wanted}_{n}" for n in range(2, 1000))) if name not in ids)


class _Reader:
    """Reads texts as if they stood in one file."""

    def __init__(self, path: Path, writing: _Writing) -> None:
        self._path = path
        self._writing = writing

    def __call__(self, text: str) -> KernelFile:
        """What the file would hold."""
        return self._writing.read(text, self._path)
