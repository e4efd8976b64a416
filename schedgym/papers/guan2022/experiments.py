"""The statements of sections 3.4, 4.7 and 5.6 of guan2022 on its experiments, and the rules that judge them.

How each sentence is judged stands in claims.yaml. Figures judge it on the traces, the claims on a
generator that is fitted to one of them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.policy import make_policy
from schedgym.core.problem import Statement
from schedgym.envs import SchedulingEnv
from schedgym.evaluation.episodes import make_env, steps
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, Evaluation, Finding, Judged, Run, Verdict, judge
from schedgym.papers.guan2022 import runs
from schedgym.papers.guan2022.batches import at_associated, single_sites
from schedgym.papers.guan2022.findings import claim
from schedgym.papers.guan2022.readings import BALANCE, EVENNESS, INCENTIVE
from schedgym.papers.guan2022.runs import AMF, ASSIGNERS, FAIR, GAMF, RESPONSE, SPREAD, Jobs
from schedgym.papers.guan2022.shares import isolated_share, max_min, water_filling
from schedgym.papers.judging import (
    PERCENT,
    POINTS,
    Effect,
    Rule,
    average,
    between,
    excess_overall,
    grows,
    judge_better,
    judge_claim,
    larger,
    level,
    lower,
    number,
    pool,
    verdict_of,
    where,
)
from schedgym.papers.registry import Check

F8 = npt.NDArray[np.float64]

# how the rules behind the verdicts quantify the thesis's words
CLOSE = 0.05  # "little difference": distributions lie 5 points apart at most
ALMOST_ALL = 0.9  # of the percentiles


def _named(judged: Judged, name: str) -> Judged:
    return dataclasses.replace(judged, name=f"guan2022/{name}")


# rules -----------------------------------------------------------------------------------------------


def settings_of(played: Evaluation, without: str = "") -> list[dict[str, Any]]:
    """Return the settings in ascending order, without one swept parameter."""
    found: list[dict[str, Any]] = []
    for setting, _ in played.parts():
        setting.pop(without, None)
        if setting not in found:
            found.append(setting)
    return sorted(found, key=lambda setting: [*setting.values()])


def swept_values(played: Evaluation) -> list[list[Any]]:
    """Return the values of each swept parameter in ascending order."""
    settings = settings_of(played)
    return [sorted({setting[name] for setting in settings}) for name in played.swept]


def response_at(played: Evaluation, policy: str, *values: Any, metric: str = RESPONSE) -> F8:
    """Return the response [s], or another metric, by episode at given values of the swept parameters."""
    setting = dict(zip(played.swept, values, strict=True))
    return played.metric(policy, metric, **setting)


def compared(played: Evaluation, own: str, other: str) -> tuple[Effect, list[Effect]]:
    """Compare the responses of two policies over all settings together, and in each of them."""
    pairs = {
        where(setting): (played.metric(own, RESPONSE, **setting), played.metric(other, RESPONSE, **setting))
        for setting in settings_of(played)
    }
    return excess_overall(f"{own} against {other}", pairs)


def outside(least: float, most: float) -> Rule:
    """Return a rule: "holds" if the whole interval lies outside a range, which is the contrary of within."""
    return lambda found: judge(found.low > most or found.high < least)


def judge_within(
    claim: str, played: Evaluation, pairs: Iterable[tuple[str, str]], least: float, most: float
) -> Judged:
    """Judge that the first of each pair has a response above the second's by a share: over least, up to most.

    The verdict is "in part" if the mean is so, but not all of its interval.
    """
    rule = between(math.nextafter(least, most), most)
    found = [pool(*compared(played, *pair), rule, outside(least, most)) for pair in pairs]
    return judge_claim(claim, found)


def judge_trend(
    claim: str, played: Evaluation, policies: Iterable[str], *, falls: bool = False, generally: bool = False
) -> Judged:
    """Judge that the response grows (or falls) with the last swept parameter at all values of the first."""
    levels, places = swept_values(played)
    cases = []
    for policy in policies:
        responses = [[response_at(played, policy, level, place) for place in places] for level in levels]
        cases.append(grows(policy, np.array(responses), falls=falls, generally=generally))
    return judge_claim(claim, cases, what=f"from {places[0]:g} to {places[-1]:g}")


def judge_gain_grows(claim: str, played: Evaluation, pairs: Sequence[tuple[str, str]]) -> Judged:
    """Judge that one policy's gain over another generally grows with the last swept parameter."""
    levels, places = swept_values(played)
    cases = []
    for pair in pairs:
        own, rival = (
            np.array([[response_at(played, policy, level, place) for place in places] for level in levels])
            for policy in pair
        )
        cases.append(grows(" over ".join(pair), 1.0 - own / rival, POINTS, generally=True))
    return judge_claim(claim, cases, what=f"gain from {places[0]:g} to {places[-1]:g}")


