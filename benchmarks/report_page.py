# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a report weighs: seconds to render it, megabytes, elements; in Chromium, time to its first chart.

    python benchmarks/report_page.py [RESULTS.json ...] [--repeat 3] [--no-browser]

Without files it renders the sample of the main command and a run of 60 kernels at 8 sizes.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "report")]

from chromium import browser, find  # noqa: E402
from page_reader import PageReader  # noqa: E402
from wide_run import wide_run  # noqa: E402

from gpuprof.reading import read_run  # noqa: E402
from gpuprof.report.html import render_html  # noqa: E402
from gpuprof.results import Run  # noqa: E402

MAIN = ROOT / "samples" / "gemm-h200.json"
#: Tasks that hold the main thread are counted until it has been idle for so long.
QUIET_SECONDS = 2.0
FIRST_CHART = """
new Promise((found) => {
  const drawn = () => [...document.querySelectorAll(".chart .drawing svg")];
  const stands = () => drawn().some((svg) => svg.getBoundingClientRect().width);
  const look = () => (stands() ? found(performance.now()) : requestAnimationFrame(look));
  look();
})
"""
#: Milliseconds from a click on each size until the next frame is drawn, the most of them.
CHANGE_SIZE = """
(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  let most = 0;
  for (const button of document.querySelectorAll('[data-tabs="Size"] > .choosers button')) {
    const start = performance.now();
    button.click();
    await frame();
    most = Math.max(most, performance.now() - start);
  }
  return most;
})()
"""
LOOK_CLOSER = """
(async () => {
  const chart = [...document.querySelectorAll(".chart")].find((one) => one.offsetWidth);
  const start = performance.now();
  chart.querySelector(".closer-button").click();
  while (!chart.querySelector(".main-svg")) await new Promise((next) => setTimeout(next, 10));
  return performance.now() - start;
})()
"""


def rendered(run: Run, repeat: int) -> tuple[str, list[float]]:
    """The page, and the seconds that each rendering took."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        page = render_html(run)
        seconds.append(time.perf_counter() - start)
    return page, seconds


def in_browser(page: str) -> dict[str, float]:
    """Milliseconds to the first chart, on the main thread until it is idle, and for what a reader asks."""
    with tempfile.TemporaryDirectory() as folder, browser() as opened:
        path = Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        tab = opened.new_page(viewport={"width": 1400, "height": 900})
        chromium = tab.context.new_cdp_session(tab)
        # Seconds of the thread, so that what else a machine does is not counted.
        chromium.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(path.as_uri(), wait_until="commit")
        first = tab.evaluate(FIRST_CHART)
        tab.wait_for_load_state("load")
        tab.wait_for_timeout(1000 * QUIET_SECONDS)
        metrics = chromium.send("Performance.getMetrics")["metrics"]
        seconds = {item["name"]: item["value"] for item in metrics}
        paint = tab.evaluate("performance.getEntriesByType('paint').map((entry) => entry.startTime)")
        return {
            "first paint, ms": min(paint, default=float("nan")),
            "first chart, ms": first,
            "main thread, ms": 1000 * seconds["TaskDuration"],
            "script, ms": 1000 * seconds["ScriptDuration"],
            "layout and style, ms": 1000 * (seconds["LayoutDuration"] + seconds["RecalcStyleDuration"]),
            "change of size, ms": tab.evaluate(CHANGE_SIZE),
            "look closer, ms": tab.evaluate(LOOK_CLOSER),
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="renderings of each; the least time counts")
    parser.add_argument("--no-browser", action="store_true")
    arguments = parser.parse_args()
    runs = {path.name: read_run(path) for path in arguments.results or [MAIN]}
    if not arguments.results:
        runs["60 kernels x 8 sizes"] = wide_run()
    for name, run in runs.items():
        page, seconds = rendered(run, arguments.repeat)
        figures = {
            "first rendering, s": seconds[0],
            "rendering, s": min(seconds),
            "MB": len(page.encode()) / 1e6,
            "elements": len(PageReader(page).tags),
        }
        if find() and not arguments.no_browser:
            figures |= in_browser(page)
        print(name)
        for label, value in figures.items():
            print(f"  {label:24}{value:>12,.2f}" if isinstance(value, float) else f"  {label:24}{value:>12,}")


if __name__ == "__main__":
    main()
