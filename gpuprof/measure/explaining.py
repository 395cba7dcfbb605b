# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Which cases get an explanation, who looks for it, and what it adds to their row.

A case that a GPU ran is explained by a worker process of its own, which opens the executor for that GPU; one
that the executor ran, by the worker that ran it. Either is killed when its time is over: the row then stays
as it was measured.
"""

import time
from dataclasses import replace

from gpuprof.errors import GpuprofError
from gpuprof.measure.case import Case
from gpuprof.measure.executors import ExecutorProcess
from gpuprof.measure.protocol import (
    Explain,
    Explained,
    Open,
    Opened,
    OpenExecutor,
    Question,
    Symptom,
    Worker,
    WorkerDied,
    WorkerTimeout,
)
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


class Explainer:
    """Explains the cases of one worker slot, with a process of its own where their device is a GPU."""

    def __init__(self, open_request: Open, seconds: float = MOST_SECONDS) -> None:
        self._open_request = open_request
        self._seconds = seconds
        self._process: ExecutorProcess | None = None
        self._closed = False

    def explain(
        self, case: Case, measurement: Measurement, question: Question, opened: Opened, worker: Worker | None
    ) -> tuple[Measurement, bool]:
        try:
            answer = self._ask(case, question, opened, worker)
        except (WorkerDied, WorkerTimeout, GpuprofError) as error:
            lost = f"the process that was to explain it was lost: {error}"
            return replace(measurement, explanation_reason=lost), False
        if answer.explanation is None:
            sentence = f"{answer.reason}."
        else:
            sentence = answer.explanation.sentence(None if question.as_run else measurement.problem)
        explained = replace(
            measurement,
            reason=" ".join(filter(None, (measurement.reason, sentence))),
            explanation=answer.explanation,
            explanation_reason=answer.reason or None,
        )
        return explained, True

    def close(self) -> None:
        """End the process; an explanation that is under way ends too."""
        self._closed = True
        if self._process is not None:
            self._process.close()

    def _ask(self, case: Case, question: Question, opened: Opened, worker: Worker | None) -> Explained:
        def request(left: float) -> Explain:
            return Explain(case, question, max(left - _MARGIN_S, 1.0))

        answer: Explained
        if worker is not None:
            answer = worker.ask(request(self._seconds), self._seconds)
            return answer
        end = time.monotonic() + self._seconds
        if self._process is None:
            to_open = OpenExecutor(opened.device, self._open_request.seed, self._open_request.given_arrays)
            self._process = ExecutorProcess(to_open, self._seconds)
        if self._closed:
            self._process.close()
        answer = self._process.ask(request, end)
        return answer
