# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Memory: what its instructions move and cost, and addresses as on the card."""

import struct

import numpy as np
import pytest
from executor_harness import compile_both, cuda_program, run_cuda, run_ptx

from gpuprof.executor import FaultKind, GlobalMemory, KernelFault, source_name
from gpuprof.executor.arithmetic.atomics import ATOMICS, apply_in_turn, atomic_operation, change_in_turn


@pytest.mark.parametrize(("size", "apart"), [(1, 4352), (256, 4352), (257, 4608)])
def test_allocations_have_a_page_between_them(size, apart):
    memory = GlobalMemory()
    first, second = (memory.allocate(np.zeros(size, np.uint8), name) for name in "ab")
    assert second.address - first.address == apart
    below, end = first.address, first.address + size
    assert memory.holding(below, end) is first
    assert memory.holding(below - 1, end) is memory.holding(below, end + 1) is None
    assert memory.nearest(below - 1) is memory.nearest(below) is first
    assert memory.nearest(second.address - 1) is first
    assert memory.nearest(second.address) is second
    assert GlobalMemory().nearest(below) is None


@pytest.mark.parametrize("count", [8, 9])
def test_an_input_is_not_copied_before_something_changes_it(count):
    """A multiple of the widest access, and one that must be padded for it."""
    content = np.arange(count, dtype=np.uint32)
    buffer = GlobalMemory().allocate(content, "a", read_only=True)
    assert np.shares_memory(buffer.array(), content) == (count % 4 == 0)
    assert buffer.view(4)[: content.size].tolist() == content.tolist()
    buffer.store(np.array([3]), np.array([70], np.uint32), 4)
    assert buffer.array()[3] == buffer.view(4)[3] == 70
    assert content[3] == 3


def test_an_output_is_a_copy():
    content = np.zeros(8, np.uint32)
    GlobalMemory().allocate(content, "a").store(np.array([3]), np.array([70], np.uint32), 4)
    assert not content.any()


def test_written_mask():
    source = """extern "C" __global__ void k(float4 *out) {
    if (threadIdx.x & 1)
        out[threadIdx.x] = make_float4(1, 2, 3, 4);
}"""
    (out,), _ = run_cuda(source, np.zeros((32, 4), np.float32))
    assert out.written_mask().tolist() == [[bool(t & 1)] * 4 for t in range(32)]
    assert out.array()[3].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "b128", "s32", "u64"])
def test_lanes_that_seldom_change_a_word_do_what_they_do_in_turn(kind):
    random = np.random.default_rng(3)
    for name in ("cas", "min", "max", "and", "or"):
        operation = atomic_operation(name, kind)
        if name != "cas" and kind in ("b16", "b128"):
            continue  # no such operation
        assert operation.seldom
        for lanes in range(60):
            content, *operands = (
                random.integers(0, 4, count).astype(operation.dtype) for count in (5, lanes, lanes, lanes)
            )
            index = random.integers(0, 5, lanes)
            given = operands[: 2 if name == "cas" else 1]
            change, turn = content.copy(), content.copy()
            found = change_in_turn(change, index, operation.in_global, given)
            assert np.array_equal(found, apply_in_turn(turn, index, operation.in_global, given))
            assert np.array_equal(change, turn)


def test_swaps_that_fail_take_no_turns_of_their_own():
    """Of lanes that add by compare-and-swap one succeeds, and all others find what it left."""
    steps = []

    def swap(old, expected, new):
        steps.append(len(old))
        return ATOMICS["cas"](old, expected, new)

    lanes, content = 5000, np.zeros(2, np.uint64)
    expected, new = np.zeros(lanes, np.uint64), np.arange(1, lanes + 1, dtype=np.uint64)
    found = change_in_turn(content, np.arange(lanes) % 2, swap, [expected, new])
    assert content.tolist() == [1, 2]
    assert found.tolist() == [0, 0] + [1, 2] * (lanes // 2 - 1)
    assert steps == [lanes, lanes - 2]


ADDRESSES = """extern "C" __global__ void k(unsigned *out) {
    __shared__ char bytes[5];
    __shared__ %s double aligned[3];
    extern __shared__ %s float more[];
    bytes[threadIdx.x %% 5] = 1;
    aligned[threadIdx.x %% 3] = 2;
    more[threadIdx.x] = 3;
    __syncthreads();
    const void *places[] = {bytes, aligned, more};
    for (int i = 0; i < 3; ++i)
        out[i] = (unsigned)__cvta_generic_to_shared(places[i]);
}"""


def section_bytes(cubin: bytes, name: str) -> int:
    """Return the size of an ELF section, of all memory that it stands for."""
    start, count, names = (struct.unpack_from("<Q", cubin, 40)[0], *struct.unpack_from("<HH", cubin, 60))
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + 64 * i) for i in range(count)]
    strings = cubin[headers[names][4] :]
    sizes = {strings[h[0] : strings.index(0, h[0])].decode(): h[5] for h in headers}
    return sizes[name]


