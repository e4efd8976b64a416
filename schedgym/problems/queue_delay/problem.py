"""The descriptor of QueueDelay: ids, parameters, views, metrics, defaults. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from schedgym.core.problem import Metric, Parameters, Problem, Statement, Variant, View, parameter
from schedgym.errors import InvalidParameter

VIEWS = (
    View(
        "placement", "MultiDiscrete([W + 1, M])", "start a slot's task on a server; task W closes the epoch"
    ),
    View("pick", "Discrete(W + 1)", "start a slot's task on the server chosen by `rule`; W closes the epoch"),
    View("route", "Discrete(M + 1)", "at arrivals only: a server for the arriving task, or M, the queue"),
    View("rule", "Discrete(19)", "the policy that decides this epoch (`RULE_SCHEMES` in `rules.py`)"),
)
SERVER_RULES = ("first", "best", "worst", "dot", "best-product", "best-sum", "best-avgsum")
ORDERS = ("submission", "execution", "norm", "product", "sum", "avgsum", "dot")
RESOURCES = ("cpu", "memory", "gpu", "disk")  # in this order, before those of other names; as many as can be
TIMES = ("arrival", "execution")  # names of a task's other quantities in workload files


def refuse_resources(names: Sequence[str]) -> str:
    """Return why there are no such resources, "" if there can be."""
    if not 1 <= len(names) <= len(RESOURCES):
        return f"must be 1 to {len(RESOURCES)} names, got {len(names)}"
    for name in names:
        if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]{0,31}", name) or name in TIMES:
            return f"must be names in lower case, not {name!r}"
        if names.count(name) > 1:
            return f"{name} is named twice"
    known = [name for name in RESOURCES if name in names]
    wanted = [*known, *sorted(set(names) - set(known))]
    return "" if list(names) == wanted else f"must be in this order: {', '.join(wanted)}"


#: how the name of a utilization ends -> over what it is averaged
WINDOWS_MEASURED = {
    "": "first arrival to last completion",
    "_to_last_arrival": "first to last arrival",
    "_backlog": "the times at which tasks wait",
}
TIMES_MEASURED = (
    Metric("mean_delay", "s", "mean queuing delay (the objective)", "min"),
    Metric("median_delay", "s", "median queuing delay", "min"),
    Metric("p95_delay", "s", "95th percentile of the queuing delay", "min"),
    Metric("max_delay", "s", "largest queuing delay", "min"),
    Metric("makespan", "s", "first arrival to last completion", "min"),
)
COUNTS_MEASURED = (
    Metric("mean_queued", "tasks", "number of waiting tasks, averaged over the makespan", "min"),
    Metric("mean_running", "tasks", "number of running tasks, averaged over the makespan"),
    Metric("beta", "", "share of the makespan in which tasks wait", "min"),
    Metric(
        "stranded",
        "tasks",
        "tasks that never ran (their delays are counted as if they ran one after another)",
        "min",
    ),
    Metric("repaired", "actions", "infeasible actions that were repaired", "min", recorded=False),
)


def metrics_of(parameters: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Return the metrics, in the order of the tables; ``parameters`` has the names of the ``resources``."""
    used = (_utilization(r, suffix) for suffix in WINDOWS_MEASURED for r in parameters["resources"])
    return (*TIMES_MEASURED, *used, *COUNTS_MEASURED)


def _utilization(resource: str, suffix: str) -> Metric:
    text = f"used share of {resource}, averaged over {WINDOWS_MEASURED[suffix]}"
    return Metric(f"utilization_{resource}{suffix}", "", text, "max")


def utilization_called(name: str) -> Metric | None:
    """Return the utilization of a resource by the name of the metric, None if it is no such name."""
    found = re.fullmatch(f"utilization_(.+?)({'|'.join(sorted(WINDOWS_MEASURED, reverse=True))})", name)
    return _utilization(*found.groups()) if found else None


