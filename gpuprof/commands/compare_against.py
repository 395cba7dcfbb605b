# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compare the working tree with a revision of its repository: both versions measured in turns.

The repository may be anybody's: its objects are read, and nothing of its configuration runs.
"""

import io
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from gpuprof import signals
from gpuprof.commands.compare_runs import show
from gpuprof.commands.gating import read_gates
from gpuprof.commands.output import RUNS, Outputs, print_written
from gpuprof.commands.profile import exit_code
from gpuprof.commands.progress import watch
from gpuprof.commands.texts import preprocessing_of, selected
from gpuprof.console import tell
from gpuprof.errors import PATH_ERRORS, ExitCode, InputError, ToolError
from gpuprof.files import check_writable
from gpuprof.kernels.paths import ladder_of
from gpuprof.kernels.preprocessing import Preprocessing
from gpuprof.measure.request import Request, Selection
from gpuprof.measure.run import measure_in_turns
from gpuprof.options import Given, SelectOptions
from gpuprof.records import replace
from gpuprof.store import ResultsFile
from gpuprof.text import KERNEL_ENDINGS

#: Longest that git may take.
_GIT_TIMEOUT_S = 120.0
#: Files of one version, and their bytes, that are no longer a folder of kernels.
_MOST_FILES = 20_000
_MOST_BYTES = 256 << 20
_NOT_IN_ONE = "--against needs a git repository."


class Repository(Struct, frozen=True):
    """The git repository that kernels are in."""

    root: Path
    paths: tuple[Path, ...]

    @classmethod
    def around(cls, wanted: Sequence[Path]) -> "Repository":
        if not wanted:
            raise InputError(
                "There is nothing to measure.", fix="Name a folder or .cu files after --against REVISION."
            )
        roots, paths = set(), []
        for path in wanted:
            if not path.exists():
                raise InputError(
                    f"There is no {path}.", fix="Name a folder with operation.toml, or kernel files."
                )
            resolved = path.resolve()
            folder = resolved if resolved.is_dir() else resolved.parent
            root = Path(_text(_git(folder, "rev-parse", "--show-toplevel"))).resolve()
            if not resolved.is_relative_to(root):
                raise InputError(f"{path} is not in the working tree {root} of its repository.")
            roots.add(root)
            paths.append(resolved.relative_to(root))
        if len(roots) > 1:
            raise InputError(
                "These paths are in several git repositories.", fix="Compare kernels of one repository."
            )
        return cls(roots.pop(), tuple(paths))

    def commit(self, revision: str) -> str:
        try:
            arguments = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
            return _text(_git(self.root, "rev-parse", *arguments))
        except InputError as error:
            raise InputError(
                f"{revision!r} names no commit of {self.root}.",
                fix="Name a commit, branch or tag; a shallow clone may have to fetch it first.",
            ) from error

    @contextmanager
    def version(self, commit: str, folders: Iterable[Path]) -> Iterator[Path]:
        """The kernels' folders as a commit has them, for the length of a comparison.

        Files are as git keeps them: no filter runs. A link stands as the file that it names in the same
        version; any other is left out. The repository knows nothing of it: a kill leaves nothing behind.
        """
        kernels = (path.parent if path.suffix in KERNEL_ENDINGS else path for path in self.paths)
        wanted = [PurePosixPath(path) for path in (*kernels, *folders)]
        with tempfile.TemporaryDirectory(prefix="gpuprof-base-") as scratch:
            try:
                for path, content in _files(self.root, commit, wanted).items():
                    place = Path(scratch) / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content)
            except PATH_ERRORS as error:
                raise InputError(f"That version cannot be written here: {error}.") from error
            yield Path(scratch)


def _files(root: Path, commit: str, wanted: Sequence[PurePosixPath]) -> dict[PurePosixPath, bytes]:
    identities: dict[PurePosixPath, str] = {}
    links = set()
    total = 0
    for entry in filter(None, _git(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0")):
        head, _, name = entry.partition(b"\t")
        mode, kind, identity, size = head.decode().split()
        path = PurePosixPath(os.fsdecode(name))
        is_within = (
            not path.is_absolute() and ".." not in path.parts and any(map(path.is_relative_to, wanted))
        )
        if kind == "blob" and is_within:
            identities[path] = identity
            total += int(size) if size.isdecimal() else 0
            if stat.S_ISLNK(int(mode, 8)):
                links.add(path)
    if len(identities) > _MOST_FILES or total > _MOST_BYTES:
        raise InputError(
            f"That version of these folders holds more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB.",
            fix="Name the folder of the kernels alone.",
        )
    contents = _contents(root, sorted(set(identities.values())))
    files = {path: contents[identity] for path, identity in identities.items() if path not in links}
    for path in links:
        named = PurePosixPath(normpath(path.parent / os.fsdecode(contents[identities[path]])))
        if named in identities and named not in links:
            files[path] = contents[identities[named]]
    return files


def _contents(root: Path, identities: Sequence[str]) -> dict[str, bytes]:
    """Objects by their names."""
    answers = io.BytesIO(_git(root, "cat-file", "--batch", given="".join(f"{one}\n" for one in identities)))
    contents = {}
    for identity in identities:
        _, kind, *size = answers.readline().split()
        if kind != b"blob":
            raise InputError(
                "The repository lacks a file of that version.",
                fix="Fetch it first: a partial clone has not all.",
            )
        contents[identity] = answers.read(int(size[0]) + 1)[:-1]
    return contents


def _text(output: bytes) -> str:
    return os.fsdecode(output).strip("\n")


def _git(where: Path, *arguments: str, given: str = "") -> bytes:
    """What a git command that reads objects prints, `given` that on its standard input.

    What the repository's own configuration would have it run is off.
    """
    off = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.sshCommand=false", "core.pager=cat")
    settings = [text for setting in off for text in ("-c", setting)]
    # Within a hook git says where its repository is, which need not be that of the kernels.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Objects that a partial clone lacks are not fetched: by which program is the repository's to say.
    own = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(where), "--no-pager", "--no-replace-objects", *settings, *arguments],
            input=given.encode(),
            capture_output=True,
            timeout=_GIT_TIMEOUT_S,
            env={**kept, **own},
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolError("--against needs git, which was not found.", fix="Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"git {arguments[0]} does not end.", fix="Look at the repository.") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"status {done.returncode}"
        raise InputError(f"git {arguments[0]} failed: {why}.", fix=_NOT_IN_ONE)
    return done.stdout


def compare_against(given: Given, paths: Sequence[Path]) -> ExitCode:
    """Measure kernels as they are here and as they were at a revision, in turns, and compare.

    Both versions are compiled and measured by this gpuprof: only kernels differ, their headers and what they
    include from the repository included.
    """
    from gpuprof.comparison.compared import compare_runs

    outputs = Outputs.wanted(given.output)
    gates = read_gates(given.gate.fail_on, with_base=True)
    select, revision = given.select, str(given.select.against)
    folder = given.output.output or RUNS / f"compare-{datetime.now():%Y%m%d-%H%M%S}"
    base, new = folder / "base.json", folder / "new.json"
    signals.postpone()
    repository = Repository.around(tuple(paths))
    # The page stands beside the results files unless it is named.
    if outputs.printed != "html":
        outputs.files = {"html": folder / "comparison.html", **outputs.files}
    outputs.check([base, new])
    for file in (base, new):
        check_writable(file, outputs.force)
    commit = repository.commit(revision)
    command = preprocessing_of(select)
    folders = _typed_within(repository, command)
    with (
        repository.version(commit, folders.values()) as checkout,
        watch(quiet=given.output.quiet) as progress,
    ):
        runs = measure_in_turns(
            _requests(repository, select, command, checkout, revision),
            given.run,
            progress,
            argv=tuple(sys.argv[1:]),
            keep=[partial(ResultsFile, file, replace=outputs.force) for file in (base, new)],
            names=(revision, "working tree"),
        )
    name = commit[:9] if commit.startswith(revision) else f"{revision} ({commit[:9]})"
    compared = compare_runs(*runs, base_name=name, new_name="working tree", force=True)
    status = show([compared], gates, outputs, given.gate, quiet=given.output.quiet)
    print_written(base, new, aside=bool(outputs.printed))
    if not runs[1].complete:
        tell("Stopped early: the files hold what was measured until then.")
        return ExitCode.INTERRUPTED
    return exit_code(runs[1]) or status


def _requests(
    repository: Repository, select: SelectOptions, command: Preprocessing, checkout: Path, revision: str
) -> tuple[Request, Request]:
    """What to measure of the base, and of the working tree."""
    here = [repository.root / path for path in repository.paths]
    there = [checkout / path for path in repository.paths]
    for path, old in zip(repository.paths, there, strict=True):
        if not old.exists():
            raise InputError(
                f"There is no {path} at {revision}.", fix="Name what both versions have, or another revision."
            )
    new = selected(ladder_of(here, command=command), select, command)
    folders = _typed_within(repository, command)
    old_folders = (checkout / folders[path] if path in folders else path for path in command.include)
    old_command = replace(command, include=tuple(old_folders))
    try:
        base_ladder = ladder_of(there, command=old_command)
    except InputError as error:  # told by the names that they have in the repository
        what, fix = (text.replace(f"{checkout}{os.sep}", "") for text in (error.what, error.fix))
        raise InputError(f"At {revision}: {what}", fix=fix) from error
    if base_ladder.operation.name != new.operation.name:
        raise InputError(
            f"At {revision} it is the operation {base_ladder.operation.name}, here {new.operation.name}.",
            fix="Compare versions of one operation.",
        )
    if not select.kernel:
        same_sizes = replace(select, sizes=select.sizes or new.operation.default_sizes)
        return selected(base_ladder, same_sizes, command), new
    known = {kernel.id: kernel for kernel in base_ladder.kernels}
    selections = tuple(
        Selection(
            base_ladder.of_type(known[selection.kernel.id], new.dtype),
            _known_params(selection, known),
            selection.name,
        )
        for selection in new.selections
        if selection.kernel.id in known
    )
    if not selections:
        raise InputError(f"None of these kernels is there at {revision}.", fix="Drop -k, or name others.")
    return replace(new, ladder=base_ladder, selections=selections), new


def _typed_within(repository: Repository, command: Preprocessing) -> Mapping[Path, Path]:
    """The folders of `-I` that are the repository's, from its root: each version has its own."""
    resolved = {path: path.resolve() for path in command.include}
    return {
        path: place.relative_to(repository.root)
        for path, place in resolved.items()
        if place.is_relative_to(repository.root)
    }


def _known_params(selection: Selection, known: Mapping[str, Any]) -> tuple[Mapping[str, int], ...]:
    """The parameters asked for, without those that the kernel did not have then."""
    parameters = known[selection.kernel.id].parameters
    found = [
        {name: value for name, value in values.items() if name in parameters} for values in selection.params
    ]
    return tuple(values for index, values in enumerate(found) if values not in found[:index])
