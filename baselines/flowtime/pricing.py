"""PricingPolicy: the OCORP family, which charges each job a price (lambda) that it learns from its service.

Each job has a price in each phase. The prices are learned from observations alone: the service of a job in a
slot is the change of its remaining work.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.baselines.flowtime.policy import FlowtimePolicy, clear_rest, seen_rows
from schedgym.core.arrays import SHARED, Floats, Floats32, Integers, allocate
from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.order import sort_rows
from schedgym.core.policy import Interface
from schedgym.core.tables import accessor, pack
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime import rules
from schedgym.solvers.arithmetic import power, variable
from schedgym.solvers.knapsack import KnapsackScratch, make_knapsack_scratch
from schedgym.solvers.transport import TransportScratch

NUMBER, SEEN, EQ27 = range(3)  # where gamma comes from
PROCESSING, WEIGHT = 1, 2  # how lambda starts, other than at a NUMBER
#: where lambda starts by default: far above all weights at the paper's size (k = 2, some 1e7 at most)
LAMBDA0 = 1e11
#: tried by a tuning ("eq27" reads jobs to come)
CANDIDATES = {
    "gamma": (1000.0, 4000.0, 16000.0, "seen"),
    "lambda0": (0.0, 1e4, 1e6, 1e8, LAMBDA0, "p", "w"),
}

CHOICES = record_dtype(
    ("norm", np.float64),  # k
    ("alpha", np.float64),
    ("gamma", np.float64),  # where it is a number
    ("lambda0", np.float64),  # where it is a number
    ("gamma_from", np.int64),  # NUMBER, SEEN or EQ27
    ("lambda0_from", np.int64),  # NUMBER, PROCESSING or WEIGHT
    ("how", np.int64),  # how cores come to servers
    ("estimation", np.bool_),  # whether demands are mis-estimated
    ("literal", np.bool_),
    ("backfill", np.bool_),
    ("sticky", np.bool_),
)


class Options(NamedTuple):
    """The options of the policy, constant in an episode."""

    choices: Annotated[Any, CHOICES]


class Learned(NamedTuple):
    """State of the policy: prices and work of the jobs that it saw in the slot before, in their order."""

    state: Annotated[Integers, 2]  # how many jobs, the slot
    numbers: Annotated[Floats, 3]  # gamma of the slot; of the jobs seen: max(a + 2p, 2a), work [core-slots]
    job: Annotated[Integers, "row"]
    phase: Annotated[Integers, "row"]
    price: Annotated[Floats, "row"]  # lambda in that slot
    remaining: Annotated[Floats, "row"]  # core-slots
    slots_left: Annotated[Floats, "row"]


class Decision(NamedTuple):
    """Result of a decision.

    Of ``granted`` and ``scores``, the one that the view does not use has no rows.
    """

    coefficient: Annotated[Floats, "row"]  # weight - lambda
    omega: Annotated[Floats, "row"]  # the same per core of the job's demand
    granted: Annotated[Integers, "slot", "server"]
    scores: Annotated[Floats32, "slot", 1]
    shown: Annotated[Integers, 1]  # rows of the action that are set


class Pricing(NamedTuple):
    """Arrays and scratch space of one decision."""

    scratch: Annotated[rules.Scratch, SHARED]
    net: Annotated[TransportScratch, SHARED]
    bag: Annotated[KnapsackScratch, SHARED]
    servers: Annotated[rules.Servers, SHARED]
    options: Annotated[Options, SHARED]
    learned: Annotated[Learned, SHARED]
    decision: Annotated[Decision, SHARED]


access = accessor(Pricing)


@helper
def simplest_fraction(x: float, error: float) -> float:
    """Return the fraction with the least denominator within an error of x >= 0, as a float.

    A job's service u/d is the difference of two rounded numbers of slots; this function undoes the rounding.
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
def _length(rows: rules.Rows, r: int) -> int:
    """Return the least number of slots that a job takes."""
    if not rules.has_phases(rows):
        return rows.processing[r]
    length = rows.phase_processing[r, 0]
    if rows.tasks[r, 1] > 0:
        length += rows.phase_processing[r, 1]
    return length


