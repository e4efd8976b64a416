"""What the thesis leaves open, and the choices that are run.

The defaults are those under which the order of its algorithms holds best on the Facebook trace. With a
duration of its own for each task, the longest task of a job decides its response time whatever the algorithm
does, and differences fall to a few percent: then statements that policies are alike hold better, and those
that one is better are about next to nothing. With whole tasks per slot, small jobs leave the choice of site
to the ties of a flow, which sends them all to the site of the lowest number: then BTAWJ is worse than SWAG in
some settings, as section 3.4 says, but ATA-Greedy is better than ATA, and BTAAJ than SCTA.
"""

from schedgym.papers.readings import OpenPoint

__all__ = ["BALANCE", "DURATIONS", "EVENNESS", "POINTS"]

DURATIONS = OpenPoint(
    name="durations",
    says="sections 3.3 and 5.5 generate the task durations of the Facebook trace by a Pareto distribution; "
    "section 4.6 so generates the task lengths of different jobs",
    leaves_open="whether each task has a duration of its own, or all tasks of a job have the same one; also "
    "how the durations of Google's hour, which the thesis does not publish, go together in a job",
    choices={"one duration for each job": "per-job", "a duration for each task": "pareto"},
    default="one duration for each job",
)

EVENNESS = OpenPoint(
    name="evenness",
    says="BTAWJ distributes the tasks evenly among the available sites (section 3.4), by the lowest whole "
    "number C of tasks per slot and any maximum flow (Algorithms 1 to 4)",
    leaves_open="how the sites of 20 slots share a job of fewer tasks than slots: C is 1 for all placements, "
    "and which of them the flow gives is open",
    choices={"even to the task": True, "even to whole tasks per slot": False},
    default="even to the task",
)

BALANCE = OpenPoint(
    name="balance",
    says="sections 4.7 and 5.6 call the aggregate allocations of the jobs more balanced, and show the "
    "standard deviation of the slots that jobs occupy, which need not be that of the decided allocation "
    "(section 4.6)",
    leaves_open="whether the sentences are about the slots that are occupied or about the shares that are "
    "decided, by which section 5.6 explains them",
    choices={"slots as they are occupied": "occupied", "shares as they are decided": "decided"},
    default="slots as they are occupied",
)

POINTS = [DURATIONS, EVENNESS, BALANCE]
