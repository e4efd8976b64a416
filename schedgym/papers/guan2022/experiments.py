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

from schedgym.core.arrays import Flags, Floats, Integers
from schedgym.core.policy import make_policy
from schedgym.core.problem import Statement
from schedgym.envs import SchedulingEnv
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, Evaluation, Finding, Judged, Run, Verdict, judge
from schedgym.papers.guan2022 import runs
from schedgym.papers.guan2022.batches import at_associated, single_sites
from schedgym.papers.guan2022.runs import AMF, ASSIGNERS, FAIR, GAMF, RESPONSE, SPREAD, Jobs
from schedgym.papers.guan2022.share_search import OPEN, claim
from schedgym.papers.guan2022.shares import completion_shares, isolated_share, max_min, water_filling
from schedgym.papers.judging import (
    PERCENT,
    POINTS,
    Effect,
    Rule,
    about,
    average,
    between,
    compare_overall,
    excess_overall,
    grows,
    judge_better,
    judge_claim,
    larger,
    level,
    lower,
    number,
    pool,
    settings_of,
    tell_mean,
    verdict_of,
    where,
)
from schedgym.papers.registry import Check
from schedgym.playing import steps

# how the rules behind the verdicts quantify the thesis's words
CLOSE = 0.05  # "little difference": distributions lie 5 points apart at most
ALMOST_ALL = 0.9  # of the percentiles
FASTER = 2.0  # times the slots per task: "much faster"


def _named(judged: Judged, name: str) -> Judged:
    return dataclasses.replace(judged, name=f"guan2022/{name}")


# rules -----------------------------------------------------------------------------------------------


def swept_values(played: Evaluation) -> list[list[Any]]:
    """Return the values of each swept parameter in ascending order."""
    settings = settings_of(played)
    return [sorted({setting[name] for setting in settings}) for name in played.swept]


def response_at(played: Evaluation, policy: str, *values: Any, metric: str = RESPONSE) -> Floats:
    """Return the response [s], or another metric, by episode at given values of the swept parameters."""
    setting = dict(zip(played.swept, values, strict=True))
    return played.metric(policy, metric, **setting)


def compared(played: Evaluation, own: str, other: str) -> tuple[Effect, list[Effect]]:
    """Compare the responses of two policies over all settings together, and in each of them."""
    return compare_overall(played, own, other, functools.partial(played.metric, name=RESPONSE))


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


Curves = Sequence[Floats]  # distributions, of each episode


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
    settings, cases = settings_of(played, "aggressive"), []
    for policy in played.policies:
        often, rarely = (functools.partial(played.values, policy, aggressive=on) for on in (True, False))
        curves = {where(setting): (often(**setting), rarely(**setting)) for setting in settings}
        cases.append(judge_distance(policy, curves))
    return judge_claim(f"{claim} {CLOSE_CURVES}", cases)


def judge_close(claim: str, played: Evaluation, pairs: Iterable[tuple[str, str]]) -> Judged:
    """Judge that two policies have close distributions of the deviation in all settings."""
    settings, read, cases = settings_of(played), played.values, []
    for one, other in pairs:
        curves = {where(setting): (read(one, **setting), read(other, **setting)) for setting in settings}
        cases.append(judge_distance(f"{one} and {other}", curves))
    return judge_claim(f"{claim} {CLOSE_CURVES}", cases)


# what is decided -------------------------------------------------------------------------------------


def _by_skew(jobs: Jobs, read: Callable[[SchedulingEnv, int], Any]) -> Floats:
    """Return what is read of the episodes at a utilisation of 60% [skews, episodes, ...]."""
    envs = (make_env(FAIR, {**jobs.parameters, "zipf": skew, "utilization": 0.6}) for skew in jobs.skews)
    return np.array([[read(env, i) for i in range(jobs.episodes)] for env in envs], dtype=float)


