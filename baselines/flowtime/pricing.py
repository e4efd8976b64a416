"""PricingPolicy: the OCORP family, which charges each job a price (lambda) that it learns from its service.

The price is per job and phase and is learned from observations alone: what a job was served in a slot is
the change of its remaining work.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from schedgym.baselines.flowtime.policy import FlowtimePolicy, Known, unpack_seen
from schedgym.core.jit import F4_2, F8_1, I8_1, I8_2, helper, pack, pure_kernel, unpacker
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.rules import (
    Scratch,
    Visible,
    allocate,
    cheapest_cores,
    make_scratch,
    memory_allocation,
    order_by,
    plus_allocation,
    set_coefficients,
    spread,
)
from schedgym.solvers.fixed_point import variable
from schedgym.solvers.knapsack import KnapsackScratch, make_knapsack_scratch
from schedgym.solvers.transport import TransportScratch, make_transport_scratch

__all__ = ["PricingPolicy", "check_number"]

PLAIN, PLUS, PLUS_BY_JOB, MEMORY = range(4)  # how the prices become cores
NUMBER, SEEN, EQ27 = range(3)  # where gamma comes from
PROCESSING, WEIGHT = 1, 2  # how lambda starts, other than at a number
MOST_CELLS = 1 << 27  # of the knapsack's table


class Options(NamedTuple):
    """What stays the same in an episode."""

    flags: I8_1  # [9] method, how, phases, estimation, literal, backfill, sticky, gamma, lambda0
    numbers: F8_1  # [4] k, alpha, gamma, lambda0, where they are numbers
    cpu: I8_1  # [M]
    memory: I8_1  # [M] GB


class Learned(NamedTuple):
    """What a policy remembers of the jobs that it saw in the slot before, in their order."""

    state: I8_1  # [2] how many jobs, the slot
    numbers: F8_1  # [3] gamma of the slot; of the jobs seen: max(a + 2p, 2a), work [core-slots]
    job: I8_1  # [rows]
    phase: I8_1  # [rows]
    price: F8_1  # [rows] lambda in that slot
    remaining: F8_1  # [rows] core-slots
    slots_left: F8_1  # [rows]


class Decision(NamedTuple):
    """What has been decided. W window rows, of which one array has none."""

    coefficient: F8_1  # [rows] weight - lambda
    omega: F8_1  # [rows] the same per core
    granted: I8_2  # [W, M]
    scores: F4_2  # [W, 1]
    shown: I8_1  # [1] rows of the action that are set


unpack = unpacker(Scratch, TransportScratch, KnapsackScratch, Options, Learned, Decision)


@helper
def simplest_fraction(x: float, error: float) -> float:
    """The fraction with the least denominator within an error of x >= 0, as a float.

    A job's service u/d is the difference of two rounded numbers of slots: this undoes the rounding.
    """
    top = 1.0
    bottom = 0.0
    old_top = 0.0
    old_bottom = 1.0
    rest = x
    for _ in range(20):
        whole = math.floor(rest)
        top, old_top = whole * top + old_top, top
        bottom, old_bottom = whole * bottom + old_bottom, bottom
        if abs(top - x * bottom) <= error * bottom:
            return top / bottom
        rest = 1.0 / (rest - whole)
    return x


@helper
def _length(phases: Any, r: int, known: Known, rows: Visible) -> int:
    """Slots that a job takes at least."""
    if not phases:
        return known.processing[r]
    length = known.phase_processing[r, 0]
    if rows.tasks[r, 1] > 0:
        length += known.phase_processing[r, 1]
    return length


@pure_kernel
def learn(
    n: int,
    slot: int,
    eq27: float,
    known: Known,
    rows: Visible,
    options: Options,
    learned: Learned,
) -> None:
    """Update the prices of the last slot's jobs by their service; those of new jobs and phases begin."""
    phases = options.flags[2] != 0
    estimation = options.flags[3] != 0
    norm = options.numbers[0]
    before = learned.state[0]
    step = float(learned.state[1]) ** (norm + 0.5)
    gamma = learned.numbers[0]
    job = known.job
    arrival = known.arrival
    s = 0
    for r in range(n):
        while s < before and learned.job[s] < job[r]:
            s += 1
        met = s < before and learned.job[s] == job[r]
        z = 0
        if phases:
            z = rows.phase[r]
        length = _length(phases, r, known, rows)
        if met and learned.phase[s] == z:
            target = float(length)
            tasks = 1
            if phases:
                tasks = rows.tasks[r, z]
                work = 0
                for y in range(2):
                    work += rows.tasks[r, y] * known.phase_processing[r, y]
                target = float(work)
            if estimation:
                served = simplest_fraction(
                    learned.slots_left[s] - rows.slots_left[r], 1e-15 * (1.0 + learned.slots_left[s])
                )
            else:
                unit = rows.phase_demand[r, z] * tasks if phases else rows.demand[r]
                served = (learned.remaining[s] - rows.remaining[r]) / unit
            wanted = target / (tasks * max(gamma - arrival[r], 1.0))
            price = max(0.0, learned.price[s] + step * (wanted - served))
        elif options.flags[8] == PROCESSING:
            price = float(slot) ** (norm + 0.5) * length
        elif options.flags[8] == WEIGHT:
            price = math.nan  # set_coefficients puts the weight
        else:
            price = options.numbers[3]
        if not met:
            end = float(max(arrival[r] + 2 * length, 2 * arrival[r]))
            learned.numbers[1] = max(learned.numbers[1], end)
            learned.numbers[2] += rows.volume[r]
        learned.job[r] = job[r]  # r <= s: jobs only leave
        learned.phase[r] = z
        learned.price[r] = price
        learned.remaining[r] = rows.remaining[r]
        learned.slots_left[r] = rows.slots_left[r]
    learned.state[0] = n
    learned.state[1] = slot
    if options.flags[7] == SEEN:
        cores = 0
        for i in range(options.cpu.shape[0]):
            cores += options.cpu[i]
        learned.numbers[0] = max(learned.numbers[1], 4.0 * learned.numbers[2] / cores)
    elif options.flags[7] == EQ27:
        learned.numbers[0] = eq27
    else:
        learned.numbers[0] = options.numbers[2]


