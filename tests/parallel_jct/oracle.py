"""A slow, plain second implementation of SingleJob and ParallelJCT (test oracle).

Written from the specification alone, with tuples, numbers and loops, to be compared with the
compiled implementation. Nothing is incremental: whenever a completion time or an energy is
needed, it is computed anew from the whole placement.

Numbers may be floats or `fractions.Fraction`: with fractions the arithmetic is exact (but for the
linear programs, which are solved in floats), so that ties are true ties and instants that coincide
do so exactly. `random_instance(..., dyadic=True)` and `random_workload(..., dyadic=True)` draw
numbers whose sums are exact in floats too.

What is settled here, in one place:

* Sums run over tasks in index order, starting from 0 (no `sum`: since Python 3.12 it compensates).
* E <= E_MAX means E <= E_MAX * (1 + 1e-12). Ties of REC and Min-Min are equal numbers, without a
  tolerance; local search uses the tolerance 1e-9 of the specification.
* Online, a server whose unreserved capacity is at most 1e-9 of its capacity has none left (else
  rounding would leave crumbs of capacity, and plans with absurd but finite completion times).
* Online, a task that would complete within 1e-9 * max(1, t) of another event at t completes at t.
* A planning round has a number for every job that waits then. At a tick it is the number of earlier
  ticks at which the job waited (0, 1, ...); between ticks it counts down over the job's rounds
  between ticks (-1, -2, ...). Ticks count whether or not the scheduler acts at them. The hash that
  makes the draws is the caller's (`draw(job, number)`).
* FCFS, SLF and LLF with MAR: the test is made before each job and its failure ends the pass.

The genetic planners use random numbers in an order that the specification does not fix, so their
results can be compared by their properties only (feasible, not worse than Min-Min, same for the
same seed here); the seed stands for the whole stream of random numbers of one call.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

Number = float | Fraction
Placement = tuple[int, ...]
"""Server of each task; -1 is a task not placed yet (partial schedules only)."""
Group = tuple[int, ...]
"""Servers of one resource-availability constraint."""

ENERGY_SLACK = 1e-12
STRICT = 1e-9
INSTANT = 1e-9
CRUMB = 1e-9
TENTH = Fraction(1, 10)

SCHEDULERS = ("ontapra", "fcfs", "slf", "llf")


def total(values: Iterable[Number]) -> Number:
    """Sum from left to right."""
    result: Number = 0
    for value in values:
        result = result + value
    return result


# --------------------------------------------------------------------------------------------
# Constraint groups
# --------------------------------------------------------------------------------------------


class Limit(NamedTuple):
    """A constraint group: a job may use at most `share` of what is available on its servers.

    A vCPU on a server counts as much as `weights` say, in the order of `servers`; without them 1.
    """

    kind: str
    servers: Group
    share: Number
    weights: tuple[Number, ...] = ()

    def weight(self, j: int) -> Number:
        """A_jk: what a vCPU on server j counts in the group."""
        return weight_in(self.servers, self.weights, j)


def weight_in(servers: Group, weights: tuple[Number, ...], j: int) -> Number:
    """The weight of a server in a group: 0 outside, 1 without weights."""
    if j not in servers:
        return 0
    return weights[servers.index(j)] if weights else 1


def fat_tree(
    arity: int,
    rack: Number = 0.3,
    pod: Number = 0.2,
    data_centre: Number = 0.2,
    server_caps: bool = True,
) -> tuple[Limit, ...]:
    """Limits of a fat tree: servers (unless left out, as in the paper), racks, pods, data centre.

    Servers are numbered pod by pod and rack by rack, so racks and pods are runs of numbers.
    """
    if arity < 2 or arity % 2:
        raise ValueError(f"arity {arity} is not even and positive")
    per_rack = arity // 2
    per_pod = per_rack * per_rack
    count = per_pod * arity
    limits = [Limit("server", (j,), 1) for j in range(count)] if server_caps else []
    for kind, width, share in (("rack", per_rack, rack), ("pod", per_pod, pod), ("dc", count, data_centre)):
        for first in range(0, count, width):
            limits.append(Limit(kind, tuple(range(first, first + width)), share))
    return tuple(limits)


def groups_from_matrix(matrix: Sequence[Sequence[Number]]) -> tuple[Group, ...]:
    """Groups from a matrix with one row per group and one column per server: where it is not 0."""
    return tuple(tuple(j for j, member in enumerate(row) if member) for row in matrix)


def weights_from_matrix(matrix: Sequence[Sequence[Number]]) -> tuple[tuple[Number, ...], ...]:
    """The weights of the same groups."""
    return tuple(tuple(member for member in row if member) for row in matrix)


def limits_now(limits: Sequence[Limit], available: Sequence[Number]) -> tuple[Number, ...]:
    """B_k: the share of what is available in each group, by weight."""
    return tuple(
        limit.share * total(limit.weight(j) * available[j] for j in limit.servers) for limit in limits
    )


# --------------------------------------------------------------------------------------------
# One job
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SingleJob:
    """One job to place and size.

    load: vCPU-seconds of each task at efficiency 1.
    efficiency: lambda[i][j] in (0, 1].
    groups: servers of each constraint group (each server's own capacity is a group like the others).
    bounds: B_k, the vCPU that the job may use in group k.
    energy_cap: E_MAX.
    power: alpha_VM of each task (Eq. 7); without it 1.
    weights: A_jk of the servers of each group, in the order of the group; without them 1.
    """

    load: tuple[Number, ...]
    efficiency: tuple[tuple[Number, ...], ...]
    groups: tuple[Group, ...]
    bounds: tuple[Number, ...]
    energy_cap: Number = math.inf
    power: tuple[Number, ...] = ()
    weights: tuple[tuple[Number, ...], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the model does not cover."""
        if not self.load or any(not load > 0 for load in self.load):
            raise ValueError("loads must be positive, and at least one")
        if len(self.efficiency) != len(self.load) or len({len(row) for row in self.efficiency}) != 1:
            raise ValueError("one efficiency row per task, all equally long")
        if self.power and (len(self.power) != len(self.load) or any(not p > 0 for p in self.power)):
            raise ValueError("one power > 0 per task, or none")
        if any(not 0 < value <= 1 for row in self.efficiency for value in row):
            raise ValueError("efficiencies must lie in (0, 1]")
        if len(self.groups) != len(self.bounds) or any(bound < 0 for bound in self.bounds):
            raise ValueError("one bound >= 0 per group")
        if {j for group in self.groups for j in group} != set(range(self.servers)):
            raise ValueError("every server must be in a group, and groups hold servers only")
        if self.weights and [len(row) for row in self.weights] != [len(group) for group in self.groups]:
            raise ValueError("one weight per server of every group, or none")
        if any(not weight > 0 for row in self.weights for weight in row):
            raise ValueError("weights must be positive")

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.load)

    @property
    def servers(self) -> int:
        """Number of servers."""
        return len(self.efficiency[0])

    def leq(self, i: int, j: int) -> Number:
        """Equivalent load of task i on server j."""
        return self.load[i] / self.efficiency[i][j]

    def alpha(self, i: int) -> Number:
        """Power of task i per vCPU."""
        return self.power[i] if self.power else 1

    def own_energy(self, i: int, j: int) -> Number:
        """Energy of task i on server j (Eq. 8)."""
        return self.alpha(i) * self.leq(i, j)

    def weight(self, j: int, k: int) -> Number:
        """A_jk: what a vCPU on server j counts in group k."""
        return weight_in(self.groups[k], self.weights[k] if self.weights else (), j)

    def used(self, placement: Placement, vcpus: Sequence[Number], k: int) -> Number:
        """What the tasks' vCPU count in group k (the left side of Eq. 4)."""
        return total(self.weight(j, k) * c for c, j in zip(vcpus, placement, strict=True) if j >= 0)

    def matrix(self) -> list[list[Number]]:
        """A: one row per group, one column per server."""
        return [[self.weight(j, k) for j in range(self.servers)] for k in range(len(self.groups))]

    def groups_of(self, j: int) -> list[int]:
        """Indices of the groups that server j is in."""
        return [k for k, group in enumerate(self.groups) if j in group]

    def energy(self, placement: Placement) -> Number:
        """Energy of the tasks placed."""
        return total(self.own_energy(i, j) for i, j in enumerate(placement) if j >= 0)

    def least_energy(self) -> Number:
        """E_min: every task on its most efficient server."""
        return total(self.alpha(i) * (self.load[i] / max(self.efficiency[i])) for i in range(len(self.load)))

    def affords(self, energy: Number) -> bool:
        """Whether an energy is within the cap."""
        return within(energy, self.energy_cap)


