"""OCORP+: OCORP with a cost for every change of a job's cores on a server."""

from __future__ import annotations

from typing import Any

from schedgym.baselines.flowtime import pricing
from schedgym.baselines.flowtime.ocorp import DEVIATIONS
from schedgym.baselines.flowtime.policy import clear_rest, seen_rows
from schedgym.baselines.flowtime.switching import core_cost, cost_multiple, largest_cost, square_cost
from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import pure_kernel
from schedgym.core.policy import register_policy
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.rules import Rows, Scratch, spread
from schedgym.solvers.arithmetic import scale_for, variable
from schedgym.solvers.knapsack import KnapsackScratch
from schedgym.solvers.transport import TransportScratch, break_ties, make_transport_scratch, transport_into

LEVELS = ("server", "job")


@pure_kernel
def plus_allocation(
    literal: bool,
    n: int,
    alpha: float,
    coefficient: Floats,
    rows: Rows,
    cpu: Integers,
    net: TransportScratch,
    granted: Integers,
) -> None:
    """Allocate one slot by ocorp+: min sum coef y + alpha sum over servers ((u - u_prev) / d)^2, exactly.

    The (q + 1)-th core of a job on a server costs coef/d + alpha (2q + 1 - 2 u_prev) / d^2, which grows with
    q, so the slot is a transportation problem with convex unit costs. Of several optima the lexicographically
    greatest is taken, by row, then server.

    Args:
        literal: serve only what lowers the objective, else as much as fits.
        n: jobs.
        alpha: weight of the switching cost, above 0.
        coefficient: [>= n] weight - lambda.
        rows: plain jobs; those of age 1 have no switching cost.
        cpu: [M] cores of the servers.
        net: of make_transport_scratch (rows, M).
        granted: [>= n, M] written, n rows.

    Source: xu2021, section IV-B (Eq. 31 and 32).
    """
    servers = cpu.shape[0]
    largest = largest_cost(n, alpha, coefficient, rows)
    multiple = cost_multiple(n, alpha, largest, 2 * servers + 4, rows)
    scale = scale_for(largest * max(multiple, 1), 2 * servers + 4)
    wanted = 0
    for r in range(n):
        net.supply[r] = rows.cap[r]
        wanted += rows.cap[r]
        net.base[r] = core_cost(r, scale, multiple, coefficient, rows)
        weight = square_cost(r, scale, multiple, alpha, rows)
        net.slope[r] = 2 * weight
        for i in range(servers):
            net.linear[r, i] = weight * (1 - 2 * rows.held[r, i])
    total = variable(0)
    for i in range(servers):
        total += cpu[i]
    if literal:
        total = variable(-1)
    elif wanted < total:
        total = wanted
    transport_into(n, total, cpu, net)
    break_ties(n, cpu, net)
    for r in range(n):
        for i in range(servers):
            granted[r, i] = net.units[r, i]


@pure_kernel
def cheapest_cores(
    literal: bool,
    n: int,
    alpha: float,
    coefficient: Floats,
    rows: Rows,
    cpu: Integers,
    scratch: Scratch,
    cores: Integers,
) -> None:
    """Allocate one slot by the variant of ocorp+ that charges the change of a job's cores in all.

    The cheapest cores are taken one after another; ties go to the lower row. Arguments as in
    :func:`plus_allocation`, but for ``scratch``, whose ``cores`` may be the array ``cores`` [>= n] that is
    written.
    """
    largest = largest_cost(n, alpha, coefficient, rows)
    multiple = cost_multiple(n, alpha, largest, 4, rows)
    scale = scale_for(largest * max(multiple, 1), 4)
    cost = scratch.left  # of a job's next core
    total = variable(0)
    for i in range(cpu.shape[0]):
        total += cpu[i]
    for r in range(n):
        cores[r] = 0
        old = 0
        for i in range(cpu.shape[0]):
            old += rows.held[r, i]
        weight = square_cost(r, scale, multiple, alpha, rows)
        cost[r] = core_cost(r, scale, multiple, coefficient, rows) + weight * (1 - 2 * old)
    for _ in range(total):
        best = -1
        for r in range(n):
            if cores[r] < rows.cap[r] and (best < 0 or cost[r] < cost[best]):
                best = r
        if best < 0 or (literal and cost[best] >= 0):
            break
        cores[best] += 1
        cost[best] += 2 * square_cost(best, scale, multiple, alpha, rows)


@pure_kernel
def decide_by_server(table: Any, seen: Any, n: int, slot: int, eq27: float) -> None:
    """Allocate one slot with a charge on every server, among an observation's first n jobs."""
    env, rows = pricing.access(table, table, 0), seen_rows(seen)
    choices, decision = env.options.choices, env.decision
    pricing.set_prices(n, slot, eq27, rows, env)
    plus_allocation(
        choices.literal,
        n,
        choices.alpha,
        decision.coefficient,
        rows,
        env.servers.server_cpu,
        env.net,
        decision.granted,
    )
    clear_rest(n, decision)


