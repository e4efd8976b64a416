"""Planning one job of independent tasks: where each task runs, and with how much vCPU.

A job has tasks with loads [vCPU s at efficiency 1]; on server j task i takes Leq = load / efficiency vCPU
seconds, and the energy alpha Leq, where alpha is the task's power per vCPU. Groups of servers limit what the
job may use: a vCPU on server j counts A_jk in group k (its weight, 1 in a fat tree), and all together may
count B_k (Eq. 4). With the allocation of Eq. 16 a group takes T_k = (sum of A_jk Leq in it) / B_k, a task as
long as the slowest of its server's groups, and the job max T_k. With equal shares (by which the paper seems
to evaluate the rivals) each task in a group may count B_k / (tasks in k), so that it gets
min_k B_k / (tasks in k) / A_jk, and the job's time is again the largest of one number per group,
(largest A_jk Leq in k) / (B_k / tasks in k). So a move changes the numbers of two servers' groups only.

The helpers are inlined into kernels and take a job as rows ``first`` to ``first + tasks`` of ``load`` and
``efficiency``; ``placement`` is indexed from 0. Sums run over the tasks in index order and are made anew
after every move (some 0.1 us), so that the next step of a search depends on the placement alone, not on the
moves before it. E <= E_MAX means E <= E_MAX (1 + 1e-12) throughout.

Source: shi2017: Eq. 16 (OptRA), Algorithms 1 (TaPRA), 2 (REC), 3 (local search), TaPRA-fast, and the rivals
Min-Min, MM-GA and GSA of section 6.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers, Integers32, allocate
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.random import uniform
from schedgym.errors import InvalidParameter

Places = npt.NDArray[np.int32]

ENERGY_SLACK = 1e-12
STRICT = 1e-9  # by which a task must become faster, relatively
WORK_SHARE = 0.15  # of the work on a server that counts in list scheduling
# the genetic algorithms, of which the paper cites the idea only
MEMBERS, GENERATIONS = 30, 60  # of a population
ELITE = 2  # members that survive
CROSSOVER, MUTATION = 0.8, 0.02  # probabilities: per child, per task
ANNEALING = 5  # steps per child
WARM, COOLING = 0.1, 0.95  # first temperature over the best completion time; factor per generation


class Membership(NamedTuple):
    """The groups of each server and the servers of each group; E pairs with a weight, in ascending order."""

    server_start: Annotated[Integers, "server+1"]
    server_group: Annotated[Integers, "pair"]
    server_weight: Annotated[Floats, "pair"]  # A_jk > 0: what a vCPU on the server counts in the group
    group_start: Annotated[Integers, "group+1"]
    group_server: Annotated[Integers, "pair"]
    group_weight: Annotated[Floats, "pair"]  # the same, by group


class PlanScratch(NamedTuple):
    """Work space. The first four arrays hold the results of :func:`evaluate`; the others are private.

    Only ``work`` is given: by the callers of :func:`list_scheduling`.
    """

    count: Annotated[Integers, "group"]  # type: ignore[assignment]  # tasks in the group
    group_load: Annotated[Floats, "group"]  # sum of their A_jk Leq; by equal shares the largest
    group_time: Annotated[Floats, "group"]  # T_k
    leq: Annotated[Floats, "task"]  # of each task on its server
    second: Annotated[Floats, "group"]  # the second largest A_jk Leq
    owner: Annotated[Integers, "group"]  # task of the largest one
    saved_count: Annotated[Integers, "group"]
    saved_load: Annotated[Floats, "group"]
    saved_time: Annotated[Floats, "group"]
    floor: Annotated[Floats, "server"]
    share: Annotated[Floats, "server"]
    row_time: Annotated[Floats, "task"]
    row_server: Annotated[Integers, "task"]
    work: Annotated[Floats, "server"]


class Job(NamedTuple):
    """A job to be planned, and the vCPU that the groups of servers have now. M servers in R groups."""

    first: int  # row of its first task
    tasks: int  # how many it has
    load: Floats  # [rows] vCPU seconds
    efficiency: Floats  # [rows, M]
    membership: Membership  # of servers in groups, with their weights
    limits: Floats  # [R] B_k, in vCPU times weight
    energy_cap: float  # E_MAX, in the unit of power * vCPU seconds
    power: Floats  # [rows] alpha, power per vCPU


class Population(NamedTuple):
    """Two generations of a genetic planner, and work space."""

    member: Annotated[Integers32, "member", "task"]
    score: Annotated[Floats, "member"]
    child: Annotated[Integers32, "member", "task"]
    child_score: Annotated[Floats, "member"]
    order: Annotated[Integers, "member"]
    trial: Annotated[Integers32, "task"]


def make_membership(matrix: npt.ArrayLike) -> Membership:
    """The lists of a matrix of weights A_jk >= 0 [R, M]; a server with weight 0 is not in the group.

    Raises:
        InvalidParameter: not such a matrix, or a server is in no group.
    """
    weights = np.asarray(matrix)
    if weights.ndim != 2:
        raise InvalidParameter(f"groups: must have one row per group, got {weights.ndim} dimensions")
    bad = np.argwhere(~((weights >= 0.0) & (weights < math.inf)))
    if bad.size:
        k, j = bad[0].tolist()
        raise InvalidParameter(f"groups[{k}][{j}]: must be finite and >= 0, got {weights[k, j]:g}")
    alone = np.flatnonzero(~weights.any(axis=0))
    if alone.size:
        raise InvalidParameter(f"groups: server {alone[0]} is in no group")

    def lists(rows: npt.NDArray[Any]) -> tuple[Integers, Integers, Floats]:
        start = np.concatenate([[0], np.cumsum(np.count_nonzero(rows, axis=1))])
        inside = np.nonzero(rows)
        return start.astype(np.int64), inside[1].astype(np.int64), rows[inside].astype(np.float64)

    return Membership(*lists(weights.T), *lists(weights))


def make_scratch(tasks: int, servers: int, groups: int) -> PlanScratch:
    """Work space for jobs of up to ``tasks`` tasks."""
    return allocate(PlanScratch, {"task": tasks, "server": servers, "group": groups})


def make_population(size: int, tasks: int) -> Population:
    """Work space for :func:`plan_genetic`, for jobs of up to ``tasks`` tasks."""
    return allocate(Population, {"member": size, "task": tasks})


# Groups ---------------------------------------------------------------------------------------


@helper
def affords(energy: float, energy_cap: float) -> bool:
    """Return True if an energy is within the cap, up to rounding."""
    return energy <= energy_cap * (1.0 + ENERGY_SLACK)


@helper
def _over(load: float, limit: float) -> float:
    return load / limit if limit > 0.0 else math.inf


@helper
def is_alive(server: int, membership: Membership, limits: Floats) -> bool:
    """Return True if every group of the server has resources."""
    for e in range(membership.server_start[server], membership.server_start[server + 1]):
        if not limits[membership.server_group[e]] > 0.0:
            return False
    return True


@helper
def most_vcpu(server: int, membership: Membership, limits: Floats) -> float:
    """Return the most vCPU that a job can have on a server, by each of its groups alone."""
    most = math.inf
    for e in range(membership.server_start[server], membership.server_start[server + 1]):
        most = min(most, limits[membership.server_group[e]] / membership.server_weight[e])
    return most


@helper
def largest_capacity(membership: Membership, limits: Floats, scratch: PlanScratch) -> float:
    """Upper bound on the vCPU that a job can have in all.

    Each run of rows that are disjoint (a level of a tree) bounds the sum by itself; the least bound counts.
    If a job had on each server of a group what the limits allow there, and that counts more than B_k, it must
    do without the excess over the largest weight at least.
    """
    servers = membership.server_start.shape[0] - 1
    alone = scratch.floor
    mark = scratch.share
    whole = 0.0
    for j in range(servers):
        alone[j] = most_vcpu(j, membership, limits)
        mark[j] = -1.0
        whole += alone[j]
    best = whole
    begin = 0  # first row of the run
    bound = whole
    for k in range(limits.shape[0]):
        inside = 0.0
        heaviest = 0.0
        for e in range(membership.group_start[k], membership.group_start[k + 1]):
            j = membership.group_server[e]
            if mark[j] >= begin:
                begin = k
                bound = whole
            inside += membership.group_weight[e] * alone[j]
            heaviest = max(heaviest, membership.group_weight[e])
        for e in range(membership.group_start[k], membership.group_start[k + 1]):
            mark[membership.group_server[e]] = k
        if limits[k] < inside:
            bound -= (inside - limits[k]) / heaviest
        best = min(best, bound)
    return best


@helper
def time_on(server: int, leq: float, membership: Membership, limits: Floats, group_load: Floats) -> float:
    """Execution time of a task that joins the loads on a server."""
    time = 0.0
    for e in range(membership.server_start[server], membership.server_start[server + 1]):
        k = membership.server_group[e]
        time = max(time, _over(group_load[k] + membership.server_weight[e] * leq, limits[k]))
    return time


@helper
def add_load(server: int, leq: float, membership: Membership, count: Integers, group_load: Floats) -> None:
    """Put a task on a server."""
    for e in range(membership.server_start[server], membership.server_start[server + 1]):
        k = membership.server_group[e]
        count[k] += 1
        group_load[k] += membership.server_weight[e] * leq


@helper
def server_time(server: int, membership: Membership, scratch: PlanScratch) -> float:
    """Execution time of the tasks on a server, in the placement that was evaluated last."""
    time = 0.0
    for e in range(membership.server_start[server], membership.server_start[server + 1]):
        time = max(time, scratch.group_time[membership.server_group[e]])
    return time


# Evaluation -----------------------------------------------------------------------------------


@helper
def least_energy(first: int, tasks: int, load: Floats, efficiency: Floats, power: Floats) -> float:
    """Energy of the job with every task on its most efficient server."""
    energy = 0.0
    for i in range(first, first + tasks):
        best = 0.0
        for j in range(efficiency.shape[1]):
            best = max(best, efficiency[i, j])
        energy += power[i] * (load[i] / best)
    return energy


@helper
def most_efficient(first: int, tasks: int, efficiency: Floats, placement: Places) -> None:
    """Place every task on its most efficient server, ties the lowest: the least energy."""
    for t in range(tasks):
        i = first + t
        best = 0
        for j in range(1, efficiency.shape[1]):
            if efficiency[i, j] > efficiency[i, best]:
                best = j
        placement[t] = best


@helper
def _share_time(largest: float, count: int, limit: float) -> float:
    """The time of a group whose tasks have equal shares; ``largest`` is that of their A_jk Leq."""
    return largest / (limit / count) if limit > 0.0 else math.inf


@helper
def _evaluate_by(job: Job, equal: bool, placement: Places, scratch: PlanScratch) -> tuple[float, float]:
    """Evaluate a placement by Eq. 16, or by equal shares: then ``group_load`` is the largest A_jk Leq."""
    groups = job.limits.shape[0]
    for k in range(groups):
        scratch.count[k] = 0
        scratch.group_load[k] = 0.0
        if equal:
            scratch.second[k] = 0.0
            scratch.owner[k] = -1
    energy = 0.0
    for t in range(job.tasks):
        j = placement[t]
        leq = 0.0
        if j >= 0:
            leq = job.load[job.first + t] / job.efficiency[job.first + t, j]
            energy += job.power[job.first + t] * leq
            for e in range(job.membership.server_start[j], job.membership.server_start[j + 1]):
                k = job.membership.server_group[e]
                weighted = job.membership.server_weight[e] * leq
                scratch.count[k] += 1
                if not equal:
                    scratch.group_load[k] += weighted
                elif weighted > scratch.group_load[k]:
                    scratch.second[k] = scratch.group_load[k]
                    scratch.group_load[k] = weighted
                    scratch.owner[k] = t
                elif weighted > scratch.second[k]:
                    scratch.second[k] = weighted
        scratch.leq[t] = leq
    jct = 0.0
    for k in range(groups):
        time = 0.0
        if scratch.count[k] > 0 and equal:
            time = _share_time(scratch.group_load[k], scratch.count[k], job.limits[k])
        elif scratch.count[k] > 0:
            time = _over(scratch.group_load[k], job.limits[k])
        scratch.group_time[k] = time
        jct = max(jct, time)
    return jct, energy


@helper
def evaluate(job: Job, placement: Places, scratch: PlanScratch) -> tuple[float, float]:
    """Evaluate a placement by Eq. 16.

    Args:
        job: the job to be planned.
        placement: [tasks] server of each task, -1 where none.
        scratch: ``leq``, ``count``, ``group_load`` and ``group_time`` are set.

    Returns:
        Completion time [s] (inf if a group without resources is loaded) and energy of the tasks placed.
    """
    return _evaluate_by(job, False, placement, scratch)


@helper
def optra_vcpu(job: Job, placement: Places, scratch: PlanScratch, vcpu: Floats) -> None:
    """Set the vCPU of each task by Eq. 16, after :func:`evaluate`; 0 if not placed, or a group has none."""
    for t in range(job.tasks):
        vcpu[t] = 0.0
        if placement[t] >= 0:
            vcpu[t] = scratch.leq[t] / server_time(placement[t], job.membership, scratch)


@helper
def equal_share_vcpu(job: Job, placement: Places, scratch: PlanScratch, vcpu: Floats) -> float:
    """Set the vCPU of each task by equal shares, after :func:`evaluate`; return the completion time [s]."""
    jct = 0.0
    for t in range(job.tasks):
        vcpu[t] = 0.0
        j = placement[t]
        if j < 0:
            continue
        share = math.inf
        for e in range(job.membership.server_start[j], job.membership.server_start[j + 1]):
            k = job.membership.server_group[e]
            share = min(share, job.limits[k] / scratch.count[k] / job.membership.server_weight[e])
        vcpu[t] = share
        jct = max(jct, _over(scratch.leq[t], share))
    return jct


# Moves ----------------------------------------------------------------------------------------


@helper
def _lift(job: Job, task: int, placement: Places, equal: bool, scratch: PlanScratch) -> None:
    """Take a task from its server, until :func:`_drop`."""
    server = placement[task]
    start = job.membership.server_start[server]
    leq = scratch.leq[task]
    for e in range(start, job.membership.server_start[server + 1]):
        k = job.membership.server_group[e]
        x = e - start
        scratch.saved_count[x] = scratch.count[k]
        scratch.saved_load[x] = scratch.group_load[k]
        scratch.saved_time[x] = scratch.group_time[k]
        scratch.count[k] -= 1
        if scratch.count[k] == 0:  # exactly nothing is left
            scratch.group_load[k] = 0.0
            scratch.group_time[k] = 0.0
        elif equal:
            if scratch.owner[k] == task:
                scratch.group_load[k] = scratch.second[k]
            scratch.group_time[k] = _share_time(scratch.group_load[k], scratch.count[k], job.limits[k])
        else:
            scratch.group_load[k] -= job.membership.server_weight[e] * leq
            scratch.group_time[k] = _over(scratch.group_load[k], job.limits[k])


@helper
def _drop(job: Job, task: int, placement: Places, scratch: PlanScratch) -> None:
    """Put a lifted task back."""
    server = placement[task]
    start = job.membership.server_start[server]
    for e in range(start, job.membership.server_start[server + 1]):
        k = job.membership.server_group[e]
        x = e - start
        scratch.count[k] = scratch.saved_count[x]
        scratch.group_load[k] = scratch.saved_load[x]
        scratch.group_time[k] = scratch.saved_time[x]


@helper
def move_time(job: Job, task: int, server: int, leq: float, placement: Places, scratch: PlanScratch) -> float:
    """Execution time that a task would have on a server where its equivalent load is ``leq``."""
    _lift(job, task, placement, False, scratch)
    time = time_on(server, leq, job.membership, job.limits, scratch.group_load)
    _drop(job, task, placement, scratch)
    return time


@helper
def search_mask(job: Job, energy: float, placement: Places, scratch: PlanScratch, mask: Any) -> int:
    """Mark the valid moves, after :func:`evaluate`: ``mask[task * M + server]``; return their number."""
    servers = job.efficiency.shape[1]
    found = 0
    for t in range(job.tasks):
        now = server_time(placement[t], job.membership, scratch) * (1.0 - STRICT)
        power = job.power[job.first + t]
        others = energy - power * scratch.leq[t]
        _lift(job, t, placement, False, scratch)
        for j in range(servers):
            leq = job.load[job.first + t] / job.efficiency[job.first + t, j]
            legal = affords(others + power * leq, job.energy_cap)
            if legal:
                time = time_on(j, leq, job.membership, job.limits, scratch.group_load)
                legal = time < math.inf and time < now
            mask[t * servers + j] = legal
            if legal:
                found += 1
        _drop(job, t, placement, scratch)
    return found


@helper
def _best_move(job: Job, task: int, energy: float, placement: Places, scratch: PlanScratch) -> int:
    """The server on which a task has the smallest new time, ties the lowest; -1 if no move is valid."""
    best = server_time(placement[task], job.membership, scratch) * (1.0 - STRICT)
    found = -1
    amount, power = job.load[job.first + task], job.power[job.first + task]
    others = energy - power * scratch.leq[task]
    _lift(job, task, placement, False, scratch)
    for j in range(job.efficiency.shape[1]):
        leq = amount / job.efficiency[job.first + task, j]
        if not affords(others + power * leq, job.energy_cap):
            continue
        time = time_on(j, leq, job.membership, job.limits, scratch.group_load)
        if time < best:
            best = time
            found = j
    _drop(job, task, placement, scratch)
    return found


@pure_kernel
def local_search_step(job: Job, energy: float, placement: Places, scratch: PlanScratch) -> int:
    """The next move of the local search as task * M + server, after :func:`evaluate`; -1 if there is none.

    Of the tasks that take as long as the job, in index order, the first that has a valid move goes where its
    time is smallest.
    """
    jct = 0.0
    for k in range(job.limits.shape[0]):
        jct = max(jct, scratch.group_time[k])
    longest = jct * (1.0 - STRICT)
    for t in range(job.tasks):
        if placement[t] >= 0 and server_time(placement[t], job.membership, scratch) >= longest:
            server = _best_move(job, t, energy, placement, scratch)
            if server >= 0:
                return t * job.efficiency.shape[1] + server
    return -1


@helper
def local_search(job: Job, placement: Places, scratch: PlanScratch) -> tuple[float, float]:
    """Move the longest tasks of a placement until none can move; return the completion time and energy."""
    servers = job.efficiency.shape[1]
    jct, energy = evaluate(job, placement, scratch)
    while True:
        move = local_search_step(job, energy, placement, scratch)
        if move < 0:
            break
        task = move // servers
        source = placement[task]
        before = server_time(source, job.membership, scratch)
        placement[task] = move % servers
        jct, energy = evaluate(job, placement, scratch)
        if not server_time(placement[task], job.membership, scratch) < before:
            # rounding alone (loads some 10^7 times apart) made it look better: go no further
            placement[task] = source
            jct, energy = evaluate(job, placement, scratch)
            break
    return jct, energy


@helper
def _joined_time(job: Job, server: int, leq: float, bound: float, equal: bool, scratch: PlanScratch) -> float:
    """The largest time of a server's groups after a task has joined, or some time >= ``bound`` below it."""
    time = 0.0
    for e in range(job.membership.server_start[server], job.membership.server_start[server + 1]):
        k = job.membership.server_group[e]
        weighted = job.membership.server_weight[e] * leq
        if equal:
            joined = _share_time(max(scratch.group_load[k], weighted), scratch.count[k] + 1, job.limits[k])
        else:
            joined = _over(scratch.group_load[k] + weighted, job.limits[k])
        time = max(time, joined)
        if time >= bound:
            break
    return time


