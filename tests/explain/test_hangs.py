# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Hangs: what every warp waits for, where a device ran out of time and where the executor is the device."""

import re
from pathlib import Path

import pytest
from cuda_sources import either, kernel_table, line_of

import gpuprof
from gpuprof.kernels.paths import Source, ladder_of

pytestmark = pytest.mark.deep

HANGS = kernel_table(Path(__file__).parent / "hangs.cu")


def sources(number, name):
    """A hung kernel, and its right twin."""
    kinds = {f"hung{number}": True, f"right{number}": False}
    return [
        Source(either(HANGS[name].text, first=hangs).replace("hung", kind), kind)
        for kind, hangs in kinds.items()
    ]


TWINS = {name: sources(number, name) for number, name in enumerate(HANGS)}


def words_of(name):
    """What is to be said, with the numbers of lines."""
    source = TWINS[name][0].text
    return [
        re.sub(r"@(\d)", lambda found: str(line_of(source, f"// {found[1]}")), one)
        for one in HANGS[name].told["words"]
    ]


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_says_what_every_warp_waits_for(name, explained):
    hung, right = TWINS[name]
    explanation, why_not = explained(ladder_of([hung]), hung.name, (256,), "hang")
    assert explanation is not None, why_not
    for one in words_of(name):
        assert one in explanation.text
    explanation, _ = explained(ladder_of([right]), right.name, (256,), "hang")
    assert explanation is None


def test_the_executor_says_it_of_itself():
    kinds = ("a named barrier with too few", "an arrival too few", "a lock that stays taken")
    run = gpuprof.profile([one for name in kinds for one in TWINS[name]], device="sim", timeout_s=20)
    for name in kinds:
        hung, right = (run.case(one.name) for one in TWINS[name])
        for one in words_of(name):
            assert one in hung.reason, name
        assert right.outcome == "ok", name