def judge_lower(
    claim: str, played: Evaluation, pairs: Iterable[tuple[str, str]], metric: str = RESPONSE, by: float = 0.0
) -> Judged:
    """Judge that the first policy of each pair is better than the second in all settings."""
    rivals: dict[str, list[str]] = {}
    for policy, rival in pairs:
        rivals.setdefault(policy, []).append(rival)
    return judge_better(
        played, claim, *(Statement("", policy, tuple(own), metric, by) for policy, own in rivals.items())
    )


def judge_sometimes_worse(played: Evaluation) -> Judged:
    """Judge BTAwJ against SWAG: in which settings it is worse, and in which better."""
    _, found = compared(played, "BTAwJ", "SWAG")
    worse, better = sum(case.above for case in found), sum(case.below for case in found)
    values = [case.value for case in found]
    measured = (
        f"BTAwJ against SWAG {number(min(values))} to {number(max(values))}: significantly worse in {worse} "
        f"of {len(found)} settings, better in {better}"
    )
    verdict = NOT_REPRODUCED if not worse else HOLDS if better else IN_PART
    return Judged("BTAwJ is worse than SWAG in some settings, and better in others", measured, verdict)


def judge_consistent(
    claim: str, played: Evaluation, pairs: Iterable[tuple[str, str]], metric: str = RESPONSE
) -> Judged:
    """Judge that no comparison, averaged over the skews, changes sides significantly with the utilisation."""
    levels, skews = swept_values(played)
    texts, same = [], []
    for own, other in pairs:
        cases = []
        for value in levels:
            values, others = (
                np.array([response_at(played, policy, value, skew, metric=metric) for skew in skews])
                for policy in (own, other)
            )
            cases.append(average("", np.mean(values / others - 1.0, axis=0), PERCENT))
        same.append(not (any(case.above for case in cases) and any(case.below for case in cases)))
        texts.append(f"{own} against {other} {', '.join(map(str, cases))}")
    at = ", ".join(f"{100 * value:.0f}" for value in levels)
    measured = f"means over the skews at utilisations of {at}%: {'; '.join(texts)}"
    return Judged(claim, measured, verdict_of(map(judge, same)))


def judge_percentiles(played: Evaluation) -> Judged:
    """Judge that ATA and ATA-Greedy have the lower response at almost all percentiles.

    A pair is judged "in part" if the lower one is so at half of the percentiles, and higher at hardly any.
    """
    texts, verdicts = [], []
    for policy in ("ATA", "ATA-Greedy"):
        for rival in ("SCTA", "BTAaJ", "BTAwJ", "SWAG"):
            fewer = more = count = 0
            for setting in settings_of(played):
                own, base = (np.array(played.values(p, "percentiles", **setting)) for p in (policy, rival))
                for column in (own / base - 1.0).T:
                    ends = bootstrap_interval(column, resamples=2000)
                    fewer += ends[1] < 0
                    more += ends[0] > 0
                    count += 1
            low, high = (f"{100 * n / count:.0f}%" for n in (fewer, more))
            texts.append(f"{policy} lower than {rival} at {low}, higher at {high}")
            part = 2 * fewer >= count and count - more >= ALMOST_ALL * count
            verdicts.append(HOLDS if fewer >= ALMOST_ALL * count else IN_PART if part else NOT_REPRODUCED)
    claim = (
        "ATA and ATA-Greedy have lower responses than the others at almost all "
        f"(here: {100 * ALMOST_ALL:.0f}%) of the percentiles"
    )
    measured = f"significantly, of 99 percentiles in each setting: {'; '.join(texts)}"
    return Judged(claim, measured, verdict_of(verdicts))


