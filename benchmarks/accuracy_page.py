# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Put docs/executor-accuracy.md and its data together: executed cases, recorded counts, rules' answers."""

import csv
import io
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from accuracy_cases import ROOT, recorded
from accuracy_rows import Row, reason_of

sys.path.insert(0, str(ROOT / "tests" / "executor" / "rules"))

from rules_corpus import cases as rule_cases

from gpuprof.text import listed

RANDOM = ROOT / "tests" / "executor" / "differential" / "random-summary.json"
RULES = ROOT / "tests" / "executor" / "rules"
#: Columns of the data: a line for each counter of each case.
COLUMNS = ("family", "kernel", "size", "block", "results", "counter", "executor", "hardware")
#: Shared wavefronts that the card counts as conflicts since another instruction was on the same pipe.
LOST = "shared_wavefronts_lost_to_the_pipe_pct"
_MOST_LISTED = 4
INTRODUCTION = """# The executor against hardware

What the executor counts, beside what Nsight Compute counts of the same launch on an {card}
(driver {driver}, Nsight Compute {ncu}): every shipped kernel and sample at two sizes that fit its tiles and
one that does not, {public} kernels in the manner of public suites (`tests/executor/public_style`), and
{random} random kernels. Of the shipped and public ones **{equal} of {asked} counters are equal**; each is a
line of [data/executor-accuracy.csv](data/executor-accuracy.csv). Their results are the card's too: bit by
bit, or closely where the PTX ISA leaves an approximation's last bits open. {same} of the {random} random
kernels left the same bits.

`python benchmarks/executor_accuracy.py record` makes the card's counts, `page` this page.
"""
RANDOMLY = """Of random kernels {counters} differed when last counted, before lanes met as ptxas lets them;
most differ since ptxas moves, merges or drops what the PTX says;
[random-summary.json](../tests/executor/differential/random-summary.json) has the reasons.
"""
LIMITS = """## What is compared, and what cannot be

- The executor runs PTX, hardware the machine code that ptxas makes of it. Counts that a warp's addresses
  decide (requests, sectors, efficiencies, wavefronts) and counts of threads (fused multiply-adds) carry over.
- Wavefronts of shared loads and stores are compared less bank conflicts: hardware counts a wavefront that
  another instruction on the same pipe delayed as a conflict too (`{lost}` in the data).
  Conflicts that addresses cause are exact: `tests/executor/test_executor_wavefronts.py` holds 700 patterns
  against an H200.
- Not compared: diverging branches, as lanes may part at ptxas' own, and local memory, where ptxas keeps
  a thread's array in registers.
- At least so many, and shown so (`≥`): accesses where threads call `printf` or `malloc`, where they add
  to single halves, which a card repeats, where they part at a call through a pointer, and where lanes make
  different numbers of iterations of a loop that ptxas unrolled (sectors, 0.3 % on an H200).
"""


