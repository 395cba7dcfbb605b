# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Write what the documentation takes from the code and the samples: tables, options, schemas, the house.

Usage: python docs/update.py
"""

import csv
import importlib
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import typer
from json_schemas import json_schema

import gpuprof
from gpuprof.analysis import numbers
from gpuprof.analysis.status import is_ceiling
from gpuprof.cli import app
from gpuprof.comparison.comparison_document import ComparisonDocument
from gpuprof.comparison.fleet import FleetDocument
from gpuprof.kernels.catalog import shipped_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shipped import shipped_names
from gpuprof.options import GROUPS, keywords_of
from gpuprof.report.run_text import show_run
from gpuprof.results import Run

DOCS = Path(__file__).parent
ROOT = DOCS.parent
#: Runs of by_size on tensor cores: types and cards.
TENSOR_RUNS = (
    "bf16-h200",
    "f16-h200",
    "tf32-h200",
    "e4m3-h200",
    "bf16-h100",
    "f16-h100",
    "tf32-h100",
    "e4m3-h100",
)
#: Runs of the samples that stand on the page of what was measured, in its order.
SAMPLES = (
    ("gemm-h200", "gemm-sizes-h200"),
    ("transpose-h200", "transpose-sizes-h200"),
    ("reduce-h200",),
    ("softmax-h200",),
)
#: Objects of a results file whose fields stand on its page.
READ_MOST = ("Measurement", "Timing", "Counter")
#: Options that a table lists without groups, and those that a sentence must name to be worth a table's rows.
_FEW, _WORTH_A_SENTENCE = 9, 4
#: Steps of the ladders: limiter, run of the samples, size, two kernels, and the figure that tells.
STEPS = (
    ("issue slots", "reduce-h200", "16777216", "interleaved", "interleaved_strided", "warp_instructions"),
    ("issue slots", "reduce-h200", "16777216", "sequential", "first_add", "warp_instructions"),
    ("bank conflicts", "transpose-sizes-h200", "8192", "smem_tile", "smem_padded", "bank_conflicts"),
    ("shared memory", "gemm-h200", "4096", "smem_tiled", "reg_2x1", "shared_load_wavefronts"),
    ("shared memory", "gemm-h200", "4096", "col_4x1", "col_4x4", "shared_load_wavefronts"),
    ("L1", "gemm-h200", "4096", "naive_x_rows", "naive", "global_load_efficiency_pct"),
    ("L1", "gemm-h200", "4096", "naive", "smem_tiled", "global_sectors"),
    ("L2", "gemm-h200", "4096", "splitk", "streamk", "sol_l2_pct"),
    ("DRAM", "softmax-h200", "8192", "float4_online", "smem_row", "global_sectors"),
    ("latency", "transpose-sizes-h200", "8192", "smem_padded", "smem_unrolled", "warp_instructions"),
    ("latency", "reduce-h200", "16777216", "grid_stride", "float4_loads", "global_load_requests"),
    ("latency", "gemm-h200", "4096", "reg_8x16_async", "reg_8x16_pipelined", "stall_short_scoreboard"),
    ("launches", "reduce-h200", "1048576", "unrolled", "grid_stride", "launches"),
    ("too few blocks", "gemm-h200", "128", "reg_8x8", "splitk", "grid_blocks"),
    ("too few blocks", "softmax-h200", "8192", "three_passes", "block_row", "grid_blocks"),
    ("barriers", "softmax-h200", "1024", "block_row", "warp_shuffles", "barriers"),
    ("spills", "gemm-h200", "4096", "col_8x8_prefetch", "col_8x8_double", "spill_bytes"),
)


def steps() -> str:
    """What each step changed in its counter and in the time."""
    rows = [
        "| limiter | from | to | problem | counter | time | gain |",
        "|:--|:--|:--|:--|:--|--:|--:|",
    ]
    for limiter, name, size, before, after, figure in STEPS:
        run = gpuprof.load(ROOT / "samples" / f"{name}.json")
        pair = [run.case(kernel, size=size) for kernel in (before, after)]
        counted = " → ".join(_counted(case, figure) for case in pair)
        times = " → ".join(numbers.time_us(case.median_us) for case in pair)
        gain = pair[0].median_us / pair[1].median_us
        rows.append(
            f"| {limiter} | `{before}` | `{after}` | {pair[0].record.problem.operation} {size}"
            f" | `{figure}` {counted} | {times} | {gain:.2f}x |"
        )
    return "\n".join(rows)


def _counted(case: Any, figure: str) -> str:
    if figure == "launches":
        return str(len(case.record.launches) or 1)
    value = case.figures[figure]
    if figure.endswith("_pct"):
        return numbers.percent(value)
    return f"{value:.2f}" if figure.startswith("stall_") else numbers.count(value)


def measured() -> str:
    """The fastest kernel of each problem of the samples, a table for each ladder."""
    heads = "| size | fastest kernel | time | rate | vs library | of peak | bound by |"
    parts = []
    for names in SAMPLES:
        files = " and ".join(f"[{name}.json](../samples/{name}.json)" for name in names)
        parts += [f"## {names[0].partition('-')[0]}", f"From {files}."]
        rows = {size: row for name in names for size, row in _fastest(name)}
        parts.append("\n".join((heads, "|:--|:--|--:|--:|--:|--:|:--|", *rows.values())))
    return "\n\n".join(parts)


def errors() -> str:
    """How far FP32 GEMMs on CUDA and tensor cores are off a float64 reference, and how fast they are."""
    run = gpuprof.load(ROOT / "samples" / "gemm-fp32-h200.json")
    rows = [
        "| size | kernel | largest error of \\|A\\|\\|B\\|, in u | allowed | rate | over cuBLAS |",
        "|:--|:--|--:|--:|--:|--:|",
    ]
    for case in run.cases:
        if case.size not in ("512", "4096", "8192"):
            continue
        library, checked = run.case("cublas", size=case.size), case.record.verification
        shares = f"{checked.max_rel_error * 2**24:.1f} | {checked.bound * 2**24:.0f}"
        rows.append(
            f"| {case.size} | `{case.kernel}` | {shares}"
            f" | {numbers.gflops(case.figures.gflops)} | {library.median_us / case.median_us:.2f}x |"
        )
    return "\n".join(rows)


def steps_of_ladder(
    operation: str, sample: str, library: tuple[str, str], sizes: Mapping[str, str], busy: str
) -> str:
    """Each rung of a measured ladder: what it reaches and gains, and what its header says that moves.

    `library` is a reference with its heading, `sizes` are those of two columns with theirs; gains are those
    at the second.
    """
    run, ladder = gpuprof.load(ROOT / "samples" / f"{sample}.json"), shipped_ladder(operation)
    (small, first), (large, second) = sizes.items()
    beside, steps = run.case(library[0], size=large), {}
    rows = [
        f"| rung | what is new | {first} | {second} | gain | over {library[1]} | {busy} busy | what moves |",
        "|:--|:--|--:|--:|--:|--:|--:|:--|",
    ]
    known = {kernel.id: kernel for kernel in ladder.rungs if not kernel.choices}
    for case in run.cases:
        if case.size != large or not case.ok or case.kernel not in known:
            continue
        kernel, rate = known[case.kernel], numbers.gflops(case.figures.gflops)
        before = steps.get(kernel.after)
        gain = f"{before.median_us / case.median_us:.2f}x" if before else "–"
        moves = [name for name in kernel.moves if before and before.figures.get(name) is not None]
        moved = ", ".join(f"`{name}` {_step(before, case, name)}" for name in moves)
        smaller = numbers.gflops(run.case(case.kernel, size=small).figures.gflops)
        rows.append(
            f"| `{case.kernel}` | {kernel.title} | {smaller} | {rate} | {gain}"
            f" | {beside.median_us / case.median_us:.2f}x | {case.figures['sol_compute_pct']:.0f} %"
            f" | {moved or '–'} |"
        )
        steps[case.kernel] = case
    return "\n".join(rows)


def tensor_sizes() -> dict[str, dict[str, float]]:
    """What by_size reaches of cuBLASLt at each size, by type and card."""
    shares: dict[str, dict[str, float]] = {}
    for name in TENSOR_RUNS:
        dtype, card = name.split("-")
        run = gpuprof.load(ROOT / "samples" / f"gemm-{dtype}-by-size-{card}.json")
        timed = {case.size: case.median_us for case in run.cases if not case.is_reference}
        shares[name] = {
            case.size: case.median_us / timed[case.size] for case in run.cases if case.is_reference
        }
    return shares


def best_rungs() -> dict[str, dict[str, float]]:
    """What the fastest kernel of each size reaches of cuBLASLt, by type and card."""
    shares: dict[str, dict[str, float]] = {}
    for name in TENSOR_RUNS:
        path = DOCS / "data" / f"gemm-sizes-{name}.csv"
        if not path.exists():
            continue
        best = shares[name] = {}
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                best[row["size"]] = max(float(row["over_cublas"]), best.get(row["size"], 0.0))
    return shares


def over_library(shares: Mapping[str, Mapping[str, float]]) -> str:
    """A row for each type and card of what its sizes reach of a library."""
    rows = [
        "| | sizes | geometric mean | below 0.95 | least | 4096 | 8192 |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for name, column in shares.items():
        least, (dtype, card) = min(column, key=column.__getitem__), name.split("-")
        rows.append(
            f"| {dtype}, {card.upper()} | {len(column)} | {geometric_mean(column.values()):.3f}"
            f" | {sum(share < 0.95 for share in column.values())} | {column[least]:.2f} at {least}"
            f" | {column['4096']:.2f} | {column['8192']:.2f} |"
        )
    return "\n".join(rows)


def size_data(shares: Mapping[str, Mapping[str, float]]) -> str:
    """The same as CSV, a line a size."""
    rows = [("size", *shares)]
    for size in dict.fromkeys(size for column in shares.values() for size in column):
        rows.append((size, *(f"{column[size]:.2f}" if size in column else "" for column in shares.values())))
    return "".join(f"{','.join(row)}\n" for row in rows)


def _step(before: Any, after: Any, figure: str) -> str:
    """A figure before and after; none was counted of a kernel that has nothing of the kind."""
    pair = (each.figures.get(figure) for each in (before, after))
    return " → ".join("none" if value is None else numbers.count(value) for value in pair)


#: TFLOP/s of FlashAttention-3 on an H100 in FP16, as published, by size and whether there is a mask.
PUBLISHED = {
    ("2x16x8192x128", False): 757,
    ("1x16x16384x128", False): 648,
    ("1x16x16384x128", True): 616,
    ("1x32x16384x64", False): 497,
    ("1x32x16384x64", True): 473,
}


def attention_beside_others() -> str:
    """What `by_size` reaches in FP16, beside PyTorch in the same run and what others published."""
    rows = [
        "| card | size | mask | kernel | `by_size` | over PyTorch | FlashAttention-3, H100 |",
        "|:--|:--|:--|:--|--:|--:|--:|",
    ]
    for card, causal in itertools.product(("H200", "H100"), (False, True)):
        name = f"attention-f16{'-causal' if causal else ''}-{card.lower()}"
        run = gpuprof.load(ROOT / "samples" / f"{name}.json")
        for case in (one for one in run.cases if one.kernel == "by_size" and one.ok):
            beside = run.case("torch_sdpa", size=case.size)
            known = PUBLISHED.get((case.size, causal))
            if known is None:
                continue
            share = f"{known}, {case.figures.gflops / 1000 / known:.2f}x"
            rate = numbers.gflops(case.figures.gflops)
            rows.append(
                f"| {card} | {case.size} | {'causal' if causal else '–'} | `{case.record.chosen}` | {rate}"
                f" | {beside.median_us / case.median_us:.2f}x | {share} |"
            )
    return "\n".join(rows)


def _fastest(name: str) -> Iterator[tuple[str, str]]:
    """Each size of a run, with its row."""
    run = gpuprof.load(ROOT / "samples" / f"{name}.json")
    timed = [case for case in run.cases if case.ok and case.figures.get("median_us")]
    for size in dict.fromkeys(case.size for case in timed):
        cases = [case for case in timed if case.size == size]
        rungs = [case for case in cases if not case.is_reference and not is_ceiling(run.record, case.record)]
        best = min(rungs, key=lambda case: case.figures.median_us)
        library = next((case for case in cases if case.is_reference), None)
        figures = best.figures
        rated_by = run.record.operations[best.record.problem.operation].work.rate
        rate = numbers.gflops(figures.gflops) if rated_by == "flops" else numbers.gbps(figures.gbps)
        beside = f"{library.median_us / best.median_us:.2f}x {library.kernel}" if library else "–"
        share = figures.get("pct_of_bound")
        bound = f"{figures.bound_by}, {share:.0f} % of the time" if share else "not counted"
        kernel = " → ".join(f"`{name}`" for name in (best.kernel, best.record.chosen) if name)
        yield (
            size,
            f"| {size} | {kernel} | {numbers.time_us(best.median_us)} | {rate}"
            f" | {beside} | {numbers.percent(figures.pct_of_limit)} | {bound} |",
        )


def studies() -> str:
    """The page that says where the ladders' kernels were published."""
    parts = [
        "# The studies",
        "Kernels of the shipped ladders were published; what their authors reported, on their own GPUs, "
        "stands in the reports as context, never as a target. The code here is written anew from their ideas."
        " Published names are in parentheses. Made by `python docs/update.py` from ladders' `studies.toml`"
        " and headers.",
    ]
    for name in shipped_names():
        ladder = shipped_ladder(name)
        parts.append(f"## {ladder.operation.title}")
        for study in dict.fromkeys(kernel.study for kernel in ladder.kernels if kernel.study.citation):
            link = f" <{study.url}>" if study.url else ""
            parts.append(f"**Study {study.name}.** {study.citation}{link}")
            names = [_named(kernel) for kernel in ladder.kernels if kernel.study == study]
            parts.append(f"{', '.join(names)}.")
    return "\n\n".join(parts) + "\n"


