"""LaunchPolicy: decides which waiting job is launched next, and plans it.

A policy is asked again after every launch, so that each call is one iteration of the paper's loops. Between
the calls of a round it must remember which jobs have failed.

OnTaPRA plans all waiting jobs in every iteration, and launches the one that would complete first. Most of
these plans are left out here: a job takes at least its least work over the vCPU that a job of so many tasks
may have, and if that is more than the best completion time so far, its plan does not matter. It only matters
whether planning the job would have failed, so that it would have left the round: if a later iteration of the
round has to plan the job after all, it is first planned on what was available in the earlier ones. So every
decision is that of the full loop.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import SHARED, Bytes, Floats, Integers, Integers32
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.policy import Interface
from schedgym.core.tables import accessor, pack
from schedgym.errors import InvalidParameter
from schedgym.solvers.placement import (
    Job,
    Membership,
    PlanScratch,
    affords,
    largest_capacity,
    most_vcpu,
    plan_is_finite,
    tapra_fast,
)
from schedgym.solvers.planning import Planner

KNOWS = ("load", "efficiency", "power")
#: tried by a tuning, where there is the MAR test
CANDIDATES = {"max_percent": (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)}
SLACK = 1e-9  # by which a bound must exceed a completion time, for rounding


class Memory(NamedTuple):
    """State of a round: what is known of each job, by its number, and of each iteration."""

    stamp: Annotated[Integers, "job"]  # the round that the next two are about
    passed: Annotated[Integers, "job"]  # earlier iterations under which it is known not to have failed
    out: Annotated[Integers, "job"]  # 1: has failed
    history: Annotated[Floats, "iteration", "group"]  # the limits in each iteration
    capacity: Annotated[Floats, "server+1"]  # most vCPU of a job with so many tasks (or M and more)
    order: Annotated[Integers, "row"]  # rows in the order of the policy
    placement: Annotated[Integers32, 2, "task"]  # of the job chosen, of the one being planned


class Planning(NamedTuple):
    """Arrays and scratch space of one decision."""

    membership: Annotated[Membership, SHARED]
    scratch: Annotated[PlanScratch, SHARED]
    memory: Annotated[Memory, SHARED]


access = accessor(Planning)


@helper
def measure_capacity(membership: Membership, scratch: PlanScratch, memory: Memory, limits: Floats) -> float:
    """Set the memory's capacities, and return the largest.

    A task can have what its server's groups allow there at most, and n tasks the n largest of these.
    """
    whole = largest_capacity(membership, limits, scratch)
    most = memory.capacity
    most[0] = 0.0
    for j in range(most.shape[0] - 1):
        least = most_vcpu(j, membership, limits)
        x = j + 1
        while x > 1 and most[x - 1] < least:
            most[x] = most[x - 1]
            x -= 1
        most[x] = least
    for x in range(1, most.shape[0]):
        most[x] = min(most[x - 1] + most[x], whole)
    return whole


@pure_kernel
def set_capacity(table: Any, limits: Floats) -> float:
    """Set the memory's capacities, and return the largest."""
    env = access(table, table, 0)
    membership, scratch, memory = env.membership, env.scratch, env.memory
    return measure_capacity(membership, scratch, memory, limits)


@helper
def is_out(memory: Memory, round: int, iteration: int, job: int) -> Any:
    """Return a true value if a job has left the round; a job that is seen for the first time has not."""
    if memory.stamp[job] != round:
        memory.stamp[job] = round
        memory.passed[job] = iteration
        memory.out[job] = 0
    return memory.out[job] != 0


class Waiting(NamedTuple):
    """The waiting jobs, in fields named as in the observation, which shows them so; W rows, T tasks."""

    job: Integers  # [W] number of each job
    first_task: Integers  # [W] row of its first task
    tasks: Integers  # [W] how many it has
    least_energy: Floats  # [W]
    least_work: Floats  # [W]
    energy_cap: Floats  # [W]
    failed: Bytes  # [W] whether it has left the round
    load: Floats  # [T]
    efficiency: Floats  # [T, M]
    power: Floats  # [T] per vCPU
    limits: Floats  # [R] now


@helper
def job_of(waiting: Waiting, r: int, env: Planning, limits: Floats) -> Job:
    """Return the job in a row as the planners take it."""
    return Job(
        waiting.first_task[r],
        waiting.tasks[r],
        waiting.load,
        waiting.efficiency,
        env.membership,
        limits,
        waiting.energy_cap[r],
        waiting.power,
    )


