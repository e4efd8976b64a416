"""Figures of "Task Allocation and Scheduling for Distributed Job Execution" (guan2022).

Chapter 3 assigns tasks to sites, chapters 4 and 5 share the sites' slots. Both run two traces: an hour of
Google's, which the thesis does not publish (a synthetic workload with its numbers stands in for it), and
Facebook's of 2010, which ``schedgym trace fetch facebook-2010`` fetches. Policies of chapter 4 leave tasks
at their associated sites; so both chapters share runs in which each task has two sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled
from scipy.optimize import brentq

from schedgym.core.policy import make_policy
from schedgym.core.problem import Statement
from schedgym.envs import SchedulingEnv
from schedgym.evaluation.runner import make_env, observed_sweep, policy_rng
from schedgym.evaluation.statistics import bootstrap_interval, split_settings
from schedgym.papers import (
    HOLDS,
    IN_PART,
    NOT_REPRODUCED,
    Judged,
    Outcome,
    Panel,
    Played,
    Run,
    Series,
    figure,
    get_paper,
    judge,
)
from schedgym.papers.figures import band, bound, distribution
from schedgym.papers.judging import (
    POINTS,
    Comparison,
    average,
    compare,
    grows,
    judge_better,
    judge_claim,
    level,
    number,
    verdict_of,
    where,
)
from schedgym.problems.geo.metrics import fates
from schedgym.problems.geo.problem import PROBLEM, GeoParameters
from schedgym.problems.geo.workload import (
    PARETO_LEAST,
    PARETO_SHAPE,
    from_trace,
    generate,
    make_source,
    toy,
)
from schedgym.solvers.max_min import isolated_share, max_min
from schedgym.traces import read_trace
from schedgym.traces.fetch import fetch

__all__ = ["PAPER", "deviation_curve", "deviations", "response_curve", "worked_example"]

F8 = npt.NDArray[np.float64]

PAPER = get_paper("guan2022")
ASSIGN, FAIR = "schedgym/GeoAssign-v0", "schedgym/GeoFair-v0"

ASSIGNERS = {
    "ATA": "ata",
    "ATA-Greedy": "ata-greedy",
    "SCTA": "scta",
    "BTAaJ": "btaaj-swag",
    "BTAwJ": "btawj-swag",
    "SWAG": "swag",
}
AMF = {
    "Basic AMF": "amf",
    "Optimized AMF": "opt-amf",
    "Basic SIG-AMF": "sig-amf",
    "Optimized SIG-AMF": "opt-sig-amf",
}
GAMF = {label.replace("AMF", "GAMF"): name.replace("amf", "gamf") for label, name in AMF.items()}
SHARERS = {"IMF": "imf", **AMF, **GAMF}

RESPONSE, SPREAD = "mean_response", "mean_std_no_drain"
Z = "Zipf skew parameter"
RESPONSE_AXIS = "average job response time [s]"
LEVELS = np.arange(1, 100)  # percentiles of responses that are compared
RESPONSES = np.geomspace(0.1, 1e6, 211)  # places of the distributions of responses, in mean durations
SPREADS = np.linspace(0.0, 100.0, 201)  # of those of deviations [slots]

# how the rules behind the verdicts quantify the thesis's words
LEVEL = 0.02  # "the same": means differ by 2% at most
CLOSE = 0.05  # "little difference": distributions lie 5 points apart at most, "a little worse": by 5% at most
MUCH = 0.10  # "much more balanced": by 10% at least
ALMOST_ALL = 0.9  # of the percentiles

TRACE_DAYS = 29  # length of the 2011 Google trace, and so of its longest observable task
DAY = 86400.0  # s
GOOGLE_MEAN = 1374.7  # s, of the durations
GOOGLE_JOBS, GOOGLE_TASKS = 2944, 48504
FACEBOOK_JOBS, FACEBOOK_TASKS = 24024, 1102281

STAND_IN = (
    "a synthetic stand-in for the hour of the 2011 Google trace, which the thesis does not publish: as many "
    f"jobs, on average as many tasks of the same mean duration, Pareto up to the trace's {TRACE_DAYS} days"
)
WINDOWS = "windows of the Facebook trace instead of all of it; the scale paper takes all"
TAIL = (
    "durations are Pareto without a cap, as printed: the longest task may last longer than all arrivals "
    "take; it adds the same to every policy, and makes relative differences small"
)
WHOLE = "balance counts whole tasks per slot, as printed: small jobs leave the choice of site to ties"
NO_DRAIN = (
    "time counts up to the last arrival: the few jobs whose long tasks outlast the others would be most of it"
)
COMMON = (
    "intervals leave out what is common to all algorithms in an episode: few long tasks make most of it, and "
    "differences are taken within episodes"
)
SHARED_BOUND = "the lower bound is that of tasks with two available sites, as in chapter 5"


# the two traces --------------------------------------------------------------------------------------


class Jobs(NamedTuple):
    """Settings of the figures of one trace, a line on sizes, and the deviations from the thesis."""

    name: str
    parameters: dict[str, Any]
    episodes: int
    sizes: str
    remarks: tuple[str, ...]
    skews: Sequence[float]
    utilizations: Sequence[float]


def _mean_before_cap(mean: float, cap: float) -> float:
    """Return the mean [s] of Pareto durations that have mean ``mean`` [s] when cut at ``cap`` [s]."""

    def surplus(uncut: float) -> float:
        least = PARETO_LEAST * uncut
        lost = least**PARETO_SHAPE * cap ** (1.0 - PARETO_SHAPE) / (PARETO_SHAPE - 1.0)
        return uncut - lost - mean

    return float(brentq(surplus, mean, 2.0 * mean))


def _skews(run: Run) -> list[float]:
    return run.size([0.0, 1.0, 2.0], [0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 1.0])


def _utilizations(run: Run) -> list[float]:
    return run.size([0.4, 0.5, 0.6, 0.7], [0.4, 0.5, 0.6, 0.7], [0.6])


def _google(run: Run) -> Jobs:
    jobs, cap = run.size(GOOGLE_JOBS, GOOGLE_JOBS, 40), TRACE_DAYS * DAY
    episodes = run.size(6, 20, 2)
    durations = {"mean_duration": _mean_before_cap(GOOGLE_MEAN, cap), "duration_cap": cap}
    return Jobs(
        "Google",
        {**PROBLEM.presets["google"], "jobs": jobs, **durations},
        episodes,
        f"{episodes} draws of {jobs} jobs",
        (STAND_IN,),
        _skews(run),
        _utilizations(run),
    )


def _facebook_trace() -> str:
    """Return the path of the trace.

    Raises:
        FileNotFoundError: the trace is missing and cannot be fetched; the message says how to get it.
    """
    try:
        return str(fetch("facebook-2010"))
    except (OSError, DependencyNotInstalled) as error:
        raise FileNotFoundError(
            f"this figure needs the Facebook trace: run `schedgym trace fetch facebook-2010` ({error})"
        ) from error


def _facebook(run: Run) -> Jobs:
    episodes = run.size(8, 5, 2)
    windows: dict[str, int | str] = {"small": 1000, "paper": "all", "tiny": 30}
    jobs = windows[run.scale]
    sizes = f"{episodes} windows of {jobs} jobs of the trace"
    if jobs == "all":
        sizes = f"{episodes} draws of sites and durations for all jobs of the trace"
    return Jobs(
        "Facebook",
        {**PROBLEM.presets["trace"], "trace": _facebook_trace(), "jobs": jobs},
        episodes,
        sizes,
        (TAIL,) if jobs == "all" else (WINDOWS, TAIL),
        _skews(run),
        _utilizations(run),
    )


Trace = Callable[[Run], Jobs]


# what is looked at when an episode has ended ----------------------------------------------------------


def _shares(values: F8, weights: F8, places: F8) -> F8:
    """Return the share of the weight that belongs to values up to each place."""
    order = np.argsort(values, kind="stable")
    summed = np.concatenate([[0.0], np.cumsum(weights[order])])
    at = np.searchsorted(values[order], places, side="right")
    shares: F8 = summed[at] / summed[-1]
    return shares


def response_curve(env: SchedulingEnv) -> dict[str, F8]:
    """Return the distribution of an episode's response times.

    Returns:
        shares: of the jobs with a response up to RESPONSES times the mean duration [len(RESPONSES)];
        percentiles: 1 to 99 [s] [99].
    """
    responses = np.array(fates(env.record())["response"])
    parameters = cast(GeoParameters, env.simulator.parameters)
    places = RESPONSES * parameters.mean_duration
    return {
        "shares": _shares(responses, np.ones(len(responses)), places),
        "percentiles": np.percentile(responses, LEVELS),
    }


def deviations(record: Any) -> tuple[F8, F8]:
    """Return the standard deviation over active jobs of their occupied slots, until the last arrival.

    Args:
        record: of a complete episode.

    Returns:
        deviations [slots], and how long each lasted [s]; time without an active job is left out.
    """
    arrival = record.workload.jobs["arrival"]
    owner = record.workload.tasks["job"][record.job]
    completion = np.zeros(len(arrival))
    np.maximum.at(completion, owner, record.end)
    job = np.concatenate([owner, owner])
    time = np.concatenate([record.end, record.start])
    change = np.repeat([-1, 1], len(owner))
    order = np.lexsort((time, job))
    # the changes of a job sum to 0, so one sum counts the running tasks of every job
    change = change[order]
    running = np.cumsum(change)
    squares = change * (2 * running - change)  # by how much the square of the job's running tasks grows
    times = np.concatenate([time[order], arrival, completion])
    none = np.zeros(2 * len(arrival), dtype=np.int64)
    order = np.argsort(times, kind="stable")
    occupied = np.cumsum(np.concatenate([change, none])[order])
    summed = np.cumsum(np.concatenate([squares, none])[order])
    active = np.cumsum(np.concatenate([np.zeros(len(change)), np.repeat([1, -1], len(arrival))])[order])
    times = times[order]
    length = np.diff(times)
    kept = (length > 0) & (active[:-1] > 0) & (times[:-1] < arrival[-1])
    count = active[:-1][kept]
    spread = np.sqrt(np.maximum(count * summed[:-1][kept] - occupied[:-1][kept] ** 2.0, 0.0)) / count
    return spread, length[kept]


def deviation_curve(env: SchedulingEnv) -> F8:
    """Return the share of time until the last arrival with a deviation up to each entry of SPREADS."""
    return _shares(*deviations(env.record()), SPREADS)


def worked_example(env: SchedulingEnv) -> dict[str, Any]:
    """Return completion times [s] by job, and by site the number of tasks that had not started before 2 s."""
    record = env.record()
    waiting = np.bincount(record.server[record.start >= 2.0], minlength=len(record.workload.cluster["slots"]))
    return {"completions": fates(record)["completion"], "outstanding": waiting.tolist()}


# runs that figures share -----------------------------------------------------------------------------


def _assigned(run: Run, jobs: Jobs) -> Played:
    """Run the algorithms of chapter 3 at all utilisations and skews."""
    grid = {"utilization": jobs.utilizations, "zipf": jobs.skews}
    return run.play(
        ASSIGN, ASSIGNERS, jobs.episodes, grid, parameters=jobs.parameters, observe=response_curve
    )


def _shared(run: Run, jobs: Jobs) -> Played:
    """Run the policies of chapters 4 and 5 at all utilisations and skews."""
    grid = {"utilization": jobs.utilizations, "zipf": jobs.skews}
    parameters = {**jobs.parameters, "objective": "response"}
    return run.play(FAIR, SHARERS, jobs.episodes, grid, parameters=parameters, observe=deviation_curve)


def _only(played: Played, policies: Iterable[str]) -> Played:
    """Return the runs of some of the policies."""
    labels = list(policies)
    frame = played.frame[played.frame["policy"].isin(labels)]
    return Played(frame, [entry for entry in played.observed if entry.policy in labels])


# what is said ----------------------------------------------------------------------------------------


def _settings(played: Played, without: str = "") -> list[dict[str, Any]]:
    """Return the settings in ascending order, without one swept parameter."""
    found: list[dict[str, Any]] = []
    for setting, _ in split_settings(played.frame):
        setting.pop(without, None)
        if setting not in found:
            found.append(setting)
    return sorted(found, key=lambda setting: [*setting.values()])


def _swept(played: Played) -> list[list[Any]]:
    """Return the values of each swept parameter in ascending order."""
    settings = _settings(played)
    return [sorted({setting[name] for setting in settings}) for name in played.frame.attrs["swept"]]


def _response(played: Played, policy: str, *values: Any) -> F8:
    """Return the response [s] of each episode at given values of the swept parameters."""
    setting = dict(zip(played.frame.attrs["swept"], values, strict=True))
    return played.metric(policy, RESPONSE, **setting)


def _first(played: Played, value: Any) -> str:
    """Describe the place at which the first swept parameter has a value."""
    return where({played.frame.attrs["swept"][0]: value})


def _compared(played: Played, pairs: Iterable[tuple[str, str]]) -> list[Comparison]:
    """Compare the responses of the first of each pair with those of the second in all settings."""
    return [
        compare(
            f"{own} against {other}",
            played.metric(own, RESPONSE, **setting),
            played.metric(other, RESPONSE, **setting),
            where(setting),
        )
        for own, other in pairs
        for setting in _settings(played)
    ]


def _same(claim: str, played: Played, pairs: Sequence[tuple[str, str]]) -> Judged:
    """Judge that mean responses are about equal in all settings."""
    here = f"(here: the means differ by {100 * LEVEL:.0f}% at most)"
    return judge_claim(f"{claim} {here}", _compared(played, pairs), level(LEVEL))


def _trend(claim: str, played: Played, policies: Iterable[str], falls: bool = False) -> Judged:
    """Judge that the response grows (or falls) with the last swept parameter at every value of the first."""
    levels, places = _swept(played)
    cases = []
    for policy in policies:
        for value in levels:
            responses = [_response(played, policy, value, place) for place in places]
            cases.append(grows(policy, responses, place=_first(played, value), falls=falls))
    return judge_claim(claim, cases, what=f"from {places[0]:g} to {places[-1]:g}")


def _gain_grows(claim: str, played: Played, pairs: Sequence[tuple[str, str]]) -> Judged:
    """Judge that one policy's gain over another grows with the last swept parameter, at all of the first."""
    levels, places = _swept(played)
    cases = []
    for policy, rival in pairs:
        for value in levels:
            at = [(value, place) for place in places]
            gains = [1.0 - _response(played, policy, *x) / _response(played, rival, *x) for x in at]
            cases.append(grows(f"{policy} over {rival}", gains, POINTS, _first(played, value)))
    return judge_claim(claim, cases, what=f"gain from {places[0]:g} to {places[-1]:g}")


