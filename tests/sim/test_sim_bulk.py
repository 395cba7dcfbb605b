# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""mbarriers, bulk copies and tensor copies: what they do, and the bugs that kernels make with them."""

import numpy as np
import pytest
from sim_harness import compile_cuda, cuda_program, run_cuda
from typer.testing import CliRunner

from gpuprof.cli import app
from gpuprof.copy_engine import TENSOR_MAP_BYTES
from gpuprof.errors import CaseFailure
from gpuprof.executor import (
    FaultKind,
    GlobalMemory,
    KernelFault,
    UnsupportedInstruction,
    launch,
    load_program,
)
from gpuprof.executor.memory.tensor_map_encoding import (
    TensorDescriptor,
    decode_tensor_map,
    encode_tensor_map,
)
from gpuprof.results import read_run

HELPERS = r"""
typedef unsigned long long u64;
__device__ __forceinline__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ u64 arrive(u64 *b) {
    u64 state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at(b)) : "memory");
    return state;
}
__device__ __forceinline__ void arrive_sink(u64 *b, int n) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void expect(u64 *b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(at(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ bool test(u64 *b, int parity) {
    int done;
    asm volatile("{.reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at(b)), "r"(parity) : "memory");
    return done;
}
__device__ __forceinline__ void wait(u64 *b, int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(at(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ void load(void *to, const void *from, int bytes, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ __forceinline__ void store(void *to, const void *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
struct alignas(64) Map { unsigned char bytes[128]; };
"""


def cuda(body: str) -> str:
    return HELPERS + body


def caught(source: str, *arrays, **keywords) -> KernelFault:
    with pytest.raises(KernelFault) as error:
        run_cuda(source, *arrays, **keywords)
    return error.value


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


#: Where a copy is started: a fault names the innermost line of the kernel's file.
LOAD = "cp.async.bulk.shared::cluster.global"
STORED = "cp.async.bulk.global.shared::cta"


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1


@pytest.mark.parametrize("size", [128, 300])
def test_the_shipped_bulk_transpose(size, tmp_path):
    arguments = [
        "transpose",
        "--kernel",
        "bulk_tile",
        "--device",
        "sim:h200",
        "--sizes",
        str(size),
        "--quiet",
    ]
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (case,) = read_run(tmp_path / "results.json").cases
    assert case.outcome == "ok"
    assert case.verification.checked_elements == size * size
    loads, stores = (case.counters[f"global_{kind}_requests"] for kind in ("load", "store"))
    assert (loads.value, loads.reason) == (None, "no counter sees what the kernel's bulk copies move")
    assert stores.value > 0


# mbarriers


