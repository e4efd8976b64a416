"""Workloads of the experiments of guan2022, what is observed, and the runs that figures and claims share.

They run two traces: an hour of Google's, which the thesis does not publish (a synthetic workload with its
numbers stands in for it), and Facebook's of 2010, which ``schedgym trace fetch facebook-2010`` fetches.
Claims run on a generator fitted to the latter, which needs no trace. Policies of chapter 4 leave tasks at
their associated sites; so both chapters share runs in which each task has two sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from gymnasium.error import DependencyNotInstalled
from scipy.optimize import brentq

from schedgym.core.arrays import Floats
from schedgym.envs import SchedulingEnv
from schedgym.papers import Evaluation, Run
from schedgym.papers.figures import shares_up_to
from schedgym.papers.guan2022.share_search import OPEN
from schedgym.problems.geo.metrics import fates
from schedgym.problems.geo.problem import PROBLEM, GeoParameters
from schedgym.problems.geo.workload import PARETO_LEAST, PARETO_SHAPE
from schedgym.traces.fetch import fetch

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
#: the algorithms that place tasks by the flow of Algorithm 1
BALANCED = ("ATA", "SCTA", "BTAaJ", "BTAwJ")
GAMF = {label.replace("AMF", "GAMF"): name.replace("amf", "gamf") for label, name in AMF.items()}
SHARERS = {"IMF": "imf", **AMF, **GAMF}

RESPONSE, SPREAD = "mean_response", "mean_std_no_drain"
LEVELS = np.arange(1, 100)  # percentiles of responses that are compared
RESPONSES = np.geomspace(0.1, 1e6, 211)  # places of the distributions of responses, in mean durations
SPREADS = np.linspace(0.0, 100.0, 201)  # of those of deviations [slots]
TRACE_DAYS = 29  # length of the 2011 Google trace, and so of its longest observable task
DAY = 86400.0  # s
GOOGLE_MEAN = 1374.7  # s, of the durations
GOOGLE_JOBS = 2944
FACEBOOK_JOBS, FACEBOOK_TASKS = 24024, 1102281

STAND_IN = (
    "the workload is a synthetic stand-in for the hour of the 2011 Google trace, which the thesis does "
    "not publish: the number of jobs, the mean number of tasks and the mean duration are those of the hour; "
    f"durations are Pareto, up to the trace's {TRACE_DAYS} days"
)
WINDOWS = "windows of the Facebook trace instead of all of it, which --scale paper uses"
TAIL = "durations are Pareto without a cap, as printed: one of them may be longer than all arrivals take"
EVEN = (
    "BTAwJ, BTAaJ, SCTA and ATA balance single tasks (fine=True): the printed C counts whole tasks per "
    "slot, and so does not determine the sites of small jobs"
)
WHOLE = "whole tasks per slot are balanced, as printed: this does not determine the sites of small jobs"


# the two traces --------------------------------------------------------------------------------------


class Jobs(NamedTuple):
    """Settings of the runs of one workload, a line on sizes, and the deviations from the thesis."""

    name: str
    parameters: dict[str, Any]
    episodes: int
    sizes: str
    remarks: tuple[str, ...]
    skews: Sequence[float]
    utilizations: Sequence[float]


def mean_before_cap(mean: float, cap: float) -> float:
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


def google(run: Run) -> Jobs:
    """Return the settings of the stand-in for Google's hour."""
    jobs, cap = run.size(GOOGLE_JOBS, GOOGLE_JOBS, 40), TRACE_DAYS * DAY
    episodes = run.size(6, 20, 2)
    durations = {"mean_duration": mean_before_cap(GOOGLE_MEAN, cap), "duration_cap": cap}
    durations["durations"] = run.choice(OPEN["DURATIONS_3"])
    parameters = {**PROBLEM.presets["google"], "jobs": jobs, **durations}
    sizes = f"{episodes} draws of {jobs:,} jobs, in place of Google's hour"
    return Jobs("Google", parameters, episodes, sizes, (STAND_IN,), _skews(run), _utilizations(run))


