# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Compilation without a driver, and its cache."""

import fcntl
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path

import pytest
from compile_support import compile_source
from problem_support import ladder, problem_for
from unit_support import DEVICE

from gpuprof.backends.compiling import compile_kernel
from gpuprof.errors import BackendUnavailable, CaseSkipped, CompileError
from gpuprof.kernels.shape import configure
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.records import replace
from gpuprof.toolchain import cache, fork_server, nvrtc
from gpuprof.toolchain.cache import cache_directory, compile_entries_cached, kept_together
from gpuprof.toolchain.fork_server import ForkServer
from gpuprof.toolchain.nvrtc import (
    architecture_of,
    compile_entries,
    compiler_options,
    nvrtc_version,
    supported_archs,
)

pytestmark = pytest.mark.deep

SHIPPED = [kernel for op in ("gemm", "transpose") for kernel in ladder(op) if not kernel.choices]
GOOD = 'extern "C" __global__ void mine(int *a)\n{\n    a[threadIdx.x] = NUMBER;\n}\n'
OPTIONS = compiler_options("sm_90", [("NUMBER", "3")])


def cached(source=GOOD, options=OPTIONS, name="mine.cu", entry="mine"):
    return compile_entries_cached(source, name, (entry,), options)[0]


def compile_shipped(kernel, arch, dtype="f32"):
    sizes = (128,) * len(shipped_operation(kernel.operation).dimensions)
    problem = problem_for(kernel, *sizes, dtype=dtype)
    device = replace(DEVICE, compute_capability=f"{arch[3:-1]}.{arch[-1]}")
    shape = configure(kernel, problem, kernel.block, {}, device)
    return compile_kernel(shape, arch)[kernel.entries[0]], shape


#: Only a kernel that bounds its registers comes near to a spill; for the others the least card does.
#: The GEMM ladder is compiled for sm_86 by the command line's tests, whose machine code is that of sm_89 too,
#: and for sm_90 where its figures are held against its headers: neither spills there.
#: The rest take turns, but where a kernel needs what the first two lack.
IN_TURN = ("sm_75", "sm_80", "sm_100", "sm_120")


def archs_of(index, kernel):
    """What the kernel of a place in the ladders is compiled for."""
    if "__launch_bounds__" not in kernel.source:
        return IN_TURN[:1]
    return "sm_90", IN_TURN[index % 2 + 2 if "cp.async" in kernel.source else index % 4]


def programs():
    """Each kernel, architecture and type that is compiled: doubles, which need the most registers, too."""
    shown = {kernel.source: kernel for kernel in reversed(SHIPPED)}
    for index, kernel in enumerate(SHIPPED):
        for arch in archs_of(index, kernel):
            first, *others = kernel.dtypes
            counted = arch == "sm_90" and kernel.moves
            # Types of one width take the same registers in each shape of a kernel; doubles do not.
            alike = kernel.shape_of and kernel is not shown[kernel.source]
            more = others if arch == "sm_75" or (arch == "sm_90" and not alike) else ()
            for dtype in (*(() if counted else (first,)), *more):
                yield pytest.param(kernel, arch, dtype, id=f"{kernel.id}-{arch}-{dtype}")


@pytest.mark.parametrize(("kernel", "arch", "dtype"), [*programs()])
def test_shipped_kernel_compiles_without_spills(kernel, arch, dtype):
    if int(arch[3:]) not in supported_archs():
        assert int(arch[3:]) > 90, f"{arch} must be supported"
        pytest.skip(f"this NVRTC does not know {arch}")
    try:
        compiled, shape = compile_shipped(kernel, arch, dtype)
    except CaseSkipped as reason:
        pytest.skip(str(reason))
    threads = prod(shape.launches[0].block)
    assert compiled.cubin.startswith(b"\x7fELF")
    assert f".target {arch}" in compiled.ptx
    assert f".entry {kernel.entries[0]}(" in compiled.ptx
    assert (compiled.entry, architecture_of(compiled.arch)) == (kernel.entries[0], arch)
    assert compiled.spill_bytes == 0
    assert 0 < compiled.registers_per_thread * threads <= 65536


