# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""A run as a document: its answer on one screen, or the whole with every case, reasons and cautions.

The answer says at each size who is fastest, beside the library and the simplest.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import PurePath
from typing import TextIO

from gpuprof.analysis import numbers
from gpuprof.analysis.answer import Answer, answer_of, shape_of
from gpuprof.analysis.figures import FIGURES, Figure, Subject, headline_rate
from gpuprof.analysis.groups import Group, groups
from gpuprof.analysis.ladder import Rung, SizeLadder, build_ladder, standing
from gpuprof.analysis.speed import is_noisy, rate
from gpuprof.analysis.status import Banner, Level, exceeded_limit, status_of
from gpuprof.comparison.cautions import cautions
from gpuprof.records import replace
from gpuprof.report.case_table import (
    Filled,
    case_table,
    filled_table,
    limiter_cell,
    of_figure,
)
from gpuprof.report.device_facts import names_text
from gpuprof.report.document import (
    CAUTION,
    AnswerTile,
    Cell,
    Column,
    Content,
    Document,
    Legend,
    Row,
    Section,
    Sentence,
    Tone,
    folded_table,
)
from gpuprof.report.shortened import shortened
from gpuprof.report.terminal import print_document
from gpuprof.report.tuned_text import search_content, sweep_content
from gpuprof.results import Measurement, Run
from gpuprof.text import KERNEL_ENDINGS, listed

#: Kernels that a table shows besides the library and the simplest, by how many tables there are: all of a
#: run fit on a screen of 40 lines. With more sizes the answers stand alone.
_MOST_KERNELS = {1: 5, 2: 5, 3: 3}
#: Answers, reasons and cautions that are shown.
_MOST_ANSWERS, _MOST_REASONS, _MOST_CAUTIONS = 24, 6, 4
_MOST_NAMED = 3
#: Facts of an answer for which a table of answers has no room.
_LONG_FACTS = {"launch", "not modelled", "chosen by"}
#: Said by the title, the line of counts, or the reasons.
_SAID = {"sim", "compiled", "incorrect", "failed", "over_limit", "noise"}
#: Signs of cautions by how grave they are.
_LEVELS: dict[Level, tuple[str, Tone]] = {
    "bad": ("✗", "bad"),
    "warning": (CAUTION, "warning"),
    "note": ("i", "muted"),
}
_PENDING = Cell("…")
Held = Sequence[tuple[Group, SizeLadder]]
#: Why a case was skipped that says nothing about it, by what is recorded of its parts.
_NOT_RUN = {
    "the executor had no time for it": "not counted within --timeout",
    "there was not enough memory": "not run for want of memory",
}


#: By what an answer says: its time's name, and its kernel's.
_TIMES = {
    "timed": ("time", "Fastest"),
    "modelled": ("modelled", "Fastest as modelled"),
    "bounded": ("at least", "Lowest bound"),
}


def run_title(run: Run) -> str:
    """What ran, on what, and whether that gave times."""
    what = listed([*dict.fromkeys(group.short for group in groups(run))])
    where = names_text(run)
    if not what:
        return f"{where}: no case finished"
    match run.backend:
        case "gpu":
            flushed = "flushed by writing" if run.environment.get("l2_flush") == "write" else "cold"
            return f"{what} on {where}, measured, L2 {flushed}"
        case "sim":
            bounded = "; lower bounds" if any(case.bounds for case in run.cases) else ""
            how = "; modelled" if any(case.model for case in run.cases) else bounded
            return f"{what} as on {where}, without a GPU: not timed{how}"
    return f"{what} compiled for {where}, not run"


