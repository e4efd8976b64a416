"""Figures of "Task Allocation and Scheduling for Distributed Job Execution" (guan2022).

Most are made of two traces. Tasks of chapter 4 run at their associated site, those of chapter 5 at any of
their sites. The statements on them are in ``experiments``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.evaluation.runner import compare
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, Evaluation, Judged, Outcome, Panel, Run, Series
from schedgym.papers.figures import band, bound, distribution, lines
from schedgym.papers.guan2022 import runs
from schedgym.papers.guan2022.experiments import (
    judge_all,
    judge_incentive,
    judge_two_groups,
    nearer_by_caption,
    recomputed_elsewhere,
)
from schedgym.papers.guan2022.runs import RESPONSE, SPREADS, Trace, facebook, google
from schedgym.papers.judging import excess, tell_mean
from schedgym.papers.registry import figures_of
from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.workload import from_trace, generate, make_source
from schedgym.problems.toys import load_toys
from schedgym.traces import read_trace

# panels: axes, marks and curves as in the thesis -----------------------------------------------------


figure = figures_of("guan2022")

SKEW_AXIS, SITES_AXIS = "Zipf skew parameter", "number of available sites"

Make = Callable[[Run, Trace], Outcome]


def register_pair(first: str, second: str) -> Callable[[Make], Make]:
    """Decorate a function that makes a figure of a trace: first of Google's stand-in, then of Facebook."""

    def enter(make: Make) -> Make:
        for name, trace in ((first, google), (second, facebook)):

            def make_one(run: Run, trace: Trace = trace) -> Outcome:
                return make(run, trace)

            figure(name)(make_one)
        return make

    return enter


def _ratios(played: Evaluation, x: str, rival: str) -> list[Series]:
    """Mean responses over a rival's, over the only swept parameter, with intervals of the paired draws."""
    places = sorted({entry.setting[x] for entry in played.observed})
    series = []
    for policy in played.policies:
        found = [
            excess(
                policy,
                played.metric(policy, RESPONSE, **{x: place}),
                played.metric(rival, RESPONSE, **{x: place}),
            )
            for place in places
        ]
        value, low, high = (
            [1.0 + end for end in ends]
            for ends in zip(*((one.value, one.low, one.high) for one in found), strict=True)
        )
        series.append(Series(policy, places, value, low, high))
    return series


def by_utilization(played: Evaluation, x: str, x_label: str, rival: str) -> list[Panel]:
    """Mean responses over a swept parameter, and their ratios to a rival's: a panel each by utilisation."""
    means, ratios = [], []
    levels = dict.fromkeys(entry.setting["utilization"] for entry in played.observed)
    for i, utilization in enumerate(levels):
        part = played.where(utilization=utilization)
        title = f"utilisation {100 * utilization:.0f}%"
        series = [*lines(part, x, RESPONSE), bound(part, x)]
        means.append(Panel(x_label, "average job response time [s]", series, title=f"({'abcd'[i]}) {title}"))
        title = f"({'abcdefgh'[len(levels) + i]}) {title}, over {rival}"
        label = f"response time / {rival}'s"
        ratios.append(Panel(x_label, label, _ratios(part, x, rival), title=title, y_from_zero=False))
    return [*means, *ratios]


def _visible(curves: Sequence[Floats]) -> slice:
    """Return the places at which curves of shares are neither all 0 nor all 1, and one more at each end."""
    table = np.array(curves)
    inside = np.flatnonzero((table.max(axis=0) > 0.002) & (table.min(axis=0) < 0.998))
    if not len(inside):
        return slice(None)
    return slice(max(int(inside[0]) - 1, 0), int(inside[-1]) + 2)


def _curves(
    x: str, y: str, title: str, x_scale: str, places: Floats, curves: Mapping[str, Sequence[Floats]]
) -> Panel:
    seen = _visible([np.mean(own, axis=0) for own in curves.values()])
    series = [band(label, places[seen], [own[seen] for own in shares]) for label, shares in curves.items()]
    return Panel(x, y, series, title, kind="curves", x_scale=x_scale)


def response_curves(title: str, places: Floats, curves: Mapping[str, Sequence[Floats]]) -> Panel:
    """Draw distributions of responses, from the shares of each episode at ``places`` [s], by label."""
    return _curves("job response time [s]", "share of the jobs", title, "log", places, curves)


