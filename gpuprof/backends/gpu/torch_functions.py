# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions of a PyTorch that the user has installed, on arrays that lie on the device already.

It is no dependency: it is imported when an operation's reference asks for it on a GPU, and nowhere else.
"""

from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any

from gpuprof.backends.gpu.arrays import ProblemArrays
from gpuprof.errors import BackendUnavailable, CaseSkipped
from gpuprof.problems.dtypes import ELEMENT_TYPES
from gpuprof.problems.references import LibraryCall, Pointer

#: Ways that torch has of computing a function, of which it is to be told one: members of `SDPBackend`.
_WAYS = {"scaled_dot_product_attention": ("CUDNN_ATTENTION", "FLASH_ATTENTION")}


class TorchLaunch:
    """Queues one execution; its result is torch's own array until `deliver` copies it to the output."""

    def __init__(self, compute: Callable[[], Any], output: Any, around: Callable[[], Any]) -> None:
        self._compute = compute
        self._output = output
        self._around = around
        self._result: Any = None

    def __call__(self) -> None:
        with self._around():
            self._result = self._compute()

    def deliver(self) -> None:
        """Queue the copy of the last result, which is no part of the function's time."""
        if self._result is not None:
            with self._around():
                self._output.copy_(self._result.view_as(self._output))


class Torch:
    """PyTorch on one stream."""

    def __init__(self, stream: int) -> None:
        try:
            self.version = metadata.version("torch")
        except metadata.PackageNotFoundError as error:
            raise BackendUnavailable(
                "PyTorch is not installed, so there is no reference.",
                fix="Install it with: pip install torch",
            ) from error
        self._stream = stream

    def launches(self, made: LibraryCall, arrays: ProblemArrays) -> list[TorchLaunch]:
        """A launch for each of torch's ways of computing a function.

        Raises:
            BackendUnavailable: The PyTorch that is installed cannot be used here.
            CaseSkipped: It has none for this problem.
        """
        try:
            import torch
        except (ImportError, OSError) as error:
            raise BackendUnavailable(f"PyTorch {self.version} cannot be imported: {error}.") from error
        function = getattr(torch.nn.functional, made.function, None)
        if function is None or not torch.cuda.is_available():
            raise BackendUnavailable(f"PyTorch {self.version} has no {made.function} for this GPU.")
        stream = torch.cuda.ExternalStream(self._stream)
        given = [_tensor(torch, arrays, each.array) for each in made.arguments if isinstance(each, Pointer)]
        output = _tensor(torch, arrays, arrays.problem.outputs[0].name)
        keywords = {
            key: bool(value) if isinstance(value, int) else value for key, value in made.keywords.items()
        }

        def compute() -> Any:
            return function(*given, **keywords)

        usable, refused = [], "it has no way of computing it"
        for way in _ways(made.function, compute):
            launch = TorchLaunch(way, output, lambda: torch.cuda.stream(stream))
            try:
                with torch.inference_mode():
                    for _ in range(3):  # until its memory for two results is there
                        launch()
                stream.synchronize()
            except RuntimeError as error:
                refused = str(error).partition("\n")[0]
            else:
                usable.append(launch)
        if not usable:
            raise CaseSkipped(f"PyTorch {self.version} cannot compute {arrays.problem.label}: {refused}")
        return usable


def _ways(function: str, compute: Callable[[], Any]) -> Iterable[Callable[[], Any]]:
    """The function as it is, or in each of the ways that are known of it."""
    if function not in _WAYS:
        return [compute]
    from torch.nn import attention

    def told(way: Any) -> Callable[[], Any]:
        def chosen() -> Any:
            with attention.sdpa_kernel(way):
                return compute()

        return chosen

    known = [getattr(attention.SDPBackend, name, None) for name in _WAYS[function]]
    return [told(way) for way in known if way is not None]


class _OnDevice:
    """An array on the device as torch and others take it, its elements as integers of their size."""

    def __init__(self, address: int, shape: tuple[int, ...], nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": f"<i{nbytes}",
            "version": 2,
        }


def _tensor(torch: Any, arrays: ProblemArrays, name: str) -> Any:
    spec = arrays.problem.array(name)
    element = ELEMENT_TYPES[spec.dtype]
    found = torch.as_tensor(_OnDevice(arrays.address(name), spec.shape, element.nbytes), device="cuda")
    return found.view(getattr(torch, element.name))
