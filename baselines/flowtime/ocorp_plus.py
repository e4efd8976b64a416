"""OCORP+: OCORP with a cost for every change of a job's cores on a server."""

from typing import Any

import numpy as np

from schedgym.baselines.flowtime.ocorp import DEVIATIONS
from schedgym.baselines.flowtime.pricing import PLAIN, PLUS, PLUS_BY_JOB, PricingPolicy, check_number
from schedgym.core.policy import Interface, register_policy
from schedgym.errors import InvalidParameter

__all__ = ["OCORPPlus"]

LEVELS = ("server", "job")


@register_policy(
    "flowtime/ocorp+",
    source="paper 000, section IV-B, Eq. 31 and 32",
    deviations=DEVIATIONS
    + " Whole cores: the slot is a transportation problem with convex costs, solved exactly; of several "
    "optima the one with the most cores for the first job on the first server. With alpha = 0 it is "
    "ocorp's fill and pack.",
    views=("allocation",),
)
class OCORPPlus(PricingPolicy):
    """Least sum of (weight - lambda) y + alpha ((u - u before) / d)^2 over jobs and servers, in every slot.

    1. Prices lambda and weights are those of ocorp, with what it remembers.
    2. The next core of a job on a server costs (weight - lambda) / d, and what it adds to the square; the
       more cores, the dearer. A job in its first slot pays no square.
    3. Place core after core along the cheapest path: a core for a server with room, or one for a full server,
       from which a core of some job moves on, and so on. Stop when all cores or all caps are used; literal:
       when a core costs 0 or more.
    4. Of equal optima take that with the most cores for the earliest job on the lowest server.

    With level "job", in place of 3 and 4, a heap gives the next core to the job for which it is cheapest, and
    cores are packed; with alpha 0 it is ocorp.

    Complexity: O(C M^2 (W + M)) at worst for the paths, and O(M (C + W M) (H + W)) for ties, with H pairs of
    a job and a server that it is on, for W visible jobs, M servers and C cores in all. A path straight to a
    server with room costs O(W + M), or O(W M) if it uses up a cap. Level "job": O(W M + C log W), and
    packing, O(S + M (W + M)) with Shell's sort S of W numbers (about W log W).

    Args:
        alpha: weight of the switching cost; None: that of the environment's objective.
        level: "server", or "job": the change of a job's cores in all is charged, and they are packed.
        gamma: Gamma, by which all is hoped to be done [slots]: a number, "seen" or "eq27".
        lambda0: lambda of a job in its first slot: a number, "p": mu p, or "w": its weight.
        literal: take only cores that lower the objective.
        packing: "fresh" or "sticky"; None: as the environment's parameter says. For level "job" or alpha 0.
    """

    def __init__(
        self,
        alpha: float | None = None,
        level: str = "server",
        gamma: float | str = 4000.0,
        lambda0: float | str = 0.0,
        literal: bool = False,
        packing: str | None = None,
    ) -> None:
        super().__init__("ocorp+", ("allocation",), ("1d",), packing, gamma, lambda0, literal)
        if alpha is not None:
            check_number("alpha", alpha, (), 0.0)
        if level not in LEVELS:
            raise InvalidParameter(f"level: must be 'server' or 'job', got {level!r}")
        self.given, self.level = alpha, level

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        super().reset(interface, rng)
        alpha: Any = interface.parameters["alpha"] if self.given is None else self.given
        self.alpha = float(alpha)
        charged = PLUS if self.level == "server" else PLUS_BY_JOB
        self.method = charged if self.alpha > 0.0 else PLAIN
