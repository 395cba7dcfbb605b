# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every file and command of the page "Bring your kernel" runs as it stands there."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from compile_support import compile_source
from unit_support import gpuprof

from gpuprof.toolchain.nvrtc import compiler_options

pytestmark = pytest.mark.deep
PAGE = (Path(__file__).parents[2] / "docs" / "bring-your-kernel.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {about.split()[1]: text for about, text in BLOCKS if about}
COMMANDS = [line for about, text in BLOCKS if not about for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    options = compiler_options("sm_90")
    made = compile_source(FILES["scale.cu"], "scale.cu", "scale", options)
    (tmp_path / "made.ptx").write_text(made.ptx)
    (tmp_path / "made.cubin").write_bytes(made.cubin)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, folder):
    done = gpuprof(*shlex.split(command)[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "1 ok" in done.stderr or "1 compiled" in done.stderr


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".py")])
def test_program_runs(name, folder):
    needed = name.removeprefix("with_").removesuffix(".py")
    if needed != "text" and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    command = [sys.executable, "-W", "ignore", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "ok" in done.stdout
