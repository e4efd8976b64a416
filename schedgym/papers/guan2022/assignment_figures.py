"""Figures of chapter 3 of guan2022: the worked example, and assigning tasks to sites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgym.evaluation.runner import compare
from schedgym.papers import HOLDS, IN_PART, NOT_REPRODUCED, Judged, Outcome, Panel, Run, Series
from schedgym.papers.guan2022 import panels, runs
from schedgym.papers.guan2022.panels import figure
from schedgym.papers.guan2022.statements import judge_all
from schedgym.problems.geo.problem import GeoParameters
from schedgym.problems.geo.workload import toy

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
    workload, optimum = toy("table-3.1")
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
    order = (
        "BTAwJ and BTAaJ serve jobs in order of arrival here, as in the printed times, and not in SWAG's "
        "order"
    )
    return Outcome(shown, said, "3 jobs with 29 tasks of 1 s on 3 slots", (order,))


def _as_printed(head: str, unit: str, printed: Sequence[float], seen: Sequence[float]) -> Judged:
    right = sum(a == b for a, b in zip(printed, seen, strict=True))
    verdict = HOLDS if right == len(printed) else IN_PART if right else NOT_REPRODUCED
    claim, measured = (", ".join(f"{value:g}" for value in values) for values in (printed, seen))
    return Judged(f"{head} {claim} {unit}", f"{measured} {unit}", verdict)


@panels.register_pair("fig3.11", "fig3.12")
def _responses(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.assigned(run, jobs)
    shown = panels.by_utilization(played, "zipf", panels.SKEW_AXIS)
    remarks = (*jobs.remarks, runs.assigning_remark(run), panels.COMMON)
    return Outcome(shown, judge_all("assigning", played), jobs.sizes, remarks)


@panels.register_pair("fig3.13", "fig3.14")
def _response_distribution(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.assigned(run, jobs).where(zipf=1.0)
    places = runs.RESPONSES * jobs.parameters.get("mean_duration", GeoParameters().mean_duration)
    shown = []
    for i, utilization in enumerate(jobs.utilizations):
        shares = {p: played.values(p, "shares", utilization=utilization) for p in runs.ASSIGNERS}
        title = f"({'abcd'[i]}) utilisation {100 * utilization:.0f}%"
        shown.append(panels.response_curves(title, places, shares))
    sizes = f"{jobs.sizes}; {panels.closeness(shown)}"
    remarks = (*jobs.remarks, runs.assigning_remark(run))
    return Outcome(shown, judge_all("distributions", played), sizes, remarks)


@panels.register_pair("fig3.15", "fig3.16")
def _by_sites(run: Run, trace: runs.Trace) -> Outcome:
    jobs = trace(run)
    played = runs.assigned_by_sites(run, jobs, run.size([0.4, 0.7], [0.4, 0.5, 0.6, 0.7], [0.6]))
    shown = panels.by_utilization(played, "choices", panels.SITES_AXIS)
    remarks = (*jobs.remarks, runs.assigning_remark(run), panels.COMMON)
    return Outcome(shown, judge_all("by sites", played), jobs.sizes, remarks)