@pure_kernel
def decide_by_job(table: Any, seen: Any, n: int, slot: int, eq27: float) -> None:
    """Allocate one slot with a charge on each job's cores in all, among an observation's first n jobs."""
    env, rows = pricing.access(table, table, 0), seen_rows(seen)
    choices, decision = env.options.choices, env.decision
    pricing.set_prices(n, slot, eq27, rows, env)
    cheapest_cores(
        choices.literal,
        n,
        choices.alpha,
        decision.coefficient,
        rows,
        env.servers.server_cpu,
        env.scratch,
        env.scratch.cores,
    )
    spread(choices.how, n, rows, env.servers.server_cpu, env.scratch, env.net, decision.granted)
    clear_rest(n, decision)


@register_policy(
    "flowtime/ocorp+",
    source="xu2021, section IV-B, Eq. 31 and 32",
    deviations=DEVIATIONS
    + " Cores are whole numbers, so that each slot is a transportation problem with convex costs, which is "
    "solved exactly; ties go to the most cores for the first job on the first server. With alpha = 0 the "
    "policy is ocorp.",
    views=("allocation",),
    candidates=pricing.CANDIDATES | {"level": LEVELS},
)
class OCORPPlus(pricing.PricingPolicy):
    """Allocates cores as ocorp does, but every change of a job's cores on a server has a cost.

    This is the paper's extension of ocorp to a switching cost: a job keeps its cores unless the gain of a
    change is larger than its cost. Use it with ``alpha`` above 0 in the environment's objective, if
    preemption and migration should be rare. It needs what ocorp needs, and takes much longer: in every slot
    it solves a transportation problem exactly.

    1. Update the prices lambda and the weights w as ocorp does.
    2. Minimise the sum over jobs and servers of $(w - lambda) y + alpha (y - y_0)^2$, where y is the number
       of cores of the job on the server divided by its demand d, and y_0 is the same in the slot before. Each
       further core of a job on a server thus costs more than the last one. In a job's first slot the square
       is left out.
    3. To do so, add one core at a time along the cheapest path of changes: it goes to a server with a free
       core, or to a full server, where it replaces a core of another job, which goes to another server in the
       same way. Stop when all cores or all caps are used; with ``literal=True`` already when a core costs 0
       or more.
    4. If there are several optima, take the one with the most cores for the earliest job on the lowest
       server.

    With ``level="job"`` the cost depends on the change of a job's total number of cores. Then 3 and 4 are
    replaced: each core goes to the job for which it is cheapest, and the cores are packed.
    With alpha 0 the policy is ocorp.

    Complexity: O(C M^2 (W + M)) per slot at worst for the paths, and O(M (C + W M) (H + W)) for ties, for W
    visible jobs, M servers, C cores in all, and H pairs of a job and a server that it is on. A path straight
    to a server with a free core costs O(W + M), or O(W M) if it uses up a cap. Level "job" costs O(W M + C
    W), and packing O(S + M (W + M)) with Shell's sort S of W numbers (about W log W).

    Args:
        alpha: weight of the switching cost; None: that of the environment's objective.
        level: "server": changes on every server have a cost; "job": only changes of a job's total number of
            cores.
        gamma: Gamma, the slot by which all jobs are assumed to have finished: a number, "seen" or "eq27".
        lambda0: lambda of a job in its first slot: a number, "p" (mu p), or "w" (its weight). The default is
            that of ocorp, whose page says what it changes.
        literal: take only cores that lower the objective.
        packing: "fresh" or "sticky", for level "job" or alpha 0; None: that of the environment.
    """

    def __init__(
        self,
        alpha: float | None = None,
        level: str = "server",
        gamma: float | str = 4000.0,
        lambda0: float | str = pricing.LAMBDA0,
        literal: bool = False,
        packing: str | None = None,
    ) -> None:
        super().__init__("ocorp+", ("allocation",), ("1d",), packing, gamma, lambda0, literal)
        self.charge_changes(alpha)
        if level not in LEVELS:
            raise InvalidParameter(f"level: must be 'server' or 'job', got {level!r}")
        self.level = level

    @property
    def by_server(self) -> bool:
        """Return True if the slot is a transportation problem."""
        return self.alpha > 0.0 and self.level == "server"

    def work_space(
        self, observation: dict[str, Any], rows: int
    ) -> tuple[Scratch, TransportScratch, KnapsackScratch]:
        """See :meth:`PricingPolicy.work_space`."""
        scratch, net, bag = super().work_space(observation, rows)
        return scratch, make_transport_scratch(rows, self.servers) if self.by_server else net, bag

    def decide(self, *slot: Any) -> None:
        """See :meth:`PricingPolicy.decide`."""
        if self.by_server:
            decide_by_server(*slot)
        elif self.alpha > 0.0:
            decide_by_job(*slot)
        else:
            super().decide(*slot)
