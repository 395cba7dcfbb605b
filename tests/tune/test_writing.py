# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search found: said in sentences, and put into a header as its defaults."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from synthetic_runs import Gemm, gemm_case, record, run

from gpuprof.commands.tune import best_everywhere, with_defaults
from gpuprof.comparison.tuned import TunedRow, TunedSize, answer_sentence, tie_sentence
from gpuprof.devices.cards import load_card
from gpuprof.errors import InputError
from gpuprof.kernels.header import read_kernels
from gpuprof.kernels.kernel import Ladder
from gpuprof.kernels.shipped import KERNEL_ROOT, shipped_names
from gpuprof.records import replace
from gpuprof.results import Model, ProblemRecord, Run, Tuned, Tuning
from gpuprof.tuning.space import Point

TILES = """// mine
/*gpuprof
title = "Tiles"
operation = "transpose"
arguments = ["nx", "ny", "in", "out"]
aliases = ["tiles"]

[launch]
block = [32, 8]   # threads
any_block = true
grid = ["cdiv(nx, TILE)", "cdiv(ny, TILE)"]

[parameters]
TILE = 32         # edge of a tile
"UNROLL" = 1
MODE=-2

[candidates]
TILE = [32, 64]
block = [[32, 8], [32, 16]]

[[require]]
condition = "nx % TILE == 0 or TILE == 32"
because = "{id} takes whole tiles"
*/
extern "C" __global__ void mine(int nx, int ny, const real *in, real *out) { /* TILE UNROLL MODE */ }
"""


def read(text: str) -> Ladder:
    return read_kernels(text, Path("mine.cu"))


def point(block=(32, 8, 1), **params) -> Point:
    return Point("mine", tuple(params.items()), block)


def test_defaults_change_in_place_and_nothing_else_does():
    (kernel,) = read(TILES).kernels
    text = with_defaults(TILES, kernel, point((32, 16, 1), TILE=64, UNROLL=1, MODE=-2), read)
    assert text == TILES.replace("TILE = 32         #", "TILE = 64         #").replace(
        "block = [32, 8]   #", "block = [32, 16]   #"
    )


def test_a_field_that_cannot_be_followed_is_refused_and_named():
    (kernel,) = read(TILES).kernels
    with pytest.raises(InputError, match="UNROLL in a way that cannot be edited"):
        with_defaults(TILES, kernel, point(TILE=32, UNROLL=4, MODE=-2), read)


@pytest.mark.deep
def test_every_shipped_header_takes_other_defaults_and_keeps_the_rest():
    changed = 0
    for name in shipped_names():
        for path in sorted((KERNEL_ROOT / name).glob("*.cu")):
            source = path.read_text(encoding="utf-8")

            def again(text: str, path: Path = path) -> Ladder:
                return read_kernels(text, path)

            for kernel in again(source).kernels:
                # Only the value matters here, not whether the kernel could run with it.
                wanted = tuple((key, value + 1) for key, value in kernel.parameters.items())
                if not wanted or not all(map(str.isdecimal, kernel.launches[0].block)):
                    continue
                text = with_defaults(source, kernel, Point(kernel.id, wanted, kernel.block), again)
                found = next(one for one in again(text).kernels if one.id == kernel.id)
                assert dict(found.parameters) == dict(wanted)
                changed += 1
    assert changed > 20


def test_defaults_of_one_variant_leave_the_other_alone():
    variants = '[[variants]]\nid = "mine"\n[[variants]]\nid = "one"\nparameters = { TILE = 64 }\n*/\nextern'
    text = TILES.replace('aliases = ["tiles"]\n', "").replace("*/\nextern", variants)
    one = read(text).kernels[1]
    found = with_defaults(
        text, one, Point("one", (("TILE", 96), ("UNROLL", 1), ("MODE", 4)), (32, 8, 1)), read
    )
    first, second = read(found).kernels
    assert dict(first.parameters) == {"TILE": 32, "UNROLL": 1, "MODE": -2}
    assert dict(second.parameters) == {"TILE": 96, "UNROLL": 1, "MODE": 4}


def searched(times: dict[tuple[str, int], dict[int, float]], tied: dict[tuple[str, int], list[int]]) -> Run:
    """A search of TILES on some cards at some sizes: the time of each TILE, and which of them are tied."""
    cards = list(dict.fromkeys(card for card, _ in times))
    cases, sizes = [], []
    for (card, edge), held in times.items():
        for tile, time_us in held.items():
            case = gemm_case("mine", Gemm(edge, edge, edge), time_us, (32, 8, 1))
            values = {"TILE": tile, "UNROLL": 1, "MODE": -2}
            cases.append(replace(case, params=values, device=cards.index(card)))
        points = tuple(point(TILE=tile, UNROLL=1, MODE=-2).record() for tile in tied[card, edge])
        problem = cases[-1].problem
        sizes.append(Tuned(problem, 2, {}, 0, "time", len(held), points, (), cards.index(card)))
    made = run("gpu", [record("mine", "gemm", 1)], cases)
    devices = tuple(map(load_card, cards))
    return replace(made, devices=devices, tuning=Tuning({}, {}, 20, tuple(sizes)))


