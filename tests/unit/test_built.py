# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""PTX and machine code where a `.cu` file may stand: read, checked, executed, and what is said of it."""

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from compile_support import compile_source
from problem_support import measured

import gpuprof
from gpuprof.commands.new import write_starting_point
from gpuprof.cubin_file import SECTION, CubinFile, kernels_in, misplaced_shared
from gpuprof.errors import CompileError, HeaderError, InputError
from gpuprof.executor import load_program
from gpuprof.kernels.built_files import built_of_ptx, read_built
from gpuprof.kernels.paths import ladder_of
from gpuprof.problems.problem import Problem
from gpuprof.toolchain import assembling
from gpuprof.toolchain.assembling import check_target, found_ptxas, installed, load_cubin, load_ptx, target_in
from gpuprof.toolchain.nvrtc import compiler_options

pytestmark = pytest.mark.usefixtures("unread")

HEADER = """
operation = "scale_rows"
dimensions = ["n"]
arguments = ["y", "x", "a", "n"]
entry = "scale"
[arrays]
x = { shape = ["n"] }
y = { shape = ["n"], role = "out" }
[scalars.a]
type = "f32"
default = 3.0
[work]
bytes = "8 * n"
[check]
y = "a * x"
relative = "4 * u"
[launch]
block = [64]
grid = ["cdiv(n, block_x)"]
"""
SOURCE = """__global__ void __launch_bounds__(64) scale(float *y, const float *x, float a, int n) {
    __shared__ float held[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    held[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        y[i] = a * held[threadIdx.x];
}
"""


def compiled(arch="sm_90", source=SOURCE, entry="scale"):
    return compile_source(source, "scale.cu", entry, compiler_options(arch))


@pytest.fixture(scope="module")
def kernel():
    return compiled()


@pytest.fixture
def without_ptxas(monkeypatch):
    monkeypatch.setattr(assembling, "found_ptxas", lambda: ())


def written(folder, kernel, ending, header=HEADER, text=None):
    """A file of PTX with its header in a comment, or of machine code with one beside it."""
    path = folder / f"mine{ending}"
    if ending == ".ptx":
        path.write_text(f"/*gpuprof{header}*/\n{text or kernel.ptx}")
    else:
        path.write_bytes(kernel.cubin)
        path.with_suffix(".toml").write_text(header)
    return path


def case_of(path):
    """What is measured of a file's one kernel, in this process."""
    ladder = ladder_of([path])
    (kernel,) = ladder.kernels
    return measured(kernel, Problem.of(ladder.operation, (1000,)), kernel.block)


def test_ptx_runs_and_its_lines_are_its_own(tmp_path, kernel):
    path = written(tmp_path, kernel, ".ptx")
    case = case_of(path)
    assert case.outcome == "ok"
    assert read_built(path).source == path.read_text()
    lines = path.read_text().splitlines()
    stores = [line.line for line in case.lines if "global_store_requests" in line.counters]
    assert [lines[number - 1].split()[0] for number in stores] == ["st.global.f32"]


def test_ptx_has_the_lines_of_the_file_that_it_names_where_that_is_beside_it(tmp_path, kernel):
    (tmp_path / "scale.cu").write_text(SOURCE)
    path = written(tmp_path, kernel, ".ptx")
    assert read_built(path).source == SOURCE
    assert {line.line for line in case_of(path).lines} >= {4, 7}


@pytest.mark.parametrize("name", ["../outside.cu", "/etc/hostname", ".hidden.cu"])
def test_no_file_elsewhere_is_read_for_its_lines(tmp_path, kernel, name):
    folder = tmp_path / "own"
    folder.mkdir()
    (tmp_path / "outside.cu").write_text("secret")
    (folder / ".hidden.cu").write_text("secret")
    (folder / "linked.cu").symlink_to(tmp_path / "outside.cu")
    for named in (name, "linked.cu"):
        path = written(folder, kernel, ".ptx", text=kernel.ptx.replace("scale.cu", named))
        assert read_built(path).source == path.read_text()


def test_ptx_may_hold_what_a_compiler_leaves_unused_and_end_with_a_zero(tmp_path, kernel):
    unused = "".join(f".weak .global .u32 _Z{'long' * 50}{i};\n" for i in range(25_000))
    text = kernel.ptx.replace(".visible .entry", f"{unused}.visible .entry") + "\0"
    assert len(text) > 5 << 20
    assert case_of(written(tmp_path, kernel, ".ptx", text=text)).outcome == "ok"


