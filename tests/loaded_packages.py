# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a command line imports, seen in a process that starts from nothing."""

import os
import subprocess
import sys

_SCRIPT = """
import sys
sys.argv = ["gpuprof", *{arguments!r}]
from gpuprof.cli import main
try:
    main()
except SystemExit as exit:
    assert not exit.code, exit.code
print("LOADED", *sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def loaded(*arguments, cwd):
    """Top-level packages that a command which ends well has imported."""
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(arguments=list(map(str, arguments)))],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    (line,) = [line for line in process.stderr.splitlines() if line.startswith("LOADED")]
    return set(line.split()[1:])
