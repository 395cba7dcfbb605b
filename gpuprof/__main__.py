# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The `gpuprof` command, also as `python -m gpuprof`: takes over the signals, then loads everything else."""

from gpuprof import signals


def main() -> None:
    """Run the command line."""
    signals.install()
    from gpuprof.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
