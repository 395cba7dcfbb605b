# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One way to compute an operation: a kernel with its header and source, as a value that can travel.

A ladder is an operation with kernels that compute it: those of a folder, or of one file.
"""

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct, field

from gpuprof.errors import InputError, did_you_mean
from gpuprof.kernels.candidates import Candidates
from gpuprof.kernels.shipped import shipped_names
from gpuprof.kernels.tensor_map import TensorMapSpec
from gpuprof.kernels.texture import TextureSpec
from gpuprof.operation import Operation
from gpuprof.problems.formulas import evaluate
from gpuprof.records import replace
from gpuprof.results import Choice, Direction, KernelRecord, PublishedFigure
from gpuprof.text import Extent, in_xyz


class Requirement(Struct, frozen=True):
    """A condition on size, block or parameters, and the sentence shown when it does not hold."""

    condition: str
    because: str


class Launch(Struct, frozen=True):
    """One launch of a kernel.

    Args:
        entry: Its function: a name, or an instance of a template such as `sgemm<BM, BN>`, in which parameters
            and macros stand for their values.
        arguments: What it takes, in order: names of the operation's, of tensor maps and of workspace arrays,
            or formulas of integers.
        block: Formulas of the kernel's own integers.
        repeat: How often it is launched; neighbours that say the same are launched in turn, as in one loop.
    """

    entry: str
    arguments: tuple[str, ...]
    block: tuple[str, str, str] = ("1", "1", "1")
    grid: tuple[str, str, str] = ("1", "1", "1")
    dynamic_shared_bytes: str = "0"
    cooperative: bool = False
    repeat: str = "1"


class Workspace(Struct, frozen=True):
    """An array that belongs to the kernel and not to the operation: what one launch leaves for the next.

    Nobody initialises it, unless it holds `addresses`: of these arrays, of each as many, evenly spaced.
    """

    shape: tuple[str, ...]
    dtype: str
    addresses: tuple[str, ...] = ()


class Study(Struct, frozen=True):
    """Where a kernel was published."""

    name: str = ""
    citation: str = ""
    url: str = ""


class Built(Struct, frozen=True):
    """What a compiler has made of a kernel already, in the place of a source that NVRTC compiles.

    Args:
        ptx: Empty where only machine code is known.
        cubin: Machine code of one architecture; empty where it is to be made of the PTX.
        by: The compiler that made it of the kernel's source, with its version; empty where that is not known.
        error: Why that compiler made nothing, as a sentence.
    """

    ptx: str = ""
    cubin: bytes = b""
    by: str = ""
    error: str = ""


class Kernel(Struct, frozen=True):
    """One kernel: what its file says of it, and the file's text.

    Args:
        options: The variant of the operation, where it is not the default: `layout = "col"`.
        launches: In order; none with choices.
        any_block: Whether its one launch takes other blocks than its own.
        constants: Integers that its source and its launch share and that nobody may change; macros too.
        derived: Constants that follow from the problem and those before them, each with its formula.
        defines: Macros besides those, with their text.
        moves: What the step to this kernel does to counters and resources, for the same problem.
        shape_of: Id of the rung of which it is another shape: it runs when it is named or chosen.
        choices: The kernels of which it runs the first whose condition holds; empty for a kernel with code of
            its own. With choices, launches and types are empty.
        symbols: Variables of its module that the host would set, each with an array, `&` and one, a scalar or
            a formula.
        poison_inout: Whether an array that it must not read, though it may for other scalars, is poisoned for
            it, so that reading it shows; without, it holds numbers, and the case says so.
        built: What is run where it does not come as CUDA C++; `source` is then what its lines are of.
    """

    id: str
    file_name: str
    source: str
    operation: str
    title: str
    dtypes: tuple[str, ...]
    launches: tuple[Launch, ...]
    any_block: bool = False
    rung: float = 0.0
    idea: str = ""
    change: str = ""
    bottleneck: str = ""
    study: Study = field(default_factory=Study)
    reference: str = ""
    aliases: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    parameters: Mapping[str, int] = {}
    constants: Mapping[str, int] = {}
    derived: Mapping[str, str] = {}
    requirements: tuple[Requirement, ...] = ()
    published: tuple[PublishedFigure, ...] = ()
    compile_options: tuple[str, ...] = ()
    defines: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    moves: Mapping[str, Direction] = {}
    after: str = ""
    shape_of: str = ""
    tensor_maps: Mapping[str, TensorMapSpec] = {}
    textures: Mapping[str, TextureSpec] = {}
    choices: tuple[Choice, ...] = ()
    workspace: Mapping[str, Workspace] = {}
    symbols: Mapping[str, str] = {}
    poison_inout: bool = True
    candidates: Candidates = field(default_factory=Candidates)
    built: Built | None = None

    @property
    def takes_several(self) -> bool:
        """Whether nothing but a launch knows what its block is."""
        return len(self.launches) > 1 or any(launch.repeat != "1" for launch in self.launches)

    @property
    def block(self) -> Extent:
        """That of its first launch, with its own parameters."""
        first = self.launches[0].block if self.launches else ("1",)
        return in_xyz((evaluate(text, self.integers) for text in first), 1)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What its launches take, all together."""
        return tuple(text for launch in self.launches for text in launch.arguments)

    @property
    def integers(self) -> Mapping[str, int]:
        return {**self.constants, **self.parameters}

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))

    @property
    def source_hash(self) -> str:
        """SHA-256 of the whole file, its header, included files and macros included, in hexadecimal."""
        texts = [self.source]
        for given in (self.headers, self.defines):
            texts += [text for pair in sorted(given.items()) for text in pair]
        if self.built is not None and not self.built.by:
            texts += [self.built.ptx, self.built.cubin.hex()]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def record(self) -> KernelRecord:
        own = {name: getattr(self, name) for name in KernelRecord.__struct_fields__ if hasattr(self, name)}
        study = {"study": self.study.name, "citation": self.study.citation, "citation_url": self.study.url}
        return KernelRecord(**{**own, **study})


