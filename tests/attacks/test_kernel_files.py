# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A kernel file from anybody: what it asks of the compiler, what it includes, and how much of it there is."""

import json
import sys
from pathlib import Path

import pytest
from compile_support import compile_source
from hurried_clock import soon
from processes import ran
from unit_support import MINIMAL

from gpuprof.cuda_source.confined import confined
from gpuprof.errors import CompileError, ExitCode, HeaderError
from gpuprof.kernels.catalog import load_kernels
from gpuprof.kernels.compiler_options import joined
from gpuprof.kernels.preprocessing import parse_preprocessing
from gpuprof.toolchain.complaints import without_foreign_lines
from gpuprof.toolchain.nvrtc import compiler_options
from gpuprof.toolchain.nvrtc_program import make_program

HEADER = MINIMAL["transpose"]
CODE = 'extern "C" __global__ void mine(int nx, int ny, const float *in, float *out) { out[0] = in[0]; }\n'


def kernel_of(folder, fields="", code=CODE):
    """A kernel file that stands in a folder, read."""
    path = Path(folder, "mine.cu")
    path.write_text(HEADER.replace("[launch]", f"{fields}\n[launch]") + code)
    return load_kernels(path).kernels[0]


def with_options(folder, options):
    return kernel_of(folder, f"compile_options = {json.dumps(options)}")


@pytest.mark.parametrize(
    "options",
    [
        *(["--create-pch=victim"], ["-pch"], ["--use-pch=x"], ["--pch-dir=/tmp"], ["--pch-verbose=true"]),
        *(
            ["--time=victim"],
            ["-time=victim"],
            ["--fdevice-time-trace=victim"],
            ["-fdevice-time-trace=victim"],
        ),
        *(["-I/etc"], ["-I", "/etc"], ["-I /etc"], ["--include-path=/etc"], ["-include=/etc/passwd"]),
        *(["-include", "/etc/passwd"], ["--pre-include=/etc/passwd"], ["-preinclude=x"]),
        *(["--ptxas-options=-O0"], ["-Xptxas", "-O0"], ["-Xptxas=--options-file"], ["@options"]),
        *(["-D", "--create-pch=victim"], ["-DX=1\n--time=victim"], ["-DX=1", "--time=victim"], ["-D"]),
        *(["--ftz=true --time=victim"], ["--ftz=true\n"], ["--std=c++17=--time"], ["-U"], [""], ["--"]),
        *(["--CREATE-PCH=victim"], ["---use_fast_math"], ["--gpu-architecture=sm_80"], ["-dlto"]),
        *(["--maxrregcount"], ["--maxrregcount", "--time=victim"], ["--maxrregcount=٣"]),
    ],
    ids=repr,
)
def test_a_header_asks_nothing_of_the_compiler_that_could_touch_files(tmp_path, options):
    with pytest.raises(HeaderError, match=r"compile_options holds .*no kernel file may ask") as caught:
        with_options(tmp_path, options)
    assert "mine.cu:" in caught.value.what
    assert "A header may set macros" in caught.value.fix


@pytest.mark.parametrize(
    "options",
    [
        *(["--use_fast_math"], ["-use_fast_math"], ["-ftz=true", "--prec-div=false"], ["--fmad=false"]),
        *(["-DX"], ["-DX=a b"], ["-D X=1"], ["-D", "X=1"], ["--define-macro=X=1"], ["-UX"], ["-U", "X"]),
        *(["--maxrregcount=64"], ["--maxrregcount", "64"], ["-G"], ["-lineinfo"], ["--std=c++20"], ["-w"]),
        *(["-restrict"], ["-extra-device-vectorization"], ["-default-device"], ["--diag-suppress=177,550"]),
    ],
    ids=repr,
)
def test_a_header_may_say_how_its_own_code_is_compiled(tmp_path, options):
    assert with_options(tmp_path, options).compile_options == joined(options)


