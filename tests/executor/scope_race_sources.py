# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels in which one word decides whether what threads do is ordered: a scope, a fence, a meeting.

Written as the pairs of `global_race_sources.py`. The race of some lies in shared memory: `SHARED` names them.
"""

from global_race_sources import Pair

_WORDS = """
__device__ unsigned flags[8];
__device__ unsigned look(unsigned *word) { return *(volatile unsigned *)word; }
__device__ void put(unsigned *word, unsigned value) { *(volatile unsigned *)word = value; } // meets
"""


def _message(store: str, load: str, before: str = "", after: str = "", grid: int = 2) -> Pair:
    """Return a message from the first thread of block 0 to that of the last one, or to the next warp."""
    reader = "t == 0 && w == 1" if grid > 1 else "t == 32"
    body = f"""
    if (t == 0 && w == 0) {{
        b[0] = a[0]; // meets
        {before}
        asm volatile("{store}.global.u32 [%0], 1;" ::"l"(flags) : "memory"); // meets
    }}
    if ({reader}) {{
        unsigned found;
        do
            asm volatile("{load}.global.u32 %0, [%1];" // meets
                         : "=r"(found) : "l"(flags) : "memory");
        while (!found);
        {after}
        c[0] = b[0]; // meets
    }}"""
    return Pair(body, grid=grid, before=_WORDS)


PAIRS: dict[str, Pair] = {
    "relaxed store of a block's scope to another block": _message(
        "st.relaxed.«cta¦gpu»", "ld.relaxed.gpu", "__threadfence();", "__threadfence();"
    ),
    "relaxed load of a block's scope from another block": _message(
        "st.relaxed.gpu", "ld.relaxed.«cta¦gpu»", "__threadfence();", "__threadfence();"
    ),
    "relaxed load in a block without fence": _message(
        "st.relaxed.cta", "ld.relaxed.cta", "__threadfence_block();", "«¦__threadfence_block();»", grid=1
    ),
    "release to a cluster that is a block": _message("st.release.«cluster¦gpu»", "ld.acquire.gpu"),
    "acquire in a cluster that is a block": _message("st.release.gpu", "ld.acquire.«cluster¦gpu»"),
    "fence of a cluster that is a block": _message(
        "st.relaxed.gpu", "ld.acquire.gpu", 'asm volatile("fence.acq_rel.«cluster¦gpu»;" ::: "memory");'
    ),
    "release whose word another block overwrites": Pair(
        """
    if (t == 0 && w == 0) {
        b[0] = a[0]; // meets
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags) : "memory");
    }
    if (t == 0 && w == 1) {
        «while (look(flags) != 1)
            ;
        asm volatile("st.relaxed.gpu.global.u32 [%0], 2;" ::"l"(flags) : "memory");¦while (
            atomicCAS(flags, 1u, 2u) != 1)
            ;»
    }
    if (t == 0 && w == 2) {
        unsigned found;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flags) : "memory");
        while (found != 2);
        c[0] = b[0]; // meets
    }""",
        grid=3,
        before=_WORDS,
    ),
    "fence and signal by two lanes": Pair(
        """
    if (w == 0) {
        if (t == 0) {
            b[0] = a[0]; // meets
            __threadfence();
        }
        «¦__syncwarp();»
        if (t == 1) {
            __threadfence();
            put(flags, 1);
        }
    }
    if (w == 1 && t == 0) {
        while (!look(flags))
            ;
        __threadfence();
        c[0] = b[0]; // meets
    }""",
        grid=2,
        block=32,
        before=_WORDS,
    ),
    "word of a vector that another stores": Pair(
        """
    if (t == 0)
        *(int4 *)b = make_int4(1, 2, 3, 4); // meets
    if (t == 33)
        b[«2¦4»] = 9; // meets""",
        grid=1,
    ),
    "who arrives reads as if it had waited": Pair(
        """
    if (t < 32) {
        b[t] = a[t]; // meets
        asm volatile("bar.«arrive¦sync» 1, 64;" ::: "memory");
        c[t] = b[t + 32]; // meets
    } else {
        b[95 - t] = a[t]; // meets
        asm volatile("bar.sync 1, 64;" ::: "memory");
        c[t] = b[t - 32]; // meets
    }""",
        grid=1,
    ),
    "word in shared memory that tells of one in global memory": Pair(
        """
    __shared__ unsigned flag;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (t == 0) {
        b[0] = a[0]; // meets
        «¦__threadfence_block();»
        put(&flag, 1);
    }
    if (t == 32) {
        while (!look(&flag))
            ;
        c[0] = b[0]; // meets
    }""",
        grid=1,
        before=_WORDS,
    ),
    "word in global memory that tells of one in shared memory": Pair(
        """
    __shared__ int data;
    if (t == 0) {
        data = a[0]; // meets
        «¦__threadfence();»
        put(flags, 1);
    }
    if (t == 32) {
        while (!look(flags))
            ;
        __threadfence();
        c[0] = data; // meets
    }""",
        grid=1,
        before=_WORDS,
    ),
}

#: Those that meet in shared memory.
SHARED = {"word in global memory that tells of one in shared memory"}
