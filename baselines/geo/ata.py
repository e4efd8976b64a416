"""ATA and ATA-Greedy: at every event all waiting tasks are placed anew, in SWAG's manner."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["ATA", "ATAGreedy"]


@register_policy(
    "geo/ata",
    source="guan2022, Algorithm 4 (section 3.2.4)",
    deviations="Estimates are divided by the slots (line 22 omits it).",
    views=carrying_views("ata"),
)
class ATA(AssignmentPolicy):
    """Adaptive task allocation: balances every job at every place of the order until it is appended.

    At every event all waiting tasks are placed anew:

    1. Set r to 0.
    2. Balance every job that is not in the order on r: the least C such that no site has more than C tasks
       per slot, by flows. Its estimate is max (r_j + q_ij) / u_j over the sites j that get q_ij of its tasks.
    3. Append the job with the least estimate, ties by arrival, with that placement; add it to r, and go to 2.

    A job is balanced again only if r has grown at a site that it may use, and if its C, which never falls,
    leaves it a chance. Nothing is remembered.

    Complexity: O(J^2 M + J K A) per event and up to about J^2 / 2 balances, for J visible jobs and M sites. A
    balance is two or three maximum flows as a rule, each O(K A + M log T) and O(K A + M) more per augmenting
    path, of which there are no more than tasks, for T tasks in K groups of up to A sites. In view rule the
    environment does it.

    Args:
        fine: C of balance in multiples of 1 / gcd(slots) instead of whole tasks per slot.
    """

    def __init__(self, fine: bool = False) -> None:
        super().__init__("ata", fine=fine)


@register_policy(
    "geo/ata-greedy",
    source="guan2022, section 3.2.4",
    deviations="Loads are taken per slot, and what is left over goes to the lowest site; literal=True: loads "
    "in tasks, and the rest to the more loaded sites, as printed.",
    views=carrying_views("ata-greedy"),
)
class ATAGreedy(AssignmentPolicy):
    """As ATA, with groups placed by decreasing size, each task where the load per slot stays least.

    At every event all waiting tasks are placed anew:

    1. Set r to 0.
    2. Place every job that is not in the order on r: group by group, the largest first, its tasks go where
       (r_j + 1) / u_j is least, ties to the lowest site. They are not placed one by one: the common level is
       computed, and only the last few, fewer than the group has sites, are. The estimate is max (r_j + q_ij)
       / u_j.
    3. Append the job with the least estimate, ties by arrival, with that placement; add it to r, and go to 2.

    A job is placed again only if r has grown at a site that it may use and it could still be the least.
    Nothing is remembered.

    Complexity: O(J^2 (M + K^2 + K A^2)) per event for J visible jobs and M sites, K groups of up to A sites,
    whatever the number of tasks: groups are sorted by insertion. In view rule the environment does it.

    Args:
        literal: the thesis's formula.
    """

    def __init__(self, literal: bool = False) -> None:
        super().__init__("ata-greedy", literal=literal)