def _better(
    claim: str, played: Played, pairs: Iterable[tuple[str, str]], metric: str = RESPONSE, by: float = 0.0
) -> Judged:
    """Judge that the first policy of each pair is better than the second in all settings."""
    rivals: dict[str, list[str]] = {}
    for policy, rival in pairs:
        rivals.setdefault(policy, []).append(rival)
    return judge_better(
        played, claim, *(Statement("", policy, tuple(own), metric, by) for policy, own in rivals.items())
    )


# chapter 3: the worked example, and assigning tasks ---------------------------------------------------


#: policy -> completion times [s] that sections 3.2.1 to 3.2.4 give, and tasks outstanding at 2 s at each
#: site as the text has them or adds up to
EXAMPLE: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "BTAwJ": ("btawj-fcfs", (4, 9, 12), (7, 10, 7)),
    "BTAaJ": ("btaaj-fcfs", (4, 8, 11), (6, 9, 9)),
    "SCTA": ("scta", (4, 12, 6), (6, 8, 10)),
    "ATA": ("ata", (4, 10, 6), (8, 8, 8)),
}


@figure(
    PAPER,
    "table3.1",
    title="three jobs at three sites, worked out by hand",
    source="Table 3.1, Figs. 3.3-3.9",
)
def _example(run: Run) -> Outcome:
    workload, optimum = toy("table-3.1")
    policies = {label: name for label, (name, _, _) in EXAMPLE.items()} | {"ATA-Greedy": "ata-greedy"}

    def make() -> Played:
        return Played(
            *observed_sweep(ASSIGN, policies, {}, 1, run.seed, observe=worked_example, workloads=[workload])
        )

    played = run.once("table3.1", make)
    jobs = ["job 1", "job 2", "job 3", "mean"]
    times, waiting = [], []
    said = []
    for label in policies:
        (seen,) = played.values(label)
        responses = (np.array(seen["completions"]) - workload.jobs["arrival"]).tolist()
        mean = sum(responses) / 3
        times.append(Series(label, jobs, [*responses, mean]))
        waiting.append(Series(label, ["site 1", "site 2", "site 3"], seen["outstanding"]))
        if label in EXAMPLE:
            _, ends, left = EXAMPLE[label]
            said.append(_as_printed(f"with {label} the jobs end at", "s", ends, seen["completions"]))
            head = f"with {label} the sites have left at 2 s"
            said.append(_as_printed(head, "tasks", left, seen["outstanding"]))
    times.append(Series("optimum", ["mean"], [optimum], bound=True))
    panels = [
        Panel("", "response time [s]", times, title="(a) response times", kind="bars"),
        Panel("", "tasks not started at 2 s", waiting, title="(b) outstanding tasks", kind="bars"),
    ]
    order = "BTAwJ and BTAaJ serve jobs in order of arrival here, as the printed times do, and not in SWAG's"
    return Outcome(panels, said, "3 jobs with 29 tasks of 1 s on 3 slots", (order,))


