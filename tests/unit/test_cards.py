# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""The bundled cards against their makers' figures, and occupancy and rates that follow from them."""

import tomllib
from importlib import resources

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpuprof.devices.cards import card_names, cards, device_for_arch, load_card
from gpuprof.devices.device import Device
from gpuprof.devices.occupancy import TheoreticalOccupancy, theoretical_occupancy
from gpuprof.errors import CaseFailure, InputError
from gpuprof.report.device_facts import device_facts

DOCUMENT = tomllib.loads(resources.files("gpuprof.devices").joinpath("cards.toml").read_text("utf-8"))

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


@each(arch=LIMITS)
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
    reserved = device.reserved_shared_bytes_per_block
    assert device.shared_bytes_per_sm == device.shared_bytes_per_block_optin + reserved


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
    for name, card in DOCUMENT["cards"].items():
        spellings = (name.upper(), card["name"], *card["aliases"])
        assert all(load_card(spelling) is load_card(name) for spelling in spellings)


def test_unknown_card_names_the_nearest_and_one_like_no_other_lists_all():
    with pytest.raises(InputError, match="rtx4091") as caught:
        load_card("rtx4091")
    assert "rtx4090" in caught.value.fix
    for name in ("", "zzzzzzzzzz"):
        with pytest.raises(InputError) as caught:
            load_card(name)
        assert all(known in caught.value.fix for known in card_names())


def occupancy(device: Device, threads: int, registers: int, shared: int) -> TheoreticalOccupancy:
    return theoretical_occupancy(
        device,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes_per_block=shared,
    )


# Worked out by hand from the rules; arch, threads, registers, shared bytes, blocks per SM, percent, limiter.
KNOWN = [
    ("sm_86", 1024, 24, 0, 1, 200 / 3, "threads"),
    ("sm_86", 512, 41, 0, 2, 200 / 3, "registers"),
    ("sm_86", 64, 16, 0, 16, 200 / 3, "blocks"),
    ("sm_90", 1024, 32, 0, 2, 100, "registers and threads"),
    # 24 registers would do for 84 warps, yet not for a third block of 32.
    ("sm_90", 1024, 24, 0, 2, 100, "registers and threads"),
    ("sm_90", 32, 255, 0, 8, 12.5, "registers"),
    ("sm_90", 64, 32, 0, 32, 100, "registers and threads and blocks"),
    ("sm_90", 33, 16, 0, 32, 100, "threads and blocks"),
    # 48 KiB and the reserved KiB: four blocks make 196 of 228 KiB.
    ("sm_90", 256, 32, 49152, 4, 50, "shared memory"),
    # 227 KiB less one byte rounds up to the whole; 113 KiB and the reserved one fill half of it exactly.
    ("sm_90", 256, 32, 115712, 2, 25, "shared memory"),
    ("sm_90", 256, 32, 115713, 1, 12.5, "shared memory"),
    # 40 registers make 1280 per warp: 12 warps fit a sub-partition, 48 an SM, 4.8 blocks of ten warps.
    ("sm_90", 320, 40, 0, 4, 62.5, "registers"),
    # 80 registers make 2560 per warp: 6 warps per sub-partition (not 6.4), so 24 of 25.6 per SM.
    ("sm_90", 160, 80, 0, 4, 31.25, "registers"),
    ("sm_80", 256, 32, 32768, 4, 50, "shared memory"),
    ("sm_87", 256, 32, 32768, 4, 200 / 3, "shared memory"),
    ("sm_89", 256, 40, 16384, 5, 500 / 6, "shared memory"),
    ("sm_75", 1024, 0, 0, 1, 100, "threads"),
    # Nothing is reserved before 8.0, and the unit is 256 bytes.
    ("sm_75", 32, 16, 4096, 16, 50, "shared memory and blocks"),
    ("sm_75", 32, 16, 4097, 15, 15 / 32 * 100, "shared memory"),
    ("sm_100", 128, 64, 0, 8, 50, "registers"),
    ("sm_103", 128, 64, 0, 8, 50, "registers"),
    ("sm_120", 128, 32, 8192, 11, 1100 / 12, "shared memory"),
]


@each(known=KNOWN)
def test_known_launches(known):
    arch, threads, registers, shared, blocks, percent, limiter = known
    result = occupancy(device_for_arch(arch), threads, registers, shared)
    assert result.blocks_per_sm == blocks
    assert result.theoretical_pct == pytest.approx(percent, rel=1e-12)
    assert result.limiter == limiter


@each(
    needed=[
        ("sm_90", 1024, 32, 232449, ["232,449 + 1,024 reserved bytes"]),
        ("sm_75", 256, 32, 65537, ["65,537 bytes", "an SM has 65,536"]),
        ("sm_90", 1024, 65, 0, ["registers: 65 a thread", "28 warps / 32 a block"]),
        # 25 warps of 80 registers need 64000 of 65536, yet each part of an SM holds 6 of them.
        ("sm_90", 800, 80, 0, ["24 warps / 25 a block"]),
    ]
)
def test_a_block_that_never_fits_says_what_it_needs(needed):
    arch, threads, registers, shared, words = needed
    with pytest.raises(CaseFailure) as caught:
        occupancy(device_for_arch(arch), threads, registers, shared)
    assert caught.value.over_limit
    assert not caught.value.fatal
    assert all(word in str(caught.value) for word in words), str(caught.value)


DEVICES = st.sampled_from(cards())
THREADS = st.integers(1, 1024)
REGISTERS = st.integers(0, 255)
SHARED = st.integers(0, 232448)


def blocks_or_zero(device, threads, registers, shared):
    try:
        return occupancy(device, threads, registers, shared).blocks_per_sm
    except CaseFailure:
        return 0


@given(DEVICES, THREADS, REGISTERS, SHARED)
def test_resident_blocks_fit_the_sm(device, threads, registers, shared):
    blocks = blocks_or_zero(device, threads, registers, shared)
    warps = -(-threads // 32)
    assert blocks <= device.max_blocks_per_sm
    assert blocks * warps * 32 <= device.max_threads_per_sm
    assert blocks * warps * 32 * registers <= device.registers_per_sm
    assert blocks * (shared + device.reserved_shared_bytes_per_block) <= device.shared_bytes_per_sm


@pytest.mark.parametrize(
    ("source", "published_tflops"), [("f16", 312), ("tf32", 156), ("f64", 19.5), ("i8", 624)]
)
def test_tensor_peaks_of_the_a100_are_the_published_ones(source, published_tflops):
    assert load_card("a100").peak_tensor_gflops(source) == pytest.approx(1e3 * published_tflops, rel=0.002)


@pytest.mark.parametrize(
    ("card", "dtype", "fma_per_cycle"),
    [
        *(
            ("h200", dtype, cycle)
            for dtype, cycle in {"f32": 128, "f64": 64, "bf16": 2048, "tf32": 1024}.items()
        ),
        *(("h200", "e4m3", 4096), ("a100", "e4m3", 64), ("a100", "f16", 1024), ("rtx4090", "f16", 128)),
    ],
)
def test_peak_of_a_run_is_that_of_tensor_cores_where_they_are_made_for_its_type(card, dtype, fma_per_cycle):
    device = load_card(card)
    expected = 2e-3 * fma_per_cycle * device.sm_count * device.sm_clock_mhz
    assert device.peak_gflops(dtype) == pytest.approx(expected)
