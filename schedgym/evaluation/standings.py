"""Standings: the statistics of each problem's policies in a results store, with intervals and gaps.

A board has the units of one environment id and objective; in each of its settings, every policy is an entry
with its values on the episodes that all met. Where agents were trained with several seeds, the training seed
is the unit of all intervals; the intervals of a single agent are over episodes, and say nothing of another
training.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Flags, Floats
from schedgym.core.problem import Metric, Problem, Variant, get_problem
from schedgym.errors import UnknownName
from schedgym.evaluation.comparison import NAN, Comparison, Difference, Evaluation, Improvement, resamples_of
from schedgym.evaluation.plan import Setting as Stored
from schedgym.evaluation.statistics import (
    Estimate,
    interquartile_mean,
    performance_profile,
    stratified_interval,
)
from schedgym.evaluation.store import Contender, ResultsStore, swept_names
from schedgym.evaluation.wording import setting_texts

Episode = tuple[int, int]

DRAWS = 1_000_000  # numbers drawn for one interval


@dataclasses.dataclass
class Entry:
    """One policy in one setting.

    Attributes:
        policy: its label.
        table: the objective, [trainings, episodes]; one row if it is not trained, or once; nan: not run.
        trainings: seeds of the trainings; empty if it is not trained.
        bounds: on the optimum of each episode, [episodes]; nan: none.
        options: options of the policy, with its name; of an agent, its checksum: that of the first training.
        agents: checksums of the agent files, in the order of ``trainings``; empty for others.
        seconds: mean time that the policy took for its decisions, per episode [s].
        unfinished: number of episodes, over all trainings, that ended with work left.
        mean, middle: mean and interquartile mean of the objective.
        gap: distance of the mean from the bound, in the objective's unit; from 0.
        relative_gap: the gap over the mean bound.
        against: the reference on the same episodes; nan for the reference itself.
        improvement: an agent against the best policy that is not trained.
        ratios: factors to the best of each episode, shaped as ``table``; None if a value is negative.
    """

    policy: str
    table: Floats
    trainings: tuple[int, ...]
    bounds: Floats
    options: dict[str, Any]
    agents: tuple[str, ...] = ()
    seconds: float = NAN
    unfinished: int = 0
    mean: Estimate = Estimate()
    middle: Estimate = Estimate()
    gap: Estimate = Estimate()
    relative_gap: Estimate = Estimate()
    against: Difference = Difference()
    improvement: Improvement = Improvement()
    ratios: Floats | None = None

    @property
    def complete(self) -> Flags:
        """True for each episode that every training ran, [episodes]."""
        return np.asarray(~np.isnan(self.table).any(axis=0))

    @property
    def episodes(self) -> int:
        """The number of episodes that every training ran."""
        return int(self.complete.sum())


@dataclasses.dataclass
class Setting:
    """One combination of parameters.

    Attributes:
        parameters: the parameters that the sweep fixed or varied.
        label: text of those that differ between the board's settings; "" if there is one setting.
        episodes: (seed, episode) of each column of the entries' tables.
        entries: one per policy, as :func:`_ranked` sorts them.
    """

    parameters: dict[str, Any]
    label: str
    episodes: list[Episode]
    entries: list[Entry]

    @property
    def bound(self) -> float:
        """Mean bound of the episodes; nan: one of them has none."""
        return float(np.mean(self.entries[0].bounds))

    def entry(self, policy: str) -> Entry | None:
        """The entry of a policy."""
        return next((entry for entry in self.entries if entry.policy == policy), None)


@dataclasses.dataclass
class Board:
    """All of one environment id and objective.

    Attributes:
        id: environment id.
        problem, variant: the package's descriptions of it; None if it has neither.
        metric: the objective.
        settings: the settings, in the order of the store.
        swept: names of the parameters that differ between settings.
        common: the other parameters.
        policies: every label, in order of appearance.
        reference: label that differences refer to.
        hidden: settings that were left out, as there are too many.
    """

    id: str
    problem: Problem | None
    variant: Variant | None
    metric: Metric
    settings: list[Setting]
    swept: list[str]
    common: dict[str, Any]
    policies: list[str]
    reference: str
    hidden: int = 0

    def strata(self, policy: str) -> list[Floats]:
        """A policy's ratios to the best of each episode in every setting that it ran in."""
        found = []
        for setting in self.settings:
            entry = setting.entry(policy)
            if entry is not None and entry.ratios is not None and entry.episodes:
                ratios = entry.ratios[:, entry.complete]
                found.append(ratios if len(ratios) > 1 else ratios[0])
        return found

    def overall(self, policy: str, confidence: float) -> Estimate:
        """Interquartile mean of :meth:`strata`, resampled within each setting."""
        strata = self.strata(policy)
        if not strata:
            return Estimate()
        values = np.concatenate([np.ravel(stratum) for stratum in strata])
        resamples = min(2000, resamples_of(len(values), DRAWS))
        value = interquartile_mean(values)
        return Estimate(value, *stratified_interval(strata, confidence=confidence, resamples=resamples))

    def profile(
        self, policy: str, thresholds: Floats, confidence: float
    ) -> tuple[Floats, Floats, Floats] | None:
        """(share, low, high) of :func:`performance_profile`; None without values."""
        strata = self.strata(policy)
        if not strata:
            return None
        resamples = min(1000, resamples_of(sum(stratum.size for stratum in strata), DRAWS))
        return performance_profile(strata, thresholds, confidence, resamples)


