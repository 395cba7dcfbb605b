# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine what one warp's access costs: atomics, asynchronous copies, uncached loads.

Usage: python benchmarks/warp_patterns.py [--only KIND …] [--ncu PATH] [-o FILE]

Each pattern is one launch of one warp, whose lanes access the places that the pattern says. Nsight Compute
counts every launch by itself; the answers, with their patterns, are what rules of the executor are found in
and held to. Needs Python 3.11, NumPy and cuda-bindings with NVRTC.
"""

import argparse
import ctypes
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from asking import Card, answer_here, compile_file, counted, profiled

from gpuprof.counters import OPCODES

_COPIES = (
    "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "smsp__inst_executed_op_ldgsts.sum",
)
#: What is counted of each kind of kernel. Copies that write zeros are counted again together with opcodes,
#: which are counted by changing the code: whether that changes the rest is asked here.
_METRICS = {
    "atomic": tuple(
        f"l1tex__t_{event}_pipe_lsu_mem_global_op_{kind}.sum"
        for kind in ("red", "atom")
        for event in ("requests", "sectors")
    ),
    "copy": _COPIES,
    "copy and opcodes": (*_COPIES, OPCODES),
    "load": (
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ),
}
#: Kernel, by its name: what it is counted as, and bytes of a lane's access.
_KINDS = {
    **{name: ("atomic", size) for name, size in (("red_add_u32", 4), ("red_min_u32", 4), ("red_add_f32", 4))},
    **{
        name: ("atomic", size)
        for name, size in (("red_add_u64", 8), ("atom_add_u32", 4), ("atom_cas_b32", 4))
    },
    **{f"copy_{form}": ("copy", int(form[2:4].rstrip("_"))) for form in ("ca4", "ca8", "ca16", "cg16")},
    **{f"copy_{form}": ("copy", int(form[2:4].rstrip("_"))) for form in ("ca4_zeros", "cg16_zeros")},
    **{f"copy_{form}": ("copy", int(form[2:4].rstrip("_"))) for form in ("ca4_length", "cg16_length")},
    **{f"copy_{form}": ("copy", int(form[2:4].rstrip("_"))) for form in ("ca4_guard", "cg16_guard")},
    **{f"load_mmio_{name}": ("load", size) for name, size in (("u8", 1), ("u32", 4), ("u64", 8))},
}
_SPACE_BYTES = 1 << 16
_SHARED_BYTES = 1 << 14
_TOGETHER = 300
_LIMIT_S = 420.0
_SOURCE = """
#define ARGUMENTS const int *from, const int *to, const int *length, char *space
#define LANE const unsigned t = threadIdx.x; if (from[t] < 0) return; char *p = space + from[t]
#define RED(NAME, TEXT, TYPE, C, VALUE) extern "C" __global__ void NAME(ARGUMENTS) \\
    { LANE; asm volatile(TEXT " [%0], %1;" :: "l"(p), C((TYPE)VALUE) : "memory"); }