def _as_printed(head: str, unit: str, printed: Sequence[float], seen: Sequence[float]) -> Judged:
    right = sum(a == b for a, b in zip(printed, seen, strict=True))
    verdict = HOLDS if right == len(printed) else IN_PART if right else NOT_REPRODUCED
    claim, measured = (", ".join(f"{value:g}" for value in values) for values in (printed, seen))
    return Judged(f"{head} {claim} {unit}", f"{measured} {unit}", verdict)


def _means(played: Played) -> list[Series]:
    """Mean responses over the only swept parameter; intervals leave out what an episode's policies share."""
    (places,) = _swept(played)
    values = {p: np.array([_response(played, p, place) for place in places]) for p in played.policies}
    common = np.mean(list(values.values()), axis=(0, 1))
    series = []
    for policy, own in values.items():
        low, high = zip(*(bootstrap_interval(v - common + common.mean()) for v in own), strict=True)
        series.append(Series(policy, places, own.mean(axis=1).tolist(), low, high))
    return series


def _by_utilization(played: Played, x: str, x_label: str) -> list[Panel]:
    """Mean responses, a panel for each utilisation."""
    panels = []
    for i, utilization in enumerate(dict.fromkeys(entry.setting["utilization"] for entry in played.observed)):
        part = played.where(utilization=utilization)
        series = [*_means(part), bound(part, x)]
        title = f"({'abcd'[i]}) utilisation {100 * utilization:.0f}%"
        panels.append(Panel(x_label, RESPONSE_AXIS, series, title=title, y_from_zero=False))
    return panels


