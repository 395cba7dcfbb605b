# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel is proven in its first launch, in all that are timed, and with other inputs."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from compile_support import compile_source

from gpuprof.backends.gpu.launch_checks import verify_again
from gpuprof.backends.gpu.loaded_case import refuse_grids_of_its_own, used_variables
from gpuprof.backends.verification import sentence_of
from gpuprof.errors import CaseFailure
from gpuprof.results import Verification
from gpuprof.toolchain.nvrtc import compiler_options

ELEMENTS = 64
RIGHT = Verification(0.0, 0.0, 0.0, ELEMENTS)
WRONG = Verification(1.0, 1.0, 0.0, ELEMENTS, wrong_elements=3, detail="3 of 64 elements are wrong")
OVERRUN = Verification(0.0, 0.0, 0.0, ELEMENTS, detail="the kernel wrote past the end of out")


def proven(*looks, sentence="", slower=0, reads_output=False, opaque=False, missing=""):
    """What is said where outputs look like this, one look after the other, and right then; and what was done.

    The kernel takes longer than it should with so many inputs that it has not seen.
    """
    found, done = iter(looks), []

    def look(how):
        done.append(how)
        return next(found, RIGHT)

    @contextmanager
    def other_inputs(settle):
        if not missing:
            settle()
        yield missing

    def launch_timed():
        done.append("launch")
        return "slower" if done.count("launch") <= slower else ""

    arrays = SimpleNamespace(
        problem=SimpleNamespace(outputs=[SimpleNamespace(name="out")]),
        in_cuda_arrays={"out"} if opaque else set(),
        reads_output=reads_output,
        verify=lambda: look("verify"),
        verify_others=lambda: look("verify others"),
        other_inputs=other_inputs,
        renew_others=lambda: done.append("renew"),
    )
    checks = SimpleNamespace(sentence=lambda: sentence)
    follow, again = (lambda: done.append("follow")), (lambda: done.append("time again"))
    verification, untried = verify_again(arrays, checks, follow, lambda: look("anew"), again, launch_timed)
    return verification, untried, done


#: What kernels do that one of these steps finds, tests/cheats and tests/emulated know.
UNSEEN = ["launch", "verify others"]


@pytest.mark.parametrize(
    ("looks", "how", "detail", "steps"),
    [
        ((), {}, "", ["verify", "follow", "verify", *UNSEEN]),
        ((WRONG,), {}, WRONG.detail, ["verify"]),
        ((RIGHT, WRONG), {}, WRONG.detail, ["verify", "follow", "verify"]),
        ((RIGHT, RIGHT, WRONG), {}, WRONG.detail, ["verify", "follow", "verify", *UNSEEN]),
        ((), {"sentence": "3 are wrong"}, "3 are wrong", ["verify", "follow", "verify"]),
        # What many launches leave behind that build on each other has no reference.
        ((), {"reads_output": True}, "", ["follow", "verify", *UNSEEN]),
        # What stands in a CUDA array is neither changed nor restored between launches.
        ((), {"opaque": True}, "", ["verify", "follow", "anew", *UNSEEN]),
    ],
)
def test_it_is_looked_at_after_the_timed_launches_and_with_other_inputs(looks, how, detail, steps):
    found, untried, done = proven(*looks, **how)
    assert (found.detail, untried, done) == (detail, (), steps)


def test_a_launch_that_only_a_disturbance_made_slower_is_tried_with_other_inputs_again():
    for slower, detail in ((0, ""), (1, ""), (4, ""), (5, "slower")):
        found, _, done = proven(slower=slower)
        assert (found.detail, done.count("renew")) == (detail, min(slower, 4))
        assert done.count("time again") == done.count("renew")


def test_what_could_not_be_tried_is_told():
    found, untried, done = proven(missing="Not tried with other inputs: no room")
    assert (found, untried) == (RIGHT, ("Not tried with other inputs: no room",))
    assert "launch" not in done


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
