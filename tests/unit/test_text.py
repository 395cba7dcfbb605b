# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""No control character of anybody's text reaches a terminal, and no text drowns what stands beside it."""

import json
from pathlib import Path

from each import each
from hypothesis import given
from hypothesis import strategies as st
from unit_support import MINIMAL, gpuprof, parse_kernel, write_transpose_kernel

from gpuprof.commands import listing
from gpuprof.kernels.kernel import Ladder
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.text import MOST_SHOWN, cut, one_line, visible

#: What clears a screen, renames a window, goes back to overwrite, rings, or reverses the reading order.
EVIL = "\x1b[2J\x1b]0;t\x07\r\x08\x9b31m\u202e"


def is_safe(text):
    return all(char in "\n\t" or char.isprintable() or char == "\xa0" for char in text)


@given(st.text())
def test_visible_text_holds_no_control_character(text):
    shown = visible(text + EVIL)
    assert not set(shown) & {*map(chr, range(9)), *map(chr, range(11, 32)), *map(chr, range(127, 160))}
    assert "\u202e" not in shown
    assert not set(one_line(text)) & set("\n\t\u2028\u2029")


def test_long_text_is_cut_and_says_how_much_is_left_out():
    assert cut("x" * MOST_SHOWN) == "x" * MOST_SHOWN
    assert cut("x" * 10_000_000) == "x" * 2000 + " … (9,998,000 more characters)"


@each(
    arguments=[
        ["list", EVIL],
        [EVIL],
        ["gemm", f"--{EVIL}"],
        ["gemm", "--seed", EVIL],
        ["gemm", "-k", EVIL],
        ["gemm", "-k", f"{EVIL}.cu"],
        ["gemm", "--sizes", EVIL],
        ["gemm", "--device", EVIL],
        ["gemm", "--device", f"sim:{EVIL}"],
        ["gemm", "--device", "none", "--arch", EVIL],
        ["report", EVIL],
        ["report", f"a{EVIL}.json"],  # which names one that is there
        ["import", EVIL, EVIL],
        ["report", "x\ny\tz"],
    ]
)
def test_mistake_is_quoted_without_its_control_characters(refused, tmp_path, arguments):
    (tmp_path / f"b{EVIL}.json").touch()
    assert is_safe(refused(*arguments))


def test_every_key_and_text_of_a_results_file_is_shown_without_control_characters(tmp_path):
    path = write_transpose_kernel(tmp_path, "mine")
    assert gpuprof("transpose", "-k", str(path), *TINY, cwd=tmp_path).returncode == 0
    document = json.loads((tmp_path / "r.json").read_text())
    document["environment"] = {f"k{EVIL}\n": f"v{EVIL}"}
    document["devices"][0]["name"] += f"{EVIL}\n"
    operation = document["operations"].pop("transpose")
    operation["title"] = operation["help"] = operation["coded"] = EVIL
    operation["options"][f"o{EVIL}"] = {"values": {f"v{EVIL}": f"w{EVIL}"}, "default": "", "ceiling": ""}
    document["operations"][f"op{EVIL}"] = operation
    document["created_utc"] = document["tool"]["version"] = document["backend_reason"] = EVIL
    document["argv"] = [EVIL]
    for case in document["cases"]:
        case |= {"kernel": f"x{EVIL}\ny", "reason": EVIL, "log": EVIL, "compile_options": [EVIL]}
        case |= {"counters_reason": EVIL, "timing_reason": EVIL, "params": {f"p{EVIL}\n": 1}}
        problem = case["problem"]
        problem |= {"operation": f"op{EVIL}", "dtype": EVIL, "options": {f"o{EVIL}": f"v{EVIL}"}}
        problem |= {"sizes": {f"d{EVIL}": 64, "e": 32}, "scalars": {f"s{EVIL}": 0.5}}
        counter = {"value": 3, "unit": EVIL, "source": "ncu", "metric": EVIL}
        case["counters"] = {f"c{EVIL}": counter, "d": {**counter, "value": None, "reason": EVIL}}
    for record in document["kernels"]:
        record |= {"operation": f"op{EVIL}", "citation": EVIL, "citation_url": f"https://{EVIL}"}
        record |= dict.fromkeys(["title", "idea", "change", "bottleneck", "reference", "file_name"], EVIL)
        record |= {"id": f"x{EVIL}\ny", "source": f"{EVIL}\nint x;", "aliases": [EVIL], "study": EVIL}
    (tmp_path / "r.json").write_text(json.dumps(document))
    for options in ([], ["--markdown"]):
        shown = gpuprof("report", "r.json", *options, "--force", cwd=tmp_path, status=0)
        assert is_safe(shown.stdout + shown.stderr)
    assert is_safe((tmp_path / "r.html").read_text().split("<script>")[0])


TINY = ("--sizes", "64", "--device", "none", "--json", "r.json", "-q")


def test_list_shows_a_header_without_its_control_characters_and_its_brackets_as_they_are(monkeypatch, capsys):
    source = MINIMAL["gemm"].replace('"Mine"', '"[bold]x[/bold] \\u001b[2J\\u0007"')
    kernel = parse_kernel(source, Path("mine.cu"))
    monkeypatch.setattr(listing, "shipped_ladder", lambda name: Ladder(shipped_operation(name), (kernel,)))
    listing.print_ladders("gemm")
    shown = capsys.readouterr().out
    assert is_safe(shown)
    assert "[bold]x[/bold] \\u001b[2J\\u0007" in shown