def test_spills_are_counted():
    lines = "".join(f"    real_{i} += a[t * {i}] * real_{(i * 7 + 1) % 64};\n" for i in range(64))
    first = "".join(f"    double real_{i} = a[t + {i}];\n" for i in range(64))
    last = "".join(f"    a[t * 64 + {i}] = real_{i};\n" for i in range(64))
    source = (
        'extern "C" __global__ void __launch_bounds__(1024, 1) mine(double *a)\n{\n    int t = threadIdx.x;\n'
        f"{first}    for (int j = 0; j < 9; ++j) {{\n{lines}    }}\n{last}}}\n"
    )
    assert compile_source(source, "mine.cu", "mine", compiler_options("sm_90")).spill_bytes > 0


def test_compile_error_carries_the_compilers_log():
    with pytest.raises(CompileError) as caught:
        compile_source(GOOD, "mine.cu", "mine", compiler_options("sm_90"))
    assert caught.value.what == (
        "mine.cu does not compile (NVRTC_ERROR_COMPILATION): "
        'mine.cu(3): error: identifier "NUMBER" is undefined.'
    )
    assert "as a macro, say so by define in the header" in caught.value.fix
    assert "a[threadIdx.x] = NUMBER;" in caught.value.log
    assert "1 error detected" in caught.value.log


def test_macro_that_the_source_gives_another_value_is_an_error():
    define = "#define NUMBER 4096\n"
    with pytest.raises(CompileError, match=r"^mine\.cu\(1\) defines NUMBER too, and wins"):
        compile_source(define + GOOD, "mine.cu", "mine", OPTIONS)
    compile_source(f"#ifndef NUMBER\n{define}#endif\n{GOOD}", "mine.cu", "mine", OPTIONS)


def test_unknown_architecture_is_a_compile_error():
    with pytest.raises(CompileError, match=r"mine\.cu does not compile .*--gpu-architecture"):
        compile_source(GOOD, "mine.cu", "mine", compiler_options("sm_1"))


def test_one_of_two_kernels_in_a_file_is_reported_alone():
    second = 'extern "C" __global__ void tiles(float *a)\n{\n    __shared__ float s[256];\n'
    second += "    s[threadIdx.x] = a[threadIdx.x];\n    __syncthreads();\n"
    second += "    a[threadIdx.x] = s[255 - threadIdx.x];\n}\n"
    for source in (GOOD + second, second + GOOD):
        assert compile_source(source, "two.cu", "mine", OPTIONS).static_shared_bytes == 0
        assert compile_source(source, "two.cu", "tiles", OPTIONS).static_shared_bytes == 1024


def test_missing_library_says_how_to_install_it(monkeypatch):
    def refuse():
        raise OSError("libnvrtc.so.13: cannot open shared object file")

    nvrtc._nvrtc.cache_clear()
    monkeypatch.setattr(nvrtc, "_load_matching_library", refuse)
    try:
        with pytest.raises(BackendUnavailable, match="NVRTC cannot be loaded") as caught:
            nvrtc_version()
        assert caught.value.fix == "Install it with: pip install nvidia-cuda-nvrtc"
    finally:
        nvrtc._nvrtc.cache_clear()


def test_no_compilation_begins_where_another_left_memory(monkeypatch):
    """NVRTC makes other machine code of some sources then: each has a process of its own, as new as any."""
    answered = []

    def answer(number):
        answered.append(number)
        return os.getpid(), answered

    apart = ForkServer(lambda: answered.append("begun"), answer)
    processes, all_answered = zip(*map(apart.ask, range(4)), strict=True)
    assert all_answered == tuple(["begun", number] for number in range(4))
    assert len({os.getpid(), *processes}) == 5
    assert not answered
    compile_source(GOOD, "mine.cu", "mine", OPTIONS)  # with which the process begins that is copied
    monkeypatch.setattr(nvrtc, "_call", None)  # where this process would compile
    assert "mine" in compile_source(GOOD, "mine.cu", "mine", OPTIONS).ptx


