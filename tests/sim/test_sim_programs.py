# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Decoded programs are kept, but not without bound."""

import pytest

from gpuprof.backends.sim import executed as programs


@pytest.fixture
def decoded(monkeypatch):
    """What is decoded, in order; a program is the text that it came from."""
    seen = []

    def load(ptx, entry, *, observer, with_slice):
        assert not with_slice
        seen.append((ptx, entry, observer is not None))
        return ptx

    monkeypatch.setattr(programs, "load_program", load)
    monkeypatch.setattr(programs, "_KEPT_CHARACTERS", 10)
    return seen


def test_a_text_is_decoded_once_for_each_kernel_and_each_way(decoded):
    kept = programs.Programs()
    for _ in range(2):
        for entry, follow in (("a", False), ("b", False), ("a", True)):
            assert kept.load("ptx", entry, follow_undefined=follow) == "ptx"
    assert decoded == [("ptx", "a", False), ("ptx", "b", False), ("ptx", "a", True)]


def test_what_was_not_used_for_longest_goes_first(decoded):
    kept = programs.Programs()
    for text in ("first", "other", "first", "third", "first", "other"):
        kept.load(text, "k", follow_undefined=False)
    assert [text for text, _, _ in decoded] == ["first", "other", "third", "other"]


def test_a_text_that_is_longer_than_all_that_is_kept_is_still_loaded(decoded):
    kept = programs.Programs()
    for _ in range(2):
        assert kept.load("a long text of PTX", "k", follow_undefined=False)
    assert len(decoded) == 1
