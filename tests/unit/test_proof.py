# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel is proven in its first launch, in all that are timed, and with other inputs."""

import random
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from compile_support import compile_source

from gpuprof.backends.gpu.loaded_case import refuse_grids_of_its_own, used_variables
from gpuprof.backends.gpu.proof import verify_again
from gpuprof.backends.verification import sentence_of
from gpuprof.errors import CaseFailure
from gpuprof.results import Verification
from gpuprof.toolchain.nvrtc import compiler_options

ELEMENTS = 64
RIGHT = Verification(0.0, 0.0, 0.0, ELEMENTS)
WRONG = Verification(1.0, 1.0, 0.0, ELEMENTS, wrong_elements=3, detail="3 of 64 elements are wrong")
OVERRUN = Verification(0.0, 0.0, 0.0, ELEMENTS, detail="the kernel wrote past the end of out")
POISON = float("nan")


class Device:
    """Memory as a kernel sees it, and what is done around its launches.

    The operation is `out[i] = 2 * inputs[i]`, or adds that where kernels read the output. A kernel is a
    function of the device; `kept` is its own memory, which timed launches find empty.
    """

    def __init__(self, kernel, reads_output=False, others="", seed=1, disturbed=0, opaque=False):
        self.disturbed = disturbed
        self.problem = SimpleNamespace(outputs=[SimpleNamespace(name="out")])
        self.in_cuda_arrays = {"out"} if opaque else set()
        self.kernel, self.reads_output, self._missing = kernel, reads_output, others
        self._random = random.Random(seed)
        self.inputs = [self._random.random() for _ in range(ELEMENTS)]
        self._others = [self._random.random() for _ in range(ELEMENTS)]
        self.kept: dict = {}
        self.launches = self.worked = self.renewed = 0
        self._picked: list[int] = []
        self._wrong = 0

    def prepare(self):
        self.out = [0.0 if self.reads_output else POISON] * ELEMENTS

    def launch(self):
        self.kernel(self)
        self.launches += 1

    def work(self, places=range(ELEMENTS)):
        """What an honest kernel does."""
        self.worked += 1
        for place in places:
            old = self.out[place] if self.reads_output else 0.0
            self.out[place] = old + 2 * self.inputs[place]

    def verify(self):
        return RIGHT if self.out == [2 * value for value in self.inputs] else WRONG

    def spoil(self, *, whole=False):
        if self.in_cuda_arrays:
            return
        if self.reads_output:
            self.prepare()
        self._picked = range(ELEMENTS) if whole else self._random.sample(range(ELEMENTS), 8)
        for place in () if self.reads_output else self._picked:
            self.out[place] *= -1.5

    def after(self):
        self._wrong += sum(self.out[place] != 2 * self.inputs[place] for place in self._picked)

    def sentence(self):
        return f"{self._wrong} elements are wrong" if self._wrong else ""

    @contextmanager
    def other_inputs(self, settle):
        if self._missing:
            yield self._missing
            return
        settle()
        first, self.inputs = self.inputs, self._others
        if self.reads_output:
            self.prepare()
        yield ""
        self.inputs = first

    def renew_others(self):
        self._others = [self._random.random() for _ in range(ELEMENTS)]
        self.renewed += 1

    def verify_others(self):
        return self.verify()


def proven(kernel, *, timed=20, warm=5, **of_device):
    """Where the sequence of a GPU finds a kernel wrong, and its device."""
    device = Device(kernel, **of_device)
    device.prepare()
    device.launch()
    if not device.verify().passed:
        return "at first", device
    for _ in range(timed):
        device.kept.clear()
        device.spoil()
        device.launch()
        device.after()
    for _ in range(warm):
        device.launch()
    worked = device.worked
    device.launch()
    usual = device.worked - worked

    def launch_timed():
        worked = device.worked
        device.launch()
        return "slower" if device.worked - worked > usual or device.renewed < device.disturbed else ""

    def follow():
        for _ in range(4):
            device.spoil(whole=True)
            device.launch()
            device.after()

    def verify_anew():
        device.prepare()
        device.launch()
        return device.verify()

    found, untried = verify_again(device, device, follow, verify_anew, device.launch, launch_timed)
    device.untried, device.found = untried, found
    return ("yes" if found.passed else "later"), device


def honest(device):
    device.work()


def does_nothing(device):
    pass


def works_once(device):
    if device.launches == 0:
        device.work()


def works_from_the_second_on(device):
    if device.launches:
        device.work()


def leaves_what_it_finds(device):
    if device.out[0] != device.out[0]:  # poison
        device.work()


def looks_at_the_ends(device):
    """Recognises its last result by a few elements that it computes."""
    if any(device.out[place] != 2 * device.inputs[place] for place in (0, 1, -1)):
        device.work()


def remembers_that_it_worked(device):
    if not device.kept.get("done"):
        device.work()
        device.kept["done"] = True


def remembers_the_result(device):
    if "result" not in device.kept:
        device.work()
        device.kept["result"] = list(device.out)
    device.out[:] = device.kept["result"]


def remembers_where_nobody_clears(device):
    device.result = getattr(device, "result", None) or [2 * value for value in device.inputs]
    device.out[:] = device.result


def remembers_by_inputs_where_nobody_clears(device):
    known = device.__dict__.setdefault("known", {})
    key = tuple(device.inputs[:4])
    if key not in known:
        device.work()
        known[key] = list(device.out)
    device.out[:] = known[key]


def leaves_one_out_that_holds_a_number(device):
    device.work([i for i in range(ELEMENTS) if i != 41 or device.out[i] != device.out[i]])


def writes_less_and_less(device):
    device.work(range(max(0, ELEMENTS - device.launches)))


