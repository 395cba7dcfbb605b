# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster of this machine alone, for `--cluster local:N`: what a fleet does, without a fleet.

Whoever reaches a port of a Dask cluster runs programs as its user. So it listens on the loopback address
alone, and to those alone that have the key which is made for the run: other users of the machine have not.
"""

import logging
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from gpuprof.errors import BackendUnavailable, InputError, ToolError, did_you_mean, foreign
from gpuprof.measure.cluster.connection import Connection, import_distributed

PREFIX = "local:"
_MOST = 256
_HERE = "127.0.0.1"
#: A key, and a certificate that it signed itself, written nowhere.
_MAKE_KEY = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
    *("-days", "30", "-subj", "/CN=gpuprof", "-keyout", "-", "-out", "-"),
)
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----\n.+?-----END \1-----\n", re.DOTALL)
_OPENSSL_TIMEOUT_S = 60.0
_SAFE_PATH = "PYTHONSAFEPATH"


def connect(address: str, *, gpus: bool) -> Connection:
    """Connect to a cluster, or make one of this machine."""
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
    from dask import config

    visible = _gpus_here() if gpus else []
    if gpus and len(visible) < count:
        has = f"{len(visible) or 'no'} GPU{'s' if len(visible) > 1 else ''}"
        raise BackendUnavailable(
            f"--cluster {address} needs {count} GPUs, one a worker; this machine has {has}.",
            fix="Ask for fewer workers, or execute: --device sim.",
        )
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    security = _security(distributed)
    closed = {"host": _HERE, "protocol": "tls", "security": security}
    workers = {
        number: {
            "cls": distributed.Nanny,
            "options": {
                **closed,
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
        "options": {**closed, "dashboard": False, "dashboard_address": f"{_HERE}:0", "port": 0},
    }
    # Nothing is told over HTTP, which asks nobody for a key.
    silent: dict[str, list[str]] = {
        f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker", "nanny")
    }
    kept = ExitStack()
    kept.enter_context(_own_modules_only())
    try:
        with config.set(silent):
            cluster = distributed.SpecCluster(
                workers, scheduler, security=security, silence_logs=logging.CRITICAL
            )
    except (OSError, TimeoutError, RuntimeError) as error:
        kept.close()
        raise BackendUnavailable(f"--cluster {address} cannot be started: {foreign(error)}.") from error

    def close() -> None:
        with kept, suppress(Exception):  # its processes end with this one in any case
            cluster.close(timeout=5)

    try:
        return Connection(cluster, address, close)
    except BaseException:
        close()
        raise


@contextmanager
def _own_modules_only() -> Iterator[None]:
    """Have Python start processes that take no module from the working directory, maybe a stranger's."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def _security(distributed: Any) -> Any:
    """What keeps all but the run's own processes out."""
    fix = "Install OpenSSL's command, or name a cluster that runs: --cluster tcp://HOST:8786."
    try:
        done = subprocess.run(
            _MAKE_KEY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_OPENSSL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(
            f"--cluster local:N makes a key with openssl, which fails: {error}.", fix=fix
        ) from error
    blocks = {match[1]: match[0] for match in _PEM.finditer(done.stdout)}
    if done.returncode or set(blocks) != {"PRIVATE KEY", "CERTIFICATE"}:
        why = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise ToolError(f"--cluster local:N makes a key with openssl, which fails: {why}.", fix=fix)
    pair = {"cert": blocks["CERTIFICATE"], "key": blocks["PRIVATE KEY"]}
    roles = ("client", "scheduler", "worker")
    given = {f"tls_{role}_{part}": text for role in roles for part, text in pair.items()}
    return distributed.Security(require_encryption=True, tls_ca_file=pair["cert"], **given)


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