def answer_document(
    run: Run, *, named: Collection[str] = (), pending: bool = False, hint: str = ""
) -> Document:
    """The answer of a run, in at most about 35 lines of 80 columns.

    Kernels that the user named are shown, or the reason why they have no figure. While counts and bounds are
    `pending`, nothing is known to limit a kernel, nor is the peak of one that may use tensor cores; the hint
    says where the rest stands.
    """
    run = replace(shortened(run), complete=run.complete or pending)
    if run.tuning is not None:
        return Document(run_title(run), content=tuple(search_content(run)))
    held = [(group, build_ladder(run, size)) for group in groups(run) for size in reversed(group.sizes)]
    ladders = [ladder for _, ladder in held]
    tables = list(_tables(run, held, named, pending))
    said = _SAID | {"beyond_peak"} if pending else _SAID
    found = [banner for banner in cautions(run) if banner.code not in said and banner.level != "note"]
    beside = [Sentence(f"{one.title}.", *_LEVELS[one.level]) for one in found[:_MOST_CAUTIONS]]
    beside = [*_missing(run, ladders, named), *beside]
    answers = list(_answers(run, held, pending))
    if len(ladders) > _MOST_ANSWERS:
        answers.append(Sentence(f"{len(ladders) - _MOST_ANSWERS} more sizes", tone="muted"))
    content: list[Content] = [*tables, *beside, *answers] if tables else [*answers, *beside]
    content += [Sentence(hint, tone="muted")] if hint else []
    return Document(run_title(run), content=(Section("", tuple(content)),))


def _answers(run: Run, held: Held, pending: bool) -> Iterator[Content]:
    """The answers; a table of them where no other one is shown."""
    answers = [(_heading(held, *one), answer_of(run, one[1])) for one in held[:_MOST_ANSWERS]]
    found = [answer_content(answer, heading, pending=pending) for heading, answer in answers]
    yield from islice(_not_modelled(answers, _MOST_NAMED), _MOST_CAUTIONS)
    yield from found if len(held) in _MOST_KERNELS else overview(found)


def _not_modelled(answers: Iterable[tuple[str, Answer]], most: int = 0) -> Iterator[Sentence]:
    """Why kernels have no modelled time, each reason once, with all of whom; each answer with its heading."""
    unknown: defaultdict[str, list[str]] = defaultdict(list)
    for heading, answer in answers:
        for name, reason in answer.unknown.items():
            unknown[reason].append(f"{name} {heading}")
    for reason, names in unknown.items():
        said = ": ".join(filter(None, ("Not modelled", listed(names, most), reason)))
        yield Sentence(said, CAUTION, "warning")


def overview(
    found: Sequence[AnswerTile | Sentence], anchors: Mapping[str, str] | None = None
) -> Iterator[Content]:
    """A line a size, of what fits in one, then sizes without an answer; a size leads to its anchor."""
    tiles = [item for item in found if isinstance(item, AnswerTile)]
    labels = dict.fromkeys(label for tile in tiles for label, _ in tile.facts if label not in _LONG_FACTS)
    columns = [
        Column(label, label not in ("limited by", "as fast"), 0 if label.startswith("vs ") else rank)
        for rank, label in enumerate(labels)
    ]
    rows, lead = [], tiles[0].lead if tiles else ""
    for tile in tiles:
        facts = dict(tile.facts)
        # What the head of a column says, `modelled` or `vs cuBLAS`, its cells need not repeat.
        texts = [facts.get(label, "–").replace(f" {label.removeprefix('vs ')}", "") for label in labels]
        size = Cell(tile.size, anchor=(anchors or {}).get(tile.size, ""))
        kernel = tile.kernel if tile.lead == lead else f"{tile.kernel} ({tile.lead.lower()})"
        rows.append(Row((size, Cell(kernel, tone="strong"), *map(Cell, texts))))
    first = (Column("size", right=False), Column(lead.lower(), right=False))
    yield from folded_table((*first, *columns), rows, _MOST_ANSWERS, "size", "The answer at each size")
    yield from (item for item in found if isinstance(item, Sentence))


