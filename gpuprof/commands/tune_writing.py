# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""`gpuprof tune --write`: what was found best, put into kernel files, with the difference shown."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuprof.commands.output import write_file
from gpuprof.console import say_lines, tell
from gpuprof.devices.device import Device
from gpuprof.errors import InputError
from gpuprof.files import check_writable, read_input
from gpuprof.kernels.catalog import Ladder, check_choices, shipped_operation
from gpuprof.kernels.header import KernelFile, read_kernels
from gpuprof.kernels.kernel import Kernel
from gpuprof.operation import Operation
from gpuprof.results import Run
from gpuprof.tuning.chooser import ChooserPart, Chosen, chooser_text, with_choices
from gpuprof.tuning.findings import Finding, fastest_first, findings_of
from gpuprof.tuning.rewriting import Variant, with_defaults, with_variants
from gpuprof.tuning.size_rules import Rule, Sample, rules_of
from gpuprof.tuning.space import Point

#: Beside the kernels, in their folder.
CHOOSER = "{}_by_size.cu"


def check_sources(kernels: Sequence[Kernel], sources: Mapping[str, Path]) -> None:
    """Refuse to write kernels that are not the user's, before anything is measured.

    Raises:
        InputError: One comes with gpuprof, or cannot be written.
    """
    for kernel in kernels:
        if kernel.id not in sources:
            raise InputError(
                f"{kernel.id} comes with gpuprof: --write does not change it.",
                fix="Copy its file, and tune the copy.",
            )
        check_writable(sources[kernel.id], force=True)


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be written: points by size and device, those to fall back on, and the kernels' files."""

    findings: Sequence[Finding]
    fastest: Sequence[Point]
    kernels: Mapping[str, Kernel]
    ladder: Sequence[Kernel]
    operation: Operation
    sources: Mapping[str, Path]

    def common(self) -> Point | None:
        """The point that is among the best everywhere, where there is one kernel and one such point."""
        first, *others = self.findings
        shared = [point for point in first.best if all(point in other.best for other in others)]
        if len(self.kernels) > 1 or not shared:
            return None
        return next((point for point in shared if self._is_default(point)), shared[0])

    def _is_default(self, point: Point) -> bool:
        kernel = self.kernels[point.kernel]
        return dict(point.params) == dict(kernel.parameters) and point.block == kernel.launch.block

    def _read(self, text: str, path: Path) -> KernelFile:
        return read_kernels(text, path, shipped_operation, self.operation)

    def _reader(self, path: Path) -> Callable[[str], KernelFile]:
        return lambda text: self._read(text, path)

    def defaults(self, point: Point) -> dict[Path, str]:
        """The kernel's file with the point as its default."""
        path = self.sources[point.kernel]
        source = _text_of(path)
        kernel = self._in_file(source, path, point.kernel)
        return {path: with_defaults(source, kernel, point, self._reader(path))}

    def _in_file(self, source: str, path: Path, name: str) -> Kernel:
        """A kernel as its file says it, without what the command line adds."""
        return next(kernel for kernel in self._read(source, path).kernels if kernel.id == name)

    def chooser(self, into: Path | None) -> dict[Path, str]:
        """Kernel files with an id for every point that is chosen somewhere, and the file that chooses."""
        dimensions = self.operation.dimensions
        kinds = _kinds(self.findings)
        ruled = {key: self._rules(held) for key, held in kinds.items()}
        names: dict[Point, str] = {}
        for rule in (rule for rules in ruled.values() for rule in rules):
            names.setdefault(rule.target, self._name(rule.target, names))
        texts = self._with_names(names)
        chosen = {name: self._chosen(point, name) for point, name in names.items()}
        first, *further = kinds
        # Devices that nobody measured follow the first that somebody did: its rules are the last.
        parts = [
            ChooserPart(
                " and ".join(dict.fromkeys(finding.device.name for finding in kinds[key])),
                "" if key == first else _condition(key),
                [Rule(rule.conditions, names[rule.target], rule.samples) for rule in ruled[key]],
            )
            for key in (*further, first)
        ]
        options = next(iter(chosen.values())).kernel.options
        fallback = {**{point: names.get(point, point.kernel) for point in self.fastest}, **names}
        others = [
            self._chosen(point, name)
            for point, name in fallback.items()
            if (point in names or self._is_default(point)) and self.kernels[point.kernel].options == options
        ]
        source = self.sources[next(iter(names)).kernel]
        target = into or source.with_name(CHOOSER.format(self._stem(source)))
        text = (
            with_choices(_text_of(into), parts, chosen, dimensions, others)
            if into
            else chooser_text(parts, chosen, dimensions, others)
        )
        made = self._read(text, target).kernels[0]
        read = [kernel for file, source in texts.items() for kernel in self._read(source, file).kernels]
        check_choices(made, [*read, *self.ladder])
        return {**texts, target: text}

    def _rules(self, findings: Sequence[Finding]) -> list[Rule[Point]]:
        """Rules for devices that nothing a header can say tells apart."""
        best: dict[tuple[tuple[str, int], ...], tuple[Point, ...]] = {}
        for finding in findings:
            place = tuple(finding.sizes.items())
            before = best.get(place, finding.best)
            # Where the devices have no best point in common, that of the first holds.
            best[place] = tuple(point for point in before if point in finding.best) or before
        samples = [Sample(dict(place), points) for place, points in best.items()]
        points = dict.fromkeys(point for sample in samples for point in sample.targets)
        of_size = [self._chosen(point, "").of_size(self.operation.dimensions) for point in points]
        return rules_of(samples, list(dict.fromkeys(text for texts in of_size for text in texts)))

    def _chosen(self, point: Point, name: str) -> Chosen:
        return Chosen(name, self.kernels[point.kernel], dict(point.params), point.block)

    def _with_names(self, names: Mapping[Point, str]) -> dict[Path, str]:
        """Kernel files in which every point has its name."""
        texts: dict[Path, str] = {}
        for kernel_id in dict.fromkeys(point.kernel for point in names):
            path = self.sources[kernel_id]
            source = texts.get(path) or _text_of(path)
            new = [
                Variant(name, point)
                for point, name in names.items()
                if point.kernel == kernel_id and name != kernel_id
            ]
            kernel = self._in_file(source, path, kernel_id)
            texts[path] = with_variants(source, kernel, new, self._reader(path)) if new else source
        return texts

    def _stem(self, path: Path) -> str:
        return path.stem if len(self.kernels) == 1 else self.operation.name

    def _name(self, point: Point, taken: Mapping[Point, str]) -> str:
        """The id of a point: its kernel's where it is the default, else with the values that differ."""
        if self._is_default(point):
            return point.kernel
        default = self.kernels[point.kernel]
        words = [
            f"{name.lower()}{value}".replace("-", "m")
            for name, value in point.params
            if value != default.parameters[name]
        ]
        if point.block != default.launch.block and not default.launches:
            words.append(
                "block"
                + "x".join(str(extent) for extent in point.block).removesuffix("x1").removesuffix("x1")
            )
        wanted = "_".join((point.kernel, *words))
        ids = {*taken.values(), *(kernel.id for kernel in self.ladder)}
        return next(name for name in (wanted, *(f"{wanted}_{n}" for n in range(2, 1000))) if name not in ids)