def test_where_no_process_answers_this_one_compiles(monkeypatch):
    def dies(*question):
        os.kill(os.getpid(), signal.SIGKILL)

    class DiesAsItIsSent:
        __reduce__ = dies

    def sends(*question):
        return bytes(1 << 20), DiesAsItIsSent()

    monkeypatch.setattr(fork_server, "_PATIENCE_S", 1)
    for prepare, answer in ((dies, int), (signal.pause, int), (int, dies), (int, sends)):
        apart = ForkServer(prepare, answer)
        assert apart.ask("anything") is None
        monkeypatch.setattr(nvrtc, "_FORKS", apart)
        made = compile_source(GOOD, "mine.cu", "mine", OPTIONS)
        assert "mine" in made.ptx
        assert "other runs may get other code" in made.log


def test_what_an_answer_raises_is_raised():
    def fails(question):
        raise CompileError(question, log="its log", fix="Mend it.")

    with pytest.raises(CompileError, match="it fails") as caught:
        ForkServer(int, fails).ask("it fails")
    assert (caught.value.log, caught.value.fix) == ("its log", "Mend it.")


def test_a_lost_process_is_begun_again_if_it_has_answered(monkeypatch, tmp_path):
    def hangs():
        with (tmp_path / "begun").open("a") as file:
            file.write("x")
        signal.pause()

    apart = ForkServer(int, os.getppid)
    lost = []
    for _ in range(3):
        process = apart.ask()
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        lost.append(process)
    assert len({*lost}) == 3
    monkeypatch.setattr(fork_server, "_PATIENCE_S", 1)
    apart = ForkServer(hangs, int)
    assert apart.ask() is apart.ask() is None
    assert (tmp_path / "begun").read_text() == "x"


def test_a_copy_at_work_does_not_hide_that_its_process_is_lost():
    """It keeps no socket but that to whoever asked."""
    kept = ForkServer(int, lambda: sum(file.is_socket() for file in Path("/proc/self/fd").iterdir()))
    assert kept.ask() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_process_of_its_own_and_holds_no_other():
    apart = ForkServer(int, os.getppid)
    origin = apart.ask()
    reading, writing = os.pipe()
    with apart._starting:  # as another thread may
        child = os.fork()
        if not child:
            signal.alarm(30)
            os.write(writing, bytes([apart.ask() not in (None, origin)]))
            signal.pause()
    os.close(writing)
    with open(reading, "rb") as told:
        assert told.read(1) == b"\1"
    apart._asked.close()
    os.waitpid(origin, 0)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def test_a_folder_that_is_gone_is_no_reason_to_compile_otherwise(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert ForkServer(int, bool).ask("anything")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nor_is_one_that_may_not_be_entered(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0)
    child = os.fork()
    if not child:
        if not os.getuid():
            os.setuid(65534)
        os._exit(not ForkServer(int, bool).ask("anything"))
    ended = os.waitpid(child, 0)[1]
    tmp_path.chmod(0o700)
    assert ended == 0


def test_ctrl_c_is_not_for_those_that_compile():
    apart = ForkServer(int, os.getppid)
    origin = apart.ask()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(origin, number)
        assert apart.ask() == origin


def test_a_compilation_finds_files_where_its_process_is(monkeypatch, tmp_path):
    """Also where others began elsewhere."""
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "beside.h").write_text(f"#define WHICH {number + 776}\n")
        monkeypatch.chdir(folder)
        source = '#include "beside.h"\n' + GOOD.replace("NUMBER", "WHICH")
        assert str(number + 776) in compile_source(source, "mine.cu", "mine", (*OPTIONS, "-I.")).ptx


