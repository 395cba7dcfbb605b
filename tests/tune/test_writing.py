# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a search found, put into headers: values, variants and choosers, read back as they were meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpuprof.devices.cards import load_card
from gpuprof.errors import InputError
from gpuprof.kernels.catalog import (
    KERNEL_ROOT,
    shipped_ladder,
    shipped_names,
    shipped_operation,
)
from gpuprof.kernels.choose import choose
from gpuprof.kernels.header import KernelFile, read_kernels
from gpuprof.problems.problem import Problem
from gpuprof.tuning.chooser import ChooserPart, Chosen, chooser_text, with_choices
from gpuprof.tuning.rewriting import Variant, with_defaults, with_variants
from gpuprof.tuning.size_rules import Sample, rules_of
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


def read(text: str) -> KernelFile:
    return read_kernels(text, Path("mine.cu"), shipped_operation)


def point(block=(32, 8, 1), **params) -> Point:
    return Point("mine", tuple(params.items()), block)


def test_defaults_change_in_place_and_nothing_else_does():
    (kernel,) = read(TILES).kernels
    text = with_defaults(TILES, kernel, point((32, 16, 1), TILE=64, UNROLL=1, MODE=-2), read)
    assert text == TILES.replace("TILE = 32         #", "TILE = 64         #").replace(
        "block = [32, 8]   #", "block = [32, 16]   #"
    )


def test_what_a_header_says_already_is_left_alone():
    (kernel,) = read(TILES).kernels
    assert with_defaults(TILES, kernel, point(TILE=32, UNROLL=1, MODE=-2), read) == TILES


def test_negative_values_are_replaced_whole():
    (kernel,) = read(TILES).kernels
    text = with_defaults(TILES, kernel, point(TILE=32, UNROLL=1, MODE=3), read)
    assert "MODE=3\n" in text


def test_a_field_that_cannot_be_followed_is_refused_and_named():
    (kernel,) = read(TILES).kernels
    with pytest.raises(InputError, match="UNROLL in a way that cannot be edited"):
        with_defaults(TILES, kernel, point(TILE=32, UNROLL=4, MODE=-2), read)


def test_inline_parameters():
    text = TILES.replace('[parameters]\nTILE = 32         # edge of a tile\n"UNROLL" = 1\nMODE=-2\n', "")
    text = text.replace("[launch]", "parameters = { TILE = 32, UNROLL = 1, MODE = -2 }\n[launch]")
    (kernel,) = read(text).kernels
    found = with_defaults(text, kernel, point(TILE=64, UNROLL=2, MODE=5), read)
    assert "parameters = { TILE = 64, UNROLL = 2, MODE = 5 }" in found


def test_every_shipped_header_takes_other_defaults_and_keeps_the_rest():
    changed = 0
    for name in shipped_names():
        for path in sorted((KERNEL_ROOT / name).glob("*.cu")):
            source = path.read_text(encoding="utf-8")

            def again(text: str, path: Path = path) -> KernelFile:
                return read_kernels(text, path, shipped_operation)

            for kernel in again(source).kernels:
                # Only the value matters here, not whether the kernel could run with it.
                wanted = tuple((key, value + 1) for key, value in kernel.parameters.items())
                if not wanted or kernel.launches:
                    continue
                text = with_defaults(source, kernel, Point(kernel.id, wanted, kernel.launch.block), again)
                found = next(one for one in again(text).kernels if one.id == kernel.id)
                assert dict(found.parameters) == dict(wanted)
                changed += 1
    assert changed > 20


def test_variants_keep_the_kernel_itself_and_its_aliases():
    (kernel,) = read(TILES).kernels
    wide = Variant("mine_tile64", point((32, 16, 1), TILE=64, UNROLL=1, MODE=-2))
    text = with_variants(TILES, kernel, [wide], read)
    first, second = read(text).kernels
    assert replace(first, source=TILES) == kernel
    assert (second.id, dict(second.parameters), second.launch.block) == (
        "mine_tile64",
        {"TILE": 64, "UNROLL": 1, "MODE": -2},
        (32, 16, 1),
    )
    assert text.endswith(TILES.partition("*/")[2])