@helper
def _move_that_helps(
    job: Job, jct: float, equal: bool, placement: Places, scratch: PlanScratch
) -> tuple[int, int]:
    """The move to a more efficient server that makes the job fastest: task and server; -1, -1 if none does.

    Moving a task leaves the groups that it is not in as slow as they are: unless it is in all of the job's
    slowest groups, the job cannot become faster.
    """
    groups = job.limits.shape[0]
    servers = job.efficiency.shape[1]
    membership = job.membership
    slowest = 0
    for k in range(groups):
        if scratch.group_time[k] == jct:
            slowest += 1
    best = jct
    best_task = -1
    best_server = -1
    for t in range(job.tasks):
        source = placement[t]
        inside = 0
        for e in range(membership.server_start[source], membership.server_start[source + 1]):
            k = membership.server_group[e]
            # by equal shares a group of all servers gets faster only with its largest task
            if scratch.group_time[k] == jct and not (
                equal
                and scratch.owner[k] != t
                and membership.group_start[k + 1] - membership.group_start[k] == servers
            ):
                inside += 1
        if inside < slowest:
            continue
        _lift(job, t, placement, equal, scratch)
        rest = 0.0
        for k in range(groups):
            rest = max(rest, scratch.group_time[k])
        if rest < best:
            present = job.efficiency[job.first + t, source]
            for j in range(servers):
                if job.efficiency[job.first + t, j] > present:
                    leq = job.load[job.first + t] / job.efficiency[job.first + t, j]
                    time = _joined_time(job, j, leq, best, equal, scratch)
                    if time < best:
                        best = max(time, rest)
                        best_task = t
                        best_server = j
                        if best == rest:
                            break
        _drop(job, t, placement, scratch)
    return best_task, best_server