def _responses(run: Run, trace: Trace) -> Outcome:
    jobs = trace(run)
    played = _assigned(run, jobs)
    said = [
        _trend("responses grow with the skew, whatever the algorithm", played, ASSIGNERS),
        _better(
            "SCTA and ATA are better than BTAwJ and BTAaJ",
            played,
            [(policy, rival) for policy in ("SCTA", "ATA") for rival in ("BTAwJ", "BTAaJ")],
        ),
        _better("ATA is better than SCTA", played, [("ATA", "SCTA")]),
        _gain_grows("the gain of ATA over SCTA grows with the skew", played, [("ATA", "SCTA")]),
        _little_worse(played),
        _better(
            "ATA-Greedy is better than all others but ATA",
            played,
            [("ATA-Greedy", rival) for rival in ("SCTA", "BTAaJ", "BTAwJ", "SWAG")],
        ),
        _better(
            "SWAG is worse than all the proposed algorithms but BTAwJ",
            played,
            [(policy, "SWAG") for policy in ("ATA", "ATA-Greedy", "SCTA", "BTAaJ")],
        ),
        _sometimes_worse(played),
        _consistent(played),
    ]
    panels = _by_utilization(played, "zipf", Z)
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, WHOLE, COMMON))


def _little_worse(played: Played) -> Judged:
    def judge(found: Comparison) -> str:
        return level(CLOSE)(found) if found.above else NOT_REPRODUCED

    claim = f"ATA-Greedy is a little (here: by 0 to {100 * CLOSE:.0f}%) worse than ATA"
    return judge_claim(claim, _compared(played, [("ATA-Greedy", "ATA")]), judge)


def _sometimes_worse(played: Played) -> Judged:
    """Judge BTAwJ against SWAG: in which settings it is worse, and in which better."""
    found = _compared(played, [("BTAwJ", "SWAG")])
    worse, better = sum(case.above for case in found), sum(case.below for case in found)
    values = [case.value for case in found]
    measured = (
        f"BTAwJ against SWAG {number(min(values))} to {number(max(values))}: significantly worse in {worse} "
        f"of {len(found)} settings, better in {better}"
    )
    verdict = NOT_REPRODUCED if not worse else HOLDS if better else IN_PART
    return Judged("BTAwJ is worse than SWAG in some settings, and better in others", measured, verdict)


def _consistent(played: Played) -> Judged:
    """Judge that each comparison, averaged over the skews, has the same sign at every utilisation."""
    levels, skews = _swept(played)
    pairs = [("ATA", "SCTA"), ("ATA", "ATA-Greedy"), ("SCTA", "BTAaJ"), ("SCTA", "BTAwJ"), ("BTAaJ", "SWAG")]
    texts, same = [], []
    for pair in pairs:
        table = np.reshape([case.value for case in _compared(played, [pair])], (len(levels), len(skews)))
        means = table.mean(axis=1)
        same.append(len({mean < 0 for mean in means}) == 1)
        texts.append(f"{' against '.join(pair)} {', '.join(map(number, means))}")
    at = ", ".join(f"{100 * value:.0f}" for value in levels)
    measured = f"means at utilisations of {at}%: {'; '.join(texts)}"
    verdict = HOLDS if all(same) else IN_PART if any(same) else NOT_REPRODUCED
    return Judged("the order of the algorithms is the same at all utilisations", measured, verdict)


@figure(PAPER, "fig3.11", title="mean response by skew, Google", source="Fig. 3.11, section 3.4")
def _responses_google(run: Run) -> Outcome:
    return _responses(run, _google)


@figure(PAPER, "fig3.12", title="mean response by skew, Facebook", source="Fig. 3.12, section 3.4")
def _responses_facebook(run: Run) -> Outcome:
    return _responses(run, _facebook)