def facebook_trace() -> str:
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


def facebook(run: Run) -> Jobs:
    """Return the settings of the Facebook trace: windows of it, or on the scale paper all of it."""
    episodes = run.size(8, 5, 2)
    windows: dict[str, int | str] = {"small": 1000, "paper": "all", "tiny": 30}
    jobs = windows[run.scale]
    sizes = f"{episodes} windows of {jobs} jobs of the Facebook trace"
    if jobs == "all":
        sizes = f"{episodes} draws of sites and durations for all jobs of the Facebook trace"
    given = {"trace": facebook_trace(), "jobs": jobs, "durations": run.choice(OPEN["DURATIONS_3"])}
    parameters = {**PROBLEM.presets["trace"], **given}
    remarks = (TAIL,) if jobs == "all" else (WINDOWS, TAIL)
    return Jobs("Facebook", parameters, episodes, sizes, remarks, _skews(run), _utilizations(run))


def fitted(run: Run) -> Jobs:
    """Return the settings of claims: the generator that is fitted to the Facebook trace."""
    jobs, episodes = run.size(500, 2000, 30), run.size(6, 40, 2)
    parameters = {**PROBLEM.presets["paper"], "jobs": jobs, "durations": run.choice(OPEN["DURATIONS_3"])}
    sizes = f"{episodes} draws of {jobs} jobs of a generator fitted to the Facebook trace"
    utilizations = run.size([0.4, 0.7], [0.4, 0.5, 0.6, 0.7], [0.6])
    return Jobs("fitted", parameters, episodes, sizes, (), [0.0, 1.0, 2.0], utilizations)


Trace = Callable[[Run], Jobs]


def assigning_remark(run: Run) -> str:
    """Return the remark on how the algorithms of chapter 3 balance under the reading of a run."""
    return EVEN if run.choice(OPEN["EVENNESS"]) else WHOLE


# what is looked at when an episode has ended ----------------------------------------------------------


def response_curve(env: SchedulingEnv) -> dict[str, Floats]:
    """Return the distribution of an episode's response times.

    Returns:
        shares: of the jobs with a response up to RESPONSES times the mean duration [len(RESPONSES)];
        percentiles: 1 to 99 [s] [99].
    """
    responses = np.array(fates(env.record())["response"])
    parameters = cast(GeoParameters, env.simulator.parameters)
    places = RESPONSES * parameters.mean_duration
    return {
        "shares": shares_up_to(responses, np.ones(len(responses)), places),
        "percentiles": np.percentile(responses, LEVELS),
    }


def deviations(record: Any) -> tuple[Floats, Floats]:
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


def deviation_curve(env: SchedulingEnv) -> Floats:
    """Return the share of time until the last arrival with a deviation up to each entry of SPREADS."""
    return shares_up_to(*deviations(env.record()), SPREADS)


def worked_example(env: SchedulingEnv) -> dict[str, Any]:
    """Return completion times [s] by job, and by site the number of tasks that had not started before 2 s."""
    record = env.record()
    waiting = np.bincount(record.server[record.start >= 2.0], minlength=len(record.workload.cluster["slots"]))
    return {"completions": fates(record)["completion"], "outstanding": waiting.tolist()}


def placements(env: SchedulingEnv) -> list[list[int]]:
    """Return the number of each job's tasks at each site [J, M]."""
    record = env.record()
    table = np.zeros((len(record.workload.jobs["arrival"]), len(record.workload.cluster["slots"])), dtype=int)
    np.add.at(table, (record.workload.tasks["job"][record.job], record.server), 1)
    return [[int(count) for count in row] for row in table]