@helper
def _move_that_harms_least(
    job: Job, jct: float, equal: bool, placement: Places, scratch: PlanScratch
) -> tuple[int, int]:
    """If no move helps: the first move to a more efficient server that lengthens the job's time least.

    The first move that leaves the time unchanged ends the search. Returns -1, -1 if every task is on its most
    efficient server.
    """
    best = math.inf
    best_task = -1
    best_server = -1
    for t in range(job.tasks):
        present = job.efficiency[job.first + t, placement[t]]
        lifted = False
        for j in range(job.efficiency.shape[1]):
            if job.efficiency[job.first + t, j] > present:
                if not lifted:
                    _lift(job, t, placement, equal, scratch)
                    lifted = True
                leq = job.load[job.first + t] / job.efficiency[job.first + t, j]
                time = max(jct, _joined_time(job, j, leq, best, equal, scratch))
                if time < best or best_task < 0:
                    best = time
                    best_task = t
                    best_server = j
                    if best == jct:
                        break
        if lifted:
            _drop(job, t, placement, scratch)
        if best_task >= 0 and best == jct:
            break
    return best_task, best_server


@pure_kernel
def _reduce(job: Job, equal: bool, placement: Places, scratch: PlanScratch) -> tuple[bool, float]:
    """Run REC; return True if the cap can be met, and the completion time then."""
    jct, energy = _evaluate_by(job, equal, placement, scratch)
    while not affords(energy, job.energy_cap):
        task, server = _move_that_helps(job, jct, equal, placement, scratch)
        if task < 0:
            task, server = _move_that_harms_least(job, jct, equal, placement, scratch)
        if task < 0:
            return False, math.inf
        placement[task] = server
        jct, energy = _evaluate_by(job, equal, placement, scratch)
    return True, jct


