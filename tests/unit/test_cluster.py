# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Workers of a Dask cluster do what processes of this machine do, and losing one loses no row."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from fake_runs import Watcher, keeper, options, request_of
from processes import wait_for, workers_of
from unit_support import write_transpose_kernel

from gpuprof import __version__, profile, tune
from gpuprof.commands.doctor import examine
from gpuprof.errors import BackendUnavailable, ExitCode, InputError, ToolError
from gpuprof.measure import side_by_side
from gpuprof.measure.cluster import connection as connections
from gpuprof.measure.cluster.connection import Member
from gpuprof.measure.cluster.workers import WorkerSlot
from gpuprof.measure.run import measure
from gpuprof.measure.side_by_side import checked_software, sites_in
from gpuprof.measure.starting import child_environment
from gpuprof.reading import read_run
from gpuprof.records import replace

pytestmark = pytest.mark.deep

distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

MEMBER = Member("tcp://10.0.0.7:4000", "tcp://10.0.0.7:3999", "seven", "node7", 1, 1)


def after(count, action):
    """Watches a run, and does something after so many cases."""
    return Watcher(lambda done: action() if done == count else None)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two workers, each a process with its nanny, which starts it again."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0, silence_logs=50
    ) as made:
        yield made


@pytest.fixture
def run_on(tmp_path):
    """Compiles a few kernels on a cluster; gives the run, which its file holds too."""

    def run(address, count=4, device="none:h200", watcher=None):
        request = request_of(tmp_path, [f"k{number}" for number in range(count)])
        path = tmp_path / "results.json"
        how = options(device=device, cluster=address)
        result = measure(request, how, watcher or Watcher(), keep=keeper(path))
        assert read_run(path) == result
        return result

    return run


def test_same_results_from_one_process_a_device_list_and_a_cluster(tmp_path):
    kernel = write_transpose_kernel(tmp_path, "mine")
    cards = ["sim:h200", "sim:a100"]
    alone = profile(kernel, sizes=64, device=cards[1]).record
    run = profile(kernel, sizes=64, device=cards, save=tmp_path / "listed.json")
    assert [case.device for case in run.cases] == [*run.devices] == ["NVIDIA H200", "NVIDIA A100-SXM4-80GB"]
    listed = run.record
    fleet = profile(kernel, sizes=64, device=cards, cluster="local:2").record
    assert read_run(tmp_path / "listed.json") == listed
    assert listed.cases == fleet.cases
    assert listed.devices == fleet.devices
    assert listed.environment == fleet.environment
    assert [replace(case, device=1, planned=1) for case in alone.cases] == [
        case for case in fleet.cases if case.device == 1
    ]


def test_a_search_finds_the_same_on_a_cluster(cluster):
    asked = {"kernels": {"smem_unrolled": {"TILE": [32, 64]}}, "sizes": 64, "device": "sim:h200"}
    here, there = (
        tune("transpose", **asked, cluster=where).run.record for where in (None, cluster.scheduler_address)
    )
    assert len(here.cases) == 2
    assert there.cases == here.cases
    assert there.tuning == here.tuning


def test_arrays_of_a_program_travel(cluster, tmp_path):
    np = pytest.importorskip("numpy")
    source = """
extern "C" __global__ void twice(const float *x, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2.0f * x[i];
}
"""
    path = tmp_path / "twice.cu"
    path.write_text(source)
    x = np.arange(100, dtype=np.float32)
    run = profile(
        path,
        args={"x": x, "y": None, "n": 100},
        expect={"y": 2 * x},
        grid=1,
        block=128,
        device="sim:h200",
        cluster=cluster.scheduler_address,
    )
    assert [case.outcome for case in run.cases] == ["ok"]


def test_killed_worker_comes_back_and_nothing_is_lost(cluster, run_on):
    def kill():
        for pid in distributed.Client(cluster, set_as_default=False).run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)

    run = run_on(cluster.scheduler_address, count=6, watcher=after(2, kill))
    assert [case.outcome for case in run.cases] == ["skipped"] * 6
    assert all(case.resources for case in run.cases)
    again = [case for case in run.cases if any("second attempt" in remark for remark in case.remarks)]
    assert len(again) == 1
    assert run.places[0].lost is None


def test_worker_that_does_not_come_back_leaves_its_cases_to_others(monkeypatch, run_on, tmp_path):
    monkeypatch.setattr(WorkerSlot.__init__, "__kwdefaults__", {"patience_s": 1.0})
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as made:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", made.scheduler_address]
        command += ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
        workers = [subprocess.Popen(command, **quiet, env=child_environment()) for _ in range(2)]
        try:
            distributed.Client(made, set_as_default=False).wait_for_workers(2, timeout=60)
            watcher = after(1, workers[0].kill)
            run = run_on(made.scheduler_address, count=5, device="sim:h200", watcher=watcher)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    assert [case.outcome for case in run.cases] == ["ok"] * 5


