# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Files of a fleet are read by several processes as by one, whatever becomes of a process."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gpuprof.commands import fleet_reading
from gpuprof.commands.fleet_reading import read_digests
from gpuprof.comparison.digest import RunDigest
from gpuprof.errors import ResultsError
from gpuprof.reading import read_run
from gpuprof.results import dumps

SAMPLE = Path(__file__).parents[2] / "samples" / "gemm-h200.json"
FILES = 14
#: Of a file that is none.
BROKEN = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    whole = read_run(SAMPLE)
    whole = replace(whole, cases=tuple(replace(case, lines=None) for case in whole.cases[:6]))
    for number in range(FILES):
        text = dumps(replace(whole, labels={"host": f"node{number:02}"}))
        (folder / f"{number:02}.json").write_text("{" if number == BROKEN else text, encoding="utf-8")
    return sorted(folder.iterdir())


@pytest.fixture
def three(monkeypatch):
    """Three processes, however many cores there are, and however few files."""
    monkeypatch.setattr(fleet_reading, "usable_cores", lambda: 3)
    monkeypatch.setattr(fleet_reading, "_WORTH_A_PROCESS", 1)


def told(read):
    """What can be compared of what was read."""
    return (read.what, read.fix) if isinstance(read, ResultsError) else read


def without_parts(reads):
    """What was read but for what binds a case: the first of each process tells it."""
    for read in map(told, reads):
        if isinstance(read, RunDigest):
            cards = [
                replace(card, cases=tuple(case._replace(part="") for case in card.cases))
                for card in read.cards
            ]
            yield replace(read, cards=tuple(cards))
        else:
            yield read


def test_several_processes_read_as_one_does(files, three, monkeypatch):
    several = list(read_digests(files))
    assert multiprocessing.active_children() == []
    assert told(several[BROKEN])[0].startswith(f"{files[BROKEN]} is not valid JSON (line 1, column 2")
    assert [read.labels["host"] for read in several if isinstance(read, RunDigest)] == [
        f"node{number:02}" for number in range(FILES) if number != BROKEN
    ]
    monkeypatch.setattr(fleet_reading, "usable_cores", lambda: 1)
    one = list(read_digests(files))
    assert list(without_parts(several)) == list(without_parts(one))
    assert told(several[0]) == told(one[0])
    assert any(case.part for case in one[0].cards[0].cases)


def test_files_of_a_process_that_is_killed_are_read_all_the_same(files, three, monkeypatch):
    command = os.getpid()

    def read(path):
        if path == files[7] and os.getpid() != command:
            os.kill(os.getpid(), signal.SIGKILL)
        return read_run(path)

    whole = list(without_parts(read_digests(files)))
    monkeypatch.setattr(fleet_reading, "read_run", read)
    assert list(without_parts(read_digests(files))) == whole


def test_what_is_wanted_no_more_is_read_by_nobody(files, three):
    digests = read_digests(files)
    next(digests)
    digests.close()
    assert multiprocessing.active_children() == []


def test_no_process_stays_when_the_command_is_killed(files):
    program = f"""
import multiprocessing, pathlib, time
from gpuprof.commands import fleet_reading
fleet_reading.usable_cores, fleet_reading._WORTH_A_PROCESS = lambda: 3, 1
digests = fleet_reading.read_digests([pathlib.Path({str(files[0])!r})] * 3000)
next(digests)
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as command:
        children = [int(word) for word in command.stdout.readline().split()]
        command.kill()
    assert len(children) == 3
    deadline = time.monotonic() + 60
    while alive := [child for child in children if _runs(child)]:
        assert time.monotonic() < deadline, f"{alive} still run"
        time.sleep(0.05)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