def judge_ranking(played: Evaluation, policies: Sequence[str]) -> Judged:
    """Judge that no two algorithms change their order between 2 sites and the largest number of sites."""
    levels, numbers = swept_values(played)
    pairs = list(itertools.combinations(policies, 2))
    changed = []
    for pair in pairs:
        _, settings = compared(played, *pair)
        table = np.reshape(np.array(settings, dtype=object), (len(levels), len(numbers)))
        for value, cases in zip(levels, table[:, np.array(numbers) > 1], strict=True):
            if any(case.above for case in cases) and any(case.below for case in cases):
                changed.append(f"{' and '.join(pair)} at {100 * value:.0f}%")
    total = len(levels) * len(pairs)
    kept = total - len(changed)
    measured = f"{kept} of {total} pairs do not change sides significantly from 2 sites to {numbers[-1]}"
    if changed:
        measured += f"; changed: {', '.join(changed)}"
    share = kept / total
    verdict = HOLDS if share >= ALMOST_ALL else IN_PART if share >= 0.5 else NOT_REPRODUCED
    claim = (
        "the order of the algorithms is largely "
        f"(here: {100 * ALMOST_ALL:.0f}% of the pairs) the same for all numbers of sites"
    )
    return Judged(claim, measured, verdict)


Curves = Sequence[F8]  # distributions, of each episode


def judge_distance(name: str, settings: Mapping[str, tuple[Curves, Curves]]) -> Effect:
    """Judge whether two distributions are close in settings, by their largest distance in each episode."""
    apart = {
        place: [float(np.abs(a - b).max()) for a, b in zip(*curves, strict=True)]
        for place, curves in settings.items()
    }
    cases = [average(name, own, place=place) for place, own in apart.items()]
    whole = average(name, np.mean([*apart.values()], axis=0))
    return pool(whole, cases, level(CLOSE), outside(-CLOSE, CLOSE))


CLOSE_CURVES = f"(here: the distributions lie {100 * CLOSE:.0f} points apart at most)"


def judge_little_difference(claim: str, played: Evaluation) -> Judged:
    """Judge that deciding again whenever a task ends leaves the distributions of the deviation unchanged."""
    cases = []
    for policy in played.policies:
        curves = {
            where(setting): (
                played.values(policy, aggressive=True, **setting),
                played.values(policy, aggressive=False, **setting),
            )
            for setting in settings_of(played, "aggressive")
        }
        cases.append(judge_distance(policy, curves))
    return judge_claim(f"{claim} {CLOSE_CURVES}", cases)


def judge_close(claim: str, played: Evaluation, pairs: Iterable[tuple[str, str]]) -> Judged:
    """Judge that two policies have close distributions of the deviation in all settings."""
    cases = []
    for one, other in pairs:
        curves = {
            where(setting): (played.values(one, **setting), played.values(other, **setting))
            for setting in settings_of(played)
        }
        cases.append(judge_distance(f"{one} and {other}", curves))
    return judge_claim(f"{claim} {CLOSE_CURVES}", cases)


# what is decided -------------------------------------------------------------------------------------


def judge_incentive(run: Run, jobs: Jobs, kind: str) -> Judged:
    """Judge how many allocations of AMF or GAMF, of decisions or of jobs, satisfy the sharing incentive."""
    by_job = run.choice(INCENTIVE) == "job"
    met = jobs_with_incentive if by_job else has_incentive

    most = run.size(40, 200, 10)
    counts = []
    for skew in jobs.skews:
        env = make_env(FAIR, {**jobs.parameters, "zipf": skew, "utilization": 0.6})
        episodes = range(jobs.episodes)
        counts.append([count_incentives(env, met, kind.lower(), run.seed, most, i) for i in episodes])
    kept, seen = np.moveaxis(np.array(counts, dtype=float), -1, 0)
    texts, verdicts = [], []
    for skew, shares in zip(jobs.skews, kept / seen, strict=True):
        low, high = bootstrap_interval(shares)
        texts.append(f"{100 * shares.mean():.0f}% ({100 * low:.0f} to {100 * high:.0f}) at zipf {skew:g}")
        verdicts.append(between(0.5, 1.0)(Effect("", float(shares.mean()), low, high)))
    what = "jobs in decisions" if by_job else "decisions"
    measured = f"of about {seen.sum(axis=1).mean():.0f} {what} at each skew: {', '.join(texts)}"
    verdict = verdict_of(verdicts)
    whom = "their" if by_job else "every"
    claim = f"most allocations of Basic {kind} give {whom} job its sharing incentive"
    return _named(Judged(claim, measured, verdict), INCENTIVES[kind])


#: the claims that most allocations satisfy the sharing incentive
INCENTIVES = {"AMF": "amf-keeps-incentive", "GAMF": "gamf-keeps-incentive"}

Decisions = list[tuple[Any, Any]]  # unfinished tasks [J, K] and sites [K, A] of each