@pure_kernel
def learn(n: int, slot: int, eq27: float, rows: rules.Rows, env: Pricing) -> None:
    """Update the prices of the last slot's jobs by their service, and set those of new jobs and phases."""
    choices, learned, servers = env.options.choices, env.learned, env.servers
    phases = rules.has_phases(rows)
    norm = choices.norm
    before = learned.state[0]
    step = float(learned.state[1]) ** (norm + 0.5)
    gamma = learned.numbers[0]
    job = rows.job
    arrival = rows.arrival
    s = 0
    for r in range(n):
        while s < before and learned.job[s] < job[r]:
            s += 1
        met = s < before and learned.job[s] == job[r]
        z = 0
        if phases:
            z = rows.phase[r]
        length = _length(rows, r)
        if met and learned.phase[s] == z:
            target = float(length)
            tasks = 1
            if phases:
                tasks = rows.tasks[r, z]
                work = 0
                for y in range(2):
                    work += rows.tasks[r, y] * rows.phase_processing[r, y]
                target = float(work)
            if choices.estimation:
                served = simplest_fraction(
                    learned.slots_left[s] - rows.slots_left[r], 1e-15 * (1.0 + learned.slots_left[s])
                )
            else:
                unit = rows.phase_demand[r, z] * tasks if phases else rows.demand[r]
                served = (learned.remaining[s] - rows.remaining[r]) / unit
            wanted = target / (tasks * max(gamma - arrival[r], 1.0))
            price = max(0.0, learned.price[s] + step * (wanted - served))
        elif choices.lambda0_from == PROCESSING:
            price = float(slot) ** (norm + 0.5) * length
        elif choices.lambda0_from == WEIGHT:
            price = math.nan  # set_coefficients puts the weight
        else:
            price = choices.lambda0
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
    if choices.gamma_from == SEEN:
        cores = 0
        for i in range(servers.server_cpu.shape[0]):
            cores += servers.server_cpu[i]
        learned.numbers[0] = max(learned.numbers[1], 4.0 * learned.numbers[2] / cores)
    elif choices.gamma_from == EQ27:
        learned.numbers[0] = eq27
    else:
        learned.numbers[0] = choices.gamma


@pure_kernel
def set_coefficients(
    n: int,
    norm: float,
    rows: rules.Rows,
    prices: Floats,
    coefficient: Floats,
    omega: Floats,
) -> None:
    """Set the cost of a slot of service of each job: its weight minus its price.

    The weight of Eq. 5 is age^k / p + p^(k-1); of problem P5 (MapReduce) it is (2 age^k + (p^m + p^r)^k) / (2
    n p), with the n tasks of the phase.

    Args:
        n: jobs.
        norm: k, at least 1.
        rows: the visible jobs.
        prices: [>= n] lambda; NaN, for a job without a price, is replaced by the weight at its first slot.
        coefficient: [>= n] written: weight - lambda.
        omega: [>= n] written: the same per core.
    """
    for r in range(n):
        age = power(float(rows.age[r]), norm)
        length = float(_length(rows, r))
        if rules.has_phases(rows):
            z = rows.phase[r]
            work = float(2 * rows.tasks[r, z] * rows.phase_processing[r, z])
            weight = (2.0 * age + power(length, norm)) / work
        else:
            weight = age / length + power(length, norm - 1.0)
        if prices[r] != prices[r]:
            prices[r] = weight
        coefficient[r] = weight - prices[r]
        omega[r] = coefficient[r] / rules.demand_of(rows, r)


@helper
def set_prices(n: int, slot: int, eq27: float, rows: rules.Rows, env: Pricing) -> None:
    """Learn the prices, and set what a slot of service costs each job."""
    learn(n, slot, eq27, rows, env)
    decision = env.decision
    norm = env.options.choices.norm
    set_coefficients(n, norm, rows, env.learned.price, decision.coefficient, decision.omega)