def _response_distribution(run: Run, trace: Trace) -> Outcome:
    jobs = trace(run)
    played = _assigned(run, jobs).where(zipf=1.0)
    places = RESPONSES * jobs.parameters.get("mean_duration", GeoParameters().mean_duration)
    panels = []
    for i, utilization in enumerate(jobs.utilizations):
        shares = {p: played.values(p, "shares", utilization=utilization) for p in ASSIGNERS}
        seen = _visible([np.mean(own, axis=0) for own in shares.values()])
        series = [band(p, places[seen], [own[seen] for own in shares[p]]) for p in ASSIGNERS]
        title = f"({'abcd'[i]}) utilisation {100 * utilization:.0f}%"
        panels.append(
            Panel("job response time [s]", "share of the jobs", series, title, kind="curves", x_scale="log")
        )
    rivals = ("SCTA", "BTAaJ", "BTAwJ", "SWAG")
    said = [_percentiles(played, policy, rivals) for policy in ("ATA", "ATA-Greedy")]
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, WHOLE))


def _visible(curves: Sequence[F8]) -> slice:
    """Return the places at which curves of shares are neither all 0 nor all 1, and one more at each end."""
    table = np.array(curves)
    inside = np.flatnonzero((table.max(axis=0) > 0.002) & (table.min(axis=0) < 0.998))
    if not len(inside):
        return slice(None)
    return slice(max(int(inside[0]) - 1, 0), int(inside[-1]) + 2)


def _percentiles(played: Played, policy: str, rivals: Sequence[str]) -> Judged:
    """Judge that a policy has the lower response at almost all percentiles."""
    texts, verdicts = [], []
    for rival in rivals:
        lower = higher = count = 0
        for utilization in dict.fromkeys(entry.setting["utilization"] for entry in played.observed):
            own, base = (
                np.array(played.values(p, "percentiles", utilization=utilization)) for p in (policy, rival)
            )
            for column in (own / base - 1.0).T:
                low, high = bootstrap_interval(column, resamples=2000)
                lower += high < 0
                higher += low > 0
                count += 1
        texts.append(f"{rival}: lower at {100 * lower / count:.0f}%, higher at {100 * higher / count:.0f}%")
        enough = ALMOST_ALL * count
        part = IN_PART if lower and count - higher >= enough else NOT_REPRODUCED
        verdicts.append(HOLDS if lower >= enough else part)
    claim = f"{policy} has lower responses at almost all (here: {100 * ALMOST_ALL:.0f}%) of the percentiles"
    measured = f"significantly, of 99 percentiles at each utilisation, than {'; '.join(texts)}"
    return Judged(claim, measured, verdict_of(verdicts))


@figure(PAPER, "fig3.13", title="distribution of responses, Google, skew 1", source="Fig. 3.13, section 3.4")
def _response_distribution_google(run: Run) -> Outcome:
    return _response_distribution(run, _google)


@figure(
    PAPER, "fig3.14", title="distribution of responses, Facebook, skew 1", source="Fig. 3.14, section 3.4"
)
def _response_distribution_facebook(run: Run) -> Outcome:
    return _response_distribution(run, _facebook)


def _by_sites(run: Run, trace: Trace) -> Outcome:
    jobs = trace(run)
    levels = run.size([0.4, 0.7], [0.4, 0.5, 0.6, 0.7], [0.6])
    grid: dict[str, Sequence[Any]] = {
        "utilization": levels,
        "choices": run.size([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2]),
    }
    played = run.play(ASSIGN, ASSIGNERS, jobs.episodes, grid, parameters={**jobs.parameters, "zipf": 1.0})
    proposed = [policy for policy in ASSIGNERS if policy != "SWAG"]
    single = _compared(played.where(choices=1), [(policy, "SWAG") for policy in proposed])
    said = [
        _trend("responses of the proposed algorithms fall with more sites", played, proposed, falls=True),
        judge_claim("with one available site all algorithms have the same responses", single, level(1e-9)),
        _same_ranking(played, proposed),
    ]
    panels = _by_utilization(played, "choices", "number of available sites")
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, WHOLE, COMMON))


def _same_ranking(played: Played, policies: Sequence[str]) -> Judged:
    """Judge that no two algorithms change their order between 2 sites and the largest number of sites."""
    levels, numbers = _swept(played)
    pairs = [(a, b) for i, a in enumerate(policies) for b in policies[i + 1 :]]
    changed = []
    for pair in pairs:
        table = np.reshape(np.array(_compared(played, [pair]), dtype=object), (len(levels), len(numbers)))
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


@figure(PAPER, "fig3.15", title="mean response by available sites, Google", source="Fig. 3.15, section 3.4")
def _by_sites_google(run: Run) -> Outcome:
    return _by_sites(run, _google)


@figure(PAPER, "fig3.16", title="mean response by available sites, Facebook", source="Fig. 3.16, section 3.4")
def _by_sites_facebook(run: Run) -> Outcome:
    return _by_sites(run, _facebook)


# chapter 4: the traces, and sharing sites whose tasks have one site ------------------------------------