@helper
def reduce_energy(job: Job, equal: bool, placement: Places, scratch: PlanScratch) -> bool:
    """REC (Algorithm 2): move tasks to more efficient servers until the cap is kept; False if it cannot be.

    Each step makes the move with the smallest new completion time (by equal shares if ``equal``), ties the
    lowest task, then server. If ``equal``, ``scratch`` then does not hold the results of :func:`evaluate`.
    """
    done, _ = _reduce(job, equal, placement, scratch)
    return done


# Planners -------------------------------------------------------------------------------------


@helper
def _rescue(job: Job, placement: Places, scratch: PlanScratch) -> bool:
    """Make the first moves of the local search, to servers with resources; return True if the time is finite.

    Until the last of them has been made the job's time is infinite, and the tasks without resources are its
    longest. A task that cannot move now cannot move later: moves away from the most efficient servers leave
    less energy.
    """
    if not affords(least_energy(job.first, job.tasks, job.load, job.efficiency, job.power), job.energy_cap):
        return False
    most_efficient(job.first, job.tasks, job.efficiency, placement)
    jct, energy = evaluate(job, placement, scratch)
    t = 0
    while jct == math.inf and t < job.tasks:
        if server_time(placement[t], job.membership, scratch) == math.inf:
            server = _best_move(job, t, energy, placement, scratch)
            if server < 0:
                return False
            placement[t] = server
            jct, energy = evaluate(job, placement, scratch)
        t += 1
    return jct < math.inf