def _tell_skews(
    jobs: Jobs, table: Floats, rule: Rule, form: str = ".0f", percent: bool = True
) -> tuple[str, Verdict]:
    """Write the means of a table [skews, episodes] with their intervals, and judge them."""
    factor, unit = (100, "%") if percent else (1, "")
    means = [tell_mean(factor * own, form, unit) for own in table]
    told = ", ".join(f"{mean} at zipf {skew:g}" for mean, skew in zip(means, jobs.skews, strict=True))
    return told, verdict_of(rule(average("", own)) for own in table)


def judge_incentive(run: Run, jobs: Jobs, kind: str) -> Judged:
    """Judge how many allocations of AMF or GAMF, of decisions or of jobs, satisfy the sharing incentive."""
    by_job = run.choice(OPEN["INCENTIVE"]) == "job"
    met = jobs_with_incentive if by_job else has_incentive
    most = run.size(40, 200, 10)

    def counted(env: SchedulingEnv, episode: int) -> tuple[int, int]:
        return count_incentives(env, met, kind.lower(), run.seed, most, episode)

    kept, seen = np.moveaxis(_by_skew(jobs, counted), -1, 0)
    told, verdict = _tell_skews(jobs, kept / seen, between(0.5, 1.0))
    what = "jobs in decisions" if by_job else "decisions"
    measured = f"of about {seen.sum(axis=1).mean():.0f} {what} at each skew: {told}"
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


def _slots(env: SchedulingEnv) -> Integers:
    return np.array(env.simulator.jobs.slots[0])


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
    slots = _slots(env)
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


def jobs_with_incentive(tasks: Any, sites: Any, slots: Any, policy: str) -> Flags:
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

    def spreads(env: SchedulingEnv, episode: int) -> Floats:
        rows = []
        for tasks, sites in _decisions(env, "amf", run.seed, 50, episode):
            slots = _slots(env)
            demand, single = at_associated(tasks, sites, len(slots)), single_sites(len(slots))
            amf, gamf = max_min(demand, single, slots)[0], max_min(tasks, sites, slots)[0]
            rows.append([np.std(x) for x in (water_filling(demand, slots).sum(axis=1), amf, gamf)])
        return np.mean(rows, axis=0)

    found = dict(zip(("IMF", "AMF", "GAMF"), np.moveaxis(_by_skew(jobs, spreads), -1, 0), strict=True))
    pairs = zip(found[policy], found[rival], strict=True)
    settings = {f"at zipf {skew:g}": pair for skew, pair in zip(jobs.skews, pairs, strict=True)}
    overall = pool(*excess_overall(f"{policy} against {rival}", settings), lower(by), larger())
    much = f"much (here: by {100 * by:.0f}%) " if by else ""
    said = f"the decided aggregates of {policy} are {much}more balanced than {rival}'s"
    return judge_claim(said, [overall], what="mean deviation of the decided aggregates")


def sub_jobs_exponent(demands: Iterable[Integers], slots: Integers) -> float:
    """Return the power of the number of a job's sub-jobs with which its slots grow under IMF.

    It is that of least squares of the logarithms, with a constant for each decision.

    Args:
        demands: unfinished tasks [J, M] of the jobs at the sites, of each decision.
        slots: of the sites [M].
    """
    products = np.zeros(2)
    for demand in demands:
        x, y = np.log((demand > 0).sum(axis=1)), np.log(water_filling(demand, slots).sum(axis=1))
        products += (x - x.mean()) @ np.column_stack([y, x])
    return float(products[0] / products[1])


def served_unevenly(demand: Integers, shares: Floats) -> Flags:
    """Return by job with several sub-jobs whether one has FASTER times the slots per task of another."""
    several = np.count_nonzero(demand, axis=1) > 1
    rates = shares[several] / np.where(demand > 0, demand, np.nan)[several]
    return np.nanmax(rates, axis=1) >= FASTER * np.nanmin(rates, axis=1)


