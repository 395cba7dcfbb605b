# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Labels of a run: where they come from, and what cannot be one."""

import pytest

from gpuprof.errors import InputError
from gpuprof.measure.options import read_labels


def test_command_line_wins_over_the_environment():
    environment = {
        "GPUPROF_LABEL_RACK": "r1",
        "GPUPROF_LABEL_HOST": "node7",
        "GPUPROF_LABEL_EMPTY": "",
        "RACK": "x",
    }
    assert read_labels(["rack=r2", "card=a=b"], environment) == {"rack": "r2", "host": "node7", "card": "a=b"}


def test_nothing_names_the_machine_by_itself():
    assert read_labels([], {"HOSTNAME": "node7"}) == {}


@pytest.mark.parametrize(
    "text", ["rack", "rack=", "=r1", "Rack=r1", "a b=c", "x=" + "y" * 201, "x=a\nb", "1x=y"]
)
def test_what_is_no_label_is_refused(text):
    with pytest.raises(InputError):
        read_labels([text], {})


@pytest.mark.parametrize("labels", [{"rack": 3}, {3: "rack"}, {"": "x"}])
def test_labels_of_a_program_are_text(labels):
    with pytest.raises(InputError):
        read_labels(labels)