@pure_kernel
def tapra_fast(job: Job, placement: Places, scratch: PlanScratch) -> float:
    """TaPRA-fast: the local search from the most efficient servers.

    Args:
        job: the job to be planned.
        placement: [tasks] is written.
        scratch: holds the results of :func:`evaluate` afterwards, unless the plan has failed.

    Returns:
        The completion time [s]; inf if the plan has failed: the cap is below the least energy, or a task
        cannot be moved to a server with resources.
    """
    if not _rescue(job, placement, scratch):
        return math.inf
    jct, _ = local_search(job, placement, scratch)
    return jct


@helper
def _min_min_optra(job: Job, placement: Places, scratch: PlanScratch) -> None:
    """Min-Min before REC.

    The completion time so far is the larger of its last value and the time of the task placed, so that the
    smallest time of a task decides. Loads only grow: a task's smallest time so far is a lower bound of its
    present one.
    """
    for k in range(job.limits.shape[0]):
        scratch.count[k] = 0
        scratch.group_load[k] = 0.0
    for t in range(job.tasks):
        placement[t] = -1
        scratch.row_time[t] = -1.0
    for _ in range(job.tasks):
        start = -1
        for t in range(job.tasks):
            if placement[t] < 0 and (start < 0 or scratch.row_time[t] < scratch.row_time[start]):
                start = t
        best = math.inf
        found = -1
        for turn in range(
            -1, job.tasks
        ):  # the one with the smallest bound job.first: it rules out most others
            t = start if turn < 0 else turn
            if placement[t] >= 0 or (turn == start and turn >= 0):
                continue
            if found >= 0 and (scratch.row_time[t] > best or (scratch.row_time[t] == best and t > found)):
                continue
            least = math.inf
            where = 0
            for j in range(job.efficiency.shape[1]):
                leq = job.load[job.first + t] / job.efficiency[job.first + t, j]
                time = _joined_time(job, j, leq, least, False, scratch)
                if time < least:
                    least = time
                    where = j
            scratch.row_time[t] = least
            scratch.row_server[t] = where
            if found < 0 or least < best or (least == best and t < found):
                best = least
                found = t
        server = scratch.row_server[found]
        placement[found] = server
        leq = job.load[job.first + found] / job.efficiency[job.first + found, server]
        add_load(server, leq, job.membership, scratch.count, scratch.group_load)