def within(energy: Number, cap: Number) -> bool:
    """Whether an energy is within a cap, up to rounding."""
    return energy <= cap * (1 + ENERGY_SLACK)


def least_energy(load: Sequence[Number], efficiency: Sequence[Sequence[Number]]) -> Number:
    """E_min of a job."""
    return total(load[i] / max(efficiency[i]) for i in range(len(load)))


class Evaluation(NamedTuple):
    """What a placement comes to: execution times, vCPU, completion time of the job, energy.

    Tasks not placed have execution time 0 and no vCPU.
    """

    times: tuple[Number, ...]
    vcpus: tuple[Number, ...]
    jct: Number
    energy: Number


Evaluate = Callable[[SingleJob, Placement], Evaluation]


def group_times(instance: SingleJob, placement: Placement) -> tuple[Number, ...]:
    """T_k: weighted equivalent load in group k over B_k; 0 if unloaded, infinite if loaded with B_k = 0."""
    result: list[Number] = []
    for k, (group, bound) in enumerate(zip(instance.groups, instance.bounds, strict=True)):
        placed = [instance.weight(j, k) * instance.leq(i, j) for i, j in enumerate(placement) if j in group]
        if not placed:
            result.append(0)
        else:
            result.append(total(placed) / bound if bound > 0 else math.inf)
    return tuple(result)


def optra(instance: SingleJob, placement: Placement) -> Evaluation:
    """Optimal allocation for a placement in closed form (Eq. 16)."""
    per_group = group_times(instance, placement)
    times: list[Number] = []
    vcpus: list[Number] = []
    for i, j in enumerate(placement):
        if j < 0:
            times.append(0)
            vcpus.append(0)
            continue
        time = max(per_group[k] for k in instance.groups_of(j))
        times.append(time)
        vcpus.append(instance.leq(i, j) / time)
    return Evaluation(tuple(times), tuple(vcpus), max(times), instance.energy(placement))


def equal_share(instance: SingleJob, placement: Placement) -> Evaluation:
    """Allocation that splits every group's bound equally among the tasks in the group.

    A task's part of the bound is used up by as many vCPU as count that much on its server.
    """
    times: list[Number] = []
    vcpus: list[Number] = []
    for i, j in enumerate(placement):
        if j < 0:
            times.append(0)
            vcpus.append(0)
            continue
        shares = []
        for k in instance.groups_of(j):
            count = sum(1 for other in placement if other in instance.groups[k])
            shares.append(instance.bounds[k] / count / instance.weight(j, k))
        share = min(shares)
        times.append(instance.leq(i, j) / share if share > 0 else math.inf)
        vcpus.append(share)
    return Evaluation(tuple(times), tuple(vcpus), max(times), instance.energy(placement))


def optra_lp(instance: SingleJob, placement: Placement) -> float:
    """The completion time of `optra` from a linear program.

    Largest r = 1 / JCT such that vCPUs c_i >= Leq_i * r exist within the bounds of all groups.
    """
    n = instance.tasks
    leq = [float(instance.leq(i, placement[i])) for i in range(n)]
    scale = max(leq)
    rows, right = [], []
    for i in range(n):
        row = [0.0] * (n + 1)
        row[i] = -1.0
        row[n] = leq[i] / scale
        rows.append(row)
        right.append(0.0)
    for k, bound in enumerate(instance.bounds):
        rows.append([float(instance.weight(placement[i], k)) for i in range(n)] + [0.0])
        right.append(float(bound))
    result = linprog([0.0] * n + [-1.0], A_ub=rows, b_ub=right, bounds=[(0, None)] * (n + 1), method="highs")
    if result.status != 0:
        raise ArithmeticError(result.message)
    rate = float(result.x[n])
    return scale / rate if rate > 0 else math.inf


