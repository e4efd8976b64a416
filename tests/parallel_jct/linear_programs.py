"""What the exact model of one job comes to, and bounds on jobs, by linear programs in floats (HiGHS)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from schedgym.core.arrays import Floats
from schedgym.papers.shi2017.model.one_job import Placement, Plan, SingleJob, job_on, tapra_from, total
from schedgym.papers.shi2017.model.online import TENTH, Workload


def solve(cost: Any, **rows: Any) -> Any:
    """The solution with variables >= 0, or None if there is none."""
    result = linprog(cost, bounds=(0, None), method="highs", **rows)
    if result.status not in (0, 2):
        raise ArithmeticError(result.message)
    return None if result.status == 2 else result


def least_time(job: SingleJob, placement: Placement) -> float:
    """The completion time of `optra`: 1 / r for the largest r so that vCPUs c_i >= L_i r keep the limits."""
    leq = np.array([float(job.leq(i, j)) for i, j in enumerate(placement)])
    scale = leq.max()
    limits = [[float(job.weight(j, k)) for j in placement] for k in range(len(job.groups))]
    rows = np.block(
        [[-np.eye(job.tasks), leq[:, None] / scale], [np.array(limits), np.zeros((len(limits), 1))]]
    )
    right = [*[0.0] * job.tasks, *map(float, job.limits)]
    rate = float(solve([0.0] * job.tasks + [-1.0], A_ub=rows, b_ub=right).x[-1])
    return scale / rate if rate > 0 else math.inf


class Relaxation(NamedTuple):
    """Optimum of SJS-Relax-LP, and the parts l_ij / load_i of one of its optimal solutions."""

    bound: float
    parts: Floats


def relaxation(job: SingleJob) -> Relaxation | None:
    """Solve SJS-Relax-LP as it stands; None if it is infeasible."""
    n, m = job.tasks, job.servers
    leq = np.array([[float(job.leq(i, j)) for j in range(m)] for i in range(n)])
    scale = leq.sum()
    rows = [
        np.append((np.array(row, dtype=float) * leq).ravel(), -float(limit)) / scale
        for row, limit in zip(job.matrix(), job.limits, strict=True)
    ]
    right = [0.0] * len(rows)
    if job.energy_cap < math.inf:
        alpha = np.array([[float(job.alpha(i))] for i in range(n)])
        rows.append(np.append((alpha * leq).ravel() / float(job.energy_cap), 0.0))
        right.append(1.0)
    whole = np.hstack([np.kron(np.eye(n), np.ones(m)), np.zeros((n, 1))])
    found = solve([0.0] * n * m + [1.0], A_ub=np.array(rows), b_ub=right, A_eq=whole, b_eq=np.ones(n))
    return None if found is None else Relaxation(float(found.fun), found.x[:-1].reshape(n, m))


def lower_bound(job: SingleJob) -> float:
    """A lower bound on the completion time; infinite if nothing is feasible."""
    relaxed = relaxation(job)
    return math.inf if relaxed is None else relaxed.bound


def tapra(job: SingleJob) -> Plan | None:
    """TaPRA, for jobs of floats and limits that may be 0."""
    relaxed = relaxation(job)
    return None if relaxed is None else tapra_from(job, relaxed.parts.tolist())


def job_bound(workload: Workload, job: int, drc: bool) -> float:
    """A lower bound on the time in the system of one job, from its relaxation on empty servers.

    With DRC tasks may use more than the groups' limits, but never more than the servers have.
    """
    own, ratio = workload.jobs[job], workload.energy_cap_ratio
    cap = max((1 + TENTH if ratio is None else ratio) * own.ideal_energy, own.least_energy)
    limits = [limit for limit in workload.limits if limit.kind == "server" or not drc]
    if not limits:
        raise ValueError("no bound with DRC without the servers' capacities")
    return lower_bound(job_on(limits, workload.capacity, own.load, own.efficiency, cap, own.power))


def online_bound(workload: Workload, drc: bool) -> float:
    """A lower bound on the average time in the system."""
    values = [job_bound(workload, job, drc) for job in range(len(workload.jobs))]
    return float(total(values)) / len(values)
