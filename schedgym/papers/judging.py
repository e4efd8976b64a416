"""The rules that judge claims: findings of checks, comparisons of paired draws, and verdicts.

A comparison is a number with the 95% interval of the draws. Rules judge the interval as well as the number;
a single draw has no interval, and its number decides alone. What is claimed is not reproduced only if the
interval excludes it, or is so narrow that it would have shown what is claimed; else it cannot be told. A
sentence over many settings is about the mean of all of them, and none of them may show the contrary
(:func:`pool`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.problem import Statement
from schedgym.errors import SchedgymError, UnknownName
from schedgym.evaluation.comparison import Evaluation
from schedgym.evaluation.statements import (
    CORRECTED,
    HOLDS,
    IN_PART,
    NOT_REPRODUCED,
    PARTLY,
    REFUTED,
    Verdict,
    judge_gain,
)
from schedgym.evaluation.statistics import Values, estimate, estimate_difference

Shown = Mapping[str, Any]  # an instance, as a finding shows it
Confirm = Callable[[Shown], bool]

NOT_TOLD, NOT_JUDGED = Verdict.NOT_TOLD, Verdict.NOT_JUDGED
MEASURED = (HOLDS, IN_PART, NOT_REPRODUCED, NOT_TOLD, NOT_JUDGED)

PERCENT, POINTS = "%", " points"
SEEN = 0.05  # a smaller difference is not seen in a figure: it need not be shown where no size is stated
GENERALLY = 0.9  # of the cases: what a paper says of them "generally", "usually"
SHOWN = 6  # largest number of comparisons that are listed one by one
DOUBLED = 1.0  # change from which on percentages are written as factors


@dataclasses.dataclass(frozen=True)
class Finding:
    """Result of checking a claim in one run.

    Attributes:
        verdict: verdict of this run.
        evidence: one line that says what was searched or measured.
        counterexample: the instance that contradicts the claim as printed, made of numbers, texts and lists;
            exact fractions are texts ("5/2"). Required for "refuted" and "holds with a correction".
        witness: the instance that proves a claim of existence.
        figures: what was counted or measured, by name.
    """

    verdict: Verdict
    evidence: str
    counterexample: Shown | None = None
    witness: Shown | None = None
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Judged:
    """A claim of the paper about a figure, with the measurement and the verdict of this run.

    Attributes:
        claim: what the paper says, in our words.
        measured: measured values with intervals.
        verdict: that of a measurement, one of MEASURED; of a statement that is a registered claim, any.
        name: name of the claim, if it is registered as one; "" else.
    """

    claim: str
    measured: str
    verdict: str
    name: str = ""

    def __post_init__(self) -> None:
        known = tuple(Verdict) if self.name else MEASURED
        if self.verdict not in known:
            raise UnknownName("verdict", self.verdict, known)


def judge(good: object) -> Verdict:
    """Return "holds" if ``good`` is true, else "not reproduced"."""
    return HOLDS if good else NOT_REPRODUCED


def verdict_of(cases: Iterable[str]) -> Verdict:
    """Combine the verdicts of a statement's cases.

    Returns:
        "holds" if it holds in all of them, "in part" if it holds, at least in part, in half of them or more;
        "cannot be told" if it may do so in half of them, as some cannot be told; else "not reproduced".

    Raises:
        ValueError: there is no case.
    """
    found = list(cases)
    if not found:
        raise ValueError("a statement without a case has no verdict")
    if all(verdict == HOLDS for verdict in found):
        return HOLDS
    partly, untold = (sum(own in few for own in found) for few in ((HOLDS, IN_PART), (NOT_TOLD,)))
    if 2 * partly >= len(found):
        return IN_PART
    return NOT_TOLD if 2 * (partly + untold) >= len(found) else NOT_REPRODUCED


def confirm_finding(name: str, finding: Finding, confirm: Confirm | None) -> None:
    """Check that a verdict against the printed claim has an instance, and that every instance is confirmed.

    Raises:
        SchedgymError: a finding contradicts itself: its instance is missing or does not show what it should.
    """
    against = finding.verdict in (REFUTED, CORRECTED)
    if against and finding.counterexample is None:
        raise SchedgymError(f"{name}: {finding.verdict}, and no counterexample")
    if not against and finding.counterexample is not None:
        raise SchedgymError(f"{name}: {finding.verdict}, and a counterexample")
    for instance in (finding.counterexample, finding.witness):
        if instance is not None and (confirm is None or not confirm(instance)):
            raise SchedgymError(f"{name}: {dict(instance)} is not confirmed")


# comparisons -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Effect:
    """The effect of something: a share by which one quantity differs from another one, or from 0.

    Attributes:
        name: what is compared with what; comparisons of the same name are reported together.
        value: the share; nan if there is nothing to compare.
        low, high: ends of its 95% interval; nan if there is none.
        place: e.g. "at 50 servers".
        unit: PERCENT of the other quantity, or POINTS for a difference of two shares.
        verdict: the verdict that a rule gave.
        cases: the comparisons in the settings of which this one is the mean; none if there is one setting.
        contrary: in how many of them the contrary is significant.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    place: str = ""
    unit: str = PERCENT
    verdict: str = NOT_REPRODUCED
    cases: tuple[Effect, ...] = ()
    contrary: int = 0

    @property
    def above(self) -> bool:
        """True if the difference is significantly above 0."""
        return self.value > 0.0 and not self.low <= 0.0

    @property
    def below(self) -> bool:
        """True if the difference is significantly below 0."""
        return (-self).above

    def __neg__(self) -> Effect:
        return dataclasses.replace(self, value=-self.value, low=-self.high, high=-self.low)

    def __str__(self) -> str:
        text = number(self.value, self.unit)
        if not math.isnan(self.low):
            # the interval is in the unit of the number, whatever its own size
            factor = self.unit == PERCENT and self.value >= DOUBLED
            ends = (_factor(end) if factor else _hundredths(end) for end in (self.low, self.high))
            text += f" ({' to '.join(ends)})"
        if self.cases:
            text += f" overall ({_range(self.cases)}, {_counted(self.cases)}, contrary in {self.contrary})"
        return f"{text} {self.place}".rstrip()