def _judge_proportion(run: Run) -> Judged:
    """Judge whether a job's slots under IMF grow in proportion to the number of its sub-jobs."""
    jobs = runs.fitted(run)

    def exponent(env: SchedulingEnv, episode: int) -> float:
        slots, seen = _slots(env), _decisions(env, "imf", run.seed, 50, episode)
        return sub_jobs_exponent((at_associated(*own, len(slots)) for own in seen), slots)

    told, verdict = _tell_skews(jobs, _by_skew(jobs, exponent), about(1.0), ".2f", percent=False)
    text = "under IMF a job's slots grow with the number of its sub-jobs to the power of (here: about 1)"
    return Judged(text, told, verdict)


def _judge_uneven(run: Run) -> Judged:
    """Judge whether Basic AMF may serve the sub-jobs of a job unevenly, beside Optimized AMF."""
    jobs = runs.fitted(run)

    def uneven(env: SchedulingEnv, episode: int) -> list[float]:
        slots, found = _slots(env), []
        for tasks, sites in _decisions(env, "amf", run.seed, 50, episode):
            demand, single = at_associated(tasks, sites, len(slots)), single_sites(len(slots))
            for solve in (max_min, completion_shares):
                found.append(served_unevenly(demand, solve(demand, single, slots)[1][:, :, 0]))
        return [float(np.mean(np.concatenate(found[i::2]))) for i in range(2)]

    both = np.moveaxis(_by_skew(jobs, uneven), -1, 0)
    (told, verdict), (better, _) = (_tell_skews(jobs, own, larger()) for own in both)
    text = f"under Basic AMF jobs have a sub-job with {FASTER:g} times the slots per task of another"
    return Judged(text, f"of the jobs with several: {told}; with Algorithm 6: {better}", verdict)


# statements ------------------------------------------------------------------------------------------


def judge_two_groups(played: Evaluation) -> Judged:
    """Judge that AMF and GAMF curves are farther apart than any two curves of the same group."""
    apart = {}
    for setting in settings_of(played):
        curves = {label: played.values(label, **setting) for label in played.policies}
        gaps: dict[bool, list[Floats]] = {True: [], False: []}  # of curves of one group, and of two
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


def recomputed_elsewhere(run: Run, jobs: Jobs) -> Evaluation:
    """Run two policies that decide again at every end of a task, or not, at the ends of all that is swept."""
    swept = {"zipf": jobs.skews, "utilization": jobs.utilizations}
    grid = {name: sorted({values[0], values[-1]}) for name, values in swept.items()}
    some = {"Basic AMF": "amf", "Optimized AMF": "opt-amf"}
    return runs.aggressive(run, jobs._replace(episodes=run.size(2, 20, 2)), some, grid)


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
    "recomputation elsewhere": lambda run: recomputed_elsewhere(run, runs.fitted(run)),
    "all utilisations": lambda run: runs.shared(run, runs.fitted(run)),
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
    return compare_overall(played, own, other, played.values)


def _judge_queues(run: Run) -> Judged:
    """Judge whether BTAwJ's queues are less balanced over the sites than SWAG's in some setting."""
    policies = {"BTAwJ": "btawj-swag", "SWAG": "swag"}
    options = {"BTAwJ": {"fine": run.choice(OPEN["EVENNESS"])}}
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
        if own.decided is None or run.choice(OPEN["BALANCE"]) == "occupied":
            return own.judge(RUNS[own.runs](run))
        return judge_decided(run, runs.fitted(run), **own.decided)

    return _found(find)


claim.compare("experiments", _sentence)
claim("btawj-queues")(_found(_judge_queues))
claim("amf-over-lifetime")(_found(_judge_lifetime))
claim("imf-in-proportion")(_found(_judge_proportion))
claim("amf-uneven-sub-jobs")(_found(_judge_uneven))
for _kind, _name in INCENTIVES.items():
    claim(_name)(_found(functools.partial(_judge_incentive, _kind)))
