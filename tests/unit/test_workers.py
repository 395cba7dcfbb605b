# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How many workers a run starts, what they are handed, and what a cluster's files say of them."""

import ast
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from processes import ran
from unit_support import DEVICE

from gpuprof.measure import side_by_side
from gpuprof.measure.pool import Pool
from gpuprof.measure.process import HERE
from gpuprof.measure.protocol import Open, Opened, PlaceLost
from gpuprof.measure.side_by_side import Cards, CardSite, OpenCard

GIB = 2**30


def cards(backend, budget_gib, largest_gib, count, transports, cases=999):
    """Open cards, without what opened them."""
    found = Cards.__new__(Cards)
    opened = Opened(DEVICE, backend, None, {}, budget_gib * GIB)
    found.cards = [
        OpenCard(
            number,
            CardSite(backend, transports),
            Open(device=backend, arch=None, seed=0, seconds_per_case=0.1),
            opened,
            [None] * cases,
            largest_gib * GIB,
        )
        for number in range(count)
    ]
    return found


@pytest.mark.parametrize(
    ("backend", "budget_gib", "largest_gib", "cores", "count", "at_a_time", "workers"),
    [
        ("gpu", 100, 1, 16, 1, 1, 1),
        ("gpu", 100, 1, 2, 8, 8, 1),
        ("none", 100, 1, 16, 1, 1, 1),
        ("sim", 100, 1, 16, 1, 1, 16),
        ("sim", 10, 1, 16, 1, 1, 10),
        ("sim", 10, 4, 16, 1, 1, 2),
        ("sim", 10, 9, 16, 1, 1, 1),
        ("sim", 10, 9, 1, 1, 1, 1),
        ("sim", 10, 0, 3, 1, 1, 3),
        ("sim", 100, 1, 16, 3, 3, 5),
        ("sim", 100, 1, 2, 3, 2, 1),
        ("sim", 100, 1, 1, 3, 1, 1),
        ("sim", 10, 4, 16, 2, 2, 1),
    ],
)
def test_workers_fit_into_memory_together(
    monkeypatch, backend, budget_gib, largest_gib, cores, count, at_a_time, workers
):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: cores)
    found = cards(backend, budget_gib, largest_gib, count, (HERE,) * cores)
    assert found.side_by_side == at_a_time
    assert len(found.transports(found.cards[0])) == workers


@pytest.mark.parametrize(("cases", "workers"), [(1, 1), (7, 7), (62, 12), (400, 50), (999, 64)])
def test_no_more_workers_than_their_cases_are_worth(monkeypatch, cases, workers):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 64)
    found = cards("sim", 100, 1, 1, (HERE,) * 64, cases)
    assert len(found.transports(found.cards[0])) == workers


def test_workers_of_a_cluster_are_shared_by_what_they_take_at_a_time(monkeypatch):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)
    slots = tuple(object() for _ in range(4))
    found = cards("sim", 1, 9, 3, slots)
    assert found.side_by_side == 3
    assert found.transports(found.cards[0]) == slots


LOADED = """
import sys
import gpuprof.measure.worker
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "cuda", "llvmlite"}))
"""


def test_one_whose_parent_is_gone_ends_before_it_loads_anything():
    worker = ran(
        [sys.executable, "-X", "importtime", "-m", "gpuprof.measure.worker", str(os.getpid() + 1)],
        stdin=subprocess.PIPE,
    )
    assert (worker.returncode, worker.stdout) == (1, "")
    assert "gpuprof.measure.serving" not in worker.stderr


def test_it_is_tied_to_its_parent_before_the_slow_imports():
    done = ran([sys.executable, "-c", LOADED], check=True)
    assert done.stdout == "\n"


class Seat:
    """Notes what it did; one that is `lost` loses its place with its first work."""

    def __init__(self, lost=False):
        self.lost = lost
        self.done = []
        self.closed = threading.Event()

    def open(self):
        if self.lost:
            raise PlaceLost("never there")

    def close(self):
        self.closed.set()

    def do(self, name):
        if self.lost:
            raise PlaceLost("its machine is gone")
        self.done.append(name)


