# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a modelled time may be said to tell: its interval, which of two is less, where it goes.

Two versions of one kernel on one card share most of what the model errs by. The factor between two modelled
times is therefore as uncertain as the upper side of either's interval, and no more: of the rungs of every
ladder and those that they come from, docs/data/model-errors.csv has nine of ten within it
(tests/unit/test_models.py). A card that nobody measured has wider intervals, and is told by the same rule.
"""

import math
from collections.abc import Mapping

from gpuprof.analysis import counts, numbers
from gpuprof.results import Measurement, Model

#: What a modelled time goes into, by the name of the reason: in short, and what it is.
REASONS = {
    "issue": ("issue", "instructions, and waiting for a free issue slot"),
    "dependency": ("waiting for results", "results of arithmetic, tensor cores and shared memory"),
    "latency": ("memory latency", "waiting for answers of global memory"),
    "bandwidth": ("memory bandwidth", "requests to global memory in a queue"),
    "barrier": ("barrier", "waiting for other warps of the block"),
    "tail": ("tail", "the last blocks, while other SMs are idle"),
    "launch": ("launch", "an empty launch, cold code and arguments"),
}
#: The stall reasons of Nsight Compute that say of warps what a reason says of the time. To it memory's
#: latency and bandwidth are one, and the tail and the launch none.
_STALLS = {
    "issue": ("selected", "not_selected", "dispatch_stall", "math_pipe_throttle", "no_instruction"),
    "dependency": ("wait", "gmma", "short_scoreboard", "mio_throttle", "branch_resolving", "imc_miss"),
    "latency": ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar"),
    "barrier": ("barrier",),
}


def modelled_text(model: Model) -> str:
    """A modelled time with its interval: `2.5 ms modelled (2.1 ms–3.3 ms)`."""
    return model_interval(model).replace(" (", " modelled (")


def model_interval(model: Model) -> str:
    """The same under a head that says that it is modelled; at its bound as exact as that stands beside it."""
    digits = 3 if model.low_us >= model.median_us else 2
    median, low, high = (numbers.time_us(us, digits) for us in (model.median_us, model.low_us, model.high_us))
    unit = high.partition(" ")[2]
    return f"{median} ({low.removesuffix(f' {unit}')}–{high})"


def difference_error(one: Model, other: Model) -> float:
    """By what logarithm the factor between two modelled times may be off."""
    return max(math.log(each.high_us / each.median_us) for each in (one, other))


def too_near(one: Model, other: Model) -> bool:
    """Whether the model cannot tell which of two takes less."""
    return abs(math.log(other.median_us / one.median_us)) <= difference_error(one, other)


def disagreement(case: Measurement) -> str:
    """That a card measured a time outside of the model's interval, as a clause; empty where the two agree."""
    timing = case.timing.cold if case.timing and case.outcome == "ok" else None
    model = case.model
    if timing is None or model is None or model.low_us <= timing.median_us <= model.high_us:
        return ""
    slower = timing.median_us > model.high_us
    why = (
        "something slows it down that the model does not know" if slower else "the model takes it for slower"
    )
    factor = numbers.ratio(timing.median_us / model.median_us)
    return f"measured {factor} its modelled time, {model_interval(model)}: {why}"


def reasons_text(reasons: Mapping[str, float], most: int = 3) -> str:
    """The largest shares of a modelled time: `issue 62 %, memory latency 21 %`."""
    found = sorted(((share, name) for name, share in reasons.items() if name in REASONS), reverse=True)
    return ", ".join(f"{REASONS[name][0]} {numbers.percent(100 * share, 2)}" for share, name in found[:most])


def stalled(case: Measurement) -> Mapping[str, float]:
    """What Nsight Compute saw of a modelled time's reasons, as shares of all cycles of resident warps."""
    spent = dict(counts.stalls(case))
    return {
        reason: sum(spent.get(f"stall_{name}", 0.0) for name in names) / 100
        for reason, names in (_STALLS if spent else {}).items()
    }
