"""The descriptor of PartialValue: its id, parameters, views, metrics. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from schedgym.core.problem import Metric, Parameters, Problem, Statement, Variant, View, parameter
from schedgym.errors import InvalidParameter

MODELS = ("continuous", "discrete")
UTILITIES = ("linear", "power", "log")
SERVING = ("order", "program")
HEAVY = ("job", "resource")
VIEWS = (
    View("allocation", "Box(W,)", "tasks of each job in this slot (discrete: whole numbers)"),
    View("prices", "Box(m,) in [-50, 50]", "logarithm of each resource's price; continuous model only"),
    View("priority", "Box(W,) in [-1, 1]", "a score s per job, whose value is multiplied by exp(10 s)"),
    View("rule", "Discrete(8)", "the rule that decides this slot (`RULES` in `rules.py`)"),
)

METRICS = (
    Metric("value", "", "total value of the jobs by their tasks served", "max"),
    Metric("value_share", "", "value / value if all jobs were served in full", "max"),
    Metric("mean_served", "", "mean over the jobs of the share of their tasks that was served", "max"),
    Metric("completed", "jobs", "jobs served in full", "max"),
    Metric("expired", "jobs", "jobs whose deadline passed before they were served in full", "min"),
    Metric("never_served", "jobs", "jobs that got nothing", "min"),
    Metric("utilization", "", "mean load of all resources over all slots", "max"),
    Metric(
        "peak_utilization", "", "mean load over all slots of the resource with the highest mean load", "max"
    ),
    Metric("full_slots", "", "share of the slots in which a resource was full", ""),
    Metric("slots", "slots", "slots of the episode", ""),
    Metric("repaired", "actions", "infeasible actions that were repaired", "min", recorded=False),
)

#: parameters of the draw of a workload, except those of the jobs; and those of a trace
DRAWN = ("rate", "windows", "heterogeneity", "heavy", "single", "tasks", "capacity")
OF_TRACE = ("slot_seconds", "slack", "load")


def _several(own: Any) -> bool:
    return not own.single


@dataclasses.dataclass(frozen=True)
class PartialValueParameters(Parameters):
    """Keyword arguments of ``schedgym/PartialValue-v0``."""

    idle = {
        "workload": (
            *(*DRAWN, *OF_TRACE, "jobs"),
            *("parallelism", "utility", "exponent"),
        ),
        "trace": DRAWN,
    }
    model: str | None = parameter(
        None,
        "parts of tasks can be served, or only whole tasks (none: discrete if single, else continuous)",
        choices=MODELS,
    )
    jobs: int | str = parameter(
        100, "jobs in an episode; 'all': all jobs of a trace", minimum=1, maximum=10**6, choices=("all",)
    )
    rate: float = parameter(10.0, "arrivals per slot", minimum=0, exclusive=True)
    windows: float = parameter(6.0, "mean slots from arrival to deadline", minimum=0, exclusive=True)
    heterogeneity: float = parameter(
        *(8.0, "R: heavy demands are U[1, R]"), minimum=1, needs=("several resources", _several)
    )
    heavy: str = parameter(
        "job",
        "heavy demands: drawn for each job, or one for each resource that all jobs share",
        choices=HEAVY,
        needs=("several resources", _several),
    )
    single: bool = parameter(False, "one resource, and every task needs one unit of it")
    tasks: int = parameter(100, "Y, tasks of a job", minimum=1, maximum=10**6)
    parallelism: int = parameter(20, "X, most tasks of a job in a slot", minimum=1, maximum=10**6)
    capacity: float = parameter(100.0, "capacity of each resource", minimum=0, exclusive=True)
    utility: str = parameter("power", "value of y tasks: v y, v y^exponent, v log(1 + y)", choices=UTILITIES)
    exponent: float = parameter(
        0.5,
        "exponent, < 1",
        minimum=0,
        maximum=1,
        exclusive=True,
        needs=("utility 'power'", lambda own: own.utility == "power"),
    )
    deadlines: str = parameter(
        "shown", "observations show the deadlines of jobs, or hide them", choices=("shown", "hidden")
    )
    workload: str | None = parameter(None, "workload file that every episode uses")
    trace: str | None = parameter(None, "trace file whose consecutive windows the episodes use")
    nodes: str | None = parameter(None, "file of the trace's machines")
    trace_format: str | None = Parameters.trace_format_field()
    slot_seconds: float = parameter(300.0, "length of a slot in a trace [s]", minimum=0, exclusive=True)
    slack: float = parameter(2.0, "a trace's deadline: arrival plus this many durations", minimum=1)
    load: float | None = parameter(
        1.5,
        "trace: work / capacity in the window, from which the capacity follows",
        minimum=0,
        exclusive=True,
    )
    single_task: bool = parameter(
        *(True, "the first task that does not fit may be served in place of all others"),
        views=("priority",),
        needs=("model 'discrete'", lambda own: own.model == "discrete"),
    )
    serving: str = parameter(
        "order",
        "how jobs are served by their weighted values: in their order, or by the program of Algorithm 1",
        choices=SERVING,
        views=("priority",),
        needs=("model 'continuous'", lambda own: own.model == "continuous"),
    )
    view: str = parameter("priority", "action view", choices=tuple(v.name for v in VIEWS))
    window: int | str = Parameters.window_field(32, "active jobs")
    observation: str = Parameters.observation_field()
    action_mask: bool = Parameters.mask_field()
    normalize: bool = parameter(False, "divide rewards by the value of all jobs served in full")
    strict: bool = parameter(False, "raise InvalidAction for an infeasible action; else repair it")

    def __post_init__(self) -> None:
        if self.model is None:
            object.__setattr__(self, "model", "discrete" if self.single else "continuous")
        super().__post_init__()
        if self.utility == "power" and self.exponent == 1:
            raise InvalidParameter("exponent: must be below 1 (utility 'linear' is what 1 would be)")
        if self.view == "prices" and self.model != "continuous":
            raise InvalidParameter("view: 'prices' needs model 'continuous'")
        for field in dataclasses.fields(self):
            chosen = getattr(self, field.name) != field.default
            if self.trace is None and field.name in OF_TRACE and chosen:
                raise InvalidParameter(f"{field.name}: needs a trace")


def _hidden(own: Mapping[str, Any]) -> str:
    """Name what observations do not show of jobs that have arrived."""
    return "deadlines" if own["deadlines"] == "hidden" else ""


PROBLEM = Problem(
    name="partial-value",
    title="Total value of partly served jobs with deadlines on pooled resources, slot by slot",
    source="zheng2016: scheduling of deadline-sensitive jobs with partial values",
    ids={
        "schedgym/PartialValue-v0": Variant(
            title="Serve jobs with deadlines, of which a part done in time has a value, too: most value",
            parameters={},
            table=("value", "value_share", "utilization", "completed", "expired", "never_served"),
            policies=("concave", "m-greedy", "primal-dual", "deadline-aware", "s-greedy", "equal-opp", "edf"),
            reference="concave",
            baseline_parameters={"view": "allocation", "window": "all", "action_mask": False},
        ),
    },
    parameters=PartialValueParameters,
    views=VIEWS,
    objective="value",
    metrics=METRICS,
    presets={
        "small": {"jobs": 20, "rate": 4.0},
        "paper": {},
        "paper-discrete": {"model": "discrete"},
        "paper-single": {"single": True},
        "trace": {"jobs": 200},
    },
    statements=(
        Statement("section V, Fig. 2a", "concave", ("s-greedy", "equal-opp"), "value"),
        Statement("section V, Fig. 2b", "m-greedy", ("s-greedy", "equal-opp"), "value"),
        Statement("section V, Fig. 2d", "deadline-aware", ("s-greedy", "equal-opp"), "value"),
    ),
    traces=("tasks", "bytes"),
    package="schedgym.problems.partial_value",
    hidden=_hidden,
)
