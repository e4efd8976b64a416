"""Comparisons: policies on the same episodes, and the only statistics of what they reached.

A :class:`Comparison` is one metric in one setting: policies x trainings x episodes. An :class:`Evaluation` is
all that an evaluation or a sweep has run: a tidy frame, what it is of, and a comparison of each setting.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from schedgym.core.arrays import Flags, Floats
from schedgym.core.problem import Metric, Problem
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.statistics import (
    Estimate,
    estimate,
    estimate_difference,
    improvements,
    interquartile_mean,
    performance_ratios,
)
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

NAN = float("nan")

CERTIFICATES = ("bound", "gap", "truncated")  # metrics of every problem, of which less is better
DIFFERENCES = "difference low high relative relative_low relative_high won tied".split()
LEAST_RESAMPLES, MOST_RESAMPLES = 400, 10_000


def resamples_of(values: int, draws: int | None = None) -> int:
    """The number of bootstrap samples of so many values, for which about ``draws`` numbers are drawn."""
    if draws is None:
        return MOST_RESAMPLES
    return int(np.clip(draws // max(values, 1), LEAST_RESAMPLES, MOST_RESAMPLES))


@dataclasses.dataclass(frozen=True)
class Difference:
    """A policy minus another one, on the episodes that both ran.

    Attributes:
        difference: of the means, in the metric's unit.
        relative: the same over the absolute mean of the other; nan where that is 0.
        won: share of the episodes in which the policy is better.
        tied: share of those in which both are equal.
    """

    difference: Estimate = Estimate()
    relative: Estimate = Estimate()
    won: float = NAN
    tied: float = NAN

    def row(self, before: str = "") -> dict[str, float]:
        """The numbers under the names of DIFFERENCES, with ``before`` in front of ``low`` and ``high``."""
        ends = self.difference.row("difference", before) | self.relative.row("relative", "relative_")
        return {**ends, "won": self.won, "tied": self.tied}


@dataclasses.dataclass(frozen=True)
class Improvement:
    """The trainings of one configuration against the best baseline, on the same episodes.

    Attributes:
        rival: label of the baseline with the best mean; "": there is none.
        rival_mean: its mean.
        value: interquartile mean over the trainings of their mean objectives.
        difference: the same of the differences to the baseline.
        relative: the same over the baseline's mean; without an interval where that mean may be 0.
        probability: that a training is better than the baseline in an episode; see
            :func:`~schedgym.evaluation.statistics.improvements`.
    """

    rival: str = ""
    rival_mean: float = NAN
    value: Estimate = Estimate()
    difference: Estimate = Estimate()
    relative: Estimate = Estimate()
    probability: Estimate = Estimate()


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """One metric of several policies on the same episodes of one setting.

    Attributes:
        metric: the metric.
        tables: label -> its values, [trainings, episodes]; one row if it is not trained; nan: not run.
        bounds: on the optimum of each episode, [episodes]; nan, or no array: none.
        confidence: confidence level of the intervals.
        together: number of differences whose intervals hold together with this level (Bonferroni).
        draws: numbers drawn for an interval at most; None: those of 10,000 bootstrap samples.
    """

    metric: Metric
    tables: Mapping[str, Floats]
    bounds: Floats | None = None
    confidence: float = 0.95
    together: int = 1
    draws: int | None = None

    def _estimate(
        self, table: Floats, *others: Floats, by: Callable[..., Estimate] = estimate, **more: Any
    ) -> Estimate:
        how = {"confidence": self.confidence, "resamples": resamples_of(table.size, self.draws)}
        return by(table, *others, **(how | more))

    def complete(self, label: str) -> Flags:
        """True for each episode that all trainings of a policy ran, [episodes]."""
        return np.asarray(~np.isnan(self.tables[label]).any(axis=0))

    def values(self, label: str) -> Floats:
        """A policy's values in the episodes that all its trainings ran, [trainings, episodes]."""
        return self.tables[label][:, self.complete(label)]

    def mean(self, label: str) -> Estimate:
        """The mean over trainings and episodes."""
        return self._estimate(self.values(label))

    def bound(self, label: str) -> Floats:
        """The bounds of the episodes that a policy ran, [episodes]; empty if one of them has none."""
        known = np.empty(0) if self.bounds is None else self.bounds[self.complete(label)]
        return np.empty(0) if np.isnan(known).any() else known

    def gap(self, label: str, relative: bool = False) -> Estimate:
        """Distance of the mean from the mean bound, or as a share of that; nan without a (positive) bound."""
        bounds = self.bound(label)
        if not bounds.size or (relative and not bounds.mean() > 0):
            return Estimate()
        gaps = self.metric.sign * (self.values(label) - bounds)
        return self._estimate(gaps, *([bounds] if relative else []))

    def against(self, label: str, other: str) -> Difference:
        """A policy against another one, whose trainings count by their mean; nan without common episodes."""
        both = self.complete(label) & self.complete(other)
        if not both.any():
            return Difference()
        own, rival = self.tables[label][:, both], self.tables[other][:, both].mean(axis=0)
        better = improvements(own, rival, self.metric.sign)
        confidence = 1.0 - (1.0 - self.confidence) / self.together
        paired = functools.partial(self._estimate, own, rival, by=estimate_difference, confidence=confidence)
        won, tied = (float((better == value).mean()) for value in (1.0, 0.5))
        return Difference(paired(), paired(relative=True), won, tied)

    def ratios(self) -> dict[str, Floats]:
        """Label -> factors to the best of each episode, shaped as its table; empty if a value is negative."""
        table = np.concatenate(list(self.tables.values()))
        if (table < 0).any():
            return {}
        ratios = performance_ratios(table.T, self.metric.better or "min").T
        ends = np.cumsum([len(own) for own in self.tables.values()])
        return dict(zip(self.tables, np.split(ratios, ends[:-1]), strict=True))

    def improvement(self, trainings: Sequence[str], rivals: Sequence[str]) -> Improvement:
        """Compare the trainings of one configuration with the best of several baselines.

        Args:
            trainings: one label of several trainings, or a label for each.
            rivals: labels of baselines; those count that ran all episodes of the trainings.
        """
        table = np.concatenate([self.tables[label] for label in trainings])
        ran = np.asarray(~np.isnan(table).any(axis=0))
        present = [label for label in rivals if ran.any() and self.complete(label)[ran].all()]
        means = {label: float(self.tables[label][0, ran].mean()) for label in present}
        if not means:
            return Improvement()
        rival = min(means, key=lambda label: self.metric.sign * means[label])
        table, base = table[:, ran], self.tables[rival][0, ran]
        middle = functools.partial(self._estimate, table, statistic=interquartile_mean)
        paired = functools.partial(middle, base, by=estimate_difference)
        return Improvement(
            rival,
            float(base.mean()),
            middle(),
            paired(),
            paired(relative=True),
            self._estimate(improvements(table, base, self.metric.sign)),
        )


