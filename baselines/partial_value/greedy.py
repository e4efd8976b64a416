"""Greedy policies: by value per dominant share or by dual prices (Algorithm 2 of the paper), and by value."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import Floats, ValuePolicy
from schedgym.core.policy import Interface, register_policy
from schedgym.problems.partial_value.rules import MOST_SCORE, Rows, Scratch, m_greedy, s_greedy
from schedgym.solvers.dual_prices import DualScratch

__all__ = ["MGreedy", "PrimalDual", "SGreedy"]


@register_policy(
    "partial-value/m-greedy",
    source="zheng2016, Algorithm 2 with the greedy local algorithm",
    deviations="Ties, which it leaves open: larger value, earlier arrival, lower task. skip=True is not in "
    "the paper.",
    knows=("value",),
    views=("allocation", "rule", "priority"),
    needs={"model": "discrete"},
)
class MGreedy(ValuePolicy):
    """Serves tasks by value per dominant share until one does not fit; or that one alone, if worth more.

    This is the paper's greedy algorithm for whole tasks (discrete model) and several resources. Use it as the
    main baseline of that model: it needs the utilities, ignores deadlines, and is cheap. local-optimal solves
    the same problem of a slot exactly.

    1. The dominant share of a task is $max_i r_i$, the largest part that it needs of any resource i; jobs of
       which no task fits are left out.
    2. Serve the task with the greatest value over dominant share, ties: larger value, then earlier arrival.
       The tasks of a job come in order, each worth less than the one before, or as much if the job is linear.
    3. Stop at the first that does not fit (with ``skip``, pass over its job). If it alone is worth more than
       all that was served, serve it alone.

    To save steps the bulk of the tasks is found at once, by a level of the key at which a resource is about
    full; the order of 2 then takes back or adds the few that differ.

    Complexity: O(N m) per evaluation of that level (a few, at most 200), then O(N + t (log N + m)) for the t
    tasks served or taken back one by one; N visible jobs and m resources. With linear jobs, or where few
    tasks fit, there is no level and t is all tasks of the slot, those of a linear job counting as one. In
    views rule and priority the environment does this work.

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
    deviations="The exponent of the price update is garbled in print; prices are kept as logarithms, as "
    "e^(B - 1) overflows. Ties: larger value, earlier arrival, lower task.",
    knows=("value",),
    views=("allocation", "rule"),
    needs={"model": "discrete"},
)
class PrimalDual(ValuePolicy):
    """Serves tasks by value per cost at prices that grow exponentially with what was served (discrete model).

    The prices steer later tasks of a slot away from the resources that are nearly full. Use it beside
    m-greedy, which is cheaper, where several resources are scarce; it needs the utilities, and ignores
    deadlines.

    1. All resources have price 1. Let R be the largest share that a task needs of any resource, and
       $B = 1 / R$; jobs of which no task fits are left out.
    2. Stop when the prices of the m resources sum to more than $m e^(B - 1)$.
    3. Of every job's next task, serve the one with the greatest value over cost, the cost being
       $sum_i b_i r_i$ for price b_i and share r_i of resource i. Ties: larger value, then earlier arrival.
    4. Every resource that it uses gets dearer by the factor $(m e^(B - 1))^(r_i / (1 - r_max))$, r_max being
       the largest share of i that any task needs; go to 2.

    Prices start anew in every slot.

    Complexity: O(T N m) per slot for T tasks served, N visible jobs and m resources: every task served is
    sought among all jobs. In view rule the environment does this work.
    """

    def __init__(self) -> None:
        super().__init__("primal-dual", ("allocation", "rule"), "discrete")


@register_policy(
    "partial-value/s-greedy",
    source="zheng2016, section V",
    deviations="Open in the paper: ties (here the earlier arrival), and whether a task that does not fit "
    "ends the slot (here it does, unless skip).",
    knows=("value",),
    views=("allocation", "rule", "priority"),
)
class SGreedy(ValuePolicy):
    """Serves the highest marginal values first, whatever they need, until a resource is full.

    The paper's simple rival ignores what tasks need of the resources. Use it as the baseline of both models;
    it needs the utilities, ignores deadlines, and is cheap.

    Discrete model: whole tasks are served by value, ties by arrival, up to the first that does not fit (with
    ``skip``, pass over its job); jobs of which no task fits are left out. Continuous model: all jobs are
    served up to a common level of the slope f', at which a resource is full. A linear job comes in at its own
    slope; those with equal slopes one after another by arrival.

    The level is found by Newton's method; among linear jobs by bisection first. In the discrete model it
    finds the bulk of the tasks, and the order takes back or adds the few that differ.

    Complexity: O(N m) per evaluation of the level, for N visible jobs and m resources: a few, at most 200,
    and about log L more with L linear jobs, whose sort (Shell's method) takes about L log L. Discrete: O(N +
    t (log N + m)) for the t tasks served or taken back one by one; with linear jobs, or where few tasks fit,
    t is all tasks of the slot, those of a linear job counting as one. In views rule and priority the
    environment does this work, but for O(N m) for the discrete scores.

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
