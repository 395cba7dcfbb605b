# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as the public writes them: the executor tells right from wrong."""

import pytest
from public_corpus import executed, families, ladders

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_each_gets_its_verdict(family):
    complaints = [row.complaint for row in executed(family) if row.complaint]
    assert not complaints, "\n".join(complaints)


def test_there_are_many():
    kernels = [kernel for family in families() for ladder in ladders(family) for kernel in ladder.kernels]
    assert len(kernels) >= 120
    assert sum("bad_" in kernel.id for kernel in kernels) >= 20
