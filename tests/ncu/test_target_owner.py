# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What Nsight Compute profiles ends with the run that wants it: nobody is there to end it after SIGKILL."""

import subprocess
import sys

WAITS = (
    "import sys, time\n"
    "from gpuprof.ncu.target import end_with\n"
    "end_with(int(sys.argv[1]))\n"
    "print('waiting', flush=True)\n"
    "time.sleep(600)\n"
)


def start(owner):
    return subprocess.Popen(
        [sys.executable, "-c", WAITS, str(owner)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def test_target_ends_with_its_owner():
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    target = start(owner.pid)
    try:
        assert target.stdout.readline() == "waiting\n"
        owner.kill()
        owner.wait()
        assert target.wait(timeout=300) == 1
    finally:
        target.kill()


def test_target_whose_owner_is_gone_does_not_begin():
    owner = subprocess.Popen([sys.executable, "-c", ""])
    owner.wait()
    target = start(owner.pid)
    assert target.stdout.read() == ""
    assert target.wait(timeout=300) == 1
