# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The worker process: tied to the one that starts it before anything else is loaded, which takes a second.

Run as `python -m gpuprof.measure.worker PARENT`, with that one's process id.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress

from gpuprof import signals


def end_with_parent(parent: int) -> None:
    """Ask Linux to end this process with its parent, even while it waits inside the driver."""
    pr_set_pdeathsig = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Serve the parent until it has no more requests."""
    end_with_parent(int(sys.argv[1]))
    # Ctrl-C and its like are the parent's to handle: it ends the worker when it has saved what is there.
    signals.disregard()
    from gpuprof.measure.serving import main as serve

    serve()


if __name__ == "__main__":
    main()