SECRET = "SECRET_TOKEN=abc"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder of kernels that a stranger wrote, where there are secrets; the working directory holds one."""
    home = tmp_path / "home"
    folder = home / "kernels"
    folder.mkdir(parents=True)
    for secret in (home / "secret.h", folder / ".env", tmp_path / "cwd" / "secret.h"):
        secret.parent.mkdir(exist_ok=True)
        secret.write_text(SECRET)
    (folder / "link.h").symlink_to("../secret.h")
    (folder / "near.h").write_text("#pragma once\n__device__ int near_one;\n")
    monkeypatch.chdir(tmp_path / "cwd")
    return folder


def compiled(kernel, options=()):
    """What NVRTC says of a kernel as it is compiled anywhere: nothing where it takes it."""
    given = [*compiler_options("sm_80"), *kernel.compile_options, *options]
    given += [f"-D{name}={value}" for name, value in kernel.defines.items()]
    try:
        compile_source(kernel.source, "mine.cu", kernel.entries[0], given, kernel.headers)
    except CompileError as error:
        return f"{error.what}\n{error.log}\n{error.fix}"
    return ""


WAYS = {
    "absolute": '#include "{secret}"',
    "in brackets": "#include <{secret}>",
    "upwards": '#include "../secret.h"',
    "upwards in brackets": "#include <../secret.h>",
    "through a folder": '#include "./../kernels/../secret.h"',
    "link": '#include "link.h"',
    "hidden": '#include ".env"',
    "working directory": '#include "secret.h"',
    "next": '#include_next "{secret}"',
    "other words": '#import "{secret}"\n#embed "{secret}"',
    "macro": '#define WHERE "{secret}"\n#include WHERE',
    "macro made of text": "#define TEXT(x) #x\n#define WHERE TEXT({secret})\n#include WHERE",
    "macro with two meanings": '#define AT "near.h"\n#undef AT\n#define AT "{secret}"\n#include AT',
    "macro with a macro in it": "#define up ..\n#define AT <{ups}{secret}>\n#include AT",
    "macro with an argument": '#define AT(x) <{up}/x>\n#include AT({secret})',
    "macro with a macro as its argument": "#define up ..\n#define AT(x) <{xs}{secret}>\n#include AT(up)",
    "macro with another parameter": '#define AT(x, y) <y>\n#include AT(near.h)\n#include "{secret}"',
    "macro that pastes": "#define up ..\n#define AT(x) <u ## x/{up}{secret}>\n#include AT(p)",
    "macro on two lines": '#define AT "near.h"\n#undef AT\n#define A\\\nT "{secret}"\n#include AT',
    "name of the file": '#line 1 "{secret}"\n#include __FILE__',
    "line joined": '#inc\\\nlude "{secret}"',
    "line joined behind a blank": '#inc\\ \nlude "{secret}"',
    "digraph": '%:include "{secret}"',
    "comments": '/**/#/**/include/**/"{secret}"',
    "end of a comment": '/*\n*/ #include "{secret}"',
    "blanks": '\f\v #\tinclude "{secret}"',
    "no literal": "// R\"(\n#include \"{secret}\"\n// )\"",
    "no comment": "constexpr char a = '\"'; // /*\n#include \"{secret}\"\n// */",
    "behind host code": 'int main() { return 0; } #include "{secret}"',
    "in a nested file": '#include "far.h"',
}  # fmt: skip


#: Names that no file has which a kernel may read: nothing is read, and the header is empty.
OF_NOBODY = ("link", "hidden", "working directory")


@pytest.mark.parametrize("way", WAYS)
def test_no_line_of_a_file_elsewhere_gets_into_a_log(places, way):
    secret = places.parent / "secret.h"
    (places / "far.h").write_text(f'#include "{secret}"\n')
    words = {
        "{secret}": str(secret),
        "{up}": "/".join([".."] * 20),
        "{ups}": "/".join(["up"] * 20),
        "{xs}": "/".join("x" * 20),
    }
    text = WAYS[way]
    for word, meant in words.items():
        text = text.replace(word, meant)
    kernel = kernel_of(places, code=f"{text}\n{CODE}")
    said = compiled(kernel)
    assert "SECRET_TOKEN" not in said
    assert not any("SECRET_TOKEN" in text for text in kernel.headers.values())
    assert "may not include" in said or not way.startswith("macro"), "the compiler opened it"
    folder = ".., seen from the file" if way.startswith("upwards") else ""
    assert said == "" if way in OF_NOBODY else f"type their folder: -I {folder}" in said


def test_an_older_standard_joins_lines_by_its_trigraph(places):
    code = f'??=include "{places.parent / "secret.h"}"\n// ??/\n\n' + CODE
    said = compiled(kernel_of(places, 'compile_options = ["-std=c++14"]', code))
    assert "SECRET_TOKEN" not in said
    assert "may not include" in said


@pytest.mark.parametrize("entry", ["mine<\\n%:include </etc/passwd>\\n>", "mine<1>\\n"])
def test_an_entry_stays_on_its_line(tmp_path, entry):
    with pytest.raises(HeaderError, match="entry must name a function"):
        kernel_of(tmp_path, f'entry = "{entry}"')


@pytest.mark.parametrize("fields", ['include = [".."]', 'include = ["/etc"]', 'include = ["up"]'])
def test_a_header_names_folders_below_its_own_alone(places, fields):
    (places / "up").symlink_to("..")
    with pytest.raises(HeaderError, match="no folder below the file's own") as caught:
        kernel_of(places, fields)
    assert "-I " in caught.value.fix


def test_a_folder_that_looks_like_cudas_is_searched_like_another(places):
    (places / "toolkit").mkdir()
    (places / "toolkit" / "cuda_fp16.h").write_text("")
    (places / "toolkit" / "evil.h").symlink_to("../../secret.h")
    kernel = kernel_of(places, 'include = ["toolkit"]', "#include <evil.h>\n" + CODE)
    assert kernel.compile_options == ()
    assert "SECRET_TOKEN" not in compiled(kernel)


def test_what_a_kernel_may_include_is_found(places):
    (places / "deep").mkdir()
    (places / "deep" / "a.h").write_text('#include "../near.h"\n#define A 1\n')
    (places / "inside.h").symlink_to("deep/a.h")
    code = """#include "deep/a.h"
