# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `gpuprof` command, also as `python -m gpuprof`: takes over the signals, then loads everything else."""

import sys

from gpuprof import signals


def main() -> None:
    """Run the command line."""
    signals.install()
    try:
        from gpuprof.cli import main as run_command_line

        run_command_line()
    except ModuleNotFoundError as error:
        from gpuprof import console, requirements

        sys.exit(console.tell_error(requirements.missing(error)))


if __name__ == "__main__":
    main()
