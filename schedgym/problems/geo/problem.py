"""The descriptor of GeoAssign and GeoFair: ids, parameters, views, metrics. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from schedgym.core.problem import Metric, Parameters, Problem, Statement, Variant, View, parameter
from schedgym.errors import InvalidParameter

VIEWS = (
    View(
        "assignment", "Box(W, 1 + K A)", "a score per job, then its number of waiting tasks by group and site"
    ),
    View(
        "shares", "Box(W, K, A)", "slots of each group at each of its sites; negative: no task starts there"
    ),
    View("priority", "Box(W,)", "a score per job; tasks are placed in that order as `placement` says"),
    View(
        "weights", "Box(W,)", "a weight per job, for weighted max-min fair shares (all equal: GAMF, or AMF)"
    ),
    View("pick", "Discrete(W)", "the job that takes the free slot; asked whenever a visible job can use one"),
    View("rule", "Discrete(10)", "the algorithm (`ASSIGN_RULES` in `orders.py`) that decides at this event"),
    View("fair-rule", "Discrete(9)", "the algorithm (`FAIR_RULES` in `rules.py`) that decides at this event"),
)
DURATIONS = ("pareto", "constant", "per-job")
OBJECTIVES = ("response", "fairness", "weighted")

_DRAIN = (("", "while jobs are active"), ("_no_drain", "up to the last arrival"))
METRICS = (
    Metric("mean_response", "s", "mean response time, completion minus arrival", "min"),
    Metric("median_response", "s", "median response time", "min"),
    Metric("p90_response", "s", "90th percentile of the response time", "min"),
    Metric("p95_response", "s", "95th percentile of the response time", "min"),
    Metric("p99_response", "s", "99th percentile of the response time", "min"),
    Metric("max_response", "s", "largest response time", "min"),
    Metric("makespan", "s", "first arrival to last completion", "min"),
    Metric("utilization", "", "busy share of all slots over the makespan", "max"),
    Metric(
        "load",
        "",
        "work / (all slots * span), the span being the time from first to last arrival; 0 without a span",
    ),
    Metric("longest_over_span", "", "longest task / span; 0 without a span"),
    Metric("fairness", "slots", "fairness_integral / span", "min"),
    Metric(
        "fairness_integral",
        "slot s",
        "integral over time of the standard deviation over the active jobs of the slots that they occupy",
        "min",
    ),
    *(
        Metric(f"{statistic}_std{suffix}", "slots", f"{word} of that standard deviation {window}", "min")
        for suffix, window in _DRAIN
        for statistic, word in (
            ("mean", "time average"),
            ("median", "median over time"),
            ("p90", "90th percentile over time"),
            ("p95", "95th percentile over time"),
            ("p99", "99th percentile over time"),
        )
    ),
    *(
        Metric(f"mean_jain{suffix}", "", f"time average of Jain's index of occupied slots {window}", "max")
        for suffix, window in _DRAIN
    ),
    Metric("weighted_cost", "", "mean response and fairness, weighted", "min", recorded=False),
    Metric("recomputations", "", "number of decisions (view pick: of slots given)", recorded=False),
    Metric(
        "sharing_violations",
        "",
        "decided shares that are below what the job could use of an equal part of every site",
        "min",
        recorded=False,
    ),
    Metric("repaired", "actions", "infeasible actions that were repaired", "min", recorded=False),
)


@dataclasses.dataclass(frozen=True)
class GeoParameters(Parameters):
    """Keyword arguments of ``schedgym/GeoAssign-v0`` and ``schedgym/GeoFair-v0``."""

    idle = {
        "workload": (
            *("jobs", "sites", "slots", "choices", "zipf", "utilization"),
            *("durations", "mean_duration", "duration_cap", "max_tasks"),
        ),
        "trace": ("max_tasks",),
    }
    jobs: int | str = parameter(
        50, "jobs in an episode; 'all': all jobs of a trace", minimum=1, maximum=10**6, choices=("all",)
    )
    sites: int = parameter(10, "sites", minimum=1, maximum=1000)
    slots: int = parameter(4, "slots of each site", minimum=1, maximum=10**6)
    choices: int = parameter(2, "sites at which a task may run (k)", minimum=1, maximum=1000)
    zipf: float = parameter(
        1.0, "skew: the i-th site of a job's random order of sites has weight i^-zipf", minimum=0
    )
    utilization: float = parameter(
        0.6,
        "work / (all slots * time from first to last arrival), to which arrivals are scaled",
        minimum=1e-3,
        maximum=1e3,
    )
    durations: str = parameter("pareto", "task durations; 'per-job': equal within a job", choices=DURATIONS)
    mean_duration: float = parameter(2.0, "mean duration before the cap [s]", minimum=1e-3, maximum=1e6)
    duration_cap: float | None = parameter(None, "longest duration [s] (none: no limit)", minimum=1e-6)
    max_tasks: int = parameter(100, "most tasks of a generated job", minimum=1, maximum=10**6)
    workload: str | None = parameter(None, "workload file that every episode uses")
    trace: str | None = parameter(None, "trace file of jobs whose consecutive windows the episodes use")
    trace_format: str | None = Parameters.trace_format_field()
    view: str = parameter("priority", "action view", choices=tuple(v.name for v in VIEWS))
    window: int | str = Parameters.window_field(32, "active jobs")
    observation: str = Parameters.observation_field()
    action_mask: bool = Parameters.mask_field()
    placement: str = parameter(
        "greedy",
        "placement of tasks; in view rule that of fcfs and srpt",
        choices=("greedy", "associated"),
        views=("priority", "rule"),
    )
    dispatch_sites: str = parameter(
        "all",
        "sites of its group at which a task may start",
        choices=("all", "associated"),
        views=("weights", "pick"),
    )
    clairvoyant: bool = parameter(
        False,
        "true: observations have the sum of the durations of the unfinished tasks of each job and group",
    )
    aggressive: bool = parameter(
        False, "decide whenever a task ends", views=("shares", "weights", "fair-rule")
    )
    work_conserving: bool = parameter(
        True,
        "jobs without a share take slots that no other job wants",
        views=("shares", "weights", "fair-rule"),
    )
    objective: str = parameter(
        "response",
        "objective: the rewards sum to minus the mean response, minus fairness, or a weighted sum of both",
        choices=OBJECTIVES,
    )
    fairness_weight: float = parameter(
        0.5,
        "weight of fairness; the rest is that of the mean response",
        minimum=0,
        maximum=1,
        needs=("objective 'weighted'", lambda own: own.objective == "weighted"),
    )
    normalize: bool = parameter(False, "divide rewards by the mean duration of the episode's tasks")
    strict: bool = parameter(False, "raise InvalidAction for an infeasible action; else repair it")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workload is None and self.choices > self.sites:
            raise InvalidParameter(f"choices: must be <= {self.sites} (sites), got {self.choices}")


def _hidden(own: Mapping[str, Any]) -> str:
    """Name what observations do not show of jobs that have arrived."""
    return "" if own["durations"] == "constant" else "durations"


PROBLEM = Problem(
    name="geo",
    title="Geo-distributed jobs: where each task runs, in what order, and with what share of the sites",
    source="guan2022: assignment (chapter 3) and fair sharing (chapters 4 and 5) of distributed jobs",
    ids={
        "schedgym/GeoAssign-v0": Variant(
            title="Assign the tasks of distributed jobs to sites, and order the jobs: least mean response",
            parameters={},
            table=("median_response", "p95_response", "max_response", "utilization"),
            policies=("ata", "ata-greedy", "scta", "swag", "btaaj-swag", "btawj-swag", "btaaj-fcfs", "fcfs"),
            reference="swag",
            baseline_parameters={"view": "assignment", "window": "all", "action_mask": False},
        ),
        "schedgym/GeoFair-v0": Variant(
            title="Share sites fairly among distributed jobs: balanced allocations, short responses",
            parameters={"view": "weights", "objective": "fairness"},
            table=("mean_std", "mean_response", "p95_response", "mean_jain", "utilization"),
            policies=("amf", "gamf", "sig-amf", "sig-gamf", "opt-amf", "opt-gamf", "imf", "srpt"),
            reference="amf",
            baseline_parameters={"view": "shares", "window": "all", "action_mask": False},
        ),
    },
    parameters=GeoParameters,
    views=VIEWS,
    objective="mean_response",
    objectives={"response": "mean_response", "fairness": "fairness", "weighted": "weighted_cost"},
    metrics=METRICS,
    presets={
        "small": {"jobs": 50, "sites": 10, "slots": 4},
        "tiny": {"jobs": 50, "sites": 4, "slots": 4},
        "medium": {"jobs": 200, "sites": 10, "slots": 4},
        # as small and paper, by the reading of section 4.6, "the task lengths of different jobs": all tasks
        # of a job have one duration; by that of sections 3.3 and 5.5, "the task durations", each has its own
        "per-job": {"jobs": 50, "sites": 10, "slots": 4, "durations": "per-job"},
        "paper-per-job": {
            **{"jobs": 200, "sites": 10, "slots": 20, "max_tasks": 11719},
            "durations": "per-job",
        },
        # the thesis's cluster, with the jobs of the trace
        "paper": {"jobs": 200, "sites": 10, "slots": 20, "max_tasks": 11719},
        "trace": {"jobs": "all", "sites": 10, "slots": 20},
        # a stand-in for its hour of the Google trace: 2944 jobs, 48,504 tasks, mean duration 1374.7 s
        "google": {"jobs": 2944, "sites": 10, "slots": 20, "max_tasks": 274, "mean_duration": 1374.7},
    },
    statements=(
        Statement(
            "section 3.4, Figs. 3.11, 3.12",
            "ata",
            ("scta", "btaaj-swag", "btawj-swag", "swag"),
            "mean_response",
        ),
        Statement(
            "section 3.4, Figs. 3.11, 3.12", "scta", ("btaaj-swag", "btawj-swag", "swag"), "mean_response"
        ),
        Statement("section 3.4, Figs. 3.11, 3.12", "ata", ("ata-greedy",), "mean_response"),
        Statement("section 4.7, Figs. 4.6, 4.7", "amf", ("imf",), "mean_response"),
        Statement("section 4.7, Figs. 4.6, 4.7", "opt-amf", ("imf", "amf"), "mean_response"),
        Statement("section 4.7, Figs. 4.4, 4.5", "amf", ("imf",), "mean_std"),
        Statement("section 5.6", "gamf", ("amf",), "mean_response"),
        Statement("section 5.6", "gamf", ("amf",), "mean_std"),
        Statement("section 5.6", "opt-gamf", ("gamf",), "mean_response"),
    ),
    traces=("bytes",),
    package="schedgym.problems.geo",
    hidden=_hidden,
)