def where(setting: Mapping[str, Any]) -> str:
    """Describe the place of a comparison by its swept parameters and their values."""
    values = (f"{value:g}" if isinstance(value, float) else str(value) for value in setting.values())
    return "at " + ", ".join(map(" ".join, zip(setting, values, strict=True))) if setting else ""


def excess(name: str, own: Values, other: Values | float, place: str = "") -> Effect:
    """Return by which share one mean exceeds another: that of ``own`` divided by that of ``other``, minus 1.

    Args:
        name: name of the comparison.
        own: values by draw; draws in which either value is nan are left out.
        other: values of the same draws, or a constant.
        place: place of the comparison.
    """
    found = estimate_difference(own, other, relative=True)
    return Effect(name, found.value, found.low, found.high, place)


def against(name: str, own: Values, others: Mapping[str, Values]) -> list[Effect]:
    """Compare the values of the draws with those of each of several others, by name."""
    return [excess(f"{name} against {other}", own, values) for other, values in others.items()]


def excess_overall(name: str, settings: Mapping[str, tuple[Values, Values]]) -> tuple[Effect, list[Effect]]:
    """Return by which share one mean exceeds another in several settings together, and in each of them.

    The settings count equally. The draws are the same in all of them, and are resampled with all settings.

    Args:
        name: name of the comparison.
        settings: place of each setting -> values by draw, and those that they are compared with.
    """
    cases = [excess(name, own, other, place) for place, (own, other) in settings.items()]
    if any(math.isnan(case.value) for case in cases):
        return Effect(name, math.nan), cases
    scaled = [np.array([own, other]) / np.nanmean(other) for own, other in settings.values()]
    return excess(name, *np.sum(scaled, axis=0)), cases


def settings_of(played: Evaluation, without: str = "") -> list[dict[str, Any]]:
    """Return the settings in ascending order, without one swept parameter."""
    found: list[dict[str, Any]] = []
    for setting, _ in played.parts():
        setting.pop(without, None)
        if setting not in found:
            found.append(setting)
    return sorted(found, key=lambda setting: [*setting.values()])


def compare_overall(
    played: Evaluation, own: str, other: str, read: Callable[..., Values]
) -> tuple[Effect, list[Effect]]:
    """Compare what ``read`` returns of two policies in the settings of runs: :func:`excess_overall`."""
    settings = settings_of(played)
    pairs = {where(setting): (read(own, **setting), read(other, **setting)) for setting in settings}
    return excess_overall(f"{own} against {other}", pairs)


