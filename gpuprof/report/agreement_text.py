# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Words of the section that holds the executor's counts against the hardware's."""

from gpuprof.analysis import numbers
from gpuprof.analysis.agreement import CaseAgreement, Comparison, Kind


def agreement_headline(found: tuple[CaseAgreement, ...]) -> str:
    """How many counters came to which verdict, in one sentence."""

    def total(*kinds: Kind) -> int:
        return sum(len(item.of_kind(*kinds)) for item in found)

    comparable = total("agrees", "arbitration", "passes", "predicated", "least", "unexplained")
    cases = "1 case" if len(found) == 1 else f"{len(found)} cases"
    parts = [f"{total('agrees')} of {comparable} comparable counters of {cases} agree exactly"]
    if explained := total("arbitration", "passes", "predicated", "least"):
        parts.append(f"{explained} differ for a known reason")
    unexplained = total("unexplained")
    parts.append(f"{unexplained} without one" if unexplained else "none without one")
    return ", ".join(parts) + "."


def counted_twice(value: float, unit: str) -> str:
    """One of the two figures: a count in full."""
    return f"{numbers.exact(value)} %" if unit == "%" else numbers.exact(value)


def format_difference(item: Comparison) -> str:
    """Hardware against executor; where the executor counted none, the count itself."""
    if item.hardware == item.executor:
        return "0"
    share = item.difference_pct
    if share is None:
        return f"+{numbers.count(item.hardware)}"
    return f"{'+' if share > 0 else '−'}{numbers.percent(abs(share), 2)}"
