"""One job in plain Python: allocation, placement, and the algorithms that plan it (sections 3, 4 and 6.1.3).

Plain loops and lists suffice. Nothing is incremental: whenever a completion time or an energy is needed, it
is computed anew from the whole placement. With fractions and whole numbers everything is exact, so that ties
are true ties; infinite is the time of a task in a group without resources. With floats:

* Sums run over tasks in the order of their numbers, from 0 (``sum`` compensates since Python 3.12).
* E <= E_MAX means E <= E_MAX (1 + ENERGY_SLACK).
* The local search tells times apart that differ by a share of STRICT.

Ties of REC and Min-Min are equal numbers, without a tolerance.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from schedgym.papers.exact import quotient, simplex

Number = float | Fraction  # exact, infinite, or a float
Placement = tuple[int, ...]  # server of each task; -1 is a task not placed yet, in partial schedules only
Group = tuple[int, ...]  # servers of one resource-availability constraint

ENERGY_SLACK = 1e-12
STRICT = 1e-9


def total(values: Iterable[Number]) -> Number:
    """Sum from left to right."""
    result: Number = 0
    for value in values:
        result = result + value
    return result


def tolerance(number: Number, share: float) -> float:
    """Return a share for rounding of a float; exact numbers need none."""
    return share if isinstance(number, float) else 0


# constraint groups -----------------------------------------------------------------------------------


class Limit(NamedTuple):
    """A constraint group: a job may use at most ``share`` of what is available on its servers.

    A vCPU on a server counts as much as ``weights`` say, in the order of ``servers``; without them 1.
    """

    kind: str
    servers: Group
    share: Number
    weights: tuple[Number, ...] = ()

    def weight(self, j: int) -> Number:
        """Return A_jk, what a vCPU on server j counts in the group."""
        return _weight_in(self.servers, self.weights, j)


def _weight_in(servers: Group, weights: tuple[Number, ...], j: int) -> Number:
    """Return the weight of a server in a group: 0 outside, 1 without weights."""
    if j not in servers:
        return 0
    return weights[servers.index(j)] if weights else 1


def weights_of(limits: Sequence[Limit]) -> tuple[tuple[Number, ...], ...]:
    """Return the weights of limits, as a job has them; none if all are 1."""
    if not any(limit.weights for limit in limits):
        return ()
    return tuple(tuple(limit.weight(j) for j in limit.servers) for limit in limits)


def fat_tree(
    arity: int, rack: Number = 0.3, pod: Number = 0.2, data_centre: Number = 0.2, server_caps: bool = True
) -> tuple[Limit, ...]:
    """Return the limits of a fat tree: servers (unless left out, as in the paper), racks, pods, data centre.

    Servers are numbered pod by pod and rack by rack, so racks and pods are runs of numbers.

    Raises:
        ValueError: the arity is not even and positive.
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


def limits_now(limits: Sequence[Limit], available: Sequence[Number]) -> tuple[Number, ...]:
    """Return B_k, the share of what is available in each group, by weight."""
    return tuple(
        limit.share * total(limit.weight(j) * available[j] for j in limit.servers) for limit in limits
    )


# one job ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SingleJob:
    """One job to place and size.

    Attributes:
        load: vCPU-seconds of each task at efficiency 1.
        efficiency: lambda[i][j] in (0, 1].
        groups: servers of each constraint group (each server's own capacity is a group like the others).
        limits: B_k, the vCPU that the job may use in group k.
        energy_cap: E_MAX.
        power: alpha_VM of each task (Eq. 7); without it 1, as in the paper's experiments.
        weights: A_jk of the servers of each group, in the order of the group; without them 1.

    Raises:
        ValueError: what the model does not cover.
    """

    load: tuple[Number, ...]
    efficiency: tuple[tuple[Number, ...], ...]
    groups: tuple[Group, ...]
    limits: tuple[Number, ...]
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
        if len(self.groups) != len(self.limits) or any(limit < 0 for limit in self.limits):
            raise ValueError("one limit >= 0 per group")
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
        """Return L, the equivalent load of task i on server j."""
        return quotient(self.load[i], self.efficiency[i][j])

    def alpha(self, i: int) -> Number:
        """Return the power of task i per vCPU."""
        return self.power[i] if self.power else 1

    def own_energy(self, i: int, j: int) -> Number:
        """Return the energy of task i on server j (Eq. 8)."""
        return self.alpha(i) * self.leq(i, j)

    def weight(self, j: int, k: int) -> Number:
        """Return A_jk, what a vCPU on server j counts in group k."""
        return _weight_in(self.groups[k], self.weights[k] if self.weights else (), j)

    def matrix(self) -> list[list[Number]]:
        """Return A: one row per group, one column per server."""
        return [[self.weight(j, k) for j in range(self.servers)] for k in range(len(self.groups))]

    def groups_of(self, j: int) -> list[int]:
        """Return the numbers of the groups that server j is in."""
        return [k for k, group in enumerate(self.groups) if j in group]

    def energy(self, placement: Placement) -> Number:
        """Return the energy of the tasks placed."""
        return total(self.own_energy(i, j) for i, j in enumerate(placement) if j >= 0)

    def least_energy(self) -> Number:
        """Return E_min: every task on its most efficient server."""
        return self.energy(most_efficient(self))

    def affords(self, energy: Number) -> bool:
        """Return True if an energy is within the cap."""
        return energy <= self.energy_cap * (1 + tolerance(self.energy_cap, ENERGY_SLACK))

    def keeps_cap(self, placement: Placement) -> bool:
        """Return True if the energy of a placement is within the cap."""
        return self.affords(self.energy(placement))