@dataclasses.dataclass(frozen=True)
class Observed:
    """The return value of an observer at the end of an episode.

    Attributes:
        setting: swept parameter -> value.
        policy: label.
        episode: its number.
        seconds: time that the policy took [s]; see :class:`~schedgym.evaluation.episodes.Outcome`.
        values: the return value of the observer.
    """

    setting: dict[str, Any]
    policy: str
    episode: int
    seconds: float
    values: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of policies that were run in one setting or in several.

    Attributes:
        problem: the problem.
        id: environment id.
        objective: the metric that the rewards sum to.
        frame: a row per setting x policy x episode x metric, as :func:`schedgym.evaluate` returns it.
        swept: the parameters that differ between settings, a column of the frame each.
        parameters: the other parameters that were given.
        seed: of the episodes.
        episodes: number of episodes, at most, in a setting.
        distinct: how many of them, at least, have jobs of their own.
        views: policy -> view, of those that do not act in the baselines' view.
        observed: results of the observer, for each setting, policy and episode.
        spent: key in the store -> time that the episode took of a core, now or before [s]; empty without one.
        ran: the part of it that was spent now [s].
    """

    problem: Problem
    id: str
    objective: Metric
    frame: pd.DataFrame
    swept: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    episodes: int = 0
    distinct: int = 0
    views: Mapping[str, str] = dataclasses.field(default_factory=dict)
    observed: Sequence[Observed] = ()
    spent: Mapping[str, float] = dataclasses.field(default_factory=dict)
    ran: float = 0.0

    @property
    def policies(self) -> list[str]:
        """Labels of the policies, in order."""
        return [str(label) for label in self.frame["policy"].unique()]

    @property
    def policy_seconds(self) -> list[dict[str, Any]]:
        """Time per episode that each policy took to decide [s], one entry per setting and policy.

        The median over the episodes, as the first one may compile.
        """
        groups = itertools.groupby(self.observed, lambda own: (own.setting, own.policy))
        return [
            {**setting, "policy": policy, "seconds": float(np.median([own.seconds for own in group]))}
            for (setting, policy), group in groups
        ]

    def metric_of(self, name: str | None) -> Metric:
        """A metric of the frame by its name; None: the objective.

        Raises:
            UnknownName: if the problem has no such metric.
        """
        if name is None:
            return self.objective
        if name not in CERTIFICATES:
            return self.problem.metric(name)
        return Metric(name, "" if name == "truncated" else self.objective.unit, "")

    def parts(self) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        """(swept parameter -> value, rows) for each setting, in order of first appearance."""
        if not self.swept:
            yield {}, self.frame
            return
        for key, part in self.frame.groupby(list(self.swept), sort=False, dropna=False):
            yield dict(zip(self.swept, map(plain, cast("tuple[Any, ...]", key)), strict=True)), part

    def comparisons(
        self, metric: str | None = None, confidence: float = 0.95
    ) -> Iterator[tuple[dict[str, Any], Comparison]]:
        """(swept parameter -> value, comparison) for each setting.

        Args:
            metric: None: the objective, whose bounds the comparisons have.
            confidence: confidence level of the intervals.

        Raises:
            UnknownName: when the frame has no such metric.
        """
        chosen = self.metric_of(metric)
        for setting, part in self.parts():
            rows = part[part["metric"] == chosen.name]
            if rows.empty:
                raise UnknownName("metric", chosen.name, [str(name) for name in part["metric"].unique()])
            table = _by_episode(rows)
            bounds = part[part["metric"] == "bound"] if chosen == self.objective else part[:0]
            bound = None if bounds.empty else _by_episode(bounds).bfill(axis=1).iloc[:, 0].to_numpy()
            tables = {str(label): table[label].to_numpy()[np.newaxis] for label in table.columns}
            yield setting, Comparison(chosen, tables, bound, confidence)

    def summary(self, metric: str | None = None, confidence: float = 0.95) -> pd.DataFrame:
        """Mean and interval of a metric per setting and policy.

        Args:
            metric: None: the objective.
            confidence: confidence level of the intervals.

        Returns:
            a frame with the swept parameters and the columns policy, episodes, mean, low, high (the metric's
            unit), bound (mean over the episodes), ratio (of the means of the metric and the bound; nan
            without a positive bound, or for a metric other than the objective).
        """
        rows = []
        for setting, comparison in self.comparisons(metric, confidence):
            for label in comparison.tables:
                whole = bool(comparison.complete(label).all())
                mean, bounds = comparison.mean(label) if whole else Estimate(), comparison.bound(label)
                bound = float(bounds.mean()) if bounds.size else NAN
                row = {
                    "policy": label,
                    "episodes": comparison.tables[label].size,
                    **mean.row("mean"),
                    "bound": bound,
                    "ratio": mean.value / bound if bound > 0 else NAN,
                }
                rows.append(setting | row)
        return cast("pd.DataFrame", require("pandas").DataFrame(rows))

    def differences(
        self, reference: str, metric: str | None = None, confidence: float = 0.95
    ) -> pd.DataFrame:
        """Each policy minus a reference, episode by episode.

        Args:
            reference: label of the policy to compare with.
            metric: None: the objective.
            confidence: confidence level of the intervals.

        Returns:
            a frame with the swept parameters and the columns policy, episodes, difference, low, high (mean
            difference in the metric's unit), relative, relative_low, relative_high (mean difference over the
            reference's mean), won, tied (shares of the episodes in which the policy is better than, or equal
            to, the reference). The reference itself has no row. Values may be nan: see
            :func:`~schedgym.evaluation.statistics.bootstrap_interval`.

        Raises:
            UnknownName: when the reference was not run, or the frame has no such metric.
            InvalidParameter: when the policies did not run the same episodes.
        """
        rows = []
        for setting, comparison in self.comparisons(metric, confidence):
            if reference not in comparison.tables:
                raise UnknownName("reference policy", reference, list(comparison.tables))
            if not all(comparison.complete(label).all() for label in comparison.tables):
                name = comparison.metric.name
                raise InvalidParameter(f"{name}: not every policy ran every episode, nothing to pair")
            for label in comparison.tables:
                if label != reference:
                    row = {"policy": label, "episodes": comparison.values(label).size}
                    rows.append(setting | row | comparison.against(label, reference).row())
        columns = [*self.swept, "policy", "episodes", *DIFFERENCES]
        return cast("pd.DataFrame", require("pandas").DataFrame(rows, columns=columns))

    def values(self, policy: str, name: str | None = None, **setting: Any) -> list[Any]:
        """A policy's observed values by episode, in the settings that agree with ``setting``.

        Args:
            policy: label of the policy.
            name: entry of the result of the observer; None: the whole result.
            setting: swept parameter = value.
        """
        return [
            entry.values if name is None else entry.values[name]
            for entry in self.observed
            if entry.policy == policy and all(entry.setting[key] == value for key, value in setting.items())
        ]

    def metric(self, policy: str, name: str, **setting: Any) -> Floats:
        """A metric of a policy by episode, in the settings that agree with ``setting``.

        Args:
            policy: label of the policy.
            name: name of the metric.
            setting: swept parameter = value.
        """
        rows = self._rows[policy, name]
        for key, value in setting.items():
            rows = rows[[plain(own) == value for own in rows[key]]]
        return rows["value"].to_numpy(dtype=float)

    @functools.cached_property
    def _rows(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.frame.sort_values("episode", kind="stable").groupby(["policy", "metric"])))

    def select(self, keep: Callable[[Mapping[str, Any], str], bool]) -> Evaluation:
        """The results of the settings and policies for which ``keep(setting, policy)`` is true."""
        wanted = np.zeros(len(self.frame), dtype=bool)
        groups = self.frame.groupby([*self.swept, "policy"], sort=False, dropna=False)
        for place, rows in groups.indices.items():
            *values, policy = place if isinstance(place, tuple) else (place,)
            wanted[rows] = keep(dict(zip(self.swept, map(plain, values), strict=True)), str(policy))
        observed = [entry for entry in self.observed if keep(entry.setting, entry.policy)]
        return dataclasses.replace(self, frame=self.frame[wanted], observed=observed)

    def where(self, **setting: Any) -> Evaluation:
        """The results with the given parameter values; these parameters no longer count as swept."""
        own = self.select(lambda found, _: all(found[name] == value for name, value in setting.items()))
        return dataclasses.replace(
            own,
            frame=own.frame.drop(columns=list(setting)),
            swept=tuple(name for name in self.swept if name not in setting),
            observed=[
                dataclasses.replace(e, setting={k: v for k, v in e.setting.items() if k not in setting})
                for e in own.observed
            ],
        )


def _by_episode(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per episode, a column per policy in order of appearance."""
    table = rows.pivot(index=["seed", "episode"], columns="policy", values="value")
    return table[list(dict.fromkeys(rows["policy"]))]


def plain(value: Any) -> Any:
    """A swept value as it was given: pandas turns None into nan, and numbers into numpy's."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
