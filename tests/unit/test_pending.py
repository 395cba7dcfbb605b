# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How cases are shared out: in the order of the plan, and all sizes of a kernel to one worker if possible."""

from dataclasses import replace

from problem_support import Gemm, Transpose, ladder

from gpuprof.devices.cards import load_card
from gpuprof.kernels.shape import choose
from gpuprof.measure.case import Case
from gpuprof.measure.session import Pending

KERNELS = ladder("transpose")[:3]
CASES = [Case.of(kernel, Transpose(size, size)) for size in (8, 16, 32) for kernel in KERNELS]
DEVICE = load_card("h200")
A, B = object(), object()


def test_one_worker_takes_them_in_order():
    pending = Pending(CASES, DEVICE)
    assert [pending.take(A) for _ in CASES] == list(range(len(CASES)))
    assert pending.take(A) is None


def test_a_worker_keeps_to_its_kernels_while_it_has_any():
    pending = Pending(CASES, DEVICE)
    assert [pending.take(worker) for worker in (A, B, A)] == [0, 1, 2]
    assert [pending.take(B) for _ in range(2)] == [4, 7]
    assert pending.take(B) == 3  # nothing of its own is left
    assert [pending.take(A) for _ in range(4)] == [5, 6, 8, None]


def test_other_parameters_are_other_code():
    kernel = KERNELS[0]
    cases = [Case.of(kernel, Transpose(8, 8), params={"N": number}) for number in (1, 2, 1, 2)]
    pending = Pending(cases, DEVICE)
    assert [pending.take(worker) for worker in (A, B, B, A)] == [0, 1, 3, 2]


def test_a_kernel_that_chooses_another_goes_where_that_one_is():
    kernels = {kernel.id: kernel for kernel in ladder("gemm")}
    alternatives = tuple(kernels.values())
    problem = Gemm(128, 128, 128)
    chosen = choose(kernels["by_size"], alternatives, problem, DEVICE)
    cases = [Case.of(kernels["by_size"], problem, alternatives=alternatives)]
    cases += [Case.of(kernel, problem) for kernel in (kernels["naive"], chosen)]
    pending = Pending(cases, DEVICE)
    assert [pending.take(worker) for worker in (A, B, A)] == [0, 1, 2]
    pending = Pending(cases, DEVICE)
    assert [pending.take(worker) for worker in (A, B, B)] == [0, 1, None]  # what A finds is known then
    assert not pending.settled()
    pending.done(0)
    assert pending.take(B) is None
    assert pending.take(A) == 2
    pending.give_back(2)
    assert pending.take(B) == 2  # who lost its place finds nothing


def test_a_kernel_that_can_choose_none_is_shared_out_too():
    by_size = next(kernel for kernel in ladder("gemm") if kernel.id == "by_size")
    none = replace(by_size, choices=tuple(replace(choice, when="M < 0") for choice in by_size.choices))
    pending = Pending([Case.of(none, Gemm(128, 128, 128))], DEVICE)
    assert pending.take(A) == 0
