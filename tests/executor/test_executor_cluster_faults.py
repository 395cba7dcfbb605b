# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What kernels can do wrong in clusters of several blocks: each fault is planted beside a twin without it."""

import re

import numpy as np
import pytest
from cluster_sources import clustered
from executor_harness import caught, cuda_program, line_of, run_cuda

from gpuprof.backends.sim.told_faults import told
from gpuprof.executor import FaultKind

PAIR = """extern "C" __global__ void __cluster_dims__(2, 1, 1) k(float *out) {
    __shared__ __align__(128) float row[64];
    __shared__ u64 full, done;
    const int t = threadIdx.x, other = rank() ^ 1;
BODY
}
"""


def pair(body: str) -> str:
    """Return a kernel of two blocks of a cluster."""
    return clustered(PAIR.replace("BODY", body))


#: What must be there, and what goes wrong without it: the line that is to blame, and the words for it.
PLANTED = {
    "barrier before a remote read": (
        """
    row[t] = t; // other
    meet(); // the fence
    out[blockIdx.x * 64 + t] = pointer(row, other)[t ^ 1]; // planted
    meet();""",
        "    meet(); // the fence\n",
        FaultKind.SHARED_RACE,
        r"reads byte \d+ of the shared memory of rank [01], which .* wrote since the last barrier",
    ),
    "barrier before the owner writes again": (
        """
    row[t] = t;
    meet();
    out[blockIdx.x * 64 + t] = pointer(row, other)[t]; // other
    meet(); // the fence
    row[t] = 7; // planted""",
        "    meet(); // the fence\n",
        FaultKind.SHARED_RACE,
        r"writes byte \d+ of the shared memory of rank [01], which .* read since the last barrier",
    ),
    "barrier after a remote store": (
        """
    row[t] = 0;
    meet();
    pointer(row, other)[t] = 3; // other
    meet(); // the fence
    out[blockIdx.x * 64 + t] = row[t]; // planted
    meet();""",
        "    meet(); // the fence\n",
        FaultKind.SHARED_RACE,
        r"reads byte \d+ of the shared memory of rank [01], which .* wrote since the last barrier",
    ),
    "barrier of the cluster, not of the block": (
        """
    row[t] = t; // other
    meet();__syncthreads();
    out[blockIdx.x * 64 + t] = pointer(row, other)[63 - t]; // planted
    meet();""",
        "    meet();__syncthreads();\n",
        FaultKind.SHARED_RACE,
        r"reads byte \d+ of the shared memory of rank [01], which .* wrote since the last barrier",
    ),
    "barrier before the end": (
        """
    row[t] = t;
    meet();
    out[blockIdx.x * 64 + t] = pointer(row, other)[t]; // planted
    meet(); // the fence""",
        "    meet(); // the fence",
        FaultKind.OUT_OF_BOUNDS,
        r"accesses shared memory of block \([01], 0, 0\), which ends without waiting for that",
    ),
    "wait for what others send": (
        """
    if (t == 0)
        init(&full, 1);
    meet();
    if (t == 0)
        expect(&full, 256);
    send(row + t, 2, &full, other);
    wait(&full, 0); // the fence
""",
        "    wait(&full, 0); // the fence\n",
        FaultKind.OUT_OF_BOUNDS,
        r"accesses shared memory of block \([01], 0, 0\), which ends without waiting for that",
    ),
    "wait for a multicast": (
        """
    if (t == 0)
        init(&full, 1);
    meet();
    if (t == 0)
        expect(&full, 256);
    if (t == 0 && rank() == 0)
        multicast(row, out, 256, &full, 3);
    if (rank() == 0)
        wait(&full, 0);
    if (rank() == 1)
        wait(&full, 0); // the fence
""",
        "    if (rank() == 1)\n        wait(&full, 0); // the fence\n",
        FaultKind.OUT_OF_BOUNDS,
        r"accesses shared memory of block \(1, 0, 0\), which ends without waiting for that",
    ),
    "wait of all who read a multicast": (
        """
    if (t == 0)
        init(&full, 1);
    meet();
    if (t == 0)
        expect(&full, 256);
    if (t == 0 && rank() == 0)
        multicast(row, out, 256, &full, 3);
    if (t < 32)
        wait(&full, 0);
    __syncthreads(); // the fence
    if (row[t] > 0) // planted
        out[t] = 1;
    meet();""",
        "    __syncthreads(); // the fence\n",
        FaultKind.ASYNC_COPY,
        r"reads byte \d+ .* where a bulk copy arrived that it did not wait for, started by line COPY",
    ),
    "word that a copy was taken": (
        """
    if (t == 0) {
        init(&full, 1);
        init(&done, 1);
    }
    if (rank() == 0)
        row[t] = t;
    asm volatile("fence.proxy.async;" ::: "memory");
    meet();
    if (rank() == 1) {
        if (t == 0)
            expect(&full, 256);
        wait(&full, 0);
        out[t] = row[t];
        __syncwarp();
        if (t == 0)
            arrive_remote(&done, 0);
    } else {
        if (t == 0)
            pass(row, row, 256, &full, 1);
        wait(&done, 0); // the fence
    }
""",
        "        wait(&done, 0); // the fence\n",
        FaultKind.OUT_OF_BOUNDS,
        r"accesses shared memory of block \(0, 0, 0\), which ends without waiting for that",
    ),
    "fence before a relaxed arrival": (
        """
    row[t] = t; // other
    __threadfence(); // the fence
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 64 + t] = pointer(row, other)[t]; // planted
    meet();""",
        "    __threadfence(); // the fence\n",
        FaultKind.SHARED_RACE,
        r"reads byte \d+ of the shared memory of rank [01], which",
    ),
    "wait for what was sent": (
        """
    if (t == 0) {
        init(&full, 1);
        fence();
        expect(&full, 256);
    }
    meet();
    send(row + t, t, &full, other);
    wait(&full, 0); // the fence
    out[blockIdx.x * 64 + t] = row[t]; // planted
    meet();""",
        "    wait(&full, 0); // the fence\n",
        FaultKind.ASYNC_COPY,
        r"reads byte \d+ .* to which the copy that line \d+ started is still in flight",
    ),
    "wait before more is sent to one place": (
        """
    if (t == 0) {
        init(&full, 1);
        init(&done, 1);
        fence();
        expect(&full, 256);
        expect(&done, 256);
    }
    meet();
    send(row + t, t, &full, other);
    wait(&full, 0); meet(); // the fence
    send(row + t, 2 * t, &done, other);
    wait(&done, 0);
    out[blockIdx.x * 64 + t] = row[t];
    meet();""",
        "    wait(&full, 0); meet(); // the fence\n",
        FaultKind.ASYNC_COPY,
        r"starts an asynchronous store to byte \d+ .* to which the copy that line \d+ started is still",
    ),
    "barrier before others use an mbarrier": (
        """
    if (t == 0) {
        init(&full, 64);
        fence();
    }
    meet(); // the fence
    arrive_remote(&full, other);
    wait(&full, 0);
    meet();""",
        "    meet(); // the fence\n",
        FaultKind.SHARED_RACE,
        r"uses the mbarrier at byte \d+ of the shared memory of rank [01], which",
    ),
    "wait until the receiver is ready": (
        """
    row[t] = 1;
    if (t == 0) {
        init(&full, 1);
        init(&done, 64);
        fence();
        expect(&full, 256);
    }
    meet();
    out[blockIdx.x * 64 + t] = row[t]; // other
    arrive_remote(&done, other);
    wait(&done, 0); // the fence
    send(row + t, t, &full, other);
    wait(&full, 0);
    out[blockIdx.x * 64 + t] += row[t];
    meet();""",
        "    wait(&done, 0); // the fence\n",
        FaultKind.SHARED_RACE,
        r"starts an asynchronous store to byte \d+ of the shared memory of rank [01], which .* read",
    ),
}