# Bounds ---------------------------------------------------------------------------------------


class Relaxation(NamedTuple):
    """Optimum of SJS-Relax-LP and the fractions l_ij / load_i of one optimal solution."""

    bound: float
    fractions: tuple[tuple[float, ...], ...]


def relaxation(instance: SingleJob) -> Relaxation | None:
    """Solve SJS-Relax-LP, or None if it is infeasible.

    Its optimum is a lower bound on the completion time. Only the optimum can be compared with
    another solver's: the fractions are seldom unique.
    """
    n, m = instance.tasks, instance.servers
    leq = np.array([[float(instance.leq(i, j)) for j in range(m)] for i in range(n)])
    rows, right = [], []
    for k, (group, bound) in enumerate(zip(instance.groups, instance.bounds, strict=True)):
        row = np.zeros((n, m))
        for j in group:
            row[:, j] = float(instance.weight(j, k)) * leq[:, j]
        scale = leq.sum()
        rows.append(np.append(row.ravel() / scale, -float(bound) / scale))
        right.append(0.0)
    if instance.energy_cap < math.inf:
        alpha = np.array([[float(instance.alpha(i))] for i in range(n)])
        rows.append(np.append((alpha * leq).ravel() / float(instance.energy_cap), 0.0))
        right.append(1.0)
    whole = np.zeros((n, n * m + 1))
    for i in range(n):
        whole[i, i * m : (i + 1) * m] = 1.0
    cost = np.zeros(n * m + 1)
    cost[-1] = 1.0
    result = linprog(
        cost,
        A_ub=np.array(rows),
        b_ub=right,
        A_eq=whole,
        b_eq=np.ones(n),
        bounds=[(0, None)] * (n * m + 1),
        method="highs",
    )
    if result.status == 2:
        return None
    if result.status != 0:
        raise ArithmeticError(result.message)
    fractions = result.x[:-1].reshape(n, m)
    return Relaxation(float(result.fun), tuple(tuple(float(f) for f in row) for row in fractions))


def lower_bound(instance: SingleJob) -> float:
    """Lower bound on the completion time; infinite if nothing is feasible."""
    relaxed = relaxation(instance)
    return math.inf if relaxed is None else relaxed.bound


def brute_force(instance: SingleJob, evaluate: Evaluate = optra) -> tuple[Placement, Evaluation] | None:
    """The best of all placements within the energy cap; None if none has a finite time."""
    best: tuple[Placement, Evaluation] | None = None
    for placement in itertools.product(range(instance.servers), repeat=instance.tasks):
        if not instance.affords(instance.energy(placement)):
            continue
        evaluation = evaluate(instance, placement)
        if evaluation.jct < (math.inf if best is None else best[1].jct):
            best = placement, evaluation
    return best


# Improvement of a placement -------------------------------------------------------------------


def moved(placement: Placement, i: int, j: int) -> Placement:
    """The placement with task i on server j."""
    return (*placement[:i], j, *placement[i + 1 :])


def rec(instance: SingleJob, placement: Placement, evaluate: Evaluate = optra) -> Placement | None:
    """Reduce the energy until it is within the cap; None if no move is left before.

    Among the moves to a more efficient server: the smallest new completion time, then the lower
    task, then the lower server.
    """
    while not instance.affords(instance.energy(placement)):
        candidates = []
        for i in range(instance.tasks):
            for j in range(instance.servers):
                if instance.efficiency[i][j] > instance.efficiency[i][placement[i]]:
                    candidates.append((evaluate(instance, moved(placement, i, j)).jct, i, j))
        if not candidates:
            return None
        _, i, j = min(candidates)
        placement = moved(placement, i, j)
    return placement


def is_valid_move(instance: SingleJob, placement: Placement, i: int, j: int) -> bool:
    """Whether moving task i to server j keeps the cap and makes its time smaller and finite."""
    new = moved(placement, i, j)
    time = optra(instance, new).times[i]
    return (
        instance.affords(instance.energy(new))
        and time < math.inf
        and time < optra(instance, placement).times[i] * (1 - STRICT)
    )


def longest_tasks(evaluation: Evaluation) -> list[int]:
    """T_max: the tasks whose time is the completion time of the job, up to rounding."""
    return [i for i, time in enumerate(evaluation.times) if time >= evaluation.jct * (1 - STRICT)]


def local_search_step(instance: SingleJob, placement: Placement) -> Placement | None:
    """One move of the local search, or None if no longest task has a valid one."""
    for i in longest_tasks(optra(instance, placement)):
        valid = [
            (optra(instance, moved(placement, i, j)).times[i], j)
            for j in range(instance.servers)
            if is_valid_move(instance, placement, i, j)
        ]
        if valid:
            return moved(placement, i, min(valid)[1])
    return None


def local_search_path(instance: SingleJob, placement: Placement) -> list[Placement]:
    """All placements of the local search, the initial one first."""
    path = [placement]
    while True:
        after = local_search_step(instance, path[-1])
        if after is None:
            return path
        path.append(after)


def local_search(instance: SingleJob, placement: Placement) -> Placement:
    """The placement the local search ends with."""
    return local_search_path(instance, placement)[-1]


# Planners -------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """A placement with its allocation: that of Eq. 16, or by equal shares for a planner by these."""

    placement: Placement
    evaluation: Evaluation


Planner = Callable[[SingleJob], Plan | None]


