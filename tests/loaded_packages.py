# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What command lines import, seen in a process that starts from nothing."""

import os
import sys

from processes import ran

_SCRIPT = """
import sys
for arguments in {commands!r}:
    sys.argv = ["gpuprof", *arguments]
    from gpuprof.cli import main
    try:
        main()
    except SystemExit as exit:
        assert not exit.code, exit.code
    print("LOADED", *sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def loaded(*commands, cwd):
    """Top-level packages that are there after each of some commands, which end well one after the other."""
    told = [[str(argument) for argument in command] for command in commands]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = ran([sys.executable, "-c", _SCRIPT.format(commands=told)], cwd=cwd, env=environment, status=0)
    return [set(line.split()[1:]) for line in process.stderr.splitlines() if line.startswith("LOADED")]
