# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The keywords of `profile` and `tune` that their signatures leave to `**options`, typed and told."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from textwrap import fill
from types import GenericAlias, MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypedDict, TypeVar

from gpuprof.argument_types import require
from gpuprof.errors import GpuprofError, did_you_mean
from gpuprof.options import COMMANDS, keywords_of, options_of

if TYPE_CHECKING:
    from gpuprof.problems.by_value import Tolerance

P = ParamSpec("P")
R = TypeVar("R")
#: Where a function's help names them one by one.
_PLACEHOLDER = "        **options: As below.\n"
#: An option in a sentence, with a value that is told as a program gives it; and what programs call otherwise.
_OPTION = re.compile(
    r"(?<![\w-])-(?:-(no-)?)?([a-zA-Z][a-z-]*)(?: (all|none|sim|\d+(?:[x,]\d+)*)(?![\w,:-]))?"
)
_OTHERWISE = {
    **{"json": "save", "output": "save", "set_": "scalars"},
    **{"kernel": "kernels", "reference": "references", "define": 'compile_options=["-D…"]'},
}
_VIEWS = (
    "Arguments that the kernel takes as a `cudaTextureObject_t`, by name, each with the fields of a header's"
    ' `[textures.NAME]`: `{"image": {"filter": "linear"}}`.'
)
_RELATIVE = (
    "Error allowed, as a share of an element's expected value; one number, or one by output. Unless this or"
    " `absolute` is given, 32 unit roundoffs of the element's value and as many of the mean value, 2 of 8-bit"
    " floats; integers must be equal."
)


class HeaderKeywords(TypedDict, total=False):
    """What a header or a declaration would say of kernels that have none."""

    relative: Annotated["Tolerance", _RELATIVE]
    absolute: Annotated["Tolerance", "Error allowed besides."]
    flops: Annotated[
        int | str | None,
        "Floating-point operations that a call needs, for a rate: a number or a formula of the sizes.",
    ]
    bytes: Annotated[int | str | None, "Fewest bytes that a call must move; every array once when None."]
    constexprs: Annotated[
        Mapping[str, Any], "Of a function of Triton: its parameters that are constants of the code, by name."
    ]
    num_warps: Annotated[int, "Of a function of Triton: warps of a block; Triton's default when left out."]
    num_stages: Annotated[int, "Likewise: stages of its software pipelines."]
    num_ctas: Annotated[int, "Likewise: blocks of a program, which are a cluster."]
    maxnreg: Annotated[int, "Likewise: registers that a thread may have."]
    entry: Annotated[str, "Name of the function; the file's own name, or its only kernel, when empty."]
    arguments: Annotated[
        Sequence[str],
        'With `grid`: what the kernel takes, in order, as headers say it: `["{x, n}", "y"]`; else all.',
    ]
    dynamic_shared_bytes: Annotated[
        int | str | Callable[[Mapping[str, int]], int | str],
        "Dynamic shared memory of one block: a number, a formula or a function.",
    ]
    cooperative: Annotated[bool, "Whether blocks wait for each other, and all must be on the device at once."]
    compile_options: Annotated[Sequence[str], "Options for the compiler besides gpuprof's own."]
    include: Annotated[str | Path | Sequence[str | Path], "Folders of headers that the kernels include."]
    textures: Annotated[Mapping[str, Mapping[str, Any]] | None, _VIEWS]
    surfaces: Annotated[
        Mapping[str, Mapping[str, Any]] | None,
        'Those that it takes as a `cudaSurfaceObject_t`, likewise: `{"out": {}}`.',
    ]


# The table of options as types, made by `python docs/update.py`.
# keywords: begin


class TuneKeywords(TypedDict, total=False):
    """How `tune` runs."""

    device: str | int | Sequence[str | int]
    cluster: str | None
    arch: str | None
    seed: int
    timeout_s: float
    compile_timeout_s: float
    seconds_per_case: float
    sim_blocks: str | int | None
    flush: str
    poison_inout: bool
    explain: bool
    rounds: int


class RunKeywords(TuneKeywords, total=False):
    """How `profile` runs."""

    lines: bool
    check_compiler: bool
    labels: Mapping[str, str] | None


# keywords: end


class ProfileKeywords(RunKeywords, HeaderKeywords, total=False):
    """What `profile` takes besides what its signature names."""


@contextmanager
def _in_keywords() -> Iterator[None]:
    """Let errors name keywords where the command line has options."""
    try:
        yield
    except GpuprofError as error:
        error.what, error.fix = (_OPTION.sub(_keyword, text) for text in (error.what, error.fix))
        error.args = (f"{error.what} {error.fix}".strip(),)
        raise


def public(function: Callable[P, R], further: Mapping[str, Any] = MappingProxyType({})) -> Callable[P, R]:
    """A function for programs: its arguments are what its signature says, and errors name keywords.

    `further` has the types of its `**options`.
    """
    signature = inspect.signature(function)
    several = inspect.Parameter.VAR_POSITIONAL
    kinds = {
        name: GenericAlias(tuple, (one.annotation, ...)) if one.kind is several else one.annotation
        for name, one in signature.parameters.items()
        if one.annotation is not one.empty
    }

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {**signature.bind(*args, **kwargs).arguments}
        given |= given.pop("options", {})
        with _in_keywords():
            for name, value in given.items():
                require(name, value, kinds.get(name, further.get(name, Any)))
            return function(*args, **kwargs)

    return call


def _keyword(option: re.Match[str]) -> str:
    no, name, value = option.groups()
    rows = (row for command in COMMANDS for row in options_of(command).values())
    row = next((row for row in rows if f"--{name}" == row.long or f"-{name}" == row.short), None)
    if row is None:
        return option[0]
    keyword = _OTHERWISE.get(row.name, row.name)
    if row.kind is bool:
        value = str(not no)
    elif value and "x" in value:
        value = str([tuple(map(int, one.split("x"))) for one in value.split(",")])
    elif value and not value.isdecimal():
        value = f'"{value}"'
    return f"{keyword}={value}" if value else keyword


def takes_options(command: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function for programs: what its `**options` may be stands in its signature and its help.

    It refuses any other keyword with a TypeError, as Python does, and names the nearest.
    """
    said = HeaderKeywords.__annotations__ if command == "profile" else {}
    told = {name: kind.__metadata__[0] for name, kind in said.items()}
    told |= {name: row.told or row.help for name, row in keywords_of(command).items()}
    added = {name: (kind.__origin__, None) for name, kind in said.items()}
    added |= {name: (row.given or row.kind, row.default) for name, row in keywords_of(command).items()}

    def made(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        known = [*(parameter.name for parameter in own), *added]
        checked = public(function, {name: kind for name, (kind, _) in added.items()})

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name, value in [*kwargs.items()]:
                if name not in known:
                    meant = _OTHERWISE.get(name, _OTHERWISE.get(f"{name}_", name)).partition("=")
                    why = did_you_mean(meant[0], known, f"It takes {', '.join(known)}.", most=1)
                    why = why.replace(meant[0], "".join(meant))
                    raise TypeError(f"{command}() takes no keyword {name!r}. {why}")
                if value is None and name in added:
                    del kwargs[name]
            return checked(*args, **kwargs)

        texts = (
            fill(f"{name}: {text}", 106, initial_indent=" " * 8, subsequent_indent=" " * 12)
            for name, text in told.items()
        )
        call.__doc__ = (function.__doc__ or "").replace(_PLACEHOLDER, "\n".join((*texts, "")))
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in added.items()
        ]
        call.__signature__ = signature.replace(parameters=own + named)  # type: ignore[attr-defined]
        return call

    return made
