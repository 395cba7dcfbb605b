# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What is installed, on what it runs, and the cores and memory that it may take."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from processes import ran

import gpuprof
from gpuprof import machine

PACKAGE = Path(gpuprof.__file__).parent
PROJECT = PACKAGE.parent / "pyproject.toml"


def test_every_requirement_has_a_floor_and_a_ceiling_only_for_a_reason():
    text = PROJECT.read_text(encoding="utf-8")
    required = tomllib.loads(text)["project"]["dependencies"]
    assert [line for line in required if not re.fullmatch(r"[\w-]+>=\d+(\.\d+)+(,<[\d.]+)?", line)] == []
    assert [
        line for line in required if "<" in line and not re.search(rf'^ +#.*\n +"{line}"', text, re.M)
    ] == []


def run(*command, cwd=None):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return ran(command, cwd=cwd, env=environment)


def test_every_script_finds_what_it_names():
    """Those that record answers of cards run seldom, and are then wanted."""
    scripts = PACKAGE.parent / "benchmarks"
    done = run(
        sys.executable, "-c", f"import {', '.join(path.stem for path in scripts.glob('*.py'))}", cwd=scripts
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.deep
@pytest.mark.skipif(sys.version_info[:2] > (3, 11), reason="a newer Python needs newer packages")
def test_gpuprof_runs_on_the_oldest_packages_that_it_allows(tmp_path):
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    build, required = project["build-system"]["requires"], project["project"]["dependencies"]
    pytest.importorskip("pip")
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env").returncode == 0
    pip = [sys.executable, "-m", "pip", "--python", tmp_path / "env", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-compile"]
    if run(*install, *build).returncode:
        pytest.skip("the package registry cannot be reached: the oldest packages are not tried")
    installed = run(*install, *(line.replace(">=", "==") for line in required))
    assert installed.returncode == 0, installed.stderr
    # A copy: building leaves files behind.
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((PROJECT.parent / name).read_bytes())
    shutil.copytree(PACKAGE, source / "gpuprof", ignore=shutil.ignore_patterns("__pycache__"))
    installed = run(*install, "--no-build-isolation", "--no-index", source)
    assert installed.returncode == 0, installed.stderr
    command = [tmp_path / "env" / "bin" / "gpuprof"]
    measured = run(*command, "gemm", "-k", "naive,reg_8x8", "--sizes", "64", "--device", "sim", cwd=tmp_path)
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert "2 ok" in measured.stderr
    assert (tmp_path / "gpuprof-results" / "latest" / "report.html").exists()
    for arguments in (["doctor"], ["gemm", "--help"], ["list"], ["report", "--csv", "-"]):
        process = run(*command, *arguments, cwd=tmp_path)
        assert (process.returncode, process.stderr) == (0, ""), arguments


GIB = 2**30
#: Prints how many threads OpenBLAS has in a process of gpuprof, and where products may take more.
_THREADS = """
import ctypes, os
from gpuprof import machine
machine.usable_cores = lambda: 3
os.environ.update(machine.ONE_THREAD | os.environ)
import numpy
place = next(line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line)
threads = ctypes.CDLL(place).scipy_openblas_get_num_threads64_
print(threads())
machine.compute_in_all_threads()
print(threads())
"""


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A made-up system; gives a function that writes its files."""
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_OWN_CGROUPS", tmp_path / "self")
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))

    def write(groups="", available_gib=64, **files):
        (tmp_path / "self").write_text(groups)
        (tmp_path / "meminfo").write_text(
            f"MemTotal:  {128 * 2**20} kB\nMemFree:  1 kB\nMemAvailable:  {available_gib * 2**20} kB\n"
        )
        for name, text in files.items():
            path = tmp_path / "cgroup" / name.replace("__", "/").replace("0", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text))

    return write


def test_without_control_groups_affinity_and_available_memory_count(system):
    system()
    assert machine.usable_cores() == 16
    assert machine.available_memory_bytes() == 64 * GIB
    system(available_gib=3)  # free pages are not what is available
    assert machine.available_memory_bytes() == 3 * GIB


def test_quotas_of_both_versions_limit_cores(system):
    for quota, cores in (("max", 16), ("400000", 4), ("250000", 2), ("50000", 1), ("3200000", 16)):
        system("0::/box\n", box__cpu0max=f"{quota} 100000")
        assert machine.usable_cores() == cores
    for quota, cores in (("-1", 16), ("300000", 3)):
        files = {"cpu__box__cpu0cfs_quota_us": quota, "cpu__box__cpu0cfs_period_us": 100_000}
        system("4:cpu,cpuacct:/box\n3:memory:/\n", **files)
        assert machine.usable_cores() == cores


def test_outer_group_limits_too_and_the_root_is_looked_at_whatever_the_name(system):
    system("0::/outer/inner\n", **{"outer__cpu0max": "200000 100000", "outer__inner__cpu0max": "max 100000"})
    assert machine.usable_cores() == 2
    system("0::/../named/outside\n", **{"cpu0max": "100000 100000"})
    assert machine.usable_cores() == 1


def test_memory_limit_leaves_what_is_not_used_and_what_can_be_reclaimed(system):
    files = {
        "memory0max": 8 * GIB,
        "memory0current": 5 * GIB,
        "memory0stat": f"anon 1\ninactive_file {GIB}\n",
    }
    system("0::/\n", **files)
    assert machine.available_memory_bytes() == 4 * GIB
    system("0::/\n", **{**files, "memory0max": "max"})
    assert machine.available_memory_bytes() == 64 * GIB


def test_matrix_products_take_one_thread_until_they_may_take_all_or_what_a_user_says():
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    others = {name: text for name, text in os.environ.items() if name not in names}
    said = [{}, {"OMP_NUM_THREADS": "4"}, {"OPENBLAS_NUM_THREADS": "2"}]
    for own, expected in zip(said, (["1", "3"], ["1", "4"], ["2", "2"]), strict=True):
        told = subprocess.check_output([sys.executable, "-c", _THREADS], env=others | own, text=True)
        assert told.split() == expected


def test_memory_limit_of_version_1_and_one_that_is_none(system):
    limits = {"memory__box__memory0usage_in_bytes": GIB, "memory__box__memory0limit_in_bytes": 3 * GIB}
    system("4:memory:/box\n", **limits)
    assert machine.available_memory_bytes() == 2 * GIB
    system("4:memory:/box\n", **{**limits, "memory__box__memory0limit_in_bytes": 2**63 - 4096})
    assert machine.available_memory_bytes() == 64 * GIB
    system("0::/\n", memory0max=GIB, memory0current=2 * GIB)
    assert machine.available_memory_bytes() == 0