@figure(PAPER, "fig4.2", title="numbers of tasks and durations of the traces", source="Fig. 4.2, section 4.6")
def _traces(run: Run) -> Outcome:
    jobs = _google(run)
    _, facebook = from_trace(read_trace(_facebook_trace()))
    source = make_source(GeoParameters(**jobs.parameters))
    drawn = [generate(run.seed, episode, source) for episode in range(jobs.episodes)]
    sizes = [np.bincount(workload.tasks["job"]).astype(float) for workload in drawn]
    durations = [workload.tasks["duration"] for workload in drawn]
    lengths = np.geomspace(100.0, TRACE_DAYS * DAY, 200)
    counts, most = (
        np.unique(np.geomspace(1, top, 200).round()) for top in (max(map(np.max, sizes)), facebook.max())
    )
    share = "share of the jobs"
    panels = [
        _curve("(a) tasks of a job, Google", "number of tasks", share, distribution("Google", counts, sizes)),
        _curve(
            "(b) durations, Google",
            "task duration [s]",
            "share of the tasks",
            distribution("Google", lengths, durations),
        ),
        _curve(
            "(c) tasks of a job, Facebook",
            "number of tasks",
            share,
            distribution("Facebook", most, [facebook.astype(float)]),
        ),
    ]
    total = int(facebook.sum())
    right = (len(facebook) == FACEBOOK_JOBS) + (total == FACEBOOK_TASKS)
    said = [
        Judged(
            "the Facebook trace has 24,024 jobs with 1,102,281 tasks of 1 GB",
            f"{len(facebook):,} jobs with {total:,} tasks",
            (NOT_REPRODUCED, IN_PART, HOLDS)[right],
        ),
        _around("the Google hour has 48,504 tasks in 2944 jobs", sizes, np.sum, GOOGLE_TASKS, "tasks"),
        _around(
            "durations in the Google trace have a mean of 1374.7 s", durations, np.mean, GOOGLE_MEAN, "s"
        ),
        _heavy(durations),
    ]
    return Outcome(panels, said, f"{jobs.sizes}; {len(facebook)} jobs of the Facebook trace", jobs.remarks)


def _curve(title: str, x: str, y: str, series: Series) -> Panel:
    return Panel(x, y, [series], title, kind="curves", x_scale="log")


def _around(
    claim: str, episodes: Sequence[F8], statistic: Callable[[F8], Any], printed: float, unit: str
) -> Judged:
    """Judge that the 95% interval of the mean over the draws contains a printed number."""
    values = np.array([float(statistic(own)) for own in episodes])
    low, high = bootstrap_interval(values)
    verdict = judge(low <= printed <= high)
    return Judged(claim, f"the stand-in {values.mean():,.0f} {unit} ({low:,.0f} to {high:,.0f})", verdict)