def deviation_panel(title: str, curves: Mapping[str, Sequence[Floats]]) -> Panel:
    """Draw distributions of the deviation over time, from the shares of each episode at SPREADS, by label."""
    x = "standard deviation of the jobs' allocations [slots]"
    return _curves(x, "share of the time", title, "linear", SPREADS, curves)


def closeness(panels: Sequence[Panel], groups: Mapping[str, Sequence[str]] | None = None) -> str:
    """Say how far apart the curves of panels are, so that lines on top of one another are understood.

    Args:
        panels: curves over the same places each.
        groups: name -> labels of curves that lie close together; None: all curves of a panel do.
    """
    said = []
    for name, labels in (groups or {"a panel": [own.label for own in panels[0].series]}).items():
        tables = ([own.y for own in panel.series if own.label in labels] for panel in panels)
        apart = round(100 * max(float(np.ptp(table, axis=0).max()) for table in tables))
        said.append(f"the curves of {name} lie at most {apart} point{'s' * (apart != 1)} apart")
    return f"{' and '.join(said)}, so that they cover each other"


# chapter 3: the worked example, and assigning tasks to sites -----------------------------------------


#: policy -> completion times [s] that sections 3.2.1 to 3.2.4 give, and tasks outstanding at 2 s at each
#: site as the text has them or adds up to
EXAMPLE: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "BTAwJ": ("btawj-fcfs", (4, 9, 12), (7, 10, 7)),
    "BTAaJ": ("btaaj-fcfs", (4, 8, 11), (6, 9, 9)),
    "SCTA": ("scta", (4, 12, 6), (6, 8, 10)),
    "ATA": ("ata", (4, 10, 6), (8, 8, 8)),
}


@figure("table3.1")
def _example(run: Run) -> Outcome:
    workload, optimum = load_toys("geo")["table-3.1"][:2]
    policies = {label: name for label, (name, _, _) in EXAMPLE.items()} | {"ATA-Greedy": "ata-greedy"}

    played = compare(
        runs.ASSIGN, policies, {}, 1, run.seed, observe=runs.worked_example, workloads=[workload]
    )
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
    shown = [
        Panel("", "response time [s]", times, title="(a) response times", kind="bars"),
        Panel("", "tasks not started at 2 s", waiting, title="(b) outstanding tasks", kind="bars"),
    ]
    return Outcome(shown, said, "3 jobs with 29 tasks of 1 s on 3 slots")


def _as_printed(head: str, unit: str, printed: Sequence[float], seen: Sequence[float]) -> Judged:
    right = sum(a == b for a, b in zip(printed, seen, strict=True))
    verdict = HOLDS if right == len(printed) else IN_PART if right else NOT_REPRODUCED
    claim, measured = (", ".join(f"{value:g}" for value in values) for values in (printed, seen))
    return Judged(f"{head} {claim} {unit}", f"{measured} {unit}", verdict)


