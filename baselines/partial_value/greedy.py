"""Greedy policies: by value per dominant share or by dual prices (Algorithm 2 of the paper), and by value."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import ValuePolicy
from schedgym.core.arrays import Floats
from schedgym.core.policy import Interface, register_policy
from schedgym.problems.partial_value.rules import MOST_SCORE, Rows, Scratch, m_greedy, s_greedy
from schedgym.solvers.dual_prices import DualScratch


@register_policy(
    "partial-value/m-greedy",
    source="zheng2016, Algorithm 2 with the greedy local algorithm",
    deviations="The paper does not say how ties are broken; here by larger value, earlier arrival, lower "
    "task. skip=True is not in the paper.",
    knows=("value",),
    views=("allocation", "rule", "priority"),
    needs={"model": "discrete"},
)
class MGreedy(ValuePolicy):
    """Serves tasks by value per dominant share until one does not fit, or only that one if it is worth more.

    This is the paper's greedy algorithm for whole tasks (discrete model) and several resources. Use it as the
    main baseline of that model. It needs the utilities, ignores deadlines, and is fast. local-optimal solves
    the same problem exactly.

    1. The dominant share of a task is $max_i r_i$, the largest share that it needs of any resource i. Jobs
       whose tasks do not fit into an empty slot are left out.
    2. Serve the task with the greatest value / dominant share; ties: larger value, then earlier arrival. The
       tasks of a job come in order; each has less value than the one before (the same value if the job is
       linear).
    3. Stop at the first that does not fit (with ``skip``, pass over its job). If it alone is worth more than
       all that was served, serve it alone.

    Complexity: O(N m + t (log N + m)) per slot for the t tasks that are served, found by a heap, where those
    of a linear job count as one; N visible jobs and m resources. In views rule and priority the environment
    does this work.

    Args:
        skip: pass over tasks that do not fit instead of stopping (view allocation).
    """

    def __init__(self, skip: bool = False) -> None:
        super().__init__("m-greedy", ("allocation", "rule", "priority"), "discrete", skip=skip)

    def needs(self, interface: Interface) -> dict[str, Any]:
        """In view priority, require the comparison with a single task."""
        return {"single_task": True} if interface.view == "priority" else {}

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Allocate the tasks of this slot."""
        m_greedy(self.skip, True, count, rows, scratch, self.x)


@register_policy(
    "partial-value/primal-dual",
    source="zheng2016, Algorithm 2 with the primal-dual local algorithm",
    deviations="The exponent of the price update is illegible in print. Prices are kept as logarithms, as "
    "e^(B - 1) overflows. Ties: larger value, earlier arrival, lower task.",
    knows=("value",),
    views=("allocation", "rule"),
    needs={"model": "discrete"},
)
class PrimalDual(ValuePolicy):
    """Serves tasks by value per cost, at prices that grow with the load of a resource (discrete model).

    This is the second local algorithm of the paper's Algorithm 2. The prices make tasks expensive that need a
    resource which is nearly full. Use it as a baseline beside m-greedy, which is faster, if several resources
    are scarce. It needs the utilities, and ignores deadlines.

    1. All resources have price 1. Let R be the largest share that a task needs of any resource, and
       $B = 1 / R$. Jobs whose tasks do not fit into an empty slot are left out.
    2. Stop when the prices of the m resources sum to more than $m e^(B - 1)$.
    3. Among the next tasks of all jobs, serve the one with the greatest value / cost. The cost is $sum_i b_i
       r_i$ for price b_i and share r_i of resource i. Ties: larger value, then earlier arrival.
    4. Multiply the price of every resource i that it uses by $(m e^(B - 1))^(r_i / (1 - r_max))$, where r_max
       is the largest share of i that any task needs; go to 2.

    Prices start anew in every slot.

    Complexity: O(T N m) per slot for T served tasks, N visible jobs and m resources: each task is found by a
    search over all jobs. In view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("primal-dual", ("allocation", "rule"), "discrete")


@register_policy(
    "partial-value/s-greedy",
    source="zheng2016, section V",
    deviations="The paper does not say how ties are broken (here by the earlier arrival), nor whether a task "
    "that does not fit ends the slot (here it does, unless skip=True).",
    knows=("value",),
    views=("allocation", "rule", "priority"),
)
class SGreedy(ValuePolicy):
    """Serves the tasks with the highest marginal values first, until a resource is full.

    The paper compares its algorithms with this heuristic, which ignores the demands of tasks. Use it as a
    baseline of both models. It needs the utilities, ignores deadlines, and is fast.

    Discrete model: tasks are served by value, ties by arrival, up to the first that does not fit (with
    ``skip`` its job is passed over). Jobs whose tasks do not fit into an empty slot are left out. Continuous
    model: all jobs are served until their slopes f' have fallen to a common level, at which a resource is
    full. A linear job is served when the level reaches its slope; linear jobs with equal slopes are served
    one after another by arrival.

    The level is found by Newton's method; if there are linear jobs, bisection over their slopes comes first.

    Complexity: O(N m) per evaluation of the level, for N visible jobs and m resources: a few, at most 200,
    and about log L more with L linear jobs, whose sort (Shell's method) takes about L log L. Discrete: O(N m
    + t (log N + m)) for the t tasks that are served, found by a heap, where those of a linear job count as
    one. In views rule and priority the environment does this work, except O(N m) for the scores of the
    discrete model.

    Args:
        skip: pass over tasks that do not fit instead of stopping (discrete model, view allocation).
    """

    def __init__(self, skip: bool = False) -> None:
        super().__init__("s-greedy", ("allocation", "rule", "priority"), skip=skip)

    def needs(self, interface: Interface) -> dict[str, Any]:
        """In view priority of the discrete model, require that there is no comparison with a single task."""
        plain = interface.view == "priority" and interface.parameters["model"] == "discrete"
        return {"single_task": False} if plain else {}

    def score(self, count: int) -> Floats | float:
        """Return the scores that turn value per dominant share into value."""
        if not self.discrete:
            return 0.0
        dominant = self.seen.share[:count].max(axis=1)
        return np.clip(np.log(np.where(dominant > 0.0, dominant, 1.0)) / MOST_SCORE, -1.0, 1.0)

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Rows, scratch: Scratch, dual: DualScratch
    ) -> None:
        """Allocate the tasks of this slot."""
        if self.skip:
            s_greedy(True, count, rows, scratch, self.x)
        else:
            super().allocate(observation, count, rows, scratch, dual)