def _finish(instance: SingleJob, placement: Placement | None, evaluate: Evaluate = optra) -> Plan | None:
    """A plan, unless its completion time is infinite or the energy cap could not be met."""
    if placement is None:
        return None
    evaluation = evaluate(instance, placement)
    if evaluation.jct == math.inf or not instance.affords(evaluation.energy):
        return None
    return Plan(placement, evaluation)


def tapra_from(instance: SingleJob, fractions: Sequence[Sequence[float]]) -> Plan | None:
    """Phases II and III of TaPRA from given fractions: largest part (lowest server), REC, search."""
    start = tuple(max(range(instance.servers), key=lambda j: (row[j], -j)) for row in fractions)
    placement = rec(instance, start)
    return None if placement is None else _finish(instance, local_search(instance, placement))


def tapra(instance: SingleJob) -> Plan | None:
    """TaPRA; its placement depends on which optimal solution of the relaxation is found."""
    relaxed = relaxation(instance)
    return None if relaxed is None else tapra_from(instance, relaxed.fractions)


def most_efficient(instance: SingleJob) -> Placement:
    """Every task on its most efficient server, ties the lowest server."""
    return tuple(max(range(instance.servers), key=lambda j: (row[j], -j)) for row in instance.efficiency)


def tapra_fast(instance: SingleJob) -> Plan | None:
    """TaPRA-fast: local search from the placement of least energy."""
    start = most_efficient(instance)
    if not instance.affords(instance.energy(start)):
        return None
    return _finish(instance, local_search(instance, start))


def min_min_placement(instance: SingleJob, evaluate: Evaluate = optra) -> Placement:
    """Min-Min before REC: smallest completion time so far, then own time, task, server."""
    placement: Placement = (-1,) * instance.tasks
    while -1 in placement:
        candidates = []
        for i in range(instance.tasks):
            if placement[i] >= 0:
                continue
            for j in range(instance.servers):
                evaluation = evaluate(instance, moved(placement, i, j))
                candidates.append((evaluation.jct, evaluation.times[i], i, j))
        _, _, i, j = min(candidates)
        placement = moved(placement, i, j)
    return placement


def min_min(instance: SingleJob, evaluate: Evaluate = optra) -> Plan | None:
    """Min-Min, then REC."""
    return _finish(instance, rec(instance, min_min_placement(instance, evaluate), evaluate), evaluate)


def list_scheduling(
    instance: SingleJob, capacity: Sequence[Number], work: Sequence[Number], share: Number
) -> Plan | None:
    """Longest task first, to the least time with a share of the server's work; or else TaPRA-fast."""
    busy = list(work)
    placement: Placement = (-1,) * instance.tasks
    alive = [
        j
        for j in range(instance.servers)
        if all(bound > 0 for group, bound in zip(instance.groups, instance.bounds, strict=True) if j in group)
    ]
    if not alive:
        return None
    for i in sorted(range(instance.tasks), key=lambda i: -instance.load[i]):
        leq = {j: instance.load[i] / instance.efficiency[i][j] for j in alive}
        j = min(alive, key=lambda j: (leq[j] + share * busy[j]) / capacity[j])
        placement = moved(placement, i, j)
        busy[j] += leq[j]
    return _finish(instance, rec(instance, placement)) or tapra_fast(instance)


def _fitness(instance: SingleJob, placement: Placement | None, evaluate: Evaluate) -> Number:
    return math.inf if placement is None else evaluate(instance, placement).jct


def _genetic(
    instance: SingleJob,
    rng: random.Random,
    population: list[Placement],
    generations: int,
    evaluate: Evaluate,
    anneal: bool,
) -> Plan | None:
    """The loop of both genetic planners: tournament 2, crossover .8, mutation .02, elite 2.

    Random numbers, per child: four for two tournaments (best of two uniform picks), one for
    whether to cross, one for the point, then per task one for whether to reset (and one server);
    per annealing step a task, a server, and one number if the step is worse.
    """
    if not instance.affords(instance.least_energy()):
        return None  # REC fails exactly then
    scored: list[tuple[Number, Placement]] = []
    for member in population:
        repaired = rec(instance, member, evaluate)
        assert repaired is not None
        scored.append((_fitness(instance, repaired, evaluate), repaired))
    best = min(score for score, _ in scored)
    temperature = 0.1 * float(best) if best < math.inf else 0.0

    def pick() -> Placement:
        return min((rng.choice(scored) for _ in range(2)), key=lambda pair: pair[0])[1]

    for _ in range(generations):
        children = sorted(scored, key=lambda pair: pair[0])[:2]  # stable: ties by age
        while len(children) < len(scored):
            first, second = pick(), pick()
            if rng.random() < 0.8 and instance.tasks > 1:
                point = rng.randrange(1, instance.tasks)
                first = first[:point] + second[point:]
            child = tuple(rng.randrange(instance.servers) if rng.random() < 0.02 else j for j in first)
            repaired = rec(instance, child, evaluate)
            assert repaired is not None
            score = _fitness(instance, repaired, evaluate)
            for _ in range(5 if anneal else 0):
                i, j = rng.randrange(instance.tasks), rng.randrange(instance.servers)
                other = rec(instance, moved(repaired, i, j), evaluate)
                assert other is not None
                changed = _fitness(instance, other, evaluate)
                accepted = changed <= score
                if not accepted and changed < math.inf and temperature > 0:
                    accepted = rng.random() < math.exp(-float(changed - score) / temperature)
                if accepted:
                    repaired, score = other, changed
            children.append((score, repaired))
        scored = children
        temperature *= 0.95
    return _finish(instance, min(scored, key=lambda pair: pair[0])[1], evaluate)


def random_placement(instance: SingleJob, rng: random.Random) -> Placement:
    """Every task on a random server."""
    return tuple(rng.randrange(instance.servers) for _ in range(instance.tasks))


def mm_ga(
    instance: SingleJob,
    rng: random.Random,
    size: int = 30,
    generations: int = 60,
    evaluate: Evaluate = optra,
) -> Plan | None:
    """MM-GA: a genetic algorithm with Min-Min in its random initial population."""
    population = [min_min_placement(instance, evaluate)]
    population += [random_placement(instance, rng) for _ in range(size - 1)]
    return _genetic(instance, rng, population, generations, evaluate, anneal=False)