def pool(whole: Effect, cases: Sequence[Effect], rule: Rule, contrary: Rule) -> Effect:
    """Judge what is claimed of many settings by the effect in all of them together.

    The verdict is "in part" instead of "holds" if a setting shows the contrary, and at least "in part" if the
    settings, one by one, have it: :func:`verdict_of`. A single setting is judged alone.

    Args:
        whole: the effect in all settings together.
        cases: the effect in each of them.
        rule: judges these effects.
        contrary: gives "holds" for a setting that shows the contrary.
    """
    judged = tuple(dataclasses.replace(case, verdict=rule(case)) for case in cases)
    if len(judged) == 1:
        return judged[0]
    verdict, against = rule(whole), sum(contrary(case) == HOLDS for case in cases)
    if verdict == HOLDS:
        verdict = IN_PART if against else HOLDS
    elif verdict_of(case.verdict for case in judged) in (HOLDS, IN_PART):
        verdict = IN_PART
    return dataclasses.replace(whole, verdict=verdict, cases=judged, contrary=against)


def average(name: str, shares: Values, unit: str = POINTS, place: str = "") -> Effect:
    """Average over the draws a share, or a difference of two shares."""
    found = estimate(shares)
    return Effect(name, found.value, found.low, found.high, place, unit)


def grows(
    name: str,
    values: Sequence[Floats] | Floats,
    unit: str = PERCENT,
    place: str = "",
    *,
    falls: bool = False,
    generally: bool = False,
) -> Effect:
    """Compare the values at the last place with those at the first.

    The verdict is "holds" if the change is significant and no step goes significantly the other way, and
    "in part" if only the change is significant.

    Args:
        name: name of the comparison.
        values: [places, draws], or of several settings, which count equally, [settings, places, draws].
        unit: PERCENT of each draw's value at the first place; POINTS: the values are shares.
        place: place of the comparison.
        falls: True if a decrease is claimed.
        generally: True if this is claimed of most steps only: GENERALLY of them suffice, by their means.
    """
    table = np.asarray(values, dtype=float)
    table = table[np.newaxis] if table.ndim == 2 else table
    if unit == PERCENT:
        table = table / table[:, :1] - 1.0
    sign = -1.0 if falls else 1.0
    steps = [average(name, sign * step, unit) for own in table for step in np.diff(own, axis=0)]
    if generally:
        so = sum(step.value > 0.0 for step in steps)
        back, place = so < GENERALLY * len(steps), f"{place} ({so} of {len(steps)} steps so)".lstrip()
    else:
        back = any(step.below for step in steps)
    change = average(name, np.mean(table[:, -1] - table[:, 0], axis=0), unit, place)
    verdict = (lower() if falls else larger())(change)
    return dataclasses.replace(change, verdict=IN_PART if verdict == HOLDS and back else verdict)


# rules -----------------------------------------------------------------------------------------------

Rule = Callable[[Effect], str]


def between(least: float, most: float) -> Rule:
    """Return a rule: "holds" if the interval lies between two shares, "in part" if only the number does."""

    def rule(found: Effect) -> str:
        if not least <= found.value <= most:
            possible = found.low <= most and found.high >= least
            return NOT_TOLD if possible and found.high - found.low > most - least else NOT_REPRODUCED
        return IN_PART if found.low < least or found.high > most else HOLDS

    return rule


def level(share: float) -> Rule:
    """Return a rule: "holds" if the interval is within a share of 0, "in part" if only the number is."""
    return between(-share, share)


def at_most(share: float) -> Rule:
    """Return a rule for a limit that a paper states.

    It gives "holds" if the whole interval is at most ``share``, "in part" if the number is at most twice as
    much, so that what is stated is at least half of what is measured (:func:`larger` is the counterpart).
    """

    def rule(found: Effect) -> str:
        if not found.value <= share / PARTLY:
            possible = found.low <= share
            return NOT_TOLD if possible and found.high - found.value > share else NOT_REPRODUCED
        return IN_PART if found.value > share or found.high > share else HOLDS

    return rule


def about(share: float) -> Rule:
    """Return a rule for a share that a paper states.

    It gives "holds" if the interval has it, "in part" if the number is at least half of it and at most twice.
    """

    def rule(found: Effect) -> str:
        near = sorted((PARTLY * share, share / PARTLY))
        if not near[0] <= found.value <= near[1]:
            return between(*near)(found)
        return HOLDS if found.low <= share <= found.high or found.value == share else IN_PART

    return rule


