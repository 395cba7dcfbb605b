# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Random kernels whose blocks exchange words through clusters' shared memory, against NumPy.

Every kernel is run as it is, and once without one of its barriers, which must be found.
"""

from dataclasses import dataclass
from string import Template

import numpy as np
import pytest
from cluster_sources import clustered
from executor_harness import caught, run_cuda

from gpuprof.executor import FaultKind

pytestmark = pytest.mark.deep

SEEDS = range(16)

SOURCE = """extern "C" __global__ void __cluster_dims__($X, $Y, $Z) k(const int *from, int *values,
                                                                   int rounds) {
    __shared__ int words[2][$THREADS];
    __shared__ u64 all;
    const int t = threadIdx.x, me = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (t == 0) {
        init(&all, $COUNT * $THREADS);
        fence();
    }
    meet();
    int value = values[me * $THREADS + t];
    for (int i = 0; i < rounds; ++i) {
        int *own = words[$BUFFER];
        own[t] = value;
        $BEFORE
        const int where = from[i * $THREADS + t], other = (rank() + where / $THREADS) % $COUNT;
        value = 3 * value + $READ;
        $AFTER
    }
    values[me * $THREADS + t] = value;
    meet();
}
"""

#: Ways in which all threads of a cluster meet.
BARRIERS = {
    "together": "meet();",
    "split": """asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        const int early = own[t];
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
        value = early;""",
    "fenced": """asm volatile("fence.acq_rel.cluster;\\n\\tbarrier.cluster.arrive.relaxed;" ::: "memory");
        asm volatile("barrier.cluster.wait;" ::: "memory");""",
    "branches": """if (t % 3)
            asm volatile("barrier.cluster.arrive;\\n\\tbarrier.cluster.wait;" ::: "memory");
        else
            asm volatile("barrier.cluster.arrive;\\n\\tbarrier.cluster.wait;" ::: "memory");""",
    "mbarrier": """for (int b = 0; b < $COUNT; ++b)
            arrive_remote(&all, b);
        wait(&all, i % 2);""",
    "one for its block": """__syncthreads();
        meet();""",
}
READS = {
    "shared": "__float_as_int(remote(mapped(own + where % $THREADS, other)))",
    "generic": "*pointer(own + where % $THREADS, other)",
    "atomic": "atomicAdd(pointer(own + where % $THREADS, other), 0)",
}


@dataclass(frozen=True)
class Kernel:
    """A random kernel.

    `broken` lacks one of its barriers. `source_of` has, for each round and thread, the number, among those of
    the cluster, of whose word it reads, counted from its own block on.
    """

    source: str
    broken: str
    cluster: tuple[int, int, int]
    threads: int
    source_of: np.ndarray


def random_kernel(seed: int) -> Kernel:
    rng = np.random.default_rng(seed)
    cluster = [(2, 1, 1), (3, 1, 1), (2, 2, 1), (1, 5, 1), (2, 1, 3), (7, 1, 1), (2, 2, 2)][seed % 7]
    count, threads = int(np.prod(cluster)), int(rng.integers(20, 140))
    before = list(BARRIERS)[seed % len(BARRIERS)]
    twice = before == "mbarrier" or bool(rng.integers(2))  # then two buffers make the second barrier needless
    after = str(rng.choice([name for name in BARRIERS if name not in ("mbarrier", "split")]))
    words = {
        "BUFFER": "i % 2" if twice else "0",
        "COUNT": str(count),
        "THREADS": str(threads),
        **dict(zip("XYZ", map(str, cluster), strict=True)),
    }
    # What a thread reads between arrival and wait, atomics of others would change.
    read_as = str(rng.choice([name for name in READS if (before, name) != ("split", "atomic")]))
    parts = {"BEFORE": BARRIERS[before], "AFTER": "" if twice else BARRIERS[after]}
    dropped = "BEFORE" if twice or rng.integers(2) else "AFTER"

    def made(parts: dict[str, str]) -> str:
        read = {"READ": READS[read_as]}
        return clustered(Template(Template(SOURCE).safe_substitute(parts | read)).substitute(words))

    rounds = 3
    source_of = rng.integers(0, count * threads, (rounds, threads)).astype(np.int32)
    return Kernel(made(parts), made(parts | {dropped: "__syncthreads();"}), cluster, threads, source_of)


def expected(kernel: Kernel, values: np.ndarray, grid: tuple[int, int, int]) -> np.ndarray:
    """Return what the kernel leaves of the values of a grid, of shape (z, y, x, threads)."""
    x, y, z = kernel.cluster
    result = values.copy()
    for corner in np.ndindex(grid[2] // z, grid[1] // y, grid[0] // x):
        box = tuple(slice(i * n, (i + 1) * n) for i, n in zip(corner, (z, y, x), strict=True))
        words = result[box].reshape(-1, kernel.threads)
        blocks = np.arange(len(words))[:, None]
        for of in kernel.source_of:
            found = words[(blocks + of // kernel.threads) % len(words), of % kernel.threads]
            words = 3 * words + found
        result[box] = words.reshape(z, y, x, -1)
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_exchange_words(seed):
    kernel = random_kernel(seed)
    grid = tuple(
        n * size for n, size in zip((3, 1, 2) if seed % 2 else (2, 2, 1), kernel.cluster, strict=True)
    )
    shape = (grid[2], grid[1], grid[0], kernel.threads)
    values = np.random.default_rng(seed).integers(-1000, 1000, shape).astype(np.int32)
    options = {"scalars": (len(kernel.source_of),), "grid": grid, "block": (kernel.threads, 1, 1)}
    (_, out), _ = run_cuda(kernel.source, kernel.source_of, values, **options)
    np.testing.assert_array_equal(out.array(), expected(kernel, values, grid))
    fault = caught(kernel.broken, kernel.source_of, values, **options)
    assert fault.kind == FaultKind.SHARED_RACE
    assert "of rank" in str(fault)
