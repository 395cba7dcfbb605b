# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cases get an explanation, what is asked for it, and what it adds to their row.

A case that a GPU ran is explained by a worker process of its own, which opens the executor for that GPU; one
that the executor ran, by the worker that ran it. Either is killed when its time is over: the row then stays
as it was measured.
"""

from collections.abc import Callable
from dataclasses import replace

from gpuprof.measure.case import Case
from gpuprof.measure.protocol import Explain, Explained, Question, Symptom
from gpuprof.results import BackendName, Measurement

#: The longest that one explanation may take, and how long before that its worker ends the search by itself.
MOST_SECONDS = 20.0
_MARGIN_S = 2.0
TURNED_OFF = "explaining was turned off"


def question_of(measurement: Measurement, backend: BackendName, *, died: bool) -> Question | None:
    """What to ask of a case; None where there is nothing to explain. One that died took its context along."""
    symptom: Symptom
    if measurement.is_reference or measurement.explanation is not None:
        return None
    if measurement.outcome == "incorrect":
        symptom = "wrong"
    elif measurement.outcome == "timeout":
        symptom = "hang"
    elif measurement.outcome == "failed" and died and backend == "gpu":
        symptom = "fault"
    else:
        return None
    as_run = backend == "sim" and symptom == "wrong"
    found = measurement.verification
    if found is None or found.first_wrong is None:
        return Question(symptom, as_run=as_run)
    return Question(symptom, found.array, found.first_wrong, as_run)


def asking(case: Case, question: Question) -> Callable[[float], Explain]:
    """What to send, by the time that is left."""
    return lambda left: Explain(case, question, max(left - _MARGIN_S, 1.0))


def explained(measurement: Measurement, question: Question, answer: Explained) -> Measurement:
    """A case that went wrong, with what explains it, or why that is not known."""
    if answer.explanation is None:
        sentence = f"{answer.reason}."
    else:
        sentence = answer.explanation.sentence(None if question.as_run else measurement.problem)
    return replace(
        measurement,
        reason=" ".join(filter(None, (measurement.reason, sentence))),
        explanation=answer.explanation,
        explanation_reason=answer.reason or None,
    )