@pure_kernel
def decide(table: Any, seen: Any, n: int, slot: int, eq27: float) -> None:
    """Serve the first n jobs of an observation by (weight - price) / demand.

    This allocates a slot of ocorp, and of ocorp+ with alpha 0.
    """
    env, rows = access(table, table, 0), seen_rows(seen)
    choices, decision, scratch = env.options.choices, env.decision, env.scratch
    scores = decision.scores
    omega = decision.omega
    set_prices(n, slot, eq27, rows, env)
    size = variable(0)
    for r in range(n):
        if not choices.literal or omega[r] < 0.0:
            scratch.order[size] = r
            size += 1
    sort_rows(scratch.order, omega, size)
    if scores.shape[0] > 0:
        for r in range(n):
            scores[r, 0] = -1.0
        for x in range(size):
            scores[scratch.order[x], 0] = 1.0 - x / scores.shape[0]
    else:
        rules.allocate(choices.how, n, size, rows, env.servers, scratch, env.net, decision.granted)
    clear_rest(n, decision)


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
        label: name of the policy in errors.
        views: the action views that can express it.
        kinds: the kinds of jobs that it can schedule.
        packing: of :class:`FlowtimePolicy`.
        gamma: Gamma, the slot by which all jobs are assumed to have finished: a number, "seen" (Eq. 27 over
            the jobs that have arrived), or "eq27" (over all jobs, which needs an environment with
            ``clairvoyant=True``).
        lambda0: the price of a job in its first slot: a number, "p" (mu p), or "w" (its weight). The paper
            does not give it; :class:`~schedgym.baselines.flowtime.ocorp.OCORP` says what it changes.
        literal: serve only what lowers the objective.

    A subclass with a switching cost calls :meth:`charge_changes`.
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
        self.given: float | None = 0.0
        self.backfill = True

    def charge_changes(self, alpha: float | None) -> None:
        """Set the weight of the switching cost; None: that of the environment's objective."""
        if alpha is not None:
            check_number("alpha", alpha, (), 0.0)
        self.given = alpha

    def needs(self, interface: Interface) -> dict[str, Any]:
        """See :meth:`FlowtimePolicy.needs`."""
        return super().needs(interface) | ({"clairvoyant": True} if self.gamma == "eq27" else {})

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        self.norm = float(interface.parameters["norm"])
        alpha: Any = interface.parameters["alpha"] if self.given is None else self.given
        self.alpha = float(alpha)
        self.learned = self.remember(0)

    def remember(self, rows: int, old: Learned | None = None) -> Learned:
        """Make the state for ``rows`` jobs, and copy the old state into it."""
        made = allocate(Learned, {"row": rows})
        for new, given in zip(made, old or (), strict=False):
            new[: len(given)] = given[: len(new)]
        return made

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """See :meth:`FlowtimePolicy.prepare`."""
        self.learned = self.remember(rows, self.learned)
        gamma, lambda0 = self.gamma, self.lambda0
        choices = (
            self.norm,
            self.alpha,
            0.0 if isinstance(gamma, str) else float(gamma),
            0.0 if isinstance(lambda0, str) else float(lambda0),
            {"seen": SEEN, "eq27": EQ27}.get(str(gamma), NUMBER),
            {"p": PROCESSING, "w": WEIGHT}.get(str(lambda0), NUMBER),
            self.how(observation),
            self.estimation != "none",
            self.literal,
            self.backfill,
            self.sticky,
        )
        bundles = Pricing(
            *self.work_space(observation, rows),
            self.capacities(observation),
            Options(np.array(choices, dtype=CHOICES)),
            self.learned,
            Decision(np.zeros(rows), np.zeros(rows), self.granted, self.scores, self.shown),
        )
        return pack(bundles), bundles

    def work_space(
        self, observation: dict[str, Any], rows: int
    ) -> tuple[rules.Scratch, TransportScratch, KnapsackScratch]:
        """Make the scratch space of the policy's kernel, for up to ``rows`` jobs."""
        scratch = rules.make_scratch(rows, self.servers)
        return scratch, self.network(observation, rows), make_knapsack_scratch(0, 0)

    def decide(self, *slot: Any) -> None:
        """Set the action by the policy's kernel, with arguments as :func:`decide`."""
        decide(*slot)

    def __call__(self, observation: dict[str, Any]) -> Any:
        """Return the decision, in the action of the environment's view."""
        count = int(observation["active"][0] - observation["backlog"][0])
        slot = int(observation["slot"][0])
        eq27 = float(observation["eq27"][0]) if self.gamma == "eq27" else 0.0
        table = self.ready(observation, count)
        self.decide(table, self.look(observation), count, slot, eq27)
        return self.action
