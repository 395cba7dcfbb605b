# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The worker process: tied to the one that starts it before anything else is loaded, which takes a second.

Run as `python -m gpuprof.measure.worker PARENT [GPU|sim]`, with its process id and what it will ask for.
"""

import itertools
import sys
from queue import SimpleQueue
from threading import Thread

from gpuprof import signals, timeline
from gpuprof.machine import configure_interpreter, end_with_parent
from gpuprof.measure.starting import EXECUTOR


def main() -> None:
    """Serve the parent until it has no more requests."""
    end_with_parent(int(sys.argv[1]))
    # Ctrl-C and its like are the parent's to handle: it ends the worker when it has saved what is there.
    signals.disregard()
    configure_interpreter()
    first: SimpleQueue[str] = SimpleQueue()
    Thread(target=_receive_first, args=(first,), daemon=True).start()
    for gpu in filter(str.isdecimal, sys.argv[2:]):
        _wake(int(gpu))
    with timeline.span("load"):
        from gpuprof.measure.serving import main as serve

        if EXECUTOR in sys.argv[2:]:
            import gpuprof.backends.sim.backend  # noqa: F401
            from gpuprof.backends.sim.instructions import load_the_rest

            if first.empty():  # there is time for it
                load_the_rest()

    serve(itertools.chain(iter([first.get()]), sys.stdin))


def _receive_first(received: "SimpleQueue[str]") -> None:
    """Take the first request while code is loaded; a GPU's number may come before it."""
    line = sys.stdin.readline()
    if line.strip().isdecimal():
        if line.split() != sys.argv[2:]:
            _wake(int(line))
        line = sys.stdin.readline()
    received.put(line)


def _wake(ordinal: int) -> None:
    """Open a device while code is loaded; what that itself takes is loaded first: all else waits for it."""
    from gpuprof.backends.gpu.ahead import wake

    Thread(target=wake, args=(ordinal,), daemon=True).start()


if __name__ == "__main__":
    main()