def answer_content(answer: Answer, size: str, *, pending: bool = False) -> AnswerTile | Sentence:
    """The answer at a size, which may be told apart further; what limits it is not known while `pending`."""
    if answer.kind == "none":
        return Sentence(f"{size}: {answer.lead}.")
    facts = [(_TIMES[answer.kind][0], answer.time)]
    if answer.reference:
        facts.append((f"vs {answer.reference.name}", answer.reference.text))
    if answer.limiter and not pending:
        facts.append(("limited by", answer.limiter.brief))
    if answer.overhead:
        facts.append(("launch", answer.overhead.text))
    if answer.alike:
        facts.append(("as fast", answer.near(1)))
    said = ", ".join(
        answer.limiter.word if answer.limiter and label == "limited by" else text for label, text in facts
    )
    if answer.model is not None:  # the lead says that it is modelled, and the table how far it may be off
        said = said.replace(answer.time, answer.short_time, 1)
    if answer.unknown:
        facts.append(("not modelled", f"not modelled: {listed([*answer.unknown], 2)}"))
    if answer.alias:
        facts.append(("chosen by", answer.alias))
    action = ""
    if answer.action and not pending:
        is_said = answer.overhead is not None and answer.overhead.text in answer.action.text
        action = answer.action.brief if is_said else answer.action.text
    return AnswerTile(
        _TIMES[answer.kind][1],
        size,
        " ".join(filter(None, (answer.ran, answer.shape))),
        tuple(facts),
        said,
        action,
    )


def _tables(run: Run, held: Held, named: Collection[str], pending: bool) -> Iterator[Content]:
    most = _MOST_KERNELS.get(len(held), 0)
    for group, ladder in held if most else ():
        rows = _rows(run, ladder, most, named)
        if rows:
            scale = _scale([other for of, other in held if of.rate_is_flops == group.rate_is_flops], group)
            columns = _columns(run, group, ladder, _heading(held, group, ladder), scale, pending)
            yield filled_table(columns, [rows])


def _heading(held: Held, group: Group, ladder: SizeLadder) -> str:
    """The size; of several operations or types also which."""
    several = len({group.short for group, _ in held}) > 1
    return f"{group.short} {ladder.size.heading}" if several else ladder.size.heading


def _rows(run: Run, ladder: SizeLadder, most: int, named: Collection[str]) -> list[Subject]:
    """The best kernels, those that were named, the library, the simplest one, and ceilings if named."""
    own = [rung for rung in ladder.rungs if not rung.is_reference and status_of(run, rung.case).usable]
    rungs = [rung for rung in own if not rung.is_ceiling] or own
    rows = [Subject(run, rung.case, rung) for rung in rungs]
    if len(rungs) == 1:
        cases = [case for case in rungs[0].cases if status_of(run, case).usable]
        rows = [Subject(run, case, rungs[0]) for case in cases]
    ordered = sorted(rows, key=lambda row: (*standing(run, row.case), row.rung.kernel.rung))
    best: dict[tuple[object, ...], Subject] = {}
    for row in ordered:  # one that only chooses another runs that one's code
        best.setdefault((row.case.ran, row.case.block, *row.case.params.items()), row)
    found = list(best.values())
    # One row more takes no more room than saying that it is left out.
    shown = [
        row
        for number, row in enumerate(found)
        if number < most or (row.case.kernel in named and number < 2 * most)
    ]
    reference = [Subject(run, rung.case, rung) for rung in ladder.rungs if rung.kernel.id == ladder.reference]
    simplest = [row for row in rows[:1] if all(row.case.ran != other.case.ran for other in shown)]
    ceilings = [rung for rung in own if rung.kernel.id in named and rung not in rungs]
    return [*shown, *reference, *simplest, *(Subject(run, rung.case, rung) for rung in ceilings)]


def _columns(
    run: Run, group: Group, ladder: SizeLadder, heading: str, scale: tuple[float, str], pending: bool
) -> list[Filled]:
    name: Filled = (Column(heading, right=False), lambda row: Cell(_name(ladder, row)))
    limited: Filled = (Column("limited by", False, 1), lambda row: _PENDING if pending else limiter_cell(row))
    if run.backend == "none":
        keys = ("registers_per_thread", "shared_bytes", "spill_bytes", "theoretical_occupancy_pct")
        return [name, *(of_figure(key, rank) for rank, key in enumerate(keys))]
    if run.backend == "sim":
        counts = (of_figure("sector_ratio", 3), of_figure("bank_conflicts", 4))
        return [name, of_figure("model_us"), of_figure("bound_us", 2, "at least"), *counts, limited]
    share = "pct_of_limit"
    label = "peak"
    if not group.rate_is_flops and run.devices[group.device].measured_copy_bandwidth_gbps:
        share, label = "pct_of_copy", "copy"
    return [
        name,
        of_figure("median_us", label="time"),
        (
            Column(scale[1], True, 4),
            lambda row: _cell(
                headline_rate(run, row.case), row, lambda rate: numbers.significant(rate / scale[0])
            ),
        ),
        *_against(ladder),
        (
            Column(label, True, 5),
            lambda row: (
                _PENDING
                if pending
                and label == "peak"
                and not (row.case.executor_counters or row.case.counters or row.case.is_reference)
                else _cell(FIGURES[share], row, lambda pct: numbers.percent(pct, 2))
            ),
        ),
        limited,
    ]


