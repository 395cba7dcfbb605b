# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Addresses as on the card: where shared memory starts, and what alignment its variables really get."""

import struct

import numpy as np
import pytest
from executor_harness import compile_both, cuda_program, run_cuda

from gpuprof.executor import FaultKind, KernelFault, source_name

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