class Ladder(Struct, frozen=True):
    """One operation and the kernels that compute it."""

    operation: Operation
    kernels: tuple[Kernel, ...]

    def find(self, name: str) -> Kernel:
        """A kernel by its id or published alias, in any case.

        Raises:
            InputError: There is none; the message names the nearest ones.
        """
        names = {alias.lower(): kernel for kernel in self.kernels for alias in (kernel.id, *kernel.aliases)}
        if name.lower() in names:
            return names[name.lower()]
        fix = did_you_mean(name, names, self._listed)
        raise InputError(f"There is no {self.operation.name} kernel {name!r}.", fix=fix)

    def matching(self, pattern: str) -> tuple[Kernel, ...]:
        """Every kernel whose id a pattern such as `col_*` fits, in any case; else the one of that name.

        Raises:
            InputError: There is none.
        """
        found = [kernel for kernel in self.kernels if fnmatchcase(kernel.id.lower(), pattern.lower())]
        return tuple(found) or (self.find(pattern),)

    @property
    def rungs(self) -> tuple[Kernel, ...]:
        """Its kernels but for shapes of one of them, which run only when they are named or chosen."""
        ids = {kernel.id for kernel in self.kernels}
        return tuple(kernel for kernel in self.kernels if kernel.shape_of not in ids)

    def rungs_of(self, dtype: str) -> tuple[Kernel, ...]:
        """Its rungs for runs of a type: those that are written for it or choose such, all where none is."""
        theirs = {kernel.id for kernel in self.kernels if dtype in kernel.dtypes}
        chosen = ({choice.kernel for choice in kernel.choices} or {kernel.id} for kernel in self.rungs)
        written = tuple(kernel for kernel, ids in zip(self.rungs, chosen, strict=True) if ids & theirs)
        return written if any(not kernel.choices for kernel in written) else self.rungs

    def of_type(self, kernel: Kernel, dtype: str) -> Kernel:
        """A kernel for runs of a type: what chooses does so among those of the type, as one of them."""
        written = {other.id: other for other in self.kernels if dtype in other.dtypes}
        choices = tuple(choice for choice in kernel.choices if choice.kernel in written)
        if not choices:
            return kernel
        return replace(kernel, choices=choices, options=written[choices[0].kernel].options)

    @property
    def _listed(self) -> str:
        if self.operation.name in shipped_names():
            return f"See `gpuprof list {self.operation.name}`."
        known = ", ".join(kernel.id for kernel in self.kernels)
        return (
            f"There are {known}."
            if known
            else "There is none yet: -k takes the path of a .cu, .ptx or .cubin file too."
        )