def gsa(
    instance: SingleJob,
    rng: random.Random,
    size: int = 30,
    generations: int = 60,
    evaluate: Evaluate = optra,
) -> Plan | None:
    """GSA: the same from a random population, each child improved by 5 steps of annealing."""
    population = [random_placement(instance, rng) for _ in range(size)]
    return _genetic(instance, rng, population, generations, evaluate, anneal=True)


PLANNERS: dict[str, Planner] = {"tapra": tapra, "tapra-fast": tapra_fast, "min-min": min_min}
"""The planners that use no random numbers."""


# Masks of the environment ---------------------------------------------------------------------


def place_mask(instance: SingleJob, placement: Placement, i: int) -> list[bool]:
    """Servers legal for task i: no group without resources, and the rest stays affordable."""
    rest = [t for t in range(instance.tasks) if placement[t] < 0 and t != i]
    least = total(instance.alpha(t) * (instance.load[t] / max(instance.efficiency[t])) for t in rest)
    placed = instance.energy(placement)
    return [
        all(instance.bounds[k] > 0 for k in instance.groups_of(j))
        and instance.affords(placed + instance.own_energy(i, j) + least)
        for j in range(instance.servers)
    ]


def search_mask(instance: SingleJob, placement: Placement) -> list[list[bool]]:
    """Moves legal in the search view, per task and server (stopping is always legal)."""
    return [
        [is_valid_move(instance, placement, i, j) for j in range(instance.servers)]
        for i in range(instance.tasks)
    ]


# --------------------------------------------------------------------------------------------
# Jobs over time
# --------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """A job that arrives at some instant."""

    arrival: Number
    load: tuple[Number, ...]
    efficiency: tuple[tuple[Number, ...], ...]
    power: tuple[Number, ...] = ()  # alpha_VM of each task; without it 1

    @property
    def total_load(self) -> Number:
        """Sum of the loads."""
        return total(self.load)

    @property
    def ideal_energy(self) -> Number:
        """Energy at efficiency 1, of which E_MAX is a multiple."""
        return total(alpha * load for alpha, load in zip(self.alphas, self.load, strict=True))

    @property
    def least_energy(self) -> Number:
        """E_min."""
        rows = zip(self.alphas, self.load, self.efficiency, strict=True)
        return total(alpha * (load / max(row)) for alpha, load, row in rows)

    @property
    def alphas(self) -> tuple[Number, ...]:
        """Power of each task per vCPU."""
        return self.power or (1,) * len(self.load)


@dataclass(frozen=True)
class Workload:
    """Jobs, servers and limits; `energy_cap_ratio` replaces the draws if given."""

    jobs: tuple[Job, ...]
    capacity: tuple[Number, ...]
    limits: tuple[Limit, ...]
    energy_cap_ratio: Number | None = None


class Launch(NamedTuple):
    """A job put to work, with the instance that was planned."""

    time: Number
    job: int
    available: tuple[Number, ...]
    instance: SingleJob
    plan: Plan


@dataclass
class Running:
    """A task at work."""

    job: int
    task: int
    server: int
    leq: Number
    remaining: Number
    base: Number
    extra: Number = 0

    @property
    def speed(self) -> Number:
        """The vCPU it has now."""
        return self.base + self.extra


class Share(NamedTuple):
    """What a running task has between two events."""

    job: int
    task: int
    server: int
    leq: Number
    base: Number
    extra: Number


class Interval(NamedTuple):
    """The time between two events: what runs, and the jobs in the system."""

    begin: Number
    end: Number
    shares: tuple[Share, ...]
    in_system: int


@dataclass
class Outcome:
    """What happened in a run.

    launch, finish: instants per job, None if it never was launched or finished.
    task_finish: per job and task.
    charged: time from arrival to the end of the job, or to the end of the run; 0 for jobs that
        arrive after it.
    committed: energy of each job's placement (0 if never launched); consumed: vCPU-seconds used.
    failures: number of (job, round) pairs in which planning failed; granted: jobs planned with
        their E_min because the cap was below it.
    """

    launch: list[Number | None]
    finish: list[Number | None]
    task_finish: list[list[Number | None]]
    charged: list[Number] = field(default_factory=list)
    committed: list[Number] = field(default_factory=list)
    consumed: list[Number] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    failures: int = 0
    granted: set[int] = field(default_factory=set)
    end: Number = 0

    @property
    def average_jct(self) -> Number:
        """Average over all jobs of the time in the system."""
        return total(self.charged) / len(self.charged)

    @property
    def energy(self) -> Number:
        """Energy committed."""
        return total(self.committed)


def no_extra(job: int, round_number: int) -> float:
    """The draws if nothing else is given: U = 0.5 always."""
    return 0.5


def residual_shares(capacity: Number, base: Sequence[Number], leq: Sequence[Number]) -> list[Number]:
    """DRC on one server: what is left of its capacity, in proportion to the equivalent loads."""
    left = capacity - total(base)
    if not left > 0:
        return [0] * len(base)
    whole = total(leq)
    return [left * part / whole for part in leq]


def _same_instant(a: Number, b: Number) -> bool:
    return abs(a - b) <= INSTANT * max(1, abs(b))


