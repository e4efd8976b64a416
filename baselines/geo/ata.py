"""ATA and ATA-Greedy: at every event all waiting tasks are placed anew, and jobs ordered as by SWAG."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy

__all__ = ["ATA", "ATAGreedy"]


@register_policy(
    "geo/ata",
    source="guan2022, Algorithm 4 (section 3.2.4)",
    deviations="Estimates are divided by the slots (line 22 omits it). C is a multiple of 1 / gcd(slots), not "
    "a whole number, unless fine=False.",
    views=carrying_views("ata"),
)
class ATA(AssignmentPolicy):
    """Adaptive task allocation: balances every job on the loads of the jobs before it, at every event.

    The thesis's main algorithm decides order and placement together, and may move every task that has not
    started. Use it for a low mean response time; it needs the numbers of waiting tasks and their sites, no
    durations. It is the most expensive rule of the order views; ata-greedy is cheaper and nearly the same.

    At every event all waiting tasks are placed anew, r_j being the tasks at site j of the jobs in the order
    so far:

    1. Set r to 0.
    2. Balance every job that is not in the order on r: find by flows the least C such that no site has more
       than C tasks per slot. The job's estimate is $max_j (r_j + q_ij) / u_j$ over the sites j, with u_j
       slots, that get q_ij of its tasks.
    3. Append the job with the least estimate, ties by arrival, with that placement; add it to r, and go to 2.

    A job is balanced again only if r has grown at a site that it may use, and if its C, which never falls,
    leaves it a chance.

    Complexity: O(J^2 M + J K A) per event and up to about J^2 / 2 balances, for J visible jobs and M sites. A
    balance is two or three maximum flows as a rule, each O(K A + M log T) and O(K A + M) more per augmenting
    path, of which there are no more than tasks, for T tasks in K groups of up to A sites. In view rule the
    environment does this work.

    Args:
        fine: C in multiples of 1 / gcd(slots), so that a job of few tasks is spread evenly as well; False: in
            whole tasks per slot, as printed. The thesis's statements hold best with the former (its reading
            "evenness").
    """

    def __init__(self, fine: bool = True) -> None:
        super().__init__("ata", fine=fine)


@register_policy(
    "geo/ata-greedy",
    source="guan2022, section 3.2.4",
    deviations="Loads are taken per slot, and the remainder of a group goes to the lowest sites; with "
    "literal=True loads are in tasks, and the remainder goes to the more loaded sites, as printed.",
    views=carrying_views("ata-greedy"),
)
class ATAGreedy(AssignmentPolicy):
    """Orders and places jobs as ata does, but tasks go where the load per slot stays least, without flows.

    The greedy placement replaces the exact balance of ata. Use it in place of ata where decisions must be
    quick: its mean response times are about the same, at a small part of the cost. It needs the numbers of
    waiting tasks and their sites, no durations.

    At every event all waiting tasks are placed anew, r_j being the tasks at site j of the jobs in the order
    so far:

    1. Set r to 0.
    2. Place every job that is not in the order on r: group by group, the largest first, each task goes where
       $(r_j + 1) / u_j$ is least, u_j being the site's slots; ties to the lowest site. The common level of a
       group is computed at once, and only the last few tasks, fewer than the group has sites, are placed
       singly. The estimate is $max_j (r_j + q_ij) / u_j$, q_ij being the job's tasks at site j.
    3. Append the job with the least estimate, ties by arrival, with that placement; add it to r, and go to 2.

    A job is placed again only if r has grown at a site that it may use and it could still be the least.

    Complexity: O(J^2 (M + K^2 + K A^2)) per event for J visible jobs and M sites, K groups of up to A sites,
    whatever the number of tasks: groups are sorted by insertion. In view rule the environment does this work.

    Args:
        literal: place by the thesis's formula.
    """

    def __init__(self, literal: bool = False) -> None:
        super().__init__("ata-greedy", literal=literal)
