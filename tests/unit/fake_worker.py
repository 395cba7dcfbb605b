# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A worker process whose device does what a kernel's name says: the stand-in for a GPU that breaks.

Everything but the device is the real worker's code. With arguments it is the real command line instead, with
this file in place of its worker.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from gpuprof import signals
from gpuprof.backends.base import CompileOnlyBackend, Findings
from gpuprof.errors import CaseFailure, CaseSkipped
from gpuprof.machine import end_with_parent
from gpuprof.measure import serving, starting
from gpuprof.records import replace
from gpuprof.results import Condition, TimingPair, Verification
from gpuprof.statistics import summarise


class FakeBackend(CompileOnlyBackend):
    """Runs kernels by their names."""

    name = "gpu"

    def __init__(self, device, selector="0"):
        super().__init__(device, "nothing is missing")
        self._selector = selector
        self._slower = float(os.environ.get(f"FAKE_WORKER_SLOWER_{selector}", "0"))
        self.bus_id = f"0000:0{selector}:00.0"

    bus_id = ""

    @property
    def conditions(self):
        load = "kernels of other processes ran in 97 % of the last moment"
        return (Condition("load", "disturbs", load),) if self._slower else (Condition("load", "ok", "idle"),)

    def measured_device(self):
        return replace(self.device, measured_copy_bandwidth_gbps=1234.0)

    def problem_bytes(self, problem):
        if os.environ.get("FAKE_WORKER_SIZES_NOTHING"):
            os._exit(9)
        return super().problem_bytes(problem)

    def run(self, case, compiled):
        what = case.kernel.id.partition("_")[2]
        if what == "crashes":
            print("assertion failed in the driver", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if what == "unplugs1" and self._selector == "1":
            Path(os.environ["FAKE_WORKER_UNPLUGGED"]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "exits":
            print("out of something", file=sys.stderr, flush=True)
            os._exit(7)
        if what == "raises":
            raise RuntimeError("a bug in the backend")
        if what == "hangs":
            if place := os.environ.get("FAKE_WORKER_HANGS"):
                from hurried_clock import hang

                hang(place)
            time.sleep(600)
        if what == "prints":
            os.write(1, b"hello from the kernel\n{}\n")
        if what == "lies":
            return Findings("ok", verification=Verification(0.0, 0.0, -1.0, 1))
        if what == "loses_context":
            self.lost = True
            raise CaseFailure("CUDA_ERROR_ILLEGAL_ADDRESS: the kernel wrote outside its arrays.", fatal=True)
        if what == "too_big":
            raise CaseFailure("It needs 1 MiB of shared memory; the device has 99 KiB.", over_limit=True)
        if what == "unfit":
            raise CaseSkipped("The backend cannot execute this kernel.")
        assert not getattr(self, "lost", False), "a case ran in a context that is lost"
        outcome = "incorrect" if what == "wrong" else "ok"
        return Findings(
            outcome,
            reason="3 of 4096 elements are wrong." if what == "wrong" else None,
            verification=Verification(0.0, 0.0, 0.0, case.problem.outputs[0].elements),
            timing=TimingPair(summarise([10.0 * (1 + self._slower)] * 8), None) if outcome == "ok" else None,
            timing_reason=None if outcome == "ok" else "a wrong kernel gets no time",
        )


def open_backend(options, _libraries=()):
    """In place of the real one: any selector gives the same device."""
    from gpuprof.devices.cards import device_for_arch

    selector = options.device
    if selector == "1" and os.path.exists(os.environ.get("FAKE_WORKER_UNPLUGGED", "/nowhere")):
        from gpuprof.errors import BackendUnavailable

        raise BackendUnavailable("The GPU has fallen off the bus.", fix="Restart the machine.")

    log = os.environ.get("FAKE_WORKER_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as file:
            print(os.getpid(), file=file)
        with open(log, encoding="utf-8") as file:
            refusals = len(file.readlines()) - int(os.environ.get("FAKE_WORKER_STARTS", "99"))
            if 0 < refusals <= int(os.environ.get("FAKE_WORKER_REFUSALS", "99")):
                from gpuprof.errors import BackendUnavailable

                raise BackendUnavailable("The GPU has fallen off the bus.", fix="Restart the machine.")
    return FakeBackend(replace(device_for_arch("sm_86"), source="driver"), selector), None


def be_a_worker():
    end_with_parent(os.getppid())
    signals.disregard()
    # As it says, kernels that come late are being compiled for ever.
    late = property(lambda self: tuple(name for name, _ in self._awaited if name.endswith("_late")))
    serving.open_backend, serving.Compiler.compiling = open_backend, late
    # There is no GPU to wake, whose number may come first.
    serving.main(line for line in sys.stdin if not line.strip().isdecimal())


def take_the_workers_place(patch=setattr, fork=False):
    """Make gpuprof start this file where it would start its worker, or fork what has loaded it."""

    def start(command, **options):
        assert command[1:4] == ["-m", "gpuprof.measure.worker", str(os.getpid())]
        if fork:  # and only then, as a script does not find it
            from command_server import MAY_FORK, ForkedWorker

            if MAY_FORK:
                return ForkedWorker(command, be_a_worker, **options)
        return subprocess.Popen([command[0], __file__], **options)

    patch(starting, "subprocess", SimpleNamespace(Popen=start, PIPE=subprocess.PIPE))


if __name__ == "__main__":
    if sys.argv[1:]:
        from gpuprof.__main__ import main

        take_the_workers_place()
        main()
    else:
        be_a_worker()
