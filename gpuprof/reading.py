# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Read results files of every schema version, up to the last whole case where a run died, or of a report."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuprof import page_data
from gpuprof.errors import PATH_ERRORS, InputError, ResultsError, nearest_file, reason
from gpuprof.files import MOST_RESULTS_BYTES, RESULTS_NAME, read_content
from gpuprof.kernels.shipped import shipped_operation
from gpuprof.problems.problem import Problem
from gpuprof.records import replace
from gpuprof.results import CASES_BEGIN, CASES_END, NO_CASES_END, SCHEMA_VERSION, Run
from gpuprof.schema import SchemaError, decoded, from_json, loads, to_json
from gpuprof.text import cut, listed

#: The one reference of version 1 that ran on the host; it was known by its name alone.
_ON_HOST = "numpy"
#: With which a run without a GPU went on after it had said why there is none.
_RAN_INSTEAD = " The kernels ran on "
_CASE_END = re.compile(r"^  \}", re.MULTILINE)


def results_file(path: Path) -> Path:
    """The results file that a path stands for: a run's folder stands for the `results.json` in it."""
    if not os.path.isdir(path):  # which is False, and no error, for names that no file can have
        return path
    inside = path / RESULTS_NAME
    if not inside.is_file():
        others = sorted(each.name for each in path.glob("*.json"))
        fix = "Name a results file, or the folder of a run."
        fix += f" JSON files in it: {listed(others, 3)}." if others else ""
        raise ResultsError(f"{path} holds no {RESULTS_NAME}.", fix=fix)
    return inside


def read_run(path: Path) -> Run:
    """Read and check a results file, or the results that an HTML report holds.

    Raises:
        ResultsError: The file is missing, not JSON, of a newer schema, or does not match the schema.
    """
    path = results_file(path)
    try:
        content = read_content(path, MOST_RESULTS_BYTES)
    except PATH_ERRORS as error:
        raise _unreadable(path, error) from error
    run = decoded(Run, content)
    if run is not None and run.schema_version == SCHEMA_VERSION:
        return _checked(run, str(path))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from error
    if page_data.is_page(text):
        try:
            document = page_data.run_of_page(text)
        except (ValueError, RecursionError) as error:
            raise ResultsError(
                f"{path} is an HTML page that holds no results of gpuprof: {error}.",
                fix="Name a report that gpuprof wrote, or a results.json.",
            ) from error
        return parse_run(document, str(path))
    try:
        return parse_run(_document(text), str(path))
    except json.JSONDecodeError as error:
        raise ResultsError(
            f"{path} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}).",
            fix="Name a results.json that gpuprof wrote; measure again what is truncated.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(
            f"{path} is not a gpuprof results file: it is nested too deeply, or a number is too long or NaN."
        ) from error


def _unreadable(path: Path, error: Exception) -> ResultsError:
    fix = nearest_file(path) or "Name a results.json that gpuprof wrote."
    return ResultsError(f"Cannot read {path}: {reason(error)}.", fix=fix)


