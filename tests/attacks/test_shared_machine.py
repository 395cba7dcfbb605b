# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A machine that others use too: what they can plant where compiled kernels are kept, what they can reach."""

import hashlib
import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from processes import ran, running

from gpuprof import private_folder
from gpuprof.commands.doctor import host_checks
from gpuprof.errors import ToolError
from gpuprof.measure.cluster.connection import connect
from gpuprof.private_folder import PrivateFolder
from gpuprof.toolchain.cache import compile_entries_cached
from gpuprof.toolchain.nvrtc import compiler_options

SOURCE = 'extern "C" __global__ void mine(int *out) { *out = 1; }'
EVIL = "// planted"
STRANGER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "shared" / "cache"
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(folder))
    return folder


def compiled():
    return compile_entries_cached(SOURCE, "mine.cu", ("mine",), compiler_options("sm_80"))[0]


def planted(entry):
    """An entry with other code, under a digest that fits it."""
    kernels = json.loads(entry.read_text())["made"]
    kernels[0]["ptx"] = EVIL
    digest = hashlib.sha256(json.dumps(kernels, sort_keys=True).encode()).hexdigest()
    return json.dumps({"sha256": digest, "made": kernels})


def test_what_is_kept_is_for_this_user_alone(cache):
    previous = os.umask(0)
    try:
        compiled()
    finally:
        os.umask(previous)
    (entry,) = cache.iterdir()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


@pytest.fixture
def entry(cache):
    """An entry of the cache in which other code was planted: as it stands it is believed."""
    compiled()
    (entry,) = cache.iterdir()
    entry.write_text(planted(entry))
    assert compiled().ptx == EVIL
    return entry


@needs_root
def test_an_entry_of_another_user_is_not_believed(entry):
    os.chown(entry, STRANGER, STRANGER)
    assert compiled().ptx != EVIL


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_may_write_to_is_not_believed(entry, mode):
    entry.chmod(mode)
    assert compiled().ptx != EVIL


@needs_root
def test_a_folder_of_another_user_is_not_used(cache, entry):
    os.chown(cache, STRANGER, STRANGER)
    assert compiled().ptx != EVIL
    assert entry.read_text() == planted(entry)


def test_a_folder_that_others_may_write_to_is_not_used_and_doctor_says_so(cache, entry):
    cache.chmod(0o777)
    assert compiled().ptx != EVIL
    assert [check.text for check in host_checks() if "others may write to it" in check.text]


def test_an_entry_that_is_a_link_is_not_followed(entry, tmp_path):
    elsewhere = entry.rename(tmp_path / "elsewhere.json")
    entry.symlink_to(elsewhere)
    assert compiled().ptx != EVIL
    assert json.loads(elsewhere.read_text())["made"][0]["ptx"] == EVIL


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_a_planted_lock_destroys_and_holds_up_nothing(cache, tmp_path, kind):
    compiled()
    (entry,) = cache.iterdir()
    entry.unlink()
    precious = tmp_path / "precious"
    lock = entry.with_suffix(".lock")
    if kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to(precious)
    if kind == "link":
        precious.write_text("precious")
    assert compiled().cubin
    assert not precious.exists() if kind != "link" else precious.read_text() == "precious"


@needs_root
def test_a_link_of_another_user_in_the_place_of_the_folder_is_not_followed(cache, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    cache.parent.mkdir()
    cache.symlink_to(mine)
    compiled()
    assert len(list(mine.iterdir())) == 1
    next(mine.iterdir()).unlink()
    os.chown(cache, STRANGER, STRANGER, follow_symlinks=False)
    compiled()
    assert not list(mine.iterdir())


@needs_root
def test_a_link_that_takes_the_folders_place_while_it_is_opened_is_not_followed(cache, tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    compiled()

    def swapping(look):
        def swapped(*arguments, **options):
            state = look(*arguments, **options)
            if not cache.is_symlink():
                cache.rename(cache.with_name("before"))
                cache.symlink_to(mine)
                os.chown(cache, STRANGER, STRANGER, follow_symlinks=False)
            return state

        return swapped

    for look in ("lstat", "fstat"):
        monkeypatch.setattr(private_folder.os, look, swapping(getattr(os, look)))
    with suppress(OSError), PrivateFolder(cache) as folder:
        folder.write("mine", b"")
    assert not list(mine.iterdir())


LOCAL = """
import os
from gpuprof.measure.cluster.connection import connect
if __name__ == "__main__":
    connection = connect("local:1", gpus=False)
    count = len(connection.members())
    connection.close()
    print(count, os.environ.get("PYTHONSAFEPATH"))
"""


def listening(pids):
    """Addresses on which processes listen, as the kernel writes them."""
    found = set()
    for pid in pids:
        sockets = set()
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                sockets.add(os.readlink(link))
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                    found.add(fields[1].partition(":")[0])
    return found


def descendants(pid):
    family = {pid}
    while more := {child for child, (parent, _) in running().items() if parent in family} - family:
        family |= more
    return family


@pytest.mark.deep
def test_a_local_cluster_is_for_those_that_have_its_key_on_this_machine_alone():
    distributed = pytest.importorskip("distributed")
    connection = connect("local:1", gpus=False)
    try:
        assert len(connection.members()) == 1
        assert listening(descendants(os.getpid())) == {"0100007F"}
        (worker,) = connection.members()
        scheduler = connection.client.scheduler.address
        for address in (scheduler, worker.address):
            assert address.startswith("tls://127.0.0.1:")
            for known in (None, distributed.Security.temporary()):
                where = address if known else address.replace("tls:", "tcp:")
                with pytest.raises((OSError, TypeError)):
                    distributed.Client(where, timeout=3, security=known, set_as_default=False)
    finally:
        connection.close()


@pytest.mark.deep
def test_a_local_cluster_runs_no_module_of_the_working_directory(tmp_path):
    pytest.importorskip("distributed")
    strange = tmp_path / "strange"
    strange.mkdir()
    for module in ("multiprocessing", "pickle", "numpy", "gpuprof", "distributed"):
        (strange / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{module} ')")
    program = tmp_path / "program.py"
    program.write_text(LOCAL)
    ended = ran(
        [sys.executable, program],
        cwd=strange,
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
    )
    assert not (tmp_path / "ran").exists()
    assert ended.stdout == "1 None\n", ended.stderr


def test_without_what_makes_its_key_a_local_cluster_is_refused_with_its_fix(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ToolError, match="makes a key") as caught:
        connect("local:1", gpus=False)
    assert "[cluster]" in caught.value.fix


def test_an_entry_of_no_kernels_is_made_again(cache):
    code = compiled().ptx
    (entry,) = cache.iterdir()
    entry.write_text(json.dumps({"sha256": hashlib.sha256(b"[]").hexdigest(), "made": []}))
    assert compiled().ptx == code
