"""Jobs over time in plain Python: OnTaPRA and its rivals, the MAR test and DRC (sections 5 and 6.2.3).

With fractions and whole numbers instants that coincide do so exactly. With floats:

* A server whose unreserved capacity is at most CRUMB of its capacity has none left (else rounding would leave
  crumbs of capacity, and plans with absurd but finite completion times).
* A task that would complete within INSTANT * max(1, t) of another event at t completes at t.

What the paper leaves open is settled as in the environment:

* A planning round has a number for every job that waits then. At a tick it is the number of earlier ticks at
  which the job waited (0, 1, ...); between ticks it counts down over the job's rounds between ticks (-1, -2,
  ...). Ticks count whether or not the scheduler acts at them.
* FCFS, SLF and LLF with MAR: the test is made before each job, and its failure ends the pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from schedgym.papers.exact import quotient
from schedgym.papers.shi2017.model.one_job import (
    PLANNERS,
    Limit,
    Number,
    Plan,
    Planner,
    SingleJob,
    job_on,
    tolerance,
    total,
)

INSTANT = 1e-9
CRUMB = 1e-9
TENTH = Fraction(1, 10)

SCHEDULERS = ("ontapra", "fcfs", "slf", "llf")


class Job(NamedTuple):
    """A job that arrives at some instant; its fields are those of a SingleJob."""

    arrival: Number
    load: tuple[Number, ...]
    efficiency: tuple[tuple[Number, ...], ...]
    power: tuple[Number, ...] = ()

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
        return total(alpha * quotient(load, max(row)) for alpha, load, row in rows)

    @property
    def alphas(self) -> tuple[Number, ...]:
        """Power of each task per vCPU."""
        return self.power or (1,) * len(self.load)


@dataclass(frozen=True)
class Workload:
    """Jobs, servers and limits; ``energy_cap_ratio`` replaces the draws of E_MAX if given."""

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
    """A task at work, with its vCPU of the plan (base) and by DRC (extra)."""

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


class Interval(NamedTuple):
    """The time between two events: what runs, as it is at the end, and how many jobs are in the system."""

    begin: Number
    end: Number
    running: tuple[Running, ...]
    in_system: int


@dataclass
class Outcome:
    """What happened in a run.

    Attributes:
        launch, finish: instant of each job; None if it never was launched or finished.
        task_finish: instants by job and task.
        charged: time from arrival to the end of the job, or to the end of the run; 0 for jobs that arrive
            after it.
        committed: energy of each job's placement; 0 if it never was launched.
        consumed: vCPU-seconds of each job.
        launches: in order.
        intervals: in order.
        failures: number of (job, round) pairs in which planning failed.
        granted: jobs planned with their E_min because the cap was below it.
        end: of the run.
    """

    launch: list[Number | None]
    finish: list[Number | None]
    task_finish: list[list[Number | None]]
    committed: list[Number]
    consumed: list[Number]
    charged: list[Number] = field(default_factory=list)
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


def residual_shares(capacity: Number, base: Sequence[Number], leq: Sequence[Number]) -> list[Number]:
    """Run DRC (Algorithm 5) on a server: share what its tasks leave in proportion to equivalent loads."""
    left = capacity - total(base)
    if not left > 0:
        return [0] * len(base)
    whole = total(leq)
    return [left * part / whole for part in leq]


def _same_instant(a: Number, b: Number) -> bool:
    return max(a - b, b - a) <= tolerance(a - b, INSTANT) * max(1, b)


@dataclass
class Simulation:
    """An online run: parameters and state.

    Attributes:
        workload: jobs, servers, limits.
        scheduler: "ontapra", "slf", "llf" (these act at ticks 0, delta_t, ...) or "fcfs" (acts at arrivals
            and task completions; ticks only number its draws).
        planner: plans single jobs.
        drc: True if residual capacity is distributed.
        mar: True if the MAR test is made; None: for "ontapra" only.
        max_percent: its threshold.
        delta_t: time between ticks.
        draw: U(job, number of the round) in [0, 1), from which E_MAX = (1 + 0.1 U) energy at efficiency 1.
        max_time: the run ends here at the latest, with completions at this instant but no launch.
        clock: now.
        ticks: number of ticks so far at which the scheduler acts.
        to_come: jobs that have not arrived, in order of arrival.
        waiting: jobs that are not launched.
        running: tasks at work.
        between: of each job, the rounds between ticks in which it has waited, this one included.
        outcome: what has happened.
    """

    workload: Workload
    scheduler: str = "ontapra"
    planner: Planner = PLANNERS["tapra-fast"]
    drc: bool = True
    mar: bool | None = None
    max_percent: Number = 0.3
    delta_t: Number = 10
    draw: Callable[[int, int], float] = lambda job, number: 0.5
    max_time: Number = 100_000
    clock: Number = field(default=0, init=False)
    ticks: int = field(default=0, init=False)
    to_come: list[int] = field(init=False)
    waiting: list[int] = field(default_factory=list, init=False)
    running: list[Running] = field(default_factory=list, init=False)
    between: list[int] = field(init=False)
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing launched."""
        if self.scheduler not in SCHEDULERS:
            raise ValueError(self.scheduler)
        jobs = self.workload.jobs
        n = len(jobs)
        self.to_come = sorted(range(n), key=lambda job: (jobs[job].arrival, job))
        self.between = [0] * n
        never: list[list[Number | None]] = [[None] * len(job.load) for job in jobs]
        self.outcome = Outcome([None] * n, [None] * n, never, [0] * n, [0] * n)

    def run(self) -> Outcome:
        """Run the jobs to the end."""
        finish = self.outcome.finish
        while None in finish:
            now = self.next_event()
            if now > self.max_time:
                self.advance(self.max_time)
                break
            self.go_to(now)
        self.outcome.end = self.clock
        for job, instant in zip(self.workload.jobs, finish, strict=True):
            until: Number = self.clock if instant is None else instant
            self.outcome.charged.append(until - job.arrival if until > job.arrival else 0)
        return self.outcome

    def next_event(self) -> Number:
        """Return the instant of the next arrival, tick or completion."""
        exact: Number = math.inf
        if self.to_come:
            exact = min(exact, self.workload.jobs[self.to_come[0]].arrival)
        if self.scheduler != "fcfs":
            exact = min(exact, self.ticks * self.delta_t)
        now = min([exact, *map(self.end, self.running)])
        return exact if exact < math.inf and _same_instant(now, exact) else now

    def end(self, task: Running) -> Number:
        """Return when a task would complete at its present speed."""
        return self.clock + task.remaining / task.speed

    def go_to(self, now: Number) -> None:
        """Let an instant happen: arrivals, completions, scheduling, distribution of residual capacity."""
        completed = [
            task
            for task, end in zip(self.running, map(self.end, self.running), strict=True)
            if end <= now or _same_instant(end, now)
        ]
        self.advance(now)
        arrived = [job for job in self.to_come if self.workload.jobs[job].arrival <= now]
        self.to_come = self.to_come[len(arrived) :]
        self.waiting.extend(arrived)
        self.complete(completed)
        at_tick = self.scheduler != "fcfs" and self.ticks * self.delta_t == now
        self.ticks += at_tick
        acts = at_tick if self.scheduler != "fcfs" else bool(arrived or completed)
        if acts and now < self.max_time:
            self.schedule()
        self.distribute()

    def advance(self, now: Number) -> None:
        """Let the running tasks work until an instant."""
        if now == self.clock:
            return
        jobs, finish = self.workload.jobs, self.outcome.finish
        present = sum(job.arrival < now and end is None for job, end in zip(jobs, finish, strict=True))
        for task in self.running:
            work = task.speed * (now - self.clock)
            task.remaining = task.remaining - work
            self.outcome.consumed[task.job] = self.outcome.consumed[task.job] + work
        running = tuple(replace(task) for task in self.running)  # copies
        self.outcome.intervals.append(Interval(self.clock, now, running, present))
        self.clock = now

    def complete(self, tasks: list[Running]) -> None:
        """Record completions at the present instant."""
        for task in tasks:
            self.running.remove(task)
            finished = self.outcome.task_finish[task.job]
            finished[task.task] = self.clock
            if None not in finished:
                self.outcome.finish[task.job] = self.clock

    def distribute(self) -> None:
        """Run DRC on every server, from base allocations alone (which comes to the same)."""
        for j, capacity in enumerate(self.workload.capacity):
            here = [task for task in self.running if task.server == j]
            extras = residual_shares(capacity, [t.base for t in here], [t.leq for t in here])
            for task, extra in zip(here, extras, strict=True):
                task.extra = extra if self.drc else 0

    def schedule(self) -> None:
        """Run one planning round over the waiting jobs."""
        if self.tick() is None:
            for job in self.waiting:
                self.between[job] += 1
        if self.scheduler == "ontapra":
            self.shortest_first()
        else:
            self.one_pass()

    def shortest_first(self) -> None:
        """Run Algorithm 4: launch the job of smallest completion time, again and again."""
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
        """Run FCFS, SLF or LLF: each waiting job once, in order."""
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

    def passes_mar(self) -> bool:
        """Return True if enough is available to plan another job (Eq. 56)."""
        if not (self.scheduler == "ontapra" if self.mar is None else self.mar):
            return True
        return total(self.available()) > self.max_percent * total(self.workload.capacity)

    def available(self) -> tuple[Number, ...]:
        """Return the capacity that base allocations leave (extras are recollected when scheduling)."""
        result: list[Number] = []
        for j, capacity in enumerate(self.workload.capacity):
            left = capacity - total(task.base for task in self.running if task.server == j)
            result.append(left if left > tolerance(left, CRUMB) * capacity else 0)
        return tuple(result)

    def tick(self) -> int | None:
        """Return the number of the tick that is now, or None between ticks."""
        nearest = round(self.clock / self.delta_t)
        return nearest if _same_instant(self.clock, nearest * self.delta_t) else None

    def round_number(self, job: int) -> int:
        """Return the number of the present round for a waiting job."""
        now = self.tick()
        if now is None:
            return -self.between[job]
        return sum(1 for n in range(now) if n * self.delta_t >= self.workload.jobs[job].arrival)

    def energy_cap(self, job: int) -> Number:
        """Return E_MAX of a job in its present round; its E_min is granted if the cap would be below it."""
        load, least = self.workload.jobs[job].ideal_energy, self.workload.jobs[job].least_energy
        ratio = self.workload.energy_cap_ratio
        if least > (1 + TENTH if ratio is None else ratio) * load:
            self.outcome.granted.add(job)
            return least
        return (1 + TENTH * self.draw(job, self.round_number(job)) if ratio is None else ratio) * load

    def plan(self, job: int) -> Launch | None:
        """Plan a job on what is available; None if that fails."""
        own, available = self.workload.jobs[job], self.available()
        cap = self.energy_cap(job)
        instance = job_on(self.workload.limits, available, own.load, own.efficiency, cap, own.power)
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
