# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Shared-memory accesses merge as ptxas merges them: each kernel is held against its machine code."""

import functools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cuda_sources import kernel_table
from executor_harness import KERNELS, compile_both, compile_cuda, run_cuda

from gpuprof.executor.program.flow import basic_blocks
from gpuprof.executor.program.merge import SharedPlace, merge_shared_accesses
from gpuprof.executor.program.parsing import parse
from gpuprof.executor.steps.arithmetic_steps import fused_multiply_adds
from gpuprof.machine_code.disassembler import disassemble

pytestmark = pytest.mark.deep

HEAD = 'extern "C" __global__ void k(const float *A, float *O, int n) { int t = threadIdx.x;'


def loads(width: int, *offsets: int) -> str:
    """A kernel that fills rows of `width` words one by one, and reads some words of a row."""
    fill = f"__shared__ float s[32][{width}]; volatile float *v = s[t];"
    fill += (
        f"for (int i = 0; i < {width}; i++) v[i] = A[t + i * n]; __syncthreads(); const float *p = s[31 - t];"
    )
    return f"{HEAD} {fill} O[t] = {' + '.join(f'p[{o}] * {o + 2}' for o in offsets)}; }}"


def stores(*offsets: int) -> str:
    """A kernel that writes some words of a row of four."""
    text = "".join(f"s[t][{o}] = A[t + {o} * n];" for o in offsets)
    text += " __syncthreads(); O[t] = ((volatile float *)s[31 - t])[n];"
    return f"{HEAD} __shared__ float s[32][4]; {text} }}"


def carried(start: str, term: str, step: str) -> str:
    """A kernel whose loop reads at a pointer, and beside it, and moves that on."""
    return f"""{HEAD}
    __shared__ float s[4096];
    s[t] = A[t];
    __syncthreads();
    float q = 0;
    const float *p = {start};
#pragma unroll 1
    for (int i = 0; i < n; i++, p += {step}) {{
        q += {term};
        __syncthreads();
    }}
    O[t] = q;
}}"""


def again(between: str) -> str:
    """A kernel that loads four words, then two of them once more, as NVVM may leave it behind."""
    four = 'asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"'
    four += ' : "=f"(p), "=f"(q), "=f"(r), "=f"(s) : "r"(at));'
    two = 'asm volatile("ld.shared.v2.f32 {%0, %1}, [%2+8];" : "=f"(x), "=f"(y) : "r"(at));'
    return f"""{HEAD}
    __shared__ __align__(16) float rows[32][4];
    for (int i = 0; i < 4; i++) ((volatile float *)rows[t])[i] = A[t + i * n];
    __syncthreads();
    const unsigned at = (unsigned)__cvta_generic_to_shared(rows[31 - t]);
    float p, q, r, s, x, y;
    {four}
    {between}
    {two}
    O[t] = p + 2 * q + 4 * r + 8 * s + 16 * x + 32 * y;
}}"""


CASES = {
    "two of four words once more": again(""),
    "once more behind a shuffle": again("p = __shfl_xor_sync(~0u, p, 0);"),
    "once more behind a barrier": again("__syncthreads();"),
    "once more behind a store": again("((volatile float *)rows[t])[0] = p;"),
    "a whole row": loads(4, 0, 1, 2, 3),
    "three of four": loads(4, 1, 2, 3),
    "three with a gap": loads(4, 0, 1, 3),
    "an aligned pair": loads(4, 2, 3),
    "a pair across the middle": loads(4, 1, 2),
    "two words apart": loads(4, 0, 2),
    "seven of eight": loads(8, 0, 1, 2, 3, 4, 5, 6),
    "six in the middle": loads(8, 1, 2, 3, 4, 5, 6),
    "two pairs": loads(8, 2, 3, 4, 5),
    "rows of 24 bytes": loads(6, 0, 1, 2),
    "four stores": stores(0, 1, 2, 3),
    "three stores": stores(0, 1, 2),
    "a pair of stores": stores(2, 3),
    "two stores apart": stores(1, 2),
    "a global store in between": loads(4, 0, 1).replace("; }", "; O[t + 32] = p[2] + p[3]; }"),
    "a pointer that a loop advances from the array's start": carried("s", "p[0] * A[i] + p[1]", "68"),
    "places beside a pointer that a loop advances": carried("s", "p[16 * t] * A[i] + p[16 * t + 1]", "68"),
    "such places in an array that is aligned": carried("s", "p[16 * t] * A[i] + p[16 * t + 1]", "68").replace(
        "float s", "__align__(16) float s"
    ),
    "from the greater of two places on": carried("s + max(16 * t, 8 * n)", "p[0] * A[i] + p[1]", "0"),
    "reg_2x1": "#define real float\n#define TILE 32\n" + (KERNELS / "gemm" / "reg_2x1.cu").read_text(),
    **{name: row.text for name, row in kernel_table(Path(__file__).parent / "merged.cu").items()},
}
_NAMES = {"ld": "LDS", "st": "STS"}
_BITS = {1: "", 4: "", 8: ".64", 16: ".128"}