def _against(ladder: SizeLadder) -> Iterator[Filled]:
    """How many times as fast as the library, and as the first rung that has a time."""
    timed = [rung for rung in ladder.rungs if rung.speed and not (rung.is_reference or rung.is_ceiling)]
    if ladder.reference is not None:
        yield _versus(ladder.rung(ladder.reference), ladder.reference_name, 2, 3)
    if len(timed) > 1:
        yield _versus(timed[0], timed[0].kernel.id, 3, 2)


def _versus(other: Rung, name: str, rank: int, digits: int) -> Filled:
    def read(row: Subject) -> Cell:
        time, base = FIGURES["median_us"].value(row), other.speed
        if base is None or time is None:
            return Cell("–")
        factor = base.median_us / time
        return Cell(numbers.speedup(factor, digits), factor)

    return Column(name, True, rank, f"How many times as fast as {name}."), read


def _cell(figure: Figure, row: Subject, write: Callable[[float], str]) -> Cell:
    value = figure.value(row)
    return Cell("–") if value is None else Cell(write(value), value)


def _scale(ladders: Sequence[SizeLadder], group: Group) -> tuple[float, str]:
    """The unit of rates: one for all tables of a kind."""
    flops = group.rate_is_flops
    rates = [rate(rung.speed, flops) for ladder in ladders for rung in ladder.rungs if rung.speed]
    units: numbers.Units = numbers.COMPUTE_UNITS if flops else ((1.0, "GB/s"),)
    return numbers.unit_for(max(rates, default=1.0), units)


def _name(ladder: SizeLadder, row: Subject) -> str:
    """The kernel that ran; of several blocks or parameters which."""
    if row.rung.is_reference:
        return ladder.reference_name
    name = f"{row.case.ran} {shape_of(row.rung, row.case)}".rstrip()
    return f"{name} (ceiling)" if row.rung.is_ceiling else name


def _missing(run: Run, ladders: Sequence[SizeLadder], named: Collection[str]) -> Iterator[Sentence]:
    """What has no figure, counted; with its reason where it is wrong, was named, or nothing has any."""
    cases = [(rung, case) for ladder in ladders for rung in ladder.rungs for case in rung.cases]
    usable = [case for _, case in cases if status_of(run, case).usable]
    told, counts = [], defaultdict[str, list[str]](list)
    for rung, case in cases:
        is_wrong = case.outcome != "skipped" and not case.over_limit
        if status_of(run, case).usable or case.kernel in named or is_wrong or not usable:
            told.append((rung, case))
        else:
            counts[_ending(case)].append(f"{case.kernel} {case.problem.label}")
    parts = []
    for how, names in counts.items():
        few = how != "not applicable" and len(names) <= _MOST_NAMED
        parts.append(f"{len(names)} {how}" + (f" ({', '.join(names)})" if few else ""))
    found = reasons(run, told, _MOST_NAMED)
    noisy, more = sum(map(is_noisy, usable)), len(found) - _MOST_REASONS
    parts += [f"{noisy} noisy (~)"] if noisy else []
    if parts:
        yield Sentence(", ".join(parts), tone="muted")
    yield from found[:_MOST_REASONS]
    if more > 0:
        yield Sentence(f"{more} more reason{'s' * (more > 1)}", tone="muted")