def job_on(
    limits: Sequence[Limit],
    available: Sequence[Number],
    load: Sequence[Number],
    efficiency: Sequence[Sequence[Number]],
    energy_cap: Number = math.inf,
    power: tuple[Number, ...] = (),
) -> SingleJob:
    """Return a job that may use shares of what is available on servers."""
    groups, now = tuple(limit.servers for limit in limits), limits_now(limits, available)
    rows = tuple(map(tuple, efficiency))
    return SingleJob(tuple(load), rows, groups, now, energy_cap, power, weights_of(limits))


# allocation for a placement (section 4.1) ------------------------------------------------------------


class Evaluation(NamedTuple):
    """What a placement comes to: execution times, vCPU, completion time of the job, energy.

    Tasks not placed have execution time 0 and no vCPU.
    """

    times: tuple[Number, ...]
    vcpus: tuple[Number, ...]
    jct: Number
    energy: Number


Evaluate = Callable[[SingleJob, Placement], Evaluation]


def group_times(job: SingleJob, placement: Placement) -> tuple[Number, ...]:
    """Return the sum of A L in each group over B_k: 0 without tasks, infinite with tasks if B_k = 0."""
    result: list[Number] = []
    for k, (group, limit) in enumerate(zip(job.groups, job.limits, strict=True)):
        placed = [job.weight(j, k) * job.leq(i, j) for i, j in enumerate(placement) if j in group]
        if not placed:
            result.append(0)
        else:
            result.append(total(placed) / limit if limit > 0 else math.inf)
    return tuple(result)


def optra(job: SingleJob, placement: Placement) -> Evaluation:
    """Allocate as OptRA, by Eq. 16: a task takes as long as the slowest of the groups of its server."""
    per_group = group_times(job, placement)
    times = tuple(max(per_group[k] for k in job.groups_of(j)) if j >= 0 else 0 for j in placement)
    vcpus = tuple(job.leq(i, j) / times[i] if j >= 0 else 0 for i, j in enumerate(placement))
    return Evaluation(times, vcpus, max(times), job.energy(placement))


def least_time(job: SingleJob, placement: Sequence[int]) -> Fraction:
    """Return what OptRA minimises, for limits > 0: the largest 1 / JCT is found by the simplex method."""
    n = job.tasks
    rows = [[Fraction(job.weight(j, k)) for j in placement] + [Fraction(0)] for k in range(len(job.groups))]
    rows += [
        [Fraction(-int(i == k)) for k in range(n)] + [Fraction(job.leq(i, j))]
        for i, j in enumerate(placement)
    ]
    right = [*(Fraction(b) for b in job.limits), *[Fraction(0)] * n]
    return 1 / simplex([0] * n + [1], rows, right).value


def equal_share(job: SingleJob, placement: Placement) -> Evaluation:
    """Split every group's limit equally among the tasks in the group.

    A task's part of the limit is used up by as many vCPU as count that much on its server.
    """

    def share(j: int, k: int) -> Number:
        count = sum(other in job.groups[k] for other in placement)
        return quotient(job.limits[k], count) / job.weight(j, k)

    vcpus = tuple(min(share(j, k) for k in job.groups_of(j)) if j >= 0 else 0 for j in placement)
    times = tuple(
        0 if j < 0 else job.leq(i, j) / vcpus[i] if vcpus[i] > 0 else math.inf
        for i, j in enumerate(placement)
    )
    return Evaluation(times, vcpus, max(times), job.energy(placement))