#include "./deep/../inside.h"
#include "cuda_fp16.h"
#include <cstdint>
#define NEAR "near.h"
#define OF_CUDA(name) <cuda/std/name>
#include OF_CUDA(limits)
#if 0
#include "/etc/passwd"
#include "../secret.h"
#endif
#if __has_include(<cuda_fp16.h>) && !__has_include("nowhere.h") && defined(__has_include)
#define TEXT(x) \\
    #x
#endif
__device__ const char *text = TEXT(A) "/* #include <../x> */";
"""
    assert compiled(kernel_of(places, code=code + CODE)) == ""


def test_folders_that_are_typed_may_be_anywhere(places):
    typed = places.parent / "lib" / ".hidden"
    (typed / "deep").mkdir(parents=True)
    (typed / "mine.h").write_text('#include "deep/other.h"\n')
    (typed / "deep" / "other.h").write_text('#include "../third.h"\n')
    (typed / "third.h").write_text("__device__ int found_it;\n")
    path = places / "mine.cu"
    path.write_text(HEADER + "#include <mine.h>\n" + CODE)
    kernel = load_kernels(path, None, parse_preprocessing([typed], [])).kernels[0]
    assert compiled(kernel) == ""
    assert len(kernel.headers) == 3


@pytest.mark.deep
@pytest.mark.parametrize(
    ("unit", "end"),
    [
        *(("operator ", "(){}"), ("a<", "(){}"), ("template <", "(){}"), ("a=", ";"), ("std::", "(){}")),
        *(("/*", ""), ("*/", ""), ("//", ""), ("#define A \\\n", ""), ("\\\n", ""), ('"/*', "")),
        *(("#if __has_include(\n", ""), ("#include ", ""), ("# ", ""), ("__global__ f(", ""), ("?", "")),
    ],
    ids=repr,
)
def test_a_source_is_read_in_linear_time(tmp_path, unit, end):
    code = unit * (200_000 // len(unit)) + end
    with soon(8):
        kernel = kernel_of(tmp_path, code=code)
        make_program(kernel.source, {}, ["--gpu-architecture=sm_80"], 13)


#: What a command took of the machine, all its processes together, and the most memory that one of them took.
TAKEN = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
taken = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, taken.ru_utime + taken.ru_stime, taken.ru_maxrss << 10, "Traceback" in done.stderr)
"""