@pure_kernel
def list_scheduling(job: Job, cpu: Floats, placement: Places, scratch: PlanScratch) -> float:
    """List scheduling on servers that have tasks already; not in the papers.

    The longest task is placed first (ties: the lowest). It goes to the server with resources and the least
    (Leq + WORK_SHARE w) / cpu (ties: the lowest), where w is the work of the tasks that the server has. So
    a task is placed where it is efficient and where few others use the vCPU that the plan leaves over: the
    planners of the paper see neither running tasks nor that these share all vCPU (DRC). REC keeps the
    energy cap; where it cannot, or a task then has no resources, the plan is that of :func:`tapra_fast`.

    Args:
        job: the job to be planned.
        cpu: [M] vCPU of the servers.
        placement: [tasks] is written.
        scratch: ``work`` [M] holds the work of the tasks on each server [vCPU s], and is overwritten.

    Returns:
        As :func:`tapra_fast`.
    """
    work = scratch.work
    for t in range(job.tasks):
        placement[t] = -1
    for _ in range(job.tasks):
        t = -1
        for i in range(job.tasks):
            if placement[i] < 0 and (t < 0 or job.load[job.first + i] > job.load[job.first + t]):
                t = i
        best = math.inf
        own = 0.0
        for j in range(cpu.shape[0]):
            leq = job.load[job.first + t] / job.efficiency[job.first + t, j]
            time = (leq + WORK_SHARE * work[j]) / cpu[j]
            if time < best and is_alive(j, job.membership, job.limits):
                best = time
                own = leq
                placement[t] = j
        if best == math.inf:
            return math.inf
        work[placement[t]] += own
    _, jct = _reduce(job, False, placement, scratch)
    return jct if jct < math.inf else tapra_fast(job, placement, scratch)


@helper
def _min_min_equal(job: Job, placement: Places, scratch: PlanScratch) -> None:
    """Min-Min before REC, by equal shares: least completion time so far, ties own time, task, server."""
    servers = job.efficiency.shape[1]
    for k in range(job.limits.shape[0]):
        scratch.count[k] = 0
        scratch.group_load[k] = 0.0
    for t in range(job.tasks):
        placement[t] = -1
    now = 0.0
    for _ in range(job.tasks):
        # what the job takes with one task more on a server, without that task, and the task's share
        for j in range(servers):
            share = math.inf
            slowest = now
            for e in range(job.membership.server_start[j], job.membership.server_start[j + 1]):
                k = job.membership.server_group[e]
                part = job.limits[k] / (scratch.count[k] + 1)
                share = min(share, part / job.membership.server_weight[e])
                if scratch.count[k] > 0:
                    slowest = max(slowest, _over(scratch.group_load[k], part))
            scratch.share[j] = share
            scratch.floor[j] = slowest
        best = math.inf
        best_own = math.inf
        found = -1
        server = -1
        for t in range(job.tasks):
            if placement[t] >= 0:
                continue
            for j in range(servers):
                own = _over(job.load[job.first + t] / job.efficiency[job.first + t, j], scratch.share[j])
                time = max(scratch.floor[j], own)
                if found < 0 or time < best or (time == best and own < best_own):
                    best = time
                    best_own = own
                    found = t
                    server = j
        placement[found] = server
        now = best
        leq = job.load[job.first + found] / job.efficiency[job.first + found, server]
        for e in range(job.membership.server_start[server], job.membership.server_start[server + 1]):
            k = job.membership.server_group[e]
            scratch.count[k] += 1
            weighted = job.membership.server_weight[e] * leq
            scratch.group_load[k] = max(scratch.group_load[k], weighted)


