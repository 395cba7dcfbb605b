# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The files of samples/cluster: scripts that a shell reads, and objects that belong together."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
import yaml

SAMPLES = Path(__file__).parents[2] / "samples" / "cluster"
SCRIPTS = sorted(SAMPLES.glob("*.sh"))


@pytest.fixture(scope="module")
def objects():
    """Kubernetes' objects, by kind and name."""
    documents = yaml.safe_load_all((SAMPLES / "kubernetes.yaml").read_text())
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shell_reads_the_script(script):
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_without_what_it_needs_says_so_and_starts_nothing(script, tmp_path):
    done = subprocess.run(
        ["bash", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHON": "/bin/false"},
    )
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
