# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run that was stopped goes on: what was asked for, whether it is the same again, and what is done of it.

A run is continued only where it would have gone on by itself: the same request, sources, device, versions.
Anything else would put figures side by side that do not belong together.
"""

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from gpuprof import __version__
from gpuprof.devices.device import Device
from gpuprof.errors import InputError
from gpuprof.kernels.kernel import Kernel
from gpuprof.measure.case import Case
from gpuprof.measure.request import Request
from gpuprof.operation import Operation
from gpuprof.options import RunOptions, decisive
from gpuprof.records import replace
from gpuprof.results import KernelRecord, Measurement, Run, size_label
from gpuprof.text import cut, format_extent

#: Differences that a message names, and characters of a value that it quotes.
_MOST_NAMED = 4
_MOST_QUOTED = 60
#: Of an environment, what is known only once the counters are read; whoever adds further ones looks at it.
_COUNTED_WITH = "ncu"
#: Where a run of its own belongs, whatever differs.
_ANEW = "Measure what has changed in a run of its own: name another place with -o."


def asked(request: Request, options: RunOptions) -> dict[str, str]:
    """What decides a run's figures, by the option that says it; time limits do not, and may change."""
    return {
        "kernel": " ".join(_named(request)),
        "sizes": ",".join(map(size_label, request.sizes)),
        "block": ",".join(map(format_extent, request.blocks)),
        "dtype": request.dtype,
        "set": " ".join(f"{name}={value!r}" for name, value in sorted(request.scalars.items())),
        "reference": " ".join(reference.id for reference in request.references),
        **decisive(options),
        **({"arrays": _digest(Path(options.given_arrays))} if options.given_arrays else {}),
    }


def _named(request: Request) -> Iterator[str]:
    for selection in request.selections:
        for params in selection.params:
            assigned = ",".join(f"{name}={value}" for name, value in sorted(params.items()))
            yield f"{selection.kernel.id}:{assigned}" if assigned else selection.kernel.id


def _digest(folder: Path) -> str:
    """What tells the arrays that a program gave from any others."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            digest.update(f"{path.name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return digest.hexdigest()


def check_same_request(before: Run, request: Request, options: RunOptions, path: Path) -> None:
    """Refuse a run that was asked for otherwise, or by another version of gpuprof."""
    operations = {request.operation.name: request.operation}
    found = _requests(before, __version__, asked(request, options), operations, request.kernels)
    _refuse(before, path, list(found))


def continued(before: Run, now: Run, path: Path) -> Run:
    """A run that was stopped, as it goes on.

    Returns:
        The run, with those of its cases that need not be measured again, in the order of the plan.
    """
    _refuse(before, path, list(differences(before, now)))
    kept = sorted(
        (case for case in before.cases if not case.lost and case.planned is not None),
        key=lambda case: case.planned or 0,
    )
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(
        before,
        complete=False,
        kernels=now.kernels,
        cases=tuple(kept),
        resumed_utc=(*before.resumed_utc, when),
    )


def differences(before: Run, now: Run) -> Iterator[str]:
    """What keeps a run from going on as another one, in clauses."""
    yield from _requests(before, now.tool.version, now.asked, now.operations, now.kernels)
    yield from _surroundings(before, now)


def by_place(held: Sequence[Measurement], cases: Sequence[Case], path: Path) -> dict[int, Measurement]:
    """The cases that a file holds, by their places in the plan."""
    found = {}
    for measurement in held:
        place = measurement.planned
        assert place is not None
        planned = cases[place] if place < len(cases) else None
        if planned is None or (planned.name, planned.problem.record().key) != (
            measurement.kernel,
            measurement.problem.key,
        ):
            raise InputError(
                f"{path} holds {measurement.kernel} at size {measurement.problem.label} where another case is"
                " planned.",
                fix=_ANEW,
            )
        found[place] = measurement
    return found


def _refuse(before: Run, path: Path, differences: list[str]) -> None:
    if not differences:
        return
    named = "; ".join(differences[:_MOST_NAMED])
    rest = len(differences) - _MOST_NAMED
    more = f"; and {rest} more" if rest > 0 else ""
    begun = f"It was begun with: gpuprof {shlex.join(before.argv)}\n  " if before.argv else ""
    raise InputError(
        f"The run in {path} cannot be resumed, it differs: {named}{more}.", fix=f"{begun}{_ANEW}"
    )


def _requests(
    before: Run,
    version: str,
    wanted: Mapping[str, str],
    operations: Mapping[str, Operation],
    kernels: Iterable[Kernel | KernelRecord],
) -> Iterator[str]:
    """Differences in what is known before a device is opened."""
    if before.tool.version != version:
        yield f"gpuprof {before.tool.version} wrote it, this is {version}"
    if before.operations.keys() != operations.keys():
        yield f"it measures {', '.join(before.operations)}, not {', '.join(operations)}"
        return
    if before.asked:
        yield from _unlike(before.asked, wanted, "--")
    else:
        yield "it does not say what was asked for"
    if before.operations != operations:
        yield f"what {', '.join(operations)} declares has changed"
    sources = {kernel.id: kernel.source_hash for kernel in kernels}
    for record in before.kernels:
        if sources.get(record.id, record.source_hash) != record.source_hash:
            yield f"the source of {record.id} has changed"


def _surroundings(before: Run, now: Run) -> Iterator[str]:
    if before.backend != now.backend:
        yield f"it ran on {before.backend}, now it would on {now.backend}"
    environment = {name: version for name, version in before.environment.items() if name != _COUNTED_WITH}
    yield from _unlike(environment, now.environment, "")
    if len(before.devices) != len(now.devices):
        yield f"it ran on {len(before.devices)} devices, now there are {len(now.devices)}"
        return
    for number, (old, new) in enumerate(zip(before.devices, now.devices, strict=True)):
        if before.device_label(number) != now.device_label(number):
            yield f"the device was {before.device_label(number)}, now it is {now.device_label(number)}"
        elif _fixed(old) != _fixed(new):
            keys = [key for key, value in _fixed(old).items() if _fixed(new)[key] != value]
            yield f"{new.name} differs in {', '.join(keys)}"


def _fixed(device: Device) -> dict[str, object]:
    """What of a device does not change from one opening to the next."""
    names = (name for name in device.__struct_fields__ if not name.startswith("measured_"))
    return {name: getattr(device, name) for name in names}


def _unlike(then: Mapping[str, str], now: Mapping[str, str], mark: str) -> Iterator[str]:
    for key in dict.fromkeys((*then, *now)):
        old, new = then.get(key, ""), now.get(key, "")
        if old != new:
            yield f"{mark}{key} was {_quoted(old)}, now it is {_quoted(new)}"


def _quoted(value: str) -> str:
    return cut(value, _MOST_QUOTED) or "not given"
