# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The executor's rooms, each of which uses those below it.

That the executor is a library of its own tests/unit/test_house.py holds, as it does what any room imports.
"""

import ast
from collections import defaultdict
from pathlib import Path

import gpuprof.executor

ROOT = Path(gpuprof.executor.__file__).parent
#: Rooms and single modules from the ground up, and what of the others each uses.
ROOMS: dict[str, set[str]] = {
    "faults": set(),
    "lanes": set(),
    "memory": {"faults", "lanes"},
    "program": {"faults", "lanes", "memory"},
    "arithmetic": {"lanes"},
    # The interpreter knows nobody who watches it.
    "steps": {"faults", "lanes", "program", "arithmetic", "memory"},
    "definedness": {"faults", "lanes", "program", "arithmetic", "memory", "steps"},
    "decode": {"faults", "lanes", "program", "memory", "steps"},
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


def test_rooms_stand_on_one_another_and_use_what_they_may():
    used = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("gpuprof.executor"):
                used[room].add(node.module.split(".")[2])  # each imports its module in full
    assert used.keys() | ROOMS.keys() == ROOMS.keys() | {"__init__"}
    below = set()
    for room, uses in ROOMS.items():
        assert used[room] - {room} == uses <= below, room
        assert f"`{room}`" in gpuprof.executor.__doc__
        below.add(room)
