#!/usr/bin/env bash
# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
#
# Measures on the GPUs of one Slurm job: a Dask worker a task, and a task a GPU.
#
#     sbatch --nodes 4 samples/cluster/slurm.sh gemm --all -o fleet
#
# Nodes for gpuprof alone: kernels of others on the same GPU, or the same power supply, are what it would measure.
#SBATCH --job-name=gpuprof
#SBATCH --exclusive
#SBATCH --gpus-per-task=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=00:30:00
set -euo pipefail

python=${PYTHON:-python}
# The scheduler tells its address in a file that all nodes see.
file=$PWD/dask-$SLURM_JOB_ID.json
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -f "$file"' EXIT

"$python" -m distributed.cli.dask_scheduler --scheduler-file "$file" --no-dashboard &

# --gpus-per-task lets each task see its own GPU only. SLURM_PROCID is unknown here, and known to each task.
# shellcheck disable=SC2016
srun --ntasks "$SLURM_NTASKS" bash -c '
    exec "$0" -m distributed.cli.dask_worker --scheduler-file "$1" --name "$(hostname)-$SLURM_LOCALID" \
        --nthreads 1 --memory-limit 0 --resources GPU=1 --death-timeout 120 --no-dashboard
' "$python" "$file" &

"$python" - "$file" "$SLURM_NTASKS" <<'WAIT'
import sys
from distributed import Client

Client(scheduler_file=sys.argv[1]).wait_for_workers(int(sys.argv[2]), timeout=300)
WAIT
"$python" -m gpuprof "$@" --cluster "$file"