class _Simulation:
    """The state of one online run."""

    def __init__(
        self,
        workload: Workload,
        scheduler: str,
        planner: Planner,
        drc: bool,
        mar: bool,
        max_percent: Number,
        delta_t: Number,
        draw: Callable[[int, int], float],
    ) -> None:
        self.workload = workload
        self.scheduler = scheduler
        self.planner = planner
        self.drc = drc
        self.mar = mar
        self.max_percent = max_percent
        self.delta_t = delta_t
        self.draw = draw
        n = len(workload.jobs)
        self.clock: Number = 0
        self.waiting: list[int] = []
        self.running: list[Running] = []
        self.between = [0] * n  # rounds between ticks in which each job has waited, this one included
        self.outcome = Outcome([None] * n, [None] * n, [[None] * len(job.load) for job in workload.jobs])
        self.outcome.committed = [0] * n
        self.outcome.consumed = [0] * n

    def available(self) -> tuple[Number, ...]:
        """Capacity not reserved by base allocations (extras are recollected when scheduling)."""
        result: list[Number] = []
        for j, capacity in enumerate(self.workload.capacity):
            left = capacity - total(task.base for task in self.running if task.server == j)
            result.append(left if left > CRUMB * capacity else 0)
        return tuple(result)

    def passes_mar(self) -> bool:
        return not self.mar or total(self.available()) > self.max_percent * total(self.workload.capacity)

    def tick(self) -> int | None:
        """The number of the tick that is now, or None between ticks."""
        nearest = round(self.clock / self.delta_t)
        return nearest if _same_instant(self.clock, nearest * self.delta_t) else None

    def round_number(self, job: int) -> int:
        """The number of the present round for a waiting job."""
        now = self.tick()
        if now is None:
            return -self.between[job]
        return sum(1 for n in range(now) if n * self.delta_t >= self.workload.jobs[job].arrival)

    def energy_cap(self, job: int) -> Number:
        """E_MAX of the job in its present round."""
        load, least = self.workload.jobs[job].ideal_energy, self.workload.jobs[job].least_energy
        ratio = self.workload.energy_cap_ratio
        if ratio is None:
            if least > (1 + TENTH) * load:
                self.outcome.granted.add(job)
                return least
            return (1 + TENTH * self.draw(job, self.round_number(job))) * load
        if least > ratio * load:
            self.outcome.granted.add(job)
            return least
        return ratio * load

    def plan(self, job: int) -> Launch | None:
        """Plan the job on what is available; None if that fails."""
        cap = self.energy_cap(job)
        available = self.available()
        instance = SingleJob(
            self.workload.jobs[job].load,
            self.workload.jobs[job].efficiency,
            tuple(limit.servers for limit in self.workload.limits),
            limits_now(self.workload.limits, available),
            cap,
            self.workload.jobs[job].power,
            weights_of(self.workload.limits),
        )
        if not instance.affords(instance.least_energy()):
            return None
        plan = self.planner(instance)
        return None if plan is None else Launch(self.clock, job, available, instance, plan)

    def start(self, launch: Launch) -> None:
        """Put a job to work."""
        placement, evaluation = launch.plan
        for i, j in enumerate(placement):
            leq = launch.instance.leq(i, j)
            self.running.append(Running(launch.job, i, j, leq, leq, evaluation.vcpus[i]))
        self.waiting.remove(launch.job)
        self.outcome.launch[launch.job] = self.clock
        self.outcome.committed[launch.job] = evaluation.energy
        self.outcome.launches.append(launch)

    def schedule(self) -> None:
        """One planning round over the waiting jobs."""
        if self.tick() is None:
            for job in self.waiting:
                self.between[job] += 1
        if self.scheduler == "ontapra":
            self.shortest_first()
        else:
            self.one_pass()

    def shortest_first(self) -> None:
        """Algorithm 4: launch the job of smallest completion time, again and again."""
        candidates = sorted(self.waiting)
        while candidates and self.passes_mar():
            plans: list[Launch] = []
            for job in list(candidates):
                launch = self.plan(job)
                if launch is None:
                    candidates.remove(job)
                    self.outcome.failures += 1
                else:
                    plans.append(launch)
            if not plans:
                break
            shortest = min(plans, key=lambda launch: (launch.plan.evaluation.jct, launch.job))
            self.start(shortest)
            candidates.remove(shortest.job)

    def one_pass(self) -> None:
        """FCFS, SLF and LLF: each waiting job once, in order."""
        jobs = self.workload.jobs
        keys: dict[str, Callable[[int], tuple[Number, int]]] = {
            "fcfs": lambda job: (jobs[job].arrival, job),
            "slf": lambda job: (jobs[job].total_load, job),
            "llf": lambda job: (-jobs[job].total_load, job),
        }
        for job in sorted(self.waiting, key=keys[self.scheduler]):
            if not self.passes_mar():
                break
            launch = self.plan(job)
            if launch is None:
                self.outcome.failures += 1
            else:
                self.start(launch)

    def distribute(self) -> None:
        """DRC on every server, from base allocations alone (which comes to the same)."""
        for j, capacity in enumerate(self.workload.capacity):
            here = [task for task in self.running if task.server == j]
            extras = residual_shares(capacity, [t.base for t in here], [t.leq for t in here])
            for task, extra in zip(here, extras, strict=True):
                task.extra = extra if self.drc else 0

    def advance(self, now: Number) -> None:
        """Let the running tasks work until the instant."""
        if now == self.clock:
            return
        arrived = [job for job in range(len(self.workload.jobs)) if self.workload.jobs[job].arrival < now]
        present = [job for job in arrived if self.outcome.finish[job] is None]
        shares = tuple(Share(t.job, t.task, t.server, t.leq, t.base, t.extra) for t in self.running)
        self.outcome.intervals.append(Interval(self.clock, now, shares, len(present)))
        for task in self.running:
            work = task.speed * (now - self.clock)
            task.remaining = task.remaining - work
            self.outcome.consumed[task.job] = self.outcome.consumed[task.job] + work
        self.clock = now

    def complete(self, tasks: list[Running]) -> None:
        """Record completions at the present instant."""
        for task in tasks:
            self.running.remove(task)
            finished = self.outcome.task_finish[task.job]
            finished[task.task] = self.clock
            if all(instant is not None for instant in finished):
                self.outcome.finish[task.job] = self.clock