# the relaxation (section 4.2) ------------------------------------------------------------------------


class Relaxed(NamedTuple):
    """Optimum of SJS-Relax-LP: the completion time, and the parts [task][server] of the tasks on servers."""

    bound: Fraction
    parts: list[list[Fraction]]


def relaxation(job: SingleJob) -> Relaxed:
    """Solve SJS-Relax-LP by the simplex method on its dual, for limits > 0 and a cap that can be kept.

    The dual has prices u of tasks, y of limits and w of energy: maximise sum u - w E_MAX subject to
    u_i <= L_ij (alpha_i w + sum of A_jk y_k) and sum B y <= 1. The parts are the prices of its rows.
    """
    n, m, capped = job.tasks, job.servers, job.energy_cap < math.inf
    gain: list[Fraction] = [Fraction(1)] * n + [Fraction(0)] * len(job.groups)
    rows: list[list[Fraction]] = []
    for i, j in itertools.product(range(n), range(m)):
        own = Fraction(job.leq(i, j))
        rows.append([Fraction(int(k == i)) for k in range(n)])
        rows[-1] += [-own * Fraction(job.weight(j, k)) for k in range(len(job.groups))]
        rows[-1] += [-own * Fraction(job.alpha(i))] if capped else []
    rows.append([Fraction(0)] * n + [Fraction(b) for b in job.limits] + [Fraction(0)] * capped)
    if capped:
        gain.append(-Fraction(job.energy_cap))
    found = simplex(gain, rows, [0] * (n * m) + [1])
    return Relaxed(found.value, [found.prices[i * m : (i + 1) * m] for i in range(n)])


# placements (section 4.3) ----------------------------------------------------------------------------


def placements(job: SingleJob) -> Iterator[Placement]:
    """Yield all placements that keep the energy cap."""
    for placement in itertools.product(range(job.servers), repeat=job.tasks):
        if job.keeps_cap(placement):
            yield placement


def best(job: SingleJob) -> tuple[Number, Placement]:
    """Return the least completion time, and the first placement that reaches it; (inf, ()) without any."""
    none: tuple[Number, Placement] = (math.inf, ())
    return min(((optra(job, placement).jct, placement) for placement in placements(job)), default=none)


def most_efficient(job: SingleJob) -> Placement:
    """Place every task on its most efficient server, the first one if several are."""
    return largest_parts(job.efficiency)


def largest_parts(table: Sequence[Sequence[Number]]) -> Placement:
    """Return the first server with the largest number of each task's row."""
    return tuple(row.index(max(row)) for row in table)


def random_placement(job: SingleJob, rng: random.Random) -> Placement:
    """Place every task on a random server."""
    return tuple(rng.randrange(job.servers) for _ in range(job.tasks))


def moved(placement: Placement, i: int, j: int) -> Placement:
    """Return the placement with task i on server j."""
    return (*placement[:i], j, *placement[i + 1 :])


def moves(job: SingleJob, placement: Placement) -> Iterator[Placement]:
    """Yield all placements that keep the energy cap and differ in the server of one task."""
    for i, j in itertools.product(range(job.tasks), range(job.servers)):
        after = moved(placement, i, j)
        if j != placement[i] and job.keeps_cap(after):
            yield after


def rec(job: SingleJob, placement: Placement, evaluate: Evaluate = optra) -> Placement | None:
    """Reduce the energy until it is within the cap (REC, Algorithm 2); None if no move is left before.

    Among the moves to a more efficient server: the smallest new completion time, then the lower task, then
    the lower server.
    """
    while not job.keeps_cap(placement):
        options = [
            (evaluate(job, moved(placement, i, j)).jct, i, j)
            for i, j in itertools.product(range(job.tasks), range(job.servers))
            if job.efficiency[i][j] > job.efficiency[i][placement[i]]
        ]
        if not options:
            return None
        placement = moved(placement, *min(options)[1:])
    return placement


def longest_tasks(evaluation: Evaluation) -> list[int]:
    """Return T_max, the tasks that take as long as the job, up to rounding."""
    least = evaluation.jct * (1 - tolerance(evaluation.jct, STRICT))
    return [i for i, time in enumerate(evaluation.times) if time >= least]


