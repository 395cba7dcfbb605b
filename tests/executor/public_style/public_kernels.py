# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels in the manner of public suites and courses, as launches: what the files beside this one hold.

Only the standard library and NumPy are used, so that a bare machine with a GPU can ask its card.

A file is CUDA C++ with a TOML block in front. `[NAME]` is one launch of the kernel with that name: `grid`,
`block` and `arguments`. An argument is a type and a number, or `TYPE[COUNT] CONTENT`: `uniform LOW HIGH`,
`below N`, `bits`, `permutation`, `zeros`, `ramp STEP`, `bytes` (a permutation of all bytes), `sorted LENGTH
N` (runs of distinct numbers below N in rising order). Without one, floats lie between -1 and 1, and integers
below 100.
"""

import re
import sys
import tomllib
import zlib
from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "differential"))

from launch_case import LaunchCase  # noqa: E402

_ARGUMENT = re.compile(r"([iuf]\d+)(?:\[(\d+)\])? ?(.*)")


@cache
def public_kernels() -> dict[str, LaunchCase]:
    """Return every launch by its kernel's name."""
    found: dict[str, LaunchCase] = {}
    for path in sorted(FOLDER.glob("*.cu")):
        source = path.read_text()
        for name, table in tomllib.loads(source.partition("/*launches\n")[2].partition("*/")[0]).items():
            if name in found:
                raise ValueError(f"{path.name}: there is another {name}")
            extents = [(*table[key], 1, 1)[:3] for key in ("grid", "block")]
            numbers = np.random.default_rng(zlib.crc32(name.encode()))
            arguments = tuple(_argument(text, numbers) for text in table["arguments"])
            found[name] = LaunchCase(name, source, *extents, arguments)
    return found


def _argument(text: str, numbers: np.random.Generator) -> np.ndarray | np.generic:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"no argument: {text!r}")
    kind, count, content = np.dtype(f"{match[1][0]}{int(match[1][1:]) // 8}"), match[2], match[3].split()
    if count is None:
        return kind.type(content[0])
    word, *values = content or (["uniform", "-1", "1"] if kind.kind == "f" else ["below", "100"])
    return _content(word, [float(value) for value in values], int(count), kind, numbers).astype(kind)


def _content(
    word: str, values: list[float], count: int, kind: np.dtype, numbers: np.random.Generator
) -> np.ndarray:
    if word == "uniform":
        return numbers.uniform(*values, count)
    if word == "below":
        return numbers.integers(0, int(values[0]), count)
    if word == "bits":
        return np.frombuffer(numbers.bytes(count * kind.itemsize), kind)
    if word == "permutation":
        return numbers.permutation(count)
    if word == "bytes":
        return numbers.permutation(256)
    if word == "zeros":
        return np.zeros(count)
    if word == "ramp":
        return np.arange(count) * int(values[0])
    if word == "sorted":
        length, limit = map(int, values)
        rows = [np.sort(numbers.choice(limit, length, replace=False)) for _ in range(count // length)]
        return np.concatenate(rows)
    raise ValueError(f"no content: {word!r}")
