# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Functions of a PyTorch that may be installed, held against one that is not."""

from contextlib import contextmanager
from importlib import metadata
from types import ModuleType, SimpleNamespace

import pytest
from problem_support import ladder, problem_for

from gpuprof.backends.gpu.libraries import Torch
from gpuprof.errors import BackendUnavailable, CaseSkipped

PROBLEM = problem_for(ladder("attention")[0], 1, 2, 70, 64, dtype="f16", causal=1.0)
ARRAYS = SimpleNamespace(problem=PROBLEM, address=lambda name: 4096 + ord(name))


class Tensor:
    """What is known of a tensor: where it lies, and how it is looked at."""

    def __init__(self, place, kind=None):
        self.place, self.kind, self.holds = place, kind, None

    def view(self, kind):
        return Tensor(self.place, kind)

    def view_as(self, other):
        return self

    def copy_(self, other):
        self.holds = other


class Made(ModuleType):
    """As much of torch as is used; `refused` ways raise."""

    def __init__(self, refused=()):
        super().__init__("torch")
        self.way, self.calls, self.tensors = "", [], {}
        self.float16 = "half"
        self.cuda = SimpleNamespace(
            ExternalStream=lambda stream: SimpleNamespace(synchronize=lambda: None),
            is_available=lambda: True,
            stream=lambda stream: self.told("-"),
        )
        self.inference_mode = lambda: self.told("-")
        self.nn = ModuleType("torch.nn")
        self.nn.functional = SimpleNamespace(scaled_dot_product_attention=self.attend)
        self.nn.attention = SimpleNamespace(
            SDPBackend=SimpleNamespace(CUDNN_ATTENTION="cudnn", FLASH_ATTENTION="flash"),
            sdpa_kernel=self.told,
        )
        self.refused = refused

    @contextmanager
    def told(self, way):
        before, self.way = self.way, way if way != "-" else self.way
        yield
        self.way = before

    def as_tensor(self, given, device):
        interface = given.__cuda_array_interface__
        assert (interface["typestr"], device) == ("<i2", "cuda")
        return self.tensors.setdefault(interface["data"][0], Tensor(interface["data"][0]))

    def attend(self, q, k, v, is_causal):
        assert is_causal is True
        assert [one.place - 4096 for one in (q, k, v)] == list(map(ord, "QKV"))
        assert {one.kind for one in (q, k, v)} == {"half"}
        if self.way in self.refused:
            raise RuntimeError(f"no kernel of {self.way}\nand much more")
        self.calls.append(self.way)
        return Tensor(self.way)


@pytest.fixture
def install(monkeypatch):
    def installed(torch):
        monkeypatch.setattr(metadata, "version", lambda name: "9.9")
        for name, module in (("torch", torch), ("torch.nn", torch.nn)):
            monkeypatch.setitem(__import__("sys").modules, name, module)
        return Torch(7)

    return installed


def test_each_way_that_torch_has_is_a_launch_whose_result_is_delivered_afterwards(install):
    torch = Made()
    opened = install(torch)
    launches = opened.launches(PROBLEM.library_call("torch_sdpa"), ARRAYS)
    assert (opened.version, len(launches)) == ("9.9", 2)
    torch.calls.clear()
    for launch in launches:
        launch()
    assert torch.calls == ["cudnn", "flash"]
    seen = []
    for launch in launches:
        launch._output.copy_ = seen.append
        launch.deliver()
    assert [one.place for one in seen] == ["cudnn", "flash"]


def test_a_way_that_is_refused_is_left_out_and_none_at_all_is_a_skipped_row(install):
    some = install(Made(refused=("cudnn",))).launches(PROBLEM.library_call("torch_sdpa"), ARRAYS)
    assert len(some) == 1
    with pytest.raises(CaseSkipped, match=r"cannot compute 1x2x70x64: no kernel of flash"):
        install(Made(refused=("cudnn", "flash"))).launches(PROBLEM.library_call("torch_sdpa"), ARRAYS)


def test_without_torch_the_row_says_how_to_install_it(monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(BackendUnavailable) as caught:
        Torch(0)
    assert "pip install torch" in caught.value.fix
