# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The house of rooms: each uses only rooms below it, wherever its modules import.

The executor's own rooms are held by tests/executor/test_executor_rooms.py.
"""

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from each import each

import gpuprof

ROOT = Path(gpuprof.__file__).parent

#: Every room from the ground up, and in one sentence what it is for.
HOUSE: dict[str, str] = {
    "version": "`gpuprof.__version__`, and nothing else.",
    "records": "Records with other values in some fields.",
    "operators": "What the signs of formulas compute.",
    "text": "Text made safe to show.",
    "errors": "The tree of errors and the exit codes.",
    "argument_types": "Whether a program's values are what signatures say.",
    "timeline": "What ran when, in every process, as a trace.",
    "requirements": "What pip must have installed, held against what is there.",
    "signals": "Requests to end.",
    "machine": "Cores and memory of this machine.",
    "copy_engine": "Facts about CUDA's copy engine that both backends and headers need.",
    "texture_units": "Facts about CUDA's textures and surfaces that both backends and headers need.",
    "ptx_directives": "What a PTX text says of itself: its target, its kernels, how these may be launched.",
    "counters": "The one table of counters.",
    "operation": "What an operation declares, as data.",
    "cubin_file": "Machine code as a file: its sections, and what they say of each kernel.",
    "cuda_source": "CUDA C++ read as text: functions, includes, what is for the host.",
    "console": "Everything that is printed goes through it.",
    "files": "Writing files whole or not at all.",
    "private_folder": "A folder that this user alone writes to.",
    "schema": "Records to JSON and back, held to their types.",
    "page_data": "What a report keeps compressed, written and read.",
    "tables": "Typed fields out of TOML.",
    "devices": "What a device is, the known cards, theoretical occupancy.",
    "case_parts": "What is measured, counted or derived of a case, part by part.",
    "results": "The one contract between measuring and showing.",
    "bounds": "Floors of time from exact counts and published rates.",
    "statistics": "When there are enough samples, and what they amount to.",
    "store": "A results file while its run goes on.",
    "toolchain": "NVRTC, found headers, the compile cache, resources.",
    "executor": "The exact SIMT machine, a library of its own.",
    "machine_code": "Machine code: its instructions, their pipes, how often each executes.",
    "sm_model": "A modelled time: one SM plays the machine code of its resident warps.",
    "problems": "Operations, declared and coded: inputs, references, checks.",
    "options": "The one table of options: command line, API, project settings, wire, documentation.",
    "kernels": "Kernel files: header, ladder, launch shape, choice.",
    "reading": "Results files of every version; version 1 needs what the shipped operations declare.",
    "backends": "The protocol of backends, and what both share.",
    "backends.gpu": "The driver: the only room that talks to a GPU.",
    "backends.sim": "The executor as a backend.",
    "backends.select": "Opens the backend that a user named, and puts one on top of another.",
    "measure": "From request to run: plan, workers, cases.",
    "ncu": "Nsight Compute collects counters for cases.",
    "analysis": "Figures, roofline, reasons and claims: pure functions over a run.",
    "comparison": "What differs between runs: cases matched, verdicts, gates. Pure functions over runs.",
    "tuning": "Searches parameters and blocks: space, correction, stages, what is written into headers.",
    "report": "HTML, terminal and Markdown: pick figures, never compute them.",
    "commands": "What each command does.",
    "api": "What each command does, for Python programs.",
    "gpuprof": "The door for `import gpuprof`: it names what the API offers and loads it when it is used.",
    "pytest_plugin": "The door for pytest: a fixture, and its rows in the report of a failing test.",
    "cli": "Parses, calls, prints, exits.",
    "__main__": "The door for `python -m gpuprof`.",
}
#: The one thing that any module may take from the package itself.
VERSION = "gpuprof.__version__"
#: Modules of the package `backends` that are no part of the room of that name.
ABOVE_BACKENDS = ("gpuprof.backends.select",)
#: Rooms that use fewer rooms than stand below them, and of those which.
FEWER: dict[str, set[str]] = {
    # Whoever takes the executor out of the house finds it whole.
    "executor": {"errors", "copy_engine", "texture_units", "ptx_directives"},
    # A run is shown on any machine, without what measured it.
    "analysis": {"text", "counters", "operation", "devices", "problems", "results", "bounds"},
    "comparison": {
        *("operators", "text", "errors", "counters", "schema", "devices"),
        *("results", "bounds", "statistics", "analysis"),
    },
    "report": {"text", "schema", "page_data", "devices", "results", "analysis", "comparison"},
    # The two backends know nothing of each other.
    "backends.sim": set(HOUSE) - {"backends.gpu"},
    # What a problem is does not depend on how it is computed, measured or kept.
    "problems": {"errors", "files", "operation", "operators", "results", "tables"},
    "kernels": set(HOUSE) - {"toolchain", "executor", "store", "statistics"},
    "results": {"case_parts", "devices", "operation", "schema"},
    # Floors follow from what a results file holds, wherever it came from.
    "bounds": {"counters", "devices", "results"},
    "sm_model": {"cubin_file", "errors", "devices", "results", "executor", "machine_code"},
}
#: Packages of others, and the only rooms that import them. Records of any room are structs of msgspec.
LIBRARIES: dict[str, set[str]] = {
    "cuda": {"backends.gpu", "toolchain"},
    "pynvml": {"backends.gpu"},
    "numpy": {"executor", "problems", "backends.gpu", "backends.sim", "tuning"},
    "llvmlite": {"executor"},
    "dask": {"measure"},
    "distributed": {"measure"},
    "jinja2": {"report"},
    "markupsafe": {"report"},
    "ml_dtypes": {"executor", "problems"},
    "pandas": {"api"},
    "plotly": {"report"},
    "pytest": {"pytest_plugin"},
    "rich": {"report", "commands"},
    # The user's own, where a program measures its functions.
    "cutlass": {"toolchain"},
    "numba": {"toolchain"},
    "triton": {"toolchain"},
    # The user's own, where an operation is held against a function of it on a GPU.
    "torch": {"backends.gpu"},
    "typer": {"cli", "commands"},
}
#: What of the `cuda` packages the toolchain imports: a compiler needs no driver.
COMPILER = {"cuda.bindings", "cuda.pathfinder"}
#: Names that modules of several packages share, each with the role that they play in both backends.
SHARED_ROLES = {"backend": "What executes a case."}


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def room_of(module: str) -> str:
    """The room that a module stands in."""
    _, *rest = module.split(".")
    if module == VERSION:
        return "version"
    if module in ABOVE_BACKENDS:
        return "backends.select"
    if rest[:1] == ["backends"] and len(rest) > 1 and f"backends.{rest[1]}" in HOUSE:
        return f"backends.{rest[1]}"
    return rest[0] if rest else "gpuprof"


@cache
def imports_of(module: str) -> frozenset[str]:
    """What a module imports, wherever it does so: modules of gpuprof's, and those of others in full."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports name their module in full"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            known = MODULES.keys() | {VERSION}
            found |= {name if name in known else str(node.module) for name in names}
    return frozenset(found)