@pytest.mark.parametrize(("arch", "start"), [("sm_75", 0), ("sm_80", 0), ("sm_89", 0), ("sm_90", 0x400)])
@pytest.mark.parametrize("align", [8, 64, 2048, 16384])
def test_variables_lie_where_the_machine_code_has_them(arch, start, align):
    """ptxas counts the reserved bytes in the section's size, which ends where dynamic memory starts."""
    source = ADDRESSES % (f"__align__({align})", "")
    program = cuda_program(source, arch=arch)
    assert start + program.own.shared.allotted_bytes == section_bytes(
        compile_both(source, arch=arch)[1], ".nv.shared.k"
    )
    (out,), _ = run_cuda(source, np.zeros(3, np.uint32), shared=128, arch=arch)
    static = align + 24
    assert out.array().tolist() == [start, start + align, start + static + -static % 16]


def test_each_dynamic_array_starts_at_its_own_alignment_and_what_is_not_named_takes_no_room():
    """So ptxas 12 and 13 place them, for sm_80 and sm_90."""
    source = """__shared__ char unused[77];
extern __shared__ float plain[];
extern __shared__ __align__(512) float rows[];
extern __shared__ __align__(2048) char elsewhere[];
extern "C" __global__ void k(unsigned *out) {
    __shared__ char bytes[3];
    bytes[threadIdx.x % 3] = 1;
    const void *places[] = {bytes, plain, rows};
    for (int i = 0; i < 3; ++i)
        out[i] = (unsigned)__cvta_generic_to_shared(places[i]);
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(out[3]));
}
extern "C" __global__ void other(unsigned *out) { out[unused[0]] = elsewhere[0]; }"""
    (out,), _ = run_cuda(source, np.zeros(4, np.uint32), block=(1, 1, 1), shared=1000)
    assert out.array().tolist() == [0x400, 0x410, 0x600, 2048 + 1024]
    section = section_bytes(compile_both(source)[1], ".nv.shared.k")
    assert section == 0x400 + cuda_program(source).own.shared.allotted_bytes == 0x400 + 2048


def test_alignment_beyond_what_the_card_gives_is_told():
    assert cuda_program(ADDRESSES % ("__align__(1024)", "")).own.unmet_alignments == {}
    (name, told), *others = cuda_program(ADDRESSES % ("__align__(2048)", "")).own.unmet_alignments.items()
    assert source_name(name) == "aligned"
    assert told == (2048, 0x400 + 2048)
    assert others == []
    unmet = cuda_program(ADDRESSES % ("", "__align__(4096)")).own.unmet_alignments
    assert unmet == {"more": (4096, 0x400 + 4096)}
    assert cuda_program(ADDRESSES % ("__align__(16384)", ""), arch="sm_80").own.unmet_alignments == {}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("tile", "tile"),
        ("_ZZ1kE4tile", "tile"),
        ("_ZZ1kE4tile_0", "tile"),
        ("_ZZN34_INTERNAL_00000000_4_k_cu_e150a1399sum_blockEfE4sums", "sums"),
        ("_ZN2ns5tile4E", "tile4"),
        ("_ZN36_GLOBAL__N__00000000_4_k_cu_e150a1397s_floatE", "s_float"),
        ("_ZZ8int8gemmE2sa", "sa"),
        ("_ZZ4gemmILi64EEvPfE2a1", "a1"),
        ("_Z99", "_Z99"),
        ("s12", "s12"),
    ],
)
def test_names_of_variables_in_the_source(symbol, name):
    assert source_name(symbol) == name


