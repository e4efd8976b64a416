"""Lower bounds on the completion time of a SingleJob over all plans.

In the relaxation a task can be cut into pieces that run on different servers. Its bound is low mainly because
a piece may run on a server where the whole task would take too long; :func:`whole_task_bound` forbids that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats
from schedgym.core.workload import Workload
from schedgym.problems.single_job.topology import server_limits
from schedgym.problems.single_job.workload import Jobs, tables
from schedgym.solvers.placement import ENERGY_SLACK
from schedgym.solvers.relaxation import relax_bound

if TYPE_CHECKING:
    from schedgym.problems.single_job.problem import SingleJobParameters


ROUNDING = 1e-12  # relative, by which bounds are lowered that are not certified otherwise
NEVER = 1e-8  # share of a task's best efficiency that it gets on a server where it would take too long


def lower_bound(workload: Workload, parameters: SingleJobParameters | None = None) -> float:
    """Return a lower bound [s] on the completion time of any plan: :func:`whole_task_bound`."""
    return whole_task_bound(workload)


def whole_task_bound(workload: Workload) -> float:
    """Return a lower bound [s] that also forbids servers on which a task alone would take too long.

    Let t_ij be the least time of task i on server j (:func:`alone_times`), and R(t) the optimum of the
    relaxation without the pairs with t_ij > t; R falls as t grows. A plan with completion time t has no pair
    with t_ij > t, so it is no better than R(t): t >= R(t). So if R(s) > s, every plan has t > s; and, as R is
    the same up to the next larger t_ij, t >= the smaller of R(s) and that t_ij. The largest such s is found
    by bisection among the times t_ij, from the larger of two weaker bounds on: the optimum of the relaxation
    SJS-Relax-LP (section 4), and the time of the longest task, alone on the fastest server that the energy
    cap allows it. (The idea is that of Lenstra, Shmoys, Tardos 1990.) In the code a pair is not left out, but
    gets an absurd equivalent load, which can only lower R.
    """
    own = tables(workload)
    cap = float(own.energy_cap[0])
    time = alone_times(own.load, own.efficiency, own.matrix, own.limits, cap, own.power)
    relaxed = relax_bound(own.load, own.efficiency, own.matrix, own.limits, cap, own.power)
    low = max(relaxed, float(time.min(axis=1).max()) * (1.0 - ROUNDING))
    high = _without(own, time, low)
    if high <= low:
        return low
    # R(steps[a]) > steps[a], but R(steps[b]) <= steps[b]
    steps = np.concatenate([[low], np.unique(time[(time > low) & (time < high)]), [high]])
    a, b = 0, len(steps) - 1
    while b - a > 1:
        middle = (a + b) // 2
        value = _without(own, time, float(steps[middle]))
        if value > steps[middle]:
            a, high = middle, value
        else:
            b = middle
    return min(high, float(steps[b]) * (1.0 - ROUNDING))


def alone_times(
    load: Floats,
    efficiency: Floats,
    matrix: npt.NDArray[Any],
    limits: Floats,
    energy_cap: float,
    power: Floats,
) -> Floats:
    """Return the least execution time [s] of each task on each server, [N, M], alone in all its groups.

    It is the equivalent load over the most vCPU that the server's groups allow there, or inf where the energy
    cap does not allow the pair even if all other tasks use their least energy.

    Args:
        load: [N] vCPU s.
        efficiency: [N, M].
        matrix: weights of the servers in groups [R, M].
        limits: [R] vCPU times weight.
        energy_cap: power * vCPU s.
        power: [N] per vCPU.
    """
    leq = load[:, None] / efficiency
    energy = power[:, None] * leq
    least = energy.min(axis=1, keepdims=True)
    affordable = energy - least + least.sum() <= energy_cap * (1.0 + 2.0 * ENERGY_SLACK)
    return np.where(affordable, leq / server_limits(matrix, limits), math.inf)


def _without(own: Jobs, time: Floats, most: float) -> float:
    """Return R(most) of :func:`whole_task_bound`."""
    best = own.efficiency.max(axis=1, keepdims=True)
    efficiency = np.where(time <= most * (1.0 + 2.0 * ROUNDING), own.efficiency, NEVER * best)
    return relax_bound(own.load, efficiency, own.matrix, own.limits, float(own.energy_cap[0]), own.power)
