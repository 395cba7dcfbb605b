# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""How the GEMM ladder stands against cuBLAS over many sizes: the best rung of each, and what by_size takes.

    python benchmarks/gemm_table.py measure DIR [--part I/N] [--by-size] [--device N]   on a GPU
    python benchmarks/gemm_table.py measure DIR --dtype bf16                            on tensor cores
    python benchmarks/gemm_table.py page DIR …                                          anywhere: a summary
    python benchmarks/gemm_table.py data DIR … > docs/data/gemm-sizes-CARD.csv          anywhere: every size

Measuring makes one run of all sizes that have candidates in common, cuBLAS among them, and writes its results
file into DIR. `--part 1/2` and `--part 2/2` share the sizes between two GPUs; `--by-size` measures no rung
but the one that by_size takes, in one run. `page` and `data` take files, folders of files, and tables that
`data` printed, of one card or of several; of several times of a case the last counts, each beside cuBLAS's of
its own run.
"""

import argparse
import csv
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import gpuprof
from gpuprof.kernels.catalog import load_ladder
from gpuprof.kernels.kernel import Kernel
from gpuprof.kernels.shipped import KERNEL_ROOT
from gpuprof.reading import read_run
from gpuprof.results import Measurement, Run, size_label

#: Sizes by what they try.
SIZES = {
    "powers of two": "64 128 256 512 1024 2048 4096 8192 16384",
    "round numbers": "96 100 160 192 200 320 384 448 500 576 640 704 768 800 896 1000 1152 1280 1400 1500"
    " 1536 1800 1920 2000 2304 2560 3000 3072 5000 6144 10000",
    "primes": "67 131 257 509 769 1021 1531 2053 3067 4099",
    "ragged": "333 1001 1023 1111 2049 4095 8191 1000x1111x1003 129x4097x65 1025x511x2047 2050x1026x4098"
    " 777x3333x555",
    "skinny": "128x8192x8192 8192x128x8192 8192x8192x128 64x4096x4096 4096x64x4096 4096x512x512 512x512x8192"
    " 256x256x16384 1x4096x4096 4096x4096x64 131x5003x257"
    " 1x1024x1024 2x4096x4096 4x8192x2048 8192x64x8192",
    "held out": "67x1000x3 223 295x1999x77 577 641 705 801 897 961 1153x640x2050 3333 7777",
    "held out later": "521 545 737 833 865 929 1057 1201 900x701x1501 301x301x3001 65x4097x4097 301x1777x97",
    "short and long k": "6143x513x7 4099x4097x15 1000x1001x3 4096x4096x8 20001x31x15 512x2000x16"
    " 100x100x10001 201x203x1001 4097x9x2000 2000x77x333 777 304x304x3000 128x4096x64 296x2000x76",
    "narrow, few k, very long k": "10000x20x10 50000x16x8 256x3000x24 300x5001x30 2000x50x20 64x64x65536"
    " 128x128x8192 33x200x20000 10x500x30000 16384x48x2048 8192x32x4096 3000x5000x48 2048x2048x64 201x2001x50"
    " 400x400x90 700x701x64 1001x777x40 333x3333x128",
    "k from 33 to 100": "1023x1025x48 1501x1503x40 2001x2003x50 3001x3003x60 999x5001x36 500x501x40"
    " 6001x301x33 2001x2003x80 1200x1300x90 3333x2222x52 4001x601x56 1777x999x66",
    "drawn at random": "3563x1061x1278"
    " 3543x100x538 3549x2961x355 61x232x5760 42x139x4310 3622x153x135 767x2050x207"
    " 40x68x788 114x1084x23 2756x80x38 51x853x423 283x55x548 516x261x23 4050x2818x769 5869x591x78"
    " 45x687x249 267x5760x2073 875x136x1002 4616x448x1248 1486x40x43 38x929x58 951x441x19 83x126x315"
    " 3200x859x155 224x2579x3281 1005x41x49 3067x188x4917 213x2438x170 3813x1150x265 3913x492x4812"
    " 1242x64x56 2563x41x5309 30x1506x479 225x663x377 893x3102x96 2739x215x43",
    "large C, k from 65 to 260, at random": "3642x1124x91 3861x665x126 2396x1735x212 536x5394x83"
    " 3773x1764x207 3462x1885x86 2011x1483x173 604x4027x254 3487x1903x75 1510x3446x140"
    " 676x5129x70 1617x3130x189 1299x5263x68 5843x670x255 1614x2791x74 2090x584x127",
}
#: On tensor cores: sizes, of 8-bit floats in rows of whole 16 bytes; and the rungs worth trying.
SIZES_OF_TENSOR_CORES = {
    "round numbers": "256 512 640 768 896 1024 1152 1280 1344 1408 1536 1664 1792 1920 2048 2176 2304 2560"
    " 3072 4096 5120 8192",
    "skinny": "256x256x8192 384x384x8192 512x512x4096 1024x1024x4096 1280x1280x5120 2048x512x4096"
    " 4096x8192x2048 8192x128x8192 16x4096x4096",
}
RAGGED = {"e4m3": "264x264x272 776x776x784 1000x1000x1008 2056x2056x2064"}
RAGGED_OF_OTHERS = "257 777 1001 2049 2056"
#: Sizes drawn at random, of 8-bit floats and of others.
DRAWN = {
    "e4m3": (
        "448x448x3520 3200 4128x480x992 624 384x384x2688 1968x1968x912 448x96x416 2736x2736x1248 "
        "1280x1280x384 496 448x448x1472 848 320x320x5056 4544x1216x192 576x2240x576 240x864x816 "
        "2240x2240x2048 544x544x3088 928x2848x3008 2032x368x1424 432x1672x2784 768x2192x352 1168x1168x144 "
        "208x1744x1552 2032x320x2016 448x136x496 2464x376x256 1568x848x2832 848x1696x672 1872x3824x1536"
    )
}
DRAWN_OF_OTHERS = (
    "3736x320x296 824 264x184x2672 1608x1608x1496 2976 128x320x5376 192 1048x1048x2664 "
    "128x960x304 4160x1408x1472 1968x3240x224 1168x2944x696 2776x1528x1056 816x816x1616 "
    "736x5520x440 832x384x4416 4096x256x2880 960x960x384 848 896x512x192 1472x1152x192 "
    "3280x552x272 263 425 1954x534x226 190x1864x845 1072 1184x1184x1000 256x256x512 320x400x1296 "
    "1360x1360x3832 640x640x320 64x576x512 960x3136x4608 264 1280x448x1152 1448x864x440 "
    "568x4184x5816 2624x960x1280 526x468x272 287x1545x2699 951x951x3330 216x216x1392 880x640x568 "
    "176x136x3784 264x424x480 272x280x1056 3984x3984x464 2608x4520x144 2928x1336x280 1776x1776x1288 "
    "1320x2608x4096 4600x4600x384 1216x1216x1456 256x3536x1120 184x536x3400 4568x264x656 632x632x968 "
    "712x1000x4096 1001x777x40 1025x513x100 2001x2003x50 3001x303x61 4001x501x36"
)
_OF_F32 = (
    (
        30_000,
        ("few_rows", "splitk_8x32", "splitk_16x32", "splitk", "splitk_fit", "streamk_fit", "short_k"),
    ),
    (
        120_000,
        (
            *("splitk_8x32", "splitk_16x32", "splitk", "splitk_fit", "streamk_fit", "streamk_small"),
            *("realigned", "realigned_fit", "short_k"),
        ),
    ),
    (
        700_000,
        (
            *("splitk_16x32", "splitk", "splitk_fit", "splitk_tall", "streamk_fit", "streamk_small"),
            *("realigned", "realigned_fit", "short_k"),
        ),
    ),
    (
        5_000_000,
        (
            *("splitk_fit", "splitk_tall", "streamk_fit", "streamk_small", "streamk"),
            *("realigned", "realigned_fit", "packed", "short_k", "bulk_8x16"),
        ),
    ),
    (sys.maxsize, ("streamk", "realigned", "packed", "short_k", "bulk_8x16")),
)
#: Of f64: fewer, most of them where tiles are as few as SMs.
SIZES_OF_F64 = {
    "round numbers": "64 80 96 100 112 128 144 160 176 200 224 240 256 280 300 320 350 384 400 430 448 470"
    " 500 512 576 640 768 896 1000 1024 1100 1152 1280 1536 1700 2048 3000 4096",
    "ragged": "67 131 257 333 411 509 777 1001 2049",
    "skinny": "128x128x4096 100x100x10001 512x512x4096 64x4096x4096 4096x64x4096 4096x4096x64 1000x100x300"
    " 301x1777x97",
    "drawn at random": "55x818x827 278x72x2205"
    " 1496x330x369 479x34x2220 305x43x5935 158x52x2573 45x2766x267 404x138x325"
    " 62x29x3476 79x1299x58 1188x468x1491 44x274x2730 67x2699x3977 195x155x264 172x3895x176"
    " 3855x303x339 401x1102x63 540x413x766 2754x141x654 1542x1278x164",
}
_OF_HALVES = (
    (
        300_000,
        ("wgmma_split", "wgmma_split_below", "wgmma_split_128_4", "wgmma_split_turned", "wgmma_store_64"),
    ),
    (
        1_700_000,
        (
            *("wgmma_store_64", "wgmma_store_64_beside", "wgmma_store_64_below", "wgmma_store_turned_64"),
            *("wgmma_store_fit", "wgmma_store_2x2", "wgmma_store_turned_2x2", "wgmma_store_turned_2x4"),
            *("wgmma_split_below", "wgmma_split_128_2x2", "wgmma_split_128_4", "wgmma_split_turned"),
        ),
    ),
    (
        2_100_000,
        (
            *("wgmma_store_64_beside", "wgmma_store_64_below", "wgmma_store_turned_64"),
            *("wgmma_store_fit", "wgmma_store_192_beside", "wgmma_store_turned_2x2", "wgmma_store_2x2"),
            "wgmma_store_turns",
        ),
    ),
    (
        sys.maxsize,
        (
            *("wgmma_store_fit", "wgmma_store_192_beside", "wgmma_store_256", "wgmma_store_turned"),
            *("wgmma_store_2x2", "wgmma_store_turned_2x2", "wgmma_store_turns"),
        ),
    ),
)
#: By type rungs worth trying, by the most elements of C up to which they are.
CANDIDATES: dict[str, tuple[tuple[int, tuple[str, ...]], ...]] = {
    "f32": _OF_F32,
    "f64": (
        (160_000, ("dmma_split_16x16", "dmma_split_32x32", "dmma_split_32x64", "dmma_split_64x32")),
        (
            1_200_000,
            (
                *("dmma_split_32x32", "dmma_split_32x64", "dmma_split_64x32"),
                *("dmma_split", "dmma_128x64", "dmma"),
            ),
        ),
        (sys.maxsize, ("dmma_split_32x64", "dmma_split_64x32", "dmma_split", "dmma_128x64", "dmma")),
    ),
    "bf16": _OF_HALVES,
    "f16": _OF_HALVES,
    "tf32": (
        (300_000, ("tf32_split", "tf32_64")),
        (2_100_000, ("tf32_64", "tf32_64_beside", "tf32")),
        (sys.maxsize, ("tf32",)),
    ),
    "e4m3": (
        (
            300_000,
            ("e4m3_split", "e4m3_split_turned", "e4m3_split_2x2", "e4m3_64_fit", "e4m3_64_pairs"),
        ),
        (
            2_100_000,
            (
                *("e4m3_64_fit", "e4m3_64_pairs", "e4m3_64_below", "e4m3", "e4m3_turned", "e4m3_turns"),
                *("e4m3_split_turned", "e4m3_split_128_2x2", "e4m3_turned_64", "e4m3_2x2", "e4m3_turned_2x2"),
            ),
        ),
        (sys.maxsize, ("e4m3", "e4m3_192_beside", "e4m3_turned", "e4m3_2x2", "e4m3_turns")),
    ),
}
#: The same where rows are no whole words of 16 bytes.
CANDIDATES_OF_RAGGED = {
    "bf16": ("wgmma_gathered", "wgmma_gathered_short", "wgmma_packed"),
    "f16": ("wgmma_gathered", "wgmma_gathered_short", "wgmma_packed"),
    "tf32": ("short_k", "tf32_gathered", "tf32_packed"),
}
_CHOOSER = "by_size"


@dataclass
class Row:
    """One size on one card.

    Args:
        size: As a user types it.
        vendor_us: Time of cuBLAS.
        rungs: Times of the others, by their labels.
        chosen: What by_size ran.
        wrong: Labels of cases that ended badly.
    """

    size: str
    vendor_us: float = 0.0
    rungs: dict[str, float] = field(default_factory=dict)
    chosen: str = ""
    wrong: list[str] = field(default_factory=list)

    @property
    def best(self) -> str:
        """Label of the fastest rung that has code of its own."""
        return min((name for name in self.rungs if name != _CHOOSER), key=self.rungs.__getitem__)

    def over_vendor(self, label: str) -> float:
        """Speed over that of cuBLAS."""
        return self.vendor_us / self.rungs[label]


def extents_of(size: str) -> tuple[int, int, int]:
    """M, N and K of a size as a user types it."""
    numbers = [int(part) for part in size.split("x")]
    m, n, k = numbers * 3 if len(numbers) == 1 else numbers
    return m, n, k


def runs_of(part: int, parts: int, dtype: str = "f32") -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Rungs and the sizes at which they are tried, for one of several GPUs.

    Sizes are dealt out in the order of their work, so that the parts take about as long.
    """

    def work(size: str) -> int:
        m, n, k = extents_of(size)
        return m * n * k

    others = {
        "ragged": RAGGED.get(dtype, RAGGED_OF_OTHERS),
        "drawn at random": DRAWN.get(dtype, DRAWN_OF_OTHERS),
    }
    tried = {"f32": SIZES, "f64": SIZES_OF_F64}.get(dtype, SIZES_OF_TENSOR_CORES | others)
    sizes = sorted((size for row in tried.values() for size in row.split()), key=work)
    grouped = defaultdict(list)
    for size in sizes[part - 1 :: parts]:
        m, n, k = extents_of(size)
        rungs = next(rungs for most, rungs in CANDIDATES[dtype] if m * n <= most)
        grouped[CANDIDATES_OF_RAGGED.get(dtype, rungs) if n % 8 or k % 8 else rungs].append(size)
    yield from grouped.items()