def found_by(
    runs: Sequence[Run], kernels: Mapping[str, Kernel], ladder: Ladder, sources: Mapping[str, Path]
) -> Found:
    """What runs found best among some kernels."""
    return Found(
        [finding for run in runs for finding in findings_of(run, kernels)],
        fastest_first(runs, kernels),
        kernels,
        ladder.kernels,
        ladder.operation,
        sources,
    )


def write_found(
    found: Found, *, into: Path | None = None, force: bool, only_show: bool = False
) -> list[Path]:
    """Put the best point into the kernel's header, or write a kernel that chooses by size.

    Args:
        found: What was found.
        into: A file that chooses already, to get these choices; None for one beside the kernels.
        force: Whether an existing chooser may be replaced.
        only_show: Whether to show the differences and write nothing.

    Returns:
        The files that were written.

    Raises:
        InputError: A header cannot be edited so, or a file cannot be written; nothing was written then.
    """
    if not found.findings:
        tell("Nothing is written: no point gave a right result.")
        return []
    if not all(finding.timed for finding in found.findings):
        tell("Not everything was timed: some of what is written is the best by its bound only.")
    common = None if into else found.common()
    texts = found.defaults(common) if common else found.chooser(into)
    changed = {path: text for path, text in texts.items() if text != _text_of(path)}
    for path, text in changed.items():
        say_lines("".join(_difference(path, _text_of(path), text)).rstrip("\n"))
    if not changed:
        tell("The headers say so already: nothing is written.")
    if only_show:
        return []
    for path in changed:
        check_writable(path, force or path == into or path in found.sources.values())
    for path, text in changed.items():
        write_file(path, text)
    return [*changed]


def _text_of(path: Path) -> str:
    return read_input(path, "utf-8") if path.exists() else ""


def _difference(path: Path, before: str, after: str) -> list[str]:
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(difflib.unified_diff(*lines, str(path), str(path), n=2))


def _kinds(findings: Sequence[Finding]) -> dict[tuple[int, int], list[Finding]]:
    """Findings by what a header can tell devices apart by: compute capability and number of SMs."""
    found: dict[tuple[int, int], list[Finding]] = {}
    for finding in findings:
        found.setdefault(_key(finding.device), []).append(finding)
    return found


def _key(device: Device) -> tuple[int, int]:
    major, minor = device.capability
    return 10 * major + minor, device.sm_count


def _condition(key: tuple[int, int]) -> str:
    return f"arch == {key[0]} and sm_count == {key[1]}"
