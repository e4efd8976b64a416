"""Figures of chapters 4 and 5 of guan2022: the traces, and sharing the sites' slots.

Tasks of chapter 4 run at their associated site, those of chapter 5 at any of their sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, Evaluation, Judged, Outcome, Panel, Run
from schedgym.papers.figures import distribution
from schedgym.papers.guan2022 import panels, runs
from schedgym.papers.guan2022.panels import figure
from schedgym.papers.guan2022.statements import (
    judge_all,
    judge_incentive,
    judge_little_difference,
    judge_two_groups,
    nearer_by_caption,
)
from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.workload import from_trace, generate, make_source
from schedgym.traces import read_trace

F8 = npt.NDArray[np.float64]


@figure("fig4.2")
def _traces(run: Run) -> Outcome:
    jobs = runs.google(run)
    _, tasks = from_trace(read_trace(runs.facebook_trace()))
    source = make_source(GeoParameters(**jobs.parameters))
    drawn = [generate(run.seed, episode, source) for episode in range(jobs.episodes)]
    sizes = [np.bincount(workload.tasks["job"]).astype(float) for workload in drawn]
    durations = [workload.tasks["duration"] for workload in drawn]
    lengths = np.geomspace(100.0, runs.TRACE_DAYS * runs.DAY, 200)
    counts, most = (
        np.unique(np.geomspace(1, top, 200).round()) for top in (max(map(np.max, sizes)), tasks.max())
    )
    stand_in, own = "Google's stand-in", [tasks.astype(float)]
    shown = [
        _curve(f"(a) tasks of a job, {stand_in}", "number of tasks", "jobs", stand_in, counts, sizes),
        _curve(f"(b) durations, {stand_in}", "task duration [s]", "tasks", stand_in, lengths, durations),
        _curve("(c) tasks of a job, Facebook", "number of tasks", "jobs", "Facebook", most, own),
    ]
    total = int(tasks.sum())
    right = (len(tasks) == runs.FACEBOOK_JOBS) + (total == runs.FACEBOOK_TASKS)
    claim = "the Facebook trace has 24,024 jobs with 1,102,281 tasks of 1 GB"
    verdict = (NOT_REPRODUCED, IN_PART, HOLDS)[right]
    said = [Judged(claim, f"{len(tasks):,} jobs with {total:,} tasks", verdict)]
    likeness = (
        "a stand-in cannot judge what the thesis says about Google's hour; how close the two are:",
        f"the hour has 48,504 tasks in 2944 jobs, the stand-in {_mean(sizes, np.sum)} tasks",
        "durations have a mean of 1374.7 s in the hour (1373.7 s in section 4.6), and of "
        f"{_mean(durations, np.mean)} s in the stand-in",
        f"the hour's durations have a heavy tail; {_longest(durations)}",
    )
    remarks = (*jobs.remarks, *likeness)
    return Outcome(shown, said, f"{jobs.sizes}; {len(tasks)} jobs of the Facebook trace", remarks)


def _curve(title: str, x: str, things: str, label: str, places: F8, draws: Sequence[F8]) -> Panel:
    series = [distribution(label, places, draws)]
    return Panel(x, f"share of the {things}", series, title, kind="curves", x_scale="log")


def _mean(episodes: Sequence[F8], statistic: Callable[[F8], Any]) -> str:
    """Write the mean of a statistic over the draws, with its interval."""
    values = np.array([float(statistic(own)) for own in episodes])
    low, high = bootstrap_interval(values)
    return f"{values.mean():,.0f} ({low:,.0f} to {high:,.0f})"


def _longest(durations: Sequence[F8]) -> str:
    """Describe how much of the work the longest 1% of the tasks have, and how much of exponential ones."""
    parts = np.array([np.sort(own)[-max(len(own) // 100, 1) :].sum() / own.sum() for own in durations])
    low, high = bootstrap_interval(parts)
    light = 0.01 * (1.0 + math.log(100.0))
    return (
        f"the longest 1% of the stand-in's tasks have {100 * parts.mean():.0f}% of the work "
        f"({100 * low:.0f} to {100 * high:.0f}); with exponential durations it would be {100 * light:.1f}%"
    )


@figure("fig4.3")
def _recomputation(run: Run) -> Outcome:
    jobs = runs.google(run)
    parameters = {**jobs.parameters, "sites": 30, "zipf": 0.0, "utilization": 0.6}
    wide = jobs._replace(parameters=parameters, episodes=run.size(3, 20, 2))
    played = runs.aggressive(run, wide, runs.AMF, {})
    curves = {
        label + (" (Aggressive)" if on else ""): played.values(label, aggressive=on)
        for label in runs.AMF
        for on in (False, True)
    }
    some = {"Basic AMF": "amf", "Optimized AMF": "opt-amf"}
    swept = {"zipf": jobs.skews, "utilization": jobs.utilizations}
    grid = {name: [values[0], values[-1]] for name, values in swept.items()}
    others = runs.aggressive(run, jobs._replace(episodes=run.size(2, 20, 2)), some, grid)
    so_at_others = judge_little_difference("so it is at other skews and utilisations", others)
    said = [*judge_all("recomputation", played), so_at_others]
    shown = [panels.deviation_panel("", curves)]
    sizes = f"{wide.episodes} draws of {wide.parameters['jobs']} jobs, 30 sites; {panels.closeness(shown)}"
    return Outcome(shown, said, sizes, jobs.remarks)


def _at_skews(run: Run, jobs: runs.Jobs, policies: Iterable[str]) -> tuple[Evaluation, list[Panel]]:
    """Return the runs at a utilisation of 60%, and a panel with the deviations for each skew."""
    played = runs.only(runs.shared(run, jobs), policies).where(utilization=0.6)
    shown = []
    for i, skew in enumerate(jobs.skews):
        curves = {label: played.values(label, zipf=skew) for label in policies}
        shown.append(panels.deviation_panel(f"({'abcde'[i]}) {panels.SKEW_AXIS} {skew:g}", curves))
    return played, shown


@panels.register_pair("fig4.4", "fig4.5")
def _deviation_of_amf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played, shown = _at_skews(run, jobs, ["IMF", *runs.AMF])
    said = [
        *judge_all("deviations of AMF", played),
        judge_incentive(run, jobs, "AMF"),
        *([_aggressive_facebook(run, jobs)] if trace is runs.facebook else []),
    ]
    sizes = f"{jobs.sizes}; {panels.closeness(shown)}"
    return Outcome(shown, said, sizes, jobs.remarks)


def _aggressive_facebook(run: Run, jobs: runs.Jobs) -> Judged:
    part = jobs._replace(parameters={**jobs.parameters, "utilization": 0.6}, episodes=run.size(2, 2, 2))
    grid = {"zipf": run.size([0.0, 2.0], [0.0, 2.0], [1.0])}
    return judge_all("recomputation", runs.aggressive(run, part, {"Basic AMF": "amf"}, grid))[0]


@panels.register_pair("fig4.6", "fig4.7")
def _response_of_amf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.only(runs.shared(run, jobs), ["IMF", *runs.AMF])
    shown = panels.by_utilization(played, "zipf", panels.SKEW_AXIS)
    return Outcome(shown, judge_all("responses of AMF", played), jobs.sizes, jobs.remarks)


# chapter 5: sharing sites whose tasks have a choice ---------------------------------------------------


@panels.register_pair("fig5.1", "fig5.2")
def _deviation_of_gamf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played, shown = _at_skews(run, jobs, [*runs.AMF, *runs.GAMF])
    said = [
        *judge_all("deviations of GAMF", played),
        nearer_by_caption(played),
        judge_two_groups(played),
        judge_incentive(run, jobs, "GAMF"),
    ]
    sizes = f"{jobs.sizes}; {panels.closeness(shown, {'AMF': [*runs.AMF], 'GAMF': [*runs.GAMF]})}"
    return Outcome(shown, said, sizes, jobs.remarks)


@panels.register_pair("fig5.3", "fig5.4")
def _response_of_gamf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.only(runs.shared(run, jobs), [*runs.AMF, *runs.GAMF])
    shown = panels.by_utilization(played, "zipf", panels.SKEW_AXIS)
    return Outcome(shown, judge_all("responses of GAMF", played), jobs.sizes, jobs.remarks)