def test_a_second_time_variants_are_added_behind_the_first():
    (kernel,) = read(TILES).kernels
    text = with_variants(TILES, kernel, [Variant("one", point(TILE=64, UNROLL=1, MODE=-2))], read)
    again = with_variants(text, kernel, [Variant("two", point(TILE=32, UNROLL=1, MODE=7))], read)
    assert [each.id for each in read(again).kernels] == ["mine", "one", "two"]


def test_defaults_of_one_variant_leave_the_other_alone():
    (kernel,) = read(TILES).kernels
    text = with_variants(TILES, kernel, [Variant("one", point(TILE=64, UNROLL=1, MODE=-2))], read)
    one = read(text).kernels[1]
    found = with_defaults(
        text, one, Point("one", (("TILE", 96), ("UNROLL", 1), ("MODE", 4)), (32, 8, 1)), read
    )
    first, second = read(found).kernels
    assert dict(first.parameters) == {"TILE": 32, "UNROLL": 1, "MODE": -2}
    assert dict(second.parameters) == {"TILE": 96, "UNROLL": 1, "MODE": 4}


def test_rules_name_one_of_the_best_at_every_size():
    best = {64: ("small",), 100: ("small",), 512: ("wide", "small"), 1000: ("wide",), 4096: ("wide",)}
    samples = [Sample({"nx": size, "ny": size}, tied) for size, tied in best.items()]
    rules = rules_of(samples)
    assert [(rule.target, rule.conditions) for rule in rules] == [
        ("small", ("nx * ny <= 51200",)),
        ("wide", ()),
    ]


def test_rules_tell_skinny_from_square():
    best = {(64, 4096): "down", (4096, 64): "along", (512, 512): "square", (4096, 4096): "square"}
    samples = [Sample({"nx": nx, "ny": ny}, (name,)) for (nx, ny), name in best.items()]
    for (nx, ny), name in best.items():
        assert _first_that_holds(rules_of(samples), {"nx": nx, "ny": ny}) == name


def _first_that_holds(rules, sizes):
    from gpuprof.problems.formulas import evaluate

    return next(rule.target for rule in rules if all(evaluate(text, sizes) for text in rule.conditions))


def test_a_chooser_picks_what_was_best_and_only_what_can_run():
    (kernel,) = read(TILES).kernels
    (wide,) = read_kernels(TILES, Path("wide.cu"), shipped_operation).kernels
    wide = replace(wide, parameters={**wide.parameters, "TILE": 64}, aliases=())
    rules = rules_of([Sample({"nx": 128, "ny": 128}, ("mine",)), Sample({"nx": 4096, "ny": 4096}, ("wide",))])
    chosen = {each.id: Chosen(each.id, each, each.parameters, each.launch.block) for each in (kernel, wide)}
    text = chooser_text([ChooserPart("NVIDIA H200", "", rules)], chosen, ("nx", "ny"), [*chosen.values()])
    (made,) = read_kernels(text, Path("mine_by_size.cu"), shipped_operation).kernels
    device = load_card("h200")

    def picked(nx: int, ny: int) -> str:
        problem = Problem.of(shipped_operation("transpose"), (nx, ny), "f32", {}, {})
        return choose(made, (kernel, wide), problem, device).id

    assert picked(128, 128) == "mine"
    assert picked(4096, 4096) == "wide"
    # No whole number of wide tiles: the other one takes rows of any length.
    assert picked(4095, 4096) == "mine"


def test_rows_that_a_kernel_cannot_take_are_told_from_larger_ones():
    best = {1000: "wide", 1001: "mine", 4000: "wide", 4001: "mine", 4003: "mine"}
    samples = [Sample({"nx": size, "ny": size}, (name,)) for size, name in best.items()]
    rules = rules_of(samples, ["nx % 4 == 0"])
    assert [(rule.target, rule.conditions) for rule in rules] == [("wide", ("nx % 4 == 0",)), ("mine", ())]


def test_of_several_limits_only_the_narrowest_is_said():
    names = {64: "a", 128: "b", 256: "c", 512: "a", 1024: "b"}
    rules = rules_of([Sample({"n": size}, (name,)) for size, name in names.items()])
    assert all(len(rule.conditions) <= 1 for rule in rules)
    for size, name in names.items():
        assert _first_that_holds(rules, {"n": size}) == name


