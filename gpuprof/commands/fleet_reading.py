# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Results files of a fleet, read on all cores: what is kept of each of them, in the order of the files.

Each process takes every so manieth file and sends what is kept of it through a pipe of its own. Where the
command ends first, however it does, the next thing sent finds nobody, and the process ends too.
"""

import gc
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from gpuprof.comparison.digest import Digester, RunDigest
from gpuprof.errors import ResultsError
from gpuprof.machine import usable_cores
from gpuprof.reading import read_run

#: Files from which on another process pays: it costs about as much as reading as many.
_WORTH_A_PROCESS = 25

Read = RunDigest | ResultsError


def read_digests(files: Sequence[Path]) -> Iterator[Read]:
    """What a fleet keeps of each file, or why it is not a results file, in their order.

    Args:
        files: Results files.
    """
    processes = min(usable_cores(), len(files) // _WORTH_A_PROCESS)
    if processes < 2:
        return _read(files)
    return _read_by(processes, files)


def _read(files: Sequence[Path]) -> Iterator[Read]:
    digester = Digester()
    for path in files:
        try:
            run = read_run(path)
        except ResultsError as error:
            yield error
            continue
        yield digester.digest(run, str(path))


def _read_by(count: int, files: Sequence[Path]) -> Iterator[Read]:
    """The same by several processes; where one of them is killed, its files are read here."""
    fork = multiprocessing.get_context("fork")
    shares: list[Iterator[Read]] = []
    ends: list[Connection] = []
    processes = []
    for number in range(count):
        end, sent = fork.Pipe(duplex=False)
        ends.append(end)
        own = files[number::count]
        process = fork.Process(target=_serve, args=(own, sent, tuple(ends)), daemon=True)
        process.start()
        processes.append(process)
        sent.close()
        shares.append(_received(end, own))
    try:
        for number in range(len(files)):
            yield next(shares[number % count])
    finally:
        for end in ends:
            end.close()
        for process in processes:
            process.terminate()
            process.join()


def _received(end: Connection, files: Sequence[Path]) -> Iterator[Read]:
    taken = 0
    try:
        while taken < len(files):
            yield _unpacked(end.recv())
            taken += 1
    except (EOFError, OSError):
        yield from _read(files[taken:])


def _serve(files: Sequence[Path], sent: Connection, ends: Sequence[Connection]) -> None:
    """Read a share of the files; ends when nobody wants it any more.

    Args:
        files: The share.
        sent: Where it goes.
        ends: What the other processes are read from, which must close with the process that reads.
    """
    status = 0
    try:
        gc.disable()  # nothing that is read refers to itself
        for end in ends:
            end.close()
        for read in _read(files):
            sent.send(_packed(read))
    except BaseException:  # whatever it is, the file is read once more where it can be said
        status = 1
    finally:
        os._exit(status)  # nothing that the command had open or had begun is this process's to end


def _packed(read: Read) -> object:
    return (read.what, read.fix) if isinstance(read, ResultsError) else read


def _unpacked(message: object) -> Read:
    if isinstance(message, RunDigest):
        return message
    assert isinstance(message, tuple)
    what, fix = message
    return ResultsError(what, fix=fix)