@register_pair("fig3.11", "fig3.12")
def _responses(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.assigned(run, jobs)
    shown = by_utilization(played, "zipf", SKEW_AXIS, "SWAG")
    remarks = (*jobs.remarks, runs.assigning_remark(run))
    return Outcome(shown, judge_all("assigning", played), jobs.sizes, remarks)


@register_pair("fig3.13", "fig3.14")
def _response_distribution(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.assigned(run, jobs).where(zipf=1.0)
    places = runs.RESPONSES * jobs.parameters.get("mean_duration", GeoParameters().mean_duration)
    shown = []
    for i, utilization in enumerate(jobs.utilizations):
        shares = {p: played.values(p, "shares", utilization=utilization) for p in runs.ASSIGNERS}
        title = f"({'abcd'[i]}) utilisation {100 * utilization:.0f}%"
        shown.append(response_curves(title, places, shares))
    sizes = f"{jobs.sizes}; {closeness(shown)}"
    remarks = (*jobs.remarks, runs.assigning_remark(run))
    return Outcome(shown, judge_all("distributions", played), sizes, remarks)


@register_pair("fig3.15", "fig3.16")
def _by_sites(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.assigned_by_sites(run, jobs, run.size([0.4, 0.7], [0.4, 0.5, 0.6, 0.7], [0.6]))
    shown = by_utilization(played, "choices", SITES_AXIS, "SWAG")
    remarks = (*jobs.remarks, runs.assigning_remark(run))
    return Outcome(shown, judge_all("by sites", played), jobs.sizes, remarks)


# chapters 4 and 5: the traces, and sharing the sites' slots ------------------------------------------


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


def _curve(title: str, x: str, things: str, label: str, places: Floats, draws: Sequence[Floats]) -> Panel:
    series = [distribution(label, places, draws)]
    return Panel(x, f"share of the {things}", series, title, kind="curves", x_scale="log")


def _mean(episodes: Sequence[Floats], statistic: Callable[[Floats], Any]) -> str:
    """Write the mean of a statistic over the draws, with its interval."""
    return tell_mean([float(statistic(own)) for own in episodes], ",.0f")


def _longest(durations: Sequence[Floats]) -> str:
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
    elsewhere = recomputed_elsewhere(run, jobs)
    said = [*judge_all("recomputation", played), *judge_all("recomputation elsewhere", elsewhere)]
    shown = [deviation_panel("", curves)]
    sizes = f"{wide.episodes} draws of {wide.parameters['jobs']} jobs, 30 sites; {closeness(shown)}"
    return Outcome(shown, said, sizes, jobs.remarks)


def _at_skews(run: Run, jobs: runs.Jobs, policies: Iterable[str]) -> tuple[Evaluation, list[Panel]]:
    """Return the runs at a utilisation of 60%, and a panel with the deviations for each skew."""
    played = runs.only(runs.shared(run, jobs), policies).where(utilization=0.6)
    shown = []
    for i, skew in enumerate(jobs.skews):
        curves = {label: played.values(label, zipf=skew) for label in policies}
        shown.append(deviation_panel(f"({'abcde'[i]}) {SKEW_AXIS} {skew:g}", curves))
    return played, shown


@register_pair("fig4.4", "fig4.5")
def _deviation_of_amf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played, shown = _at_skews(run, jobs, ["IMF", *runs.AMF])
    said = [
        *judge_all("deviations of AMF", played),
        judge_incentive(run, jobs, "AMF"),
        *([_aggressive_facebook(run, jobs)] if trace is runs.facebook else []),
    ]
    sizes = f"{jobs.sizes}; {closeness(shown)}"
    return Outcome(shown, said, sizes, jobs.remarks)


def _aggressive_facebook(run: Run, jobs: runs.Jobs) -> Judged:
    part = jobs._replace(parameters={**jobs.parameters, "utilization": 0.6}, episodes=run.size(2, 2, 2))
    grid = {"zipf": run.size([0.0, 2.0], [0.0, 2.0], [1.0])}
    return judge_all("recomputation", runs.aggressive(run, part, {"Basic AMF": "amf"}, grid))[0]


@register_pair("fig4.6", "fig4.7")
def _response_of_amf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.only(runs.shared(run, jobs), ["IMF", *runs.AMF])
    shown = by_utilization(played, "zipf", SKEW_AXIS, "IMF")
    return Outcome(shown, judge_all("responses of AMF", played), jobs.sizes, jobs.remarks)


# chapter 5: sharing sites whose tasks have a choice ---------------------------------------------------


@register_pair("fig5.1", "fig5.2")
def _deviation_of_gamf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played, shown = _at_skews(run, jobs, [*runs.AMF, *runs.GAMF])
    said = [
        *judge_all("deviations of GAMF", played),
        nearer_by_caption(played),
        judge_two_groups(played),
        judge_incentive(run, jobs, "GAMF"),
    ]
    sizes = f"{jobs.sizes}; {closeness(shown, {'AMF': [*runs.AMF], 'GAMF': [*runs.GAMF]})}"
    return Outcome(shown, said, sizes, jobs.remarks)


@register_pair("fig5.3", "fig5.4")
def _response_of_gamf(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.only(runs.shared(run, jobs), [*runs.AMF, *runs.GAMF])
    shown = by_utilization(played, "zipf", SKEW_AXIS, "Basic AMF")
    return Outcome(shown, judge_all("responses of GAMF", played), jobs.sizes, jobs.remarks)