@pytest.fixture
def directory(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(directory))
    return directory


@pytest.fixture
def compilations(monkeypatch):
    """Names of the files that were really compiled."""
    seen = []

    def spy(program, file_name, entries):
        seen.append(file_name)
        return compile_entries(program, file_name, entries)

    monkeypatch.setattr(cache, "compile_entries", spy)
    return seen


def test_second_compilation_comes_from_the_cache(directory, compilations):
    first = cached()
    assert cached() == first
    assert compilations == ["mine.cu"]
    assert len(list(directory.iterdir())) == 1


def test_what_several_workers_want_at_once_is_compiled_once(directory, compilations):
    with ThreadPoolExecutor(max_workers=4) as pool:
        made = list(pool.map(lambda _: cached(), range(4)))
    assert compilations == ["mine.cu"]
    assert made == [made[0]] * 4
    assert [file.suffix for file in directory.iterdir()] == [".json"]


def test_nobody_waits_for_a_compilation_for_ever(directory, compilations, monkeypatch):
    monkeypatch.setattr(cache, "_PATIENCE_S", 0.0)
    cached()
    (entry,) = directory.iterdir()
    entry.unlink()
    with entry.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        cached()
    assert compilations == ["mine.cu"] * 2


@pytest.mark.parametrize(
    "changed",
    [
        (GOOD + " ",),
        (GOOD, OPTIONS, "other.cu"),
        (GOOD.replace("mine", 'mine() {} extern "C" __global__ void mine2'), OPTIONS, "mine.cu", "mine2"),
        (GOOD, compiler_options("sm_90", [("NUMBER", "4")])),
        (GOOD, compiler_options("sm_86", [("NUMBER", "3")])),
    ],
    ids=["source", "name", "entry", "define", "architecture"],
)
def test_whatever_decides_the_code_decides_the_entry(directory, compilations, changed):
    cached()
    cached(*changed)
    assert len(compilations) == 2
    assert len(list(directory.iterdir())) == 2


def _resealed(text, **changes):
    """An entry with other content under a digest that fits it."""
    kernels = [{**json.loads(text)["made"][0], **changes}]
    return json.dumps({"sha256": cache._digest(kernels), "made": kernels})


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "{}",
        lambda text: "null",
        lambda text: text.replace('"ptx"', '"px"'),
        lambda text: text.replace('"registers_per_thread": ', '"registers_per_thread": 1'),
        lambda text: _resealed(text, ptx=None),
        lambda text: _resealed(text, cubin="é"),
        lambda text: _resealed(text, cubin=None),
        lambda text: _resealed(text, options="-lineinfo"),
    ],
)
def test_damaged_entry_is_compiled_anew_and_mended(directory, compilations, damage):
    first = cached()
    (path,) = directory.iterdir()
    path.write_text(damage(path.read_text()))
    again = cached()
    assert (again.cubin, again.ptx, again.options) == (first.cubin, first.ptx, first.options)
    assert len(compilations) == 2
    assert cached() == again
    assert len(compilations) == 2


INCLUDING = '#include "inc.h"\nextern "C" __global__ void mine(int *out) { *out = VALUE; }'