def _named(kernel: Kernel) -> str:
    aliases = ", ".join(f"`{alias}`" for alias in kernel.aliases)
    return f"`{kernel.id}` ({aliases})" if aliases else f"`{kernel.id}`"


def with_blocks(path: Path, **blocks: str) -> tuple[Path, str]:
    """A page with its marked blocks made anew."""
    page = path.read_text(encoding="utf-8")
    opens, closes = ("# ", "") if path.suffix == ".py" else ("<!-- ", " -->")
    for name, text in blocks.items():
        begin, end = f"{opens}{name}: begin{closes}\n", f"{opens}{name}: end{closes}"
        before, _, rest = page.partition(begin)
        gap = "\n\n" if path.suffix == ".py" else "\n"
        page = f"{before}{begin}{gap}{text.strip()}\n{gap}{end}{rest.partition(end)[2]}"
    return path, page


def options() -> str:
    """Every command with its arguments and options."""
    return "\n\n".join(
        _command(name, command) for name, command in typer.main.get_command(app).commands.items()
    )


def _command(name: str, command: Any) -> str:
    """A command's arguments, and its options in their groups; what the first ladder has too is named only."""
    first = shipped_names()[0]
    known = {_parameter(each): _long(each) for each in typer.main.get_command(app).commands[first].params}
    shared = [each for each in command.params if name != first and _parameter(each) in known]
    if len(shared) < _WORTH_A_SENTENCE:
        shared = []
    parts = [f"### gpuprof {name}", _flat(command.help)]
    if len(shared) > len(known) / 2:
        without = sorted(set(known.values()) - {_long(each) for each in command.params})
        but = f" but {', '.join(without)}" if without else ""
        parts.append(f"The options of `gpuprof {first}`{but}, and:")
    elif shared:
        parts.append(f"As of `gpuprof {first}`: {', '.join(map(_long, shared))}; and:")
    own = [each for each in command.params if each not in shared]
    groups: dict[str, list[str]] = {"": [], **{group: [] for group in GROUPS}}
    for each in own:
        groups[getattr(each, "rich_help_panel", None) or ""].append(_parameter(each))
    rows = []
    for group, held in groups.items():
        rows += [f"| **{group}** | |"] * bool(group and held and len(own) > _FEW)
        rows += held
    if rows:
        parts.append("\n".join(("| | |", "|:--|:--|", *rows)))
    return "\n\n".join(parts)