@pytest.mark.parametrize("ending", [".ptx", ".cubin"])
def test_a_file_without_a_header_is_told_how_to_begin_one(tmp_path, kernel, ending):
    path = tmp_path / f"mine{ending}"
    path.write_bytes(kernel.cubin if ending == ".cubin" else kernel.ptx.encode())
    with pytest.raises(HeaderError, match="has no /") as told:
        ladder_of([path])
    assert f"gpuprof new {path} {path.with_suffix('.toml')} writes one" in told.value.fix


def test_machine_code_is_given_its_resources_and_says_why_nothing_is_counted(tmp_path, kernel):
    path = written(tmp_path, kernel, ".cubin")
    case = case_of(path)
    assert case.outcome == "skipped"
    assert "mine.cubin is machine code" in case.reason
    held = case.resources
    found = held.registers_per_thread, held.static_shared_bytes, held.spill_bytes
    assert found == (kernel.registers_per_thread, kernel.static_shared_bytes, kernel.spill_bytes)
    assert "STG" in read_built(path).source


@pytest.mark.parametrize("ending", [".ptx", ".cubin"])
def test_new_writes_the_header_beside_it_that_only_a_formula_is_missing_in(tmp_path, kernel, capsys, ending):
    path, header = tmp_path / f"mine{ending}", tmp_path / "mine.toml"
    if ending == ".ptx":
        path.write_text(kernel.ptx)
    else:
        path.write_bytes(kernel.cubin)
    write_starting_point(str(path), header, force=False)
    assert capsys.readouterr().out.endswith(f"gpuprof run {path}\n")
    formula = "x2 * x1" if ending == ".ptx" else "x0"  # its stores say what is written
    header.write_text(header.read_text().replace('value = ""', f'value = "{formula}"'))
    assert ladder_of([path]).kernels[0].block == (64, 1, 1)
    if ending == ".ptx":
        assert case_of(path).outcome == "ok"
    with pytest.raises(InputError, match="exists already"):
        write_starting_point(str(path), header, force=False)
    write_starting_point(str(path), header, force=True)
    assert header.read_text().startswith('operation = "scale"')
    if ending == ".ptx":
        own = tmp_path / "own.ptx"
        own.write_text(f"/*gpuprof\n{header.read_text()}*/\n{kernel.ptx}")
        with pytest.raises(InputError, match="has a header"):
            write_starting_point(str(own), tmp_path / "own.toml", force=True)
        _, directives, body = kernel.ptx.partition(".visible")
        own.write_text(f"{kernel.ptx}\n{directives}{body.replace('scale', 'other')}")
        write_starting_point(str(own), tmp_path / "own.toml", force=True)
        assert (tmp_path / "own.toml").read_text().startswith("# Other kernels, for entry: _Z5other")
    with pytest.raises(InputError, match=r"cannot be .*other\.toml"):
        write_starting_point(str(path), tmp_path / "other.toml", force=True)


def test_a_header_as_of_triton_has_its_block_and_no_array_for_hidden_pointers(tmp_path, kernel):
    ptx = kernel.ptx.replace(".param .u64 ", ".param .u64 .ptr .global .align 1 ")
    last = ".param .u32 _Z5scalePfPKffi_param_3"
    ptx = ptx.replace(last, f"{last},\n\t.param .u64 .ptr .global .align 1 hidden")
    (tmp_path / "mine.ptx").write_text(ptx.replace(".maxntid 64", ".reqntid 64"))
    write_starting_point(str(tmp_path / "mine.ptx"), tmp_path / "mine.toml", force=False)
    text = (tmp_path / "mine.toml").read_text()
    assert 'arguments = ["x0", "x1", "x2", "x3", "0"]' in text
    assert 'bytes = "8 * x3"' in text
    assert "block = [64]\n" in text


