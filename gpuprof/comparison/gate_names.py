# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What the names and units of a gate mean: each comparison is tied to a figure, or refused with a caret."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from gpuprof.analysis.figure import Figure, Subject
from gpuprof.analysis.figures import FIGURES, counter_figure
from gpuprof.bounds.parts import PARTS
from gpuprof.comparison.gate_text import UNITS, WORDS, Clause, Condition, GateError, names_in, words_in
from gpuprof.errors import InputError
from gpuprof.text import format_extent

#: Short names for what gates name most.
ALIASES = {"time": "median_us", "warm": "warm_us", "bound": "bound_by"}
#: What a case is, for gates that concern some cases only.
IDENTITY: dict[str, Callable[[Subject], str]] = {
    "kernel": lambda subject: subject.case.kernel,
    "operation": lambda subject: subject.case.problem.operation,
    "size": lambda subject: subject.case.problem.label,
    "dtype": lambda subject: subject.case.problem.dtype,
    "block": lambda subject: format_extent(subject.case.block),
    "outcome": lambda subject: subject.case.outcome,
}
#: Figures that follow from a time, with the power of the time that they go by: these are as noisy as it is.
TIMED = {
    "median_us": 1,
    "warm_us": 1,
    "gflops": -1,
    "gbps": -1,
    "pct_of_peak_compute": -1,
    "pct_of_peak_bandwidth": -1,
    "pct_of_copy": -1,
    "pct_of_limit": -1,
    "pct_of_measured_limit": -1,
    "pct_of_bound": -1,
}
#: Figures that say how a case was sampled, or compare it with its neighbours: no gate can hold them.
_UNFIT = {
    **dict.fromkeys(
        ("p05_us", "p95_us", "ci95_pct", "samples", "launches_per_sample", "dropped", "throttled"),
        "says how the case was sampled",
    ),
    **dict.fromkeys(("gain", "vs_reference", "vs_fastest"), "compares a case with others of its run"),
    "published_us": "was measured by others, elsewhere",
}


@dataclass(frozen=True, slots=True)
class Term:
    """What one comparison of a gate is about.

    Args:
        clause: As it was written.
        figure: The figure; None where it is part of a case's identity.
        relative: Whether its relative change since the base is meant.
        value: The value in the figure's own unit, a share for a relative change; or a text.
        texts: The words that a text may be, where it stands for several.
    """

    clause: Clause
    figure: Figure | None
    relative: bool
    value: float | str
    texts: tuple[str, ...] = ()


def resolve(text: str, condition: Condition, *, with_base: bool) -> dict[Clause, Term]:
    """Tie each comparison of a gate to what it is about.

    Args:
        text: The gate, for messages.
        condition: What was read from it.
        with_base: Whether there is a base to compare with.

    Raises:
        GateError: A name is unknown, a unit is not that of its figure, or a change is asked for without base.
    """
    if not with_base and (words := words_in(condition)):
        raise _needs_base(text, text.find(words[0]), words[0])
    return {clause: _term(text, clause, with_base) for clause in names_in(condition)}


def _term(text: str, clause: Clause, with_base: bool) -> Term:
    name = ALIASES.get(clause.name, clause.name)
    if name in IDENTITY or name == "verdict":
        return _of_identity(text, clause, with_base)
    figure = _figure(text, clause, name)
    if figure.is_text:
        return Term(clause, figure, False, _text_value(text, clause), _words(text, clause, figure))
    if isinstance(clause.value, str):
        raise GateError(
            text, clause.value_place, f"{clause.name} is a number, not text.", "Write a number here."
        )
    relative = clause.changed or (clause.unit == "%" and figure.unit not in ("%", "±%"))
    if clause.changed and clause.unit != "%":
        raise GateError(text, clause.value_place, "a change is in percent.", "For example: change(time) > 3%")
    if relative:
        if not with_base:
            raise _needs_base(text, clause.place, clause.name)
        return Term(clause, figure, True, clause.value / 100)
    return Term(clause, figure, False, _in_unit(text, clause, figure))