@pytest.mark.deep
def test_a_long_run_of_one_token_takes_little_from_reading_to_the_page(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text(HEADER + CODE + ";" * 300_000 + "\n")
    command = ("run", path, "--sizes", "32", "--device", "sim", "-o", tmp_path / "o")
    line = [sys.executable, "-m", "gpuprof", *command]
    done = ran([sys.executable, "-c", TAKEN, *line, "--compile-timeout", "30"], cwd=tmp_path, check=True)
    status, seconds, memory, traceback = done.stdout.split()
    assert (status, traceback) == (str(ExitCode.CASES_FAILED.value), "False")
    assert float(seconds) < 60
    assert int(memory) < 2 << 30
    assert sum(file.stat().st_size for file in (tmp_path / "o").iterdir()) < 32 << 20


def test_a_source_too_large_to_be_one_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(HeaderError, match=r"Cannot read the kernel file .*holds more than \d+ MiB"):
        kernel_of(tmp_path, code="int x;\n" * 1_000_000)


@pytest.mark.parametrize("option", ["-D", "--define-macro"])
def test_a_macro_whose_value_is_an_entry_of_its_own_names_no_file_elsewhere(tmp_path, option):
    kernel = with_options(tmp_path, [option, 'F="/etc/passwd"'])
    source = "#if 0\n#define F <ok.h>\n#endif\n#include F\n"
    (text,) = confined({"k.cu": source}, kernel.compile_options, set()).values()
    assert "#error" in text


#: Words that come to a question about a file, and the options with which they do.
QUESTIONS = {
    "written out": ('#define Q __has_include("FILE")', ()),
    "named": ('#define H __has_include\n#define Q H("FILE")', ()),
    "in pieces": ('#define F "FILE"\n#define L (\n#define Q __has_include L F )', ()),
    "pasted": ('#define C(a, b) a##b\n#define Q C(__has_, include)("FILE")', ()),
    "pasted twice": (
        "#define C(a, b) a##b\n#define D(a, b) C(a, b)\n#define Q D(D(__, has_), include)(<FILE>)",
        (),
    ),
    "pasted, a macro's file": ("#define C(a, b) a##b\n#define F <FILE>\n#define Q C(__has_, include)(F)", ()),
    "an option's name": ('#define Q H("FILE")', ["-D", "H=__has_include"]),
    "an option's question": ("", ['-DQ=__has_include("FILE")']),
    "of CUDA's headers": ('#include <cuda/std/version>\n#define Q _CCCL_HAS_INCLUDE("FILE")', ()),
    "of CUDA's headers, in brackets": (
        "#include <cuda/std/version>\n#define Q _CCCL_HAS_INCLUDE(<FILE>)",
        (),
    ),
}


@pytest.mark.parametrize("words", QUESTIONS)
def test_whether_a_file_is_there_is_not_told_in_any_words(tmp_path, words):
    there = tmp_path / "there.h"
    there.write_text("")
    line, options = QUESTIONS[words]
    code = f"{line}\n#if Q\n#error ANSWERED\n#endif\n{CODE}".replace("FILE", str(there))
    kernel = with_options(tmp_path, [option.replace("FILE", str(there)) for option in options])
    compile_source(code, "mine.cu", "mine", compiler_options("sm_80", (), kernel.compile_options))


def test_questions_that_may_be_asked_are_left_to_the_compiler(tmp_path):
    conditions = [
        "__has_include(<cuda_fp16.h>)",
        "HAS && 3 < 4",
        "FP16 && h+a+s+i+n+c+l+u+d+e < 1",
        "__CUDACC_RTC__",
    ]
    defined = "#include <cuda_fp16.h>\n#define HAS __has_include(<cuda_fp16.h>)\n"
    defined += "#define C(a, b) a##_##b\n#define FP16 HAS\n"
    tests = "".join(f"#if !({each})\n#error {number}\n#endif\n" for number, each in enumerate(conditions))
    compile_source(defined + tests + CODE, "mine.cu", "mine", compiler_options("sm_80"))


def test_a_log_quotes_no_file_that_is_none_of_the_compilers(tmp_path):
    for name in ("own", "typed", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.h").write_text("root:x:0:0\n")
    secret = tmp_path / "secret" / "x.h"
    quoted = '{0}(1): error: identifier "root" is undefined\n  root:x:0:0\n  ^\n\n'
    names = [
        "mine.cu",
        "given.h",
        str(tmp_path / "typed" / "x.h"),
        str(secret),
        f"{tmp_path}/typed/../secret/x.h",
    ]
    log = "".join(map(quoted.format, names)) + "3 errors detected\n"
    text = without_foreign_lines(log, ["mine.cu", "given.h"], [tmp_path / "typed"])
    assert text.count("root:x") == 3
    assert text.startswith(quoted.format("mine.cu"))
    assert text.count(f"{secret}(1): error: in a file that a kernel file may not read") == 1
    assert text.endswith("3 errors detected\n")