def read_boards(
    store: ResultsStore, *, code: str | None = None, confidence: float = 0.95, most_settings: int = 60
) -> list[Board]:
    """The boards of a store, in the order in which their ids first appear.

    Args:
        store: open for reading.
        code: version of the code; None: the newest.
        confidence: confidence level of all intervals.
        most_settings: read of each id and objective; further ones are counted in ``hidden``.

    Raises:
        UnknownName: for a version that is not there.
        InvalidStore: for a damaged store.
    """
    groups: dict[tuple[str, str], list[Stored]] = {}
    for stored in store.settings(code):
        groups.setdefault((stored.id, stored.objective), []).append(stored)
    boards = []
    for found in groups.values():
        board = _board(store, found[:most_settings], confidence)
        if board.settings:
            board.hidden = max(0, len(found) - most_settings)
            boards.append(board)
    return boards


def _board(store: ResultsStore, found: Sequence[Stored], confidence: float) -> Board:
    id, objective = found[0].id, found[0].objective
    try:
        problem = get_problem(found[0].problem)
    except LookupError:
        problem = None
    known = {own.name: own for own in problem.metrics} if problem else {}
    metric = known.get(objective, Metric(objective, "", "", found[0].better))
    variant = problem.ids.get(id) if problem else None
    swept = swept_names(found)
    common = {name: value for name, value in found[0].parameters.items() if name not in swept}
    own = [{name: s.parameters[name] for name in swept if name in s.parameters} for s in found]
    labels = zip(found, setting_texts(own), strict=True)
    settings = [_setting(store, stored, label, metric) for stored, label in labels]
    settings = [setting for setting in settings if setting.entries]
    policies = list(dict.fromkeys(entry.policy for setting in settings for entry in setting.entries))
    reference = policies[0] if policies else ""
    if variant is not None and variant.reference in policies:
        reference = variant.reference
    for setting in settings:
        tables = {entry.policy: entry.table for entry in setting.entries}
        bounds = setting.entries[0].bounds
        comparison = Comparison(metric, tables, bounds, confidence, draws=DRAWS)
        setting.entries = _ranked(setting.entries, comparison, reference)
    return Board(id, problem, variant, metric, settings, swept, common, policies, reference)


