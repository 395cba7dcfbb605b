# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which target a source needs: only one that names an architecture's own instructions asks for more."""

import pytest

from gpuprof.toolchain.nvrtc import architecture_of, target_of


@pytest.mark.parametrize(
    ("arch", "text", "target"),
    [
        ("sm_90", 'asm volatile("wgmma.fence.sync.aligned;");', "sm_90a"),
        ("sm_90", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");', "sm_90a"),
        ("sm_90", 'asm volatile("wmma.load.a.sync.aligned;"); // not wgmma', "sm_90"),
        ("sm_80", 'asm volatile("wgmma.fence.sync.aligned;");', "sm_80"),
        ("sm_100", 'asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");', "sm_100"),
        ("sm_90", "", "sm_90"),
    ],
)
def test_target_follows_the_source(arch, text, target):
    assert target_of(arch, ("int x;", text)) == target
    assert architecture_of(target) == arch
