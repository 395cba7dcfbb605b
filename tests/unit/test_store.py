# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The results file of a run in progress: whole at any moment, nobody else's, and as cheap late as early."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from plain_runs import plain_run
from problem_support import Transpose, find_kernel
from unit_support import DEVICE

from gpuprof import store
from gpuprof.commands.output import RunOutputs
from gpuprof.errors import InputError, OutputError
from gpuprof.files import check_writable, replace_text
from gpuprof.measure.case import Case, unmeasured
from gpuprof.options import OutputOptions
from gpuprof.reading import read_run
from gpuprof.records import replace
from gpuprof.results import dumps
from gpuprof.store import ResultsFile

KERNEL = find_kernel("transpose", "naive_row")
EMPTY = plain_run([KERNEL.record()], devices=(DEVICE,), backend="none", complete=False)


def case(size):
    problem = Transpose(size, 64)
    return unmeasured(Case.of(KERNEL, problem), KERNEL, "skipped", "é “why”", "so")


def test_every_append_leaves_a_whole_file_and_the_end_is_as_if_written_at_once(tmp_path):
    path = tmp_path / "deep" / "r.json"
    file = ResultsFile(path, EMPTY, replace=False)
    assert read_run(path) == EMPTY
    cases = ()
    for size in range(1, 6):
        file.append(case(size))
        cases = (*cases, case(size))
        so_far = replace(EMPTY, cases=cases)
        assert read_run(path) == so_far
        assert path.read_text(encoding="utf-8") == dumps(so_far)
    finished = replace(EMPTY, cases=cases[::-1], complete=True)
    file.finish(finished)
    assert path.read_text(encoding="utf-8") == dumps(finished)
    file.close()
    assert os.listdir(path.parent) == ["r.json"]


def test_append_writes_its_case_only(tmp_path, monkeypatch):
    file = ResultsFile(tmp_path / "r.json", EMPTY, replace=False)
    written = []
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda *args: written.append(len(args[1])) or real(*args))
    for size in range(100, 400):
        file.append(case(size))
    assert max(written) - min(written) < 10
    assert len(written) == 300


@pytest.mark.parametrize("cases", [0, 2])
@pytest.mark.parametrize("accepted", [0, 100])
def test_full_disk_costs_the_case_that_did_not_fit(tmp_path, monkeypatch, cases, accepted):
    path = tmp_path / "r.json"
    file = ResultsFile(path, EMPTY, replace=False)
    for size in range(1, cases + 1):
        file.append(case(size))
    before = path.read_bytes()
    real, room = os.pwrite, [accepted]

    def full(descriptor, content, offset):
        if not room[0] and len(content) > 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = content[: room[0]] if len(content) > 10 else content
        room[0] = 0
        return real(descriptor, taken, offset)

    monkeypatch.setattr(store.os, "pwrite", full)
    with pytest.raises(OutputError, match=r"Cannot write .*r\.json: No space left on device"):
        file.append(case(77))
    assert path.read_bytes() == before
    monkeypatch.undo()
    file.append(case(78))
    assert len(read_run(path).cases) == cases + 1


def test_rows_do_not_take_the_place_of_another_run_that_came_meanwhile(tmp_path):
    path = tmp_path / "out" / "r.json"
    file = ResultsFile(path, EMPTY, replace=False)
    path.unlink()
    path.write_text("somebody else's")
    with pytest.raises(OutputError, match="Cannot write"):
        file.finish(replace(EMPTY, cases=(case(1),), complete=True))
    assert path.read_text() == "somebody else's"


@pytest.mark.parametrize("rows_after", [0, 2])
def test_folder_that_is_removed_meanwhile_comes_back_with_every_row(tmp_path, rows_after):
    path = tmp_path / "deep" / "out" / "r.json"
    file = ResultsFile(path, EMPTY, replace=False)
    file.append(case(1))
    shutil.rmtree(tmp_path / "deep")
    for size in range(2, 2 + rows_after):
        file.append(case(size))
        assert len(read_run(path).cases) == size
    cases = tuple(map(case, range(1, 2 + rows_after)))
    file.finish(replace(EMPTY, cases=cases, complete=True))
    assert read_run(path).cases == cases


def test_a_later_row_of_a_case_takes_the_place_of_the_earlier_one(tmp_path):
    path = tmp_path / "r.json"
    file = ResultsFile(path, EMPTY, replace=False)
    early, late, other = (replace(case(1), planned=0, reason=why) for why in ("a", "b", "c"))
    other = replace(other, planned=1)
    for row in (early, other, late):
        file.append(row)
    assert read_run(path).cases == (late, other)
    file.compact(replace(EMPTY, cases=(late, other)))
    file.append(replace(late, planned=2))
    assert json.loads(path.read_text())["cases"][0]["reason"] == "b"
    assert len(read_run(path).cases) == 3


@pytest.mark.parametrize("anew", [False, True])
def test_two_runs_do_not_share_a_file(tmp_path, anew):
    path = tmp_path / "r.json"
    first = ResultsFile(path, EMPTY, replace=False)
    first.append(case(1))
    with pytest.raises(InputError, match="Another run of gpuprof is writing" if anew else "exists already"):
        ResultsFile(path, EMPTY, replace=anew)
    first.finish(replace(EMPTY, cases=(case(1),), complete=True))
    with pytest.raises(InputError):
        ResultsFile(path, EMPTY, replace=anew)
    assert len(read_run(path).cases) == 1
    first.close()
    if anew:
        ResultsFile(path, EMPTY, replace=True).close()
        assert not read_run(path).cases