def parse_run(document: Any, name: str) -> Run:
    """Check a parsed results document.

    Raises:
        ResultsError: It is not a results file of a schema version that this gpuprof reads.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ResultsError(f"{name} is not a gpuprof results file: it has no schema_version.")
    if version > SCHEMA_VERSION:
        raise ResultsError(
            f"{name} has schema version {cut(str(version), 40)}; this gpuprof reads up to {SCHEMA_VERSION}.",
            fix="Update gpuprof.",
        )
    try:
        run = from_json(Run, _from_version_1(document) if version == 1 else document)
    except SchemaError as error:
        raise _unlike_schema(name, error) from error
    return _checked(run, name)


def _checked(run: Run, name: str) -> Run:
    """A run of the right shape, each of its cases once."""
    try:
        _check_names(run)
    except SchemaError as error:
        raise _unlike_schema(name, error) from error
    return run if run.complete else _each_case_once(run)


def _unlike_schema(name: str, error: SchemaError) -> ResultsError:
    return ResultsError(f"{name} does not match the results schema: {error}.")


def _each_case_once(run: Run) -> Run:
    """A run that was stopped, with the last row of each case: a later one is known better."""
    rows = {
        index if case.planned is None else -1 - case.planned: case for index, case in enumerate(run.cases)
    }
    return run if len(rows) == len(run.cases) else replace(run, cases=tuple(rows.values()))


def _check_names(run: Run) -> None:
    """Refuse a case that refers to what the file does not hold."""
    for number, case in enumerate(run.cases):
        if case.problem.operation not in run.operations:
            operation = cut(repr(case.problem.operation), 80)
            raise SchemaError(f"cases[{number}].problem.operation", f"{operation} is not in operations")
        if case.device >= len(run.devices):
            raise SchemaError(f"cases[{number}].device", f"there is no device {case.device}")
    for number, tuned in enumerate(run.tuning.sizes if run.tuning else ()):
        if tuned.device >= len(run.devices):
            raise SchemaError(f"tuning.sizes[{number}].device", f"there is no device {tuned.device}")


def _document(text: str) -> Any:
    """A results file as JSON, up to its last whole case where its process died while it appended one."""
    try:
        return loads(text)
    except json.JSONDecodeError:
        if CASES_BEGIN not in text:
            raise
        begin = text.index(CASES_BEGIN)
        ends = [match.end() for match in _CASE_END.finditer(text, begin)]
        whole = text[: ends[-1] if ends else begin + len(CASES_BEGIN)]
        document = loads(whole + (CASES_END if ends else NO_CASES_END).decode())
        return {**document, "complete": False}


def _from_version_1(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of version 1 in the words of version 2.

    Version 1 knew one device a run, one round a case, and of a problem its operation with sizes, scalars and
    options side by side. What an operation declares it did not hold: gpuprof still ships those it could name.
    """
    try:
        cases = [_case(case) for case in document["cases"]]
        kernels = [
            {**record, "operation": record.get("op"), "on_host": record.get("id") == _ON_HOST}
            for record in document["kernels"]
        ]
        names = dict.fromkeys(case["problem"]["operation"] for case in cases)
        operations = {name: to_json(shipped_operation(name)) for name in names}
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, InputError) as error:
        raise SchemaError("", f"it is not of version 1: {type(error).__name__}: {error}") from error
    why = document.get("backend_reason")
    return {
        **document,
        "schema_version": SCHEMA_VERSION,
        "backend_reason": why.partition(_RAN_INSTEAD)[0] if isinstance(why, str) else why,
        "devices": [document["device"]] if "device" in document else [],
        "operations": operations,
        "kernels": kernels,
        "cases": cases,
    }


def _case(case: Mapping[str, Any]) -> dict[str, Any]:
    timing = {
        key: held and {**held, "rounds_us": [held["samples_us"]]}
        for key, held in (case.get("timing") or {}).items()
    }
    return {**case, "problem": _problem(case["problem"]), "timing": timing or None}


def _problem(problem: Mapping[str, Any]) -> Any:
    """A problem by the names that its operation declares; dimensions of one letter were written small."""
    operation = shipped_operation(problem["op"])
    sizes = (problem[name] if name in problem else problem[name.lower()] for name in operation.dimensions)
    scalars = {name: problem[name] for name in operation.scalars if name in problem}
    options = {name: problem[name] for name in operation.options if name in problem}
    unknown = [value for name, value in options.items() if value not in operation.options[name].values]
    unknown += [value for value in scalars.values() if type(value) not in (int, float)]
    if unknown:
        raise ValueError(f"{operation.name} has no {unknown[0]}")
    made = Problem.of(operation, tuple(sizes), problem.get("dtype", "f32"), scalars, options)
    return to_json(made.record())
