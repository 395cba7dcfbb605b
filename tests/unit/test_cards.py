# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bundled cards against the figures that their makers publish."""

import tomllib
from importlib import resources

import pytest
from each import each

from gpuprof.devices.cards import card_names, cards, device_for_arch, load_card
from gpuprof.errors import InputError
from gpuprof.report.device_facts import device_facts

DOCUMENT = tomllib.loads(resources.files("gpuprof.devices").joinpath("cards.toml").read_text("utf-8"))
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")

#: Short name: published memory bandwidth in GB/s and published FP32 rate of the CUDA cores in TFLOP/s.
PUBLISHED = {
    "h200": (4800, 67),
    "h100-sxm": (3350, 67),
    "h100-pcie": (2039, 51),
    "b200": (7700, 75),
    "a100-80gb": (2039, 19.5),
    "a100-40gb": (1555, 19.5),
    "l4": (300, 30.3),
    "l40s": (864, 91.6),
    "t4": (320, 8.1),
    "a10": (600, 31.2),
    "a40": (696, 37.4),
    "rtx-a6000": (768, 38.7),
    "rtx6000-ada": (960, 91.1),
    "rtx2080ti": (616, 13.4),
    "rtx3070": (448, 20.3),
    "rtx3080": (760, 29.8),
    "rtx3090": (936, 35.6),
    "rtx4070": (504, 29.1),
    "rtx4080": (716.8, 48.7),
    "rtx4090": (1008, 82.6),
    "rtx5070": (672, 30.9),
    "rtx5080": (960, 56.3),
    "rtx5090": (1792, 104.8),
    "jetson-agx-orin": (204.8, 5.3),
}


def test_every_card_has_published_figures():
    assert {*PUBLISHED, "b300"} == set(card_names())
    assert len(cards()) == len(card_names())


@each(name=PUBLISHED)
def test_peaks_are_the_published_ones(name):
    device = load_card(name)
    bandwidth_gbps, fp32_tflops = PUBLISHED[name]
    tolerance = 0.025 if name == "h200" else 0.01
    assert device.peak_bandwidth_gbps == pytest.approx(bandwidth_gbps, rel=tolerance)
    assert device.peak_fp32_gflops == pytest.approx(fp32_tflops * 1e3, rel=0.015)
    assert device.peak_fp64_gflops > 0
    assert device.source == "table"
    assert device.measured_copy_bandwidth_gbps is None


def test_h200_is_what_a_driver_reports():
    device = load_card("h200")
    facts = dict(device_facts(device))
    assert facts["Measured copy bandwidth"] == "not measured: there was no GPU to copy on"
    assert device.name == "NVIDIA H200"
    assert (device.sm_count, device.sm_clock_mhz) == (132, 1980)
    assert (device.memory_clock_mhz, device.memory_bus_width_bits) == (3201, 6016)
    assert device.peak_bandwidth_gbps == pytest.approx(4814.3, abs=0.1)
    assert device.peak_fp32_gflops == pytest.approx(66_908.2, abs=0.1)
    assert device.peak_fp64_gflops == pytest.approx(33_454.1, abs=0.1)
    assert device.max_grid == (2**31 - 1, 65535, 65535)


#: Threads, blocks and KiB of shared memory per SM, KiB of shared memory per block.
LIMITS = {
    "sm_75": (1024, 16, 64, 64),
    "sm_80": (2048, 32, 164, 163),
    "sm_86": (1536, 16, 100, 99),
    "sm_87": (1536, 16, 164, 163),
    "sm_89": (1536, 24, 100, 99),
    "sm_90": (2048, 32, 228, 227),
    "sm_100": (2048, 32, 228, 227),
    "sm_103": (2048, 32, 228, 227),
    "sm_120": (1536, 24, 100, 99),
}


@each(arch=ARCHITECTURES)
def test_an_architecture_has_a_representative_with_its_limits(arch):
    device = device_for_arch(arch)
    assert device.arch == arch
    assert LIMITS[arch] == (
        device.max_threads_per_sm,
        device.max_blocks_per_sm,
        device.shared_bytes_per_sm / 1024,
        device.shared_bytes_per_block_optin / 1024,
    )
    assert device.registers_per_sm == device.registers_per_block == 65536
    assert device.reserved_shared_bytes_per_block == (0 if arch == "sm_75" else 1024)


def test_cards_have_several_spellings():
    for spelling, name in {
        "h200": "h200",
        "H200 SXM": "h200",
        "h100": "h100-sxm",
        "H100 PCIe": "h100-pcie",
        "a100": "a100-80gb",
        "A100 40GB": "a100-40gb",
        "rtx4090": "rtx4090",
        "RTX 4090": "rtx4090",
        "GeForce RTX 4090": "rtx4090",
        "4090": "rtx4090",
        "RTX 6000 Ada": "rtx6000-ada",
        "Tesla T4": "t4",
        "Orin": "jetson-agx-orin",
    }.items():
        assert load_card(spelling) is load_card(name)


def test_no_two_cards_share_a_spelling():
    spellings = [
        spelling
        for name, card in DOCUMENT["cards"].items()
        for spelling in {name, card["name"], *card["aliases"]}
    ]
    owners: dict[str, set[str]] = {}
    for spelling in spellings:
        plain = "".join(character for character in spelling.lower() if character.isalnum())
        owners.setdefault(plain, set()).add(load_card(spelling).name)
    assert all(len(names) == 1 for names in owners.values())
    assert all(load_card(name.upper()) is load_card(name) for name in card_names())
    for name, card in DOCUMENT["cards"].items():
        assert all(load_card(spelling) is load_card(name) for spelling in (card["name"], *card["aliases"]))


def test_unknown_card_names_the_nearest_and_one_like_no_other_lists_all():
    with pytest.raises(InputError, match="rtx4091") as caught:
        load_card("rtx4091")
    assert "rtx4090" in caught.value.fix
    for name in ("", "zzzzzzzzzz"):
        with pytest.raises(InputError) as caught:
            load_card(name)
        assert all(known in caught.value.fix for known in card_names())