def test_phases_end_when_all_have_arrived():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 64); fence(); }
    __syncthreads();
    int *seen = out + t * 6;
    seen[0] = test(&b, 1); // the phase before the first is over
    seen[1] = test(&b, 0);
    __syncthreads();
    seen[2] = (int)arrive(&b) >= 0;
    wait(&b, 0);
    seen[3] = test(&b, 0);
    seen[4] = test(&b, 1); // the second phase has begun
    __syncthreads();
    if (t == 0) arrive_sink(&b, 64);
    wait(&b, 1);
    seen[5] = test(&b, 0) * 2 + test(&b, 1);
}""")
    (out,), _ = run_cuda(source, np.zeros((64, 6), np.int32), block=(64, 1, 1))
    assert (out.array() == [1, 0, 1, 1, 0, 1]).all()


def test_the_state_of_an_arrival_names_its_phase():
    source = cuda("""__device__ int over(u64 *b, u64 state, int tries) {
    int done;
    if (tries)
        asm volatile("{.reg .pred p;\\nmbarrier.try_wait.shared.b64 p, [%1], %2, 9;\\nselp.u32 %0,1,0,p;}"
                     : "=r"(done) : "r"(at(b)), "l"(state) : "memory");
    else
        asm volatile("{.reg .pred p;\\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\\nselp.u32 %0,1,0,p;}"
                     : "=r"(done) : "r"(at(b)), "l"(state) : "memory");
    return done;
}
extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 2); fence(); }
    __syncthreads();
    if (t == 0) {
        const u64 first = arrive(&b);
        out[0] = over(&b, first, 0);
        const u64 same = arrive(&b);
        out[1] = over(&b, first, 1);
        out[2] = first == same;
        const u64 next = arrive(&b);
        out[3] = next != first;
        out[4] = over(&b, next, 0);
    }
}""")
    (out,), _ = run_cuda(source, np.full(5, 9, np.int32))
    assert out.array().tolist() == [0, 1, 1, 1, 0]


def test_bytes_are_waited_for_too():
    source = cuda("""extern "C" __global__ void k(const float4 *in, int *out) {
    __shared__ __align__(128) float4 tile[2];
    __shared__ u64 b;
    if (threadIdx.x == 0) {
        init(&b, 1);
        fence();
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(at(&b)) : "memory");
        expect(&b, 16);
        out[0] = test(&b, 0);
        load(tile, in, 16, &b);
        out[1] = test(&b, 0);
        load(tile + 1, in, 16, &b);
        out[2] = test(&b, 0); // in vain: the bytes arrive after it
        out[3] = test(&b, 0);
        out[4] = tile[0].x + tile[1].w;
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at(&b)) : "memory");
    }
}""")
    (_, out), _ = run_cuda(source, numbers(4), np.full(5, 9, np.int32))
    assert out.array().tolist() == [0, 0, 0, 1, 5]


def test_generic_addresses_of_mbarriers():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b[2];
    u64 *mine = b + 1;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.b64 [%0], 1;" ::"l"(mine) : "memory");
        asm volatile("mbarrier.arrive.b64 _, [%0];" ::"l"(mine) : "memory");
        out[0] = test(mine, 0);
    }
}""")
    (out,), _ = run_cuda(source, np.zeros(1, np.int32))
    assert out.array().tolist() == [1]


def test_blocks_may_be_in_different_phases():
    source = cuda("""extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) float4 tile[32];
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i <= (int)blockIdx.x; ++i) {
        if (t == 0) { expect(&b, 512); load(tile, in + i * 32, 512, &b); }
        wait(&b, i & 1);
        sum.x += tile[31 - t].x;
        __syncthreads();
    }
    out[blockIdx.x * 32 + t] = sum;
}""")
    data = numbers(7, 32, 4)
    (_, out), _ = run_cuda(source, data, np.zeros((7, 32, 4), np.float32), grid=(7, 1, 1))
    np.testing.assert_array_equal(out.array()[..., 0], np.cumsum(data[:, ::-1, 0], axis=0))


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("arrive(&b); // planted", FaultKind.MBARRIER, "where none was initialised"),
        ("init(&b, 0); // planted", FaultKind.MBARRIER, "count 0"),
        (
            'asm volatile("mbarrier.init.b64 [%0], 1;" ::"l"((char *)&b + 4)); // planted',
            FaultKind.MISALIGNED,
            "not a multiple of 8",
        ),
        ("init(&b, 1); expect(&b, 1 << 20); // planted", FaultKind.MBARRIER, "1,048,576"),
        ("init(&b, 1); expect(&b, 16); arrive(&b); // planted", FaultKind.MBARRIER, "more often"),
        (
            "init(&b, 2); arrive(&b); wait(&b, 0); // planted",
            FaultKind.MBARRIER,
            "1 of 2 arrivals are missing",
        ),
        ("init(&b, 1); expect(&b, 48); wait(&b, 0); // planted", FaultKind.MBARRIER, "48 announced bytes"),
    ],
)
def test_misused_mbarriers(body, kind, text):
    source = cuda(f"""extern "C" __global__ void k(int *out) {{
    __shared__ u64 b, other;
    if (threadIdx.x == 0)
        init(&other, 1);
    if (threadIdx.x == 37) {{
        {body}
    }}
    out[0] = 1;
}}""")
    fault = caught(source, np.zeros(1, np.int32), block=(64, 1, 1), grid=(3, 1, 1))
    assert fault.kind is kind
    assert text in fault.detail
    assert fault.thread == (37, 0, 0)


