# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""From a kernel, a problem and a block to its launches: grids, shared memory and compile-time macros."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, groupby

from msgspec import Struct

from gpuprof.devices.device import Device
from gpuprof.errors import CaseSkipped, InputError
from gpuprof.kernels.entries import with_values
from gpuprof.kernels.header import header_end
from gpuprof.kernels.kernel import Kernel, Launch, Workspace
from gpuprof.kernels.own_names import own_names, own_types
from gpuprof.kernels.preprocessing import OWN_MACROS
from gpuprof.kernels.symbols import Argument, ModuleSymbol, argument_of, members_in, symbols_of
from gpuprof.kernels.tensor_map import TensorMap, make_tensor_map
from gpuprof.kernels.texture import Texture, make_texture
from gpuprof.problems.dtypes import ELEMENT_TYPES, of_run
from gpuprof.problems.formulas import ExpressionError, evaluate
from gpuprof.problems.problem import ArraySpec, Problem
from gpuprof.records import replace
from gpuprof.results import Choice
from gpuprof.text import Extent, format_extent, in_xyz, listed

#: So many launches of one loop are still queued, timed and executed as one.
MOST_IN_TURN = 1024
#: CUDA's limit on the threads of a block, the same on every architecture that NVRTC compiles for.
MAX_THREADS_PER_BLOCK = 1024


class OneLaunch(Struct, frozen=True):
    """One launch of a case.

    Args:
        entry: The function, values in the place of macros: `sgemm<64, 64>`.
        symbols: Variables of its module that are set before the first launch of the case.
    """

    entry: str
    arguments: tuple[Argument, ...]
    block: Extent
    grid: Extent
    dynamic_shared_bytes: int
    cooperative: bool = False
    symbols: tuple[ModuleSymbol, ...] = ()

    @property
    def threads(self) -> int:
        return math.prod(self.grid) * math.prod(self.block)


class ConfiguredCase(Struct, frozen=True):
    """A kernel, the problem that it computes, and the launches that do so."""

    kernel: Kernel
    problem: Problem
    launches: tuple[OneLaunch, ...]
    defines: tuple[tuple[str, str], ...]
    tensor_maps: tuple[TensorMap, ...] = ()
    workspace: tuple[ArraySpec, ...] = ()
    textures: tuple[Texture, ...] = ()
    params: tuple[tuple[str, int], ...] = ()

    def __hash__(self) -> int:
        return hash((self.problem, self.launches, self.defines, self.params))

    @property
    def largest(self) -> OneLaunch:
        """The launch of the most threads, the first among equals: it stands for a case that takes several."""
        return max(self.launches, key=lambda launch: launch.threads)

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))

    def at(self, problem: Problem, device: Device) -> "ConfiguredCase":
        """The same kernel with another problem; raises as `configure` does."""
        return configure(self.kernel, problem, self.launches[0].block, dict(self.params), device)


def check_block(kernel: Kernel, block: Extent) -> None:
    """Refuse a block that a kernel can never run with, whatever the problem's size."""
    if kernel.choices:
        raise InputError(
            f"{kernel.id} chooses its block itself: that of the kernel it picks for each size.",
            fix="Leave out --block for this kernel.",
        )
    if kernel.takes_several and block != kernel.block:
        raise InputError(
            f"{kernel.id} takes several launches, each with a block of its own.",
            fix="Leave out --block for this kernel.",
        )
    check_threads(block)
    if not kernel.any_block and block != kernel.block:
        raise InputError(
            f"{kernel.id} runs with block {format_extent(kernel.block)} only, not {format_extent(block)}.",
            fix="Leave out --block; a header says any_block = true where it may be chosen.",
        )


def check_threads(block: Extent) -> None:
    """Refuse a block that no kernel can run with."""
    threads = math.prod(block)
    if min(block) < 1:
        raise InputError(f"Block {format_extent(block)} is empty.", fix="Each extent is at least 1.")
    if threads > MAX_THREADS_PER_BLOCK:
        raise InputError(
            f"Block {format_extent(block)} has {threads:,} threads; a block holds at most"
            f" {MAX_THREADS_PER_BLOCK:,}.",
            fix="Choose a smaller block.",
        )


