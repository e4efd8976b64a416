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
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.jit import pure_kernel
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.solvers.placement import Membership, PlanScratch, largest_capacity, most_vcpu
from schedgym.solvers.planning import Planner

KNOWS = ("load", "efficiency", "power")
#: tried by a tuning, where there is the MAR test
CANDIDATES = {"max_percent": (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)}
SLACK = 1e-9  # by which a bound must exceed a completion time, for rounding


@pure_kernel
def measure_capacity(membership: Membership, limits: Floats, scratch: PlanScratch, most: Floats) -> float:
    """Set the most vCPU that a job with 0, 1, ... tasks can have, [M + 1], and return the largest.

    A task can have what its server's groups allow there at most, and n tasks the n largest of these.
    """
    whole = largest_capacity(membership, limits, scratch)
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
        self.begin_round()

    def begin_round(self) -> None:
        """Forget what is known of a round: of its iterations, and of the jobs, by their numbers."""
        self.history: list[Floats] = []  # the limits in each iteration
        self.passed: dict[int, int] = {}  # earlier iterations under which a job is known not to have failed
        self.out: set[int] = set()  # the jobs that have failed

    def prepare(self, observation: dict[str, Any]) -> None:
        """Make the work space of an episode."""
        self.planner.prepare(observation["groups"], self.tasks)
        self.capacity = np.zeros(1 + observation["groups"].shape[1])
        self.placement = np.zeros(self.tasks, dtype=np.int32)  # of the job chosen
        self.total = float(observation["capacity"].sum())
        self.ready = True

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
                self.begin_round()
            row = self.choose(observation, count)
            self.iteration += 1
        self.ended = row < 0
        if self.view == "pick":
            return row if row >= 0 else self.window
        used = 0
        if row >= 0:
            used = int(observation["tasks"][row])
            self.action[1 : 1 + used, 0] = self.placement[:used]
            if self.planner.equal:  # the job of the last plan; without vCPU Eq. 16 sizes the tasks
                self.action[1 : 1 + used, 1] = self.planner.vcpu[:used]
        self.action[0, 0] = row if row >= 0 else self.window
        self.action[1 + used : 1 + self.shown] = 0.0
        self.shown = used
        return self.action

    def choose(self, observation: dict[str, Any], count: int) -> int:
        """Return the row of the job to launch, with its ``placement``; -1 if there is none."""
        if self.rule == "ontapra":
            return self.choose_shortest(observation, count)
        order = np.arange(count)
        if self.rule == "random":
            order = self.rng.permutation(count)
        elif self.rule != "fcfs":
            load = observation["total_load"][:count]
            order = np.argsort(load if self.rule == "slf" else -load, kind="stable")
        for row in order.tolist():
            if not self.has_failed(observation, row):
                self.out.add(int(observation["job"][row]))
                if self.plan(observation, row, observation["limits"], self.iteration) < math.inf:
                    return row
        return -1

    def choose_shortest(self, observation: dict[str, Any], count: int) -> int:
        """Do one iteration of OnTaPRA; returns as :meth:`choose`."""
        iteration, limits, planner = self.iteration, observation["limits"], self.planner
        self.history.append(limits.copy())
        if measure_capacity(planner.membership, limits, planner.scratch, self.capacity) <= 0.0:
            return -1
        least = observation.get("least_work", observation["least_energy"])  # the same where all power is 1
        tasks = np.minimum(observation["tasks"][:count], len(self.capacity) - 1)
        bounds = least[:count] / self.capacity[tasks]
        best, chosen = math.inf, -1
        order = np.argsort(bounds, kind="stable").tolist()
        # asked of all at once: the iteration in which a job is first seen counts, planned or not
        for row in [r for r in order if not self.has_failed(observation, r)]:
            job = int(observation["job"][row])
            if bounds[row] > best * (1.0 + SLACK):
                break
            jct = 0.0
            while jct < math.inf and self.passed[job] < iteration:
                earlier = self.passed[job]
                jct = self.plan(observation, row, self.history[earlier], earlier, keep=False)
                self.passed[job] += 1
            if jct < math.inf:
                jct = self.plan(observation, row, limits, iteration, keep=False)
                self.passed[job] = iteration + 1
            if jct == math.inf:
                self.out.add(job)
            elif jct < best or (jct == best and row < chosen):
                best, chosen = jct, row
                used = int(observation["tasks"][row])
                self.placement[:used] = planner.placement[:used]
        return chosen

    def has_failed(self, observation: dict[str, Any], row: int) -> bool:
        """Return True if a row's job has left the round; note the iteration in which it is first seen."""
        job = int(observation["job"][row])
        self.passed.setdefault(job, self.iteration)
        return job in self.out or bool(observation["failed"][row])

    def plan(
        self, observation: dict[str, Any], row: int, limits: Floats, iteration: int, keep: bool = True
    ) -> float:
        """Plan the job in a row, and ``keep`` its placement; return its completion time, or inf."""
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
            self.placement[:tasks] = self.planner.placement[:tasks]
        return float(jct)
