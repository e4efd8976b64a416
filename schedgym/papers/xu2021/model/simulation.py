"""Schedules slot by slot: the policies, given allocations, and what is measured of them.

Slot t = 1, 2, ...; a job that arrives at a is visible (and servable) in the slots t > a. Whatever is a list
over slots has slot 1 at index 0. Work is counted in whole core-slots.

The prices of the OCORP family are floats, in these expressions and this order, which are those of the
kernels, or fractions (``Options.number``): weight = age**k / p + p**(k - 1), omega = (weight - lambda) / d,
mu = t**(k + 0.5), lambda = max(0, lambda + mu (p / max(gamma - a, 1) - used / d)). Rules, transportation
problems and knapsacks compare exact fractions, also of floats, so that "optimal" has no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers.xu2021.model.jobs import (
    Instance,
    Job,
    MapReduceJob,
    declared_cpu,
    declared_memory,
    eq27,
    is_mapreduce,
    length,
    max_slots,
    volume,
)
from schedgym.papers.xu2021.model.policies import PRIORITY_RULES, Entry, drf, rule_order, tetris, transient
from schedgym.papers.xu2021.model.slot import (
    Matrix,
    Number,
    PlusSlot,
    Slot,
    core_values,
    fill,
    memory_allocation,
    pack,
    place,
    plus_allocation,
    plus_job_level,
    switching_values,
    transport,
)

__all__ = [
    "Cluster",
    "Counts",
    "MODES",
    "Options",
    "Outcome",
    "POLICIES",
    "counts",
    "flowtimes",
    "fractional_flowtime",
    "locality",
    "metrics",
    "regret_curve",
    "replay",
    "rewards",
    "run",
    "service_gaps",
    "simulate",
    "switching_cost",
    "unfinished_curve",
]

POLICIES = ("ocorp", "ocorp+", "ocorp+m", *PRIORITY_RULES, "tetris", "drf", "svf-transient")
MODES = ("waste", "under", "order")


class Cluster:
    """Remaining work, per job, phase and task [core-slots], and the rules of service."""

    def __init__(
        self,
        instance: Instance,
        mode: str | None = None,
        k: Number = 2,
        number: Callable[..., Number] = float,
    ) -> None:
        self.instance = instance
        self.mode = mode
        self.k = k
        self.number = number
        self.left: list[list[list[int]]] = []
        for job in instance.jobs:
            if isinstance(job, MapReduceJob):
                self.left.append(
                    [[p * d] * n for n, p, d in zip(job.tasks, job.processing, job.cpu, strict=True)]
                )
            else:
                self.left.append([[volume(job)]])

    def remaining(self, j: int) -> int:
        """Return the work left of a job."""
        return sum(map(sum, self.left[j]))

    def phase(self, j: int) -> int:
        """0, or 1 as soon as the map phase is done."""
        return 1 if len(self.left[j]) == 2 and sum(self.left[j][0]) == 0 else 0

    def task_caps(self, j: int) -> list[int]:
        """The most cores for each task of the current phase of a MapReduce job."""
        z = self.phase(j)
        job = self.instance.jobs[j]
        assert isinstance(job, MapReduceJob)
        return [min(job.cpu[z], left) for left in self.left[j][z]]

    def cap(self, j: int) -> int:
        """The most cores that the job may be given in the coming slot."""
        job = self.instance.jobs[j]
        if isinstance(job, MapReduceJob):
            return sum(self.task_caps(j))
        left = self.remaining(j)
        if self.mode == "waste":
            said = declared_cpu(job)
            return min(said, math.ceil(Fraction(left * said, job.cpu)))
        if self.mode == "under":
            return min(declared_cpu(job), job.cpu, left)
        return min(job.cpu, left)

    def entry(self, j: int, t: int) -> Entry:
        """Return what a policy sees of a job."""
        job = self.instance.jobs[j]
        k, age, z, cap, left = self.k, t - job.arrival, self.phase(j), self.cap(j), self.remaining(j)
        if isinstance(job, MapReduceJob):
            n, p, d = job.tasks[z], job.processing[z], job.cpu[z]
            longest = [
                max((Fraction(work, cores) for work in works), default=Fraction(0))
                for works, cores in zip(self.left[j], job.cpu, strict=True)
            ]
            return Entry(
                j, z, job.arrival, age, demand=d, cap=cap, reserve=0,
                weight=self.number(2 * age**k + job.length**k) / (2 * n * p),
                target=job.work, tasks=n, unit=d * n,
                slots=sum(longest, Fraction(0)), left=Fraction(left), whole=volume(job),
            )  # fmt: skip
        said = job.cpu if self.mode is None else declared_cpu(job)
        p = job.processing
        return Entry(
            j, z, job.arrival, age, demand=said, cap=cap,
            reserve=job.memory if self.mode is None else declared_memory(job),
            weight=self.number(age**k) / p + self.number(p) ** (k - 1),
            target=p, tasks=1, unit=job.cpu,
            slots=Fraction(left, job.cpu), left=Fraction(left * said, job.cpu), whole=p * said,
        )  # fmt: skip

    def serve(self, j: int, cores: int) -> int:
        """Work off a slot with these cores, MapReduce tasks in index order; the core-slots really used."""
        assert 0 <= cores <= self.cap(j)
        job = self.instance.jobs[j]
        if isinstance(job, MapReduceJob):
            z = self.phase(j)
            for task, grant in enumerate(self.split_over_tasks(j, cores)):
                self.left[j][z][task] -= grant
            return cores
        used = min(cores, job.cpu, self.remaining(j))
        self.left[j][0][0] -= used
        return used

    def split_over_tasks(self, j: int, cores: int) -> list[int]:
        """Return the cores of each task of the current phase."""
        grants = []
        for most in self.task_caps(j):
            grants.append(min(most, cores))
            cores -= grants[-1]
        return grants


@dataclass
class Outcome:
    """What happened. Lists over slots start with slot 1.

    completion: slot in which each job ended, None if the simulation was cut off before.
    allocations: cores granted, [slot][job][server]; used: core-slots worked off, [slot][job].
    lambdas: {(job, phase): lambda after the slot}, of the jobs visible in the slot (ocorp family).
    gammas: Gamma of the slot. rounds: of the alternation of ocorp+m. latency: Eq. 45 per slot.
    fractional: fractional flowtime of each job.
    """

    completion: list[int | None]
    allocations: list[Matrix]
    used: list[list[int]]
    fractional: list[Number]
    lambdas: list[dict[tuple[int, int], Number]] = field(default_factory=list)
    gammas: list[Number] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    latency: list[Fraction] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self.allocations)


def _check_slot(cluster: Cluster, u: Matrix, visible: Sequence[int]) -> None:
    """Raise ValueError if an allocation breaks a constraint of the model."""
    instance = cluster.instance
    for j, row in enumerate(u):
        if min(row) < 0 or (sum(row) > 0 and j not in visible) or sum(row) > cluster.cap(j):
            raise ValueError(f"job {j} cannot have {row}")
    for i, capacity in enumerate(instance.cpu):
        if sum(row[i] for row in u) > capacity:
            raise ValueError(f"server {i} has too few cores")
        if instance.memory is not None:
            held = sum(
                job.memory if cluster.mode is None else declared_memory(job)
                for job, row in zip(instance.jobs, u, strict=True)
                if row[i] > 0 and isinstance(job, Job)
            )
            if held > instance.memory[i]:
                raise ValueError(f"server {i} has too little memory")


def run(
    cluster: Cluster,
    decide: Callable[[int, list[Entry]], Matrix],
    limit: int,
    after: Callable[[int, list[Entry], list[int]], None] | None = None,
) -> Outcome:
    """Run slot by slot until all is done or the limit. decide gives [job][server] of all jobs."""
    instance = cluster.instance
    n_jobs = len(instance.jobs)
    outcome = Outcome([None] * n_jobs, [], [], [cluster.number(0)] * n_jobs)
    t = 0
    while t < limit and None in outcome.completion:
        t += 1
        visible = [
            j for j, job in enumerate(instance.jobs) if job.arrival < t and outcome.completion[j] is None
        ]
        entries = [cluster.entry(j, t) for j in visible]
        u = decide(t, entries)
        _check_slot(cluster, u, visible)
        used = [0] * n_jobs
        for e in entries:
            used[e.job] = cluster.serve(e.job, sum(u[e.job]))
            outcome.fractional[e.job] += e.weight * used[e.job] * e.tasks / e.unit
            if cluster.remaining(e.job) == 0:
                outcome.completion[e.job] = t
        outcome.allocations.append(u)
        outcome.used.append(used)
        if after is not None:
            after(t, entries, used)
    return outcome


def replay(
    instance: Instance, allocations: Sequence[Matrix], *, k: float = 2, mode: str | None = None
) -> Outcome:
    """What comes of given allocations [slot][job][server]; ValueError if one is infeasible."""
    cluster = Cluster(instance, mode, k)
    return run(cluster, lambda t, entries: [list(row) for row in allocations[t - 1]], len(allocations))


@dataclass(frozen=True)
class Options:
    """How a policy plays, and by which numbers.

    Attributes:
        k: exponent of the norm.
        packing: "fresh" or "sticky". It has no meaning for ocorp+ with alpha > 0 at server level, and none in
            2D but for the first x of ocorp+m: the greedy placement of the others looks at the slot alone.
        gamma: a number, "seen" or "eq27" (of declared demands, in a mode of mis-estimation).
        lambda0: a number, "p" (mu p; MapReduce: mu (p^m + p^r)) or "w" (the weight at its first slot). The
            paper only says that lambda is initialised; 1e11 is above all weights. That of a reduce phase
            starts in its first slot, by the same rule.
        literal: ocorp, ocorp+ and ocorp+m serve only what lowers their objective.
        alpha: weight of the switching cost in ocorp+ and ocorp+m. With 0 (no unique optimum) fill and pack.
        level: "server" or "job", for ocorp+.
        backfill: whether ocorp+m fills what its alternation leaves.
        mode: of mis-estimation, None if the declared demands are to be ignored. The declared memory is
            reserved in every mode.
        step: mu by slot; None: t^(k + 0.5).
        number: of prices: float as the kernels, or Fraction.
    """

    k: Number = 2
    packing: str = "fresh"
    gamma: Number = 4000.0
    lambda0: Number = 1e11
    literal: bool = False
    alpha: Number = 0
    level: str = "server"
    backfill: bool = True
    mode: str | None = None
    step: Callable[[int], Number] | None = None
    number: Callable[..., Number] = float


class _Policy:
    """A policy in one run: its prices, and what it did so far."""

    def __init__(self, cluster: Cluster, name: str, options: Options) -> None:
        self.cluster, self.name, self.options = cluster, name, options
        self.instance = cluster.instance
        self.nowhere = [0] * len(self.instance.cpu)
        self.last: Matrix | None = None
        self.lambdas: dict[tuple[int, int], Number] = {}
        self.trajectory: list[dict[tuple[int, int], Number]] = []
        self.gammas: list[Number] = []
        self.rounds: list[int] = []
        self.latency: list[Fraction] = []

    def mu(self, t: int) -> Number:
        return t ** (self.options.k + 0.5) if self.options.step is None else self.options.step(t)

    def gamma(self, t: int) -> Number:
        known, declared = self.options.gamma, self.options.mode is not None
        if known == "eq27":
            return self.options.number(eq27(self.instance, declared=declared))
        if known == "seen":
            seen = [j for j, job in enumerate(self.instance.jobs) if job.arrival < t]
            return self.options.number(eq27(self.instance, seen, declared=declared))
        return known

    def decide(self, t: int, entries: list[Entry]) -> Matrix:
        """Choose the cores of all jobs, [job][server]."""
        rows = self.choose(t, entries)
        self.last = [self.nowhere] * len(self.instance.jobs)
        for e, row in zip(entries, rows, strict=True):
            self.last[e.job] = row
        return self.last

    def previous(self, entries: list[Entry]) -> Matrix:
        return [self.nowhere if self.last is None else self.last[e.job] for e in entries]

    def choose(self, t: int, entries: list[Entry]) -> Matrix:
        cpu, memory = self.instance.cpu, self.instance.memory
        caps = [e.cap for e in entries]
        if self.name in ("tetris", "drf"):  # they choose servers, too; in 1D only the cores per job count
            rows = (tetris if self.name == "tetris" else drf)(entries, cpu, memory)
            return self.spread(entries, [sum(row) for row in rows]) if memory is None else rows
        if self.name == "svf-transient":
            return self.spread(entries, transient(entries, sum(cpu)))
        if self.name in PRIORITY_RULES:
            order = rule_order(entries, self.name)
        else:
            omega = self.omega(t, entries)
            order = sorted(range(len(entries)), key=lambda n: (omega[n], entries[n].arrival, entries[n].job))
            if self.options.literal:
                order = [n for n in order if omega[n] < 0]
            if self.name == "ocorp+m":
                return self.with_memory(entries, order, omega)
            if self.name == "ocorp+" and self.options.alpha > 0:
                return self.with_switching(entries)
        if memory is not None:
            return place(order, caps, [e.reserve for e in entries], cpu, memory)
        return self.spread(entries, fill(order, caps, sum(cpu)))

    def spread(self, entries: list[Entry], cores: Sequence[int]) -> Matrix:
        """Divide the cores of the visible jobs among servers (1D)."""
        if any(isinstance(job, MapReduceJob) and job.latency is not None for job in self.instance.jobs):
            of_all = [0] * len(self.instance.jobs)
            for e, amount in zip(entries, cores, strict=True):
                of_all[e.job] = amount
            u, cost = locality(self.cluster, of_all)
            self.latency.append(cost)
            return [u[e.job] for e in entries]
        sticky = self.options.packing == "sticky"
        return pack(cores, self.instance.cpu, self.previous(entries) if sticky else None)

    def coefficients(self, entries: list[Entry]) -> list[Number]:
        """Return weight - lambda of each job."""
        return [e.weight - self.lambdas[e.job, e.phase] for e in entries]

    def omega(self, t: int, entries: list[Entry]) -> list[Number]:
        for e in entries:
            if (e.job, e.phase) not in self.lambdas:
                known = self.options.lambda0
                if known == "p":
                    known = self.mu(t) * length(self.instance.jobs[e.job])
                self.lambdas[e.job, e.phase] = e.weight if known == "w" else known
        return [c / e.demand for c, e in zip(self.coefficients(entries), entries, strict=True)]

    def changes(self, entries: list[Entry]) -> PlusSlot:
        """Return what the programmes with a switching cost are given."""
        demand, caps = [e.demand for e in entries], [e.cap for e in entries]
        first, cpu = [e.age == 1 for e in entries], self.instance.cpu
        previous = self.previous(entries)
        return PlusSlot(self.coefficients(entries), demand, caps, previous, first, cpu, self.options.alpha)

    def with_switching(self, entries: list[Entry]) -> Matrix:
        """Return the slot of ocorp+."""
        slot, literal = self.changes(entries), self.options.literal
        if self.options.level == "server":
            return plus_allocation(slot, literal=literal)
        return self.spread(entries, plus_job_level(slot, literal=literal))

    def with_memory(self, entries: list[Entry], order: list[int], omega: list[Number]) -> Matrix:
        """Return the slot of ocorp+m."""
        options = self.options
        assert self.instance.memory is not None
        slot = Slot(
            tuple(core_values(omega, literal=options.literal)),
            tuple(e.cap for e in entries),
            tuple(e.reserve for e in entries),
            tuple(self.instance.cpu),
            tuple(self.instance.memory),
        )
        first = worth = None
        if options.alpha > 0:
            first = plus_allocation(self.changes(entries), literal=options.literal)
            worth = switching_values(self.changes(entries), literal=options.literal)
        old = self.previous(entries) if options.packing == "sticky" else None
        rows, number = memory_allocation(
            slot, order, previous=old, backfill=options.backfill, first=first, worth=worth
        )
        self.rounds.append(number)
        return rows

    def after(self, t: int, entries: list[Entry], used: list[int]) -> None:
        """Update the prices."""
        number = self.options.number
        self.gammas.append(self.gamma(t))
        if self.name.startswith("ocorp"):
            for e in entries:
                wanted = number(e.target) / (e.tasks * max(self.gammas[-1] - e.arrival, 1))
                change = self.mu(t) * (wanted - number(used[e.job]) / e.unit)
                key = (e.job, e.phase)
                self.lambdas[key] = max(number(0), self.lambdas[key] + change)
            self.trajectory.append({(e.job, e.phase): self.lambdas[e.job, e.phase] for e in entries})


def simulate(instance: Instance, policy: str, *, limit: int | None = None, **options: Any) -> Outcome:
    """Run a policy of POLICIES on an instance.

    Args:
        instance: jobs and servers.
        policy: ocorp+ is for plain jobs in 1D; ocorp+m needs memory; svf-transient is for plain jobs in 1D
            that all arrive at 0.
        limit: number of slots, max_slots by default.
        options: fields of :class:`Options`.
    """
    settings = Options(**options)
    cluster = Cluster(instance, settings.mode, settings.k, settings.number)
    own = _Policy(cluster, policy, settings)
    if limit is None:
        limit = max_slots(instance, 4000.0 if isinstance(settings.gamma, str) else settings.gamma)
    outcome = run(cluster, own.decide, limit, own.after)
    outcome.lambdas, outcome.gammas = own.trajectory, own.gammas
    outcome.rounds, outcome.latency = own.rounds, own.latency
    return outcome


def locality(cluster: Cluster, cores: Sequence[int]) -> tuple[Matrix, Fraction]:
    """Servers for chosen cores of MapReduce jobs that minimise Eq. 45, with its minimum.

    Eq. 45 (with the index i that it lacks): sum of xi[server, task] x, where x = u / d. Jobs without
    latencies count 0. Tasks are ordered by job, then index.
    """
    instance = cluster.instance
    tasks: list[tuple[int, int]] = []
    supply: list[int] = []
    for j, amount in enumerate(cores):
        if amount > 0:
            grants = cluster.split_over_tasks(j, amount)
            tasks += [(j, task) for task, grant in enumerate(grants) if grant > 0]
            supply += [grant for grant in grants if grant > 0]

    def marginal(n: int, i: int, q: int) -> Fraction:
        j, task = tasks[n]
        job = instance.jobs[j]
        assert isinstance(job, MapReduceJob)
        if job.latency is None:
            return Fraction(0)
        z = cluster.phase(j)
        return Fraction(job.latency[z][task][i]) / job.cpu[z]

    rows = transport(marginal, supply, instance.cpu, total=sum(supply))
    u = [[0] * len(instance.cpu) for _ in cores]
    cost = Fraction(0)
    for n, row in enumerate(rows):
        for i, amount in enumerate(row):
            u[tasks[n][0]][i] += amount
            cost += marginal(n, i, 0) * amount
    return u, cost


class Counts(NamedTuple):
    """Per job: slots with a preemption, a migration, a change of cores, a split over servers."""

    preemptions: list[int]
    migrations: list[int]
    resizes: list[int]
    splits: list[int]


def counts(instance: Instance, outcome: Outcome) -> Counts:
    """Count what happened to each job.

    Preemption: ran in t - 1, unfinished, no cores in t. Migration: in t it uses a server that it did not use
    in the last slot in which it ran. Choice for resizes: ran in t - 1 and in t, with another number of cores.
    """
    n_jobs = len(instance.jobs)
    result = Counts([0] * n_jobs, [0] * n_jobs, [0] * n_jobs, [0] * n_jobs)
    for j in range(n_jobs):
        last: set[int] | None = None
        before = 0
        end = outcome.completion[j] or outcome.slots
        for t in range(instance.jobs[j].arrival + 1, end + 1):
            row = outcome.allocations[t - 1][j]
            on = {i for i, amount in enumerate(row) if amount > 0}
            if before > 0 and not on:
                result.preemptions[j] += 1
            if last is not None and on - last:
                result.migrations[j] += 1
            if before > 0 and on and sum(row) != before:
                result.resizes[j] += 1
            if len(on) > 1:
                result.splits[j] += 1
            if on:
                last = on
            before = sum(row)
    return result


def switching_cost(instance: Instance, outcome: Outcome) -> list[float]:
    """S(t) of Eq. 31 per slot, over jobs active in t (unfinished when t starts) with t >= a + 2.

    x = u / d with the true demand; MapReduce: with that of the phase that the job was in.
    """
    costs: list[float] = []
    cluster = Cluster(instance)
    before: list[list[Fraction]] = []
    for t, (u, used) in enumerate(zip(outcome.allocations, outcome.used, strict=True), start=1):
        cost = Fraction(0)
        rates: list[list[Fraction]] = []
        for j, job in enumerate(instance.jobs):
            demand = job.cpu[cluster.phase(j)] if isinstance(job, MapReduceJob) else job.cpu
            rates.append([Fraction(amount, demand) for amount in u[j]])
            end = outcome.completion[j]
            if t >= job.arrival + 2 and (end is None or t <= end):
                cost += sum((new - old) ** 2 for new, old in zip(rates[j], before[j], strict=True))
        costs.append(float(cost))
        before = rates
        for j, amount in enumerate(used):
            if is_mapreduce(instance):
                cluster.serve(j, amount)
    return costs


def flowtimes(instance: Instance, outcome: Outcome) -> list[int]:
    """min(completion, end) - arrival of the jobs that have arrived before the end."""
    return [
        (outcome.slots if end is None else end) - job.arrival
        for job, end in zip(instance.jobs, outcome.completion, strict=True)
        if job.arrival < outcome.slots
    ]


def rewards(
    instance: Instance, outcome: Outcome, k: float = 2, *, alpha: float = 0.0, normalize: bool = False
) -> list[float]:
    """Reward per slot: -(sum of age^k - (age - 1)^k over arrived unfinished jobs) - alpha S(t)."""
    scale = sum(length(job) ** k for job in instance.jobs) if normalize else 1.0
    result = []
    for t, cost in enumerate(switching_cost(instance, outcome), start=1):
        charge = 0.0
        for job, end in zip(instance.jobs, outcome.completion, strict=True):
            if job.arrival < t and (end is None or t <= end):
                age = t - job.arrival
                charge += age**k - (age - 1) ** k
        result.append(-(charge + alpha * cost) / scale)
    return result


def fractional_flowtime(
    arrival: int, processing: float, rates: Sequence[float | Fraction], k: int = 1
) -> Fraction:
    """Eq. 5 for one job, of its rates y in the slots arrival + 1, arrival + 2, ..."""
    return sum(
        (
            (Fraction(age**k) / Fraction(processing) + Fraction(processing) ** (k - 1)) * Fraction(y)
            for age, y in enumerate(rates, start=1)
        ),
        Fraction(0),
    )


def regret_curve(instance: Instance, outcome: Outcome, k: float = 2) -> list[float]:
    """Eq. 23 for T = 1, 2, ...: as the benchmark of Eq. 25 is y* = 0, the cost of the algorithm itself."""
    cluster = Cluster(instance, None, k)
    total, curve = 0.0, []
    for t, used in enumerate(outcome.used, start=1):
        for j, amount in enumerate(used):
            if amount > 0:
                e = cluster.entry(j, t)
                total += e.weight * amount * e.tasks / e.unit
                if is_mapreduce(instance):
                    cluster.serve(j, amount)
        curve.append(total)
    return curve


def unfinished_curve(instance: Instance, outcome: Outcome) -> list[int]:
    """Work of the jobs with a < t that is left at the end of slot t [core-slots]."""
    done, curve = 0, []
    for t, used in enumerate(outcome.used, start=1):
        done += sum(used)
        curve.append(sum(volume(job) for job in instance.jobs if job.arrival < t) - done)
    return curve


def service_gaps(instance: Instance, outcome: Outcome) -> list[int]:
    """Longest run of slots without a core, of each job between arrival and completion (Corollary 1)."""
    gaps = []
    for j, job in enumerate(instance.jobs):
        end = outcome.completion[j] or outcome.slots
        longest = gap = 0
        for t in range(job.arrival + 1, end + 1):
            gap = 0 if sum(outcome.allocations[t - 1][j]) > 0 else gap + 1
            longest = max(longest, gap)
        gaps.append(longest)
    return gaps


def metrics(instance: Instance, outcome: Outcome, k: float = 2) -> dict[str, float]:
    """Return the numbers of the specification for one run.

    Norms are (sum f^k)^(1/k) over the jobs that arrived before the end. "idle" is granted to nobody, over all
    slots [core-slots]; "wasted" is granted and not used [core-slots]; "mean_waiting" is of f - p, if all jobs
    have arrived.
    """
    f = flowtimes(instance, outcome)
    counted = counts(instance, outcome)
    granted = sum(sum(map(sum, u)) for u in outcome.allocations)
    result = {
        "l1": float(sum(f)),
        "l2": math.sqrt(sum(x * x for x in f)),
        "lk": sum(x**k for x in f) ** (1.0 / k),
        "fractional": sum(outcome.fractional),
        "fractional_norm": sum(outcome.fractional) ** (1.0 / k),
        "makespan": float(outcome.slots),
        "finished": float(sum(end is not None for end in outcome.completion)),
        "preemptions": float(sum(counted.preemptions)),
        "migrations": float(sum(counted.migrations)),
        "resizes": float(sum(counted.resizes)),
        "splits": float(sum(counted.splits)),
        "switching_cost": sum(switching_cost(instance, outcome)),
        "idle": float(sum(instance.cpu) * outcome.slots - granted),
        "wasted": float(granted - sum(map(sum, outcome.used))),
        "longest_gap": float(max(service_gaps(instance, outcome))),
        "mean_waiting": sum(x - length(job) for x, job in zip(f, instance.jobs, strict=False)) / len(f)
        if len(f) == len(instance.jobs)
        else math.nan,
    }
    return result