@pure_kernel
def decide(table: Any, seen: Any, n: int, slot: int, eq27: float) -> None:
    """Learn the prices, and decide on the first n jobs of an observation."""
    scratch, net, bag, options, learned, decision = unpack(table)
    rows, known = unpack_seen(seen)
    method = options.flags[0]
    how = options.flags[1]
    phases = options.flags[2] != 0
    literal = options.flags[4] != 0
    backfill = options.flags[5] != 0
    sticky = options.flags[6] != 0
    alpha = options.numbers[1]
    granted = decision.granted
    scores = decision.scores
    coefficient = decision.coefficient
    omega = decision.omega
    age = known.age
    learn(n, slot, eq27, known, rows, options, learned)
    set_coefficients(
        phases,
        n,
        options.numbers[0],
        age,
        known.processing,
        known.phase_processing,
        rows,
        learned.price,
        coefficient,
        omega,
    )
    if method == PLUS:
        plus_allocation(literal, n, alpha, coefficient, age, rows, options.cpu, net, granted)
    elif method == PLUS_BY_JOB:
        cheapest_cores(literal, n, alpha, coefficient, age, rows, options.cpu, scratch, scratch.cores)
        spread(how, n, scratch.cores, rows, options.cpu, scratch, net, granted)
    elif method == MEMORY:
        memory_allocation(
            literal, backfill, sticky, n, omega, rows, options.cpu, options.memory, scratch, net, bag, granted
        )
    else:
        size = variable(0)
        for r in range(n):
            if not literal or omega[r] < 0.0:
                scratch.order[size] = r
                size += 1
        order_by(scratch.order, omega, size)
        if scores.shape[0] > 0:
            for r in range(n):
                scores[r, 0] = -1.0
            for x in range(size):
                scores[scratch.order[x], 0] = 1.0 - x / scores.shape[0]
        else:
            allocate(how, n, size, rows, options.cpu, options.memory, scratch, net, granted)
    for r in range(n, decision.shown[0]):
        if scores.shape[0] > 0:
            scores[r, 0] = 0.0
        else:
            for i in range(granted.shape[1]):
                granted[r, i] = 0
    decision.shown[0] = n


def check_number(name: str, value: Any, others: tuple[str, ...], least: float) -> None:
    """Raise InvalidParameter unless an option is a number of at least ``least`` or one of the words."""
    if isinstance(value, str):
        good = value in others
    else:
        good = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and value >= least
        )
    if not good:
        words = "".join(f" or {word!r}" for word in others)
        raise InvalidParameter(f"{name}: must be a number from {least:g}{words}, got {value!r}")


