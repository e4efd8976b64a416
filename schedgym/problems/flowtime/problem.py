"""The descriptor of FlowtimePacking: its id, parameters, views, metrics. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from schedgym.core.problem import Metric, Parameters, Problem, Statement, Variant, View, parameter
from schedgym.errors import InvalidParameter

KINDS = ("1d", "2d", "mapreduce")
DRAWN = ("horizon", "most_demand")  # parameters of the generator alone
ESTIMATIONS = ("none", "waste", "under", "order")
VIEWS = (
    View("allocation", "Box(W, M), int64", "cores of each job on each server in this slot"),
    View("priority", "Box(W,)", "a score per job: the highest gets cores first; with -1 a job gets none"),
    View("pick", "Discrete(W + 1)", "the job that gets all cores that it can use now; W closes the slot"),
    View("rule", "Discrete(7)", "which rule decides this slot: fifo, srpt, srvf, svf, srf, tetris, drf"),
)

METRICS = (
    Metric(
        "cost", "slots^k", "sum of flowtime^k, plus alpha times the switching cost", "min", recorded=False
    ),
    Metric("flowtime_norm", "slots", "l_k norm of the flowtimes", "min", recorded=False),
    Metric("l1", "slots", "sum of the flowtimes", "min"),
    Metric("l2", "slots", "l2 norm of the flowtimes", "min"),
    Metric("mean_flowtime", "slots", "mean flowtime", "min"),
    Metric("median_flowtime", "slots", "median flowtime", "min"),
    Metric("p95_flowtime", "slots", "95th percentile of the flowtime", "min"),
    Metric("max_flowtime", "slots", "largest flowtime", "min"),
    Metric("mean_slowdown", "", "mean of flowtime over processing time", "min"),
    Metric("fractional", "slots^2", "sum of fractional flowtimes (Eq. 5, k = 2)", "min"),
    Metric("makespan", "slots", "last slot with work", "min"),
    Metric("finished", "jobs", "jobs that finished", "max"),
    Metric("mean_waiting", "slots", "mean of flowtime minus processing time", "min"),
    Metric(
        "waiting_small", "slots", "mean_waiting of the half of the jobs with the least processing time", "min"
    ),
    Metric("waiting_medium", "slots", "mean_waiting of the jobs between that half and the top tenth", "min"),
    Metric(
        "waiting_big", "slots", "mean_waiting of the tenth of the jobs with the most processing time", "min"
    ),
    Metric("preemptions", "", "slots in which an unfinished job lost all its cores", "min"),
    Metric("migrations", "", "slots in which a job ran on a server new to it since it last ran", "min"),
    Metric("resizes", "", "slots in which a running job had another number of cores than before", "min"),
    Metric("splits", "", "slots in which a job ran on several servers", "min"),
    Metric("switching_cost", "", "sum of S(t), Eq. 31", "min"),
    Metric("idle", "", "share of the core-slots that no job was granted", "min"),
    Metric("wasted", "core-slots", "core-slots that were granted and not used", "min"),
    Metric("longest_gap", "slots", "longest time that an unfinished job was without cores", "min"),
    Metric(
        "mean_unfinished",
        "core-slots",
        "unfinished work, summed over all slots, divided by the slots up to the last arrival",
        "min",
    ),
    Metric(
        "waiting_longest",
        "slots",
        "mean_waiting of the jobs with at least 60% of the longest processing time",
        "min",
    ),
    Metric("repaired", "actions", "infeasible actions that were repaired", "min", recorded=False),
)


def parse_servers(text: str) -> tuple[int, ...]:
    """Cores of each server, written with plus signs: "64+32+16".

    Raises:
        InvalidParameter: if it is not such a list of whole numbers from 1.
    """
    parts = text.split("+")
    if not all(part.strip().isdigit() and 1 <= int(part) <= 10**6 for part in parts):
        raise InvalidParameter(f"servers: must be cores like '64+32+16', got {text!r}")
    return tuple(int(part) for part in parts)


@dataclasses.dataclass(frozen=True)
class FlowtimeParameters(Parameters):
    """Keyword arguments of ``schedgym/FlowtimePacking-v0``."""

    idle = {
        "workload": ("jobs", "servers", "memory_per_core", "load", *DRAWN, "latency", "variance"),
        "trace": DRAWN,
    }
    kind: str = parameter("1d", "cores only, cores and memory, or jobs of two phases", choices=KINDS)
    jobs: int | str = parameter(
        60, "jobs in an episode; 'all': all jobs of a trace", minimum=1, maximum=10**6, choices=("all",)
    )
    servers: str = parameter("16+8+8+4+4+4+2+2", "cores of each server")
    memory_per_core: float = parameter(
        *(4.0, "GB per core of a server"),
        minimum=0,
        exclusive=True,
        needs=("kind '2d'", lambda own: own.kind == "2d"),
    )
    load: float | None = parameter(
        0.95,
        "work divided by all core-slots of the horizon (none: arrivals as in the trace)",
        minimum=1e-3,
        needs=("horizon 'none', which follows from it", lambda own: own.horizon is None),
    )
    horizon: int | None = parameter(
        None,
        "slots in which the generated jobs arrive (none: computed from the load)",
        minimum=1,
        maximum=10**7,
    )
    most_demand: int = parameter(16, "most cores of a generated job", minimum=1, maximum=16)
    estimation: str = parameter(
        "none", "effect of wrong declared demands (none: declared demands are true)", choices=ESTIMATIONS
    )
    variance: float = parameter(
        *(0.5, "variance of declared demands' relative error"),
        minimum=0,
        maximum=100,
        needs=("an estimation", lambda own: own.estimation != "none"),
    )
    workload: str | None = parameter(None, "workload file that every episode uses")
    trace: str | None = parameter(None, "trace file whose consecutive windows the episodes use")
    nodes: str | None = parameter(None, "file of the trace's machines")
    trace_format: str | None = Parameters.trace_format_field()
    latency: bool = parameter(False, "true: generated mapreduce tasks have latencies to the servers")
    slot_seconds: float = parameter(
        *(10.0, "length of a slot [s]"),
        minimum=0,
        exclusive=True,
        needs=("a trace", lambda own: own.trace is not None),
    )
    clairvoyant: bool = parameter(
        False, "true: observations have Gamma of Eq. 27 for all jobs, also those to come"
    )
    norm: float = parameter(2.0, "k of the l_k norm", minimum=1, maximum=10)
    alpha: float = parameter(0.0, "weight of the switching cost in the objective", minimum=0, maximum=1e12)
    packing: str = parameter(
        "fresh",
        "pack anew in every slot, or keep cores in place (view allocation: what the baselines do)",
        choices=("fresh", "sticky"),
        views=("allocation", "priority", "rule"),
    )
    gamma: float = parameter(
        4000.0, "truncation is at three times gamma, or later [slots]", minimum=1, maximum=1e12
    )
    view: str = parameter("priority", "action view", choices=tuple(v.name for v in VIEWS))
    window: int | str = Parameters.window_field(32, "unfinished jobs")
    observation: str = Parameters.observation_field()
    action_mask: bool = Parameters.mask_field()
    normalize: bool = parameter(False, "divide rewards by the sum of processing^k over the episode's jobs")
    strict: bool = parameter(False, "raise InvalidAction for an infeasible action; else repair it")

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_servers(self.servers)
        if self.load is None and self.trace is None and self.workload is None:
            raise InvalidParameter("load: 'none' needs a trace")
        if self.kind == "mapreduce" and self.estimation != "none":
            raise InvalidParameter("estimation: is not defined for kind 'mapreduce'")
        if self.kind == "mapreduce" and self.trace is not None:
            raise InvalidParameter("trace: has no jobs of kind 'mapreduce'")
        if self.latency and self.kind != "mapreduce":
            raise InvalidParameter("latency: needs kind 'mapreduce'")


_KW = {"jobs": 6487, "horizon": 3600}


def _hidden(own: Mapping[str, Any]) -> str:
    """Name what observations do not show of jobs that have arrived."""
    return "" if own["estimation"] == "none" else "demands (estimation)"


PROBLEM = Problem(
    name="flowtime",
    title="Flowtime norm of preemptible jobs packed on heterogeneous servers, slot by slot",
    source="xu2021: Online Convex Optimization based job scheduling with Resource Packing (OCORP)",
    ids={
        "schedgym/FlowtimePacking-v0": Variant(
            title="Give cores to preemptible jobs, slot by slot: least l_k norm of the flowtimes",
            parameters={},
            table=("l2", "mean_flowtime", "p95_flowtime", "makespan", "waiting_longest", "preemptions"),
            policies=("ocorp", "srpt", "srvf", "svf", "srf", "fifo", "tetris", "drf"),
            reference="ocorp",
            baseline_parameters={"view": "allocation", "window": "all", "action_mask": False},
        ),
    },
    parameters=FlowtimeParameters,
    views=VIEWS,
    objective="cost",
    metrics=METRICS,
    presets={
        "small": {"jobs": 60},
        # section VI: jobs in ten hours, types of servers, slots of 10 s, k = 2, Gamma = 4000; the number of
        # servers of each type, and so the load, is not in the paper
        "paper": {
            **_KW,
            "servers": "64+32+16+16+16",
            "load": 0.95,
            "slot_seconds": 10.0,
            "norm": 2.0,
            "gamma": 4000.0,
        },
        # the same stand-in for the paper's trace by offered load, and with memory
        "kw": {**_KW, "servers": "64+32+16+16+16"},
        # a second one, which obeys the paper's Remark 1: demands are much smaller than servers; on all three
        # types of servers the load would be below 0.6
        "kw-narrow": {**_KW, "servers": "32+16+16", "most_demand": 4},
        "kw-107": {**_KW, "servers": "64+32+16+16"},
        "kw-86": {**_KW, "servers": "64+32+32+16+16"},
        "kw-70": {**_KW, "servers": "64+32+32+16+16+16+16"},
        "kw-2d": {**_KW, "servers": "64+32+16+16+16", "kind": "2d"},
        "trace": {"jobs": "all", "servers": "64+32+16+16+16"},
    },
    statements=(
        Statement("section VI-A, Fig. 2", "ocorp", ("svf", "srvf", "srpt"), "l2", 0.34),
        Statement("section VI-A, Fig. 3", "ocorp", ("srpt", "svf"), "makespan", 0.2),
        Statement("section VI-A, Fig. 3", "ocorp", ("srpt", "srvf", "svf", "srf"), "mean_unfinished"),
        Statement("section VI-A, Fig. 4", "ocorp", ("srpt", "svf"), "waiting_longest", 0.4),
        Statement("section VI-C, Fig. 8", "ocorp+m", ("svf", "srvf", "srpt", "srf"), "l2", 0.24),
        Statement("section VI-C, Fig. 9", "ocorp+m", ("svf", "srvf", "srpt", "srf"), "mean_unfinished"),
        Statement("section VI-C, Fig. 10", "ocorp+m", ("srpt", "svf"), "waiting_longest"),
    ),
    traces=("tasks",),
    package="schedgym.problems.flowtime",
    hidden=_hidden,
)