def larger(by: float = 0.0, most: float = math.inf) -> Rule:
    """Return the rule that :func:`~schedgym.evaluation.statements.judge_gain` gives for a stated size."""

    def rule(found: Effect) -> str:
        verdict = judge_gain(found.value, found.low, by, most)
        possible = found.high > PARTLY * by
        untold = verdict == NOT_REPRODUCED and possible and found.value - found.low > (by or SEEN)
        return NOT_TOLD if untold else verdict

    return rule


def lower(by: float = 0.0) -> Rule:
    """Return the rule of :func:`larger` for a decrease by a share."""
    rule = larger(by)
    return lambda found: rule(-found)


# statements ------------------------------------------------------------------------------------------


def judge_claim(
    claim: str, found: Iterable[Effect], rule: Rule | None = None, *, what: str = "", more: str = ""
) -> Judged:
    """Judge comparisons, and combine them into one judged statement.

    Args:
        claim: the claim in our words.
        found: the comparisons.
        rule: judges each comparison; None: the comparisons have their verdicts already.
        what: text before the comparisons that says what is compared.
        more: text after the comparisons.
    """
    judged = [entry if rule is None else dataclasses.replace(entry, verdict=rule(entry)) for entry in found]
    measured = (f"{what}: " if what else "") + tell(judged) + (f"; {more}" if more else "")
    return Judged(claim, measured, verdict_of(entry.verdict for entry in judged))


def judge_better(played: Evaluation, claim: str, *statements: Statement) -> Judged:
    """Judge the claim that a policy is better than others, over all settings and rivals, as one statement.

    The verdict is "holds" if every statement holds against every rival over all settings together, that is,
    if the paired difference is significant (95%) and as large as stated, and is significantly contrary in no
    setting; it is "in part" if only some of them do, or if differences are smaller than stated.

    Args:
        played: the runs, with all the policies.
        claim: the claim in our words.
        statements: the comparisons to be made; their texts are not used.

    Raises:
        UnknownName: a policy was not run.
    """
    for policy in (name for said in statements for name in (said.policy, *said.rivals)):
        if policy not in played.policies:
            raise UnknownName("policy", policy, played.policies)
    found = []
    for said in statements:
        better, worse = (lower, larger) if played.metric_of(said.metric).sign > 0 else (larger, lower)
        for rival in said.rivals:
            read = functools.partial(played.metric, name=said.metric)
            overall = compare_overall(played, said.policy, rival, read)
            found.append(pool(*overall, better(said.by), worse()))
    metrics = dict.fromkeys(said.metric.replace("_", " ") for said in statements)
    return judge_claim(claim, found, what=", ".join(metrics))


def tell(found: Sequence[Effect]) -> str:
    """List comparisons if they are few, else their range by name, or over all names if those are many."""
    groups: dict[str, list[Effect]] = {}
    for entry in found:
        groups.setdefault(entry.name, []).append(entry)
    if len(found) <= SHOWN:
        return "; ".join(f"{name} {', '.join(map(str, own))}".lstrip() for name, own in groups.items())
    if len(groups) > SHOWN:
        first, last = (end(found, key=lambda entry: entry.value) for end in (min, max))
        return f"from {first.name} {first} to {last.name} {last}, {_counted(found)}"
    return "; ".join(f"{name} {_range(own)}, {_counted(own)}".lstrip() for name, own in groups.items())


def tell_mean(values: Values, form: str = ".0f", unit: str = "") -> str:
    """Write the mean of the draws, with its interval if there are several: "12 s (10 to 15)"."""
    mean, low, high = estimate(values)
    text = f"{mean:{form}}{unit}"
    return text if math.isnan(low) else f"{text} ({low:{form}} to {high:{form}})"


def number(value: float, unit: str = PERCENT) -> str:
    """Write a share in points or percent, or as a factor if it is at least a doubling."""
    if math.isnan(value):
        return "none to compare"
    if unit == PERCENT and value >= DOUBLED:
        return f"{_factor(value)} times"
    return _hundredths(value) + unit


def _range(found: Sequence[Effect]) -> str:
    values = [entry.value for entry in found]
    ends = (number(end, found[0].unit) for end in (min(values), max(values)))
    return " to ".join(dict.fromkeys(ends))


def _counted(found: Sequence[Effect]) -> str:
    held, partly = (sum(entry.verdict == verdict for entry in found) for verdict in (HOLDS, IN_PART))
    return f"as claimed in {held} of {len(found)} cases" + (f", in part in {partly}" if partly else "")


def _factor(share: float) -> str:
    return f"{1.0 + share:,.0f}" if share >= 99.0 else f"{1.0 + share:.3g}"


def _hundredths(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text