def _of_identity(text: str, clause: Clause, with_base: bool) -> Term:
    if clause.name == "verdict" and not with_base:
        raise _needs_base(text, clause.place, "verdict")
    if clause.changed:
        raise GateError(text, clause.place, f"{clause.name} does not change.", "Name a figure, such as time.")
    value = _text_value(text, clause)
    if clause.name == "verdict" and value not in WORDS[:4]:
        raise GateError(
            text, clause.value_place, f"{value!r} is not a verdict.", f"There are {', '.join(WORDS[:4])}."
        )
    return Term(clause, None, False, value)


def _text_value(text: str, clause: Clause) -> str:
    if not isinstance(clause.value, str):
        fix = (
            f"For example: {clause.name} == 'shared'"
            if clause.name.startswith("bound")
            else "Put it in quotation marks."
        )
        raise GateError(text, clause.value_place, f"{clause.name} is text, not a number.", fix)
    if clause.relation not in ("==", "!="):
        fix = "Write == or !="
        raise GateError(text, clause.place, f"{clause.name} is text: it cannot be more or less.", fix)
    if clause.changed:
        raise GateError(text, clause.place, "the change of a text is not a number.", "Drop change( ).")
    return clause.value


def _figure(text: str, clause: Clause, name: str) -> Figure:
    if name in _UNFIT:
        fix = "Gate time, a rate, a resource, a bound or a counter."
        raise GateError(text, clause.place, f"{name} {_UNFIT[name]}: no gate can use it.", fix)
    if name in FIGURES:
        return FIGURES[name]
    if "__" in name:  # a metric by Nsight Compute's own name
        return counter_figure(name)
    known = [*ALIASES, *IDENTITY, *(key for key in FIGURES if key not in _UNFIT), *WORDS]
    near = (
        get_close_matches(name, known, n=3, cutoff=0.6) or [key for key in known if name.lower() in key][:3]
    )
    fix = f"Did you mean {' or '.join(near)}?" if near else "docs/compare.md lists the names."
    raise GateError(text, clause.place, f"there is no figure {name!r}.", fix)


def _words(text: str, clause: Clause, figure: Figure) -> tuple[str, ...]:
    """The values of a text figure that a word stands for: `shared` for `shared/L1`."""
    wanted = str(clause.value).strip().lower()
    if figure.key != "bound_by":
        return (wanted,)
    if wanted in PARTS:
        return (PARTS[wanted].short.lower(),)
    names = {part: (part.key, part.short.lower(), part.label.lower()) for part in PARTS.values()}
    found = [
        part for part, known in names.items() if wanted and any(name.startswith(wanted) for name in known)
    ]
    if not found:
        shorts = [part.short for part in PARTS.values()]
        near = get_close_matches(wanted, [short.lower() for short in shorts], n=2)
        fix = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(shorts)}."
        raise GateError(text, clause.value_place, f"no part of a device is called {wanted!r}.", fix)
    return tuple(part.short.lower() for part in found)


def _in_unit(text: str, clause: Clause, figure: Figure) -> float:
    """A number in its figure's unit."""
    assert not isinstance(clause.value, str)
    unit = "bytes" if figure.unit == "B" else figure.unit
    if not clause.unit:
        return clause.value
    factor, kept = UNITS[clause.unit]
    if kept != unit:
        its = {"us": "a time", "%": "a share in %", "bytes": "a size in bytes"}.get(
            unit, f"counted in {unit or 'ones'}"
        )
        fix = f"Write the number alone, or change({clause.name}) with % for its change."
        raise GateError(text, clause.value_place, f"{clause.name} is {its}, not in {clause.unit}.", fix)
    return clause.value * factor


def _needs_base(text: str, place: int, name: str) -> InputError:
    fix = "Use it with: gpuprof compare BASE NEW --fail-on …"
    return GateError(text, max(place, 0), f"{name} is compared with a base here, and there is none.", fix)
