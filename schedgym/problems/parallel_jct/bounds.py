"""Lower bounds on the average time in the system of any ParallelJCT schedule.

There are three bounds. The first gives each job the whole data centre for itself. The second runs all jobs on
one machine that is as fast as all servers together, shortest remaining work first. The third mixes both. Time
after the end of the episode does not count.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import kernel
from schedgym.core.workload import Workload
from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
from schedgym.problems.parallel_jct.workload import ENERGY_RANGE, tables
from schedgym.problems.single_job.bounds import ROUNDING
from schedgym.problems.single_job.topology import cluster_groups, group_limits, server_limits
from schedgym.solvers.one_machine import serve_by_key, tail_times
from schedgym.solvers.placement import ENERGY_SLACK
from schedgym.solvers.relaxation import relax_bound

Weights = npt.NDArray[Any]

INSTANT = 1e-9  # events closer than this, times max(1, t), are one
PRICE_STEPS = 40  # of the ascent of the servers' prices
PRICE_STEP = 0.5  # size of the first of them, in nats for a server with twice the mean load
MOST_PROGRAMS = 2000  # linear programs (some 5 ms each); further jobs have the time of their longest task
MOST_PAIRS = 2 * 10**8  # pairs of task and server that all these steps look at
RATE_ROUNDING = 1e-6  # relative, of the largest rate of a job (a linear program)
STEP = 4.0  # of the first change of the weights, in nats for a difference as large as the best term
MOST_STEPS, LEAST_STEPS = 100, 20
MOST_VISITS = 10**7  # steps times jobs, beyond the least number of steps


def lower_bound(workload: Workload, parameters: ParallelJCTParameters | None = None) -> float:
    """Return a lower bound [s] on the average time in the system, up to rounding: the largest of the three.

    Of ``parameters`` (default: the environment's own) only ``drc`` and ``max_time`` count: policies may act
    at other times than ``rounds`` says. Events within 1e-9 max(1, t) are one, so tasks may complete too early
    by that much, and by twice that much before a tick; the bound is lowered accordingly.
    """
    needs = _needs(workload, parameters)
    alone = _alone(needs)
    best = float(alone.sum())
    if needs.pooled:
        priced = _price(needs)
        best = max(best, _pooled(needs, priced), _mixed(needs, priced, alone))
    early = 2.0 * INSTANT * float(np.maximum(workload.jobs["arrival"], 1.0).sum() + best)
    return max(best - early, 0.0) / needs.jobs


def job_bounds(workload: Workload, parameters: ParallelJCTParameters | None = None) -> Floats:
    """Return the least time [s] of each job alone in the data centre, at most up to the end; [jobs].

    It is the larger of the optimum of the relaxation SJS-Relax-LP and the time of the job's longest task,
    under the largest energy cap that the job can have. Without DRC a job's vCPU on the servers of a group are
    at most the group's share of its capacity. With DRC this holds for the base vCPU only; the total is
    limited by each server's capacity alone, so the program has no rows for groups (with them, schedules beat
    the bound). If servers' capacities are not limits (``server_caps`` false), base vCPU may exceed them: then
    a job has, with DRC, at most the larger of the capacity and what the server's groups allow there.
    """
    needs = _needs(workload, parameters)
    times = np.zeros(needs.jobs)
    times[: len(needs.arrival)] = _alone(needs)
    return times


def pooled_bound(workload: Workload, parameters: ParallelJCTParameters | None = None) -> float:
    """Return the average time [s] of preemptive shortest remaining work first on one pooled machine.

    Let u_j >= 0 be prices of the servers' vCPU with sum u_j C_j = 1, e_x the least price u_j Leq_xj at which
    task x can run to its end, and V_i the sum of the e_x of job i. In a schedule let task x have rho_x(t)
    vCPU on its server j, and call e_x / Leq_xj rho_x(t) <= u_j rho_x(t) its progress. The total progress is
    at most sum u_j C_j = 1 at any time, and that of job i amounts to V_i by the time it completes. So one
    machine of speed 1, where the jobs have lengths V_i, can complete each job as early; and at all times
    shortest remaining work first has completed the most jobs (Schrage 1968), so that it also has the least
    time in the system up to any instant.

    Any prices give a bound. Equal prices make V_i the least work over the capacity of all servers; an
    ascent finds better ones if some servers are scarcer than others. Pairs of task and server that the energy
    cap forbids are excluded. The bound is 0 if servers' capacities are not limits.
    """
    needs = _needs(workload, parameters)
    return _pooled(needs, _price(needs)) / needs.jobs if needs.pooled else 0.0


def mixed_bound(workload: Workload, parameters: ParallelJCTParameters | None = None) -> float:
    """Return a lower bound [s] on the average time that mixes :func:`job_bounds` and :func:`pooled_bound`.

    With the progress, e and V of :func:`pooled_bound`, let M_i be the mean time at which job i progresses,
    and r_i, C_i its arrival and completion. For every schedule:

    1. C_i >= r_i + L_i, L_i of :func:`job_bounds`.
    2. C_i >= M_i + h_i. Task x progresses at most at rate e_x / d_x, where d_x is its least time alone, and
       all tasks of the job together at most at R_i: the largest sum of u_j times the vCPU that a job of that
       many tasks can have. So at C_i - s at least V_i - min(sum e_x min(1, s / d_x), R_i s) is left; and
       C_i - M_i is the integral over s of the rest, divided by V_i. h_i is that integral for this least rest.
    3. For weights w_i >= 0 the sum of w_i M_i is at least its minimum over preemptive schedules of one
       machine of speed 1, where serving the largest w_i / V_i first is optimal (by exchange of two slices).

    An episode that ends at T charges min(C_i, T). Let the rest be done at T, which changes M_i to m_i.
    Then 3 holds for m_i, with dates after T counted as T. As min(C_i, T) >= min(m_i + h_i, T), which is
    concave in m_i, it is at least the chord over r_i <= m_i <= T: r_i + h_i + s_i (m_i - r_i) with
    s_i = 1 - h_i / (T - r_i), or T if h_i is larger than T - r_i.

    Hence for weights 0 <= w_i <= 1 the sum of min(C_i, T) is at least that of (1 - w_i) min(r_i + L_i, T) +
    w_i (r_i + h_i - s_i r_i), plus the minimum of 3 with the weights w_i s_i. It is concave in the weights;
    multiplicative steps along its supergradient improve them, and the best value is returned.

    The bound is 0 if servers' capacities are not limits.
    """
    needs = _needs(workload, parameters)
    if not needs.pooled:
        return 0.0
    return _mixed(needs, _price(needs), _alone(needs)) / needs.jobs


class _Needs(NamedTuple):
    """The needs of the jobs that arrive before the end. J jobs, Q tasks, M servers, R rows."""

    jobs: int  # of the workload
    arrival: Floats  # [J] [s] after the first
    horizon: Floats  # [J] from the arrival to the end of the episode [s]
    first_task: Integers  # [J + 1]
    load: Floats  # [Q]
    efficiency: Floats  # [Q, M]
    power: Floats  # [Q] per vCPU
    energy_cap: Floats  # [J] largest cap that the job can have
    ceiling: Floats  # [Q] the largest equivalent load that the cap leaves for a task
    matrix: Weights  # [R, M] rows that limit the vCPU that a job has at any time
    limits: Floats  # [R] vCPU, by weight
    least_limit: Floats  # [M] most vCPU of a job on each server, by each of its rows alone
    longest: Floats  # [Q] least time of a task alone [s]
    cpu: Floats  # [M]
    pooled: bool  # True if the servers' capacities limit all jobs together


def _needs(workload: Workload, parameters: ParallelJCTParameters | None) -> _Needs:
    own = tables(workload)
    parameters = parameters or ParallelJCTParameters()
    jobs = int(np.searchsorted(own.arrival, parameters.max_time))
    first = own.first_task[: jobs + 1]
    tasks = int(first[-1])
    ratio = np.where(np.isnan(own.energy_cap_ratio), 1.0 + ENERGY_RANGE, own.energy_cap_ratio)
    cap = np.maximum(ratio * own.ideal_energy, own.least_energy)[:jobs]
    spare = cap * (1.0 + 2.0 * ENERGY_SLACK) - own.least_energy[:jobs]
    matrix = cluster_groups(workload.cluster).matrix
    limits = group_limits(matrix, own.share, own.cpu)
    least_limit = server_limits(matrix, limits)
    caps = bool(workload.cluster.get("server_caps", True))
    if parameters.drc:
        limits = least_limit = np.array(own.cpu) if caps else np.maximum(own.cpu, least_limit)
        matrix = np.eye(len(limits), dtype=np.int8)
    load, efficiency, power = own.load[:tasks], own.efficiency[:tasks], own.power[:tasks]
    ceiling = np.repeat(spare, np.diff(first)) / power + load / efficiency.max(axis=1)
    leq = load[:, None] / efficiency
    longest = np.where(leq <= ceiling[:, None], leq / least_limit, math.inf).min(axis=1)
    return _Needs(
        jobs=len(own.arrival),
        arrival=own.arrival[:jobs] - own.arrival[0],  # a large origin would lose digits
        horizon=parameters.max_time - own.arrival[:jobs],
        first_task=np.array(first),
        load=load,
        efficiency=efficiency,
        power=power,
        energy_cap=cap,
        ceiling=ceiling,
        matrix=matrix,
        limits=limits,
        least_limit=least_limit,
        longest=longest,
        cpu=np.array(own.cpu),
        pooled=caps,
    )


def _alone(needs: _Needs) -> Floats:
    """Return the least time in the system of each job, up to the end of the episode [J]."""
    jobs, first = len(needs.arrival), needs.first_task
    times, most = np.zeros(jobs), np.zeros(jobs)
    for i in range(jobs):
        a, b = first[i], first[i + 1]
        times[i] = float(needs.longest[a:b].max()) * (1.0 - ROUNDING)
        leq = needs.load[a:b, None] / needs.efficiency[a:b]
        most[i] = _spread(leq, needs.power[a:b], needs.matrix, needs.limits, float(needs.energy_cap[i]))
    # linear programs first for the jobs whose times they may raise most, and only if they may
    gain = np.minimum(most, needs.horizon) - times
    for i in np.argsort(-gain, kind="stable")[:MOST_PROGRAMS].tolist():
        if gain[i] > 0.0:
            own, cap = slice(first[i], first[i + 1]), float(needs.energy_cap[i])
            job = (needs.load[own], needs.efficiency[own], needs.matrix, needs.limits, cap, needs.power[own])
            times[i] = max(times[i], relax_bound(*job))
    return np.minimum(times, needs.horizon)


def _spread(leq: Floats, power: Floats, matrix: Weights, limits: Floats, energy_cap: float) -> float:
    """Return an upper bound [s] on the relaxation: every task in equal parts on a few of its best servers."""
    order = np.sort(leq, axis=1)
    best = math.inf
    for count in (1, 2, 4, 8, 16):
        if count > leq.shape[1] or power @ order[:, :count].sum(axis=1) > count * energy_cap:
            break
        part = np.where(leq <= order[:, count - 1 : count], leq, 0.0).sum(axis=0) / count
        best = min(best, float((matrix @ part / limits).max()))
    return best


class _Priced(NamedTuple):
    """The jobs on the machine of speed 1, as in :func:`mixed_bound`. J jobs."""

    length: Floats  # [J] V [s]
    tail: Floats  # [J] h [s]


def _price(needs: _Needs) -> _Priced:
    tasks, servers = needs.efficiency.shape
    budget = needs.cpu / needs.cpu.sum()  # u_j C_j
    least, trial, load = np.empty(tasks), np.empty(servers), np.empty(servers)
    steps = int(min(PRICE_STEPS, MOST_PAIRS // max(tasks * servers, 1)))
    _raise_prices(needs.load, needs.efficiency, needs.ceiling, needs.cpu, steps, budget, trial, load, least)
    jobs = len(needs.arrival)
    length, tail = np.empty(jobs), np.empty(jobs)
    if jobs == 0:
        return _Priced(length, tail)
    np.add.reduceat(least, needs.first_task[:-1], out=length)
    price = budget / needs.cpu
    largest = np.concatenate([[0.0], np.cumsum(np.sort(price * needs.least_limit)[::-1])])
    rate = largest[np.minimum(np.diff(needs.first_task), servers)]
    solved = linprog(-price, A_ub=needs.matrix, b_ub=needs.limits, method="highs")
    if solved.status == 0:
        rate = np.minimum(rate, -solved.fun * (1.0 + RATE_ROUNDING))
    tail_times(least, needs.longest, needs.first_task, length, np.minimum(rate, 1.0), tail)
    return _Priced(length, tail)


def _pooled(needs: _Needs, priced: _Priced) -> float:
    count = len(needs.arrival)
    end, mean, left = np.empty(count), np.empty(count), np.empty(count)
    until = float(needs.arrival[0] + needs.horizon[0]) if count else 0.0
    serve_by_key(needs.arrival, priced.length, np.empty(0), 1.0, until, end, mean, left)
    return float((np.minimum(end, until) - needs.arrival).sum())


def _mixed(needs: _Needs, priced: _Priced, alone: Floats) -> float:
    if len(alone) == 0:
        return 0.0
    steps = min(max(MOST_VISITS // len(alone), LEAST_STEPS), MOST_STEPS)
    until = float(needs.arrival[0] + needs.horizon[0])
    return _ascend(needs.arrival, alone, priced.length, priced.tail, needs.horizon, until, steps)


@kernel
def _raise_prices(
    load: Floats,
    efficiency: Floats,
    ceiling: Floats,
    cpu: Floats,
    steps: int,
    budget: Floats,
    trial: Floats,
    used: Floats,
    least: Floats,
) -> None:
    """Raise the sum over tasks of their least price u_j Leq_xj, by multiplicative steps; see :class:`_Needs`.

    ``budget`` [M], u_j C_j with sum 1, is the starting point, and is replaced by the best one found; each
    task's least price under it is written to ``least`` [Q]. ``trial`` and ``used`` [M] are scratch space.
    """
    servers = cpu.shape[0]
    best = 0.0
    trial[:] = budget
    for step in range(steps + 1):
        value = 0.0
        used[:] = 0.0
        if step == steps:
            trial[:] = budget
        for x in range(load.shape[0]):
            price = math.inf
            at = 0
            for j in range(servers):
                leq = load[x] / efficiency[x, j]
                if leq <= ceiling[x] and leq * (trial[j] / cpu[j]) < price:
                    price = leq * (trial[j] / cpu[j])
                    at = j
            least[x] = price
            value += price
            used[at] += load[x] / efficiency[x, at] / cpu[at]
        if step == steps or not value > 0.0:
            break
        if value > best:
            best = value
            budget[:] = trial
        total = 0.0
        for j in range(servers):
            trial[j] *= math.exp(PRICE_STEP / math.sqrt(step + 1.0) * (min(used[j] / value, 3.0) - 1.0))
            total += trial[j]
        for j in range(servers):
            trial[j] /= total


@kernel
def _ascend(
    arrival: Floats, alone: Floats, length: Floats, tail: Floats, horizon: Floats, until: float, steps: int
) -> float:
    """Return the sum over jobs of :func:`mixed_bound`, minus the arrivals, after ``steps`` steps.

    In its terms ``arrival`` is r, ``alone`` L, ``length`` V, ``tail`` h, ``horizon`` T - r, and ``until`` T.
    """
    jobs = arrival.shape[0]
    weight = np.ones(jobs)  # at first only the machine counts
    key = np.empty(jobs)
    end = np.empty(jobs)
    mean = np.empty(jobs)
    left = np.empty(jobs)
    best = 0.0
    for i in range(jobs):
        best += alone[i]
    for step in range(steps):
        for i in range(jobs):
            slope = max(1.0 - tail[i] / horizon[i], 0.0)
            key[i] = -weight[i] * slope / length[i]
        serve_by_key(arrival, length, key, 1.0, until, end, mean, left)
        value = 0.0
        pace = STEP / math.sqrt(step + 1.0)
        for i in range(jobs):
            slope = max(1.0 - tail[i] / horizon[i], 0.0)
            gain = min(tail[i], horizon[i]) + slope * (mean[i] - arrival[i])
            value += (1.0 - weight[i]) * alone[i] + weight[i] * gain
            if step == 0:
                weight[i] = 0.5
                continue
            top = max(alone[i], gain)
            up = weight[i] * math.exp(pace * (gain / top - 1.0))
            down = (1.0 - weight[i]) * math.exp(pace * (alone[i] / top - 1.0))
            weight[i] = up / (up + down)
        best = max(best, value)
    return best
