"""What :func:`schedgym.advise` says: the verdict on a log, and its limits; sentences.yaml has the words."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgym.advice.comparison import RELATIVE, LoadComparison, is_idle, waiting
from schedgym.advice.logs import Part, all_at_once, busiest, loads
from schedgym.documents import read_yaml
from schedgym.evaluation.wording import interval_text, outcome_text
from schedgym.traces.base import Trace

if TYPE_CHECKING:
    import pandas as pd

AGENT = "agent"
FEW = 8  # windows
#: what a policy knows, in words
KNOWN = {"execution": "how long jobs run", "value": "what jobs are worth", "deadline": "deadlines"}
WORDS = Path(__file__).with_name("sentences.yaml")


@functools.cache
def _words() -> dict[str, str]:
    return dict(read_yaml(WORDS))


def _say(name: str, **values: Any) -> str:
    return _words()[name].format(**values)


def say_idle(own: LoadComparison, ramp: Sequence[LoadComparison], trace: Trace) -> str:
    """The sentence on a log in which next to nothing waits at its own load.

    Args:
        own: the policies at the log's own load.
        ramp: the same at higher loads; empty if there are too few jobs.
        trace: the log.
    """
    shares = loads(trace)
    whom = _say("under one", reference=own.reference)
    who = waiting(trace, own)
    if not who:
        whom = _say("under all")
    elif who == {AGENT}:
        whom = _say("under all but the agent")
    load = _say("idle load", share=busiest(shares)) if shares else ""
    text = _say("idle", idle=own.outcome.idle, load=load, whom=whom)
    if not ramp:
        return text + _say("too few jobs")
    last, idle = ramp[-1], is_idle(trace, ramp[-1])
    if last.differ and not idle:
        return text + _say("differ at higher load", factor=last.factor, best=say_best(last))
    name = "idle at higher load" if idle else "equal at higher load"
    text += _say(name, factor=last.factor, reference=own.reference)
    taken = all_at_once(trace)
    return text + ("." if max(taken.values()) > 1 else _say("all at once", share=busiest(taken, " of it")))


def say_best(comparison: LoadComparison) -> str:
    """The sentence on the best policy."""
    table, outcome, reference = comparison.table(), comparison.outcome, comparison.reference
    first, second = table.iloc[0], table.iloc[1]
    show = functools.partial(outcome_text, outcome)

    def gain(what: str, factor: float) -> tuple[float, float]:  # as a number above 0
        ends = [-outcome.sign * factor * first[f"{what}_{end}"] for end in ("low", "high")]
        return min(ends), max(ends)

    least = gain("difference", 1.0)[0]
    less, most = ("less", "shortest") if outcome.better == "min" else ("more", "largest")
    slight = first["policy"] != reference and least > 0 and abs(first["relative"]) <= RELATIVE
    values = {"policy": first["policy"], "reference": reference, "windows": len(comparison.run.windows)}
    if first["policy"] == reference or slight:
        mean = show(float(comparison.run.means(reference).mean()))
        limit = _say("by more than", percent=100 * RELATIVE) if slight else ""
        text = _say("reference is best", limit=limit, says=outcome.says.format(mean), **values)
    elif not least > 0:
        text = _say(
            "may be chance",
            most=most,
            outcome=outcome.name,
            mean=show(first["mean"]),
            base=show(first["mean"] - first["difference"]),
            chance=_say("chance") if np.isfinite(least) else "",
            interval=interval_text(first["difference_low"], first["difference_high"], show),
            **values,
        )
    else:
        interval = f"{interval_text(*gain('difference', 1.0), show)} {less}"
        if gain("relative", 100.0)[0] > 0:  # else the two intervals would contradict each other
            interval = f"{interval_text(*gain('relative', 100.0))}%"
        says, percent = outcome.says.format(show(first["mean"])), abs(100 * first["relative"])
        text = _say("best", says=says, percent=percent, less=less, interval=interval, **values)
    ends = np.array(comparison.against(first["policy"], second["policy"])[1:])
    alike = not (-outcome.sign * ends > 0).all()
    if not slight and reference not in (first["policy"], second["policy"]) and alike:
        text += _say("like the second", policy=second["policy"], mean=show(second["mean"]))
    bound = comparison.run.bound
    if bound is not None and bound > 0:
        text += _say("bound", less=less, bound=show(bound))
    return text + "." + ("" if slight else _say_knowledge(comparison, table))


def say_busiest(trace: Trace) -> str:
    """The sentence on the busiest resource; "" where jobs take one only."""
    shares = loads(trace)
    return _say("busiest", share=busiest(shares)) if len(shares) > 1 else ""


def _say_knowledge(comparison: LoadComparison, table: pd.DataFrame) -> str:
    """The best of the policies that need not know durations, or the like, if the best one does."""
    needed, rest = table.iloc[0]["knows"], table[table["knows"] == ""]
    if not needed or rest.empty:
        return ""
    what = " and ".join(KNOWN.get(name, name) for name in needed.split(", "))
    best, outcome = rest.iloc[0], comparison.outcome
    base = table[table["policy"] == comparison.reference].iloc[0]
    if outcome.sign * (best["mean"] - base["mean"]) >= 0:
        return _say("must know, none better", what=what, reference=base["policy"])
    return _say("must know", what=what, policy=best["policy"], mean=outcome_text(outcome, best["mean"]))


def say_limits(
    trace: Trace, comparison: LoadComparison, parts: Sequence[Part], left_out: Sequence[str]
) -> list[str]:
    """The sentences on what the result does not say.

    Args:
        trace: the log.
        comparison: the policies at its own load.
        parts: the parts of it that were run.
        left_out: what the model leaves out.
    """
    windows, outcomes = len(comparison.run.windows), comparison.run.outcomes
    notes = []
    shares = loads(trace)
    if max(shares.values(), default=0.0) > 1.0:
        more = _say("overload in parts") if len(parts) > 1 else "."
        notes.append(_say("overload", share=busiest(shares), parts=more))
    which = "too short" if windows < 2 else "few windows" if windows < FEW else "windows"
    notes += [_say(which, windows=windows), _say("together")]
    if unfinished := [name for name, waits in outcomes.items() if not np.isfinite(waits).all()]:
        notes.append(_say("unfinished", policies=", ".join(unfinished)))
    return [*notes, _say("not in the model", what="; ".join(left_out))]
