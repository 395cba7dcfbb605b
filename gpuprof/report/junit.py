# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Verdicts and gates as a JUnit file, which CI systems show as tests: a test for each case and each gate."""

from collections.abc import Sequence
from xml.etree import ElementTree

from gpuprof.comparison.compared import CaseVerdict, ComparedRuns
from gpuprof.comparison.gates import GateResult
from gpuprof.report.compared_text import moved_texts
from gpuprof.text import one_line

#: What XML 1.0 cannot hold even escaped, and `one_line` leaves: lone surrogates and two noncharacters.
_NO_XML = dict.fromkeys((*range(55296, 57344), 65534, 65535), "�")


def render_junit(comparisons: Sequence[ComparedRuns], gates: Sequence[Sequence[GateResult]]) -> str:
    """One suite for each new run: its cases, then its gates.

    A case fails where it regressed, and is skipped where it is uncertain or unmeasured. With gates, they
    decide alone: then a regressed case that no gate forbids is a test that passed, with the verdict in its
    output.
    """
    root = ElementTree.Element("testsuites", name="gpuprof compare")
    for comparison, results in zip(comparisons, gates, strict=True):
        suite = ElementTree.SubElement(root, "testsuite", name=_safe(comparison.new_name))
        for case in comparison.cases:
            _case(suite, case, decides=not results)
        for result in results:
            _gate(suite, result)
        _count(suite)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ElementTree.Element, case: CaseVerdict, *, decides: bool) -> None:
    test = ElementTree.SubElement(
        suite, "testcase", classname=_safe(case.new.case.problem.operation), name=_safe(case.name)
    )
    message = _safe("; ".join((f"{case.verdict}: {case.sentence}", *moved_texts(case))))
    if case.is_reference:
        decides = False
    if decides and case.verdict == "regressed":
        ElementTree.SubElement(test, "failure", message=message, type="regressed")
    elif case.verdict == "unmeasured" or (decides and case.verdict == "uncertain"):
        ElementTree.SubElement(test, "skipped", message=message)
    else:
        ElementTree.SubElement(test, "system-out").text = message


def _gate(suite: ElementTree.Element, result: GateResult) -> None:
    test = ElementTree.SubElement(suite, "testcase", classname="gates", name=_safe(result.text))
    message = _safe(result.sentence)
    if result.outcome in ("failed", "not judged"):
        ElementTree.SubElement(test, "failure", message=message, type="gate")
    elif result.outcome == "uncertain":
        ElementTree.SubElement(test, "skipped", message=message)


def _count(suite: ElementTree.Element) -> None:
    """The totals that readers of such files expect."""
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("errors", "0")


def _safe(text: str) -> str:
    return one_line(text).translate(_NO_XML)