def test_new_tells_what_structs_hold_by_the_loads_of_their_members(tmp_path):
    """As Mojo's tensors and Julia's arrays come: an address, a size in 64 bits, and what nothing reads."""
    struct = "struct Rows { float *data; short unread[3]; char more; long long n; float by; };\n"
    source = (
        struct
        + """__global__ void scale(Rows y, Rows x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x.n)
        y.data[i] = x.by * x.data[i];
}
"""
    )
    path, header = tmp_path / "mine.ptx", tmp_path / "mine.toml"
    path.write_text(compiled(source=source).ptx)
    write_starting_point(str(path), header, force=False)
    header.write_text(header.read_text().replace('value = ""', 'value = "x1_24 * x1_0"'))
    assert case_of(path).outcome == "ok"
    computed = source.replace("short unread[3]", "int of[40]").replace("x.by *", "x.of[i % 40] *")
    path.write_text(compiled(source=computed).ptx)
    write_starting_point(str(path), header, force=True)
    assert "x1_8 (.b64)" in header.read_text()


#: What a header says instead, and what is told of it: while it is read, or of the case.
REFUSED = {
    "block = [64]": ("block = [128]", "holds at most 64 threads: its .maxntid"),
    'arguments = ["y", "x", "a", "n"]': ('arguments = ["y", "x", "a"]', "is given 3 arguments"),
    'entry = "scale"': ('entry = "scala"', "has no kernel called scala; it holds _Z5scale"),
}
UNREAD = {
    "[parameters]\nT = 4\n[launch]": "parameters is for CUDA C++",
    "[define]\nT = 4\n[launch]": "define is for CUDA C++",
    '[[variants]]\nid = "b"\n[variants.define]\nT = 4\n[launch]': "compiled already",
}


@pytest.mark.parametrize("ending", [".ptx", ".cubin"])
@pytest.mark.parametrize("old", REFUSED)
def test_header_is_held_against_what_is_compiled(tmp_path, kernel, ending, old):
    new, told = REFUSED[old]
    path = written(tmp_path, kernel, ending, HEADER.replace(old, new))
    case = case_of(path)
    assert case.outcome in ("failed", "skipped")
    if ending == ".cubin" and "entry" not in old:
        return  # what is not launched is not held against its arguments
    assert told in case.reason


@pytest.mark.parametrize("new", UNREAD)
def test_what_is_for_a_source_is_refused(tmp_path, kernel, new):
    path = written(tmp_path, kernel, ".ptx", HEADER.replace("[launch]", new))
    with pytest.raises(HeaderError, match=UNREAD[new]):
        ladder_of([path])


@pytest.mark.parametrize(
    "content", [b"", b"no ELF", b"\x7fELF\x02\x01" + bytes(200), b"\x7fELF\x02\x01\xff" * 99]
)
def test_what_is_no_machine_code_is_told(tmp_path, content):
    path = tmp_path / "mine.cubin"
    path.write_bytes(content)
    with pytest.raises(HeaderError, match=r"mine\.cubin"):
        ladder_of([path])


def test_every_damaged_cubin_is_refused_or_read(kernel):
    """No byte of a stranger's makes another error than the one that is told."""
    for place in range(0, len(kernel.cubin), 7):
        damaged = bytearray(kernel.cubin)
        damaged[place] ^= 0xFF
        try:
            kernels_in(bytes(damaged))
        except ValueError:
            continue


TARGETS = {"sm_80": "", "sm_90": "", "sm_90a": "", "sm_80a": "alone", "sm_100": "newer", "sm_100a": "alone"}
TARGETS |= {"sm_90f": "", "sm_100f": "family alone"}


@pytest.mark.parametrize("target", TARGETS)
def test_target_is_held_against_the_card(target):
    ptx = f".version 8.0\n.target {target}\n"
    if not TARGETS[target]:
        return check_target(ptx, "sm_90", "mine.ptx")
    with pytest.raises(CompileError, match=f"target {target}.*{TARGETS[target]}.*compute_90"):
        check_target(ptx, "sm_90", "mine.ptx")


def test_machine_code_of_another_generation_is_refused(kernel):
    with pytest.raises(CompileError, match="machine code for sm_90, which does not run on sm_80"):
        load_cubin(kernel.cubin, ["scale"], "sm_80", "mine.cubin")