class PricingPolicy(FlowtimePolicy):
    """Base of the OCORP family.

    Args:
        label: what to call it in an error.
        views: the action views that can express it.
        kinds: the kinds of jobs that it can schedule.
        packing: of :class:`FlowtimePolicy`.
        gamma: Gamma, by which all is hoped to be done [slots]: a number, "seen": Eq. 27 over the jobs that
            have arrived, or "eq27": over all jobs, which needs an environment with ``clairvoyant=True``.
        lambda0: the price of a job in its first slot: a number, "p": mu p, or "w": its weight.
        literal: serve only what lowers the objective.
    """

    def __init__(
        self,
        label: str,
        views: tuple[str, ...],
        kinds: tuple[str, ...],
        packing: str | None,
        gamma: float | str,
        lambda0: float | str,
        literal: bool,
    ) -> None:
        super().__init__(label, views, kinds, packing)
        check_number("gamma", gamma, ("seen", "eq27"), 0.0)
        check_number("lambda0", lambda0, ("p", "w"), 0.0)
        if not isinstance(literal, bool):
            raise InvalidParameter(f"literal: must be True or False, got {literal!r}")
        self.gamma, self.lambda0, self.literal = gamma, lambda0, literal
        self.method, self.alpha, self.backfill = PLAIN, 0.0, True

    def needs(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`FlowtimePolicy.needs`."""
        return super().needs(interface) | ({"clairvoyant": True} if self.gamma == "eq27" else {})

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        self.norm = float(interface.parameters["norm"])
        self.learned = self.remember(0)

    def remember(self, rows: int, old: Learned | None = None) -> Learned:
        """Room to remember ``rows`` jobs, with what was remembered before."""
        made = Learned(
            state=np.zeros(2, dtype=np.int64),
            numbers=np.zeros(3),
            job=np.zeros(rows, dtype=np.int64),
            phase=np.zeros(rows, dtype=np.int64),
            price=np.zeros(rows),
            remaining=np.zeros(rows),
            slots_left=np.zeros(rows),
        )
        for new, given in zip(made, old or (), strict=False):
            new[: len(given)] = given[: len(new)]
        return made

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """See :meth:`FlowtimePolicy.prepare`."""
        cpu, memory = self.capacities(observation)
        self.learned = self.remember(rows, self.learned)
        how = self.how(observation)
        gamma, lambda0 = self.gamma, self.lambda0
        flags = [
            self.method,
            how,
            self.kind == "mapreduce",
            self.estimation != "none",
            self.literal,
            self.backfill,
            self.sticky,
            {"seen": SEEN, "eq27": EQ27}.get(str(gamma), NUMBER),
            {"p": PROCESSING, "w": WEIGHT}.get(str(lambda0), 0),
        ]
        numbers = [
            self.norm,
            self.alpha,
            0.0 if isinstance(gamma, str) else float(gamma),
            0.0 if isinstance(lambda0, str) else float(lambda0),
        ]
        solves = self.method in (PLUS, MEMORY)
        items = min(rows, int(cpu.max())) if self.method == MEMORY else 0
        room = int(memory.max()) if self.method == MEMORY else 0
        if items * room > MOST_CELLS:
            raise InvalidParameter(
                f"{self.label}: {items} jobs on a server of {room} GB are too many for its knapsacks: give "
                "memory in larger units"
            )
        bundles = (
            make_scratch(rows, self.servers, memory=self.method == MEMORY),
            make_transport_scratch(rows, self.servers) if solves else self.network(observation, rows),
            make_knapsack_scratch(items, room),
            Options(np.array(flags, dtype=np.int64), np.array(numbers), cpu, memory),
            self.learned,
            Decision(np.zeros(rows), np.zeros(rows), self.granted, self.scores, self.shown),
        )
        return pack(*bundles), bundles

    def __call__(self, observation: dict[str, Any]) -> Any:
        """The decision, in the action of the environment's view."""
        count = int(observation["active"][0] - observation["backlog"][0])
        slot = int(observation["slot"][0])
        eq27 = float(observation["eq27"][0]) if self.gamma == "eq27" else 0.0
        table = self.ready(observation, count)
        decide(table, self.look(observation), count, slot, eq27)
        return self.action
