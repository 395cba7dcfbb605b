# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Explanations of kernels whose blocks form clusters, and their samples."""

import pytest
from cuda_sources import kernel_file, line_of
from planted_kernels import FOLDER

import gpuprof
from gpuprof.kernels.paths import Source, ladder_of

pytestmark = pytest.mark.deep

#: Each block fetches the factors of its neighbour in the cluster, and takes its own from there.
KERNEL = kernel_file("through_clusters")


@pytest.fixture
def kernel(tmp_path):
    """Makes a ladder of the kernel with some of its text replaced; gives it, its name and its text."""
    operation = ladder_of([FOLDER]).operation

    def make(name, *replacements):
        text = KERNEL.replace("KERNEL", name)
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        return ladder_of([Source(text, name)], operation), text

    return make


#: What is changed, the symptom, the line that is to blame, and the explanation's words.
PLANTED = {
    "no_first_barrier": (("meet(); // first", ""), "wrong", "// read", "reads byte"),
    "no_second_barrier": (
        ("meet(); // second", ""),
        "fault",
        "// read",
        "which ends without waiting for that",
    ),
    "beyond": (
        ("[threadIdx.x]; // read", "[threadIdx.x + 999]; // read"),
        "fault",
        "// read",
        "of rank 1, which has",
    ),
    "wrong_factor": (("* factor;", "* (factor + (row == 3));"), "wrong", "// store", "belongs"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_faults_in_clusters_are_explained(kernel, explained, name):
    replacement, symptom, line, words = PLANTED[name]
    ladder, text = kernel(name, replacement)
    explanation, why_not = explained(ladder, name, (75, 140), symptom)
    assert explanation is not None, why_not
    assert explanation.line == line_of(text, line)
    assert words in explanation.text
    assert not explanation.is_another


def test_a_fault_of_a_late_cluster_is_found(kernel, explained):
    ladder, text = kernel("late", ("* factor;", "* (factor + (row == 4900 && column == 5000));"))
    element = 4900 * 6001 + 5000
    explanation, _ = explained(ladder, "late", (5001, 6001), "wrong", output="y", element=element)
    assert explanation.line == line_of(text, "// store")
    assert (explanation.block, explanation.thread) == ((5000 // 32, 4900 // 4, 0), (5000 % 32, 0, 0))


def test_a_right_kernel_is_ok_whole_and_sampled(kernel, tmp_path):
    _, text = kernel("right")
    path = tmp_path / "right.cu"
    path.write_text(text)
    options = {"operation": FOLDER / "operation.toml", "device": "sim:h200"}
    cases = [
        gpuprof.profile(path, sizes=(200, 300), sim_blocks=blocks, **options).case() for blocks in ("all", 25)
    ]
    assert [case.outcome for case in cases] == ["ok", "ok"], [case.reason for case in cases]
    whole, sampled = (case.record.counters["global_load_sectors"] for case in cases)
    assert (whole.sampled_blocks, sampled.sampled_blocks) == (500, 24)
    assert sampled.value == whole.value
