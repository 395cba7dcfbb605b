# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A commented kernel file to start from: a header made from the operation, and its ladder's first rung."""

import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence

from gpuprof.cuda_source.masking import masked
from gpuprof.kernels.entries import base_name
from gpuprof.kernels.header import header_end
from gpuprof.kernels.header_checks import LAUNCH_VARIABLES
from gpuprof.kernels.kernel import Kernel, Ladder, Launch
from gpuprof.kernels.preprocessing import OWN_MACROS
from gpuprof.operation import Operation
from gpuprof.problems.dtypes import ELEMENT_TYPES, OF_RUN, REAL
from gpuprof.tables import is_identifier

#: Words of C++ that are none of Python's and that a file may be called by.
_WORDS_OF_CPP = frozenset(
    (
        *("auto", "bool", "char", "const", "default", "delete", "do", "double", "enum", "explicit"),
        *("export", "extern", "float", "friend", "goto", "inline", "int", "long", "main", "mutable"),
        *("namespace", "new", "operator", "private", "protected", "public", "register", "short"),
        *("signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "typedef"),
        *("typename", "union", "unsigned", "using", "virtual", "void", "volatile"),
    )
)
_THREADS = 256


def starting_point(operation: Operation, ladder: Ladder | None, stem: str) -> str:
    """The text of a kernel file that runs as it is, or compiles where no kernel is there to start from."""
    name = _function_name(operation, stem)
    base = _simplest(ladder) if ladder else None
    if base is None:
        header, body = _header(operation, None, name, {}, stem), _skeleton(operation, name)
    else:
        functions = {base_name(entry).rpartition("::")[2] for entry in base.entries}
        renamed = {own: name for own in functions if len(functions) == 1}
        header = _header(operation, base, name, renamed, stem)
        body = _renamed(base.source[header_end(base.source) :].lstrip("\n"), renamed)
    return f"/*gpuprof\n{header}*/\n{body}"


def _simplest(ladder: Ladder) -> Kernel | None:
    """The first rung that computes the operation itself with one launch; without one, the shortest."""
    default = {name: option.default for name, option in ladder.operation.options.items()}
    usual = {"f32"} & {dtype for kernel in ladder.kernels for dtype in kernel.dtypes}
    computing = [
        kernel
        for kernel in ladder.kernels
        if not (
            kernel.choices
            or kernel.tensor_maps
            or kernel.textures
            or kernel.headers
            or usual - {*kernel.dtypes}
        )
        and {**default, **kernel.options} == default
    ]
    plain = [kernel for kernel in computing if not (kernel.takes_several or kernel.workspace)]
    by_length = sorted(computing, key=lambda kernel: len(kernel.source))
    return next(iter((*plain, *by_length)), None)


def _function_name(operation: Operation, stem: str) -> str:
    """A name that C++ takes and nothing else has, made from the file's."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    taken = _WORDS_OF_CPP.union(keyword.kwlist, OWN_MACROS, operation.argument_names, LAUNCH_VARIABLES)
    return f"kernel_{name}" if name in taken or not is_identifier(name) else name


def _header(
    operation: Operation, base: Kernel | None, name: str, renamed: Mapping[str, str], stem: str
) -> str:
    lines = list(_about(operation, base))
    if base is not None and base.takes_several:
        lines += _launches(base, renamed)
    else:
        launch = base.launches[0] if base else _launch_over(operation, name)
        instance = launch.entry[launch.entry.index("<") :] if "<" in launch.entry else ""
        if name + instance != stem:
            lines.append(f"entry = {_quoted(name + instance)} # its function")
        lines.append(f"arguments = {listed_texts(launch.arguments)}")
        lines += ["", "[launch]", *_launch(launch, base is None or base.any_block, operation)]
    lines += ["", *_parameters(base), *_rest(base)]
    # What an operation says of itself must not end the comment that the header is.
    return "\n".join(lines).replace("*/", "* /") + "\n"


def _about(operation: Operation, base: Kernel | None) -> Iterator[str]:
    """What the file is, and what the operation offers to its functions."""
    yield f"title = {_quoted(f'My {operation.name} kernel')}"
    yield f"operation = {_quoted(operation.name)}"
    yield 'idea = "" # one sentence for the report: how it goes about it'
    yield f"dtypes = {listed_texts(base.dtypes if base else ('f32',))} # what `real` may stand for: --dtype"
    for option, declared in operation.options.items():
        for value in declared.values:
            if value not in (declared.default, declared.ceiling):
                yield f"# {option} = {_quoted(value)} # instead of {declared.default}"
    yield ""
    words = "names of these, or formulas of integers" if base and base.takes_several else "names of these"
    yield f"# What a function takes, in its order: {words}."
    yield from _described(operation)


def _rest(base: Kernel | None) -> Iterator[str]:
    for key, array in (base.workspace if base else {}).items():
        yield from (
            "",
            f"[workspace.{key}] # an array of the kernel's own",
            f"shape = {listed_texts(array.shape)}",
        )
        if array.dtype != REAL:
            yield f"dtype = {_quoted(array.dtype)}"
    for requirement in base.requirements if base else ():
        yield from ("", "[[require]] # else the row is skipped, with this sentence")
        yield f"condition = {_quoted(requirement.condition)}"
        yield f"because = {_quoted(requirement.because)}"


def _launches(base: Kernel, renamed: Mapping[str, str]) -> Iterator[str]:
    """The launches of a kernel that takes several, in order."""
    for launch in base.launches:
        function, bracket, rest = launch.entry.partition("<")
        yield from ("", "[[launches]]")
        yield f"entry = {_quoted(renamed.get(function, function) + bracket + rest)}"
        yield f"arguments = {listed_texts(launch.arguments)}"
        yield f"block = {listed_texts(_shortened(launch.block))}"
        yield f"grid = {listed_texts(_shortened(launch.grid))}"
        yield from _rare(launch)


def _rare(launch: Launch) -> Iterator[str]:
    if launch.dynamic_shared_bytes != "0":
        yield f"dynamic_shared_bytes = {_quoted(launch.dynamic_shared_bytes)}"
    if launch.cooperative:
        yield "cooperative = true # all blocks are on the device at once"


def _shortened(formulas: tuple[str, str, str]) -> tuple[str, ...]:
    """Formulas in x, y and z, as many as say something."""
    last = max((index for index, text in enumerate(formulas) if text != "1"), default=0)
    return formulas[: last + 1]


def _described(operation: Operation) -> Iterator[str]:
    """A line of comment for each thing that a kernel may take."""
    several = len(operation.dimensions) > 1
    yield f"#   {', '.join(operation.dimensions)}: {'sizes' if several else 'a size'}, int"
    for name, scalar in operation.scalars.items():
        says = f": {' '.join(scalar.help.split()).rstrip('.')}" if scalar.help else ""
        yield f"#   {name}: a number, {scalar.type}, {scalar.default:g} unless set{says}"
    words = {"in": "read", "out": "written", "inout": "read and written"}
    for name, array in operation.arrays.items():
        shape = ", ".join(array.shape)
        yield f"#   {name}[{shape}]: an array of {array.dtype}, {words[array.role]}, the last index fastest"


def _parameters(base: Kernel | None) -> Iterator[str]:
    if base is None or not base.parameters:
        yield "# [parameters] # integers to tune it by, macros of the source: -k FILE.cu:TILE=8|16"
        yield "# TILE = 16"
    else:
        yield "[parameters] # integers to tune it by, macros of the source"
        yield from (f"{name} = {value}" for name, value in base.parameters.items())
    if base is not None and (base.constants or base.derived):
        yield from ("", "[constants] # macros too, which nobody may change")
        yield from (f"{name} = {value}" for name, value in base.constants.items())
        yield from (f'{name} = "{formula}"' for name, formula in base.derived.items())


def _launch(launch: Launch, any_block: bool, operation: Operation) -> Iterator[str]:
    yield f"block = [{', '.join(_shortened(launch.block))}] # threads in x, y, z"
    if any_block:
        yield "any_block = true # --block may ask for others"
    yield (
        f"grid = {listed_texts(_shortened(launch.grid))} # blocks: formulas of"
        f" {', '.join(operation.dimensions)}, block_x, parameters …"
    )
    yield from _rare(launch)


def _launch_over(operation: Operation, entry: str) -> Launch:
    """One thread for each element of the first output."""
    output = next(array for array in operation.arrays.values() if array.role != "in")
    elements = " * ".join(text if _is_plain(text) else f"({text})" for text in output.shape)
    grid = (f"cdiv({elements}, block_x)", "1", "1")
    return Launch(entry, operation.argument_names, (str(_THREADS), "1", "1"), grid)


def _renamed(code: str, names: Mapping[str, str]) -> str:
    """Code in which names stand for others, but for its comments; a header's texts are all looked at."""
    for own, name in names.items():
        parts, position = [], 0
        for match in re.finditer(rf"\b{re.escape(own)}\b", masked(code)):
            parts += [code[position : match.start()], name]
            position = match.end()
        code = "".join((*parts, code[position:]))
    return code


def _skeleton(operation: Operation, name: str) -> str:
    """A kernel that compiles and computes nothing yet."""
    output, array = next((key, one) for key, one in operation.arrays.items() if one.role != "in")
    taken = [f"int {dimension}" for dimension in operation.dimensions]
    taken += [f"{_c_type(scalar.type)} {key}" for key, scalar in operation.scalars.items()]
    for key, each in operation.arrays.items():
        const = "const " if each.role == "in" else ""
        taken.append(f"{const}{_c_type(each.dtype)} *{key}")
    types = {each.dtype for each in operation.arrays.values()} - {*OF_RUN}
    headers = sorted({ELEMENT_TYPES[dtype].header for dtype in types} - {""})
    includes = "".join(f"#include <{header}>\n" for header in headers)
    index = "(long long)blockIdx.x * blockDim.x + threadIdx.x"
    lines = [f"const long long i = {index}; // an element of {output}"]
    if all(map(_is_plain, array.shape)):
        count = " * ".join((f"(long long){array.shape[0]}", *array.shape[1:]))
        lines += [f"if (i >= {count})", "    return;", f"{output}[i] = 0; // TODO: what element i must be"]
    else:  # a formula of the header's is no C++
        count = " * ".join(f"({text})" for text in array.shape)
        lines.append(f"// TODO: {output}[i] = what element i must be, where i < {count}")
    body = "".join(f"    {line}\n" for line in lines)
    return f"{includes}__global__ void {name}({', '.join(taken)})\n{{\n{body}}}\n"


def _is_plain(formula: str) -> bool:
    """Whether a formula is a dimension or a number, which C++ reads as it stands."""
    return formula.isidentifier() or formula.isdecimal()


def _c_type(dtype: str) -> str:
    return REAL if dtype in OF_RUN else ELEMENT_TYPES[dtype].c_type


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def listed_texts(texts: Sequence[str]) -> str:
    """Texts as a list of TOML's."""
    return f"[{', '.join(map(_quoted, texts))}]"