@pure_kernel
def shortest_job(table: Any, round: int, iteration: int, count: int, waiting: Waiting) -> int:
    """Do one iteration of OnTaPRA with TaPRA-fast.

    Args:
        table: packs Membership, PlanScratch and Memory.
        round: number of the round.
        iteration: number of the iteration in it; the memory holds the limits of the earlier ones.
        count: visible waiting jobs.
        waiting: these jobs.

    Returns:
        The row of the job with the smallest completion time (ties: the first), whose placement is in the
            memory; -1 if all have failed.
    """
    env = access(table, table, 0)
    membership, scratch, memory = env.membership, env.scratch, env.memory
    for k in range(waiting.limits.shape[0]):
        memory.history[iteration, k] = waiting.limits[k]
    if measure_capacity(membership, scratch, memory, waiting.limits) <= 0.0:
        return -1
    most = memory.capacity.shape[0] - 1
    start = -1  # the one with the smallest bound first: it rules out most others
    least_bound = math.inf
    for r in range(count):
        if waiting.failed[r] or is_out(memory, round, iteration, waiting.job[r]):
            continue
        if not affords(waiting.least_energy[r], waiting.energy_cap[r]):
            memory.out[waiting.job[r]] = 1
            continue
        bound = waiting.least_work[r] / memory.capacity[min(waiting.tasks[r], most)]
        if bound < least_bound:
            least_bound = bound
            start = r
    best = math.inf
    chosen = -1
    for turn in range(-1, count):
        r = start if turn < 0 else turn
        if r < 0 or turn == start or waiting.failed[r] or memory.out[waiting.job[r]]:
            continue
        if waiting.least_work[r] > best * (1.0 + SLACK) * memory.capacity[min(waiting.tasks[r], most)]:
            continue
        job = waiting.job[r]
        now = memory.placement[1]
        lasts = True
        while lasts and memory.passed[job] < iteration:
            lasts = plan_is_finite(job_of(waiting, r, env, memory.history[memory.passed[job]]), now, scratch)
            memory.passed[job] += 1
        jct = math.inf
        if lasts:
            jct = tapra_fast(job_of(waiting, r, env, waiting.limits), now, scratch)
            memory.passed[job] = iteration + 1
        if jct == math.inf:
            memory.out[job] = 1
        elif jct < best or (jct == best and r < chosen):
            best = jct
            chosen = r
            for t in range(waiting.tasks[r]):
                memory.placement[0, t] = now[t]
    return chosen


@pure_kernel
def first_job(table: Any, round: int, count: int, waiting: Waiting) -> int:
    """Return the row of the first job in the memory's order that TaPRA-fast can plan; -1 if there is none.

    Every job has one turn in a round. Arguments as in :func:`shortest_job`.
    """
    env = access(table, table, 0)
    scratch, memory = env.scratch, env.memory
    for x in range(count):
        r = memory.order[x]
        if waiting.failed[r] or is_out(memory, round, 0, waiting.job[r]):
            continue
        memory.out[waiting.job[r]] = 1
        planned = job_of(waiting, r, env, waiting.limits)
        if tapra_fast(planned, memory.placement[0], scratch) < math.inf:
            return r
    return -1