def test_an_mbarrier_must_be_initialised_before_others_use_it():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(&b, 32);
    arrive(&b); // planted
    out[0] = 1;
}""")
    fault = caught(source, np.zeros(1, np.int32))
    assert (fault.kind, fault.thread) == (FaultKind.SHARED_RACE, (1, 0, 0))
    assert "uses the mbarrier at byte 0 of shared memory, which thread number 0 wrote" in fault.detail


def test_a_deadlock_of_two_mbarriers_is_reported():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b[2];
    const int t = threadIdx.x, mine = t / 32;
    if (t == 0) { init(b, 32); init(b + 1, 32); fence(); }
    __syncthreads();
    wait(b + mine, 0); // planted
    arrive(b + 1 - mine);
    out[0] = 1;
}""")
    fault = caught(source, np.zeros(1, np.int32), block=(64, 1, 1), grid=(2, 1, 1))
    assert fault.kind is FaultKind.MBARRIER
    assert "waits for ever for the mbarrier at byte" in fault.detail
    assert "32 of 32 arrivals are missing" in fault.detail


def test_a_barrier_and_an_mbarrier_can_deadlock():
    source = cuda("""extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 32); fence(); }
    __syncthreads();
    if (t < 32) wait(&b, 0);
    __syncthreads();
    if (t >= 32) arrive(&b);
    out[0] = 1;
}""")
    fault = caught(source, np.zeros(1, np.int32), block=(64, 1, 1))
    assert (fault.kind, fault.thread) == (FaultKind.MBARRIER, (0, 0, 0))


def test_warps_that_wait_let_others_run():
    """One warp produces, three consume, with mbarriers alone: no barrier of the block after the first."""
    (out,) = ring("")
    np.testing.assert_array_equal(out, expected_ring())


RING_STEPS = 9


def ring(planted: str, **keywords) -> list[np.ndarray]:
    buffers, _ = run_cuda(
        ring_source(planted),
        numbers(2, RING_STEPS, 32, 4),
        np.zeros((2, RING_STEPS, 96), np.float32),
        scalars=(RING_STEPS,),
        block=(128, 1, 1),
        grid=(2, 1, 1),
        **keywords,
    )
    return [buffers[1].array()]


def expected_ring() -> np.ndarray:
    data = numbers(2, RING_STEPS, 32, 4)[..., ::-1, 1]
    return np.tile(data, (1, 1, 3))


def ring_source(planted: str) -> str:
    lines = {
        "wait": "wait(full + stage, phase);",
        "empty": "wait(empty + stage, phase ^ 1);",
        "read": "out[(blockIdx.x * steps + i) * 96 + c] = tile[stage][31 - c % 32].y; // read",
        "release": "arrive(empty + stage);",
    }
    if planted == "early release":
        lines["wait"] += lines.pop("release")
        lines["release"] = ""
    elif planted:
        lines[planted] = ""
    return cuda(f"""extern "C" __global__ void k(const float4 *in, float *out, int steps) {{
    __shared__ __align__(128) float4 tile[2][32];
    __shared__ u64 full[2], empty[2];
    const int t = threadIdx.x;
    if (t == 0) {{
        for (int s = 0; s < 2; ++s) {{ init(full + s, 1); init(empty + s, 96); }}
        fence();
    }}
    __syncthreads();
    if (t < 32) {{
        if (t == 0)
            for (int i = 0; i < steps; ++i) {{
                const int stage = i % 2, phase = i / 2 & 1;
                {lines["empty"]}
                expect(full + stage, 512);
                load(tile[stage], in + (blockIdx.x * steps + i) * 32, 512, full + stage); // load
            }}
    }} else {{
        const int c = t - 32;
        for (int i = 0; i < steps; ++i) {{
            const int stage = i % 2, phase = i / 2 & 1;
            {lines["wait"]}
            {lines["read"]}
            {lines["release"]}
        }}
    }}
}}""")


