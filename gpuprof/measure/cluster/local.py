# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster of this machine alone, for `--cluster local:N`: what a fleet does, without a fleet."""

import logging
import os
import re
import socket
from contextlib import suppress

from gpuprof.errors import BackendUnavailable, InputError, did_you_mean
from gpuprof.measure.cluster.connection import Connection, import_distributed

PREFIX = "local:"
_MOST = 256


def connect(address: str, *, gpus: bool) -> Connection:
    """Connect to a cluster, or make one of this machine.

    Args:
        address: `local:N`, or a scheduler's.
        gpus: Whether workers of this machine offer a GPU each.

    Raises:
        InputError: The address makes no sense.
        BackendUnavailable: Nobody answers, or this machine has too few GPUs.
        ToolError: Dask is not installed.
    """
    if not address.startswith(PREFIX):
        if meant := _meant_local(address):
            raise InputError(f"--cluster {address} names no machine that is known.", fix=meant)
        return Connection(address, address)
    count = address.removeprefix(PREFIX)
    if not re.fullmatch("[0-9]{1,3}", count) or not 1 <= int(count) <= _MOST:
        raise InputError(
            f"--cluster {address} names no number of workers.", fix=f"Write local:1 to local:{_MOST}."
        )
    return _make(address, int(count), gpus=gpus)


def _meant_local(address: str) -> str:
    """A question, where an address is `local:N` misspelt and no machine's: nobody would ever answer."""
    host, _, count = address.partition(":")
    if not re.fullmatch("[0-9]{1,3}", count) or not (meant := did_you_mean(host, ["local"])):
        return ""
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return meant.replace("local", f"{PREFIX}{count}")
    return ""


def _make(address: str, count: int, *, gpus: bool) -> Connection:
    distributed = import_distributed()
    visible = _gpus_here() if gpus else []
    if gpus and len(visible) < count:
        has = f"{len(visible) or 'no'} GPU{'s' if len(visible) > 1 else ''}"
        raise BackendUnavailable(
            f"--cluster {address} needs {count} GPUs, one a worker; this machine has {has}.",
            fix="Ask for fewer workers, or execute: --device sim.",
        )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    workers = {
        number: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "memory_limit": 0,
                "dashboard": False,
                "silence_logs": logging.CRITICAL,
                **(
                    {"resources": {"GPU": 1}, "env": {"CUDA_VISIBLE_DEVICES": visible[number]}}
                    if gpus
                    else {}
                ),
            },
        }
        for number in range(count)
    }
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"dashboard": False, "dashboard_address": None, "host": "127.0.0.1", "port": 0},
    }
    try:
        cluster = distributed.SpecCluster(workers, scheduler, silence_logs=logging.CRITICAL)
    except (OSError, TimeoutError, RuntimeError) as error:
        raise BackendUnavailable(f"--cluster {address} cannot be started: {error}.") from error

    def close() -> None:
        with suppress(Exception):  # its processes end with this one in any case
            cluster.close(timeout=5)

    try:
        return Connection(cluster, address, close)
    except BaseException:
        close()
        raise


def _gpus_here() -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` of a process with one GPU is, for each of this machine's."""
    from gpuprof.backends.gpu.query import device_count

    try:
        count = device_count()
    except BackendUnavailable:
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    listed = [name.strip() for name in named.split(",") if name.strip()]
    return (listed or [str(number) for number in range(count)])[:count]