def test_lost_cluster_leaves_a_row_for_every_case(monkeypatch, run_on):
    made = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, memory_limit=0, silence_logs=50
    )

    def close():
        # Not before: a busy machine's worker is silent for seconds too.
        monkeypatch.setattr(connections, "_SILENCE_S", 3.0)
        made.close(timeout=5)

    run = run_on(made.scheduler_address, count=5, watcher=after(2, close))
    # Which two is not said: on a busy machine a later case may end before an earlier one.
    ended, lost = ([case for case in run.cases if case.outcome == word] for word in ("skipped", "failed"))
    assert (len(ended) in (2, 3), len(ended) + len(lost)) == (True, 5), run.cases
    assert all("device was lost" in case.reason for case in lost)
    assert run.complete
    assert run.places[0].lost


def test_no_process_stays_behind(cluster, run_on):
    run_on(cluster.scheduler_address, count=2, device="none:h200,none:a100")
    client = distributed.Client(cluster, set_as_default=False)
    parents = client.run(os.getpid).values()
    wait_for(lambda: not workers_of(*parents), 300)


def test_cluster_without_gpus_is_told_so(cluster):
    with pytest.raises(BackendUnavailable, match="offers a GPU") as error:
        sites_in(cluster.scheduler_address, "auto")
    assert "--resources GPU=1" in error.value.fix


def test_gpus_are_sites_of_their_own(monkeypatch):
    members = [replace(MEMBER, gpus=2), replace(MEMBER, address="b", name="eight", host="node8")]
    found = side_by_side._gpus(object(), members)
    assert [(site.selector, site.host) for site in found] == [("0", "node7"), ("1", "node7"), ("0", "node8")]


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        ({"gpuprof": "0.0.1", "host": "node7"}, InputError, f"has gpuprof 0.0.1, and this is {__version__}"),
        ("ModuleNotFoundError: No module named 'gpuprof'", BackendUnavailable, "cannot use gpuprof"),
    ],
)
def test_worker_with_another_gpuprof_is_refused(answer, kind, complaint):
    with pytest.raises(kind, match=complaint):
        checked_software({MEMBER.address: answer}, [MEMBER])


def test_fleet_of_one_version_is_taken_whatever_its_numpy():
    answers = {MEMBER.address: {"gpuprof": __version__, "numpy": "2.0.0", "host": "node7"}}
    assert checked_software(answers, [MEMBER]) == answers


@pytest.mark.parametrize(
    ("address", "device", "words"),
    [
        *(
            (address, "sim", "--cluster")
            for address in ("local:0", "local:x", "local:", "nowhere", "", "host:port")
        ),
        ("local:1", "0,1", "offer their GPUs themselves"),
    ],
)
def test_address_or_device_that_makes_no_sense_is_bad_input(address, device, words):
    with pytest.raises(InputError, match=words):
        sites_in(address, device)


def test_misspelt_cluster_of_this_machine_is_told_at_once(monkeypatch):
    def unknown(host, port):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(InputError, match="--cluster loca:2 names no machine") as caught:
        sites_in("loca:2", "sim")
    assert caught.value.fix == "Did you mean local:2?"


def test_local_workers_leave_ctrl_c_to_who_started_them():
    connection = connections.connect("local:1", gpus=False)
    try:
        (blocked,) = connection.client.run(signal.pthread_sigmask, signal.SIG_BLOCK, []).values()
    finally:
        connection.close()
    assert signal.SIGINT in blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_local_workers_need_a_gpu_each(monkeypatch):
    monkeypatch.setattr(connections, "_gpus_here", lambda: ["0"])
    with pytest.raises(BackendUnavailable, match="needs a GPU for each worker; this machine has 1 GPU"):
        connections.connect("local:2", gpus=True)


def test_without_dask_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ToolError) as error:
        sites_in("local:1", "sim")
    assert "pip install '.[cluster]' in gpuprof's checkout" in error.value.fix


def test_doctor_tells_of_a_cluster(cluster, capsys):
    examine(0, cluster.scheduler_address, as_json=True)
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["Cluster"]["state"] == "ok"
    assert "2 workers on 1 machine" in checks["Cluster"]["text"]
    assert checks["Cluster, gpuprof"]["text"] == f"{__version__} everywhere"
    assert checks["Cluster, GPUs"]["state"] == "absent"


def test_doctor_fails_where_no_cluster_answers(monkeypatch, capsys):
    monkeypatch.setattr(connections, "_CONNECT_S", 1.0)
    assert examine(0, "tcp://127.0.0.1:9", as_json=True) == ExitCode.CASES_FAILED
    document = json.loads(capsys.readouterr().out)
    assert not document["usable"]
    (check,) = (check for check in document["checks"] if check["name"] == "Cluster")
    assert check["state"] == "broken"