def test_each_kind_of_device_has_rules_of_its_own():
    two = TILES.replace('aliases = ["tiles"]\n', "").replace(
        "\n*/", '\n[[variants]]\nid = "one"\n[[variants]]\nid = "two"\nparameters = { TILE = 64 }\n*/'
    )
    kernels = read(two).kernels
    chosen = {each.id: Chosen(each.id, each, each.parameters, each.launch.block) for each in kernels}
    small, large = {"nx": 128, "ny": 128}, {"nx": 4096, "ny": 4096}
    both = rules_of([Sample(small, ("one",)), Sample(large, ("two",))])
    alone = rules_of([Sample(small, ("one",)), Sample(large, ("one",))])
    parts = [
        ChooserPart("NVIDIA H200", "arch == 90 and sm_count == 132", both),
        ChooserPart("RTX 4090", "", alone),
    ]
    text = chooser_text(parts, chosen, ("nx", "ny"))
    (made,) = read_kernels(text, Path("by_size.cu"), shipped_operation).kernels

    def picked(card: str, edge: int) -> str:
        problem = Problem.of(shipped_operation("transpose"), (edge, edge), "f32", {}, {})
        return choose(made, kernels, problem, load_card(card)).id

    assert [picked("h200", edge) for edge in (128, 4096, 4097)] == ["one", "two", "one"]
    assert [picked("rtx4090", edge) for edge in (128, 4096)] == ["one", "one"]


def test_choices_are_made_anew_and_what_stands_above_them_stays():
    path = KERNEL_ROOT / "gemm" / "by_size.cu"
    source = path.read_text(encoding="utf-8")
    kernels = {each.id: each for each in shipped_ladder("gemm").kernels}
    chosen = {
        name: Chosen(name, kernels[name], kernels[name].parameters, kernels[name].launch.block)
        for name in ("splitk_8x32", "streamk", "reg_8x8", "reg_8x16_async")
    }
    rules = rules_of(
        [
            Sample({"M": 64, "N": 64, "K": 64}, ("splitk_8x32",)),
            Sample({"M": 4096, "N": 4096, "K": 4096}, ("streamk",)),
        ]
    )
    parts = [ChooserPart("NVIDIA H200", "", rules)]
    text = with_choices(source, parts, chosen, ("M", "N", "K"), [*chosen.values()])
    assert text.startswith(source[: source.index("[[choose]]")])
    (made,) = read_kernels(text, path, shipped_operation).kernels
    (before,) = read_kernels(source, path, shipped_operation).kernels
    assert replace(made, source="", choices=()) == replace(before, source="", choices=())
    picks = [choice.kernel for choice in made.choices]
    # reg_8x16_async takes nothing that splitk_8x32 does not; reg_8x8 takes what is left, and ends the list.
    assert picks == ["splitk_8x32", "streamk", "splitk_8x32", "reg_8x8"]
    assert made.choices[-1].when == "1"
    with pytest.raises(InputError, match="are not the last ones"):
        with_choices(source.replace("*/", "[moves]\n*/"), parts, chosen, ("M", "N", "K"))


def test_variants_of_a_file_that_has_some_differ_from_the_file_not_from_each_other():
    path = KERNEL_ROOT / "gemm" / "splitk.cu"
    source = path.read_text(encoding="utf-8")
    before = read_kernels(source, path, shipped_operation).kernels
    kernel = next(each for each in before if each.id == "splitk")
    params = {**kernel.parameters, "TM": 2, "TN": 8, "BK": 64, "STAGES": 2}
    new = Variant("wide", Point(kernel.id, tuple(params.items()), (64, 1, 1)))
    text = with_variants(source, kernel, [new], lambda text: read_kernels(text, path, shipped_operation))
    *others, made = read_kernels(text, path, shipped_operation).kernels
    assert [replace(each, source=source) for each in others] == list(before)
    assert (made.id, dict(made.parameters), made.launch.block) == ("wide", params, (64, 1, 1))
    # What is told of the variant that it came from is not told of it.
    assert (made.moves, made.after) == ({}, "")
