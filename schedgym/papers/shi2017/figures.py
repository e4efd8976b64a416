"""Figures of "Energy-aware Scheduling of Embarrassingly Parallel Jobs and Resource Allocation" (shi2017).

The statements on them are registered as claims (:mod:`~schedgym.papers.shi2017.one_job` and
:mod:`~schedgym.papers.shi2017.many_jobs`), and judged under what the paper leaves open
(``readings.yaml``). Running times are those of compiled code on a machine that may do
other work. They are given as medians with intervals from order statistics, and compared within episodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import Evaluation, Outcome, Panel, Run, Series
from schedgym.papers.figures import bound, lines
from schedgym.papers.registry import figures_of
from schedgym.papers.shi2017 import runs

figure = figures_of("shi2017")
JCT = "average JCT [s]"


def _series(label: str, x: Sequence[Any], episodes: Sequence[Floats], *, timed: bool = False) -> Series:
    """Return a series of means with intervals, or of medians of times, with a place for each array."""
    middle, interval = (np.median, runs.median_interval) if timed else (np.mean, bootstrap_interval)
    low, high = zip(*map(interval, episodes), strict=True)
    return Series(label, x, [float(middle(values)) for values in episodes], low, high)


# Figs. 4 and 5: one job ------------------------------------------------------------------------------


def _panels(sweep: runs.Sweep) -> list[Panel]:
    """Panels of JCT, allocated vCPU and running time, as in the paper."""
    labels = {label: label for label in (*runs.TAPRA, *runs.RIVALS)}
    reads = [sweep.seconds(place) for place in sweep.places]
    times = [_series(label, sweep.places, [read(label) for read in reads], timed=True) for label in labels]
    jct = [*lines(sweep.played, sweep.x, labels=labels), bound(sweep.played, sweep.x)]
    allocated = lines(sweep.played, sweep.x, "allocated", labels=labels)
    x = f"number of {sweep.x}"
    return [
        Panel(x, "JCT [s]", jct, title="(a) JCT"),
        Panel(x, "allocated vCPU", allocated, title="(b) vCPU"),
        Panel(x, "running time [s]", times, title="(c) running time", y_scale="log"),
    ]


def _episodes(played: Evaluation) -> str:
    return f"{played.episodes} draws"


@figure("fig4")
def _tasks(run: Run) -> Outcome:
    sweep = runs.by_tasks(run)
    servers = sweep.played.parameters["arity"] ** 3 // 4
    sizes = f"{_episodes(sweep.played)} of a job, {servers} servers"
    return Outcome(_panels(sweep), (), sizes)


@figure("fig5")
def _servers(run: Run) -> Outcome:
    sweep = runs.by_servers(run)
    tasks = sweep.played.parameters["tasks"]
    sizes = f"{_episodes(sweep.played)} of a job of {tasks} tasks"
    return Outcome(_panels(sweep), (), sizes)


# Fig. 6: many jobs -----------------------------------------------------------------------------------


def _places(schedulers: Iterable[str]) -> list[str]:
    """Return the names of the bars: the schedulers with DRC, then without, as in the paper."""
    ends = {True: "", False: "\nNDRC"}
    return [label + ends[drc] for drc in runs.DRC for label in schedulers]


def _bars(reads: dict[bool, runs.Read], planners: Iterable[str], *, timed: bool = False) -> list[Series]:
    """Bars of planners by scheduler, with DRC and without."""
    made = []
    for planner in planners:
        schedulers = runs.OTHERS if planner in runs.GENETIC else tuple(runs.SCHEDULERS)
        values = [reads[drc](f"{label} {planner}") for drc in runs.DRC for label in schedulers]
        made.append(_series(planner, _places(schedulers), values, timed=timed))
    return made


def _limit(played: Evaluation) -> Series:
    """Return the bound on the average JCT, which is the same for all schedulers."""
    reads = [runs.metric(played, "bound", drc=drc) for drc in runs.DRC for _ in runs.SCHEDULERS]
    values = [read(played.policies[0]) for read in reads]
    return dataclasses.replace(_series("lower bound", _places(runs.SCHEDULERS), values), bound=True)


def _averages(played: Evaluation) -> dict[bool, runs.Read]:
    return {drc: runs.metric(played, "average_jct", drc=drc) for drc in runs.DRC}


def _of_schedulers(played: Evaluation) -> list[Series]:
    """Bars of the schedulers, all with TaPRA-fast."""
    values = [read(label) for read in _averages(played).values() for label in runs.SCHEDULERS]
    return [_series("TaPRA-fast", _places(runs.SCHEDULERS), values), _limit(played)]


@figure("fig6")
def _online(run: Run) -> Outcome:
    planners, schedulers = runs.play_planners(run), runs.play_schedulers(run)
    fewer, jobs = (played.parameters["jobs"] for played in (planners, schedulers))
    all_four = (*runs.TAPRA, *runs.GENETIC)
    times = _bars({drc: runs.seconds(planners, drc=drc) for drc in runs.DRC}, all_four, timed=True)
    averages = [*_bars(_averages(planners), all_four), _limit(planners)]
    bars: dict[str, Any] = {"kind": "bars"}
    panels = [
        Panel("", JCT, averages, title=f"(a) average JCT, {fewer} jobs", **bars),
        Panel("", "running time [s]", times, title=f"(b) running time, {fewer} jobs", y_scale="log", **bars),
    ]
    sizes, remarks = f"{_episodes(planners)} of {fewer} jobs", []
    if fewer < jobs:
        series = _of_schedulers(schedulers)
        panels.append(Panel("", JCT, series, title=f"(a) average JCT, {jobs} jobs, TaPRA-fast", **bars))
        sizes += f", with TaPRA-fast alone {_episodes(schedulers)} of {jobs}"
        remarks.append(f"planners are compared on {fewer} jobs, as GSA takes long")
    return Outcome(panels, (), sizes, remarks)