def _heavy(durations: Sequence[F8]) -> Judged:
    """Judge that the longest 1% of the tasks have more of the work than with exponential durations."""
    parts = np.array([np.sort(own)[-max(len(own) // 100, 1) :].sum() / own.sum() for own in durations])
    low, high = bootstrap_interval(parts)
    light = 0.01 * (1.0 + math.log(100.0))
    measured = (
        f"the longest 1% of the stand-in's tasks have {100 * parts.mean():.0f}% of the work "
        f"({100 * low:.0f} to {100 * high:.0f}); of exponential ones {100 * light:.1f}%"
    )
    claim = "durations in the Google trace have a heavy tail"
    return Judged(claim, measured, judge(low > light))


def _deviation_panel(title: str, curves: Mapping[str, Sequence[F8]]) -> Panel:
    """Draw distributions of the deviation over time, from the shares of each episode at SPREADS, by label."""
    seen = _visible([np.mean(own, axis=0) for own in curves.values()])
    series = [band(label, SPREADS[seen], [own[seen] for own in shares]) for label, shares in curves.items()]
    x = "standard deviation of the jobs' allocations [slots]"
    return Panel(x, "share of the time", series, title, kind="curves")


def _distance(name: str, one: Sequence[F8], other: Sequence[F8], place: str = "") -> Comparison:
    """Compare two distributions by their largest distance, a share of the time, in each episode."""
    return average(name, [float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True)], place=place)


CLOSE_CURVES = f"(here: the distributions lie {100 * CLOSE:.0f} points apart at most)"


def _aggressive(
    run: Run, jobs: Jobs, policies: Mapping[str, str], grid: Mapping[str, Sequence[Any]]
) -> Played:
    """Run policies that decide shares anew at every end of a task, or not; this is swept last."""
    return run.play(
        FAIR,
        policies,
        jobs.episodes,
        {**grid, "aggressive": [False, True]},
        parameters={**jobs.parameters, "objective": "response"},
        observe=deviation_curve,
    )


def _little_difference(claim: str, played: Played) -> Judged:
    """Judge that deciding again whenever a task ends leaves the distributions of the deviation unchanged."""
    cases = []
    for policy in played.policies:
        for setting in _settings(played, "aggressive"):
            often, seldom = (played.values(policy, aggressive=on, **setting) for on in (True, False))
            cases.append(_distance(policy, often, seldom, where(setting)))
    return judge_claim(f"{claim} {CLOSE_CURVES}", cases, level(CLOSE))


@figure(
    PAPER,
    "fig4.3",
    title="deviation, default and aggressive, Google",
    source="Fig. 4.3, section 4.7",
)
def _recomputation(run: Run) -> Outcome:
    jobs = _google(run)
    wide = jobs._replace(
        parameters={**jobs.parameters, "sites": 30, "zipf": 0.0, "utilization": 0.6},
        episodes=run.size(3, 20, 2),
    )
    played = _aggressive(run, wide, AMF, {})
    curves = {
        label + (" (Aggressive)" if on else ""): played.values(label, aggressive=on)
        for label in AMF
        for on in (False, True)
    }
    some = {"Basic AMF": "amf", "Optimized AMF": "opt-amf"}
    grid = {
        "zipf": [jobs.skews[0], jobs.skews[-1]],
        "utilization": [jobs.utilizations[0], jobs.utilizations[-1]],
    }
    others = _aggressive(run, jobs._replace(episodes=run.size(2, 20, 2)), some, grid)
    said = [
        _little_difference("recomputing at every end of a task makes little difference", played),
        _little_difference("so it is at other skews and utilisations", others),
    ]
    sizes = f"{wide.episodes} draws of {wide.parameters['jobs']} jobs, 30 sites"
    return Outcome([_deviation_panel("", curves)], said, sizes, (*jobs.remarks, NO_DRAIN))


def _at_skews(run: Run, jobs: Jobs, policies: Iterable[str]) -> tuple[Played, list[Panel]]:
    """Return the runs at a utilisation of 60%, and a panel with the deviations for each skew."""
    played = _only(_shared(run, jobs), policies).where(utilization=0.6)
    panels = [
        _deviation_panel(
            f"({'abcde'[i]}) {Z} {skew:g}", {label: played.values(label, zipf=skew) for label in policies}
        )
        for i, skew in enumerate(jobs.skews)
    ]
    return played, panels


def _close_together(claim: str, played: Played, pairs: Iterable[tuple[str, str]]) -> Judged:
    """Judge that two policies have close distributions of the deviation in all settings."""
    cases = []
    for one, other in pairs:
        for setting in _settings(played):
            own, rival = (played.values(label, **setting) for label in (one, other))
            cases.append(_distance(f"{one} and {other}", own, rival, where(setting)))
    return judge_claim(f"{claim} {CLOSE_CURVES}", cases, level(CLOSE))


def _sharing_incentive(run: Run, jobs: Jobs, label: str) -> Judged:
    """Judge in how many decisions the aggregates of AMF or GAMF are compatible with the sharing incentive."""

    def make() -> list[tuple[int, int]]:
        most = run.size(200, 2000, 20)
        counts = []
        for skew in jobs.skews:
            env = make_env(FAIR, {**jobs.parameters, "zipf": skew, "utilization": 0.6})
            counts.append(_count_incentives(env, SHARERS[label], run.seed, most))
        return counts

    key = f"incentive {jobs.name} {label}"
    counts = run.once(key, make)
    shares = [held / seen for held, seen in counts]
    at = ", ".join(f"{skew:g}" for skew in jobs.skews)
    text = ", ".join(f"{100 * share:.0f}" for share in shares)
    measured = f"{text}% of some {counts[0][1]} decisions at skews of {at}"
    verdict = verdict_of(judge(share > 0.5) for share in shares)
    return Judged(f"most allocations of {label} give every job its sharing incentive", measured, verdict)


def _count_incentives(env: SchedulingEnv, policy: str, seed: int, most: int) -> tuple[int, int]:
    """Count the decisions of an episode whose aggregates allow the sharing incentive, and all those examined.

    As aggregates are unique, they allow it if and only if the floors of the incentive do not change them.

    Args:
        env: of :func:`~schedgym.evaluation.runner.make_env`.
        policy: "amf" (floors at every site) or "gamf" (floors of the aggregates).
        seed: of the episode.
        most: at least so many decisions are examined, evenly spread, if the episode has so many.
    """
    acting = make_policy(f"geo/{policy}")
    seen: list[tuple[Any, ...]] = []
    observation, _ = env.reset(seed=seed)
    acting.reset(env.interface, policy_rng(seed, 0, policy))
    done, every, count = False, 1, 0
    while not done:
        active = int(observation["active"][0])
        if count % every == 0:
            tasks = observation["waiting"][:active] + observation["running"][:active].sum(axis=2)
            seen.append((tasks.astype(np.int64), observation["sites"].copy()))
            if len(seen) == 2 * most:  # keep every other one, and look at half as many from here
                del seen[1::2]
                every *= 2
        count += 1
        observation, _, terminated, truncated, _ = env.step(acting(observation))
        done = terminated or truncated
    slots = np.array(observation["slots"])
    return sum(_has_incentive(tasks, sites, slots, policy) for tasks, sites in seen), len(seen)


def _has_incentive(tasks: Any, sites: Any, slots: Any, policy: str) -> bool:
    """Return True if the floors of the sharing incentive leave the max-min fair aggregates unchanged."""
    if policy == "gamf":
        floors = isolated_share(tasks, sites, slots)
        demand = tasks
    else:
        demand = np.zeros((len(tasks), len(slots)), dtype=np.int64)
        for group, own in enumerate(sites[:, 0]):
            demand[:, own] += tasks[:, group]
        sites = np.arange(len(slots))[:, np.newaxis]
        floors = np.minimum(demand, slots / len(tasks))
    plain_shares, _ = max_min(demand, sites, slots)
    shares, _ = max_min(demand, sites, slots, floors=floors)
    return bool(np.allclose(plain_shares, shares, rtol=0, atol=1e-6))


SIG_PAIRS = {
    kind: [(f"{form} SIG-{kind}", f"{form} {kind}") for form in ("Basic", "Optimized")]
    for kind in ("AMF", "GAMF")
}


def _deviation_of_amf(run: Run, trace: Trace, *more: Callable[[Run, Jobs], Judged]) -> Outcome:
    jobs = trace(run)
    played, panels = _at_skews(run, jobs, ["IMF", *AMF])
    even = played.where(zipf=0.0)
    variants = [(label, "Basic AMF") for label in AMF if label != "Basic AMF"]
    much = f"much (here: by {100 * MUCH:.0f}% in the mean deviation)"
    said = [
        _better(
            f"all variants of AMF are {much} more balanced than IMF",
            played,
            [(label, "IMF") for label in AMF],
            SPREAD,
            MUCH,
        ),
        _better(f"AMF is {much} more balanced even without skew", even, [("Basic AMF", "IMF")], SPREAD, MUCH),
        _close_together("the variants of AMF have similar deviations", played, variants),
        _close_together("SIG-AMF has almost the same deviations as AMF", played, SIG_PAIRS["AMF"]),
        _sharing_incentive(run, jobs, "Basic AMF"),
        *(make(run, jobs) for make in more),
    ]
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, NO_DRAIN))


def _aggressive_facebook(run: Run, jobs: Jobs) -> Judged:
    part = jobs._replace(parameters={**jobs.parameters, "utilization": 0.6}, episodes=run.size(2, 2, 2))
    grid = {"zipf": run.size([0.0, 2.0], [0.0, 2.0], [1.0])}
    played = _aggressive(run, part, {"Basic AMF": "amf"}, grid)
    return _little_difference("recomputing at every end of a task makes little difference", played)


@figure(
    PAPER, "fig4.4", title="deviation of allocations by skew, Google, 60%", source="Fig. 4.4, section 4.7"
)
def _deviation_of_amf_google(run: Run) -> Outcome:
    return _deviation_of_amf(run, _google)


@figure(
    PAPER, "fig4.5", title="deviation of allocations by skew, Facebook, 60%", source="Fig. 4.5, section 4.7"
)
def _deviation_of_amf_facebook(run: Run) -> Outcome:
    return _deviation_of_amf(run, _facebook, _aggressive_facebook)


def _response_of_amf(run: Run, trace: Trace) -> Outcome:
    jobs = trace(run)
    played = _only(_shared(run, jobs), ["IMF", *AMF])
    against = [(label, "IMF") for label in AMF]
    optimised = [("Optimized AMF", "Basic AMF"), ("Optimized SIG-AMF", "Basic SIG-AMF")]
    said = [
        _better("all variants of AMF have lower responses than IMF", played, against),
        _gain_grows("their gain over IMF grows with the skew", played, against),
        _better("Optimized AMF has lower responses than Basic AMF", played, optimised),
        _gain_grows("the gain of Optimized over Basic AMF grows with the skew", played, optimised),
        _same("SIG-AMF has the same responses as AMF", played, SIG_PAIRS["AMF"]),
    ]
    panels = _by_utilization(played, "zipf", Z)
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, SHARED_BOUND, COMMON))