@pure_kernel
def _min_min_into(job: Job, equal: bool, placement: Places, scratch: PlanScratch) -> None:
    if equal:
        _min_min_equal(job, placement, scratch)
    else:
        _min_min_optra(job, placement, scratch)


@helper
def _below(state: np.uint64, bound: int) -> tuple[np.uint64, int]:
    """The next state and a whole number in [0, bound)."""
    state, u = uniform(state)
    return state, min(int(u * bound), bound - 1)


@helper
def _tournament(state: np.uint64, score: Floats, size: int) -> tuple[np.uint64, int]:
    """The next state and the better of two random members, ties the first drawn."""
    state, a = _below(state, size)
    state, b = _below(state, size)
    if score[b] < score[a]:
        a = b
    return state, a


@helper
def _rank(scores: Floats, size: int, order: Integers) -> None:
    """Order the members of a generation by score, ties by age."""
    for x in range(size):
        y = x
        while y > 0 and scores[x] < scores[order[y - 1]]:
            order[y] = order[y - 1]
            y -= 1
        order[y] = x


@helper
def _breed(
    state: np.uint64, job: Job, parents: Places, scores: Floats, size: int, child: Places
) -> np.uint64:
    """Make a child of two parents, crossed at one point, mostly, with a few tasks on random servers.

    Returns:
        The next state of the random numbers.
    """
    state, mother = _tournament(state, scores, size)
    state, father = _tournament(state, scores, size)
    state, u = uniform(state)
    point = job.tasks
    if u < CROSSOVER and job.tasks > 1:
        state, point = _below(state, job.tasks - 1)
        point += 1
    for t in range(job.tasks):
        child[t] = parents[mother if t < point else father, t]
    for t in range(job.tasks):
        state, u = uniform(state)
        if u < MUTATION:
            state, child[t] = _below(state, job.efficiency.shape[1])
    return state


@helper
def _anneal(
    state: np.uint64,
    job: Job,
    equal: bool,
    temperature: float,
    score: float,
    child: Places,
    other: Places,
    scratch: PlanScratch,
) -> tuple[np.uint64, float]:
    """Improve a child by a few steps of simulated annealing; return the next state and the child's score.

    Args:
        state: state of the random numbers.
        job: the job to be planned.
        equal: evaluate by equal shares.
        temperature: [s].
        score: score of the child.
        child: [tasks] changed.
        other: [tasks] work space.
        scratch: work space.
    """
    for _ in range(ANNEALING):
        for t in range(job.tasks):
            other[t] = child[t]
        state, task = _below(state, job.tasks)
        state, other[task] = _below(state, job.efficiency.shape[1])
        _, changed = _reduce(job, equal, other, scratch)
        accepted = changed <= score
        if not accepted and changed < math.inf and temperature > 0.0:
            state, u = uniform(state)
            accepted = u < math.exp((score - changed) / temperature)
        if accepted:
            score = changed
            for t in range(job.tasks):
                child[t] = other[t]
    return state, score


@pure_kernel
def _evolve(
    job: Job,
    equal: bool,
    anneal: bool,
    size: int,
    generations: int,
    seed: np.uint64,
    population: Population,
    placement: Places,
    scratch: PlanScratch,
) -> bool:
    """Find the best placement by a genetic algorithm; return False if the cap is below the least energy.

    Parents and children take turns in the two generations of the population. Every placement is the result
    of REC, and its score the completion time, inf where REC has failed.
    """
    if not affords(least_energy(job.first, job.tasks, job.load, job.efficiency, job.power), job.energy_cap):
        return False
    state = seed
    parents, scores = population.member, population.score
    children, child_scores = population.child, population.child_score
    best = math.inf
    for x in range(size):
        member = parents[x]
        if x == 0 and not anneal:
            _min_min_into(job, equal, member, scratch)
        else:
            for t in range(job.tasks):
                state, member[t] = _below(state, job.efficiency.shape[1])
        _, score = _reduce(job, equal, member, scratch)
        scores[x] = score
        best = min(best, score)
    temperature = WARM * best if best < math.inf else 0.0
    order = population.order
    for _ in range(generations):
        _rank(scores, size, order)
        for x in range(size):
            child = children[x]
            if x < ELITE:
                for t in range(job.tasks):
                    child[t] = parents[order[x], t]
                child_scores[x] = scores[order[x]]
                continue
            state = _breed(state, job, parents, scores, size, child)
            _, score = _reduce(job, equal, child, scratch)
            if anneal:
                state, score = _anneal(
                    state, job, equal, temperature, score, child, population.trial, scratch
                )
            child_scores[x] = score
        parents, children = children, parents
        scores, child_scores = child_scores, scores
        temperature *= COOLING
    chosen = 0
    for x in range(size):
        if scores[x] < scores[chosen]:
            chosen = x
    for t in range(job.tasks):
        placement[t] = parents[chosen, t]
    return True


