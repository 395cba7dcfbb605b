#!/usr/bin/env bash
# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
#
# Measures on machines that ssh reaches: a Dask worker for each GPU of each machine, the scheduler here.
#
#     HOSTS="node1 node2" samples/cluster/ssh.sh gemm --all -o fleet
#
# Every machine needs this gpuprof with its extra `cluster`, in the same place as here (PYTHON says where), and
# must reach this one at ADDRESS:PORT. What stands behind the script's name goes to gpuprof.
set -euo pipefail

hosts=${HOSTS:?name the machines: HOSTS=\"node1 node2\"}
python=${PYTHON:-$(command -v python)}
port=${PORT:-8786}
address=${ADDRESS:-$(hostname -f)}

# All that was started ends with this script, whatever ends it: a worker whose scheduler is gone gives up, too.
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait' EXIT

"$python" -m distributed.cli.dask_scheduler --host 0.0.0.0 --port "$port" --no-dashboard &
pids+=($!)

workers=0
for host in $hosts; do
    gpus=$(ssh "$host" nvidia-smi --query-gpu=index --format=csv,noheader)
    for gpu in $gpus; do
        # One GPU a worker: it sees no other, offers it as a resource, and takes one case at a time.
        ssh -tt "$host" "CUDA_VISIBLE_DEVICES=$gpu '$python' -m distributed.cli.dask_worker \
            'tcp://$address:$port' --name '$host-$gpu' --nthreads 1 --memory-limit 0 --resources GPU=1 \
            --death-timeout 60 --no-dashboard" </dev/null &
        pids+=($!)
        workers=$((workers + 1))
    done
done

# gpuprof measures on the workers that are there when it begins.
"$python" - "tcp://$address:$port" "$workers" <<'WAIT'
import sys
from distributed import Client

Client(sys.argv[1]).wait_for_workers(int(sys.argv[2]), timeout=120)
WAIT
"$python" -m gpuprof doctor --cluster "tcp://$address:$port"
"$python" -m gpuprof "$@" --cluster "tcp://$address:$port"
