# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How cases are shared out: in the order of the plan, and all sizes of a kernel to one worker if possible."""

from problem_support import Transpose, ladder

from gpuprof.measure.case import Case
from gpuprof.measure.pending import Pending

KERNELS = ladder("transpose")[:3]
CASES = [Case.of(kernel, Transpose(size, size)) for size in (8, 16, 32) for kernel in KERNELS]
A, B = object(), object()


def test_one_worker_takes_them_in_order():
    pending = Pending(CASES)
    assert [pending.take(A) for _ in CASES] == list(range(len(CASES)))
    assert pending.take(A) is None


def test_a_worker_keeps_to_its_kernels_while_it_has_any():
    pending = Pending(CASES)
    assert [pending.take(worker) for worker in (A, B, A)] == [0, 1, 2]
    assert [pending.take(B) for _ in range(2)] == [4, 7]
    assert pending.take(B) == 3  # nothing of its own is left
    assert [pending.take(A) for _ in range(4)] == [5, 6, 8, None]


def test_other_parameters_are_other_code():
    kernel = KERNELS[0]
    cases = [Case.of(kernel, Transpose(8, 8), params={"N": number}) for number in (1, 2, 1, 2)]
    pending = Pending(cases)
    assert [pending.take(worker) for worker in (A, B, B, A)] == [0, 1, 3, 2]