def improvements(job: SingleJob, placement: Placement, i: int) -> list[tuple[Number, int]]:
    """Return the moves of task i that keep the cap and make its time smaller: new time and server."""
    before = optra(job, placement).times[i]
    found = []
    for j in range(job.servers):
        after = moved(placement, i, j)
        time = optra(job, after).times[i]
        if job.keeps_cap(after) and time < before * (1 - tolerance(before, STRICT)):
            found.append((time, j))
    return found


def local_search(job: SingleJob, placement: Placement) -> list[Placement]:
    """Run phase III of Algorithm 1; return all placements from this one on.

    The first of the longest tasks that can be improved goes where it is fastest, to the lower server of two.
    """
    path = [placement]
    while True:
        for i in longest_tasks(optra(job, path[-1])):
            options = improvements(job, path[-1], i)
            if options:
                path.append(moved(path[-1], i, min(options)[1]))
                break
        else:
            return path


# planners (sections 4.3 and 6.1.3) -------------------------------------------------------------------


class Plan(NamedTuple):
    """A placement with its allocation: that of Eq. 16, or by equal shares for a planner by these."""

    placement: Placement
    evaluation: Evaluation


Planner = Callable[[SingleJob], Plan | None]


def _finish(job: SingleJob, placement: Placement | None, evaluate: Evaluate = optra) -> Plan | None:
    """Return a plan, unless its completion time is infinite or the energy cap could not be met."""
    if placement is None or not job.keeps_cap(placement):
        return None
    evaluation = evaluate(job, placement)
    return None if evaluation.jct == math.inf else Plan(placement, evaluation)


def tapra_from(job: SingleJob, parts: Sequence[Sequence[Number]]) -> Plan | None:
    """Run phases II and III of TaPRA from parts of tasks on servers: largest part, REC, local search."""
    placement = rec(job, largest_parts(parts))
    return None if placement is None else _finish(job, local_search(job, placement)[-1])


def tapra(job: SingleJob) -> Plan | None:
    """Run TaPRA (Algorithm 1); the plan depends on which optimum of the relaxation is found."""
    return tapra_from(job, relaxation(job).parts)


def tapra_fast(job: SingleJob) -> Plan | None:
    """Run TaPRA-fast (section 4.3.1): local search from the placement of least energy."""
    start = most_efficient(job)
    return _finish(job, local_search(job, start)[-1]) if job.keeps_cap(start) else None


def min_min_placement(job: SingleJob, evaluate: Evaluate = optra) -> Placement:
    """Place by Min-Min, before REC: smallest completion time so far, then own time, task, server."""
    placement: Placement = (-1,) * job.tasks
    while -1 in placement:
        left = [i for i, j in enumerate(placement) if j < 0]
        options = [
            (found.jct, found.times[i], i, j)
            for i, j in itertools.product(left, range(job.servers))
            for found in [evaluate(job, moved(placement, i, j))]
        ]
        placement = moved(placement, *min(options)[2:])
    return placement


def min_min(job: SingleJob, evaluate: Evaluate = optra) -> Plan | None:
    """Run Min-Min, then REC."""
    return _finish(job, rec(job, min_min_placement(job, evaluate), evaluate), evaluate)


#: the planners that use no random numbers and no linear programme
PLANNERS: dict[str, Planner] = {"tapra-fast": tapra_fast, "min-min": min_min}


def list_scheduling(
    job: SingleJob, capacity: Sequence[Number], work: Sequence[Number], share: Number
) -> Plan | None:
    """Place the longest task first, where it ends first after a share of the server's work; or TaPRA-fast.

    Ours, not the paper's.
    """
    busy = list(work)
    placement: Placement = (-1,) * job.tasks
    alive = [j for j in range(job.servers) if all(job.limits[k] > 0 for k in job.groups_of(j))]
    if not alive:
        return None
    for i in sorted(range(job.tasks), key=lambda i: -job.load[i]):
        ends = {j: (job.leq(i, j) + share * busy[j]) / capacity[j] for j in alive}
        j = min(ends, key=ends.__getitem__)
        placement = moved(placement, i, j)
        busy[j] += job.leq(i, j)
    return _finish(job, rec(job, placement)) or tapra_fast(job)


