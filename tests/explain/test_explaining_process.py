# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Explanations beside a device: what is asked, by which process, and what becomes of it when that is lost."""

import pytest
from planted_kernels import FOLDER, PLANTED, SIZE, check_row

#: Of each symptom some, since a device that is lost takes seconds to open again.
SHOWN = ("fault_read_past", "fault_barrier_count", "hang_lock", "wrong_tail")


@pytest.fixture(scope="module")
def run(run_broken):
    options = ("--sizes", SIZE, "--timeout", "8", "--reference", "none")
    return run_broken("run", str(FOLDER), "-k", ",".join(SHOWN), *options)


@pytest.mark.parametrize("name", SHOWN)
def test_a_row_of_a_device_says_what_the_executor_found(run, name):
    rows, _ = run
    check_row(rows[name], next(planted for planted in PLANTED if planted.name == name))


def test_the_terminal_shows_it(run):
    _, shown = run
    words = " ".join(shown.split())
    assert (
        "Illegal address: line 17, thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes past the end of x"
        in words
    )
    assert "(found by the executor at size 43x44)" in words
