"""The descriptor of SingleJob: its id, parameters, views, metrics. Imports nothing heavy."""

from __future__ import annotations

import dataclasses

from schedgym.core.problem import Metric, Parameters, Problem, Statement, Variant, View, parameter
from schedgym.errors import InvalidParameter

VIEWS = (
    View("plan", "Box(N, 2)", "server and vCPU of every task; all vCPU 0: sized by Eq. 16"),
    View("place", "Discrete(M)", "the server of the next task, in index order"),
    View("search", "Discrete(N M + 1)", "i M + j moves task i to server j; N M stops"),
)

METRICS = (
    Metric("jct", "s", "completion time of the job", "min"),
    Metric("energy", "vCPU s", "sum of power * load / efficiency, the energy used", "min"),
    Metric("energy_share", "", "energy over the energy cap", ""),
    Metric("allocated", "vCPU", "vCPU of all tasks", ""),
    Metric("utilization", "", "vCPU of all tasks / vCPU of all servers", ""),
    Metric("mean_task_time", "s", "mean execution time of a task", "min"),
    Metric("servers_used", "", "servers with a task", ""),
    Metric(
        "equal_share_jct", "s", "completion time if every limit were split equally among its tasks", "min"
    ),
    Metric("decisions", "", "steps of the episode", "", recorded=False),
    Metric("repaired", "actions", "infeasible actions that were repaired", "min", recorded=False),
)

#: the parameters that the draw of a workload depends on
DRAWN = (
    *("tasks", "arity", "energy_ratio"),
    *("rack_share", "pod_share", "data_centre_share", "server_caps"),
)


FALLBACKS = ("none", "gsa")


def check_arity(arity: int) -> None:
    """Raise InvalidParameter unless a fat tree of this arity exists."""
    if arity % 2:
        raise InvalidParameter(f"arity: must be even, got {arity}")


@dataclasses.dataclass(frozen=True)
class SingleJobParameters(Parameters):
    """Keyword arguments of ``schedgym/SingleJob-v0``."""

    idle = {"workload": DRAWN}

    tasks: int = parameter(40, "tasks of the job", minimum=1, maximum=10**5)
    arity: int = parameter(6, "arity of the fat tree, with arity^3 / 4 servers", minimum=2, maximum=24)
    energy_ratio: float = parameter(
        1.1, "the energy cap is U[1, energy_ratio] times the load", minimum=1, maximum=1e3
    )
    rack_share: float = parameter(0.3, "share of a rack's vCPU for the job", minimum=1e-6, maximum=1)
    pod_share: float = parameter(0.2, "share of a pod's vCPU for the job", minimum=1e-6, maximum=1)
    data_centre_share: float = parameter(0.2, "share of all vCPU for the job", minimum=1e-6, maximum=1)
    server_caps: bool = parameter(
        True, "true: the vCPU of each server are a limit, too (not in the paper's list)"
    )
    workload: str | None = parameter(None, "workload file that every episode uses")
    reward: str = parameter(
        "incremental",
        "reward for each increase of the completion time, or once at the end",
        choices=("incremental", "terminal"),
    )
    max_moves: int = parameter(200, "moves after which it stops", minimum=1, maximum=10**6, views=("search",))
    fallback: str = parameter(
        "none",
        "planner whose plan counts where the search ends with a longer completion time",
        choices=FALLBACKS,
        views=("search",),
    )
    view: str = parameter("place", "action view", choices=tuple(v.name for v in VIEWS))
    observation: str = Parameters.observation_field()
    action_mask: bool = Parameters.mask_field()
    normalize: bool = parameter(
        False, "divide rewards by the pooled time, a lower bound on the completion time"
    )
    strict: bool = parameter(False, "raise InvalidAction for an infeasible action; else repair it")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arity(self.arity)


_PAPER = ("tapra", "tapra-fast")
_EQUAL = ("min-min-equal", "mm-ga-equal", "gsa-equal")

PROBLEM = Problem(
    name="single-job",
    title="Completion time of one job of independent tasks under an energy cap",
    source="shi2017: job scheduling in the cloud with energy and resource availability limits (TaPRA)",
    ids={
        "schedgym/SingleJob-v0": Variant(
            title="Place and size the tasks of one job under an energy cap: least completion time",
            parameters={},
            table=("jct", "energy_share", "allocated", "servers_used", "equal_share_jct"),
            policies=("tapra", "tapra-fast", "min-min", "mm-ga", "gsa", *_EQUAL),
            reference="tapra",
            baseline_parameters={"view": "plan", "action_mask": False},
        ),
    },
    parameters=SingleJobParameters,
    views=VIEWS,
    objective="jct",
    metrics=METRICS,
    presets={
        "small": {"tasks": 10, "arity": 4},
        "paper": {"tasks": 100, "arity": 8},  # on 128 servers: the point that both figures have
        # the points of the paper's figures; the third parameter of a point there is the number of runs, 50
        **{f"fig4-{tasks}": {"tasks": tasks, "arity": 8} for tasks in (40, 100, 200)},
        **{f"fig5-{arity}": {"tasks": 100, "arity": arity} for arity in (6, 8, 10, 12)},
    },
    statements=(
        # 40% to 430% smaller, of which the rivals' time is 1.4 times
        *(
            Statement("section 6.1, Fig. 4", policy, ("min-min", "mm-ga", "gsa"), "jct", 0.28)
            for policy in _PAPER
        ),
        *(
            Statement("section 6.1, Fig. 4, if they split limits equally", policy, _EQUAL, "jct", 0.28)
            for policy in _PAPER
        ),
    ),
    package="schedgym.problems.single_job",
)
