# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Every timed launch works: what it finds in memory tells it nothing, and what it leaves is looked at.

Before each launch whose time counts, all that a kernel may keep between launches is as at first: its
module's variables, its workspace, arrays that it reads and writes. Some elements of its outputs are changed,
by numbers like any other, so that a kernel that finds its last result and leaves it there is wrong. After the
launch these elements are compared with their references. Which they are follows from a number that no kernel
knows. Shared memory, which outlasts a launch too, holds numbers of no use, and lines that a kernel asked the
L2 cache to hold longest are like any other. All of it is queued with the launches, in front of the flush of
the L2 cache and behind the second event.
"""

import ctypes
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.backends.gpu.context import Arguments, DeviceBuffer, DeviceCode
from gpuprof.backends.gpu.driver import call, driver
from gpuprof.backends.gpu.fresh_inputs import CodeFor
from gpuprof.backends.gpu.loaded_case import LoadedCase
from gpuprof.backends.gpu.timer import Around
from gpuprof.devices.device import Device
from gpuprof.errors import CaseFailure
from gpuprof.problems.problem import ArraySpec
from gpuprof.records import replace
from gpuprof.results import Verification

#: Elements of each output that are looked at; all of a smaller one.
_PICKS = 1 << 14
#: Threads that scribble over an SM's shared memory.
_SCRIBBLERS = (1024, 1, 1)
#: A kernel that takes longer than its timed launches with inputs that it has not seen, this often and each
#: time with new ones, kept something.
_UNSEEN = 5

#: Launches, and waits for the end.
LaunchOnce = Callable[[], None]
#: The same, and says by how much that took longer than it should; empty where it did not.
LaunchTimed = Callable[[], str]


class _Output(NamedTuple):
    """An output, the device functions of its type, and what those take before and after a launch."""

    spec: ArraySpec
    code: DeviceCode
    before: Arguments
    after: Arguments | None


class KeptSharedMemory:
    """The shared memory of all SMs."""

    def __init__(self, code: DeviceCode, device: Device, stream: Any) -> None:
        self._stream = stream
        self._grid = (device.sm_count, 1, 1)
        # A block with all that one may have leaves no room for another on its SM.
        self._nbytes = device.shared_bytes_per_block_optin // 8 * 8
        self._function = code.load("scribble_shared")
        self._function.reserve_shared(self._nbytes, 0, device.shared_bytes_per_block_optin)
        self._secret = ctypes.c_ulonglong()
        self._arguments = Arguments([ctypes.c_int(self._nbytes // 8), self._secret])

    def queue_scribble(self) -> None:
        """Queue that it holds numbers of no use."""
        self._secret.value = secrets.randbits(64)
        self._function.launch(self._grid, _SCRIBBLERS, self._nbytes, self._stream, self._arguments)


class LaunchChecks:
    """What is done around the launches of one case; a library's has none whose module is known."""

    def __init__(
        self,
        arrays: ProblemArrays,
        code_for: CodeFor,
        stream: Any,
        case: LoadedCase | None = None,
        device: Device | None = None,
        deliver: Callable[[], None] | None = None,
    ) -> None:
        #: Queues that a result is copied to the output, where it lies elsewhere.
        self.deliver = deliver or (case.deliver if case else lambda: None)
        self._arrays = arrays
        self._stream = stream
        self._variables = case.variables if case else None
        self._delivered: frozenset[str] = case.delivered if case else frozenset()
        self._code = code_for("f32", None)
        self._shared: KeptSharedMemory | None = None
        if case and device and case.uses_shared:
            self._shared = KeptSharedMemory(self._code, device, stream)
        self._demoted: list[Arguments] = []
        if case and case.hints_l2:
            self._demoted = [Arguments([ctypes.c_longlong(each.nbytes), each]) for each in arrays.given]
        # What stands in a CUDA array meanwhile is neither changed nor seen where the array itself lies.
        outputs = [spec for spec in arrays.problem.outputs if spec.name not in arrays.in_cuda_arrays]
        self._restored = [spec.name for spec in outputs if spec.is_read]
        self._wrong = DeviceBuffer(8)
        self._picks = ctypes.c_longlong(_PICKS)
        self._secret = ctypes.c_ulonglong()
        self._outputs = [
            _Output(
                spec,
                code_for(spec.dtype, None),
                *arrays.expected.picked(spec, self._picks, self._secret, self._wrong),
            )
            for spec in outputs
        ]
        self._forget_wrong()
        # Code is loaded at its first launch, which must not happen behind a closed gate.
        self.before()
        self.after()
        self._synchronize()
        self._forget_wrong()

    def _forget_wrong(self) -> None:
        """Count anew, from a number that no kernel can put back."""
        self._looked_at = 0
        self._none_wrong = secrets.randbits(64)
        self._wrong.upload(np.array([self._none_wrong], np.uint64))

    @property
    def remembers(self) -> bool:
        """Whether the kernel has memory of its own that outlasts a launch."""
        return bool(self._variables or self._arrays.workspace or self._shared)

    @property
    def restores_always(self) -> bool:
        """Whether every launch must find arrays as they were: one behind another would write past an end.

        So it is with lists that launches append to.
        """
        checks = self._arrays.problem.checks.values()
        appends = any(check.unordered for check in checks) or self._delivered.intersection(self._restored)
        return bool(self._restored and appends)

    def restore(self) -> None:
        """Queue that arrays which are read and written hold what they held at first."""
        for name in self._restored:
            self._arrays.restore(name, self._stream)
        if self._delivered and self._variables:
            self._variables.queue_restore(self._code)

    def around(self, *, keeping: bool = False, whole: bool = False) -> Around:
        """What is queued around a launch whose time counts.

        Args:
            keeping: Whether the kernel finds its own memory as its last launch left it.
            whole: Whether all of the outputs are changed and compared; it keeps its memory then, too.
        """
        before = partial(self.spoil, whole=whole) if keeping or whole else self.before
        restored = bool(self._variables) + len(self._arrays.workspace) + len(self._restored)
        most = restored + bool(self._shared) + len(self._demoted) + 2 * len(self._outputs)
        return Around(most, before, self.after)

    def before(self) -> None:
        self.forget()
        self.spoil()

    def forget(self) -> None:
        """Queue that the kernel's own memory is as before its first launch."""
        if self._variables:
            self._variables.queue_restore(self._code)
        for buffer in self._arrays.workspace:
            buffer.queue_fill(buffer.poison, self._stream)
        if self._shared:
            self._shared.queue_scribble()

    def spoil(self, *, whole: bool = False) -> None:
        """Queue that outputs are no result, and that the L2 cache prefers none of the kernel's memory."""
        self._picks.value = max(spec.elements for spec in self._arrays.problem.outputs) if whole else _PICKS
        for demoted in self._demoted:
            self._code.queue("demote", demoted)
        self.restore()
        self._secret.value = secrets.randbits(64)
        for output in self._outputs:
            if not output.spec.is_read:
                output.code.queue("spoil", output.before)

    def after(self) -> None:
        """Queue that the elements are compared that were changed before."""
        self.deliver()
        for output in self._outputs:
            if output.after is None:
                continue
            output.code.queue("compare_picked", output.after)
            self._looked_at += min(self._picks.value, output.spec.elements)

    def sentence(self) -> str:
        """What launches until now have left wrong; empty where nothing."""
        self._synchronize()
        wrong = (int(self._wrong.download(np.uint64, count=1)[0]) - self._none_wrong) % 2**64
        if not wrong:
            return ""
        return f"{wrong} of {self._looked_at} elements that were checked after its launches are wrong"

    def _synchronize(self) -> None:
        call("waiting for the kernel", driver().cuStreamSynchronize(self._stream))

    def close(self) -> None:
        """Give its device memory back, without hiding the error of a kernel that destroyed the context."""
        try:
            self._wrong.free()
        except CaseFailure as error:
            if not error.fatal:
                raise


