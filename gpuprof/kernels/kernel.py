# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""One way to compute an operation: a kernel with its header and source, as a value that can travel."""

import hashlib
from collections.abc import Mapping

from msgspec import Struct, field

from gpuprof.kernels.candidates import Candidates
from gpuprof.kernels.tensor_map import TensorMapSpec
from gpuprof.kernels.texture import TextureSpec
from gpuprof.results import Choice, Direction, KernelRecord, PublishedFigure


class Requirement(Struct, frozen=True):
    """A condition on size, block or parameters, and the sentence shown when it does not hold."""

    condition: str
    because: str


class Launch(Struct, frozen=True):
    """How a kernel is launched: its default block, and formulas of the rest."""

    block: tuple[int, int, int]
    any_block: bool
    grid: tuple[str, str, str]
    dynamic_shared_bytes: str
    cooperative: bool = False


class LaunchStep(Struct, frozen=True):
    """One of the launches that a kernel takes, in order.

    Args:
        arguments: What it takes, in order: names of the operation's, of tensor maps and of workspace arrays,
            or formulas of integers.
        repeat: How often it is launched; neighbours that say the same are launched in turn, as in one loop.
    """

    entry: str
    arguments: tuple[str, ...]
    block: tuple[str, str, str]
    grid: tuple[str, str, str]
    dynamic_shared_bytes: str
    cooperative: bool = False
    repeat: str = "1"


class Workspace(Struct, frozen=True):
    """An array that belongs to the kernel and not to the operation: what one launch leaves for the next.

    Nobody initialises it, unless it holds `addresses`: of these arrays, of each as many, evenly spaced.
    """

    shape: tuple[str, ...]
    dtype: str
    addresses: tuple[str, ...] = ()


#: In the place of a launch where the chosen kernel has one.
NO_LAUNCH = Launch(block=(1, 1, 1), any_block=False, grid=("1", "1", "1"), dynamic_shared_bytes="0")


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
        entry: Its function: a name, or an instance of a template such as `sgemm<BM, BN>`, in which parameters
            and macros stand for their values; empty with several launches, which name their own.
        constants: Integers that its source and its launch share and that nobody may change; macros too.
        derived: Constants that follow from the problem and those before them, each with its formula.
        defines: Macros besides those, with their text.
        moves: What the step to this kernel does to counters and resources, for the same problem.
        shape_of: Id of the rung of which it is another shape: it runs when it is named or chosen.
        choices: The kernels of which it runs the first whose condition holds; empty for a kernel with code of
            its own. With choices, `launch` is a placeholder, and entry, arguments and types are empty.
        launches: Its launches in order where it takes several; `launch` is then a placeholder with the first
            one's block.
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
    entry: str
    arguments: tuple[str, ...]
    launch: Launch
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
    launches: tuple[LaunchStep, ...] = ()
    workspace: Mapping[str, Workspace] = {}
    symbols: Mapping[str, str] = {}
    poison_inout: bool = True
    candidates: Candidates = field(default_factory=Candidates)
    built: Built | None = None

    @property
    def steps(self) -> tuple[LaunchStep, ...]:
        """Its launches in order: one, with its own block, where the header does not list several."""
        if self.launches or self.choices:
            return self.launches
        launch = self.launch
        x, y, z = map(str, launch.block)
        shape = (launch.grid, launch.dynamic_shared_bytes, launch.cooperative)
        return (LaunchStep(self.entry, self.arguments, (x, y, z), *shape),)

    @property
    def integers(self) -> Mapping[str, int]:
        return {**self.constants, **self.parameters}

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.entry for step in self.steps))

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
