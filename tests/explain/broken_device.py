# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A worker process, or with arguments the command line, whose GPU shows what a planted kernel's name says.

Only the device is false: what it reports goes the way of a real one's reports, and a worker that is to
explain opens the executor as ever.
"""

import sys
import time

import fake_worker

from gpuprof.backends.base import Findings
from gpuprof.errors import CaseFailure
from gpuprof.results import Verification


class BrokenBackend(fake_worker.FakeBackend):
    """A GPU on which every kernel goes wrong."""

    def run(self, case, compiled):
        symptom = case.kernel.id.partition("_")[0]
        if symptom == "fault":
            raise CaseFailure("CUDA_ERROR_LAUNCH_FAILED while waiting for the kernel.", fatal=True)
        if symptom == "hang":
            time.sleep(600)
        output = case.problem.outputs[0]
        wrong = Verification(
            1.0, 1.0, 0.0, output.elements, 1, "1 element is wrong", array=output.name, first_wrong=0
        )
        return Findings("incorrect", reason="1 element is wrong.", verification=wrong)


if __name__ == "__main__":
    fake_worker.FakeBackend = BrokenBackend
    fake_worker.__file__ = __file__
    if sys.argv[1:]:
        from gpuprof.__main__ import main

        fake_worker.take_the_workers_place()
        main()
    else:
        fake_worker.be_a_worker()
