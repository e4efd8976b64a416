"""Runs of the registered policies, and the results that the paper states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.record import ScheduleRecord
from schedgym.evaluation.statistics import ratio_interval
from schedgym.papers import Run

__all__ = [
    "FIGURE_4",
    "FIGURE_5",
    "FIGURE_6",
    "FIGURE_6_WITHOUT",
    "ONLINE",
    "SINGLE",
    "Runs",
    "percent",
    "play_policies",
    "run_alone",
]

Floats = npt.NDArray[np.float64]

#: by how much a rival's completion time exceeds TaPRA's (OnTaPRA's), as the paper states it [%]
FIGURE_4 = {"min-min": 100, "mm-ga": 50, "gsa": 30}  # 200 tasks, 128 servers
FIGURE_5 = {"min-min": 430, "mm-ga": 260, "gsa": 80}  # 100 tasks, 432 servers
FIGURE_6 = {"slf": 60, "fcfs": 60, "llf": 170}  # with DRC
FIGURE_6_WITHOUT = {"slf": 5, "fcfs": 80, "llf": 234}  # without DRC

SINGLE, ONLINE = "schedgym/SingleJob-v0", "schedgym/ParallelJCT-v0"
Options = Mapping[str, Mapping[str, Any]]


class Runs(NamedTuple):
    """Metrics [policy][metric][episode], and the median seconds of a policy's decisions in an episode."""

    metrics: dict[str, dict[str, list[float]]]
    seconds: dict[str, float]

    def values(self, policy: str, metric: str) -> Floats:
        """Return one metric of a policy, by episode."""
        return np.array(self.metrics[policy][metric])

    def excess(self, rival: str, own: str, metric: str = "average_jct") -> tuple[float, float, float]:
        """Return by how much a rival's mean is above another's [%], and the interval."""
        a, b = self.values(rival, metric), self.values(own, metric)
        low, high = ratio_interval(a, b)
        return 100 * (float(a.mean() / b.mean()) - 1), 100 * (low - 1), 100 * (high - 1)


def play_policies(
    run: Run,
    id: str,
    policies: Sequence[str],
    episodes: int,
    *,
    options: Options | None = None,
    visit: Callable[[str, ScheduleRecord], None] | None = None,
    **parameters: Any,
) -> Runs:
    """Run policies on the same workloads, without their bounds (which take longer than the policies).

    Args:
        run: run that gives the seed.
        id: id of the environment.
        policies: names, after which a label may stand in brackets: "ontapra (without MAR)".
        episodes: episodes of each policy.
        options: options of policies, by the names given.
        visit: called with each schedule.
        parameters: parameters of the environment.
    """
    from schedgym.core.policy import make_policy
    from schedgym.evaluation.runner import make_env, play

    env = make_env(id, parameters)
    seed = int(run.rng.integers(2**31))
    metrics: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, list[float]] = {}
    for episode in range(episodes):
        for label in policies:
            own = (options or {}).get(label, {})
            policy = make_policy(f"{env.problem.name}/{label.partition(' ')[0]}", **own)
            outcome = play(env, policy, seed=seed, episode=episode, label=label)
            for metric, value in outcome.metrics.items():
                metrics.setdefault(label, {}).setdefault(metric, []).append(float(value))
            seconds.setdefault(label, []).append(outcome.seconds)
            if visit is not None:
                visit(label, env.record())
    return Runs(metrics, {label: float(np.median(found)) for label, found in seconds.items()})


def percent(excess: tuple[float, float, float]) -> str:
    """Write an excess with its interval in whole percent."""
    return "{:+.0f}% [{:.0f}, {:.0f}]".format(*excess)


def run_alone(
    arity: int, capacity: float, load: float, *, policy: str = "ontapra", efficiency: float = 1.0, **more: Any
) -> ScheduleRecord:
    """Run one task alone on equal servers in the environment, and return its schedule.

    Args:
        arity: arity of the fat tree.
        capacity: capacity of its servers.
        load: load of the task.
        policy: policy of parallel-jct.
        efficiency: efficiency of the task on all servers.
        more: ``energy_cap_ratio`` or ``energy_seed`` of the workload; parameters of the environment.
    """
    from schedgym.core.policy import make_policy
    from schedgym.evaluation.runner import make_env
    from schedgym.problems.parallel_jct.workload import make_workload

    servers = arity**3 // 4
    caps = {name: more.pop(name) for name in ("energy_cap_ratio", "energy_seed") if name in more}
    row, cpu = np.full((1, servers), efficiency), np.full(servers, capacity)
    workload = make_workload([0.0], [0], [load], row, cpu, arity=arity, **caps)
    env = make_env(ONLINE, {"arity": arity, **more})
    observation, _ = env.reset(options={"workload": workload})
    acting = make_policy(f"parallel-jct/{policy}")
    acting.reset(env.interface, np.random.default_rng(0))
    done = False
    while not done:
        observation, _, terminated, truncated, _ = env.step(acting(observation))
        done = terminated or truncated
    return env.record()