@pytest.mark.parametrize(
    ("planted", "kind", "line"),
    [
        ("wait", FaultKind.UNINITIALISED_SHARED, "// read"),
        ("empty", FaultKind.ASYNC_COPY, LOAD),
        ("early release", FaultKind.SHARED_RACE, LOAD),
        ("release", FaultKind.MBARRIER, "wait(empty"),
    ],
)
def test_bugs_in_a_ring(planted, kind, line):
    with pytest.raises(KernelFault) as error:
        ring(planted)
    assert error.value.kind is kind, str(error.value)
    source = ring_source(planted)
    assert error.value.source_line == line_of(source, line) or kind is FaultKind.MBARRIER


# Bulk copies

PIPELINE = """extern "C" __global__ void k(const float4 *in, float4 *out, int steps) {
    __shared__ __align__(128) float4 tile[2][64];
    __shared__ u64 b[2];
    const int t = threadIdx.x;
    if (t == 0) { init(b, 1); init(b + 1, 1); fence(); }
    __syncthreads();
    for (int i = 0; i < steps + 1; ++i) {
        if (t == 0 && i < steps) {
            expect(b + i % 2, 1024);
            load(tile[i % 2], in + i * 64, 1024, b + i % 2); // start
        }
        if (i > 0) {
            const int last = i - 1;
            WAIT
            out[last * 64 + t] = tile[last % 2][63 - t]; // read
        }
        SYNC
    }
}"""


def pipeline(wait="wait(b + last % 2, last / 2 & 1);", sync="__syncthreads();") -> str:
    return cuda(PIPELINE.replace("WAIT", wait).replace("SYNC", sync))


def test_a_ring_of_two_stages():
    data = numbers(7, 64, 4)
    arguments = {"scalars": (7,), "block": (64, 1, 1)}
    (_, out), result = run_cuda(pipeline(), data, np.zeros_like(data), **arguments)
    np.testing.assert_array_equal(out.array(), data[:, ::-1])
    assert result.counters["global_load_requests"] == 0
    assert result.counters["shared_load_requests"] == 14
    assert "global_store_requests" not in result.hidden
    for name in ("global_load_requests", "global_load_efficiency_pct", "shared_store_wavefronts"):
        assert result.hidden[name] == "no counter sees what the kernel's bulk copies move"


def test_a_read_without_the_wait():
    data = numbers(7, 64, 4)
    source = pipeline(wait="")
    fault = caught(source, data, np.zeros_like(data), scalars=(7,), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.ASYNC_COPY, line_of(source, "// read"))
    assert fault.thread == (0, 0, 0)
    assert "to which a bulk copy is still in flight" in fault.detail


def test_a_read_by_threads_that_did_not_wait_themselves():
    data = numbers(7, 64, 4)
    source = pipeline(wait="if (t < 40) wait(b + last % 2, last / 2 & 1);")
    fault = caught(source, data, np.zeros_like(data), scalars=(7,), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.ASYNC_COPY, line_of(source, "// read"))
    assert fault.thread == (40, 0, 0)
    assert "where a bulk copy arrived that it did not wait for" in fault.detail


def test_one_thread_may_wait_for_all_of_its_block():
    data = numbers(7, 64, 4)
    source = pipeline(wait="if (t == 9) wait(b + last % 2, last / 2 & 1); __syncthreads();")
    (_, out), _ = run_cuda(source, data, np.zeros_like(data), scalars=(7,), block=(64, 1, 1))
    np.testing.assert_array_equal(out.array(), data[:, ::-1])