def configure(
    kernel: Kernel, problem: Problem, block: Extent, params: Mapping[str, int], device: Device
) -> ConfiguredCase:
    """Work out the launches of a case.

    Raises:
        CaseSkipped: A declared constraint, the kernel's types or the device's grid limits rule the case out.
    """
    _check_problem(kernel, problem, params)
    try:
        known = values_of(kernel, problem, params, device)
        block = _block_of(kernel, kernel.launches[0], known, block)
        shared = {**known, **_block_values(block)}
        for requirement in kernel.requirements:
            if not evaluate(requirement.condition, shared):
                raise CaseSkipped(f"{requirement.because.replace('{id}', kernel.id)}.")
        launches = tuple(
            _launch_of(launch, values, kernel, problem, block) for launch, values in _in_turn(kernel, known)
        )
        lists = {
            name: {
                field: tuple(evaluate(text, shared) for text in texts) for field, texts in spec.lists.items()
            }
            for name, spec in kernel.tensor_maps.items()
        }
        arrays = {spec.name: spec for spec in problem.arrays}
        for name, array in kernel.workspace.items():
            arrays[name] = _array_of(name, array, shared, kernel, problem, arrays)
        workspace = tuple(arrays[name] for name in kernel.workspace)
    except ExpressionError as error:
        raise _no_value(kernel, error) from error
    for launch in launches:
        _check_limits(launch, kernel, device)
    tensor_maps = tuple(
        make_tensor_map(name, spec, lists[name], arrays.__getitem__)
        for name, spec in kernel.tensor_maps.items()
    )
    textures = tuple(make_texture(name, spec, arrays[spec.array]) for name, spec in kernel.textures.items())
    macros = {"real": ELEMENT_TYPES[problem.dtype].c_type}
    if not kernel.takes_several:
        macros |= {f"BLOCK_{axis}": str(extent) for axis, extent in zip("XYZ", block, strict=True)}
    macros |= {name: str(known[name]) for name in (*kernel.integers, *kernel.derived)}
    defined = {**macros, **kernel.defines}
    launches = tuple(replace(launch, entry=with_values(launch.entry, defined)) for launch in launches)
    described = tensor_maps, workspace, textures, tuple(params.items())
    if kernel.built is not None:
        return ConfiguredCase(kernel, problem, launches, (), *described)
    # A macro that the source never mentions would only split the compile cache.
    texts = (*kernel.headers.values(), *kernel.defines.values())
    words = macros.keys() & _words(kernel.source).union(*map(_words, texts))
    naming = [text for text in kernel.headers.values() if words & _words(text)]
    words -= own_names(kernel.source).union(*map(own_types, naming))
    words -= words.intersection(OWN_MACROS).intersection(chain.from_iterable(map(own_names, naming)))
    defines = tuple((name, value) for name, value in macros.items() if name in words)
    defines += tuple(kernel.defines.items())
    return ConfiguredCase(kernel, problem, launches, defines, *described)


def _block_values(block: Extent) -> dict[str, int]:
    x, y, z = block
    return {"block_x": x, "block_y": y, "block_z": z, "threads": x * y * z}


def _block_of(kernel: Kernel, launch: Launch, known: Mapping[str, int], asked: Extent) -> Extent:
    """What its formulas come to, or the block that is asked for where it may be any."""
    return asked if kernel.any_block else in_xyz((evaluate(text, known) for text in launch.block), 1)


def _in_turn(kernel: Kernel, known: Mapping[str, int]) -> Iterator[tuple[Launch, Mapping[str, int]]]:
    """The launches in order, each with what its formulas may name: the iteration of its loop too."""
    for repeat, body in groupby(kernel.launches, lambda launch: launch.repeat):
        count, launches = evaluate(repeat, known), tuple(body)
        total = count * len(launches)
        if not 1 <= total <= MOST_IN_TURN:
            raise CaseSkipped(f"{kernel.id} would take {total} launches in a loop, not 1 to {MOST_IN_TURN}.")
        for iteration in range(count):
            for launch in launches:
                yield launch, {"iteration": iteration, **known}


def _launch_of(
    launch: Launch, known: Mapping[str, int], kernel: Kernel, problem: Problem, asked: Extent
) -> OneLaunch:
    """One launch of a case, for which this block is asked."""
    block = _block_of(kernel, launch, known, asked)
    values = {**known, **_block_values(block)}
    names = {*problem.operation.argument_names, *kernel.tensor_maps, *kernel.textures, *kernel.workspace}
    arrays = {*problem.operation.arrays, *kernel.workspace}
    return OneLaunch(
        entry=launch.entry,
        arguments=tuple(argument_of(text, names, arrays, values) for text in launch.arguments),
        block=block,
        grid=in_xyz((evaluate(text, values) for text in launch.grid), 1),
        dynamic_shared_bytes=evaluate(launch.dynamic_shared_bytes, values),
        cooperative=launch.cooperative,
        symbols=symbols_of(kernel, problem, known),
    )


