# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds as they are shown: bars, the measured line, what binds, the line of source, the device's rates."""

import re
from dataclasses import replace
from functools import cache

from page_reader import PageReader, expanded
from synthetic_runs import counted_run, gemm_run

from gpuprof.report.device_facts import rates_table
from gpuprof.report.html import render_html
from gpuprof.results import Run

RATES = {
    "fma_f32_gflops": 65_500.0,
    "shared_gbps": 33_000.0,
    "dram_read_gbps": 4400.0,
    "barriers_gips": 91.25,
}


def measured(run: Run) -> Run:
    """The run on a device whose rates were measured."""
    return replace(run, devices=(replace(run.device, measured_rates=RATES),))


@cache
def page() -> str:
    return expanded(render_html(counted_run()))


def pictures(text: str, kernel: str) -> list[str]:
    """The pictures of one kernel's section."""
    (section,) = re.findall(
        rf'<details class="block kernel" name="kernels" id="kernel-{kernel}".*?</table>\n<p class="verdict">',
        text,
        re.DOTALL,
    )
    return re.findall(r'<table class="bounds">.*?</table>', section, re.DOTALL)


def test_the_line_that_causes_most_is_linked_and_marked_in_the_source() -> None:
    reader = PageReader(page())
    hot = [tag["id"] for name, tag in reader.tags if name == "b" and "id" in tag]
    linked = [link[1:] for link in reader.attributes("href") if re.search(r"-L\d+$", link)]
    assert linked
    assert set(linked) <= set(hot)
    assert "sum += a[k] * b[(size_t)k * N]; ◂ binds: most of shared/L1" in reader.text


def test_what_the_device_reached_stands_beside_what_it_promises() -> None:
    table = rates_table(measured(gemm_run()).device)
    rows = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}
    assert rows["FMA (f32)"] == ["65,500", "66,910", "97.9 %", "GFLOP/s"]
    assert rows["Barriers"][:3] == ["91.25", "130.7", "69.8 %"]
    assert (rows["DRAM, write"][0], rows["DRAM, write"][2]) == (None, "–")
    text = PageReader(render_html(measured(gemm_run()))).text
    assert "| FMA (f32) | 65,500 | 66,910 | 97.9 % | GFLOP/s" in text
    assert "What small kernels reached" not in PageReader(render_html(gemm_run())).text
