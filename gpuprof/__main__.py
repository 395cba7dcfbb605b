# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `gpuprof` command, also as `python -m gpuprof`: takes over the signals, then loads everything else."""

import errno
import os
import sys


def main() -> None:
    """Run the command line."""
    try:
        from gpuprof import signals

        signals.install()
        from gpuprof.machine import ONE_THREAD, configure_interpreter
        from gpuprof.measure.starting import start_for

        configure_interpreter()
        os.environ.update(ONE_THREAD | os.environ)
        start_for(sys.argv[1:])
        from gpuprof.cli import main as run_command_line

        run_command_line()
    except (ImportError, MemoryError) as error:
        sys.exit(_cannot_load(error))
    except OSError as error:  # a folder of modules could not be listed
        if error.errno != errno.ENOMEM:
            raise
        sys.exit(_cannot_load(MemoryError()))


def _cannot_load(error: ImportError | MemoryError) -> int:
    """Say what could not be loaded, with as little as there may be; the status to end with."""
    try:
        from gpuprof import console, requirements

        if isinstance(error, ImportError):
            return console.tell_error(requirements.missing(error))
    except (ImportError, MemoryError):
        pass
    sys.stderr.write("gpuprof: There is not enough memory for this.\n")
    return 3


if __name__ == "__main__":
    main()
