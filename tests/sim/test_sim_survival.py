# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that will not end, in the compiler or on the device, cost their own row only."""

import pytest
from unit_support import MINIMAL, TRANSPOSE_BODY

from gpuprof import Source, profile
from gpuprof.commands.profile import exit_code
from gpuprof.records import replace

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("unread")]

#: Divisions, each of which depends on the one before: they keep the compiler busy for a minute and more.
BOMB = (
    "real sum = in[0];\n"
    + "".join(f"    sum = sum * (real){index}.5 + in[{index % 7}] / sum;\n" for index in range(8000))
    + "    if (sum == (real)12345)\n        out[0] = sum;"
)


def kernel(name, rung, amiss="", tables=""):
    """A transpose with something amiss in its body."""
    header = (
        MINIMAL["transpose"].replace("problem =", f"rung = {rung}\nproblem =").replace("*/", f"{tables}*/")
    )
    body = TRANSPOSE_BODY.format(name=name).replace("    if (x", f"    {amiss}\n    if (x")
    return Source(header + body, name)


def test_kernel_that_does_not_end_in_the_compiler_is_a_row_and_the_next_is_measured():
    kernels = [kernel("bomb", 1, BOMB), kernel("good", 2)]
    run = profile(kernels, sizes=32, device="none", compile_timeout_s=5.0)
    bomb, good = run.cases
    assert bomb.outcome == "timeout"
    assert bomb.reason == (
        "The case did not compile within 5 s and was stopped. Allow more with --compile-timeout."
    )
    assert good.reason.startswith("Compiled, not run")


def test_kernels_that_do_not_end_are_rows_whatever_they_print_and_the_next_is_measured():
    endless = {
        "prints": 'while (in) printf("%d\\n", x);',
        "hangs": "while (*(volatile const real *)in == in[0]);",
    }
    kernels = [kernel(name, rung, amiss) for rung, (name, amiss) in enumerate(endless.items())]
    run = profile([*kernels, kernel("good", 9)], sizes=32, device="sim:h200", timeout_s=2.0, explain=False)
    prints, hangs, good = run.cases
    assert (prints.outcome, good.outcome) == ("timeout", "ok")
    told = "The case did not end within 2 s of CPU time and was stopped. Allow more with --timeout."
    assert prints.reason == told
    assert hangs.outcome in ("failed", "timeout")  # the executor sees that nothing will change


def test_case_that_the_executor_has_no_time_for_is_not_counted_and_no_failure():
    kernels = [kernel("prints", 1, 'while (in) printf("%d\\n", x);')]
    run = profile(kernels, sizes=[(2048, 2048), (32, 32)], device="sim:h200", timeout_s=1.0, explain=False)
    large, small = run.cases
    assert large.outcome == "skipped"
    assert large.reason.startswith("Not counted: the executor did not finish within 1 s")
    assert large.reason.endswith("or choose a smaller size: --sizes 1024.")
    assert small.outcome == "timeout"  # so little work takes this long only where it never ends
    tables = '[[require]]\ncondition = "nx == 2048"\nbecause = "its size is fixed"\n'
    fixed = kernel("fixed", 1, 'while (in) printf("%d\\n", x);', tables)
    options = {"device": "sim:h200", "timeout_s": 1.0, "explain": False}
    (only,) = profile([fixed], sizes=[(2048, 2048)], **options)
    assert only.reason.endswith("Allow more with --timeout: no smaller size suits this kernel.")
    good = replace(large.record, outcome="ok")
    assert exit_code(replace(run.record, cases=(large.record, good))) == 0


def test_kernels_that_do_their_worst_are_rows_and_the_next_is_measured():
    worst = {
        "asserts": "assert(x < 0);",
        "corrupts": "out[-(1 << 28)] = 1;",
        "exhausts": "for (int i = 0; i < 4096; ++i) if (!malloc(1 << 20)) __trap();",
    }
    kernels = [kernel(name, rung, amiss) for rung, (name, amiss) in enumerate(worst.items())]
    run = profile([*kernels, kernel("good", 9)], sizes=32, device="sim:h200", explain=False)
    assert [case.outcome for case in run.cases] == ["failed", "failed", "failed", "ok"]
    for case, word in zip(run.cases, ("assert", "out", "trap"), strict=False):
        assert word in case.reason