def merged_accesses(source: str) -> Counter[str]:
    """Count the shared-memory instructions of a kernel after merging, under their names in machine code."""
    module = parse(compile_cuda(source))
    (function,) = module.functions.values()
    blocks = basic_blocks(function.body)
    places, end = {}, 0
    for variable in (v for v in (*module.variables, *function.variables) if v.space == "shared"):
        start = -(-end // variable.align) * variable.align
        places[variable.name] = SharedPlace.at(start)
        end = start + variable.size
    merge_shared_accesses(blocks, places)
    found: Counter[str] = Counter()
    for item in (item for block in blocks for item in block.body):
        if item.opcode[0] in _NAMES and "shared" in item.opcode:
            vector = next((int(part[1:]) for part in item.opcode if part in ("v2", "v4")), 1)
            found[_NAMES[item.opcode[0]] + _BITS[int(item.opcode[-1][1:]) // 8 * vector]] += 1
    return found


@functools.cache
def disassembled(sources: tuple[str, ...], arch: str) -> tuple[str, ...]:
    """Return the machine code of kernels, each alone in its source: nvdisasm takes long to start."""
    source = "\n".join(
        re.sub(r"(__global__ void [^{]*?)\w+\((?=[^(]*\)\s*{)", rf"\g<1>k{number}(", text)
        for number, text in enumerate(sources)
    )
    text = disassemble(compile_both(source, (), arch)[1])
    parts = re.split(r"^\.text\.k(\d+):$", text, flags=re.MULTILINE)
    # What follows a kernel's code, up to the next one's, begins with a line of this form.
    codes = {
        int(number): code.partition("\n//---")[0]
        for number, code in zip(parts[1::2], parts[2::2], strict=True)
    }
    return tuple(codes[number] for number in range(len(sources)))


def machine_accesses(name: str) -> Counter[str]:
    """Count the shared-memory instructions of a case's machine code."""
    code = dict(zip(CASES, disassembled((*CASES.values(),), "sm_90"), strict=True))[name]
    return Counter(re.findall(r"\b((?:LDS|STS)(?:\.\d+)?)\b", code))


@pytest.mark.parametrize("name", CASES)
def test_accesses_merge_as_ptxas_merges_them(name):
    assert merged_accesses(CASES[name]) == machine_accesses(name)


EXPANDED = {
    (expression, kind): f"""extern "C" __global__ void k(const {kind} *A, const {kind} *B, {kind} *O) {{
    {kind} a = A[threadIdx.x], b = B[threadIdx.x];
    O[threadIdx.x] = {expression};
}}"""
    for kind in ("float", "double")
    for expression in ("a / b", "1 / a", "sqrt(a)", "a * b + a")
}


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
@pytest.mark.parametrize(("expression", "kind"), EXPANDED)
def test_expansions_are_what_ptxas_does(expression, kind, arch):
    source = EXPANDED[expression, kind]
    (function,) = parse(compile_cuda(source, (), arch)).functions.values()
    counted: Counter[str] = Counter()
    for item in (item for block in basic_blocks(function.body) for item in block.body):
        counted.update({family.upper(): times for family, times in fused_multiply_adds(item)})
    code = dict(zip(EXPANDED, disassembled((*EXPANDED.values(),), arch), strict=True))[expression, kind]
    # The common path ends at the first unconditional exit; what follows are the rare cases.
    common = re.split(r"\*/\s+EXIT\b", code)[0]
    assert Counter(re.findall(r"\b([FD]FMA)\b", common)) == counted


@pytest.mark.parametrize(
    "name", ["an array that starts at an odd word", "an array that starts at an odd pair"]
)
def test_an_execution_merges_what_the_place_of_its_arrays_allows(name):
    source, expected = CASES[name], machine_accesses(name)
    numbers = np.arange(128, dtype=np.float32)
    # One thread writes each element of the small array.
    source = source.replace("z[t % 3] = 1", "if (t < 3) z[t] = 1").replace(
        "z[t % 6] = 1", "if (t < 6) z[t] = 1"
    )
    (_, out), result = run_cuda(source, numbers, np.zeros(32, np.float32), scalars=(32,))
    assert out.array().tolist() == [1 + sum((31 - t) + 32 * i for i in range(4)) for t in range(32)]
    for kind, code in (("load", "LDS"), ("store", "STS")):
        instructions = sum(count for name, count in expected.items() if name.startswith(code))
        assert result.counters[f"shared_{kind}_requests"] == instructions


def test_words_that_registers_hold_are_those_of_the_first_load():
    numbers = np.arange(128, dtype=np.float32)
    for between in ("", "__syncthreads();"):
        (_, out), _ = run_cuda(again(between), numbers, np.zeros(32, np.float32), scalars=(32,))
        rows = numbers.reshape(4, 32)[:, ::-1]
        assert out.array().tolist() == (np.array([1, 2, 4 + 16, 8 + 32]) @ rows).tolist()


def test_a_word_loaded_in_vain_is_no_read():
    source = """extern "C" __global__ void k(float *out) {
    __shared__ float s[32][4];
    volatile float *v = s[threadIdx.x];
    v[1] = 1; v[2] = 2; v[3] = 3;
    __syncthreads();
    const float *p = s[31 - threadIdx.x];
    out[threadIdx.x] = p[1] + p[2] * p[3];
}"""
    (out,), result = run_cuda(source, np.zeros(32, np.float32))
    assert (out.array() == 7).all()
    assert result.counters["shared_load_requests"] == 1
    assert result.counters["shared_load_wavefronts"] == 4