@pytest.mark.parametrize("missing", PLANTED)
def test_what_is_missing_is_found(missing):
    body, part, kind, text = PLANTED[missing]
    arguments = np.zeros(128, np.float32)
    shape = {"grid": (2, 1, 1), "block": (64, 1, 1)}
    run_cuda(pair(body), arguments, **shape)
    broken = pair(body.replace(part, "    __syncthreads();\n" if "meet();__syncthreads" in part else ""))
    fault = caught(broken, arguments, **shape)
    assert fault.kind == kind
    assert re.search(text.replace("COPY", str(line_of(broken, "multicast::cluster"))), str(fault)), fault
    if kind is FaultKind.SHARED_RACE:
        found = str(told(fault, {fault.kernel: cuda_program(broken)}, []))
        met, line = (
            line_of(broken, "mbarrier.init" if "init(&full, 64)" in body else "// other"),
            fault.source_line,
        )
        where = (
            f"between lines {met} and {line}" if met < line else f"behind line {met}, before line {line} runs"
        )
        assert re.search(r"of `\w+`", found)
        assert f" in line {met}" in found
        assert f"a barrier of the cluster that orders them is missing {where}" in found
    if "// planted" in broken:
        assert fault.source_line == line_of(broken, "// planted")


#: Mistakes that no barrier mends: the line that is to blame, and the words for it.
WRONG = {
    "rank outside the cluster": (
        "    row[t] = 0; meet();\n    out[t] = remote(mapped(row, t == 40 ? 2 : 0));",
        "ld.shared::cluster",
        FaultKind.OUT_OF_BOUNDS,
        "which is an address of rank 2; the cluster has 2 blocks",
    ),
    "beyond another block's memory": (
        "    row[t] = 0; meet();\n    out[t] = remote(mapped(row + 5000, other));",
        "ld.shared::cluster",
        FaultKind.OUT_OF_BOUNDS,
        "accesses 4 bytes at byte 20000 of the shared memory of rank 1, which has",
    ),
    "own instruction, other address": (
        """    row[t] = 0; meet();
    asm volatile("ld.shared::cta.f32 %0, [%1];" : "=f"(out[t]) : "r"(mapped(row + t, other))); // planted""",
        "// planted",
        FaultKind.OUT_OF_BOUNDS,
        "accesses shared memory of its own block at 0x1000",
    ),
    "misaligned": (
        "    row[t] = 0; meet();\n    out[t] = remote(mapped(row, other) + 2);",
        "ld.shared::cluster",
        FaultKind.MISALIGNED,
        "accesses 4 bytes at byte 2 of the shared memory of rank 1, which is not aligned to 4 there",
    ),
    "memory that nobody wrote": (
        "    meet();\n    out[t] = remote(mapped(row + t, other));",
        "ld.shared::cluster",
        FaultKind.UNINITIALISED_SHARED,
        "reads byte 0 of the shared memory of rank 1, which was never written",
    ),
    "wait without arrival": (
        '    asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // planted',
        "// planted",
        FaultKind.BARRIER,
        "waits at the barrier of its cluster, but has not arrived there",
    ),
    "two arrivals": (
        """    asm volatile("barrier.cluster.arrive;" ::: "memory");
    asm volatile("barrier.cluster.arrive;" ::: "memory"); // planted""",
        "// planted",
        FaultKind.BARRIER,
        "arrives at the barrier of its cluster again, before it has waited there",
    ),
    "arrival in divergent code": (
        """    if (t % 2)
        asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); // planted
    row[t] = 1;
    __syncthreads();
    out[t] = row[t ^ 1];""",
        "// planted",
        FaultKind.BARRIER,
        "is in divergent code",
    ),
    "an mbarrier in another block than the data": (
        """    if (t == 0) {
        init(&full, 1);
        fence();
    }
    meet();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" // planted
                 ::"r"(mapped(row, other)), "f"(1.0f), "r"(at(&full)) : "memory");""",
        "// planted",
        FaultKind.MBARRIER,
        "stores to another block than that of its mbarrier",
    ),
    "multicast to a block that is not there": (
        """    if (t == 0) {
        init(&full, 1);
        fence();
        multicast(row, out, 256, &full, 7);
    }""",
        "multicast::cluster",
        FaultKind.OUT_OF_BOUNDS,
        "copies to the blocks of mask 0x7, but its cluster has 2",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_told(mistake):
    body, line, kind, text = WRONG[mistake]
    source = pair(body)
    fault = caught(source, np.zeros(128, np.float32), grid=(2, 1, 1), block=(64, 1, 1))
    assert fault.kind == kind
    assert text in str(fault)
    assert fault.source_line == line_of(source, line)


def test_a_block_that_has_ended_is_not_touched():
    source = pair("""
    row[t] = t;
    meet();
    if (rank() == 0)
        return;
    __syncthreads();
    out[t] = pointer(row, 0)[t]; // planted""")
    fault = caught(source, np.zeros(128, np.float32), grid=(2, 1, 1), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.OUT_OF_BOUNDS, line_of(source, "// planted"))
    assert fault.block == (1, 0, 0)
    assert "of block (0, 0, 0), which ends" in str(fault)


def test_an_undefined_value_of_another_block_is_followed():
    source = pair("""
    if (t > 0)
        row[t] = t;
    meet();
    const float value = pointer(row, other)[t]; // reads
    out[blockIdx.x * 64 + t] = t > 0 CONDITION ? value : 0; // stores
    meet();""")
    arguments = np.zeros(128, np.float32)
    shape = {"grid": (2, 1, 1), "block": (64, 1, 1), "follow_undefined": True}
    (out,), result = run_cuda(source.replace("CONDITION", ""), arguments, **shape)
    np.testing.assert_array_equal(out.array(), [*range(64), *range(64)])
    assert "which was never written" in result.remarks[0]
    broken = source.replace("CONDITION", "|| rank() == 1")
    fault = caught(broken, arguments, **shape)
    assert fault.kind == FaultKind.UNINITIALISED_SHARED
    assert (fault.block, fault.thread) == ((1, 0, 0), (0, 0, 0))
    assert fault.source_line == line_of(broken, "// stores")


def test_a_block_that_is_stuck_names_who_waits_for_it():
    source = pair("""
    row[t] = t;
    if (rank() == 1 && t < 32)
        __syncthreads(); // stuck
    meet();
    out[blockIdx.x * 64 + t] = row[t];""")
    fault = caught(source, np.zeros(128, np.float32), grid=(2, 1, 1), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.BARRIER, line_of(source, "// stuck"))
    assert (fault.block, fault.thread) == ((1, 0, 0), (32, 0, 0))
    assert "waits at; thread (0, 0, 0) of block (0, 0, 0) waits at the barrier of their cluster" in str(fault)