def _setting(store: ResultsStore, stored: Stored, label: str, metric: Metric) -> Setting:
    """Read a setting from a store, without statistics."""
    found: dict[str, list[Contender]] = {}
    for own in store.contenders(stored):
        found.setdefault(own.policy, []).append(own)
    bounds = {at: b for runs in found.values() for own in runs for at, b in own.values["bound"].items()}
    order: list[Any] = sorted(bounds)
    bound = np.array([bounds[episode] for episode in order])
    entries = []
    for policy, runs in found.items():
        runs.sort(key=lambda own: own.training_seed or 0)
        table = np.array([own.values[metric.name].reindex(order) for own in runs])
        trainings = tuple(own.training_seed for own in runs if own.training_seed is not None)
        seconds = sum(own.seconds for own in runs) / sum(len(own.values) for own in runs)
        agents = tuple(str(own.options["agent"]) for own in runs if "agent" in own.options)
        left = sum(int((own.values["truncated"] > 0).sum()) for own in runs if "truncated" in own.values)
        entries.append(Entry(policy, table, trainings, bound, runs[0].options, agents, seconds, left))
    return Setting(dict(stored.parameters), label, order, entries)


def board_of(evaluation: Evaluation, reference: str | None, metric: str | None, confidence: float) -> Board:
    """The board of an evaluation.

    Args:
        evaluation: the evaluation.
        reference: label that differences refer to; None: that of the id, or the first one.
        metric: None: the objective.
        confidence: confidence level of all intervals.

    Raises:
        UnknownName: for a reference or a metric that it does not have.
    """
    problem, policies = evaluation.problem, evaluation.policies
    variant, shown = problem.ids[evaluation.id], evaluation.metric_of(metric)
    if reference is None:
        reference = variant.reference if variant.reference in policies else policies[0]
    if reference not in policies:
        raise UnknownName("reference policy", reference, policies)
    parts, settings = list(evaluation.parts()), []
    labels = setting_texts([own for own, _ in parts])
    comparisons = evaluation.comparisons(metric, confidence)
    for (own, frame), label, (_, comparison) in zip(parts, labels, comparisons, strict=True):
        episodes = frame[["seed", "episode"]].drop_duplicates().sort_values(["seed", "episode"])
        bounds = np.full(len(episodes), NAN) if comparison.bounds is None else comparison.bounds
        entries = [Entry(label, table, (), bounds, {}) for label, table in comparison.tables.items()]
        ranked = _ranked(entries, comparison, reference)
        met = list(episodes.itertuples(index=False, name=None))
        settings.append(Setting(own, label, met, ranked))
    common = dict(evaluation.parameters)
    return Board(
        evaluation.id, problem, variant, shown, settings, [*evaluation.swept], common, policies, reference
    )


def _ranked(entries: list[Entry], comparison: Comparison, reference: str) -> list[Entry]:
    """Entries with their statistics: the best mean first, but means over fewer episodes come later."""
    tables, confidence, sign = comparison.tables, comparison.confidence, comparison.metric.sign
    baselines = [entry.policy for entry in entries if not entry.trainings]
    ratios = comparison.ratios()
    for entry in entries:
        label, table = entry.policy, comparison.values(entry.policy)
        entry.ratios = ratios.get(label)
        entry.mean = comparison.mean(label)
        stratum = table if len(table) > 1 else table[0]
        resamples = min(2000, resamples_of(table.size, DRAWS))
        interval = stratified_interval([stratum], confidence=confidence, resamples=resamples)
        entry.middle = Estimate(interquartile_mean(table), *interval)
        entry.gap, entry.relative_gap = comparison.gap(label), comparison.gap(label, relative=True)
        if reference in tables and label != reference:
            entry.against = comparison.against(label, reference)
        if entry.trainings:
            entry.improvement = comparison.improvement([label], baselines)
    return sorted(entries, key=lambda entry: (-entry.episodes, sign * entry.mean.value))