def simulate(
    workload: Workload,
    scheduler: str = "ontapra",
    planner: str | Planner = "tapra-fast",
    *,
    drc: bool = True,
    mar: bool | None = None,
    max_percent: Number = 0.3,
    delta_t: Number = 10,
    draw: Callable[[int, int], float] = no_extra,
    max_time: Number = 100_000,
) -> Outcome:
    """Run the jobs online.

    Args:
        workload: Jobs, servers, limits.
        scheduler: "ontapra", "slf", "llf" (these act at ticks 0, delta_t, ...) or "fcfs" (acts
            at arrivals and task completions; ticks only number its draws).
        planner: The planner of single jobs, by name or itself.
        drc: Whether residual capacity is distributed.
        mar: Whether the MAR test is made (default: for "ontapra" only).
        max_percent: Its threshold.
        delta_t: Time between ticks.
        draw: U(job, number of the round) in [0, 1), from which E_MAX = (1 + 0.1 U) * energy at efficiency 1.
        max_time: The run ends here at the latest, with completions at this instant but no launch.

    At an instant: arrivals, completions, scheduling, distribution of residual capacity.
    """
    if scheduler not in SCHEDULERS:
        raise ValueError(scheduler)
    state = _Simulation(
        workload,
        scheduler,
        PLANNERS[planner] if isinstance(planner, str) else planner,
        drc,
        scheduler == "ontapra" if mar is None else mar,
        max_percent,
        delta_t,
        draw,
    )
    jobs = workload.jobs
    outcome = state.outcome
    to_come = sorted(range(len(jobs)), key=lambda job: (jobs[job].arrival, job))
    ticks = 0
    while any(instant is None for instant in outcome.finish):
        exact: Number = math.inf
        if to_come:
            exact = min(exact, jobs[to_come[0]].arrival)
        if scheduler != "fcfs":
            exact = min(exact, ticks * delta_t)
        ends = [state.clock + task.remaining / task.speed for task in state.running]
        now = min([exact, *ends])
        if exact < math.inf and _same_instant(now, exact):
            now = exact
        if now > max_time:
            break
        completed = [
            task
            for task, end in zip(state.running, ends, strict=True)
            if end <= now or _same_instant(end, now)
        ]
        state.advance(now)
        arrived = [job for job in to_come if jobs[job].arrival <= now]
        to_come = to_come[len(arrived) :]
        state.waiting.extend(arrived)
        state.complete(completed)
        at_tick = scheduler != "fcfs" and ticks * delta_t == now
        if at_tick:
            ticks += 1
        acts = at_tick if scheduler != "fcfs" else bool(arrived or completed)
        if acts and now < max_time:
            state.schedule()
        state.distribute()
    if any(instant is None for instant in outcome.finish):
        state.advance(max_time)
    outcome.end = state.clock
    for job, instant in enumerate(outcome.finish):
        until = state.clock if instant is None else instant
        outcome.charged.append(max(0, until - jobs[job].arrival))
    return outcome


def job_bound(workload: Workload, job: int, drc: bool) -> float:
    """Lower bound on the time in the system of one job, from its relaxation on empty servers.

    With DRC tasks may use more than the groups' limits, but never more than the servers have.
    """
    load, least = workload.jobs[job].ideal_energy, workload.jobs[job].least_energy
    ratio = workload.energy_cap_ratio
    cap = max((1 + TENTH if ratio is None else ratio) * load, least)
    limits = workload.limits
    if drc:
        limits = tuple(limit for limit in limits if limit.kind == "server")
        if not limits:
            raise ValueError("no bound with DRC without the servers' capacities")
    instance = SingleJob(
        workload.jobs[job].load,
        workload.jobs[job].efficiency,
        tuple(limit.servers for limit in limits),
        limits_now(limits, workload.capacity),
        cap,
        workload.jobs[job].power,
        weights_of(limits),
    )
    return lower_bound(instance)


def online_bound(workload: Workload, drc: bool) -> float:
    """Lower bound on the average time in the system."""
    values = [job_bound(workload, job, drc) for job in range(len(workload.jobs))]
    return float(total(values)) / len(values)


# --------------------------------------------------------------------------------------------
# Random instances
# --------------------------------------------------------------------------------------------


def _positive(rng: random.Random, high: int, dyadic: bool) -> float:
    """A number in (0, high]; if dyadic a whole one, so that sums are exact and ties happen."""
    return float(rng.randint(1, high)) if dyadic else high * (1 - rng.random())


def _efficiency(rng: random.Random, dyadic: bool) -> float:
    return rng.choice((0.125, 0.25, 0.5, 0.5, 1.0)) if dyadic else rng.uniform(0.1, 1.0)


def random_groups(rng: random.Random, servers: int) -> tuple[Group, ...]:
    """Random, overlapping groups that hold every server."""
    groups = [
        tuple(j for j in range(servers) if rng.random() < 0.4) or (rng.randrange(servers),)
        for _ in range(rng.randint(1, 5))
    ]
    missing = [j for j in range(servers) if all(j not in group for group in groups)]
    return (*groups, *((j,) for j in missing))


