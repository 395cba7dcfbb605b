# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor is a library of its own: its rooms use those below them, and nothing else of gpuprof."""

import ast
import sys
from pathlib import Path

import pytest

import gpuprof.executor

PACKAGE = "gpuprof.executor"
ROOT = Path(gpuprof.executor.__file__).parent
#: Rooms and single modules from the ground up, and what each may use.
ROOMS: dict[str, set[str]] = {
    "faults": set(),
    "lanes": set(),
    "program": {"faults", "lanes"},
    "arithmetic": {"lanes"},
    "memory": {"faults", "lanes"},
    # The interpreter knows nobody who watches it.
    "steps": {"faults", "lanes", "program", "arithmetic", "memory"},
    "definedness": {"faults", "lanes", "program", "arithmetic", "memory", "steps"},
    "decode": {"faults", "lanes", "program", "arithmetic", "memory", "steps"},
    "sampling": set(),
    "divergence": {"faults", "lanes", "program", "memory", "steps", "decode"},
    "scheduler": {"faults", "lanes", "program", "memory", "steps", "decode", "divergence"},
    "totals": {"lanes", "program", "memory", "decode", "sampling"},
    "observers": {"faults", "lanes", "memory"},
    "interleaving": {"divergence", "scheduler", "observers"},
    "launch_template": {"faults", "lanes", "program", "memory", "steps", "decode", "sampling", "observers"},
    "grid_launch": {
        *("faults", "lanes", "memory", "steps"),
        *("decode", "sampling", "divergence", "scheduler", "totals", "interleaving"),
        *("launch_template", "observers"),
    },
}
#: Of gpuprof, its errors, two modules of facts about CUDA, and one that reads directives of PTX.
OUTSIDE = {*map("gpuprof.{}".format, ("errors", "copy_engine", "texture_units", "ptx_directives"))}
#: llvmlite is optional, and imported where it is used.
LIBRARIES = {"numpy", "llvmlite", "ml_dtypes"}
MODULES = sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room of a module; a module at the top is one by itself."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """What a module imports, wherever it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their module in full"
            assert node.module is not None
            # What `from gpuprof import errors` imports is a module too.
            found |= (
                {f"gpuprof.{alias.name}" for alias in node.names}
                if node.module == "gpuprof"
                else {node.module}
            )
    return found


def test_rooms_stand_on_one_another_without_cycles():
    below: set[str] = set()
    for room, uses in ROOMS.items():
        assert uses <= below, room
        below.add(room)
    assert {room_of(path) for path in MODULES} == ROOMS.keys() | {"__init__"}
    assert all(f"`{room}`" in gpuprof.executor.__doc__ for room in ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_uses_only_what_its_room_may(path):
    room = room_of(path)
    allowed = ROOMS.keys() if room == "__init__" else ROOMS[room] | {room}
    for name in imports_of(path):
        if name.startswith(f"{PACKAGE}."):
            assert name.split(".")[2] in allowed, name
        elif name.split(".")[0] == "gpuprof":
            assert name in OUTSIDE, name
        else:
            assert name.split(".")[0] in sys.stdlib_module_names | LIBRARIES, name


def test_what_rooms_may_use_is_what_they_use():
    for room, allowed in ROOMS.items():
        names = {name for path in MODULES if room_of(path) == room for name in imports_of(path)}
        used = {name.split(".")[2] for name in names if name.startswith(f"{PACKAGE}.")}
        assert used - {room} == allowed, room