@pure_kernel
def gsa(job: Job, seed: np.uint64, population: Population, placement: Places, scratch: PlanScratch) -> float:
    """GSA with the usual numbers of members and generations; the result is as that of :func:`tapra_fast`.

    Args:
        job: the job to be planned.
        seed: seed of the random numbers.
        population: work space made for MEMBERS.
        placement: [tasks] is written.
        scratch: work space.
    """
    if not _evolve(job, False, True, MEMBERS, GENERATIONS, seed, population, placement, scratch):
        return math.inf
    jct, energy = evaluate(job, placement, scratch)
    return jct if affords(energy, job.energy_cap) else math.inf


# From Python ----------------------------------------------------------------------------------


@helper
def _size_tasks(
    job: Job, equal: bool, jct: float, placement: Places, vcpu: Floats, scratch: PlanScratch
) -> float:
    """Set the vCPU of the tasks of a plan that has not failed; return the completion time."""
    if jct < math.inf and equal:
        return equal_share_vcpu(job, placement, scratch, vcpu)
    if jct < math.inf:
        optra_vcpu(job, placement, scratch, vcpu)
    return jct


@helper
def _result(job: Job, equal: bool, placement: Places, vcpu: Floats, scratch: PlanScratch) -> float:
    """Set the vCPU of the tasks if the placement is within the cap; return the completion time, else inf."""
    jct, energy = evaluate(job, placement, scratch)
    if not affords(energy, job.energy_cap):
        return math.inf
    return _size_tasks(job, equal, jct, placement, vcpu, scratch)


@pure_kernel
def evaluate_plan(
    job: Job, equal: bool, placement: Places, vcpu: Floats, scratch: PlanScratch
) -> tuple[float, float]:
    """Set the vCPU [tasks] of a placement by Eq. 16 or equal shares; return the time [s] and energy."""
    jct, energy = evaluate(job, placement, scratch)
    if equal:
        jct = equal_share_vcpu(job, placement, scratch, vcpu)
    else:
        optra_vcpu(job, placement, scratch, vcpu)
    return jct, energy


@pure_kernel
def plan_tapra_fast(job: Job, placement: Places, vcpu: Floats, scratch: PlanScratch) -> float:
    """:func:`tapra_fast` with the vCPU of the tasks."""
    jct = tapra_fast(job, placement, scratch)
    return _size_tasks(job, False, jct, placement, vcpu, scratch)


@pure_kernel
def plan_finish_from(job: Job, placement: Places, vcpu: Floats, scratch: PlanScratch) -> float:
    """Phases II and III of TaPRA: REC, then local search; return the completion time, inf if that fails."""
    jct = math.inf
    if reduce_energy(job, False, placement, scratch):
        jct, energy = local_search(job, placement, scratch)
        if not affords(energy, job.energy_cap):
            jct = math.inf
    return _size_tasks(job, False, jct, placement, vcpu, scratch)


@pure_kernel
def plan_min_min(job: Job, equal: bool, placement: Places, vcpu: Floats, scratch: PlanScratch) -> float:
    """Min-Min, then REC; return the completion time, by equal shares if ``equal``, inf if that fails.

    Each step places the task with the smallest completion time so far (by equal shares if ``equal``), ties
    the smallest time of the task itself, task, server.
    """
    _min_min_into(job, equal, placement, scratch)
    if not reduce_energy(job, equal, placement, scratch):
        return math.inf
    return _result(job, equal, placement, vcpu, scratch)


@pure_kernel
def plan_genetic(
    job: Job,
    equal: bool,
    anneal: bool,
    size: int,
    generations: int,
    seed: np.uint64,
    population: Population,
    placement: Places,
    vcpu: Floats,
    scratch: PlanScratch,
) -> float:
    """MM-GA, or GSA if ``anneal``.

    Tournaments of 2, one-point crossover with probability 0.8, every task reset with probability 0.02, the
    best 2 survive; REC on every placement. MM-GA starts from Min-Min and random placements. GSA starts from
    random ones and adds 5 steps of simulated annealing to every child: a random task to a random server,
    accepted if no worse or with probability exp(-difference / temperature); the temperature starts at a tenth
    of the best completion time, and falls by 5% in each generation.

    Args:
        job: the job to be planned.
        equal: evaluate and allocate by equal shares.
        anneal: GSA.
        size: size of the population, at least 2 (the paper gives none: MEMBERS).
        generations: number of generations (the paper gives none: GENERATIONS).
        seed: seed of the random numbers.
        population: work space made for ``size``.
        placement: [tasks] is written.
        vcpu: [tasks] is written.
        scratch: work space.

    Returns:
        The completion time [s] with the vCPU; inf if the plan has failed.
    """
    if not _evolve(job, equal, anneal, size, generations, seed, population, placement, scratch):
        return math.inf
    return _result(job, equal, placement, vcpu, scratch)