FLIPPED = """extern "C" __global__ void k(unsigned *out) {
    __shared__ __align__(%d) unsigned halves[2][%d];
    halves[0][threadIdx.x] = 1;
    halves[1][threadIdx.x] = 2;
    __syncthreads();
    size_t place = __cvta_generic_to_shared(&halves[0][threadIdx.x]);
    place ^= sizeof halves[0];
    asm volatile("ld.shared.u32 %%0, [%%1];" : "=r"(out[threadIdx.x]) : "r"((unsigned)place));
}"""


def test_buffers_flipped_by_a_bit_of_the_address():
    """0x400 has no bit of 512 or less, but that of 1024, which is cleared instead of set."""
    (out,), _ = run_cuda(FLIPPED % (1024, 128), np.zeros(32, np.uint32))
    assert out.array().tolist() == [2] * 32
    (out,), _ = run_cuda(FLIPPED % (1024, 256), np.zeros(32, np.uint32), arch="sm_80")
    assert out.array().tolist() == [2] * 32
    with pytest.raises(KernelFault) as caught:
        run_cuda(FLIPPED % (1024, 256), np.zeros(32, np.uint32))
    assert caught.value.kind is FaultKind.OUT_OF_BOUNDS
    assert "byte -1024 of shared memory" in caught.value.detail


def test_first_bytes_belong_to_the_system():
    source = """extern "C" __global__ void k(unsigned *out) {
    __shared__ unsigned mine[512];
    mine[threadIdx.x] = 7;
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(1020 + threadIdx.x / 31 * 4), "r"(5));
    __syncthreads();
    out[threadIdx.x] = mine[threadIdx.x];
}"""
    with pytest.raises(KernelFault, match="byte -4 of shared memory"):
        run_cuda(source, np.zeros(32, np.uint32))
    (out,), _ = run_cuda(source.replace("1020", "1024"), np.zeros(32, np.uint32), arch="sm_80")
    assert out.array().tolist() == [7] * 32


SHORT = """
.visible .entry k(.param .u64 out, .param .align 64 .b8 given[128]) {
    .reg .b32 at, near; .reg .b64 wide, to;
    ld.param.u64 to, [out];
    mov.b32 at, given;
    cvt.u64.u32 wide, at;
    cvta.param.u64 wide, wide;
    ld.u32 near, [wide+12];
    st.global.u32 [to], near;
    ld.param.u32 near, [at+16];
    st.global.u32 [to+4], near;
    ret;
}
"""


def test_an_address_among_the_parameters_may_have_32_bits():
    """As LLVM keeps addresses where told to keep them short, which Triton does."""
    given = np.arange(32, dtype=np.uint32).tobytes()
    (out,), _ = run_ptx(SHORT, np.zeros(2, np.uint32), scalars=(given,), block=(1, 1, 1))
    assert out.tolist() == [3, 4]


BYTES = """
.func (.param .b32 sum) deeper(.param .b32 level, .param .b32 byte);
.visible .entry k(.param .u64 out) {
    .reg .b32 lane, found; .reg .b64 to;
    .param .b32 level; .param .b32 byte; .param .b32 sum;
    mov.u32 lane, %tid.x;
    st.param.b32 [level], lane;
    st.param.b32 [byte], 0x1fe;
    call (sum), deeper, (level, byte);
    ld.param.b32 found, [sum];
    ld.param.u64 to, [out];
    mad.wide.u32 to, lane, 4, to;
    st.global.u32 [to], found;
    ret;
}
.func (.param .b32 sum) deeper(.param .b32 level, .param .b32 byte) {
    .reg .b32 left, found, value; .reg .b16 short; .reg .pred last;
    .param .b32 below; .param .b32 next; .param .b32 rest;
    ld.param.b32 left, [level];
    ld.param.b8 short, [byte];
    cvt.u32.u16 value, short;
    setp.eq.u32 last, left, 0;
    mov.b32 found, 0;
    @last bra end;
    sub.u32 left, left, 1;
    add.u32 found, value, 1;
    st.param.b32 [below], left;
    st.param.b32 [next], found;
    call (rest), deeper, (below, next);
    ld.param.b32 found, [rest];
end:
    add.u32 found, found, value;
    st.param.b32 [sum], found;
    ret;
}
"""


def test_a_recursive_function_may_load_a_byte_of_a_word():
    """As LLVM passes small integers: 254, 255, 0, 1 at each level."""
    (out,), _ = run_ptx(BYTES, np.zeros(4, np.uint32), block=(4, 1, 1))
    assert out.tolist() == [254, 509, 509, 510]