def queue_spread(env: SchedulingEnv) -> float:
    """Return the standard deviation over the sites of their waiting tasks, averaged up to the last arrival.

    For policies that choose a task's site at its arrival once and for all.
    """
    record = env.record()
    jobs = record.workload.jobs["arrival"]
    sites = len(record.workload.cluster["slots"])
    arrival = jobs[record.workload.tasks["job"][record.job]]
    times = np.concatenate([arrival, record.start])
    order = np.argsort(times, kind="stable")
    change = np.zeros((len(times), sites))
    change[np.arange(len(times)), np.concatenate([record.server, record.server])] = np.repeat(
        [1.0, -1.0], len(arrival)
    )
    waiting = np.cumsum(change[order], axis=0)[:-1].std(axis=1)
    ends = np.minimum(times[order], jobs[-1])
    return float(waiting @ np.diff(ends) / (jobs[-1] - jobs[0]))


def lifetime_variation(env: SchedulingEnv) -> float:
    """Return the deviation of a job's occupied slots over its lifetime by their mean, averaged over jobs.

    Jobs of a single task, whose slots vary only while it waits, are left out.
    """
    record = env.record()
    owner = record.workload.tasks["job"][record.job]
    arrival = record.workload.jobs["arrival"]
    tasks = np.bincount(owner, minlength=len(arrival))
    found = []
    for job in np.flatnonzero(tasks > 1):
        start, end = record.start[owner == job], record.end[owner == job]
        times = np.concatenate([[arrival[job]], start, end])
        change = np.concatenate([[0.0], np.ones(len(start)), -np.ones(len(end))])
        order = np.argsort(times, kind="stable")
        held, length = np.cumsum(change[order])[:-1], np.diff(times[order])
        mean = held @ length / length.sum()
        found.append(np.sqrt((held - mean) ** 2 @ length / length.sum()) / mean)
    return float(np.mean(found))


# runs that figures and claims share ------------------------------------------------------------------


def _assign(run: Run, jobs: Jobs, grid: Mapping[str, Sequence[Any]]) -> Evaluation:
    """Run the algorithms of chapter 3; what the grid leaves out is 2 sites and a skew of 1.

    All runs give both and are observed alike, so that runs of one setting are made once.
    """
    fine = {label: {"fine": run.choice(OPEN["EVENNESS"])} for label in BALANCED}
    rest = {name: value for name, value in {"choices": 2, "zipf": 1.0}.items() if name not in grid}
    parameters = {**jobs.parameters, **rest}
    return run.play(
        ASSIGN, ASSIGNERS, jobs.episodes, grid, parameters=parameters, options=fine, observe=response_curve
    )


def assigned(run: Run, jobs: Jobs) -> Evaluation:
    """Run the algorithms of chapter 3 at all utilisations and skews."""
    return _assign(run, jobs, {"utilization": jobs.utilizations, "zipf": jobs.skews})


def assigned_by_sites(run: Run, jobs: Jobs, utilizations: Sequence[float]) -> Evaluation:
    """Run the algorithms of chapter 3 at a skew of 1 with 1 to 5 available sites."""
    choices = run.size([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2])
    return _assign(run, jobs, {"utilization": utilizations, "choices": choices})


def shared(run: Run, jobs: Jobs) -> Evaluation:
    """Run the policies of chapters 4 and 5 at all utilisations and skews."""
    grid = {"utilization": jobs.utilizations, "zipf": jobs.skews}
    parameters = {**jobs.parameters, "objective": "response"}
    return run.play(FAIR, SHARERS, jobs.episodes, grid, parameters=parameters, observe=deviation_curve)


def aggressive(
    run: Run, jobs: Jobs, policies: Mapping[str, str], grid: Mapping[str, Sequence[Any]]
) -> Evaluation:
    """Run policies that decide shares anew at every end of a task, or not; this is swept last."""
    swept = {**grid, "aggressive": [False, True]}
    parameters = {**jobs.parameters, "objective": "response"}
    return run.play(FAIR, policies, jobs.episodes, swept, parameters=parameters, observe=deviation_curve)


def only(played: Evaluation, policies: Iterable[str]) -> Evaluation:
    """Return the runs of some of the policies."""
    labels = set(policies)
    return played.select(lambda _, policy: policy in labels)