def test_ptx_is_executed_where_there_is_no_ptxas(tmp_path, kernel, without_ptxas):
    (made,) = load_ptx(kernel.ptx, ["scale"], "sm_90", "mine.ptx")
    assert (made.cubin, made.entry) == (b"", kernel.entry)
    assert [parameter.nbytes for parameter in made.parameters] == [8, 8, 4, 4]
    assembled = [(b"made", "by the driver")]
    with pytest.raises(ValueError, match="ELF"):  # what the driver made is read as machine code
        load_ptx(kernel.ptx, ["scale"], "sm_90", "mine.ptx", lambda ptx, name: assembled[0])


def test_ptxas_is_asked_for_the_architectures_own_instructions_once():
    assert target_in(".target sm_90a", "sm_90a") == target_in(".target sm_90a", "sm_90") == "sm_90a"
    assert target_in(".target sm_80", "sm_90") == "sm_90"


def test_shared_memory_of_the_system_is_no_kernels_in_linked_code_either(kernel):
    assert b".nv.shared.reserved.0" in kernel.cubin
    linked = kernel.cubin.replace(b".nv.shared.reserved.0", b".nv_debug.shared.here")
    assert kernels_in(linked)[kernel.entry].static_shared_bytes == 256


def test_dynamic_shared_memory_that_a_linker_misplaces_is_found():
    source = """extern __shared__ __align__(1024) char dynamic[];
    extern "C" __global__ void scale(float *y, int n) {
        __shared__ float other[100];
        other[threadIdx.x] = dynamic[threadIdx.x] = n;
        __syncthreads();
        y[n] = other[n] + dynamic[n];
    }"""
    made = compiled(source=source)
    assert misplaced_shared(made.ptx, made.cubin) == 0
    for name, section in CubinFile(made.cubin).sections:
        if name == ".nv.shared.scale":
            size, place = struct.pack("<Q", section.size), struct.pack("<Q", 1024 + 400)
            whole = SECTION.pack(*section)
            linked = made.cubin.replace(whole, whole.replace(size, place))
    assert misplaced_shared(made.ptx, linked) == 1024


@pytest.mark.parametrize("named", ["", "toolkit"])
def test_a_variable_that_is_empty_names_no_toolkit_in_the_working_directory(tmp_path, monkeypatch, named):
    for folder in (tmp_path, tmp_path / "toolkit"):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "ptxas").touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_HOME", named and str(tmp_path / named))
    found = [path.resolve() for path in installed("ptxas")]
    own = [path for path in found if path.is_relative_to(tmp_path)]
    assert own == [tmp_path / "toolkit" / "bin" / "ptxas"] * bool(named)


@pytest.mark.skipif(not found_ptxas(), reason="there is no ptxas here")
def test_ptxas_makes_the_machine_code_of_ptx(kernel):
    plain = kernel.ptx.replace(f".version {kernel.ptx.split('.version ')[1].split()[0]}", ".version 8.0")
    (made,) = load_ptx(plain, ["scale"], "sm_90", "mine.ptx")
    assert made.registers_per_thread > 0
    assert made.static_shared_bytes == 256
    assert made.options[0].startswith("ptxas ")
    with pytest.raises(CompileError, match=r"ptxas refuses mine\.ptx, line \d+: \w[^;]*[^.]\.$"):
        load_ptx(plain.replace("st.global.f32", "st.global.f99"), ["scale"], "sm_90", "mine.ptx")
    (newer,) = load_ptx(plain.replace(".version 8.0", ".version 99.0"), ["scale"], "sm_90", "mine.ptx")
    assert (newer.cubin, newer.entry) == (b"", kernel.entry)


def test_the_null_character_with_which_nvrtc_ends_ptx_is_no_part_of_it(kernel):
    assert built_of_ptx(f"{kernel.ptx}\0", Path("mine.ptx")) == built_of_ptx(kernel.ptx, Path("mine.ptx"))


def test_a_program_measures_ptx_without_a_header(tmp_path, kernel):
    call = {**CALL, "device": "sim"}
    path = tmp_path / "mine.ptx"
    path.write_text(kernel.ptx)
    for what in (path, gpuprof.Source(kernel.ptx, "mine", ".ptx")):
        assert gpuprof.profile(what, **call).cases[0].outcome == "ok"
    wrong = gpuprof.Source(kernel.ptx.replace("mul.f32", "add.f32"), "mine", ".ptx")
    assert gpuprof.profile(wrong, **call).cases[0].outcome == "incorrect"
    with pytest.raises(InputError, match="compiled already"):
        gpuprof.profile(path, params={"T": 4}, **call)