def _long(parameter: Any) -> str:
    """An option's long name."""
    return f"`{max(parameter.opts, key=len)}`"


def keywords() -> str:
    """The options of a run, as programs give them, with their defaults."""
    return ", ".join(f"`{row.name}={row.default!r}`" for row in keywords_of("profile").values()) + "."


def keyword_types() -> str:
    """The same as types: what `tune` takes, and what `profile` takes besides."""
    texts, known = [], set()
    for command, name, base in (
        ("tune", "TuneKeywords", "TypedDict"),
        ("profile", "RunKeywords", "TuneKeywords"),
    ):
        texts += ["", f"class {name}({base}, total=False):", f'    """How `{command}` runs."""', ""]
        for row in (row for key, row in keywords_of(command).items() if key not in known):
            texts.append(f"    {row.name}: {_annotation(row.given or row.kind)}")
            known.add(row.name)
        texts.append("")
    return "\n".join(texts)


def _annotation(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("collections.abc.", "")


def _parameter(parameter: Any) -> str:
    """A line of a table for an argument or option."""
    names = ", ".join((*reversed(parameter.opts), *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = parameter.metavar or parameter.name.upper()
    elif parameter.metavar and not parameter.is_flag:
        names += f" {parameter.metavar}"
    text = parameter.help or ""
    if isinstance(parameter.default, str | int | float) and not isinstance(parameter.default, bool):
        text += f" [default: {parameter.default}]"
    return f"| `{_flat(names)}` | {_flat(text)} |"


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def results_page() -> str:
    """The page that says what programs read from a results file."""
    schema = json_schema(Run)
    definitions = schema["$defs"]
    parts = [
        "# results.json",
        "Everything that a run learnt, in one file: whatever a report shows follows from it. Units are in"
        " the names. What was not measured is `null`, with its reason in the field of the same name and"
        " `_reason`. Files of every earlier version are read.",
        "This page has the objects that programs read most; **every field of every object**, with its type"
        " and meaning, is in the JSON Schema [results.schema.json](results.schema.json), which validates"
        " files. Both are made by `python docs/update.py`. In Python, `gpuprof.load(FILE)` reads a file"
        " ([python.md](python.md)); `gpuprof report FILE --csv -` prints a row for each case.",
        "## The whole file",
        _fields(schema),
    ]
    for name in READ_MOST:
        parts += [f"## {name}", definitions[name].get("description", ""), _fields(definitions[name])]
    return "\n\n".join(filter(None, parts)) + "\n"


def _fields(definition: dict[str, Any]) -> str:
    rows = [
        f"| `{name}` | {_type(field)} | {_flat(field.get('description', ''))} |"
        for name, field in definition["properties"].items()
        if not name.endswith("_reason") or name == "backend_reason"
    ]
    return "\n".join(("| field | type | |", "|:--|:--|:--|", *rows))


def _type(field: dict[str, Any]) -> str:
    """A field's type in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name in READ_MOST else f"`{name}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "type" not in field:
        return " or ".join(_type(kind) for kind in field.get("anyOf", ())) or "any"
    if field["type"] == "array":
        held = field.get("items") or field.get("prefixItems", [{}])[0]
        return f"list of {_type(held)}" if held else "list"
    if field["type"] == "object" and field.get("additionalProperties"):
        return f"object of {_type(field['additionalProperties'])}"
    return str(field["type"])


def answer() -> str:
    """What the README's command prints, of the run of the samples."""
    shown = StringIO()
    run = gpuprof.load(ROOT / "samples" / "gemm-h200.json").record
    show_run(run, file=shown, width=80, hint="All rows: --table    Report: gpuprof report --open")
    return f"```\n{shown.getvalue().strip()}\n```"


def jobs() -> str:
    """Which command is for which job, as the index has it, with links from the top folder."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    table = index.partition("## Which command for which job\n\n")[2].partition("\n\n")[0]
    return re.sub(r"\]\((?=[\w-]+\.md)", "](docs/", table)


def house() -> str:
    """The rooms from the roof down, as the test of imports holds them."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "unit")]
    module = importlib.import_module("test_house")
    rows = [f"| `{room}` | {_flat(purpose)} |" for room, purpose in reversed(module.HOUSE.items())]
    return "\n".join(("| room | what it is for |", "|:--|:--|", *rows))


def generated() -> Iterator[tuple[Path, str]]:
    """Every file that this script writes, with its text."""
    yield with_blocks(DOCS / "measured-h200.md", samples=measured())
    yield with_blocks(DOCS / "gemm-sizes.md", errors=errors())
    gemm = (
        "gemm",
        "gemm-bf16-h200",
        ("cublaslt", "cuBLASLt"),
        {"4096": "4096", "8192": "8192"},
        "tensor cores",
    )
    by_size = tensor_sizes()
    tables = {"sizes": over_library(by_size), "best": over_library(best_rungs())}
    yield with_blocks(DOCS / "gemm-tensor-cores.md", ladder=steps_of_ladder(*gemm), **tables)
    yield DOCS / "data" / "gemm-tensor-cores-by-size.csv", size_data(by_size)
    sizes = {"4x16x4096x128": "4096", "1x16x16384x128": "16384"}
    attention = ("attention", "attention-h200", ("torch_sdpa", "PyTorch"), sizes, "compute pipes")
    yield with_blocks(
        DOCS / "attention.md", ladder=steps_of_ladder(*attention), published=attention_beside_others()
    )
    yield with_blocks(DOCS / "limits.md", steps=steps())
    yield with_blocks(DOCS / "command-line.md", options=options())
    yield with_blocks(ROOT / "README.md", answer=answer(), jobs=jobs())
    yield with_blocks(DOCS / "python.md", keywords=keywords())
    yield with_blocks(ROOT / "gpuprof" / "api" / "keywords.py", keywords=keyword_types())
    yield with_blocks(ROOT / "CONTRIBUTING.md", house=house())
    yield DOCS / "results.md", results_page()
    yield DOCS / "studies.md", studies()
    for name, kind in (("results", Run), ("compare", ComparisonDocument), ("fleet", FleetDocument)):
        schema = json.dumps(json_schema(kind), indent=1, ensure_ascii=False)
        yield DOCS / f"{name}.schema.json", f"{schema}\n"


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text, encoding="utf-8")