class LaunchPolicy:
    """Base of the parallel-jct policies.

    With a window smaller than the number of waiting jobs, a policy sees and launches only the first ones:
    evaluate with ``window="all"``.

    Args:
        rule: "ontapra" (in every iteration the job that would complete first), or the order of one pass:
            "fcfs", "slf", "llf" or "random".
        planner: of single jobs, one of :data:`~schedgym.solvers.planning.PLANNERS`.
        mar: launch jobs only while more than max_percent of all vCPU is available.
        max_percent: threshold of the MAR test, in [0, 1].
        allocation: how the planner sizes tasks, one of :data:`~schedgym.solvers.planning.ALLOCATIONS`; with
            "equal-share" an action carries their vCPU, which only the orders of one pass can.
    """

    def __init__(
        self, rule: str, planner: str, mar: bool, max_percent: float, allocation: str = "optra"
    ) -> None:
        self.rule = rule
        self.planner = Planner(planner, allocation)
        if not isinstance(mar, bool):
            raise InvalidParameter(f"mar: must be True or False, got {mar!r}")
        if isinstance(max_percent, bool) or not isinstance(max_percent, (int, float)):
            raise InvalidParameter(f"max_percent: must be a number, got {max_percent!r}")
        if not 0.0 <= max_percent <= 1.0:
            raise InvalidParameter(f"max_percent: must be in [0, 1], got {max_percent!r}")
        self.mar, self.max_percent = mar, float(max_percent)
        self.fast = planner == "tapra-fast"
        self.views = ("plan", "pick") if self.fast else ("plan",)
        self.rounds = ("events", "all") if rule == "fcfs" else ("ticks", "all")

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        with_planner = "" if self.fast else f" with planner={self.planner.name!r}"
        interface.check(self.rule + with_planner, self.views)
        if interface.parameters["rounds"] not in self.rounds:
            wanted = " or ".join(repr(rounds) for rounds in self.rounds)
            raise InvalidParameter(
                f"{self.rule} decides at {'arrivals and completions' if self.rule == 'fcfs' else 'ticks'}: "
                f"needs rounds={wanted}, the environment has {interface.parameters['rounds']!r}"
            )
        if interface.view == "pick" and interface.parameters["planner"] != "tapra-fast":
            raise InvalidParameter(
                f"{self.rule} in view 'pick' needs planner='tapra-fast', the environment has "
                f"{interface.parameters['planner']!r}"
            )
        self.rng = rng
        self.seed = int(rng.integers(2**63)) if self.planner.genetic else 0
        self.view = interface.view
        self.window, self.tasks = interface.sizes["window"], interface.sizes["tasks"]
        self.action = np.zeros((1 + self.tasks if self.view == "plan" else 0, 2))
        self.shown = 0
        self.clock = -1.0
        self.round = self.iteration = 0
        self.ended = True
        self.ready = False
        self.table: Any = None

    def prepare(self, observation: dict[str, Any]) -> None:
        """Make the work space of an episode."""
        self.planner.prepare(observation["groups"], self.tasks)
        self.memory = Memory(
            stamp=np.zeros(0, dtype=np.int64),
            passed=np.zeros(0, dtype=np.int64),
            out=np.zeros(0, dtype=np.int64),
            history=np.zeros((8, len(observation["limits"]))),
            capacity=np.zeros(1 + observation["groups"].shape[1]),
            order=np.zeros(self.window, dtype=np.int64),
            placement=np.zeros((2, self.tasks), dtype=np.int32),
        )
        self.unit = np.ones(len(observation["load"]))
        self.total = float(observation["capacity"].sum())
        self.ready = True

    def show(self, observation: dict[str, Any]) -> Waiting:
        """Return the waiting jobs of an observation, which shows power and work only if they vary."""
        known = {"power": self.unit, "least_work": observation["least_energy"], **observation}
        return Waiting(*(known[name] for name in Waiting._fields))

    def reserve(self, jobs: int) -> None:
        """Grow the memory to hold that many jobs and one iteration more."""
        memory = self.memory
        more: dict[str, Any] = {}
        if jobs > len(memory.stamp):
            for name in ("stamp", "passed", "out"):
                more[name] = np.zeros(max(jobs, 2 * len(memory.stamp), 64), dtype=np.int64)
                more[name][: len(memory.stamp)] = getattr(memory, name)
        if self.iteration == len(memory.history):
            more["history"] = np.concatenate([memory.history, np.zeros_like(memory.history)])
        if more or self.table is None:
            self.memory = memory._replace(**more)
            self.table = pack(Planning(self.planner.membership, self.planner.scratch, self.memory))

    def acts(self, observation: dict[str, Any]) -> bool:
        """Return True if the policy decides at this instant and the MAR test is passed."""
        arrival, completion, tick = observation["event"].tolist()
        if not (arrival or completion if self.rule == "fcfs" else tick):
            return False
        return not self.mar or float(observation["available"].sum()) > self.max_percent * self.total

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the job to launch, planned, or the end of the round."""
        if not self.ready:
            self.prepare(observation)
        row = -1
        count = int(observation["waiting"][0] - observation["backlog"][0])
        if count and self.acts(observation):
            clock = float(observation["clock"][0])
            if self.ended or clock != self.clock:  # rounds that are not the policy's own do not count
                self.clock = clock
                self.round += 1
                self.iteration = 0
            self.reserve(1 + int(observation["job"][count - 1]))
            row = self.choose(observation, count)
            self.iteration += 1
        self.ended = row < 0
        if self.view == "pick":
            return row if row >= 0 else self.window
        used = 0
        if row >= 0:
            used = int(observation["tasks"][row])
            self.action[1 : 1 + used, 0] = self.memory.placement[0, :used]
            if self.planner.equal:  # the job of the last plan; without vCPU Eq. 16 sizes the tasks
                self.action[1 : 1 + used, 1] = self.planner.vcpu[:used]
        self.action[0, 0] = row if row >= 0 else self.window
        self.action[1 + used : 1 + self.shown] = 0.0
        self.shown = used
        return self.action

    def choose(self, observation: dict[str, Any], count: int) -> int:
        """Return the row of the job to launch, with its placement in the memory; -1 if there is none."""
        if self.rule == "ontapra":
            return self.choose_shortest(observation, count)
        order = self.memory.order[:count]
        if self.rule == "fcfs":
            order[:] = np.arange(count)
        elif self.rule == "random":
            order[:] = self.rng.permutation(count)
        else:
            load = observation["total_load"][:count]
            order[:] = np.argsort(load if self.rule == "slf" else -load, kind="stable")
        if self.fast:
            return first_job(self.table, self.round, count, self.show(observation))
        for row in order.tolist():
            if not observation["failed"][row] and not self.has_failed(observation, row):
                self.memory.out[observation["job"][row]] = 1
                if self.plan(observation, row, observation["limits"], self.iteration) < math.inf:
                    return row
        return -1

    def choose_shortest(self, observation: dict[str, Any], count: int) -> int:
        """Do one iteration of OnTaPRA; returns as :meth:`choose`."""
        if self.fast:
            return shortest_job(self.table, self.round, self.iteration, count, self.show(observation))
        memory, iteration = self.memory, self.iteration
        limits, least = observation["limits"], self.show(observation).least_work
        memory.history[iteration] = limits
        if set_capacity(self.table, limits) <= 0.0:
            return -1
        tasks = np.minimum(observation["tasks"][:count], len(memory.capacity) - 1)
        bounds = least[:count] / memory.capacity[tasks]
        best, chosen = math.inf, -1
        order = np.argsort(bounds, kind="stable").tolist()
        # asked of all at once: the iteration in which a job is first seen counts, planned or not
        for row in [r for r in order if not (observation["failed"][r] or self.has_failed(observation, r))]:
            job = int(observation["job"][row])
            if bounds[row] > best * (1.0 + SLACK):
                break
            jct = 0.0
            while jct < math.inf and memory.passed[job] < iteration:
                earlier = int(memory.passed[job])
                jct = self.plan(observation, row, memory.history[earlier], earlier, keep=False)
                memory.passed[job] += 1
            if jct < math.inf:
                jct = self.plan(observation, row, limits, iteration, keep=False)
                memory.passed[job] = iteration + 1
            if jct == math.inf:
                memory.out[job] = 1
            elif jct < best or (jct == best and row < chosen):
                best, chosen = jct, row
                used = int(observation["tasks"][row])
                memory.placement[0, :used] = self.planner.placement[:used]
        return chosen

    def has_failed(self, observation: dict[str, Any], row: int) -> bool:
        """Return True if the job in a row has left the round."""
        memory, job = self.memory, int(observation["job"][row])
        if memory.stamp[job] != self.round:
            memory.stamp[job], memory.passed[job], memory.out[job] = self.round, self.iteration, 0
        return bool(memory.out[job])

    def plan(
        self, observation: dict[str, Any], row: int, limits: Floats, iteration: int, keep: bool = True
    ) -> float:
        """Plan the job in a row, into the memory if ``keep``; return its completion time, or inf."""
        tasks = int(observation["tasks"][row])
        self.planner.power = observation.get("power")
        seed = 0
        if self.planner.genetic:  # the same whenever the same plan is asked for
            key = (self.seed, self.round, iteration, int(observation["job"][row]))
            seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
        jct = self.planner(
            int(observation["first_task"][row]),
            tasks,
            observation["load"],
            observation["efficiency"],
            limits,
            float(observation["energy_cap"][row]),
            seed,
        )
        if keep:
            self.memory.placement[0, :tasks] = self.planner.placement[:tasks]
        return float(jct)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"table": None} if "table" in self.__dict__ else {})