def verify_again(
    arrays: ProblemArrays,
    checks: LaunchChecks,
    follow: LaunchOnce,
    verify_anew: Callable[[], Verification],
    time_again: LaunchOnce,
    launch_timed: LaunchTimed,
) -> tuple[Verification, tuple[str, ...]]:
    """Look at what the timed launches did, then at more launches.

    What they left behind is compared as a whole, and of each launch the elements that were spoiled before it.
    Launches behind them, before which every element is spoiled, show a kernel that stopped writing, or that
    tells by the clock or by poison when it is looked at; one with other inputs beside the last result one
    that keeps results, or was given them, and its time one that keeps them wherever it found memory, and
    knows by its inputs when they hold. Where each launch builds on the one before, what many leave behind has
    no reference.

    Returns:
        The first verification that fails, or the last with the first inputs; and what could not be looked at.
    """
    if not arrays.reads_output:
        left = arrays.verify()
        if not left.passed:
            return left, ()
    follow()
    # Nothing that is queued changes CUDA arrays, or what they hold before a launch.
    opaque = any(spec.name in arrays.in_cuda_arrays for spec in arrays.problem.outputs)
    last = verify_anew() if opaque else arrays.verify()
    if not last.passed:
        return last, ()
    if wrong := checks.sentence():
        return replace(last, detail=wrong, array=""), ()
    slower = ""
    for attempt in range(_UNSEEN):
        if attempt:
            arrays.renew_others()
        # At first the launches that followed each other have just worked with the first inputs. Then they are
        # timed again: others may have begun to use the card.
        with arrays.other_inputs(time_again if attempt else lambda: None) as missing:
            if missing:
                return last, (missing,)
            slower = launch_timed()
            others = arrays.verify_others()
        if not others.passed:
            return others, ()
        if not slower:
            return last, ()
    return replace(last, detail=slower, array=""), ()