@dataclass(frozen=True)
class _Genetic:
    """The loop of MM-GA and GSA: tournament 2, crossover .8, mutation .02, elite 2.

    The paper does not fix the order of random numbers. Here, per child: four for two tournaments (best of two
    uniform picks), one for whether to cross, one for the point, then per task one for whether to reset (and
    one server); per annealing step a task, a server, and one number if the step is worse.
    """

    job: SingleJob
    rng: random.Random
    evaluate: Evaluate
    anneal: bool

    def scored(self, placement: Placement) -> tuple[Number, Placement]:
        """Return completion time and placement after REC, which fails only if no placement keeps the cap."""
        repaired = rec(self.job, placement, self.evaluate)
        assert repaired is not None
        return self.evaluate(self.job, repaired).jct, repaired

    def pick(self, population: list[tuple[Number, Placement]]) -> Placement:
        """Return the better of two random members."""
        return min((self.rng.choice(population) for _ in range(2)), key=lambda pair: pair[0])[1]

    def child(self, population: list[tuple[Number, Placement]]) -> tuple[Number, Placement]:
        """Cross two members, and change a few tasks."""
        first, second = self.pick(population), self.pick(population)
        if self.rng.random() < 0.8 and self.job.tasks > 1:
            point = self.rng.randrange(1, self.job.tasks)
            first = first[:point] + second[point:]
        reset = (self.rng.randrange(self.job.servers) if self.rng.random() < 0.02 else j for j in first)
        return self.scored(tuple(reset))

    def annealed(self, child: tuple[Number, Placement], temperature: float) -> tuple[Number, Placement]:
        """Take five steps of annealing."""
        for _ in range(5):
            i, j = self.rng.randrange(self.job.tasks), self.rng.randrange(self.job.servers)
            other = self.scored(moved(child[1], i, j))
            accepted = other[0] <= child[0]
            if not accepted and other[0] < math.inf and temperature > 0:
                accepted = self.rng.random() < math.exp(-float(other[0] - child[0]) / temperature)
            if accepted:
                child = other
        return child

    def run(self, population: list[Placement], generations: int) -> Plan | None:
        """Return the best plan of the last generation."""
        if not self.job.affords(self.job.least_energy()):
            return None
        scored = [self.scored(member) for member in population]
        least = min(score for score, _ in scored)
        temperature = 0.1 * float(least) if least < math.inf else 0.0
        for _ in range(generations):
            children = sorted(scored, key=lambda pair: pair[0])[:2]  # stable: ties by age
            while len(children) < len(scored):
                child = self.child(scored)
                children.append(self.annealed(child, temperature) if self.anneal else child)
            scored = children
            temperature *= 0.95
        return _finish(self.job, min(scored, key=lambda pair: pair[0])[1], self.evaluate)


def mm_ga(
    job: SingleJob, rng: random.Random, size: int = 30, generations: int = 60, evaluate: Evaluate = optra
) -> Plan | None:
    """Run MM-GA: a genetic algorithm with Min-Min in its random initial population."""
    population = [min_min_placement(job, evaluate)]
    population += [random_placement(job, rng) for _ in range(size - 1)]
    return _Genetic(job, rng, evaluate, anneal=False).run(population, generations)


def gsa(
    job: SingleJob, rng: random.Random, size: int = 30, generations: int = 60, evaluate: Evaluate = optra
) -> Plan | None:
    """Run GSA: the same from a random population, each child improved by annealing."""
    population = [random_placement(job, rng) for _ in range(size)]
    return _Genetic(job, rng, evaluate, anneal=True).run(population, generations)


# what the environment lets an agent do ---------------------------------------------------------------


def place_mask(job: SingleJob, placement: Placement, i: int) -> list[bool]:
    """Return for each server if task i may go there: its groups have vCPU, and the rest is affordable."""
    cheapest = most_efficient(job)
    rest = [t for t in range(job.tasks) if placement[t] < 0 and t != i]
    least = total(job.own_energy(t, cheapest[t]) for t in rest)
    placed = job.energy(placement)
    return [
        all(job.limits[k] > 0 for k in job.groups_of(j))
        and job.affords(placed + job.own_energy(i, j) + least)
        for j in range(job.servers)
    ]


def search_mask(job: SingleJob, placement: Placement) -> list[list[bool]]:
    """Return if each task may move to each server in the search view (stopping is always legal)."""
    legal = [{j for _, j in improvements(job, placement, i)} for i in range(job.tasks)]
    return [[j in own for j in range(job.servers)] for own in legal]