def lines_of(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """The data: what both counted, by the names of `COLUMNS`."""
    lines = []
    for row in rows:
        case = (row.family, row.name, row.size, row.shape, row.results)
        told = [
            (
                counter.name,
                _shown(counter.name, counter.ours),
                _shown(counter.name, counter.ours if counter.equal else counter.theirs),
            )
            for counter in row.counters
            if counter.ours or counter.theirs
        ]
        if row.lost is not None:
            told.append((LOST, "", _shown(LOST, row.lost)))
        lines += [(*case, *counted) for counted in told or [("", "", "")]]
    return lines


def _shown(name: str, value: float) -> str:
    return f"{value:.{2 if name.endswith('_pct') else 0}f}"


def as_csv(lines: Iterable[Sequence[str]]) -> str:
    """The text of the data's file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(lines)
    return text.getvalue()


def page(shipped: Sequence[Row], public: Sequence[Row]) -> tuple[str, str, int]:
    """Return the page's text, its data, and how many differences have no reason."""
    rows = [*shipped, *public]
    lines = lines_of(rows)
    differences, unexplained = _differences(rows)
    return page_of(lines, differences, len(public)), as_csv(lines), unexplained


def page_of(lines: Sequence[Sequence[str]], differences: str, public: int) -> str:
    """The page, from its data."""
    about, found = recorded()["about"], json.loads(RANDOM.read_text())
    told = [line for line in lines if line[5] not in ("", LOST)]
    introduction = INTRODUCTION.format(
        card=about["card"],
        driver=about["driver_api"],
        ncu=about.get("ncu", "unknown"),
        public=public,
        random=found["kernels"],
        same=found["same_results"],
        equal=f"{sum(line[6] == line[7] for line in told):,}",
        asked=f"{len(told):,}",
    )
    differing = sum(found["explained"].values())
    parts = [
        introduction,
        _table(told, found["counters"]),
        LIMITS.format(lost=LOST),
        differences,
        RANDOMLY.format(counters=_counters(differing)),
        _rules(),
    ]
    return "\n".join(parts)


def _table(told: Iterable[Sequence[str]], random: dict[str, Any]) -> str:
    """How many counts are equal, by counter."""
    asked, equal = Counter(), Counter()
    for line in told:
        asked[line[5]] += 1
        equal[line[5]] += line[6] == line[7]
    lines = ["| counter | shipped and public: equal | of | random: equal | of |", "|:--|--:|--:|--:|--:|"]
    for name in asked | random:
        of_random = random.get(name)
        cells = (name, equal[name], asked[name], *(reversed(of_random) if of_random else ("–", "–")))
        lines.append(f"| `{cells[0]}` | {' | '.join(map(str, cells[1:]))} |")
    return "\n".join([*lines, ""])


def _counters(count: int) -> str:
    return f"{count} counter{'s' if count != 1 else ''}"


def _differences(rows: Iterable[Row]) -> tuple[str, int]:
    explained: dict[str, list[tuple[str, str]]] = {}
    unexplained = []
    for row in rows:
        what = [counter.name for counter in row.counters if not counter.equal]
        if row.results.startswith(("failed", "incorrect", "skipped")) or "not the card's" in row.results:
            what.append(row.results)
        for name in what:
            words = reason_of(row.name, name, row.size)
            if words is None:
                unexplained.append(f"{row.name} {row.size}".strip() + f" (`{name}`)")
            else:
                explained.setdefault(words, []).append((row.name, f"`{name}`"))
    lines = ["## Differences\n"]
    if not explained and not unexplained:
        lines.append("There is none.\n")
    for words, places in explained.items():
        kernels, counters = ([*dict.fromkeys(column)] for column in zip(*places, strict=True))
        told = listed(kernels, _MOST_LISTED)
        lines.append(f"- {words} {_counters(len(places))} ({listed(counters, _MOST_LISTED)}) of {told}.")
    if unexplained:
        lines.append(f"- Not explained: {'; '.join(unexplained)}.")
    return "\n".join([*lines, ""]), len(unexplained)


def _rules() -> str:
    """What cards answered to the rules of the PTX ISA."""
    parts = [
        "## Rules of the PTX ISA\n",
        "Small kernels, each of which tells whether one rule of the PTX ISA is kept. Cards were asked all of"
        " them, and\n`tests/executor/test_executor_rules.py` holds the executor to their answers, bit by bit."
        " Elements that came out\notherwise when a card was asked again count as open.\n",
    ]
    for path in sorted(RULES.glob("answers-*.json")):
        told = json.loads(path.read_text())
        parts.append(_rules_of(told["about"]["card"], told["answers"]))
    return "\n".join(parts)


def _rules_of(card: str, answers: dict[str, Any]) -> str:
    known = tomllib.loads((RULES / "known_differences.toml").read_text()).get("card", {})
    asked = [case for case in rule_cases().values() if answers.get(case.name, {}).get("key") == case.key]
    differing = [case for case in asked if case.name in known]
    chapters = len({case.chapter for case in asked})
    lines = [
        f"{card}: {len(asked):,} rules of {chapters} chapters asked,"
        f" {len(asked) - len(differing):,} as on the card. The others:\n",
        *(f"- {case.chapter}: {known[case.name].partition(':')[0]}." for case in differing),
    ]
    return "\n".join([*lines, ""])
