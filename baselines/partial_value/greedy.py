"""Greedy policies: by value per dominant share (Algorithm 2), by dual prices (Algorithm 2), and by value."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.baselines.partial_value.policy import Floats, ValuePolicy
from schedgym.baselines.solvers.dual_prices import DualScratch
from schedgym.core.policy import Interface, register_policy
from schedgym.errors import InvalidParameter
from schedgym.problems.partial_value.schemes import MOST_SCORE, Scratch, Visible, m_greedy

__all__ = ["MGreedy", "PrimalDual", "SGreedy"]


@register_policy(
    "partial-value/m-greedy",
    source="paper 002, Algorithm 2 with the greedy local algorithm",
    deviations="Ties, which it leaves open: larger value, earlier arrival, lower task. skip=True is not in "
    "the paper.",
    knows=("value",),
    views=("allocation", "rule", "priority"),
    needs={"model": "discrete"},
)
class MGreedy(ValuePolicy):
    """Tasks by value per dominant share, up to the first that does not fit, or that one alone if worth more.

    Args:
        skip: pass over tasks that do not fit instead of stopping (view allocation).
    """

    def __init__(self, skip: bool = False) -> None:
        if not isinstance(skip, bool):
            raise InvalidParameter(f"skip: must be True or False, got {skip!r}")
        super().__init__(
            "m-greedy", ("allocation",) if skip else ("allocation", "rule", "priority"), "discrete"
        )
        self.skip = skip

    def needs(self, interface: Interface) -> dict[str, Any]:
        """In view priority the comparison with a single task."""
        return {"single_task": True} if interface.view == "priority" else {}

    def allocate(
        self, observation: dict[str, Any], count: int, rows: Visible, scratch: Scratch, dual: DualScratch
    ) -> None:
        """The tasks of this slot."""
        m_greedy(self.skip, True, count, rows, scratch, self.x)


@register_policy(
    "partial-value/primal-dual",
    source="paper 002, Algorithm 2 with the primal-dual local algorithm",
    deviations="The exponent of the price update is garbled in print; prices are kept as logarithms, as "
    "e^(B - 1) overflows. Ties: larger value, earlier arrival, lower task.",
    knows=("value",),
    views=("allocation", "rule"),
    needs={"model": "discrete"},
)
class PrimalDual(ValuePolicy):
    """Tasks by value per cost at prices that grow exponentially with what was served (discrete model)."""

    def __init__(self) -> None:
        super().__init__("primal-dual", ("allocation", "rule"), "discrete")


@register_policy(
    "partial-value/s-greedy",
    source="paper 002, section V",
    deviations="Ties, which it leaves open: earlier arrival.",
    knows=("value",),
    views=("allocation", "rule", "priority"),
)
class SGreedy(ValuePolicy):
    """The highest marginal values first, whatever they need, until a resource is full."""

    def __init__(self) -> None:
        super().__init__("s-greedy", ("allocation", "rule", "priority"))

    def needs(self, interface: Interface) -> dict[str, Any]:
        """In view priority of the discrete model no comparison with a single task."""
        plain = interface.view == "priority" and interface.parameters["model"] == "discrete"
        return {"single_task": False} if plain else {}

    def score(self, count: int) -> Floats | float:
        """What turns value per dominant share into value."""
        if not self.discrete:
            return 0.0
        dominant = self.seen.share[:count].max(axis=1)
        return np.clip(np.log(np.where(dominant > 0.0, dominant, 1.0)), -MOST_SCORE, MOST_SCORE)
