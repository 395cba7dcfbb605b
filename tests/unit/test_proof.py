# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel is proven in its first launch, after it was timed, and once more: whatever goes wrong."""

import pytest

from gpuprof.backends.gpu.proof import sentence_of, verify_again, verify_first
from gpuprof.results import Verification

RIGHT = Verification(0.0, 0.0, 0.0, 4)
WRONG = Verification(1.0, 1.0, 0.0, 4, wrong_elements=3, detail="3 of 4 elements are wrong")
OVERRUN = Verification(0.0, 0.0, 0.0, 4, detail="the kernel wrote past the end of out")


class Arrays:
    """One output, and a kernel that writes what a function says for its launch and the old content."""

    def __init__(self, kernel, reads_output=False):
        self.reads_output = reads_output
        self.launches = 0
        self._kernel = kernel

    def prepare(self, unread=None):
        self.content = "poison" if unread is None else "numbers"

    def launch(self):
        written = self._kernel(self.launches, self.content)
        self.content = self.content if written is None else written
        self.launches += 1

    def verify(self):
        return RIGHT if self.content == "right" else WRONG


def proven(kernel, reads_output=False, timed=20):
    arrays = Arrays(kernel, reads_output)
    if not verify_first(arrays, arrays.launch).passed:
        return "at first"
    for _ in range(timed):
        arrays.launch()
    return "yes" if verify_again(arrays, arrays.launch).passed else "later"


@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [
        (lambda launch, old: "right", "yes"),
        (lambda launch, old: "wrong", "at first"),
        (lambda launch, old: None, "at first"),
        (lambda launch, old: "right" if launch == 0 else "wrong", "later"),
        (lambda launch, old: "right" if launch == 0 else None, "later"),
        (lambda launch, old: "right" if old == "poison" else "wrong", "later"),
        (lambda launch, old: "wrong" if launch == 20 else "right", "later"),
        (lambda launch, old: "wrong" if launch == 21 else "right", "later"),
    ],
)
def test_kernel_that_goes_wrong_at_any_time_is_found(kernel, verdict):
    assert proven(kernel) == verdict


def test_output_that_is_read_is_looked_at_after_one_launch_on_clean_arrays_only():
    accumulating = lambda launch, old: "right" if old == "poison" else old + "+"  # noqa: E731
    assert proven(accumulating, reads_output=True) == "yes"
    assert proven(accumulating, reads_output=False) == "later"
    assert proven(lambda launch, old: "right" if launch == 0 else None, reads_output=True) == "later"


def test_numbers_take_the_place_of_poison_in_every_launch_on_clean_arrays():
    reads = Arrays(lambda launch, old: "wrong" if old == "poison" else "right")
    assert not verify_first(reads, reads.launch).passed
    assert verify_first(reads, reads.launch, 1.0).passed
    assert verify_again(reads, reads.launch, 1.0).passed


def test_sentence_says_when():
    assert sentence_of(WRONG, later=False) == "3 of 4 elements are wrong."
    assert sentence_of(OVERRUN, later=False) == "The kernel wrote past the end of out."
    assert sentence_of(OVERRUN, later=True) == (
        "Right in its first launch, wrong in a later one: the kernel wrote past the end of out."
    )


def test_verification_fails_by_its_detail_alone():
    assert RIGHT.passed
    assert not OVERRUN.passed
    assert not WRONG.passed