def _decisions(env: SchedulingEnv, policy: str, seed: int, most: int, episode: int = 0) -> Decisions:
    """Return what some decisions of an episode were about.

    Args:
        env: of :func:`~schedgym.evaluation.episodes.make_env`.
        policy: that decides.
        seed: of the episodes.
        most: at least so many decisions, evenly spread, if the episode has so many.
        episode: number of the episode.
    """
    seen: Decisions = []
    every = 1
    acting = make_policy(f"geo/{policy}")
    for count, step in enumerate(steps(env, acting, seed=seed, episode=episode, label=policy)):
        if count % every == 0 and not step.ended:
            active, shown = int(step.observation["active"][0]), step.observation
            tasks = shown["waiting"][:active] + shown["running"][:active].sum(axis=2)
            seen.append((tasks.astype(np.int64), shown["sites"].copy()))
            if len(seen) == 2 * most:  # keep every other one, and look at half as many from here
                del seen[1::2]
                every *= 2
    return seen


def count_incentives(
    env: SchedulingEnv, met: Callable[..., Any], policy: str, seed: int, most: int, episode: int = 0
) -> tuple[int, int]:
    """Count the decisions of an episode with the sharing incentive, or the jobs in them, and all examined.

    Args:
        env: of :func:`~schedgym.evaluation.episodes.make_env`.
        met: :func:`has_incentive` to count decisions, :func:`jobs_with_incentive` to count jobs.
        policy: "amf" (floors at every site) or "gamf" (floors of the aggregates).
        seed: of the episodes.
        most: at least so many decisions are examined, evenly spread, if the episode has so many.
        episode: number of the episode.
    """
    slots = np.array(env.simulator.jobs.slots[0])
    found = [np.ravel(met(*seen, slots, policy)) for seen in _decisions(env, policy, seed, most, episode)]
    return sum(int(own.sum()) for own in found), sum(map(len, found))


def _floors(tasks: Any, sites: Any, slots: Any, policy: str) -> tuple[Any, Any, Any]:
    """Return demand [J, K] and sites [K, A] as the policy sees them, and the floors: [J, K] (AMF) or [J]."""
    if policy == "gamf":
        return tasks, sites, isolated_share(tasks, sites, slots)
    demand, single = at_associated(tasks, sites, len(slots)), single_sites(len(slots))
    return demand, single, np.minimum(demand, slots / len(tasks))


def has_incentive(tasks: Any, sites: Any, slots: Any, policy: str) -> bool:
    """Return True if the floors of the sharing incentive leave the max-min fair aggregates unchanged.

    As aggregates are unique, they allow the incentive if and only if this is so.
    """
    demand, own, floors = _floors(tasks, sites, slots, policy)
    plain_shares, _ = max_min(demand, own, slots)
    shares, _ = max_min(demand, own, slots, floors=floors)
    return bool(np.allclose(plain_shares, shares, rtol=0, atol=1e-6))


def jobs_with_incentive(tasks: Any, sites: Any, slots: Any, policy: str) -> npt.NDArray[np.bool_]:
    """Return for each job whether what it gets under max-min fairness is at least its floor.

    Under "amf" the slots of every site that the policy's matrix gives it are no fewer than its floor there.
    """
    demand, own, floors = _floors(tasks, sites, slots, policy)
    aggregates, matrix = max_min(demand, own, slots)
    shares = aggregates if policy == "gamf" else matrix[:, :, 0]
    return np.all((shares >= floors - 1e-6).reshape(len(tasks), -1), axis=1)


def judge_decided(run: Run, jobs: Jobs, policy: str, rival: str, by: float = 0.0) -> Judged:
    """Judge by which share decided aggregates deviate less under one policy than under another.

    Both decide on the same jobs, those that meet at the decisions of AMF, so that only shares differ.
    """

    def _spreads(tasks: Any, sites: Any) -> list[float]:
        slots = np.full(jobs.parameters["sites"], jobs.parameters["slots"])
        demand, single = at_associated(tasks, sites, len(slots)), single_sites(len(slots))
        alone = water_filling(demand, slots).sum(axis=1)
        return [
            float(np.std(x))
            for x in (alone, max_min(demand, single, slots)[0], max_min(tasks, sites, slots)[0])
        ]

    spreads: dict[str, list[list[float]]] = {"IMF": [], "AMF": [], "GAMF": []}
    for skew in jobs.skews:
        env = make_env(FAIR, {**jobs.parameters, "zipf": skew, "utilization": 0.6})
        rows = [
            np.mean([_spreads(*seen) for seen in _decisions(env, "amf", run.seed, 50, episode)], axis=0)
            for episode in range(jobs.episodes)
        ]
        for name, column in zip(spreads, np.transpose(rows), strict=True):
            spreads[name].append(column.tolist())
    pairs = zip(spreads[policy], spreads[rival], strict=True)
    settings = {f"at zipf {skew:g}": pair for skew, pair in zip(jobs.skews, pairs, strict=True)}
    found = pool(*excess_overall(f"{policy} against {rival}", settings), lower(by), larger())
    much = f"much (here: by {100 * by:.0f}%) " if by else ""
    said = f"the decided aggregates of {policy} are {much}more balanced than {rival}'s"
    return judge_claim(said, [found], what="mean deviation of the decided aggregates")