RED(red_add_u32, "red.global.add.u32", unsigned, "r", length[t])
RED(red_min_u32, "red.global.min.u32", unsigned, "r", length[t])
RED(red_add_f32, "red.global.add.f32", float, "f", length[t])
RED(red_add_u64, "red.global.add.u64", unsigned long long, "l", length[t])
extern "C" __global__ void atom_add_u32(ARGUMENTS)
{
    LANE; unsigned old;
    asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(length[t]) : "memory");
    ((unsigned *)space)[8192 + t] = old;
}
extern "C" __global__ void atom_cas_b32(ARGUMENTS)
{
    LANE; unsigned old;
    asm volatile("atom.global.cas.b32 %0, [%1], 0, %2;" : "=r"(old) : "l"(p), "r"(length[t]) : "memory");
    ((unsigned *)space)[8192 + t] = old;
}
#define COPY(NAME, CACHE, SIZE, LENGTH) extern "C" __global__ void NAME(ARGUMENTS)               \\
{                                                                                                  \\
    __shared__ __align__(128) char here[16384];                                                    \\
    LANE;                                                                                          \\
    const unsigned place = (unsigned)__cvta_generic_to_shared(here + to[t]);                       \\
    asm volatile(CACHE ".shared.global [%0], [%1], " #SIZE LENGTH : "memory");         \\
    asm volatile("cp.async.wait_all;" ::: "memory");                                               \\
    ((int *)space)[8192 + t] = *(int *)(here + to[t]);                                             \\
}
#define ALL ";" :: "r"(place), "l"(p)
#define SOME(SIZE) ", %2;" :: "r"(place), "l"(p), "r"(length[t] ? SIZE : 0)
#define AS_SAID ", %2;" :: "r"(place), "l"(p), "r"(length[t])
COPY(copy_ca4, "cp.async.ca", 4, ALL)
COPY(copy_ca8, "cp.async.ca", 8, ALL)
COPY(copy_ca16, "cp.async.ca", 16, ALL)
COPY(copy_cg16, "cp.async.cg", 16, ALL)
COPY(copy_ca4_zeros, "cp.async.ca", 4, SOME(4))
COPY(copy_cg16_zeros, "cp.async.cg", 16, SOME(16))
COPY(copy_ca4_length, "cp.async.ca", 4, AS_SAID)
COPY(copy_cg16_length, "cp.async.cg", 16, AS_SAID)
#define GUARD "{ .reg .pred q; setp.ne.s32 q, %2, 0; @q "
#define GUARDED "; }" :: "r"(place), "l"(p), "r"(length[t])
COPY(copy_ca4_guard, GUARD "cp.async.ca", 4, GUARDED)
COPY(copy_cg16_guard, GUARD "cp.async.cg", 16, GUARDED)
#define LOAD(NAME, KIND, TYPE, C) extern "C" __global__ void NAME(ARGUMENTS)                      \\
{                                                                                                  \\
    LANE; TYPE found;                                                                              \\
    asm volatile("ld.mmio.relaxed.sys.global." KIND " %0, [%1];" : C(found) : "l"(p) : "memory");  \\
    ((int *)space)[8192 + t] = (int)found;                                                         \\
}
LOAD(load_mmio_u8, "u8", unsigned, "=r")
LOAD(load_mmio_u32, "u32", unsigned, "=r")
LOAD(load_mmio_u64, "u64", unsigned long long, "=l")
"""


@dataclass(frozen=True)
class Pattern:
    """What the lanes of a warp do.

    Attributes:
        kernel: The kernel's name.
        source: Byte in global memory of each lane's access; -1 of a lane that takes no part.
        target: Byte in shared memory that each lane copies to.
        length: Bytes that each lane reads, of a copy that says how many; else, a value.
    """

    kernel: str
    source: tuple[int, ...]
    target: tuple[int, ...]
    length: tuple[int, ...]


def patterns() -> list[Pattern]:
    """Return all patterns, always the same."""
    return [*_atomics(np.random.default_rng(1)), *_copies(np.random.default_rng(2)), *_loads()]


def _pattern(kernel: str, source: object, target: object, length: object, active: object) -> Pattern:
    columns = [np.broadcast_to(np.asarray(column), 32) for column in (source, target, length, active)]
    taking = np.where(columns[3], columns[0], -1)
    return Pattern(kernel, *(tuple(column.tolist()) for column in (taking, columns[1], columns[2])))


def _active(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.isin(np.arange(32), rng.permutation(32)[:count])


def _atomics(rng: np.random.Generator) -> Iterator[Pattern]:
    """Lanes at random words of a span, and few of them, so that one collision can be told from another."""
    for words in (8, 16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 1024, 2048, 4096):
        for lanes in (32, 32, 32, 32, 24, 16, 16, 8, 8, 4):
            at = rng.integers(0, words, 32) * 4
            yield _pattern("red_add_u32", at, 0, 1, _active(rng, lanes))
    # Two lanes at one word, a third in the same sector, line, or far away; all pairs of a few lanes.
    for distance in (4, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
        for pair in ((0, 1), (0, 31), (15, 16), (30, 31)):
            at = np.arange(32) * distance % 32768
            at[pair[1]] = at[pair[0]]
            yield _pattern("red_add_u32", at, 0, 1, _active(rng, 32))
    for kernel in list(_KINDS)[1:6]:
        for words in (64, 256, 300, 1024):
            for _ in range(6):
                at = rng.integers(0, words, 32) * _KINDS[kernel][1]
                yield _pattern(kernel, at, 0, 1, _active(rng, 32))


def _copies(rng: np.random.Generator) -> Iterator[Pattern]:
    """Pieces from random places to targets apart or side by side; rows of which all is read, or nothing."""
    for kernel, (counted_as, size) in _KINDS.items():
        if counted_as != "copy":
            continue
        for units in (8, 32, 128, 1024):
            for pitch in (1, 2, 3, 8):
                for lanes in (32, 32, 12):
                    source = rng.integers(0, units, 32) * size
                    target = np.arange(32) * size * pitch
                    if rng.random() < 0.3:
                        target = rng.permutation(target)
                    length = np.where(rng.random(32) < 0.25, 0, size)
                    if kernel.endswith("length") and rng.random() < 0.5:
                        length = rng.integers(0, size + 1, 32)
                    yield _pattern(kernel, source, target, length, _active(rng, lanes))
        for length in (0, size):
            row = np.arange(32) * size
            yield _pattern(kernel, row, row, length, 1)


def _loads() -> Iterator[Pattern]:
    """Lanes in a row, at one address, apart, and few of them."""
    for kernel, (counted_as, size) in _KINDS.items():
        if counted_as == "load":
            for step in (0, size, 32, 128):
                for lanes in (32, 7, 1):
                    yield _pattern(kernel, np.arange(32) * step, 0, 0, np.arange(32) < lanes)


def _answer(card: Card, folder: Path, pattern: Pattern) -> dict:
    function = card.function(folder / "patterns.cubin", pattern.kernel)
    columns = (pattern.source, pattern.target, pattern.length)
    addresses = [card.array(np.array(column, np.int32).tobytes()) for column in columns]
    addresses.append(card.array(bytes(_SPACE_BYTES)))
    values = [ctypes.c_void_p(address) for address in addresses]
    card.launch(function, (1, 1, 1), (32, 1, 1), 0, values)
    for address in addresses:
        card.free(address)
    return {"outcome": "ok"}


def main() -> None:
    """Compile, count, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", default=[], choices=sorted(_METRICS), help="ask these kinds only"
    )
    parser.add_argument("--ncu", help="path of Nsight Compute")
    parser.add_argument("-o", "--output", type=Path, default=Path("warp-patterns.json"))
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    asked = patterns()
    if options.work:
        card, (folder, *numbers) = Card(), options.work
        answer_here(numbers, lambda number: _answer(card, Path(folder), asked[int(number)]))
        return
    began, about, told = time.monotonic(), Card().describe(), []
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_file("patterns.cu", _SOURCE, about["arch"])
        if not compiled.cubin:
            sys.exit(compiled.log)
        Path(folder, "patterns.cubin").write_bytes(compiled.cubin)
        for kind, metrics in _METRICS.items():
            wanted = [i for i, pattern in enumerate(asked) if _KINDS[pattern.kernel][0] == kind.split()[0]]
            if OPCODES in metrics:
                wanted = [i for i in wanted if "_" in asked[i].kernel.removeprefix("copy_")]
            for first in range(0, len(wanted) if not options.only or kind in options.only else 0, _TOGETHER):
                part = wanted[first : first + _TOGETHER]
                left = _LIMIT_S - (time.monotonic() - began)
                command = [sys.executable, __file__, "--work", folder, *map(str, part)]
                launches = profiled(command, metrics, options.ncu, left) if left > 0 else []
                if [launch.kernel for launch in launches] != [asked[i].kernel for i in part]:
                    print(
                        f"{kind}: {len(launches)} of {len(part)} launches counted, left out", file=sys.stderr
                    )
                    continue
                told += [
                    asdict(asked[i])
                    | {"with_opcodes": OPCODES in metrics, "counters": counted(launch, metrics)}
                    for i, launch in zip(part, launches, strict=True)
                ]
                print(f"{time.monotonic() - began:5.0f} s  {len(told)} patterns", flush=True)
    lines = ",\n".join(map(json.dumps, told))
    options.output.write_text(f'{{"about": {json.dumps(about)},\n"patterns": [\n{lines}\n]}}\n')
    print(f"Wrote {options.output}: {len(told)} of {len(asked)} patterns")


if __name__ == "__main__":
    main()
