# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Measures on GPUs that Slurm gives one at a time: dask-jobqueue asks for a job a worker.

    python samples/cluster/slurm_jobqueue.py 16 gemm --all -o fleet

The first argument says how many workers to wait for; the others go to gpuprof. Needs dask-jobqueue where this
runs, a login node for example, and gpuprof with its extra `cluster` on all nodes.
"""

import subprocess
import sys

from dask_jobqueue import SLURMCluster


def main(workers: int, arguments: list[str]) -> int:
    """Start workers, measure on them, and give them back.

    Args:
        workers: How many.
        arguments: What gpuprof is to do.

    Returns:
        gpuprof's exit status.
    """
    cluster = SLURMCluster(
        # One case at a time on one GPU, which Slurm lets the job see alone.
        cores=1,
        processes=1,
        job_cpu=4,
        memory="16GB",
        walltime="00:30:00",
        job_extra_directives=["--gpus=1"],
        worker_extra_args=["--resources", "GPU=1"],
        scheduler_options={"dashboard": False},
    )
    with cluster:
        cluster.scale(jobs=workers)
        cluster.wait_for_workers(workers, timeout=1800)
        command = [sys.executable, "-m", "gpuprof", *arguments, "--cluster", cluster.scheduler_address]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