def _array_of(
    name: str,
    array: Workspace,
    values: Mapping[str, int],
    kernel: Kernel,
    problem: Problem,
    others: Mapping[str, ArraySpec],
) -> ArraySpec:
    shape = tuple(evaluate(text, values) for text in array.shape)
    if min(shape) < 1:
        raise CaseSkipped(f"The workspace {name} of {kernel.id} would have the shape {shape}.")
    made = ArraySpec(name, shape, of_run(array.dtype, problem.dtype), "in" if array.addresses else "out")
    if not array.addresses:
        return made
    each = made.elements // len(array.addresses)
    held = [others[other] for other in array.addresses]
    if each * len(held) != made.elements or any(other.elements % each for other in held):
        raise CaseSkipped(
            f"{name} of {kernel.id} has {made.elements} elements, which are no addresses of equal parts of"
            f" {', '.join(array.addresses)}."
        )
    steps = [(other.name, part * (other.nbytes // each)) for other in held for part in range(each)]
    return replace(made, addresses=tuple(steps))


def _check_limits(launch: OneLaunch, kernel: Kernel, device: Device) -> None:
    which = f" of {launch.entry}" if kernel.takes_several else ""
    threads = math.prod(launch.block)
    if min(launch.block) < 1 or threads > device.max_threads_per_block:
        raise CaseSkipped(
            f"A block{which} would have {format_extent(launch.block)} threads; it holds 1 to"
            f" {device.max_threads_per_block}."
        )
    for axis, extent, limit in zip("xyz", launch.grid, device.max_grid, strict=True):
        if not 1 <= extent <= limit:
            raise CaseSkipped(
                f"The grid{which} needs {extent} blocks in {axis}; the device launches 1 to {limit}.",
                fix="Choose a block that covers more in that direction."
                if extent > limit
                else "Choose a size of at least a block's tile.",
            )
    if launch.dynamic_shared_bytes < 0:
        dynamic = launch.dynamic_shared_bytes
        raise CaseSkipped(f"{kernel.id} asks for {dynamic} bytes of dynamic shared memory.")


@lru_cache(maxsize=64)
def _words(source: str) -> frozenset[str]:
    """Every name in the code of a kernel file."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", source[header_end(source) :]))


def size_values(problem: Problem, device: Device) -> dict[str, int]:
    """The problem's dimensions and the device's figures, which header expressions may use by their names."""
    major, minor = device.capability
    return {
        **problem.dimensions,
        "real_bytes": problem.real_bytes,
        "sm_count": device.sm_count,
        "l2_bytes": device.l2_bytes,
        "arch": 10 * major + minor,
    }


def values_of(kernel: Kernel, problem: Problem, params: Mapping[str, int], device: Device) -> dict[str, int]:
    """What a kernel's formulas may name: sizes, the device's figures, its parameters and constants."""
    known = {**size_values(problem, device), **kernel.integers, **params}
    for name, text in kernel.derived.items():
        known[name] = evaluate(text, known)
    return known


def _check_problem(kernel: Kernel, problem: Problem, params: Mapping[str, int]) -> None:
    if problem.dtype not in kernel.dtypes:
        raise CaseSkipped(f"{kernel.id} is written for {listed(kernel.dtypes)}, not {problem.dtype}.")
    for name in params:
        if name not in kernel.parameters:
            known = ", ".join(kernel.parameters) or "none"
            raise CaseSkipped(f"{kernel.id} has no parameter {name}; those that it has: {known}.")
    for name, scalar in problem.operation.scalars.items():
        taken = (
            *members_in(kernel.arguments, problem.operation.arrays),
            *kernel.symbols.values(),
        )
        if name in taken or problem.scalars[name] == scalar.neutral:
            continue
        if scalar.neutral is None:
            what = f"{kernel.id} takes no {name}, without which {problem.operation.name} is none."
            raise CaseSkipped(what, fix=f"Where its function takes it, name {name} in arguments.")
        raise CaseSkipped(f"{kernel.id} takes no {name}: it computes with {name} = {scalar.neutral:g} only.")


def _no_value(kernel: Kernel, error: ExpressionError) -> CaseSkipped:
    return CaseSkipped(f"The header of {kernel.id} cannot be evaluated for this size: {error}.")


def choose(kernel: Kernel, alternatives: Iterable[Kernel], problem: Problem, device: Device) -> Kernel:
    """The kernel itself, or the first of its choices whose condition holds and which can run there.

    Neighbours of one condition that say what is to be least come in the order of that.

    Raises:
        CaseSkipped: There is none.
    """
    if not kernel.choices:
        return kernel
    values = size_values(problem, device)
    refusal: CaseSkipped | None = None
    others = {other.id: other for other in alternatives}

    def cost(choice: Choice) -> float:
        try:
            return evaluate(choice.least, values_of(others[choice.kernel], problem, {}, device))
        except ExpressionError:  # as only of one that cannot run
            return math.inf

    for (when, ranked), those in groupby(kernel.choices, key=lambda one: (one.when, bool(one.least))):
        try:
            holds = evaluate(when, values)
        except ExpressionError as error:
            raise _no_value(kernel, error) from error
        if not holds:
            continue
        for choice in sorted(those, key=cost) if ranked else those:
            chosen = others[choice.kernel]
            try:
                configure(chosen, problem, chosen.block, {}, device)
            except CaseSkipped as refused:
                refusal = refused
            else:
                return chosen
    raise refusal or CaseSkipped(f"{kernel.id} names no kernel for this size on this device.")
