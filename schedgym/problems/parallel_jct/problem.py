"""The descriptor of ParallelJCT: its id, parameters, views, metrics. Imports nothing heavy."""

from __future__ import annotations

import dataclasses

from schedgym.core.problem import Metric, Parameters, Problem, Statement, Variant, View, parameter
from schedgym.problems.single_job.problem import check_arity

VIEWS = (
    View("plan", "Box(1 + N, 2)", "(row, 0), then (server, vCPU) of each task; row W ends the round"),
    View("pick", "Discrete(W + 1)", "the job that is planned by `planner` and launched; W ends the round"),
    View(
        "place", "Discrete(W + 1 + M)", "a row or W; then W + 1 + server for each of the job's tasks in order"
    ),
    View(
        "search", "Discrete(W + 2 + N M)", "a row or W; then moves W + 1 + task M + server; the last launches"
    ),
)
READINGS = ("x70", "scale-half", "shape-half")
ROUNDS = ("ticks", "events", "all")
PLANNERS = ("tapra-fast", "list-scheduling")

METRICS = (
    Metric("average_jct", "s", "mean time in the system", "min"),
    Metric("median_jct", "s", "median time in the system", "min"),
    Metric("p95_jct", "s", "95th percentile of the time in the system", "min"),
    Metric("max_jct", "s", "longest time in the system", "min"),
    Metric("mean_waiting", "s", "mean time from arrival to launch", "min"),
    Metric("p95_waiting", "s", "95th percentile of the time from arrival to launch", "min"),
    Metric("mean_running", "s", "mean time from launch to completion of the jobs that completed", "min"),
    Metric("makespan", "s", "from the first arrival to the last completion", "min"),
    Metric("finished", "jobs", "jobs that completed", "max"),
    Metric("launched", "jobs", "jobs that were launched", "max"),
    Metric("utilization", "", "share of all vCPU that work, mean over time", "max"),
    Metric("energy", "vCPU s", "energy of the launched jobs' placements", "min"),
    Metric("energy_share", "", "energy / energy of the same jobs at efficiency 1", "min"),
    Metric(
        "granted",
        "jobs",
        "jobs whose least energy is above every cap that could be drawn, and becomes their cap",
        "",
    ),
    Metric("failures", "", "jobs that a round could not launch, summed over rounds", "min", recorded=False),
    Metric("rounds", "", "rounds of decisions", "", recorded=False),
    Metric("repaired", "actions", "infeasible actions that were repaired", "min", recorded=False),
)