def works_every_other_time(device):
    if device.launches % 2 == 0:
        device.work()


def works_on_first_and_last_rows(device):
    device.work([*range(8), *range(ELEMENTS - 8, ELEMENTS)])


def knows_one_seed(device):
    known = Device(None).inputs
    device.out[:] = [2 * value for value in known]


def is_right_sometimes(device):
    device.work()
    if device.launches % 7 == 6:
        device.out[:] = [0.0] * ELEMENTS


def is_wrong_for_a_while(device):
    device.work()
    if device.launches == 20:
        device.out[:] = [0.0] * ELEMENTS


def is_wrong_from_now_on(device):
    if device.launches < 26:
        device.work()


@pytest.mark.parametrize(
    ("verdict", "kernels", "how"),
    [
        ("yes", (honest,), {}),
        ("at first", (does_nothing, works_from_the_second_on, works_on_first_and_last_rows), {}),
        (
            "later",
            (
                *(works_once, leaves_what_it_finds, looks_at_the_ends, remembers_that_it_worked),
                *(remembers_the_result, remembers_where_nobody_clears),
                *(remembers_by_inputs_where_nobody_clears, leaves_one_out_that_holds_a_number),
                *(writes_less_and_less, works_every_other_time, knows_one_seed, is_right_sometimes),
                *(is_wrong_for_a_while, is_wrong_from_now_on),
            ),
            {},
        ),
        # An output that is read is looked at from its old content.
        ("yes", (honest,), {"reads_output": True}),
        ("later", (works_once, remembers_where_nobody_clears, is_wrong_from_now_on), {"reads_output": True}),
        # What stands in a CUDA array is neither changed nor restored between launches.
        ("yes", (honest,), {"opaque": True}),
        ("yes", (honest,), {"opaque": True, "reads_output": True}),
        ("later", (works_once, is_wrong_from_now_on), {"opaque": True}),
        # An element that no timed launch happened to spoil is found behind them.
        ("later", (leaves_one_out_that_holds_a_number,), {"timed": 0, "warm": 0}),
    ],
)
def test_kernel_that_goes_wrong_at_any_time_is_found(verdict, kernels, how):
    assert {kernel.__name__: proven(kernel, **how)[0] for kernel in kernels} == {
        kernel.__name__: verdict for kernel in kernels
    }


def test_every_timed_launch_of_a_kernel_that_remembers_does_its_work():
    """What it remembers is gone, and so its time is that of the work."""
    for kernel in (remembers_that_it_worked, remembers_the_result):
        verdict, device = proven(kernel, timed=20, warm=5)
        assert verdict == "later"
        assert device.worked >= 20


def test_a_launch_that_only_a_disturbance_made_slower_is_tried_with_other_inputs_again():
    for disturbed, verdict in ((0, "yes"), (1, "yes"), (4, "yes"), (5, "later")):
        found, device = proven(honest, disturbed=disturbed)
        assert (found, device.renewed) == (verdict, min(disturbed, 4))
    assert device.found.detail == "slower"


def test_what_could_not_be_tried_is_told():
    verdict, device = proven(honest, others="Not tried with other inputs: no room")
    assert verdict == "yes"
    assert device.untried == ("Not tried with other inputs: no room",)
    assert proven(honest)[1].untried == ()


def test_verification_fails_by_its_detail_alone_and_says_when():
    assert [one.passed for one in (RIGHT, OVERRUN, WRONG)] == [True, False, False]
    assert sentence_of(WRONG, later=False) == "3 of 64 elements are wrong."
    assert sentence_of(OVERRUN, later=False) == "The kernel wrote past the end of out."
    assert sentence_of(OVERRUN, later=True) == (
        "Right in its first launch, wrong in a later one: the kernel wrote past the end of out."
    )


PTX = """
.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 _ZZ5cheatE4seen;
.visible .global .align 8 .b8 result[4096];
.weak .global .attribute(.managed) .align 4 .f32 shared_with_host;
.global .align 16 .v4 .f32 four = {1.0, 2.0, 3.0, 4.0};
.global .align 1 .b8 $str[8] = {104, 105};
.global .align 1 .b8 _ZN4cuda3std5tag_tE[1];
.global .align 1 .b8 seen[1];
.global .align 8 .u64 where[1] = {generic(result)};
.const .align 4 .f32 table[4];
.extern .shared .align 16 .b8 tile[];
.global .texref picture;
.visible .entry cheat(.param .u64 out)
{
\tld.global.u32 \t%r1, [_ZZ5cheatE4seen];
\tmov.u64 \t%rd1, shared_with_host;
\tst.global.f32 \t[four+4], %f1;
\tmov.u64 \t%rd2, $str;
\tld.const.f32 \t%f2, [table];
\tret;
}
"""


def test_variables_that_outlast_a_launch_are_those_that_code_can_reach():
    assert used_variables(PTX) == ("_ZZ5cheatE4seen", "result", "shared_with_host", "four", "$str")


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("other<<<1, 1>>>(n);", True),
        ("cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);", True),
        ('printf("%d", n); assert(n); free(malloc(n));', False),
    ],
)
def test_a_kernel_that_starts_grids_is_refused(body, refused):
    source = "static __global__ void other(int n) {}\n__device__ cudaGraphExec_t graph;\n"
    source += f'extern "C" __global__ void cudaLaunchDeviceOfMine(int n) {{ {body} }}'
    options = [*compiler_options("sm_90", []), "-rdc=true"]
    ptx = compile_source(source, "x.cu", "cudaLaunchDeviceOfMine", options).ptx
    if refused:
        with pytest.raises(CaseFailure, match="launches grids itself"):
            refuse_grids_of_its_own("mine", ptx)
    else:
        refuse_grids_of_its_own("mine", ptx)
