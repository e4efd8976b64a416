"""Optima and bounds: whole tasks by integer programmes and flows, divisible ones by a conic solver."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from schedgym.papers.zheng2016.model import (
    Instance,
    State,
    Task,
    candidates,
    horizon,
    share,
    shares,
    window,
    worth,
)
from schedgym.problems.partial_value import bounds
from schedgym.problems.partial_value.rules import LINEAR, LOG, POWER
from schedgym.problems.partial_value.workload import tables

LIMITS = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
#: tolerances of Clarabel, in turn: it may stall just before one (exponents near 1)
TOLERANCES = (1e-9, 1e-7, 1e-6)


class Uncertified(Exception):
    """A solver ended without a proof that its answer is optimal."""


def local_optimum_milp(state: State) -> float:
    """The value of ``local_optimal`` by integer programming, for slots too large to enumerate."""
    tasks = candidates(state)
    if not tasks:
        return 0.0
    matrix = np.array([shares(state.instance, s.j) for s in tasks]).T
    result = milp(
        [-s.value for s in tasks],
        constraints=LinearConstraint(matrix, ub=np.ones(len(matrix))),
        integrality=np.ones(len(tasks)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if result.status != 0:
        raise Uncertified(result.message)
    return -float(result.fun)


def _piecewise(instance: Instance, whole: bool) -> float:
    """The programme over x_jt and one 0..1 variable per task, relaxed or with whole x."""
    jobs, m = instance.jobs, len(instance.capacity)
    columns = [(j, t) for j in range(len(jobs)) for t in window(instance, j)]
    tasks = [(j, k) for j, job in enumerate(jobs) for k in range(1, round(job.tasks) + 1)]
    width = len(columns) + len(tasks)
    rows, lows, highs = [], [], []
    for t in range(1, horizon(instance) + 1):
        for i in range(m):
            row = np.zeros(width)
            for column, (j, s) in enumerate(columns):
                row[column] = share(instance, j, i) * (s == t)
            rows.append(row)
            lows.append(-np.inf)
            highs.append(1.0)
    for j in range(len(jobs)):  # the pieces of a job are paid for by its service
        row = np.zeros(width)
        row[[c for c, (k, _) in enumerate(columns) if k == j]] = -1.0
        row[[len(columns) + c for c, (k, _) in enumerate(tasks) if k == j]] = 1.0
        rows.append(row)
        lows.append(-np.inf)
        highs.append(0.0)
    caps = [min(jobs[j].parallelism, jobs[j].tasks) for j, _ in columns] + [1.0] * len(tasks)
    result = milp(
        [0.0] * len(columns) + [-worth(jobs[j], k) for j, k in tasks],
        constraints=LinearConstraint(np.array(rows), lows, highs),
        integrality=[int(whole)] * len(columns) + [0] * len(tasks),
        bounds=Bounds(np.zeros(width), np.array(caps)),
        options={"mip_rel_gap": 0.0},
    )
    if result.status != 0:
        raise Uncertified(result.message)
    return -float(result.fun)


def discrete_bound(instance: Instance) -> float:
    """Upper bound of the discrete model: LP with one piece per task."""
    return _piecewise(instance, whole=False)


def offline_milp(instance: Instance) -> float:
    """Offline optimum of the discrete model by integer programming."""
    return _piecewise(instance, whole=True)


def offline_unit(instance: Instance) -> float:
    """Offline optimum for one resource and unit demand: greedy over a matroid.

    The sets of tasks that can be served together are those that a flow job -> slot (at most X) ->
    sink (at most C) can route, so taking tasks by value whenever an augmenting path exists is optimal.
    """
    assert len(instance.capacity) == 1 and all(job.demand == (1.0,) for job in instance.jobs)
    jobs = instance.jobs
    c = round(instance.capacity[0])
    served = {(j, t): 0 for j in range(len(jobs)) for t in window(instance, j)}

    def augment(j: int, seen: set[int]) -> bool:
        """Route one more task of job j, moving other tasks to other slots if needed."""
        for t in window(instance, j):
            if t in seen or served[j, t] >= round(jobs[j].parallelism):
                continue
            seen.add(t)
            if sum(n for (_, s), n in served.items() if s == t) < c:
                served[j, t] += 1
                return True
            for other in range(len(jobs)):
                if served.get((other, t), 0) > 0 and augment(other, seen):
                    served[other, t] -= 1
                    served[j, t] += 1
                    return True
        return False

    total = 0.0
    tasks = [Task(worth(job, k), j, k) for j, job in enumerate(jobs) for k in range(1, round(job.tasks) + 1)]
    for task in sorted(tasks, key=lambda s: (-s.value, s.j, s.k)):
        if augment(task.j, set()):
            total += task.value
    return total


def conic_optimum(workload: Any) -> float:
    """Offline optimum of the continuous model, of any size, by Clarabel."""
    cvxpy = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    needs = bounds._needs(tables(workload), False)
    grid = bounds._grid(needs, bounds._events(needs))
    count, columns = len(needs.most), len(grid.job)
    supply = bounds._in_rows(grid.job, grid.cap / needs.most[grid.job], count)
    scale = math.fsum(bounds._worth(needs, needs.most)) / count
    served = cvxpy.Variable(columns)  # in shares of the caps
    total = supply @ served  # in shares of ``most``
    loads = bounds._loads(needs, grid) @ served <= 1.0
    value = 0.0
    for kind in (LINEAR, POWER, LOG):
        own = np.flatnonzero(needs.utility == kind)
        factor = needs.value[own] / scale
        if len(own) == 0:
            continue
        if kind == LINEAR:
            value += (factor * needs.most[own]) @ total[own]
        elif kind == LOG:
            # log(1 + y) minus its largest value: with y itself in the cone, Clarabel often fails
            ratio = (1.0 + cvxpy.multiply(needs.most[own], total[own])) / (1.0 + needs.most[own])
            value += factor @ (cvxpy.log(ratio) + np.log1p(needs.most[own]))
        else:
            for exponent in np.unique(needs.exponent[own]):
                these = own[needs.exponent[own] == exponent]
                heights = cvxpy.power(total[these], float(exponent))
                value += (needs.value[these] / scale * needs.most[these] ** exponent) @ heights
    problem = cvxpy.Problem(cvxpy.Maximize(value), [loads, served >= 0.0, served <= 1.0, total <= 1.0])
    for tolerance in TOLERANCES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about inaccurate solutions, and exponents as fractions
                problem.solve(solver=cvxpy.CLARABEL, **dict.fromkeys(LIMITS, tolerance))
        except cvxpy.SolverError:
            continue
        if problem.status == cvxpy.OPTIMAL:
            return float(problem.value) * scale
    raise Uncertified(str(problem.status))
