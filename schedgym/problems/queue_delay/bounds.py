"""Bounds on the mean queuing delay: for any scheduler, and the paper's two theorems.

``lower_bound`` depends on the workload alone, so it certifies a schedule's gap. The inequalities of theorems
5.1 and 5.2 contain the schedule's own response time; they are claims about a schedule, and are computed as
printed and corrected.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.problem import Parameters
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.problems.queue_delay.metrics import metrics
from schedgym.problems.queue_delay.rules import TOLERANCE
from schedgym.solvers.one_machine import serve_by_key

__all__ = ["TheoremBounds", "batch_bound", "lower_bound", "pooled_bound", "theorem_bounds"]


def lower_bound(workload: Workload, parameters: Parameters | None = None) -> float:
    """Return a lower bound on the mean queuing delay [s] of any schedule of ``workload``, for all parameters.

    It is the largest of 0, the pooled bound of each resource, and, if all tasks arrive at one instant, the
    batch bound. Up to rounding no schedule is better, even with the tolerance of the fitting test.
    """
    arrival = workload.jobs["arrival"]
    bounds = [0.0, pooled_bound(workload, "cpu"), pooled_bound(workload, "memory")]
    if arrival[0] == arrival[-1]:
        bounds.append(batch_bound(workload))
    return max(bounds)


def batch_bound(workload: Workload) -> float:
    """Return the least mean start [s] if all tasks arrive together: shortest processing time on k machines.

    k is the number of tasks that could run at once if all had the least demand of each resource; on
    identical machines shortest processing time minimises the sum of starts.
    """
    k = _tasks_at_once(workload, np.min)
    execution = np.sort(workload.jobs["execution"])
    machines = len(execution) if math.isinf(k) else min(int(k), len(execution))
    rows = np.zeros(math.ceil(len(execution) / machines) * machines)
    rows[: len(execution)] = execution
    before = np.cumsum(rows.reshape(-1, machines), axis=0)[:-1].ravel()
    return float(before[: len(execution) - machines].sum() / len(execution))


def pooled_bound(workload: Workload, resource: str) -> float:
    """Return a lower bound [s] from one resource ("cpu" or "memory"), all servers pooled into one machine.

    A task that holds demand d over [s, s + e] has mean busy time s + e/2 on a machine that processes
    volumes e * d. Preemptive service of the smallest original volume first minimises the sum of mean busy
    times (Goemans 1996), hence mean delay >= mean busy time - mean e / 2 - mean arrival.
    """
    jobs = workload.jobs
    capacity = workload.cluster[resource]
    rate = float(capacity.sum() + TOLERANCE * len(capacity))
    arrival = jobs["arrival"] - jobs["arrival"][0]  # a large origin would lose digits
    volume = jobs["execution"] * jobs[resource]
    completion, busy, left = np.empty((3, len(arrival)))
    serve_by_key(arrival, volume, volume, rate, math.inf, completion, busy, left)
    busy = np.where(volume > 0.0, busy, arrival)
    return math.fsum(busy.tolist()) / len(busy) - float(jobs["execution"].mean()) / 2 - float(arrival.mean())


def _tasks_at_once(workload: Workload, extreme: Any) -> float:
    """Return how many tasks fit at once if each had the extreme (np.min, np.max) demand of each resource."""
    total = np.zeros(len(workload.cluster["cpu"]))
    per_server = np.full_like(total, np.inf)
    for resource in ("cpu", "memory"):
        demand = float(extreme(workload.jobs[resource]))
        if demand > 0.0:  # x / 0 = infinity
            # the tolerance is needed here: 0.3 / 0.1 < 3 in floats, yet three such tasks run together
            capacity: npt.NDArray[np.float64] = workload.cluster[resource] + TOLERANCE
            per_server = np.minimum(per_server, np.floor(capacity / demand))
    return float((total + per_server).sum())


@dataclasses.dataclass(frozen=True)
class TheoremBounds:
    """The bounds of theorems 5.1 (upper) and 5.2 (lower) for one schedule [s].

    Attributes:
        printed_upper, printed_lower: as in the paper, with mu the mean execution time as it is introduced.
        printed_upper_response, printed_lower_response: the same with mu read as the mean response time, as
            the proofs use it.
        corrected_upper: T - beta k_low / lambda; for schedulers that queue a task only if it fits nowhere.
        corrected_lower: T - k_high / lambda; for any scheduler.
    """

    printed_upper: float
    printed_lower: float
    printed_upper_response: float
    printed_lower_response: float
    corrected_upper: float
    corrected_lower: float


def theorem_bounds(record: ScheduleRecord) -> TheoremBounds:
    """Return the bounds of both theorems of noroozoliaee2014, section V, printed and corrected.

    Little's law is N_q = lambda W (the paper divides), with lambda = tasks / (first arrival to last
    completion). Theorem 5.1 then needs min instead of max, the sum over servers, and the factor beta, the
    share of time in which tasks wait; mu must be the mean response time T.

    Of 400 random instances of the tests (3 to 14 tasks, 1 to 4 servers, many ties) the printed 5.1 is
    violated by some of the 25 scheme variants in 299 and the printed 5.2 in 12, with mu the mean execution
    time; with mu the mean response time in 130 and 30. The corrected ones never are.
    """
    jobs = record.workload.jobs
    measured = metrics(record)
    gap = measured["makespan"] / len(jobs["arrival"])  # 1 / lambda
    service = float(jobs["execution"].mean())
    response = measured["mean_delay"] + service

    def inverse(demand: float) -> float:
        return 1.0 / demand if demand > 0.0 else math.inf

    def floor(value: float) -> float:
        return value if math.isinf(value) else float(math.floor(value + TOLERANCE))

    high = floor(max(inverse(float(jobs[r].max())) for r in ("cpu", "memory")))
    low = floor(min(inverse(float(jobs[r].min())) for r in ("cpu", "memory")))
    beta = measured["beta"]
    busy = beta * _tasks_at_once(record.workload, np.max) if beta > 0.0 else 0.0
    return TheoremBounds(
        printed_upper=service - high * gap,
        printed_lower=service - low * gap,
        printed_upper_response=response - high * gap,
        printed_lower_response=response - low * gap,
        corrected_upper=response - busy * gap,
        corrected_lower=response - _tasks_at_once(record.workload, np.min) * gap,
    )