def best(times, tied):
    (kernel,) = read(TILES).kernels
    found, behind = best_everywhere(searched(times, tied), {"mine": kernel})
    return found and dict(found.params)["TILE"], {size: round(share, 2) for size, share in behind.items()}


def test_the_point_that_is_tied_everywhere_is_written_and_the_headers_own_before_others():
    times = {("h200", 128): {64: 2.0, 32: 2.01}, ("h200", 4096): {64: 20.0, 32: 20.1}}
    assert best(times, {place: [64, 32] for place in times}) == (32, {})
    assert best(times, {("h200", 128): [64, 32], ("h200", 4096): [64]}) == (64, {})


def test_where_sizes_or_cards_differ_the_least_loss_decides_and_each_loss_is_told():
    times = {("h200", 128): {64: 2.2, 32: 2.0, 16: 1.0}, ("h200", 4096): {64: 20.0, 32: 30.0}}
    # What was measured at one size only cannot be best everywhere.
    assert best(times, {("h200", 128): [16], ("h200", 4096): [64]}) == (64, {"128": 1.2})
    cards = {("h200", 128): {64: 2.0, 32: 2.2}, ("rtx4090", 128): {64: 3.0, 32: 2.0}}
    found = best(cards, {("h200", 128): [64], ("rtx4090", 128): [32]})
    assert found == (32, {"128 on NVIDIA H200": 0.1})


def test_where_nothing_was_right_nothing_is_best():
    assert best({("h200", 128): {64: 2.0}}, {("h200", 128): []}) == (None, {})


PROBLEM = ProblemRecord("scale", {"n": 4096}, "f32", {}, {}, 1, 1)


def row(value_us: float | None, each: int, *, tied: bool = False, default: bool = False) -> TunedRow:
    model = Model(value_us, 0.85 * value_us, 1.3 * value_us) if value_us else None
    case = SimpleNamespace(kernel="scale", model=model)
    return TunedRow(case, {"EACH": str(each)}, value_us, tied, default)


def size(*rows: TunedRow, by: str = "time", wrong: int = 0, **what) -> TunedSize:
    told = {"combinations": len(rows), "ruled_out": {}, "uncompiled": 0, "evaluated": len(rows), **what}
    tuned = Tuned(PROBLEM, by=by, **told)
    wrongs = tuple(row(None, number) for number in range(wrong))
    return TunedSize("4096", by, rows, wrongs, tuned=tuned)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (size(row(20, 4, tied=True)), "best is EACH=4, 20.0 µs"),
        (size(row(20, 1, tied=True, default=True)), "EACH=1, 20.0 µs: the default values"),
        (size(row(20, 4, tied=True), row(20.1, 1, tied=True, default=True)), "default values are as good"),
        (size(row(20, 4, tied=True), row(40, 1, default=True)), "default values: 40.0 µs, 2.00× as long"),
        (
            size(row(20, 4, tied=True), row(40, 1, default=True), by="bound"),
            "with a bound of 20.0 µs; the default values: 40.0 µs, 2.00× as high a bound",
        ),
        (
            size(row(20, 4, tied=True), row(40, 1, default=True), by="model"),
            "20 µs modelled (17–26 µs); the default values: 40 µs modelled (34–52 µs), 2.00× as",
        ),
        (
            size(row(20, 4, tied=True), row(22, 1, tied=True, default=True), by="model"),
            "default values, 22 µs modelled (19–29 µs), are too near to tell",
        ),
        (size(wrong=3, combinations=3, evaluated=3, by="model"), "3 of 3 points that were executed failed"),
        (size(combinations=2, ruled_out={"It is large.": 2}), "no combination can run"),
        (size(combinations=2), "nothing was timed"),
    ],
)
def test_the_answer(found, said):
    assert said in answer_sentence(found)


def test_the_headers_own_values_are_told_of_once():
    own, others = row(22, 1, tied=True, default=True), [row(us, us, tied=True) for us in (20, 23, 24)]
    of_three = size(others[0], own, *others[1:], by="model")
    assert tie_sentence(of_three) == "2 more too near to tell which is faster: EACH=23 and EACH=24"
    assert tie_sentence(size(others[0], own)) == ""
