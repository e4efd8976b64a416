"""OCORP+M: OCORP for jobs with memory; cores and placements are optimised in turn."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.flowtime import pricing
from schedgym.baselines.flowtime.ocorp import DEVIATIONS
from schedgym.baselines.flowtime.ocorp_plus import plus_allocation
from schedgym.baselines.flowtime.policy import clear_rest, seen_rows
from schedgym.baselines.flowtime.switching import core_cost, cost_multiple, largest_cost, square_cost
from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.order import sort_rows
from schedgym.core.policy import register_policy
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.rules import Rows, Scratch, Servers, fill, make_scratch, pack_cores, place
from schedgym.solvers import transport
from schedgym.solvers.arithmetic import fixed, scale_for, variable
from schedgym.solvers.knapsack import KnapsackScratch, knapsack_into, make_knapsack_scratch

MOST_CELLS = 1 << 27  # of the knapsack's table


@helper
def _worth(r: int, units: int, held: int, value: Integers, square: Integers) -> int:
    """Return what cores of a job on a server are worth, less what the change from those held costs."""
    return value[r] * units - square[r] * units * (units - 2 * held)


@helper
def _keep_by_value(
    n: int, i: int, x: Integers, value: Integers, square: Integers, rows: Rows, memory: Integers, bag: Any
) -> None:
    """Choose which jobs with cores on server i in ``x`` get its memory; the others lose these cores."""
    count = variable(0)
    for r in range(n):
        if x[r, i] > 0:
            bag.item[count] = r
            bag.value[count] = _worth(r, x[r, i], rows.held[r, i], value, square)
            bag.weight[count] = rows.memory[r]
            count += 1
    knapsack_into(count, memory[i], bag)
    for y in range(count):
        if bag.taken[y] == 0:
            x[bag.item[y], i] = 0


@helper
def _move_cores(
    n: int,
    x: Integers,
    value: Integers,
    square: Integers,
    rows: Rows,
    cpu: Integers,
    net: transport.TransportScratch,
    before: Integers,
) -> bool:
    """Replace ``x`` by the most valuable cores on the servers that each job has in ``x``, if they are better.

    Returns:
        True if ``x`` was replaced; the old ``x`` is then in ``before``.
    """
    servers = cpu.shape[0]
    count = variable(0)
    worth = 0
    for r in range(n):
        hosts = 0
        for i in range(servers):
            net.linear[count, i] = transport.FORBIDDEN
            if x[r, i] > 0:
                worth += _worth(r, x[r, i], rows.held[r, i], value, square)
                net.linear[count, i] = square[r] * (1 - 2 * rows.held[r, i])
                hosts += 1
        if hosts > 0:
            net.owner[count] = r
            net.supply[count] = rows.cap[r]
            net.base[count] = -value[r]
            net.slope[count] = 2 * square[r]
            count += 1
    transport.transport_into(count, variable(-1), cpu, net)
    for y in range(count):
        r = net.owner[y]
        for i in range(servers):
            worth -= _worth(r, net.units[y, i], rows.held[r, i], value, square)
    if worth >= 0:
        return False
    transport.break_ties(count, cpu, net)
    for r in range(n):
        for i in range(servers):
            before[r, i] = x[r, i]
            x[r, i] = 0
    for y in range(count):
        for i in range(servers):
            x[net.owner[y], i] = net.units[y, i]
    return True


@helper
def _value_cores(n: int, literal: bool, omega: Floats, total: int, rows: Rows, scratch: Scratch) -> None:
    """Set what a core is worth to each of the jobs in ``scratch.order``, without a switching cost."""
    value = scratch.waiting
    largest = 0.0
    highest = -1.0
    for r in range(n):
        scratch.left[r] = 0
        if not literal or omega[r] < 0.0:
            largest = max(largest, abs(omega[r]))
            highest = max(highest, omega[r])
    scale = scale_for(largest if literal else 2.0 * largest + 1.0, total)
    bonus = 0
    if not literal:
        bonus = max(0, fixed(1.0, scale) + fixed(highest, scale))
    for r in range(n):
        value[r] = max(0, bonus - fixed(omega[r], scale)) if not literal or omega[r] < 0.0 else 0


@helper
def _value_changes(
    n: int, literal: bool, alpha: float, coefficient: Floats, total: int, rows: Rows, scratch: Scratch
) -> None:
    """Set what a core is worth to each job, and the cost of its squared change, with a switching cost."""
    value, square = scratch.waiting, scratch.left
    largest = largest_cost(n, alpha, coefficient, rows)
    most = largest if literal else 2.0 * largest + 1.0
    multiple = cost_multiple(n, alpha, most, total, rows)
    scale = scale_for(most * max(multiple, 1), total)
    bonus = 0
    for r in range(n):
        square[r] = square_cost(r, scale, multiple, alpha, rows)
        value[r] = -core_cost(r, scale, multiple, coefficient, rows)
        if not literal:
            bonus = max(
                bonus, fixed(float(max(multiple, 1)), scale) - value[r] + square[r] * (2 * rows.cap[r] - 1)
            )
    for r in range(n):
        value[r] += bonus


@pure_kernel
def memory_allocation(
    literal: bool,
    backfill: bool,
    sticky: bool,
    n: int,
    alpha: float,
    coefficient: Floats,
    omega: Floats,
    rows: Rows,
    servers: Servers,
    scratch: Scratch,
    net: transport.TransportScratch,
    bag: KnapsackScratch,
    granted: Integers,
) -> int:
    """Allocate one slot by ocorp+m: cores x and servers z in turn, until nothing changes.

    The first x comes from fill and pack in order of omega; with a switching cost it is that of ocorp+. On
    each server z is a knapsack on memory, in which a job is worth the value of its cores there. Each later x
    is the exact optimum on the servers that z left to the jobs, a transportation problem, unless it is no
    better than the present x. A core is worth -omega, less what it adds to the switching cost, plus a bonus
    that lifts all cores of all visible jobs to 1 at least. In the end the jobs get what is free, as in
    :func:`place`, which does not look at the switching cost.

    Args:
        literal: serve only jobs with omega < 0, and without the bonus.
        backfill: give the jobs what is free in the end.
        sticky: use sticky packing for the first x, if ``alpha`` is 0.
        n: jobs.
        alpha: weight of the switching cost, from 0.
        coefficient: [>= n] of :func:`set_coefficients`.
        omega: [>= n] of the same.
        rows: plain jobs with memory; those of age 1 have no switching cost.
        servers: their cores and memory.
        scratch: of :func:`make_scratch` with ``memory``.
        net: of make_transport_scratch (rows, M).
        bag: of make_knapsack_scratch, for the jobs with cores on one server and its GB.
        granted: [>= n, M] written, n rows.

    Returns:
        The number of rounds, each an x and the z after it; the last one changes nothing.

    Source: xu2021, Algorithm 1, and Eq. 32 for the switching cost, which the paper adds for one resource.
    Deviations: the bonus, without which the policy leaves servers idle; the old x is kept unless the new one
    is better; backfill.
    """
    cpu = servers.server_cpu
    memory = servers.server_memory
    order = scratch.order
    value, square = scratch.waiting, scratch.left
    x = scratch.x
    size = variable(0)
    total = variable(0)
    for i in range(cpu.shape[0]):
        total += cpu[i]
    for r in range(n):
        if not literal or omega[r] < 0.0:
            order[size] = r
            size += 1
    sort_rows(order, omega, size)
    most = max(total, 2 * cpu.shape[0] + 4)  # terms of a sum of costs
    if alpha > 0.0:
        plus_allocation(literal, n, alpha, coefficient, rows, cpu, net, x)
        _value_changes(n, literal, alpha, coefficient, most, rows, scratch)
    else:
        fill(n, size, rows, cpu, scratch)
        pack_cores(sticky, n, scratch.cores, cpu, rows.held, scratch, x)
        _value_cores(n, literal, omega, most, rows, scratch)
    rounds = 1
    for i in range(cpu.shape[0]):
        _keep_by_value(n, i, x, value, square, rows, memory, bag)
    while True:
        rounds += 1
        if not _move_cores(
            n, x, value, square, rows, cpu, net, granted
        ):  # the next z leaves all of x: it fits
            break
        for i in range(cpu.shape[0]):
            _keep_by_value(n, i, x, value, square, rows, memory, bag)
        changed = False
        for r in range(n):
            for i in range(cpu.shape[0]):
                if granted[r, i] != x[r, i]:
                    changed = True
        if not changed:
            break
    for r in range(n):
        for i in range(cpu.shape[0]):
            granted[r, i] = x[r, i]
    if backfill:
        place(n, size, rows, servers, scratch, granted)
    return rounds


@pure_kernel
def decide(table: Any, seen: Any, n: int, slot: int, eq27: float) -> None:
    """Allocate one slot by ocorp+m among the first n jobs of an observation."""
    env, rows = pricing.access(table, table, 0), seen_rows(seen)
    choices, decision = env.options.choices, env.decision
    pricing.set_prices(n, slot, eq27, rows, env)
    memory_allocation(
        choices.literal,
        choices.backfill,
        choices.sticky,
        n,
        choices.alpha,
        decision.coefficient,
        decision.omega,
        rows,
        env.servers,
        env.scratch,
        env.net,
        env.bag,
        decision.granted,
    )
    clear_rest(n, decision)


@register_policy(
    "flowtime/ocorp+m",
    source="xu2021, Algorithm 1 and Theorem 1; alpha: Eq. 31 and 32",
    deviations=DEVIATIONS
    + " Unless literal=True, a number is added to the values of all jobs, so that each is at least 1. The "
    "alternation keeps the old placement unless the new one is strictly better, and sometimes takes three "
    "rounds (Theorem 1 says two). Cores that it leaves free are then given to jobs in order of value "
    "(backfill), which is not in the paper. The paper has the switching cost for one resource; here alpha "
    "adds it to both steps of the alternation.",
    views=("allocation",),
    candidates=pricing.CANDIDATES,
)
class OCORPM(pricing.PricingPolicy):
    """Extends OCORP to memory: decides the cores of jobs, and then which jobs fit on each server, in turn.

    The paper's OCORP for jobs with memory (kind 2d) alternates between the best cores for a given placement
    and the best placement for given cores, until nothing changes. Use it where memory limits how many jobs a
    server can host. It needs what ocorp needs, and is slow: in every slot it solves knapsack problems and a
    transportation problem.

    With ``alpha`` above 0, every change of a job's cores on a server has the same cost as in ocorp+, so that
    preemptions and migrations become rarer.

    1. Update the prices lambda and the weights w as ocorp does. The value of a core is $(lambda - w) / d$.
    2. Give first cores to the jobs by value, each up to its cap, and pack them as if there were no memory;
       with ``alpha`` as ocorp+ does.
    3. On every server, of the jobs with cores there, keep those with the greatest total value whose memory
       fits (a 0/1 knapsack problem; ties: the lowest rows). The others lose their cores there. With ``alpha``
       the value of u cores is reduced by $alpha (u^2 - 2 u u_0) / d^2$, where the job has the demand d, and
       had u_0 cores there in the slot before.
    4. Find the cores of the greatest value if every job uses only the servers where it has been kept (a
       transportation problem). If their value is above that of the present cores, take them and go to 3.
       Else, or if 3 changed nothing, stop.
    5. Backfill: the jobs in order of value (without ``alpha``) take free cores on servers that host them or
       have enough free memory.

    Complexity: O(S + M (W + M)) per slot to begin and to backfill, for W visible jobs, M servers and Shell's
    sort S of W numbers (about W log W). Every round (there are two, sometimes three) has knapsack problems,
    O(H B) for H pairs of a job and a server that hosts it and servers of B GB, and a transportation problem,
    O(C M^2 (W + M)) at worst with C cores in total, plus O(M (C + W M) (H + W)) for ties.

    Args:
        gamma: Gamma, the slot by which all jobs are assumed to have finished: a number, "seen" or "eq27".
        lambda0: lambda of a job in its first slot: a number, "p" (mu p), or "w" (its weight). The default is
            that of ocorp, whose page says what it changes. Of ocorp+m cost / bound is 3.53 with 1e11 and 4.59
            with 0 over 20 draws of 60 jobs, and 1.60 and 2.32 over 10 draws of the preset kw-2d.
        literal: serve only jobs with weight < lambda; with ``alpha``, only cores that lower the objective.
        backfill: give cores that are left to jobs whose memory fits.
        packing: "fresh" or "sticky", for the first cores if alpha is 0; None: that of the environment.
        alpha: weight of the switching cost; None: that of the environment's objective.
    """

    def __init__(
        self,
        gamma: float | str = 4000.0,
        lambda0: float | str = pricing.LAMBDA0,
        literal: bool = False,
        backfill: bool = True,
        packing: str | None = None,
        alpha: float | None = None,
    ) -> None:
        super().__init__("ocorp+m", ("allocation",), ("2d",), packing, gamma, lambda0, literal)
        self.charge_changes(alpha)
        if not isinstance(backfill, bool):
            raise InvalidParameter(f"backfill: must be True or False, got {backfill!r}")
        self.backfill = backfill

    def work_space(
        self, observation: dict[str, Any], rows: int
    ) -> tuple[Scratch, transport.TransportScratch, KnapsackScratch]:
        """See :meth:`PricingPolicy.work_space`."""
        cpu, memory = self.capacities(observation)
        items, most = min(rows, int(cpu.max())), int(memory.max())
        if items * most > MOST_CELLS:
            raise InvalidParameter(
                f"{self.label}: {items} jobs on a server of {most} GB are too many for its knapsacks: give "
                "memory in larger units"
            )
        return (
            make_scratch(rows, self.servers, memory=True),
            transport.make_transport_scratch(rows, self.servers),
            make_knapsack_scratch(items, most),
        )

    def decide(self, *slot: Any) -> None:
        """See :meth:`PricingPolicy.decide`."""
        decide(*slot)