def random_instance(
    rng: random.Random,
    tasks: int = 5,
    servers: int = 5,
    *,
    dyadic: bool = False,
    tree: bool | None = None,
    exhausted: float = 0.1,
    feasible: bool = False,
    power: bool = False,
    weighted: bool = False,
) -> SingleJob:
    """A small random job.

    Args:
        rng: Source of random numbers.
        tasks: Largest number of tasks.
        servers: Largest number of servers (the fat tree of arity 2 has 2 of them).
        dyadic: Numbers with exact sums in floats, and many ties; else continuous ones.
        tree: Two levels of racks with server capacities and shares; else random groups. Default:
            either.
        exhausted: Probability that a server (or group) has nothing available.
        feasible: Whether E_MAX is at least E_min; else it is in three cases out of four.
        power: Whether the tasks differ in their power per vCPU.
        weighted: Whether vCPU count differently in groups (but for the servers' own capacities).
    """
    n, m = rng.randint(1, tasks), rng.randint(1, servers)
    load = tuple(_positive(rng, 16, dyadic) for _ in range(n))
    efficiency = tuple(tuple(_efficiency(rng, dyadic) for _ in range(m)) for _ in range(n))
    if rng.random() < 0.5 if tree is None else tree:
        available = [0.0 if rng.random() < exhausted else _positive(rng, 8, dyadic) for _ in range(m)]
        limits = random_tree(rng, m)
        if weighted:
            limits = random_weights(rng, limits, dyadic)
        groups = tuple(limit.servers for limit in limits)
        weights = weights_of(limits)
        bounds = limits_now(limits, available)
    else:
        groups = random_groups(rng, m)
        bounds = tuple(0.0 if rng.random() < exhausted else _positive(rng, 8, dyadic) for _ in groups)
        weights = tuple(tuple(_weight(rng, dyadic) for _ in group) for group in groups) if weighted else ()
    alpha: tuple[Number, ...] = ()
    if power:
        alpha = tuple(rng.choice((0.25, 0.5, 1.0, 2.0)) if dyadic else rng.uniform(0.2, 3.0) for _ in load)
    least = SingleJob(load, efficiency, groups, bounds, power=alpha).least_energy()
    cap: Number
    if not feasible and rng.random() < 0.25:
        cap = least * (0.75 if dyadic else rng.uniform(0.5, 1.0))
    else:
        cap = least * rng.choice((1.0, 1.25, 1.5, 2.0, math.inf))
    return SingleJob(load, efficiency, groups, bounds, cap, alpha, weights)


def _weight(rng: random.Random, dyadic: bool) -> float:
    return rng.choice((0.25, 0.5, 1.0, 2.0, 4.0)) if dyadic else rng.uniform(0.2, 3.0)


def random_weights(rng: random.Random, limits: Sequence[Limit], dyadic: bool) -> tuple[Limit, ...]:
    """The limits with weights, except for those of single servers, which are their capacities."""
    return tuple(
        limit
        if limit.kind == "server"
        else limit._replace(weights=tuple(_weight(rng, dyadic) for _ in limit.servers))
        for limit in limits
    )


def weights_of(limits: Sequence[Limit]) -> tuple[tuple[Number, ...], ...]:
    """The weights of the limits, as a job has them; none if all are 1."""
    if not any(limit.weights for limit in limits):
        return ()
    return tuple(tuple(limit.weight(j) for j in limit.servers) for limit in limits)


def random_tree(rng: random.Random, servers: int) -> tuple[Limit, ...]:
    """Servers cut into racks, racks into pods; shares that are exact in binary."""
    limits = [Limit("server", (j,), 1.0) for j in range(servers)]
    level: list[Group] = [(j,) for j in range(servers)]
    for kind in ("rack", "pod", "dc"):
        share = rng.choice((0.25, 0.5, 0.75, 1.0))
        above: list[Group] = []
        while level:
            width = len(level) if kind == "dc" else rng.randint(1, 3)
            above.append(functools.reduce(lambda a, b: a + b, level[:width]))
            level = level[width:]
        limits += [Limit(kind, group, share) for group in above]
        level = above
    return tuple(limits)


def random_workload(
    rng: random.Random,
    jobs: int = 4,
    tasks: int = 3,
    *,
    dyadic: bool = False,
    fixed_ratio: bool = False,
    weighted: bool = False,
    power: bool = False,
) -> Workload:
    """A few jobs on a small tree; arrivals crowd, and often fall on ticks of 5 or 10 seconds.

    Options as for :func:`random_instance`.
    """
    m = rng.randint(2, 8)
    arrivals = []
    for _ in range(rng.randint(1, jobs)):
        arrivals.append(float(rng.choice((0, 0, 1, 5, 10, 12))) if dyadic else rng.uniform(0, 15))
    entries = []
    for arrival in sorted(arrivals):
        n = rng.randint(1, tasks)
        load = tuple(_positive(rng, 128, dyadic) for _ in range(n))
        efficiency = [[_efficiency(rng, dyadic) for _ in range(m)] for _ in range(n)]
        if rng.random() < 0.7:  # else E_min is mostly above 1.1 total load, and granted
            for row in efficiency:
                row[rng.randrange(m)] = 1.0 if dyadic else rng.uniform(0.93, 1.0)
        alpha: tuple[Number, ...] = ()
        if power:
            alpha = tuple(rng.choice((0.25, 1.0, 2.0)) if dyadic else rng.uniform(0.2, 3.0) for _ in load)
        entries.append(Job(arrival, load, tuple(tuple(row) for row in efficiency), alpha))
    capacity = tuple(_positive(rng, 16, dyadic) for _ in range(m))
    ratio = rng.choice((1.0, 1.25, 2.0)) if fixed_ratio else None
    limits = random_tree(rng, m)
    if weighted:
        limits = random_weights(rng, limits, dyadic)
    return Workload(tuple(entries), capacity, limits, ratio)


def as_fractions(workload: Workload) -> Workload:
    """The same workload in exact numbers (all floats are fractions)."""
    exact = Fraction
    return Workload(
        tuple(
            Job(
                exact(job.arrival),
                tuple(map(exact, job.load)),
                tuple(tuple(map(exact, row)) for row in job.efficiency),
                tuple(map(exact, job.power)),
            )
            for job in workload.jobs
        ),
        tuple(map(exact, workload.capacity)),
        tuple(
            limit._replace(share=exact(limit.share), weights=tuple(map(exact, limit.weights)))
            for limit in workload.limits
        ),
        None if workload.energy_cap_ratio is None else exact(workload.energy_cap_ratio),
    )


def as_exact_instance(instance: SingleJob) -> SingleJob:
    """The same job in exact numbers (an infinite cap stays what it is)."""
    cap = instance.energy_cap
    return SingleJob(
        tuple(map(Fraction, instance.load)),
        tuple(tuple(map(Fraction, row)) for row in instance.efficiency),
        instance.groups,
        tuple(map(Fraction, instance.bounds)),
        Fraction(cap) if cap < math.inf else cap,
        tuple(map(Fraction, instance.power)),
        tuple(tuple(map(Fraction, row)) for row in instance.weights),
    )