def reasons(run: Run, cases: Iterable[tuple[Rung, Measurement]], most: int = 0) -> list[Sentence]:
    """Why cases have no figures, and what stands beside those of others: each once, with all of whom."""
    told: dict[tuple[str, str, Tone], dict[tuple[str, frozenset[str]], dict[str, dict[str, None]]]] = {}
    for rung, case in cases:
        status = status_of(run, case)
        texts: list[tuple[str, str, Tone]] = [(f": {text}", CAUTION, "warning") for text in case.remarks]
        if not status.usable:
            why = case.reason or "no reason was recorded"
            texts.append((f" {status.word}: {why}", status.mark, status.tone))
        who = case.kernel, frozenset(shape_of(rung, other) for other in rung.cases)
        for text in texts:
            sizes = told.setdefault(text, {}).setdefault(who, {})
            sizes.setdefault(case.problem.label, {})[shape_of(rung, case)] = None
    found = []
    for (said, mark, tone), kernels in told.items():
        names = defaultdict[str, list[str]](list)
        for (kernel, every), sizes in kernels.items():
            for size, shapes in sizes.items():
                for shape in [""] if shapes.keys() == every else shapes:
                    names[f"{kernel} {shape}".strip()].append(size)
        whom = [f"{name} {', '.join(sizes)}" for name, sizes in names.items()]
        found.append(Sentence(f"{listed(whom, most)}{said}", mark, tone))
    return found


def _ending(case: Measurement) -> str:
    """How a case ended that has no figure and is not wrong."""
    if case.outcome != "skipped":
        return f"exceeding the {exceeded_limit(case)}"
    if case.is_reference:
        return "not available as reference"
    return _NOT_RUN.get(case.timing_reason or "", "not applicable")


#: Said below the tables in any case, with each row's reason.
_SAID_BY_ROWS = {"incorrect", "failed", "over_limit"}
#: Said by the title; only what to do about it is left.
_SAID_BY_TITLE = {"sim", "compiled"}
_NAMING = ("-k", "--kernel")


def show_run(
    run: Run,
    *,
    file: TextIO,
    table: bool = False,
    pending: bool = False,
    hint: str = "",
    width: int | None = None,
    color: bool | None = None,
) -> None:
    """Print a run: its answer, or every row in a table.

    Width and colour are those of `print_document`, the others those of `answer_document`.
    """
    if table:
        document = run_report(run)
    else:
        document = answer_document(run, named=_named(run.argv), pending=pending, hint=hint)
    print_document(document, file=file, width=width, color=color)


def _named(argv: tuple[str, ...]) -> frozenset[str]:
    """Kernels that a command line names, by their ids: those of files are called as the files."""
    given = [value for option, value in pairwise(argv) if option in _NAMING]
    given += [text.partition("=")[2] for text in argv if text.startswith("--kernel=")]
    names = (name.partition(":")[0] for text in given for name in text.split(","))
    return frozenset(PurePath(name).stem if name.endswith(KERNEL_ENDINGS) else name for name in names)


def run_report(run: Run) -> Document:
    """Everything that a terminal or Markdown shows of a run."""
    run = shortened(run)
    content: list[Content] = list(search_content(run))
    content += [Section(group.title, tuple(_group(run, group))) for group in groups(run)]
    notes = tuple(_note(banner) for banner in cautions(run) if banner.code not in _SAID_BY_ROWS)
    content += [Legend(), *([Section("", notes)] if notes else [])]
    facts = ((f"gpuprof {run.tool.version}", run.created_utc),)
    return Document(run_title(run), facts, tuple(content))


def _note(banner: Banner) -> Sentence:
    short = banner.level == "note" or banner.code in _SAID_BY_TITLE
    texts = (f"{banner.title}.", "" if short else banner.detail, banner.fix)
    return Sentence(" ".join(filter(None, texts)), *_LEVELS[banner.level])


def _group(run: Run, group: Group) -> Iterator[Content]:
    ladders = [build_ladder(run, size) for size in reversed(group.sizes)]
    answers = [(ladder.size.heading, answer_of(run, ladder)) for ladder in ladders]
    yield from (answer_content(answer, heading) for heading, answer in answers)
    yield Section("", (case_table(run, ladders),))
    yield from reasons(
        run, ((rung, case) for ladder in ladders for rung in ladder.rungs for case in rung.cases)
    )
    yield from _not_modelled(answers)
    yield from sweep_content(run, group, briefly=True)