def measure(
    folder: Path, part: int, parts: int, by_size: bool, device: str, seconds: float, dtype: str
) -> None:
    """Measure one part of all sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = list(runs_of(part, parts, dtype))
    if by_size:
        runs = [((), sorted((size for _, sizes in runs for size in sizes), key=extents_of))]
    for number, (rungs, sizes) in enumerate(runs):
        path = folder / f"gemm-{part}-{number}.json"
        run = gpuprof.profile(
            "gemm",
            kernels=[*rungs, _CHOOSER],
            sizes=[extents_of(size) for size in sizes],
            references=["vendor"],
            dtype=dtype,
            device=device,
            seconds_per_case=seconds,
            lines=False,
            explain=False,
            save=path,
        )
        print(f"{path}: {sum(case.ok for case in run)} of {len(run.cases)} cases ended well", flush=True)


@cache
def _today() -> dict[str, Kernel]:
    kernels = load_ladder(KERNEL_ROOT / "gemm").kernels
    return {name: kernel for kernel in kernels for name in (kernel.id, *kernel.aliases)}


def label_of(case: Measurement) -> str:
    """A kernel's id, with the parameters that are not its header's."""
    kernel = _today().get(case.kernel)
    usual = kernel.parameters if kernel else {}
    others = [f"{name}={value}" for name, value in case.params.items() if usual.get(name, value) != value]
    return ":".join((kernel.id if kernel else case.kernel, *others))


def rows_of(runs: Iterable[Run]) -> dict[str, list[Row]]:
    """A row for each size, by card; kernels that are no more are left out."""
    cards: dict[str, dict[str, Row]] = defaultdict(dict)
    for run in runs:
        for case in run.cases:
            if not case.is_reference and case.kernel not in _today():
                continue
            size = size_label(tuple(case.problem.sizes.values()))
            row = cards[run.devices[case.device].name].setdefault(size, Row(size))
            label = label_of(case)
            if case.timing is None or case.timing.cold is None:
                if case.outcome != "skipped":
                    row.wrong.append(f"{label}: {case.reason or case.timing_reason}")
            elif case.is_reference:
                row.vendor_us = case.timing.cold.median_us
            else:
                row.rungs[label] = case.timing.cold.median_us
                if label == _CHOOSER:
                    row.chosen = case.chosen
    return {card: list(rows.values()) for card, rows in cards.items()}


def summary(rows: list[Row], what: str, shares: list[float]) -> str:
    """One line on how a column stands."""
    low = min(range(len(rows)), key=shares.__getitem__)
    above = sum(share >= 1 for share in shares)
    return (
        f"{what}: geometric mean {statistics.geometric_mean(shares):.3f},"
        f" {above} of {len(rows)} at or above 1.00, least {shares[low]:.3f} at {rows[low].size}."
    )


def read_all(places: Iterable[Path]) -> dict[str, list[Row]]:
    """The rows of every file, results or a table as `data` prints it, by card: the last time of a case."""
    files = [
        file for place in places for file in (sorted(place.glob("*.json")) if place.is_dir() else [place])
    ]
    cards: dict[str, dict[str, Row]] = defaultdict(dict)
    for file in files:
        found = _rows_of_table(file) if file.suffix == ".csv" else rows_of([read_run(file)])
        for card, rows in found.items():
            for row in rows:
                held = cards[card].setdefault(row.size, Row(row.size))
                later = row.vendor_us / held.vendor_us if row.vendor_us and held.vendor_us else 1
                held.rungs = {label: later * us for label, us in held.rungs.items()} | row.rungs
                held.vendor_us, held.chosen = row.vendor_us or held.vendor_us, row.chosen or held.chosen
                held.wrong += row.wrong
    return {
        card: sorted(rows.values(), key=lambda row: extents_of(row.size))
        for card, rows in sorted(cards.items())
    }


def _rows_of_table(path: Path) -> dict[str, list[Row]]:
    cards: dict[str, dict[str, Row]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = cards[line["card"]].setdefault(line["size"], Row(line["size"], float(line["cublas_us"])))
            row.rungs[line["kernel"]] = row.vendor_us / float(line["over_cublas"])
            row.chosen = row.chosen or line["takes"]
    return {card: list(rows.values()) for card, rows in cards.items()}


def page(places: Iterable[Path]) -> str:
    """How the best rung and by_size stand, as Markdown, a section for each card."""
    lines: list[str] = []
    for card, found in read_all(places).items():
        chosen = [row for row in found if row.vendor_us and _CHOOSER in row.rungs]
        rows = [row for row in chosen if len(row.rungs) > 1]
        lines += [f"## {card}", ""]
        if rows:
            lines += [summary(rows, "Best rung", [row.over_vendor(row.best) for row in rows]), ""]
        lines += [summary(chosen, "`by_size`", [row.over_vendor(_CHOOSER) for row in chosen]), ""]
        lines += [f"- {row.size}: {what}" for row in found for what in row.wrong]
    return "\n".join(lines)


def data(places: Iterable[Path]) -> Iterator[tuple[str, ...]]:
    """Every kernel at every size beside cuBLAS, by_size first, then by speed."""
    yield ("card", "size", "cublas_us", "kernel", "takes", "over_cublas")
    for card, found in read_all(places).items():
        for row in found:
            if row.vendor_us:
                rungs = sorted(row.rungs, key=lambda label: (label != _CHOOSER, row.rungs[label]))
                for label in rungs:
                    takes = row.chosen if label == _CHOOSER else ""
                    over = f"{row.over_vendor(label):.3f}"
                    yield card, row.size, f"{row.vendor_us:.1f}", label, takes, over


def part_of(text: str) -> tuple[int, int]:
    """The numbers of `I/N`."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part such as 1/2")
    return int(part), int(parts)


def main() -> None:
    """Measure, or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="time all sizes on a GPU")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("--part", type=part_of, default=(1, 1), metavar="I/N")
    measuring.add_argument("--by-size", action="store_true", help="no other rungs")
    measuring.add_argument("--device", default="0")
    measuring.add_argument("--dtype", choices=CANDIDATES, default="f32")
    measuring.add_argument("--seconds", type=float, default=0.05, help="kernel time a case")
    for name, what in (("page", "print a summary"), ("data", "print every size as CSV")):
        commands.add_parser(name, help=what).add_argument("places", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "measure":
        measure(
            *(options.folder, *options.part, options.by_size),
            *(options.device, options.seconds, options.dtype),
        )
    elif options.command == "page":
        print(page(options.places))
    else:
        csv.writer(sys.stdout, lineterminator="\n").writerows(data(options.places))


if __name__ == "__main__":
    main()