def own_imports_of(module: str) -> set[str]:
    return {name for name in imports_of(module) if name.split(".")[0] == "gpuprof"}


def uses_of(room: str) -> set[str]:
    """The rooms that a room uses."""
    names = {name for module in MODULES if room_of(module) == room for name in own_imports_of(module)}
    return {room_of(name) for name in names} - {room}


def test_every_module_stands_in_a_room_and_every_room_is_there():
    assert {room_of(module) for module in (*MODULES, VERSION)} == HOUSE.keys()


@each(room=HOUSE)
def test_imports_point_down(room):
    order = list(HOUSE)
    below = set(order[: order.index(room)])
    for module in (name for name in MODULES if room_of(name) == room):
        for name in own_imports_of(module):
            assert name in MODULES or name == VERSION, f"{module} imports {name}, which is no module"
            assert room_of(name) == room or room_of(name) in below, f"{module} imports {name}"


def test_no_files_need_each_other():
    """An import for annotations counts too: what cannot be read alone is one file in several pieces."""
    needs = {module: own_imports_of(module) - {"gpuprof", VERSION, module} for module in MODULES}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join(reversed(error.args[1])))


@pytest.mark.parametrize("room", FEWER)
def test_room_uses_no_more_than_it_may(room):
    assert uses_of(room) <= FEWER[room] | {"records"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_library_is_used_in_its_rooms_only(library):
    users = {
        room_of(module)
        for module in MODULES
        if any(name.split(".")[0] == library for name in imports_of(module))
    }
    assert users == LIBRARIES[library]


def test_every_library_has_its_rooms():
    tops = {name.split(".")[0] for module in MODULES for name in imports_of(module)}
    assert tops - sys.stdlib_module_names - {"gpuprof", "msgspec"} == LIBRARIES.keys()


def test_toolchain_needs_no_driver():
    for module in (name for name in MODULES if room_of(name) == "toolchain"):
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "cuda":
                assert node.module in COMPILER, module
                assert not {alias.name for alias in node.names} & {"driver", "runtime"}, module
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "cuda" for alias in node.names), module


def test_two_modules_of_one_name_play_one_role_in_the_two_backends():
    named = defaultdict(set)
    for module, path in MODULES.items():
        if path.name != "__init__.py":
            named[module.rpartition(".")[2]].add(module)
    shared = {name: modules for name, modules in named.items() if len(modules) > 1}
    assert shared.keys() == SHARED_ROLES.keys()
    for name, modules in shared.items():
        assert modules == {f"gpuprof.backends.{backend}.{name}" for backend in ("gpu", "sim")}


def test_no_module_is_called_like_a_package():
    packages = {module.rpartition(".")[2] for module, path in MODULES.items() if path.name == "__init__.py"}
    modules = {module.rpartition(".")[2] for module, path in MODULES.items() if path.name != "__init__.py"}
    assert not packages & modules


def test_no_class_name_means_two_things():
    named = defaultdict(set)
    for module, path in MODULES.items():
        for name in re.findall(r"^ *class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            named[name].add(module)
    assert not {name: modules for name, modules in named.items() if len(modules) > 1}