def test_link_stays_a_link(tmp_path):
    target, link = tmp_path / "there" / "target.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    file = ResultsFile(link, EMPTY, replace=True)
    file.append(case(1))
    file.finish(replace(EMPTY, cases=(case(1),), complete=True))
    replace_text(link.with_name("page.html"), "")
    assert link.is_symlink()
    assert read_run(target).complete
    replace_text(link, "text")
    assert (link.is_symlink(), target.read_text()) == (True, "text")


def test_umask_decides_who_may_read_a_new_file_and_a_replaced_one_keeps_its_permissions(tmp_path):
    for umask, mode in ((0o077, 0o600), (0o022, 0o644), (0o002, 0o664)):
        folder = tmp_path / oct(umask)
        folder.mkdir()
        previous = os.umask(umask)
        try:
            file = ResultsFile(folder / "r.json", EMPTY, replace=False)
            modes = [(folder / "r.json").stat().st_mode & 0o777]
            file.finish(EMPTY)
            replace_text(folder / "page.html", "text")
            modes += [path.stat().st_mode & 0o777 for path in folder.iterdir()]
        finally:
            os.umask(previous)
        assert modes == [mode] * 3
    path = tmp_path / "page.html"
    path.write_text("old")
    path.chmod(0o640)
    replace_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_file_system_without_links_or_locks_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(store.os, "link", refuse)
    monkeypatch.setattr(store.fcntl, "flock", refuse)
    path = tmp_path / "r.json"
    file = ResultsFile(path, EMPTY, replace=False)
    file.append(case(1))
    assert len(read_run(path).cases) == 1
    with pytest.raises(InputError, match="exists already"):
        ResultsFile(path, EMPTY, replace=False)
    assert os.listdir(tmp_path) == ["r.json"]


def test_device_takes_the_finished_run(tmp_path):
    read_end, write_end = os.pipe()
    file = ResultsFile(tmp_path / "null", EMPTY, replace=True)
    file.close()
    null = tmp_path / "device"
    null.symlink_to(f"/dev/fd/{write_end}")
    small = replace(EMPTY, kernels=())
    file = ResultsFile(null, small, replace=True)
    file.append(case(1))
    file.finish(small)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        assert pipe.read() == dumps(small)


def test_runs_of_one_second_that_name_no_place_get_directories_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = []
    for _ in range(5):
        outputs = RunOutputs.of_run(OutputOptions(), "gemm-20250131-120000")
        outputs.check()  # what another run has put there meanwhile is no reason to refuse
        files.append(outputs.open(EMPTY))
    assert len({file.path for file in files}) == 5
    for file in files:
        assert read_run(file.path) == EMPTY


def started(folder, *arguments):
    """A command line of several that run at once."""
    words = ["transpose", "-k", "copy_row", "--sizes", "8", "--device", "none", "-q"]
    return subprocess.Popen(
        [sys.executable, "-m", "gpuprof", *words, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.deep
def test_concurrent_runs_into_one_place_end_with_one_winner_and_errors(tmp_path):
    runs = [started(tmp_path, "-o", "out") for _ in range(3)]
    errors = [process.communicate(timeout=120)[1] for process in runs]
    assert sorted(process.returncode for process in runs) == [0, 2, 2]
    for process, error in zip(runs, errors, strict=True):
        assert process.returncode == 0 or "exists already" in error
    assert read_run(tmp_path / "out" / "results.json").complete


def test_what_a_run_appends_while_it_is_read_belongs_to_another_moment(tmp_path, monkeypatch):
    """Read in two steps, a file would be what stood there first, and behind it what came."""
    file, looked_up = ResultsFile(tmp_path / "r.json", EMPTY, replace=False), os.fstat

    def grows(descriptor):
        before = looked_up(descriptor)
        monkeypatch.setattr(os, "fstat", looked_up)
        file.append(case(1))
        return before

    monkeypatch.setattr(os, "fstat", grows)
    assert read_run(tmp_path / "r.json") == EMPTY
    assert os.fstat is looked_up
    assert len(read_run(tmp_path / "r.json").cases) == 1


@pytest.mark.deep
def test_kill_at_any_moment_leaves_a_file_that_can_be_read(tmp_path):
    """The writer is killed while it appends as fast as it can: what was told as done is there."""
    program = (
        "import sys, pathlib, test_store as t\n"
        f"file = t.ResultsFile(pathlib.Path({str(tmp_path / 'r.json')!r}), t.EMPTY, replace=True)\n"
        "for size in range(1, 10**6):\n"
        "    file.append(t.case(size)); print(size, flush=True)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [os.path.dirname(__file__), *sys.path])),
    }
    for moment in (0.01, 0.1):
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
        )
        process.stdout.readline()
        time.sleep(moment)
        process.kill()
        told = len(process.stdout.read().splitlines()) + 1
        process.wait()
        run = read_run(tmp_path / "r.json")
        assert told <= len(run.cases) <= told + 1
        assert [measured.problem.sizes["nx"] for measured in run.cases] == list(range(1, len(run.cases) + 1))


def test_a_pipe_in_the_place_of_a_file_is_refused_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "results.json")
    with pytest.raises(InputError, match="is a pipe or a device"):
        check_writable(tmp_path / "results.json", force=True)
    with pytest.raises(OSError, match="No such device"):
        replace_text(tmp_path / "results.json", "text")