def pool_of(*seats):
    pool = Pool(seats, ahead=True)
    for name in ("a1", "b1", "a2", "b2", "a3"):
        pool.add(name[0], lambda seat, name=name: seat.do(name))
    return pool


def test_a_lost_place_leaves_its_work_to_another():
    lost, good = Seat(lost=True), Seat()
    pool = pool_of(lost, good)
    pool.settle()
    assert sorted(good.done) == ["a1", "a2", "a3", "b1", "b2"]
    pool.close()
    assert lost.closed.is_set()
    assert good.closed.is_set()


def test_without_any_place_it_is_told_why():
    pool = pool_of(Seat(lost=True), Seat(lost=True))
    with pytest.raises(PlaceLost, match=r"^its machine is gone$"):
        pool.settle()
    pool.close()


def test_a_worker_gets_the_work_of_the_kernels_that_it_knows():
    seats = Seat(), Seat()
    both = threading.Barrier(2)
    pool = Pool(seats, ahead=False)
    for kernel in "ab":
        pool.add(kernel, lambda seat, kernel=kernel: (both.wait(60), seat.do(kernel)))
    pool.settle()
    with pool.paused():
        for name in ("a1", "b1", "a2", "b2"):
            pool.add(name[0], lambda seat, name=name: (both.wait(60), seat.do(name)))
    pool.settle()
    pool.close()
    assert {"".join(seat.done) for seat in seats} == {"aa1a2", "bb1b2"}


def test_what_work_raises_is_raised_where_it_is_waited_for():
    pool = Pool([Seat()], ahead=False)
    pool.add("a", lambda seat: 1 // 0)
    pool.add("a", lambda seat: seat.do("never"))
    with pytest.raises(ZeroDivisionError):
        pool.settle()
    pool.close()


SAMPLES = Path(__file__).parents[2] / "samples" / "cluster"
SCRIPTS = sorted(SAMPLES.glob("*.sh"))


@pytest.fixture(scope="module")
def objects():
    """Kubernetes' objects, by kind and name."""
    documents = yaml.safe_load_all((SAMPLES / "kubernetes.yaml").read_text())
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shell_reads_the_script(script):
    done = ran(["bash", "-n", script])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_without_what_it_needs_says_so_and_starts_nothing(script, tmp_path):
    done = ran(["bash", script], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHON": "/bin/false"})
    assert done.returncode
    assert re.search("HOSTS|SLURM_JOB_ID", done.stderr)


def test_program_parses():
    ast.parse((SAMPLES / "slurm_jobqueue.py").read_text())


def test_options_of_the_workers_are_dasks():
    why = "the extra 'cluster' is not installed"
    known = set()
    for name in ("dask_worker", "dask_scheduler"):
        command = pytest.importorskip(f"distributed.cli.{name}", reason=why).main
        known |= {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    called = re.compile(r"distributed\.cli\.dask_\w+(.*?)(?:&\n|\n\n|env:|ports:)", re.DOTALL)
    for path in (*SCRIPTS, SAMPLES / "kubernetes.yaml"):
        for command in called.findall(path.read_text()):
            used = set(re.findall(r"--[a-z-]+", command))
            assert used <= known, path.name
            assert used


def test_objects_of_kubernetes_belong_together(objects):
    workers = objects["StatefulSet", "gpuprof-worker"]["spec"]
    container = workers["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert "--resources=GPU=1" in container["command"]
    job = objects["Job", "gpuprof"]["spec"]["template"]["spec"]
    assert f"wait_for_workers({workers['replicas']}," in job["initContainers"][0]["command"][-1]
    service = objects["Service", "gpuprof-scheduler"]
    address = f"tcp://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert address in container["command"]
    assert address in job["containers"][0]["command"]
    labels = objects["Deployment", "gpuprof-scheduler"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    images = set(re.findall("image: (.*)", (SAMPLES / "kubernetes.yaml").read_text()))
    assert len(images) == 1