@pytest.mark.parametrize("where", ["include path", "nested", "pre-include"])
def test_changed_include_is_compiled_anew(directory, compilations, tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    source, options, changing = INCLUDING, list(OPTIONS), tmp_path / "inc.h"
    if where == "include path":
        options, changing = [*options, f"-I{folder}"], folder / "inc.h"
    elif where == "nested":
        (tmp_path / "inc.h").write_text('#  include "folder/deep/b.h" // here')
        (folder / "deep" / "b.h").write_text("#include <c.h>")
        options, changing = [*options, f"-I{tmp_path}", f"--include-path={folder}"], folder / "c.h"
    elif where == "pre-include":
        options, source = [*options, "--pre-include=inc.h"], source.partition("\n")[2]
    changing.write_text("#define VALUE 12345")
    first = cached(source, options)
    assert cached(source, options) == first
    changing.write_text("#define VALUE 54321")
    again = cached(source, options)
    assert ("12345" in first.ptx, "54321" in again.ptx) == (True, True)
    assert len(compilations) == 2


def test_include_named_by_a_macro_is_never_cached(directory, compilations, tmp_path):
    (tmp_path / "inc.h").write_text("#define VALUE 1")
    source = INCLUDING.replace('#include "inc.h"', "#define NAME <inc.h>\n#include NAME")
    options = [*OPTIONS, f"-I{tmp_path}"]
    cached(source, options)
    cached(source, options)
    assert len(compilations) == 2


def test_cache_that_cannot_be_written_is_harmless(directory, compilations):
    directory.write_text("a file where the directory should be")
    for _ in range(2):
        assert cached().cubin
    assert len(compilations) == 2
    assert directory.read_text() == "a file where the directory should be"


def test_full_disk_is_harmless_and_leaves_no_litter(directory, compilations, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert cached().cubin
    assert list(directory.iterdir()) == []


def test_user_without_a_home_directory_can_compile(compilations, monkeypatch):
    def homeless(*_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GPUPROF_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache.Path, "home", homeless)
    assert cached().cubin


def test_failed_compilation_is_not_kept(directory, compilations):
    for _ in range(2):
        with pytest.raises(CompileError):
            cached("oops")
    assert len(compilations) == 2


def test_what_two_want_at_once_is_made_once_in_whatever_order(directory):
    made, second, keys = [], threading.Event(), ["a" * 64, "b" * 64]

    def want(keys, begun):
        def make(lacking):
            made.extend(lacking)
            begun()
            return lacking

        return kept_together(str, keys, make)

    with ThreadPoolExecutor(1) as beside:

        def begun():
            beside.submit(want, keys[::-1], second.set)
            second.wait(0.3)

        want(keys, begun)
    assert sorted(made) == keys


def test_what_nobody_waits_for_is_not_made_by_itself(directory):
    for keys in (["a" * 64], ["a" * 64, "b" * 64]):
        assert [*kept_together(str, keys, list)] == ["a" * 64]


def test_oldest_entries_go_first(directory, monkeypatch):
    monkeypatch.setattr(cache, "_MAX_ENTRIES", 3)  # two, and the lock of the one that is written
    monkeypatch.setattr(cache, "_WRITES_PER_LOOK", 1)
    paths = []
    for number in range(3):
        cached(options=compiler_options("sm_90", [("NUMBER", str(number))]))
        (new,) = set(directory.iterdir()) - set(paths)
        if number < 2:
            os.utime(new, (1000 + number, 1000 + number))
        paths.append(new)
    assert set(directory.iterdir()) == set(paths[1:])


def test_files_that_are_not_the_caches_own_stay(directory, monkeypatch):
    monkeypatch.setattr(cache, "_MAX_ENTRIES", 1)
    monkeypatch.setattr(cache, "_WRITES_PER_LOOK", 1)
    directory.mkdir()
    killed = (".writing-killed", f"{'0' * 64}.lock")
    for name in ("precious.json", "precious.lock", *killed):
        (directory / name).write_text("{}")
        os.utime(directory / name, (1000, 1000))
    cached()
    left = {path.name for path in directory.iterdir()}
    assert left >= {"precious.json", "precious.lock"}
    assert not left & set(killed)


def test_cache_stands_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUPROF_CACHE_DIR", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "chosen"
    monkeypatch.delenv("GPUPROF_CACHE_DIR")
    assert cache_directory() == tmp_path / "xdg" / "gpuprof"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory().parts[-2:] == (".cache", "gpuprof")
