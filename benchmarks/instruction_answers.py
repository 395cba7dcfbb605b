# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Ask the card in this machine what each PTX instruction makes of its operands, and write checksums of that.

Usage: python benchmarks/instruction_answers.py FILE [-o FILE]

FILE is tests/executor/instructions/answers-h200.json.xz, or one like it; its instructions are asked anew.
Needs Python 3.11, NumPy and cuda-bindings.
"""

import argparse
import json
import lzma
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "executor" / "instructions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "executor" / "rules"))

from asking import Card, answer_here, asked_elsewhere  # isort: skip
from operands import HEAD, array, of_arithmetic  # isort: skip
from launch_case import LaunchCase  # isort: skip

#: Kernels of one file, which the driver compiles.
_TOGETHER = 200


def kernels(told: dict) -> Iterator[tuple[LaunchCase, list]]:
    """Yield every kernel of a file, and the list whose last element is its answer."""
    for number, entry in enumerate([*told["arithmetic"], *told["kernels"]]):
        if len(entry) == 4:
            instruction, kinds, result, _ = entry
            text, arrays, grid, block = of_arithmetic([(instruction, result)], kinds)
        else:
            text, arrays, grid, block = entry[1:5]
        name = f"k{number}"
        source = text.replace(".entry k(", f".entry {name}(")
        given = tuple(map(array, arrays))
        yield LaunchCase(name, source, (grid, 1, 1), (block, 1, 1), given), entry


def main() -> None:
    """Compile, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("answers.json.xz"))
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    told = json.loads(lzma.decompress(options.file.read_bytes()))
    asked = [*kernels(told)]
    if options.work:
        card, (folder, *names) = Card(), options.work
        by_name = {case.name: (case, i // _TOGETHER) for i, (case, _) in enumerate(asked)}
        answer_here(
            names, lambda name: card.ask(by_name[name][0], Path(folder, f"{by_name[name][1]}.ptx"), 1)
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(asked), _TOGETHER):
            text = "".join(case.source for case, _ in asked[first : first + _TOGETHER])
            Path(folder, f"{first // _TOGETHER}.ptx").write_text(HEAD + text)
        command = [sys.executable, __file__, str(options.file), "--work", folder]
        answers = asked_elsewhere(command, [case.name for case, _ in asked])
    for case, entry in asked:
        answer = answers[case.name]
        if answer["outcome"] != "ok":
            print(f"{entry[0]}: {answer}")
            continue
        left = [
            given.tobytes() if bits is None else bytes.fromhex(bits)
            for given, bits in zip(case.arrays, answer["arrays"], strict=True)
        ]
        found = {int(place): zlib.crc32(left[int(place)]) for place in entry[-1]}
        entry[-1] = {str(place): value for place, value in found.items()}
    options.output.write_bytes(lzma.compress(json.dumps(told).encode()))


if __name__ == "__main__":
    main()