# statements ------------------------------------------------------------------------------------------


def judge_two_groups(played: Evaluation) -> Judged:
    """Judge that AMF and GAMF curves are farther apart than any two curves of the same group."""
    apart = {}
    for setting in settings_of(played):
        curves = {label: played.values(label, **setting) for label in played.policies}
        gaps: dict[bool, list[F8]] = {True: [], False: []}  # of curves of one group, and of two
        for one, other in itertools.combinations(curves, 2):
            pairs = zip(curves[one], curves[other], strict=True)
            gaps[(one in AMF) == (other in AMF)].append(np.array([np.abs(a - b).max() for a, b in pairs]))
        apart[where(setting)] = np.min(gaps[False], axis=0) - np.max(gaps[True], axis=0)
    cases = [average("", own, place=place) for place, own in apart.items()]
    found = pool(average("", np.mean([*apart.values()], axis=0)), cases, larger(), lower())
    what = "least distance between the groups minus the largest within a group"
    return judge_claim("the curves form two groups, of AMF and of GAMF", [found], what=what)


def nearer_by_caption(played: Evaluation) -> Judged:
    """Judge what the captions of Figs. 5.1 and 5.2 say, against the text."""
    pairs = list(zip(AMF, GAMF, strict=True))
    return judge_lower("AMF is nearer to (0, 1), which is more balanced (the caption)", played, pairs, SPREAD)


#: groups of labels, as claims.yaml names them
GROUPS = {
    "ASSIGNERS": list(ASSIGNERS),
    "PROPOSED": [policy for policy in ASSIGNERS if policy != "SWAG"],
    "AMF": list(AMF),
}
RULES: dict[str, Callable[..., Judged]] = {
    "close": judge_close,
    "consistent": judge_consistent,
    "gain_grows": judge_gain_grows,
    "little_difference": judge_little_difference,
    "lower": judge_lower,
    "percentiles": judge_percentiles,
    "ranking": judge_ranking,
    "sometimes_worse": judge_sometimes_worse,
    "trend": judge_trend,
    "within": judge_within,
}
Labels = str | Sequence[str]  # of policies, or the name of a group


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sentence:
    """How a sentence of the thesis is judged on runs, as claims.yaml gives it.

    Attributes:
        runs: name of the runs that it is about; sentences on the same runs stand beside the same figures.
        rule: name of RULES.
        said: the sentence in our words, for the figures; "" if the rule has its own.
        policies: what it is about.
        pairs: or each policy that is said to be better, and each that it is compared with.
        where: swept parameter -> value, if it is about a part of the runs.
        options: of the rule.
        decided: arguments of :func:`judge_decided` under the reading that means shares as decided.
    """

    runs: str
    rule: str
    said: str = ""
    policies: Labels = ()
    pairs: Sequence[tuple[Labels, Labels]] = ()
    where: Mapping[str, float] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    decided: Mapping[str, Any] | None = None

    def judge(self, played: Evaluation) -> Judged:
        """Judge it on the runs of a trace."""
        given: list[Any] = [self.said] if self.said else []
        given.append(played.where(**self.where) if self.where else played)
        if self.policies:
            given.append(_labels(self.policies))
        elif self.pairs:
            sides = ((_labels(own), _labels(others)) for own, others in self.pairs)
            given.append([pair for own, others in sides for pair in itertools.product(own, others)])
        return RULES[self.rule](*given, **self.options)


def _labels(given: Labels) -> Sequence[str]:
    return GROUPS.get(given, [given]) if isinstance(given, str) else given


#: name of the claim -> the sentence
SENTENCES = {
    row["name"]: Sentence(**row["compare"]) for row in claim.sections["experiments"] if "compare" in row
}