@dataclasses.dataclass(frozen=True)
class QueueDelayParameters(Parameters):
    """Keyword arguments of ``schedgym/QueueDelay-v0``."""

    idle = {
        "workload": (
            *("tasks", "servers", "load", "arrival_rate", "execution_sigma"),
            *("resources", "device_share", "device_part_share"),
        ),
        "trace": ("arrival_rate", "execution_sigma", "device_share", "device_part_share"),
    }
    tasks: int = parameter(200, "tasks in an episode", minimum=1, maximum=10**7)
    servers: int | str = parameter(
        8, "servers; 'all': every machine of a trace", minimum=1, maximum=10**5, choices=("all",)
    )
    arrival_rate: float = parameter(
        *(10.0, "tasks per second of the Poisson arrivals"),
        minimum=1e-4,
        needs=("load 'none', as a load sets it", lambda own: own.load is None),
    )
    resources: tuple[str, ...] = parameter(
        RESOURCES[:2],
        f"names of up to {len(RESOURCES)} resources; all but cpu and memory are devices, such as gpu (a "
        "workload file has its own)",
    )
    device_share: float = parameter(
        *(0.5, "share of the tasks that ask for each kind of devices"),
        minimum=0,
        maximum=1,
        needs=("devices", lambda own: not set(own.resources) <= set(RESOURCES[:2])),
    )
    device_part_share: float = parameter(
        *(0.0, "share of these tasks that ask for a part of one device"),
        minimum=0,
        maximum=1,
        needs=("devices", lambda own: not set(own.resources) <= set(RESOURCES[:2])),
    )
    load: float | None = parameter(
        None,
        "offered load of the busiest resource, to which arrivals are scaled (none: arrivals by "
        "arrival_rate, or as in the trace)",
        minimum=1e-3,
    )
    execution_sigma: float = parameter(
        1.5, "sigma of the log-normal execution times (0.5: the light-tailed variant)", minimum=0
    )
    workload: str | None = parameter(None, "workload file that every episode uses")
    trace: str | None = parameter(None, "trace file whose consecutive windows the episodes use")
    nodes: str | None = parameter(None, "file of the trace's machines")
    trace_format: str | None = Parameters.trace_format_field()
    pool: bool | None = parameter(
        None,
        "the trace's machines are one pool, across which a job may run (none: if some job needs several)",
        needs=("a trace", lambda own: own.trace is not None),
    )
    view: str = parameter("pick", "action view", choices=tuple(v.name for v in VIEWS))
    window: int | str = Parameters.window_field(32, "waiting tasks", 10**7)
    observation: str = Parameters.observation_field()
    action_mask: bool = parameter(True, "true: observations have the mask of feasible actions")
    rule: str = parameter(
        "best", "rule that chooses the server of the task", choices=SERVER_RULES, views=("pick",)
    )
    scope: str = parameter(
        "released",
        "servers on which tasks can start at a completion: the released one, or all",
        choices=("released", "all"),
        views=("pick",),
    )
    order: str = parameter(
        "execution",
        "order in which a released server tries the waiting tasks",
        choices=ORDERS,
        views=("route",),
    )
    normalize: bool = parameter(False, "divide rewards by the mean execution time of the episode's tasks")
    strict: bool = parameter(False, "raise InvalidAction for an infeasible action; else repair it")

    def __post_init__(self) -> None:
        super().__post_init__()
        if wrong := refuse_resources(self.resources):
            raise InvalidParameter(f"resources: {wrong}")


_RIVALS = ("ffd-dp-blocking", "ffd-nb-blocking", "fcfs")

PROBLEM = Problem(
    name="queue-delay",
    title="Mean queuing delay of tasks with several resources on heterogeneous servers",
    source="NoroozOliaee, Hamdaoui, Guizani, Ben Ghorbel: Online Multi-Resource Scheduling for "
    "Minimum Task Completion Time in Cloud Servers",
    ids={
        "schedgym/QueueDelay-v0": Variant(
            title="Start tasks with several resources on heterogeneous servers: least mean queuing delay",
            table=("median_delay", "p95_delay", "utilization_cpu_backlog", "utilization_memory_backlog"),
            policies=("bf-exec", "dot-exec", "ffd-dp", "ffd-nb", "bf-all", "fcfs"),
            reference="bf-exec",
            baseline_parameters={"view": "placement", "window": "all", "action_mask": False},
        ),
    },
    parameters=QueueDelayParameters,
    views=VIEWS,
    objective="mean_delay",
    metrics=metrics_of({"resources": RESOURCES[:2]}),
    varying=metrics_of,
    further=utilization_called,
    presets={
        "small": {"tasks": 200, "servers": 8},
        "sparse": {"tasks": 200, "servers": 8, "arrival_rate": 0.1},
        "paper": {"tasks": 2000, "servers": 10},
        # the default of a comparison on a trace: windows of the paper's length, on the trace's own machines
        # and at its own load
        "trace": {"tasks": 2000, "servers": "all"},
        "paper-light-tailed": {"tasks": 2000, "servers": 10, "execution_sigma": 0.5},
        # of the pods of Alibaba's GPU cluster trace 2023, 87% ask for GPUs and 38% for a part of one
        "gpu-cluster": {
            "tasks": 200,
            "servers": 8,
            "load": 0.9,
            "resources": ("cpu", "memory", "gpu"),
            "device_share": 0.87,
            "device_part_share": 0.44,
        },
    },
    statements=(
        # under the reading of FFD, and of the window, under which the paper's statements hold best
        Statement("section VI-B, Fig. 3", "bf-exec", _RIVALS, "mean_delay"),
        Statement("section VI-A, Fig. 2", "bf-exec", _RIVALS, "utilization_cpu_to_last_arrival"),
        Statement("section VI-A, Fig. 2", "bf-exec", _RIVALS, "utilization_memory_to_last_arrival"),
    ),
    traces=("tasks",),
    package="schedgym.problems.queue_delay",
)
