# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which process answers a case, and what becomes of it when one goes wrong."""

import os

import pytest
from card_process import CardProcess, CardTrouble

pytestmark = pytest.mark.deep


class Runs:
    """Instead of a card."""

    arch = "sm_90"

    def __init__(self, folder):
        (folder / f"{os.getpid()}").touch()

    def run(self, case):
        if case == "fault":
            raise ValueError("an illegal instruction")
        if case == "hang":
            raise TimeoutError
        if case == "end":
            os._exit(3)
        return case, os.getpid()


class Unopened:
    def __init__(self, folder):
        raise RuntimeError("no device")


def test_a_process_goes_on_until_a_case_fails(tmp_path):
    with CardProcess(Runs, tmp_path) as card:
        assert card.arch == "sm_90"
        (_, first), (case, second) = card.run("a"), card.run("b")
        assert case == "b"
        assert first == second != os.getpid()
        for case, text in (
            ("fault", "ValueError: an illegal instruction"),
            ("hang", "the launch does not end"),
            ("end", "the process ended"),
        ):
            with pytest.raises(CardTrouble, match=text):
                card.run(case)
        assert card.run("c")[1] != first
    # Two that failed were started for nothing else.
    assert len(list(tmp_path.iterdir())) == 4


def test_a_card_that_cannot_be_opened(tmp_path):
    with pytest.raises(CardTrouble, match="RuntimeError: no device"):
        CardProcess(Unopened, tmp_path)
