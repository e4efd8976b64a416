"""ATA and ATA-Greedy: at every event all waiting tasks are placed anew, and jobs ordered as by SWAG."""

from schedgym.baselines.geo.assignment import AssignmentPolicy, carrying_views
from schedgym.core.policy import register_policy


@register_policy(
    "geo/ata",
    source="guan2022, Algorithm 4 (section 3.2.4)",
    deviations="Estimates are divided by the slots (line 22 omits it). C is a multiple of 1 / gcd(slots), "
    "not a whole number, unless fine=False.",
    views=carrying_views("ata"),
)
class ATA(AssignmentPolicy):
    """Adaptive task allocation: at every event orders all jobs and spreads each on top of those before it.

    This is the thesis's main algorithm. It decides order and placement together, and may move every task that
    has not started. Use it for a low mean response time. It needs the numbers of waiting tasks and their
    sites, no durations. It takes longer than all other policies that order jobs; ata-greedy is faster and
    nearly as good.

    At every event all waiting tasks are placed anew. r_j is the number of tasks at site j of the jobs that
    are in the order already:

    1. Set r to 0.
    2. Balance every job i that is not in the order on top of r: find by maximum flows the least C with which
       no site has more than C tasks per slot. If q_ij of its tasks are at site j, which has u_j slots,
       the estimate of its completion is $max_j (r_j + q_ij) / u_j$ over the sites with q_ij > 0.
    3. Append the job with the least estimate, ties by arrival, with that placement; add it to r, and go to 2.

    Complexity: O(J^2 M + J K A) per event and about J^2 / 2 balances, for J visible jobs and M sites. A
    balance is log T maximum flows, each O(K A + M) and as much more per augmenting path, of which there are
    no more than tasks of the job, for T tasks in all, in K groups of up to A sites. In view rule the
    environment does this work.

    Args:
        fine: C is a multiple of 1 / gcd(slots), so that a job of few tasks is spread evenly, too; False: C
            is a whole number of tasks per slot, as printed. With True the statements of the thesis hold best
            (its reading "evenness").
    """

    def __init__(self, fine: bool = True) -> None:
        super().__init__("ata", fine=fine)


@register_policy(
    "geo/ata-greedy",
    source="guan2022, section 3.2.4",
    deviations="Loads are divided by the slots of a site, and the last tasks of a group go to the lowest "
    "sites. With literal=True, as printed, loads are numbers of tasks, and the last tasks go to the sites "
    "with more load.",
    views=carrying_views("ata-greedy"),
)
class ATAGreedy(AssignmentPolicy):
    """Orders and places jobs as ata does, but sends tasks to the sites with the least load, without flows.

    A greedy placement replaces the maximum flows of ata. Use it in place of ata: its mean response times are
    about the same, and it is many times faster. It needs the numbers of waiting tasks and their sites, no
    durations.

    At every event all waiting tasks are placed anew. r_j is the number of tasks at site j of the jobs that
    are in the order already:

    1. Set r to 0.
    2. Place every job i that is not in the order on top of r: group by group, the largest first, each task
       goes to the site where $(load + 1) / u_j$ is least, where site j has u_j slots; ties go to the lowest
       site. Most tasks of a group are placed at once up to a common level; only the last few, fewer than the
       group has sites, are placed one by one. If q_ij tasks are at site j, the estimate is $max_j (r_j +
       q_ij) / u_j$.
    3. Append the job with the least estimate, ties by arrival, with that placement; add it to r, and go to 2.

    A job is placed again only if r has grown at a site that it may use, and only if it could have the least
    estimate.

    Complexity: O(J^2 (M + K^2 + K A^2)) per event for J visible jobs and M sites, K groups of up to A sites,
    whatever the number of tasks: groups are sorted by insertion. In view rule the environment does this work.

    Args:
        literal: place by the thesis's formula.
    """

    def __init__(self, literal: bool = False) -> None:
        super().__init__("ata-greedy", literal=literal)