@figure(
    PAPER, "fig4.6", title="mean response by skew under IMF and AMF, Google", source="Fig. 4.6, section 4.7"
)
def _response_of_amf_google(run: Run) -> Outcome:
    return _response_of_amf(run, _google)


@figure(
    PAPER, "fig4.7", title="mean response by skew under IMF and AMF, Facebook", source="Fig. 4.7, section 4.7"
)
def _response_of_amf_facebook(run: Run) -> Outcome:
    return _response_of_amf(run, _facebook)


# chapter 5: sharing sites whose tasks have a choice ---------------------------------------------------

GENERAL = list(zip(GAMF, AMF, strict=True))  # each GAMF variant with its AMF counterpart
RECOMPUTED = (
    "shares are decided anew when a group of a job has finished: with a choice of sites it is not defined "
    "when a job has finished at a site"
)


def _deviation_of_gamf(run: Run, trace: Trace) -> Outcome:
    jobs = trace(run)
    played, panels = _at_skews(run, jobs, [*AMF, *GAMF])
    said = [
        _better("GAMF is more balanced than AMF (the text)", played, GENERAL, SPREAD),
        _better(
            "AMF is nearer to (0, 1), which is more balanced (the caption)",
            played,
            [(amf, gamf) for gamf, amf in GENERAL],
            SPREAD,
        ),
        _two_groups(played),
        _close_together("SIG-GAMF has almost the same deviations as GAMF", played, SIG_PAIRS["GAMF"]),
        _sharing_incentive(run, jobs, "Basic GAMF"),
    ]
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, NO_DRAIN, RECOMPUTED))


def _two_groups(played: Played) -> Judged:
    """Judge that AMF and GAMF curves are farther apart than any two curves of the same group."""
    texts, verdicts = [], []
    for setting in _settings(played):
        curves = {label: played.values(label, **setting) for label in played.policies}
        within, between = 0.0, 1.0
        for i, one in enumerate(curves):
            for other in list(curves)[i + 1 :]:
                gap = _distance("", curves[one], curves[other]).value
                if (one in AMF) == (other in AMF):
                    within = max(within, gap)
                else:
                    between = min(between, gap)
        texts.append(f"{100 * within:.1f} and {100 * between:.1f} points at skew {setting['zipf']:g}")
        verdicts.append(judge(between > within))
    measured = f"largest distance within a group, least between the groups: {'; '.join(texts)}"
    return Judged("the curves form two groups, of AMF and of GAMF", measured, verdict_of(verdicts))


@figure(
    PAPER,
    "fig5.1",
    title="deviation of allocations, AMF and GAMF, Google, 60%",
    source="Fig. 5.1, section 5.6",
)
def _deviation_of_gamf_google(run: Run) -> Outcome:
    return _deviation_of_gamf(run, _google)


@figure(
    PAPER,
    "fig5.2",
    title="deviation of allocations, AMF and GAMF, Facebook, 60%",
    source="Fig. 5.2, section 5.6",
)
def _deviation_of_gamf_facebook(run: Run) -> Outcome:
    return _deviation_of_gamf(run, _facebook)


def _response_of_gamf(run: Run, trace: Trace) -> Outcome:
    jobs = trace(run)
    played = _only(_shared(run, jobs), [*AMF, *GAMF])
    optimised = [("Optimized GAMF", "Basic GAMF"), ("Optimized SIG-GAMF", "Basic SIG-GAMF")]
    said = [
        _better("every variant of GAMF has lower responses than that of AMF", played, GENERAL),
        _better("Optimized GAMF has lower responses than Basic GAMF", played, optimised),
        _same("SIG-GAMF has the same responses as GAMF", played, SIG_PAIRS["GAMF"]),
    ]
    panels = _by_utilization(played, "zipf", Z)
    return Outcome(panels, said, jobs.sizes, (*jobs.remarks, RECOMPUTED, COMMON))


@figure(
    PAPER, "fig5.3", title="mean response by skew under AMF and GAMF, Google", source="Fig. 5.3, section 5.6"
)
def _response_of_gamf_google(run: Run) -> Outcome:
    return _response_of_gamf(run, _google)


@figure(
    PAPER,
    "fig5.4",
    title="mean response by skew under AMF and GAMF, Facebook",
    source="Fig. 5.4, section 5.6",
)
def _response_of_gamf_facebook(run: Run) -> Outcome:
    return _response_of_gamf(run, _facebook)