CALL = {
    "args": {"y": None, "x": np.arange(100, dtype=np.float32), "a": np.float32(2), "n": 100},
    "expect": {"y": 2 * np.arange(100, dtype=np.float32)},
    "grid": 2,
    "block": 64,
}


@pytest.mark.parametrize("target", ["sm_120", "sm_120a", "sm_120f"])
def test_ptx_of_a_newer_card_is_executed_as_it_is(kernel, target):
    newer = gpuprof.Source(kernel.ptx.replace(".target sm_90", f".target {target}"), "mine", ".ptx")
    (case,) = gpuprof.profile(newer, **CALL, device="sim:rtx5090").record.cases
    assert (case.outcome, case.counters["global_load_requests"].value) == ("ok", 4)
    (case,) = gpuprof.profile(newer, **CALL, device="sim:h200").record.cases
    assert "this card is sm_90" in case.reason


def test_what_no_ptxas_takes_is_not_modelled_for_that_reason(kernel, without_ptxas):
    (case,) = gpuprof.profile(
        gpuprof.Source(kernel.ptx, "mine", ".ptx"), **CALL, device="sim:h200"
    ).record.cases
    assert case.outcome == "ok"
    assert case.model_reason == case.resources_reason == assembling.NO_PTXAS


def test_an_array_may_come_in_a_struct_of_its_address_alone(tmp_path, kernel):
    ptx = kernel.ptx.replace(
        ".param .u64 _Z5scalePfPKffi_param_0", ".param .align 8 .b8 _Z5scalePfPKffi_param_0[8]"
    )
    assert ptx != kernel.ptx
    path = written(tmp_path, kernel, ".ptx", text=ptx)
    assert case_of(path).outcome == "ok"


def test_a_kernels_own_shared_variable_has_its_own_name_where_llvm_adds_the_kernels(tmp_path, kernel):
    (name,) = re.findall(r"\.shared .* (\S+)\[256\]", kernel.ptx)
    ptx = kernel.ptx.replace(f"{name}[256]", f"{name}[128]").replace(name, f"{kernel.entry}_$_tile_$_here")
    assert "of `tile_$_here`" in case_of(written(tmp_path, kernel, ".ptx", text=ptx)).reason


def test_a_folder_holds_files_of_every_kind_and_a_case_travels_whole(tmp_path, kernel):
    tables, launch = HEADER.split("[launch]")
    operation = tables.replace('operation = "scale_rows"', 'name = "scale_rows"')
    operation = operation.replace('arguments = ["y", "x", "a", "n"]\nentry = "scale"\n', "")
    (tmp_path / "operation.toml").write_text('title = "Scale"\ndefault_sizes = "100"\n' + operation)
    header = f'arguments = ["y", "x", "a", "n"]\nentry = "scale"\n[launch]{launch}'
    (tmp_path / "a.cu").write_text(f"/*gpuprof\n{header}*/\n{SOURCE}")
    (tmp_path / "b.ptx").write_text(f"/*gpuprof\n{header}*/\n{kernel.ptx}")
    (tmp_path / "c.cubin").write_bytes(kernel.cubin)
    (tmp_path / "c.toml").write_text(header)
    run = gpuprof.profile(tmp_path, device="sim:h200", save=tmp_path / "results.json")
    assert [case.outcome for case in run.cases] == ["ok", "ok", "skipped"]
    kept = json.loads((tmp_path / "results.json").read_text())
    assert [record["file_name"] for record in kept["kernels"]] == ["a.cu", "b.ptx", "c.cubin"]


def test_lines_of_ptx_without_locations_are_its_own(kernel):
    plain = "\n".join(line for line in kernel.ptx.splitlines() if ".loc" not in line)
    plain = plain.replace("\t.reg .pred", "\t.local .align 4 .b8 __local_depot0[4];\n\t.reg .pred", 1)
    program = load_program(plain, kernel.entry)
    lines = plain.splitlines()
    found = {lines[site.line - 1].split()[0] for site in program.sites if "global" in site.family}
    assert found == {"ld.global.f32", "st.global.f32"}