@dataclasses.dataclass(frozen=True)
class ParallelJCTParameters(Parameters):
    """Keyword arguments of ``schedgym/ParallelJCT-v0``."""

    idle = {
        "workload": (
            *("reading", "rate", "jobs", "most_tasks", "load_max"),
            *("arity", "rack_share", "pod_share", "data_centre_share", "server_caps", "cpu"),
        ),
        "trace": ("reading", "rate"),
    }
    jobs: int | str = parameter(
        60, "jobs in an episode; 'all': all jobs of a trace", minimum=1, maximum=10**6, choices=("all",)
    )
    reading: str = parameter(
        "x70", "reading of the paper's Weibull distribution of the number of tasks", choices=READINGS
    )
    most_tasks: int | None = parameter(
        None,
        "most tasks of a job (none: 70 for x70, else 200; no limit for a trace)",
        minimum=1,
        maximum=10**6,
    )
    rate: float = parameter(0.15, "arrivals per second", minimum=1e-6, maximum=1e9)
    load_max: float = parameter(1000.0, "drawn loads are U(0, load_max] vCPU s", minimum=1e-6, maximum=1e9)
    cpu: float = parameter(10.0, "vCPU of a server", minimum=1e-6, maximum=1e9)
    arity: int = parameter(6, "arity of the fat tree, with arity^3 / 4 servers", minimum=2, maximum=24)
    rack_share: float = parameter(
        0.3, "share of a rack's available vCPU that a job may use", minimum=1e-6, maximum=1
    )
    pod_share: float = parameter(
        0.2, "share of a pod's available vCPU that a job may use", minimum=1e-6, maximum=1
    )
    data_centre_share: float = parameter(
        0.2, "share of all available vCPU that a job may use", minimum=1e-6, maximum=1
    )
    server_caps: bool = parameter(
        True, "true: the vCPU of each server are a limit, too (not in the paper's list)"
    )
    workload: str | None = parameter(None, "workload file that every episode uses")
    trace: str | None = parameter(None, "trace file whose consecutive windows the episodes use")
    trace_format: str | None = Parameters.trace_format_field()
    drc: bool = parameter(True, "true: running tasks share the unreserved vCPU (DRC)")
    tick: float = parameter(10.0, "time between ticks [s]", minimum=1e-3, maximum=1e12)
    rounds: str = parameter(
        "ticks",
        "beginning of rounds of decisions: at ticks, at arrivals and completions, or at both",
        choices=ROUNDS,
    )
    max_time: float = parameter(
        100_000.0, "time at which the episode is truncated [s]", minimum=0, maximum=1e13, exclusive=True
    )
    planner: str = parameter(
        "tapra-fast",
        "planner of the chosen job; list-scheduling sees the running tasks (not in the paper)",
        choices=PLANNERS,
        views=("pick",),
        needs=("DRC", lambda own: own.drc),
    )
    max_moves: int = parameter(
        200, "moves after which a job is launched", minimum=1, maximum=10**6, views=("search",)
    )
    view: str = parameter("pick", "action view", choices=tuple(v.name for v in VIEWS))
    window: int | str = Parameters.window_field(32, "waiting jobs")
    running_window: int | str = Parameters.window_field(128, "running tasks", 10**7)
    observation: str = Parameters.observation_field()
    action_mask: bool = Parameters.mask_field()
    normalize: bool = parameter(
        False, "divide rewards by the mean of the jobs' least times, each alone on all servers"
    )
    strict: bool = parameter(False, "raise InvalidAction for an infeasible action; else repair it")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arity(self.arity)


_RIVALS = ("slf", "fcfs", "llf")

PROBLEM = Problem(
    name="parallel-jct",
    title="Average completion time of jobs of independent tasks, each under an energy cap",
    source="shi2017: job scheduling in the cloud with energy and resource availability limits (OnTaPRA)",
    ids={
        "schedgym/ParallelJCT-v0": Variant(
            title="Launch jobs with their tasks' places and sizes: least average completion time",
            parameters={},
            table=("average_jct", "p95_jct", "mean_waiting", "makespan", "utilization", "energy_share"),
            policies=("ontapra", "ontapra-tapra", "slf", "fcfs", "llf", "slf-mar", "fcfs-mar", "llf-mar"),
            reference="ontapra",
            baseline_parameters={
                "view": "plan",
                "window": "all",
                "running_window": "all",
                "rounds": "all",
                "action_mask": False,
            },
        ),
    },
    parameters=ParallelJCTParameters,
    views=VIEWS,
    objective="average_jct",
    metrics=METRICS,
    presets={
        "small": {"jobs": 12, "arity": 4},
        # the paper's hour of arrivals, by the reading of its distribution
        "paper": {"jobs": 540},
        "paper-scale-half": {"jobs": 540, "reading": "scale-half"},
        "paper-shape-half": {"jobs": 540, "reading": "shape-half"},
        "trace": {"jobs": 100},
    },
    statements=(
        # 60% to 280% smaller, of which the rivals' time is 1.6 times
        Statement("section 6.2, Fig. 6", "ontapra", _RIVALS, "average_jct", 0.375),
        Statement(
            "section 6.2, Fig. 6, if all make the MAR test",
            "ontapra",
            tuple(f"{r}-mar" for r in _RIVALS),
            "average_jct",
        ),
    ),
    traces=("jobs", "bytes"),
    package="schedgym.problems.parallel_jct",
)