def judge_all(runs: str, played: Evaluation) -> list[Judged]:
    """Judge the sentences on some runs, of a trace, by the names of their claims."""
    return [_named(own.judge(played), name) for name, own in SENTENCES.items() if own.runs == runs]


# the claims, on a generator that is fitted to one of the traces --------------------------------------


def _little(run: Run) -> Evaluation:
    jobs = runs.fitted(run)
    parameters = {**jobs.parameters, "utilization": 0.6}
    part = jobs._replace(parameters=parameters, episodes=run.size(3, 20, 2))
    return runs.aggressive(run, part, runs.AMF, {"zipf": [jobs.skews[0], jobs.skews[-1]]})


def _shared(run: Run) -> Evaluation:
    return runs.shared(run, runs.fitted(run)._replace(utilizations=[0.6]))


def _judge_incentive(kind: str, run: Run) -> Judged:
    return judge_incentive(run, runs.fitted(run), kind)


#: runs that sentences are about
RUNS: dict[str, Callable[[Run], Evaluation]] = {
    "assigning": lambda run: runs.assigned(run, runs.fitted(run)),
    "distributions": lambda run: runs.assigned(run, runs.fitted(run)).where(zipf=1.0),
    "by sites": lambda run: runs.assigned_by_sites(run, runs.fitted(run), [0.6]),
    "recomputation": _little,
    "deviations of AMF": _shared,
    "responses of AMF": _shared,
    "deviations of GAMF": _shared,
    "responses of GAMF": _shared,
}


def _observed(
    run: Run,
    id: str,
    policies: Mapping[str, str],
    observe: Callable[[Any], float],
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **more: Any,
) -> tuple[Effect, list[Effect]]:
    """Compare over all skews and at each what is observed under two policies; ``more`` are parameters."""
    jobs = runs.fitted(run)
    grid, given = {"zipf": jobs.skews}, {**jobs.parameters, "utilization": 0.6, **more}
    played = run.play(id, policies, jobs.episodes, grid, parameters=given, options=options, observe=observe)
    own, other = policies
    pairs = {
        where({"zipf": skew}): (played.values(own, zipf=skew), played.values(other, zipf=skew))
        for skew in jobs.skews
    }
    return excess_overall(f"{own} against {other}", pairs)


def _judge_queues(run: Run) -> Judged:
    """Judge whether BTAwJ's queues are less balanced over the sites than SWAG's in some setting."""
    policies = {"BTAwJ": "btawj-swag", "SWAG": "swag"}
    options = {"BTAwJ": {"fine": run.choice(EVENNESS)}}
    _, cases = _observed(run, runs.ASSIGN, policies, runs.queue_spread, options=options)
    worse = sum(case.above for case in cases)
    listed = ", ".join(map(str, cases))
    measured = f"significantly more in {worse} of {len(cases)} settings: {listed}"
    text = "the standard deviation of BTAwJ's queues over the sites is above SWAG's in some setting"
    return Judged(text, measured, HOLDS if worse else NOT_REPRODUCED)


def _judge_lifetime(run: Run) -> Judged:
    """Judge whether a job's slots vary less over its lifetime under AMF than under IMF."""
    policies = {"Basic AMF": "amf", "IMF": "imf"}
    found = _observed(run, runs.FAIR, policies, runs.lifetime_variation, objective="response")
    text = "a job's slots vary less over its lifetime (deviation over mean) under AMF than under IMF"
    return judge_claim(text, [pool(*found, lower(), larger())])


def _found(find: Callable[[Run], Judged]) -> Check:
    """Return a check that finds what a function judges."""

    def check(run: Run) -> Finding:
        judged = find(run)
        return Finding(Verdict(judged.verdict), f"{judged.claim}: {judged.measured}")

    return check


def _sentence(**row: Any) -> Check:
    """Return the check of a sentence, as claims.yaml gives it."""
    own = Sentence(**row)

    def find(run: Run) -> Judged:
        if own.decided is None or run.choice(BALANCE) == "occupied":
            return own.judge(RUNS[own.runs](run))
        return judge_decided(run, runs.fitted(run), **own.decided)

    return _found(find)


claim.compare("experiments", _sentence)
claim("btawj-queues")(_found(_judge_queues))
claim("amf-over-lifetime")(_found(_judge_lifetime))
for _kind, _name in INCENTIVES.items():
    claim(_name)(_found(functools.partial(_judge_incentive, _kind)))