def test_a_stage_is_filled_again_too_early():
    data = numbers(7, 64, 4)
    source = pipeline(sync="")
    fault = caught(source, data, np.zeros_like(data), scalars=(7,), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (FaultKind.SHARED_RACE, line_of(source, LOAD))
    assert "starts a bulk copy to byte" in fault.detail


ONE_COPY = """extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ __align__(128) float4 tile[128];
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    if (t == 0) {
        expect(&b, 512);
        LOAD // load
    }
    WAIT
    out[t] = tile[t];
}"""


@pytest.mark.parametrize(
    ("load", "kind", "text"),
    [
        (
            "load((char *)tile + 8, in, 512, &b);",
            FaultKind.MISALIGNED,
            "of shared memory, which is not a multiple",
        ),
        ("load(tile, (char *)in + 4, 512, &b);", FaultKind.MISALIGNED, "which is not a multiple of 16"),
        ("load(tile, in, 500, &b);", FaultKind.MISALIGNED, "of 500 bytes"),
        (
            "load(tile, in, 4096, &b);",
            FaultKind.OUT_OF_BOUNDS,
            "copies 4096 bytes at byte 0 of shared memory",
        ),
        ("load(tile, in + 1, 512, &b);", FaultKind.OUT_OF_BOUNDS, "at byte 512 of array 0"),
        ("load(tile, in, 512, &b); load(tile + 31, in, 16, &b);", FaultKind.ASYNC_COPY, "to byte 496 of"),
    ],
)
def test_wrong_copies(load, kind, text):
    source = cuda(ONE_COPY.replace("LOAD", load).replace("WAIT", "wait(&b, 0);"))
    fault = caught(source, numbers(32, 4), np.zeros((32, 4), np.float32))
    assert (fault.kind, fault.source_line, fault.thread) == (kind, line_of(source, LOAD), (0, 0, 0))
    assert text in fault.detail


def test_a_write_while_a_copy_is_in_flight():
    source = cuda(ONE_COPY.replace("LOAD", "load(tile, in, 512, &b); tile[3].x = 1;").replace("WAIT", ""))
    fault = caught(source, numbers(32, 4), np.zeros((32, 4), np.float32))
    assert (fault.kind, fault.source_line) == (FaultKind.ASYNC_COPY, line_of(source, "// load"))
    assert "writes byte 48 of shared memory, to which a bulk copy is still in flight" in fault.detail


def test_a_forgotten_result_of_a_wait():
    """A wait that is asked once, and not again, has not waited."""
    source = cuda(ONE_COPY.replace("LOAD", "load(tile, in, 512, &b);").replace("WAIT", "test(&b, 0);"))
    assert caught(source, numbers(32, 4), np.zeros((32, 4), np.float32)).kind is FaultKind.ASYNC_COPY


def test_copies_of_many_lanes_with_lengths_of_their_own():
    source = cuda("""extern "C" __global__ void k(const float4 *in, float4 *out) {
    extern __shared__ __align__(128) float4 tile[];
    __shared__ u64 b[2];
    const int t = threadIdx.x;
    if (t == 0) { init(b, 1); init(b + 1, 1); fence(); }
    __syncthreads();
    if (t < 2) expect(b + t, 16 * 16 * (t ? 17 : 16));
    __syncwarp();
    if (t < 32) load(tile + t * 32, in + t * 32, 16 * t + 16 * (t % 2), b + t % 2);
    wait(b, 0);
    wait(b + 1, 0);
    for (int i = t; i < 1024; i += 64)
        if (i % 32 < i / 32 + i / 32 % 2) out[i] = tile[i];
}""")
    data = numbers(32, 32, 4)
    # Lanes 0, 2, 4 … bring 0, 2, 4 … chunks; lanes 1, 3, 5 … bring 2, 4, 6 …
    lengths = [t + t % 2 for t in range(32)]
    source = source.replace(
        "16 * 16 * (t ? 17 : 16)", f"t ? {16 * sum(lengths[1::2])} : {16 * sum(lengths[::2])}"
    )
    (_, out), _ = run_cuda(source, data, np.zeros_like(data), block=(64, 1, 1), shared=16384)
    expected = data * (np.arange(32) < np.array(lengths)[:, None])[..., None]
    np.testing.assert_array_equal(out.array(), expected)


STORE = """extern "C" __global__ void k(float4 *out) {
    __shared__ __align__(128) float4 tile[64];
    const int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) {
        tile[t] = make_float4(i, t, 0, 0); // write
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        BEFORE
        if (t == 0) {
            store(out + i * 64, tile, 1024); // store
            commit();
            WAIT
        }
        AFTER
    }
}"""


def store_source(before="__syncthreads();", wait="READ", after="__syncthreads();") -> str:
    wait = wait.replace("READ", 'asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");')
    return cuda(STORE.replace("BEFORE", before).replace("WAIT", wait).replace("AFTER", after))


def test_copies_to_global_memory():
    (out,), result = run_cuda(store_source(), np.zeros((3, 64, 4), np.float32), block=(64, 1, 1))
    expected = np.zeros((3, 64, 4), np.float32)
    expected[..., 0], expected[..., 1] = np.arange(3)[:, None], np.arange(64)
    np.testing.assert_array_equal(out.array(), expected)
    assert out.written_mask().all()
    assert {"global_store_sectors", "shared_load_wavefronts"} <= set(result.hidden)
    assert "global_load_requests" not in result.hidden


@pytest.mark.parametrize(
    ("change", "kind", "line", "text"),
    [
        ({"wait": ""}, FaultKind.ASYNC_COPY, "// write", "which a bulk copy still reads"),
        ({"before": ""}, FaultKind.SHARED_RACE, STORED, "starts a bulk copy of byte 16"),
        ({"after": ""}, FaultKind.SHARED_RACE, "// write", "writes byte"),
    ],
)
def test_wrong_copies_to_global_memory(change, kind, line, text):
    source = store_source(**change)
    fault = caught(source, np.zeros((3, 64, 4), np.float32), block=(64, 1, 1))
    assert (fault.kind, fault.source_line) == (kind, line_of(source, line))
    assert text in fault.detail


def test_a_kernel_must_not_end_while_its_copy_reads():
    source = cuda("""extern "C" __global__ void k(float4 *out) {
    __shared__ __align__(128) float4 tile[1];
    if (threadIdx.x == 3) {
        tile[0] = make_float4(1, 2, 3, 4);
        store(out, tile, 16); // planted
        commit();
    }
}""")
    fault = caught(source, np.zeros(4, np.float32))
    assert (fault.kind, fault.thread) == (FaultKind.ASYNC_COPY, (3, 0, 0))
    assert fault.source_line == line_of(source, STORED)


def test_groups_finish_in_order():
    source = cuda("""extern "C" __global__ void k(float4 *out) {
    __shared__ __align__(128) float4 tile[2];
    if (threadIdx.x == 0) {
        tile[0] = make_float4(1, 2, 3, 4);
        tile[1] = make_float4(5, 6, 7, 8);
        store(out, tile, 16);
        commit();
        store(out + 1, tile + 1, 16);
        commit();
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        tile[0] = make_float4(0, 0, 0, 0);
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        tile[1] = make_float4(0, 0, 0, 0);
    }
}""")
    (out,), _ = run_cuda(source, np.zeros(8, np.float32))
    assert out.array().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


# Tensor copies

_TENSOR = """#define IN const __grid_constant__ Map
extern "C" __global__ void k(IN map, unsigned *out, int x, int y, int z, int bytes) {
    extern __shared__ __align__(1024) unsigned tile[];
    __shared__ u64 b;
    const int t = threadIdx.x;
    if (t == 0) { init(&b, 1); fence(); }
    __syncthreads();
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    if (t == 0) {
        expect(&b, bytes);
        asm volatile("cp.async.bulk.tensor.RANKd.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {COORDINATES}], [%2];" ::"r"(at(tile + OFFSET)), "l"(&map), "r"(at(&b)),
                     "r"(x), "r"(y), "r"(z) : "memory"); // tensor
    }
    wait(&b, 0);
    for (int i = t; i < bytes / 4; i += 32)
        out[blockIdx.x * (bytes / 4) + i] = tile[OFFSET + i];
}"""
_COORDINATES = {1: "%3", 2: "%3, %4", 3: "%3, %4, %5"}


def tensor_source(rank: int, offset: int = 0) -> str:
    text = cuda(_TENSOR).replace("RANK", str(rank)).replace("COORDINATES", _COORDINATES[rank])
    return text.replace("OFFSET", str(offset))


def copy_box(array, box, place, swizzle=0, offset=0, columns=None, expected_bytes=None) -> np.ndarray:
    """Run one tensor copy of `box` at `place`, both from the slowest dimension on; return what arrived.

    With `columns`, the map leaves out the other elements of each row.
    """
    memory = GlobalMemory()
    source = memory.allocate(array, "array")
    rank = array.ndim
    extents = (columns or array.shape[-1], *array.shape[-2::-1])
    tensor = encode_tensor_map(
        source.address, array.itemsize, extents, array.strides[-2::-1], box[::-1], swizzle
    )
    size = int(np.prod(box)) * array.itemsize
    out = memory.allocate(np.zeros(size // 4, np.uint32), "out")
    x, y, z = (*place[::-1], 0, 0)[:3]
    program = load_program(compile_cuda(tensor_source(rank, offset // 4))[0], "k")
    arguments = [tensor, out, x, y, z, size if expected_bytes is None else expected_bytes]
    launch(program, (1, 1, 1), (32, 1, 1), arguments, memory, dynamic_shared_bytes=offset + size)
    return out.array().view(array.dtype)


def cut(array, box, place) -> np.ndarray:
    """The box of an array, with zeros outside it."""
    result = np.zeros(box, array.dtype)
    for index in np.ndindex(*box):
        where = tuple(i + p for i, p in zip(index, place, strict=True))
        if all(0 <= i < extent for i, extent in zip(where, array.shape, strict=True)):
            result[index] = array[where]
    return result


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "box", "place"),
    [
        ((64,), (32,), (16,)),
        ((64,), (32,), (-7,)),
        ((64,), (32,), (45,)),
        ((20, 48), (8, 16), (3, 16)),
        ((20, 48), (8, 16), (15, 37)),
        ((20, 48), (8, 16), (-3, -5)),
        ((20, 48), (8, 16), (40, 0)),
        ((5, 6, 32), (2, 4, 16), (1, 2, 16)),
        ((5, 6, 32), (2, 4, 16), (4, -1, 21)),
    ],
)
def test_boxes_with_zeros_outside_the_array(dtype, shape, box, place):
    array = (np.arange(np.prod(shape)) % 251 + 1).astype(dtype).reshape(shape)
    np.testing.assert_array_equal(copy_box(array, box, place).reshape(box), cut(array, box, place))


@pytest.mark.parametrize("columns", [61, 60])
def test_rows_need_not_be_dense_or_of_whole_chunks(columns):
    wide = np.arange(20 * 64, dtype=np.float32).reshape(20, 64) + 1
    got = copy_box(wide, (8, 16), (14, 52), columns=columns)
    np.testing.assert_array_equal(got.reshape(8, 16), cut(wide[:, :columns], (8, 16), (14, 52)))


def swizzled(box: np.ndarray, width: int, start: int = 0) -> np.ndarray:
    """What a box looks like in shared memory, from the 16-byte pieces of its rows, and rows of 128 bytes."""
    pieces = box.reshape(-1).view(np.uint8).reshape(-1, 16)
    result = np.zeros_like(pieces)
    for piece in range(len(pieces)):
        row, column = divmod(piece + start // 16, 8)
        bits = {0: 0, 32: (row & 1), 64: (row & 3), 128: (row & 7)}[width]
        result[row * 8 + (column ^ bits) - start // 16] = pieces[piece]
    return result.reshape(-1).view(box.dtype)


@pytest.mark.parametrize("width", [0, 32, 64, 128])
@pytest.mark.parametrize("place", [(4, 32), (-3, 60)])
def test_swizzled_boxes(width, place):
    array = numbers(40, 96)
    box = (32, (width or 128) // 4)
    np.testing.assert_array_equal(copy_box(array, box, place, width), swizzled(cut(array, box, place), width))


def test_a_swizzle_goes_by_the_address():
    """A box that starts in the middle of the pattern takes it up there."""
    array, box = numbers(40, 96), (16, 32)
    got = copy_box(array, box, (4, 32), 128, offset=384)
    np.testing.assert_array_equal(got, swizzled(cut(array, box, (4, 32)), 128, start=384))


@pytest.mark.parametrize(
    ("keywords", "kind", "text"),
    [
        ({"offset": 64}, FaultKind.MISALIGNED, "which is not a multiple of 128"),
        ({"expected_bytes": 4096}, FaultKind.MBARRIER, "announced bytes are missing"),
        ({"expected_bytes": 512}, FaultKind.MBARRIER, "1536 bytes arrived that nobody announced"),
    ],
)
def test_wrong_tensor_copies(keywords, kind, text):
    with pytest.raises(KernelFault) as error:
        copy_box(numbers(40, 96), (16, 32), (0, 0), **keywords)
    assert error.value.kind is kind
    assert text in str(error.value)


def test_a_map_of_another_rank_and_bytes_that_are_no_map():
    memory = GlobalMemory()
    source = memory.allocate(numbers(64), "array")
    out = memory.allocate(np.zeros(32, np.uint32), "out")
    program = cuda_program(tensor_source(2))
    line = encode_tensor_map(source.address, 4, (64,), (), (32,))
    for argument, text in (
        (line, "from an array of 1 dimensions"),
        (b"\1" * TENSOR_MAP_BYTES, "which holds none"),
    ):
        with pytest.raises(KernelFault, match=text):
            launch(program, (1, 1, 1), (32, 1, 1), [argument, out, 0, 0, 0, 128], memory, 1024)


def test_maps_are_read_back_as_they_were_written():
    arguments = (0x7000_0000_0100, 4, (300, 200, 7), (1216, 243200), (32, 64, 1), 128)
    content = encode_tensor_map(*arguments)
    assert len(content) == TENSOR_MAP_BYTES
    assert decode_tensor_map(content) == TensorDescriptor(*arguments)
    with pytest.raises(ValueError, match="no tensor map"):
        decode_tensor_map(bytes(TENSOR_MAP_BYTES))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"address": 8}, "multiple of 16"),
        ({"item_bytes": 3}, "not 3"),
        ({"strides": (1200 + 4,)}, "multiples of 16"),
        ({"box": (257, 4)}, "1 to 256"),
        ({"box": (6, 4)}, "24 bytes"),
        ({"box": (64, 4), "swizzle_bytes": 128}, "more than the swizzle's 128"),
        ({"swizzle_bytes": 16}, "not 16"),
        ({"extents": (0, 4)}, "from 1 to"),
        ({"extents": (4,)}, "as many box sizes"),
    ],
)
def test_maps_that_the_driver_refuses(change, text):
    valid = {"address": 256, "item_bytes": 4, "extents": (300, 20), "strides": (1200,), "box": (32, 4)}
    encode_tensor_map(**valid)
    with pytest.raises(CaseFailure, match=text):
        encode_tensor_map(**valid | change)


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %2, %2}], [%0], {%3};",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%1], [%0], 16;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1], 16, [%0], %3;",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];",
        "mbarrier.arrive_drop.shared::cta.b64 _, [%0];",
    ],
)
def test_what_is_not_modelled_is_named(text):
    operands = text.replace("%0", "a").replace("%1", "p").replace("%2", "i").replace("%3", "h")
    ptx = (
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_0)\n{\n"
        f".reg .b32 a, i; .reg .b16 h; .reg .b64 p;\n{operands}\nret;\n}}\n"
    )
    with pytest.raises(UnsupportedInstruction) as error:
        load_program(ptx, "k")
    assert error.value.name.split(".")[0] == text.split(".")[0]


def test_labels_of_repeated_inline_assembly():
    """Each braces has labels of its own, though all have the same name."""
    ptx = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_0)
{
.reg .pred p; .reg .b32 r; .reg .b64 q;
ld.param.u64 q, [k_0];
mov.u32 r, 0;
{ again: add.u32 r, r, 1; setp.lt.u32 p, r, 5; @p bra again; bra done; add.u32 r, r, 100; done: }
{ again: add.u32 r, r, 2; setp.lt.u32 p, r, 20; @p bra again; bra done; add.u32 r, r, 100; done: }
st.global.u32 [q], r;
ret;
}
"""
    memory = GlobalMemory()
    out = memory.allocate(np.zeros(1, np.uint32), "out")
    launch(load_program(ptx, "k"), (1, 1, 1), (1, 1, 1), [out], memory)
    assert out.array().tolist() == [21]
