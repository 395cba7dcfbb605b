# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels without a header: which function of a source is meant."""

import pytest

from gpuprof.cuda_source.functions import kernel_functions
from gpuprof.errors import InputError
from gpuprof.kernels.entries import sole_entry


def kernels_in(source):
    return tuple(function.name for function in kernel_functions(source))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('extern "C" __global__ void one(int n) {}', ("one",)),
        ("__global__\nvoid\nspread\n(int n)\n{}", ("spread",)),
        ("static __global__ void inner() {} __global__ static void outer() {}", ("inner", "outer")),
        ("void __global__ turned() {}", ("turned",)),
        ("template <int BM>\n__global__ void tiled(float *a) {}", ("tiled",)),
        ("__global__ void __launch_bounds__(256, 2) bounded() {}", ("bounded",)),
        ("__launch_bounds__((BM * BN) / (TM * TN)) __global__ void computed() {}", ("computed",)),
        ("__global__ void twice(int); __global__ void twice(int n) {}", ("twice",)),
        ("// __global__ void gone() {}\n/* __global__ void\n away() {} */", ()),
        ("__device__ void helper() {} void host() {}", ()),
        ("", ()),
    ],
)
def test_kernels_are_found_by_their_declarations(source, names):
    assert kernels_in(source) == names


def test_the_entry_is_called_like_the_file_or_stands_alone():
    two = "__global__ void first() {} __global__ void second() {}"
    assert sole_entry(two, "second") == "second"
    assert sole_entry("__global__ void first() {}", "file") == "first"
    assert sole_entry("MACRO(file)", "file") == "file"
    with pytest.raises(InputError, match=r'file holds 2 kernels: first, second\. Say which: entry="first"'):
        sole_entry(two, "file")


@pytest.mark.parametrize(
    "piece", ["__global__ ", "__global__ void ", "static ", "__launch_bounds__(", "/*", "("]
)
def test_long_sources_take_linear_time(piece):
    assert kernels_in("__global__ " + piece * 200_000) == ()
